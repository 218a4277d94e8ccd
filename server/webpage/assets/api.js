// The calls to the node. Every one ends within a bound, and an error says whether
// its outcome is known.

const base = new URL("../api/", import.meta.url);

// answerLimit is above what the node allows itself for a call.
const answerLimit = 15_000;

// Failure is what a call ends with that did not succeed.
export class Failure extends Error {
  // unreached says that the node itself did not answer; unknown that the change
  // may have happened all the same; once that the same change again, made from this
  // page, then counts once.
  once = false;

  constructor(reason, message, { unreached = false, unknown = false, field = "" } = {}) {
    super(message);
    Object.assign(this, { reason, unreached, unknown, field });
  }
}

async function call(url, options, within = answerLimit, unknown = true) {
  let answer, body;
  try {
    answer = await fetch(url, { ...always, ...options, signal: AbortSignal.timeout(within) });
    body = await answer.json();
  } catch {
    throw new Failure("UNREACHED", "This node does not answer.", { unreached: true, unknown });
  }
  if (!answer.ok) {
    throw refusal(body);
  }
  return body;
}

const always = { cache: "no-store", redirect: "error" };

// refusal reads the error of a call, which has reason and field in its details.
function refusal({ message, details = [] }) {
  let reason, field;
  for (const { debug } of details) {
    reason ??= debug?.reason;
    field ??= debug?.fieldViolations?.[0].field;
  }
  return new Failure(reason, sentence(message), { unknown: reason === "OUTCOME_UNKNOWN", field });
}

// posted is a call with a body.
function posted(body, headers = {}) {
  return { method: "POST", headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(body) };
}

// Each calls a method of a service of the public API. docs/reference/openapi.yaml has them. Whole numbers
// of 64 bits come as text.
export const [ofIds, ofSeries, ofSnowflake, ofCluster] = ["Ids", "Series", "Snowflake", "Cluster"].map((service) => (method, request) => {
  const url = new URL(`../../idnode.v1.${service}Service/${method}`, import.meta.url);
  return call(url, posted(request, { "Connect-Timeout-Ms": answerLimit - 5000 }));
});

// known asks for what the node itself knows, which takes no quorum.
export const known = { consistency: "CONSISTENCY_STALE" };

// download returns a file. The node bounds each piece of it, and breaks off one that is
// not whole.
export async function download(path, body) {
  let answer, content;
  try {
    answer = await fetch(new URL(path, base), { ...always, ...posted(body) });
    content = answer.ok ? await answer.blob() : await answer.json();
  } catch {
    throw new Failure("", "The file broke off: the node or the connection was lost, or it was stopped.");
  }
  if (!answer.ok) {
    throw refusal(content);
  }
  return content;
}

function sentence(text) {
  const first = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}

// get reads, within a time in milliseconds; parameters that are empty are left out.
export function get(path, parameters = {}, within = answerLimit) {
  const url = new URL(path, base);
  for (const [key, value] of Object.entries(parameters)) {
    if (value) {
      url.searchParams.set(key, value);
    }
  }
  return call(url, {}, within, false);
}

// unsure has the request ids of changes of unknown outcome: the same change again
// carries the same id, and counts once.
const unsure = new Map();

// change calls a method of IdsService that goes through the cluster, and counts once.
export async function change(method, request) {
  const key = method + JSON.stringify(request);
  const id = unsure.get(key) ?? newID();
  unsure.delete(key);
  try {
    return await ofIds(method, { ...request, requestId: { id } });
  } catch (failure) {
    if (failure.unknown) {
      unsure.set(key, id);
      failure.once = true;
    }
    throw failure;
  }
}

function newID() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return "page-" + Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}
