// The view of the cluster: its members, the rates of this node, and how much
// there is.

import { chart } from "./chart.js";
import { el, keyed, write } from "./dom.js";
import { entries, number, size, span } from "./text.js";

const strategies = [
  ["identity", "Identities", "agreed by the cluster"],
  ["hilo", "HiLo", "numbers of ranges"],
  ["server_side", "Server-side ids", "etags of this node"],
  ["guid", "GUIDs", "random"],
  ["semantic", "Semantic ids", "as given, or claimed"],
];

const words = {
  leader: "votes", follower: "votes", joining: "will vote once it has caught up", watcher: "never votes",
};

export function overview() {
  const facts = figures(["Quorum", "Leader", "Term", "Log"]);
  const counts = figures(["Identities", "HiLo counters", "Claims", "Databases", "Request ids kept", "Size of names"]);
  const members = el("ul", { class: "members", "aria-label": "Members" });
  const show = keyed(members, card);
  const charts = strategies.map((strategy) => chart(...strategy));
  const element = el(
    "div", {},
    facts.element, members,
    el("h2", {}, "Ids handed out by this node"),
    el("p", { class: "lead" }, "Over the last two minutes, and in all since it was started; every database together."),
    el("ul", { class: "rates" }, ...charts.map((c) => c.element)),
    el("h2", {}, "In the replicated state"), counts.element,
  );
  const update = ({ overview: o, samples }) => {
    facts.update([
      [o.has_quorum ? `${o.reachable} of ${o.voters} voters` : "missing", o.voters ? `${o.quorum} needed` : "no cluster yet"],
      [o.leader || "none", o.leader === o.self.tag ? "this node" : o.leader && `heard ${span(o.last_contact_millis)} ago`],
      [number(o.term), ""],
      [number(o.commit_index), "entries committed"],
    ]);
    show(o.members.map((member) => [member, o, samples.at(-2)?.furthest]), ([member]) => member.id);
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

function card() {
  const tag = el("span", { class: "tag" });
  const role = el("h3");
  const state = el("p", { class: "state" });
  const detail = el("p", { class: "hint" });
  const facts = ["gRPC", "HTTP", "Raft", "Log"].map((name) => {
    const value = el("dd");
    return { value, element: el("div", {}, el("dt", {}, name), value) };
  });
  const element = el(
    "li", { class: "card member" },
    el("div", { class: "head" }, tag, el("div", {}, role, detail), state),
    el("dl", { class: "facts" }, ...facts.map((fact) => fact.element)),
  );
  const update = ([m, o, before]) => {
    element.dataset.tag = m.tag;
    element.classList.toggle("leader", m.role === "leader");
    write(tag, m.tag);
    write(role, m.role);
    write(detail, m.self ? "this node" : words[m.role] ?? "");
    const [kind, text] = reach(m, o, before);
    state.className = `state ${kind}`;
    write(state, text);
    [m.grpc, m.http, m.raft, m.reachable ? number(m.applied_index) : ""].forEach((value, i) => {
      write(facts[i].value, value);
      facts[i].element.hidden = !value;
    });
  };
  return { element, update };
}

// reach says how a member is, in a kind and in words. While the log grows, pings
// are always a little old: a member that is as far as the furthest was a second
// before is up to date.
function reach(m, o, before) {
  if (!m.reachable) {
    return ["bad", "no answer"];
  }
  if (m.self && !o.has_quorum) {
    return ["bad", "cut off"];
  }
  return m.behind && m.applied_index < (before ?? Infinity) ? ["late", `${entries(m.behind)} behind`] : ["good", "up to date"];
}
