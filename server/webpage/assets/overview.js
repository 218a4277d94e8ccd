// The view of the cluster: its nodes, what this one did, and how much there is.

import { chart } from "./chart.js";
import { button, code, el, keyed, write } from "./dom.js";
import { live } from "./live.js";
import { nodes } from "./nodes.js";
import { follow } from "./past.js";
import { address } from "./place.js";
import { heads } from "./sort.js";
import { about, duration, elapsed, millis, number, rate, size } from "./text.js";

const strategies = [
  ["identity", "Identities", "agreed by the cluster"],
  ["hilo", "HiLo", "numbers of ranges"],
  ["server_side", "Server-side ids", "etags of this node"],
  ["guid", "GUIDs", "random"],
  ["semantic", "Semantic ids", "as given, or claimed"],
  ["series", "Document numbers", "of series"],
];

// views are where the names of each kind are.
const views = { identity: "identities", hilo: "hilo", series: "series", "server-side": "etags" };
// shortest is how much time a chart shows at least, and soon how much the live ones do at most.
const shortest = 30_000;
const soon = 120_000;

// past is what the charts show: two hours, or two minutes; it stays while the page is open.
let past = true;

export function overview() {
  const facts = figures(["Alarms", "Quorum", "Leader", "Term", "Log", "HiLo reserve"]);
  const begin = el(
    "section", { class: "card begin", hidden: true }, el("h2", {}, "No id yet"),
    el("p", {}, el("a", { href: address("make") }, "Make your first id"), ", or ask for one: ", code("idnode next 'users|'"), "."),
  );
  const counts = figures(["Identities", "HiLo counters", "Claims", "Series", "Databases", "Request ids kept", "Size of names"]);
  const state = el("section", {}, el("h2", {}, "In the replicated state"), counts.element);
  const all = nodes();
  const charts = strategies.map(([key, title, note]) => chart({ key, title, note, unit: "ids/s", text: rate }));
  const commits = chart({ key: "commit", title: "Commit p99", note: "of this node's calls", unit: "", text: (micros) => micros ? duration(micros) : "–" });
  const periods = [[true, "2 hours"], [false, "2 minutes"]].map(([value, text]) => button(text, () => {
    past = value;
    draw();
  }, { "data-past": String(value) }));
  const since = el("span");
  const legend = el("p", { class: "hint" }, since, " A dashed line", el("span", { class: "line-of" }), "marks a change of leader, a whole one",
    el("span", { class: "line-of alarm" }), "an alarm.");
  const body = el("tbody");
  const rows = keyed(body, busyRow);
  const table = el(
    "table", { class: "rows busiest" }, el("caption", { class: "unseen" }, "Busiest names"),
    heads([{ head: "Name" }, { head: "Kind" }, { head: "Database" }, { head: "Ids/s", class: "number" }]), body,
  );
  const none = el("p", { class: "note" }, "No name that you may read was in use, or none stands out.");
  const element = el(
    "div", {},
    facts.element, begin, el("h2", {}, "Nodes"), all.element,
    el("div", { class: "titled" }, el("h2", {}, "What this node did"), el("div", { class: "periods", role: "group", "aria-label": "Time that the charts show" }, ...periods)),
    legend, el("ul", { class: "rates" }, ...charts.map((c) => c.element), commits.element),
    el("h2", {}, "Busiest names"), el("p", { class: "hint" }, "At this node, over the last one to two minutes."),
    el("section", { class: "card list" }, table, none),
    state,
  );
  // memory is what the node remembers, at the viewer's time.
  let memory;
  function draw() {
    const { overview: o, samples } = live;
    periods.forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.past === String(past))));
    if (!o || !samples.length) {
      return;
    }
    const began = Date.now() - o.millis;
    const events = (memory?.events ?? []).filter(({ kind }) => ["leader", "alarm", "paused"].includes(kind)).map((e) => ({ ...e, at: e.millis }));
    const shown = past && memory ? remembered(memory) : lately(samples);
    const to = Math.max(o.millis, memory?.millis ?? 0);
    const from = Math.min(to - shortest, Math.max(shown.first, to - (past ? 7_200_000 : soon)));
    const now = lately(samples);
    charts.forEach((c, i) => {
      c.element.hidden = !o.issued;
      if (!o.issued) {
        return;
      }
      const key = strategies[i][0];
      c.update({
        points: shown.of(key), from, to, step: shown.step, each: shown.each, events, began,
        newest: now.of(key).at(-1)?.value, sum: `${about(o.issued[key] ?? 0)} in all`,
      });
    });
    commits.update({ points: shown.of("commit").filter(({ value }) => value), from, to, step: shown.step, each: shown.each, events, began, newest: now.of("commit").at(-1)?.value });
    write(since, `${o.issued ? "Of all databases together. " : ""}The node remembers two hours, or since it was started ${elapsed(o.millis)} ago.`);
  }
  const close = follow((answer) => {
    memory = answer;
    rows(answer.busiest, (b) => JSON.stringify([b.kind, b.database, b.name]));
    table.hidden = !answer.busiest.length;
    none.hidden = !table.hidden;
    draw();
  });
  table.hidden = true;
  const update = ({ overview: o }) => {
    facts.update([
      [o.alarms.length || "none", o.alarms.length ? "open, see above" : "that this node knows of"],
      [o.hasQuorum ? `${o.reachable} of ${o.voters} voters` : "missing", o.voters ? `${o.quorum} needed` : "no cluster yet"],
      [o.leaderTag || "none", o.leaderTag === o.self.tag ? "this node" : o.leaderTag && `heard ${elapsed(millis(o.lastContact))} ago`],
      [number(o.term), ""],
      [number(o.furthest_index), "entries applied"],
      o.reserve ? [number(o.reserve.Numbers), o.reserve.Tags ? `of this node, for ${elapsed(o.reserve.Lasts / 1e6)}` : "no tag in steady use"] : o.counts ? ["none", "this node keeps none"] : ["–", ""],
    ]);
    begin.hidden = !o.hasQuorum || !o.counts || ["identities", "deletedIdentities", "hilos", "claims", "series", "databases"].some((kind) => o.counts[kind] !== "0");
    all.update(o);
    draw();
    state.hidden = !o.counts;
    if (state.hidden) {
      return; // They are of all databases, which this viewer may not read.
    }
    counts.update([
      [number(o.counts.identities), o.counts.deletedIdentities === "0" ? "" : `and ${number(o.counts.deletedIdentities)} deleted`],
      [number(o.counts.hilos), ""], [number(o.counts.claims), ""],
      [number(o.counts.series), o.counts.seriesKeys === "0" ? "" : `with ${number(o.counts.seriesKeys)} keys`], [number(o.counts.databases), ""],
      [number(o.counts.requestIds), ""], [size(o.counts.bytes), ""],
    ]);
  };
  return { element, update, close };
}

// remembered are the points of what the node remembers.
function remembered({ samples, every_millis: every, strategies }) {
  const value = (sample, key) => key === "commit" ? sample.commit_p99_micros : sample.ids_per_second[strategies.indexOf(key)];
  return {
    first: (samples[0]?.millis ?? Infinity) - every, step: 2 * every, each: every,
    of: (key) => samples.map((sample) => ({ at: sample.millis, value: value(sample, key) })),
  };
}

// lately are the points of what the page has seen, between each two samples.
function lately(samples) {
  const between = (key, a, b) => key === "commit" ? b.commit : ((b.issued[key] ?? 0) - (a.issued[key] ?? 0)) / (b.millis - a.millis) * 1000;
  return {
    first: samples[0].millis, step: 5000, each: 1000,
    of: (key) => samples.slice(1).map((sample, i) => ({ at: sample.millis, value: between(key, samples[i], sample) })).filter(({ value }) => Number.isFinite(value)),
  };
}

function busyRow({ kind, database, name }) {
  const cell = el("td", { class: "number", "data-head": "Ids/s" });
  const element = el(
    "tr", { "data-name": name }, el("th", { scope: "row" }, el("a", { href: address(views[kind], database) }, name)),
    el("td", { "data-head": "Kind" }, kind), el("td", { "data-head": "Database" }, database), cell,
  );
  return { element, update: (now) => write(cell, rate(now.ids_per_second)) };
}

// figures is a row of numbers with their names.
function figures(names) {
  const cells = names.map((name) => {
    const value = el("dd", { class: "value" });
    const note = el("dd", { class: "hint" });
    return { value, note, element: el("div", {}, el("dt", {}, name), value, note) };
  });
  return {
    element: el("dl", { class: "figures card" }, ...cells.map((cell) => cell.element)),
    update: (values) => values.forEach(([value, note], i) => {
      write(cells[i].value, String(value));
      write(cells[i].note, note || "");
    }),
  };
}
