// The calls to the node. Every one ends within a bound, and an error says whether
// its outcome is known.

const base = new URL("../api/", import.meta.url);

// patience is above what the node allows itself for a call.
const patience = 15_000;

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

async function call(url, options, within = patience) {
  let answer, body;
  try {
    answer = await fetch(url, { ...always, ...options, signal: AbortSignal.timeout(within) });
    body = await answer.json();
  } catch {
    throw new Failure("UNREACHED", "This node does not answer.", { unreached: true, unknown: true });
  }
  if (!answer.ok) {
    throw refusal(body);
  }
  return body;
}

const always = { cache: "no-store", redirect: "error" };

function refusal(body) {
  return new Failure(body.reason, sentence(body.message), { unknown: body.reason === "OUTCOME_UNKNOWN", field: body.field });
}

// posted is a call with a body.
function posted(body) {
  return { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
}

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
export function get(path, parameters = {}, within = patience) {
  const url = new URL(path, base);
  for (const [key, value] of Object.entries(parameters)) {
    if (value) {
      url.searchParams.set(key, value);
    }
  }
  return call(url, {}, within);
}

// unsure has the request ids of changes of unknown outcome: the same change again
// carries the same id, and counts once.
const unsure = new Map();

// change changes something. What goes through the cluster counts once.
export async function change(path, body, { once = true } = {}) {
  const key = path + JSON.stringify(body);
  const id = unsure.get(key) ?? newID();
  unsure.delete(key);
  try {
    return await call(new URL(path, base), posted({ ...body, request_id: id }));
  } catch (failure) {
    if (failure.unknown && once) {
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
