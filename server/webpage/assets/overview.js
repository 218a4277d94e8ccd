// The view of the cluster: its nodes, the rates of this one, and how much there is.

import { chart } from "./chart.js";
import { el, write } from "./dom.js";
import { nodes } from "./nodes.js";
import { elapsed, number, size } from "./text.js";

const strategies = [
  ["identity", "Identities", "agreed by the cluster"],
  ["hilo", "HiLo", "numbers of ranges"],
  ["server_side", "Server-side ids", "etags of this node"],
  ["guid", "GUIDs", "random"],
  ["semantic", "Semantic ids", "as given, or claimed"],
];

export function overview() {
  const facts = figures(["Alarms", "Quorum", "Leader", "Term", "Log", "HiLo reserve"]);
  const counts = figures(["Identities", "HiLo counters", "Claims", "Databases", "Request ids kept", "Size of names"]);
  const all = nodes();
  const charts = strategies.map((strategy) => chart(...strategy));
  const element = el(
    "div", {},
    facts.element, el("h2", {}, "Nodes"), all.element,
    el("h2", {}, "Ids handed out by this node"),
    el("p", { class: "lead" }, "Over the last two minutes, and in all since it was started; every database together."),
    el("ul", { class: "rates" }, ...charts.map((c) => c.element)),
    el("h2", {}, "In the replicated state"), counts.element,
  );
  const update = ({ overview: o, samples }) => {
    facts.update([
      [o.alarms.length || "none", o.alarms.length ? "open, see above" : "that this node knows of"],
      [o.has_quorum ? `${o.reachable} of ${o.voters} voters` : "missing", o.voters ? `${o.quorum} needed` : "no cluster yet"],
      [o.leader || "none", o.leader === o.self.tag ? "this node" : o.leader && `heard ${elapsed(o.last_contact_millis)} ago`],
      [number(o.term), ""],
      [number(o.furthest_index), "entries applied"],
      o.reserve ? [number(o.reserve.numbers), o.reserve.tags ? `of this node, for ${elapsed(o.reserve.lasts_millis)}` : "no tag in steady use"] : ["none", "this node keeps none"],
    ]);
    all.update(o);
    charts.forEach((c) => c.update(samples));
    counts.update([
      [number(o.counts.identities), o.counts.hidden_identities ? `and ${number(o.counts.hidden_identities)} deleted` : ""],
      [number(o.counts.hilos), ""], [number(o.counts.claims), ""], [number(o.counts.databases), ""],
      [number(o.counts.request_ids), ""], [size(o.counts.name_bytes), ""],
    ]);
  };
  return { element, update };
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
