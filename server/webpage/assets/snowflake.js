// The view of pools of workers, which make Snowflake ids: the list, defining one, its workers, and an
// id of it.

import { known, ofSnowflake } from "./api.js";
import { ask, say } from "./dialog.js";
import { choice, el, field } from "./dom.js";
import { judged } from "./gate.js";
import { list } from "./list.js";
import { heads } from "./sort.js";
import { dated, number } from "./text.js";

// most is how many workers a dialog shows.
const most = 100;

export function pools(database) {
  const all = list({
    call: (query) => ofSnowflake("ListPools", query), database, items: ({ pools }) => pools, noun: "Pool", label: `Pools of the database ${database}`,
    columns: [
      { head: "In use", key: "inUse", text: (item) => number(item.inUse) },
      { head: "Workers", key: "workers", text: (item) => number(item.workers) },
    ],
    actions: [
      { text: "Make an id", needs: ["ranges"], run: (item) => next(database, item.name) },
      { text: "Workers", needs: [], reads: true, run: (item) => workers(database, item.name) },
    ],
    tools: [{ text: "Define a pool", needs: ["seed"], run: () => define(database, all.refresh) }],
    empty: "No pool yet. Programs that make Snowflake ids lease the workers of one.",
    lead: "Workers make 64-bit ids that sort by time. Each is leased for a window of time, and the windows of one worker never overlap.",
  });
  return all;
}

async function next(database, pool) {
  try {
    const { ids } = await ofSnowflake("NextSnowflakes", { database, pool });
    say(`${pool}: ${ids[0]}`);
  } catch (failure) {
    say(failure.message);
  }
}

async function workers(database, pool) {
  let shown;
  try {
    shown = (await ofSnowflake("ListWorkers", { database, pool, pageSize: most, ...known })).workers;
  } catch (failure) {
    say(failure.message);
    return;
  }
  const lines = shown.map((w) => el("tr", {}, el("td", {}, String(w.worker)), el("td", {}, w.free ? "free" : dated(Date.parse(w.until))), el("td", { class: "id" }, w.holder)));
  const head = heads(["Worker", "Window ends", "Holder"].map((head) => ({ head })));
  ask({
    title: `Workers of ${pool}`,
    content: [lines.length ? el("table", { "aria-label": `Workers of ${pool}` }, head, el("tbody", {}, ...lines)) : el("p", {}, "No worker was leased yet.")],
  });
}

function define(database, done) {
  const name = field("Name", { required: true, maxlength: "2000" });
  const layout = choice("Layout", [
    ["twitter", "Twitter: 41 bits of milliseconds, 10 of the worker, 12 of the sequence"],
    ["sonyflake-bits", "The bits of Sonyflake: 39 of 10 ms, 16 of the worker, 8"],
    ["instagram", "Instagram: 40 bits of milliseconds, 13, 10"],
    ["javascript", "JavaScript, 53 bits: 38 bits of 10 ms, 7, 8"],
  ], "twitter");
  const submit = ask({
    title: "Define a pool", does: "Define", content: [name.element, layout.element, el("p", {}, "The layout of a pool stays.")],
    act: async () => {
      await ofSnowflake("DefinePool", { database, name: name.input.value, layoutName: layout.input.value });
      say(`${name.input.value} is defined.`);
      done();
    },
  });
  judged(submit, [name.input], () => name.input.value ? "" : "Name the pool first.");
}
