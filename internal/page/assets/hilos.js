// The view of HiLo counters: the list, and raising one.

import { Failure, change, get } from "./api.js";
import { ask, say } from "./dialog.js";
import { button, el, field, write } from "./dom.js";
import { list } from "./list.js";
import { integer, number } from "./text.js";

export function hilos(database) {
  const all = list({
    path: "hilos", parameters: { database }, noun: "Tag", label: `HiLo counters of the database ${database}`,
    columns: [{ head: "Max", text: (item) => number(item.value) }],
    actions: (item) => [button("Raise", () => raise(database, item(), all.refresh), { "aria-label": `Raise ${item().name}` })],
    tools: [button("Start a counter", () => raise(database, undefined, () => all.refresh()), { class: "main" })],
    empty: "No HiLo counter yet. The first comes with the first range.",
  });
  return {
    element: el("div", {}, el("p", { class: "lead" }, "Max is the highest number that was reserved for a client; the next range begins above it."), all.element),
    close: all.close,
  };
}

// raise sets a higher Max, if nobody is faster. A new tag begins at 0.
function raise(database, counter, done) {
  const tag = field("Tag", { value: counter?.name ?? "", required: true });
  const max = field("Max", { inputmode: "numeric", value: counter?.value ?? "", required: true });
  const warning = el("p", { class: "warning", role: "status", hidden: true });
  let current = BigInt(counter?.value ?? "0");
  let looked = 0;

  function judge() {
    const wanted = integer(max.input.value);
    const lower = wanted !== undefined && wanted < current;
    warning.hidden = !lower;
    write(warning, lower
      ? `${number(String(wanted))} is lower than the present value, ${number(String(current))}. A HiLo counter only rises: ranges above it are in use.`
      : "");
    write(max.hint, wanted === undefined ? (max.input.value ? "A whole number, below 2^63." : "") : lower ? "" : `The next range will begin at ${number(String(wanted + 1n))}.`);
    submit.disabled = !tag.input.value || wanted === undefined || lower;
  }

  async function find() {
    const mine = ++looked;
    let found = 0n;
    try {
      found = tag.input.value ? await valueOf(database, tag.input.value) : 0n;
    } catch {
      // The tag is none, or the node is away; then the raise says so.
    }
    if (mine === looked) {
      current = found;
      write(tag.hint, current ? `Its Max is ${number(String(current))}.` : "");
      judge();
    }
  }

  const submit = ask({
    title: counter ? `Raise ${counter.name}` : "Start a HiLo counter", does: counter ? "Raise" : "Start",
    content: [counter ? el("p", {}, `Its Max is ${number(counter.value)}.`) : tag.element, max.element, warning],
    act: async () => {
      // Ranges may have been given out since; only a lower value would be wrong then.
      current = await valueOf(database, tag.input.value, true);
      judge();
      if (submit.disabled) {
        throw new Failure("", "Its value has changed meanwhile.");
      }
      const answer = await change("hilos/raise", {
        database, tag: tag.input.value, max: String(integer(max.input.value)), expected: String(current),
      });
      say(`${answer.name} is at ${number(answer.value)}.`);
      done();
    },
  });
  if (!counter) {
    tag.input.addEventListener("input", find);
  }
  for (const input of [tag.input, max.input]) {
    input.addEventListener("input", judge);
  }
  max.input.select();
  judge();
}

// valueOf is a counter's Max, as the cluster knows it if fresh; 0 for one that
// does not exist.
async function valueOf(database, name, fresh = false) {
  try {
    return BigInt((await get("hilo", { database, name, fresh: fresh && "true" })).value);
  } catch (failure) {
    if (failure.reason === "HILO_NOT_FOUND") {
      return 0n;
    }
    throw failure;
  }
}
