// The view of HiLo counters: the list, and raising one.

import { Failure, change, known, ofIds } from "./api.js";
import { ask, say } from "./dialog.js";
import { el, field, write, wrong } from "./dom.js";
import { hold, watched } from "./gate.js";
import { list } from "./list.js";
import { integer, number } from "./text.js";

export function hilos(database) {
  const all = list({
    call: (query) => ofIds("ListHiLo", query), database, items: ({ hilos }) => hilos.map(({ tag, max }) => ({ name: tag, max })), noun: "Tag", label: `HiLo counters of the database ${database}`,
    columns: [{ head: "Max", key: "max", text: (item) => number(item.max) }],
    actions: [{ text: "Raise", needs: ["seed"], run: (item) => raise(database, item, all.refresh) }],
    tools: [{ text: "Start a counter", needs: ["seed"], run: () => raise(database, undefined, all.refresh) }],
    empty: "No HiLo counter yet. The first comes with the first range.",
    lead: "Max is the highest number that was reserved for a client; the next range begins above it.",
  });
  return all;
}

// raise sets a higher Max, if no other caller is faster. A new tag begins at 0.
function raise(database, counter, done) {
  const tag = field("Tag", { value: counter?.name ?? "", required: true });
  const max = field("Max", { inputmode: "numeric", value: counter?.max ?? "", required: true });
  const warning = el("p", { class: "warning", role: "status", hidden: true });
  let current = BigInt(counter?.max ?? "0");
  let looked = 0;

  function judge() {
    const wanted = integer(max.input.value);
    const lower = wanted !== undefined && wanted < current;
    wrong(max.input, lower || Boolean(max.input.value) && wanted === undefined);
    warning.hidden = !lower;
    write(warning, lower
      ? `${number(String(wanted))} is lower than the present value, ${number(String(current))}. A HiLo counter only rises: ranges above it are in use.`
      : "");
    write(max.hint, wanted === undefined ? (max.input.value ? "A whole number, below 2^63." : "") : lower ? "" : `The next range will begin at ${number(String(wanted + 1n))}.`);
    hold(submit, !tag.input.value ? "Name the tag first." : wanted === undefined ? "Give it a value first." : lower ? "A HiLo counter only rises." : "");
    return !submit.hasAttribute("aria-disabled");
  }

  async function find() {
    const mine = ++looked;
    let found = 0n;
    try {
      found = tag.input.value ? await valueOf({ database, tag: tag.input.value, ...known }) : 0n;
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
    content: [counter ? el("p", {}, `Its Max is ${number(counter.max)}.`) : tag.element, max.element, warning],
    act: async (closed) => {
      // Ranges may have been given out since; only a lower value would be wrong then.
      const name = counter?.name ?? tag.input.value; // An input drops line ends.
      current = await valueOf({ database, tag: name });
      closed.throwIfAborted();
      if (!judge()) {
        throw new Failure("", "Its value has changed meanwhile.");
      }
      const answer = await change("SetHiLo", {
        database, tag: name, max: String(integer(max.input.value)), expected: String(current),
      });
      say(`${name} is at ${number(answer.max)}.`);
      done();
    },
  });
  if (!counter) {
    tag.input.addEventListener("input", find);
  }
  counter && max.input.select(); // Else the tag comes first.
  watched([tag.input, max.input], judge);
}

// valueOf is a counter's Max; 0 for one that does not exist.
async function valueOf(request) {
  try {
    return BigInt((await ofIds("GetHiLo", request)).hilo.max);
  } catch (failure) {
    if (failure.reason === "HILO_NOT_FOUND") {
      return 0n;
    }
    throw failure;
  }
}
