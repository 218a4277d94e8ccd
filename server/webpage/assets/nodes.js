// All nodes side by side, as they were at one moment, and what an operator does with
// one of them.

import { Failure, get, ofCluster } from "./api.js";
import { copyButton } from "./copy.js";
import { ask, say } from "./dialog.js";
import { button, el, field, keyed, write } from "./dom.js";
import { hold, judged, obstacle } from "./gate.js";
import { before } from "./live.js";
import { heads } from "./sort.js";
import { duration, elapsed, entries, number, rate, size } from "./text.js";

// slow is when the time of a commit or of a write is marked, in microseconds, as by the
// alarms; soon is when the days of a certificate are.
const slow = { commit: 250_000, write: 100_000 };
const soon = 14;

// daysLeft are the whole days until a member's certificate expires.
const daysLeft = (m) => m.certificateExpiresAt && Math.floor((Date.parse(m.certificateExpiresAt) - Date.now()) / 86_400_000);
const figure = (m, of) => m.figures ? of(m.figures) : undefined;

// columns are those between the node's name and the buttons: what is shown, the line
// below it, whether it is to be marked, and what it is sorted by.
const columns = [
  {
    head: "State", key: "state", value: (m) => m.reachable ? m.behind : Infinity,
    show: (m, o) => state(m, o),
  },
  {
    head: "Ids/s", key: "ids", number: true, value: (m) => figure(m, (f) => f.ids_per_second),
    show: (m, o) => ({
      text: o.issued ? figure(m, (f) => rate(f.ids_per_second)) : "–", note: figure(m, (f) => f.identities_per_second && `${rate(f.identities_per_second)} identity`),
    }),
  },
  {
    head: "Commit p99", key: "commit", number: true, value: (m) => figure(m, (f) => f.commit_p99_micros),
    show: (m) => ({ text: figure(m, (f) => f.commit_p99_micros && duration(f.commit_p99_micros)), mark: figure(m, (f) => f.commit_p99_micros > slow.commit) }),
  },
  {
    head: "Disk", key: "disk", number: true, value: (m) => figure(m, (f) => f.free_bytes),
    show: (m) => ({
      text: m.storageFull ? "nearly full" : figure(m, (f) => f.free_bytes && `${size(f.free_bytes)} free`),
      note: figure(m, (f) => f.write_p99_micros && `write\u00a0p99 ${duration(f.write_p99_micros)}`),
      mark: m.storageFull || figure(m, (f) => f.write_p99_micros > slow.write),
    }),
  },
  {
    head: "Certificate", key: "certificate", number: true, value: (m) => daysLeft(m) ?? Infinity,
    show: (m) => daysLeft(m) === undefined ? {} : {
      text: `${number(daysLeft(m))} days`, mark: daysLeft(m) < soon,
      note: (m.callers ?? []).length > 1 && m.callers.map(({ ca, connections }) => `${number(connections)} callers by ${ca}`).join("; "),
    },
  },
];

// nodes shows the members.
export function nodes() {
  const body = el("tbody");
  const show = keyed(body, row);
  let order = { key: "tag", descending: false };
  let newest;
  const head = heads([
    { head: "Node", key: "tag" }, ...columns.map((c) => ({ head: c.head, key: c.key, class: c.number && "number" })),
    { head: "What to do", unseen: true, class: "do" },
  ], (key, descending) => {
    order = { key, descending };
    update(newest);
  });
  const moment = el("p", { class: "hint moment" });
  const places = el("tbody");
  const showPlaces = keyed(places, place);
  const element = el(
    "div", {},
    el("section", { class: "card list" }, el("table", { class: "nodes" }, el("caption", { class: "unseen" }, "All nodes"), head, body), moment),
    el(
      "details", { class: "card places" }, el("summary", {}, "Addresses and ids"),
      el("table", { class: "rows", "aria-label": "Addresses and ids" }, heads(["Node", "gRPC", "HTTP", "Raft", "Id"].map((head) => ({ head }))), places),
    ),
  );
  function update(o) {
    newest = o;
    const sorted = arranged(o.members, order);
    show(sorted.map((m) => [m, o]), ([m]) => m.id);
    showPlaces(sorted, (m) => m.id);
    const at = new Date(Date.now() - (o.millis - o.taken_millis)).toLocaleTimeString("en-GB");
    write(moment, `All nodes as they were at ${at}; rates and p99 over the 10 seconds before. “–” is not known: no answer, or nothing to measure.`);
  }
  return { element, update };
}

// arranged sorts members; those without a value come last.
function arranged(members, { key, descending }) {
  const value = columns.find((column) => column.key === key)?.value;
  const sorted = members.toSorted(value ? (a, b) => {
    const [x, y] = [value(a), value(b)];
    return x === y ? 0 : x === undefined ? (descending ? -1 : 1) : y === undefined ? (descending ? 1 : -1) : x - y;
  } : () => 0);
  return descending ? sorted.reverse() : sorted;
}

function row() {
  const tag = el("span", { class: "tag" });
  const link = el("a", { class: "node" }, tag);
  const role = el("strong", { class: "role" });
  const detail = el("span", { class: "hint" });
  const cells = columns.map((column) => {
    const text = el("span");
    const note = el("span", { class: "hint" });
    return { text, note, element: el("td", { class: column.number && "number", "data-head": column.head, "data-column": column.key }, text, note) };
  });
  let m;
  const lead = button("Make leader", () => transferLeadership(m), { class: "lead-to" });
  const vote = button("", () => changeVote(m), { class: "vote" });
  const remove = button("Remove", () => removal(m), { class: "danger quiet remove" });
  const element = el(
    "tr", { class: "member" },
    el("th", { scope: "row" }, link, el("span", {}, role, detail)), ...cells.map((cell) => cell.element),
    el("td", { class: "do" }, lead, vote, remove),
  );
  const update = ([now, o]) => {
    m = now;
    element.dataset.tag = m.tag;
    element.classList.toggle("leader", m.role === "leader");
    write(tag, m.tag);
    name(link, m);
    write(role, m.role);
    write(detail, [m.self && "this node", m.version].filter(Boolean).join(" · "));
    cells.forEach((cell, i) => {
      const { text, note, mark, kind } = columns[i].show(m, o);
      write(cell.text, text || "–");
      write(cell.note, note || "");
      cell.text.className = kind ? `state ${kind}` : mark ? "mark" : "";
    });
    lead.hidden = m.role === "leader";
    write(vote, m.role === "watcher" ? "Promote" : "Demote");
    for (const [what, does, why] of [[lead, "Make leader:", m.no_transfer], [vote, vote.textContent, m.no_vote_change], [remove, "Remove", m.no_removal]]) {
      what.setAttribute("aria-label", `${does} ${m.tag}`);
      hold(what, obstacle([], { writes: false }) || why);
    }
  };
  return { element, update };
}

// name makes a link to the member's own page of its tag.
function name(link, m) {
  if (m.self || !m.httpAddress) {
    link.removeAttribute("href");
    link.removeAttribute("aria-label");
    link.title = m.self ? "" : "It has no HTTP port.";
    return;
  }
  link.href = pageOf(m);
  link.title = `The page of node ${m.tag}`;
  link.setAttribute("aria-label", link.title);
}

// pageOf is the address of a member's own page.
export function pageOf(m) {
  return `${location.protocol}//${m.httpAddress}/`;
}

// state says how a member is, in a kind and in words. Members hear of a commit one
// after the other: one that is as far as the furthest was a round before is up to date.
function state(m, o) {
  if (!m.reachable) {
    return { kind: "bad", text: "no answer", note: m.silentMillis ? `for ${elapsed(m.silentMillis)}` : "" };
  }
  if (m.self && !o.hasQuorum) {
    return { kind: "bad", text: "cut off" };
  }
  const late = m.behind && m.appliedIndex < (before() ?? Infinity);
  return { kind: late ? "late" : "good", text: late ? "behind" : "up to date", note: `${entries(m.behind)} behind` };
}

function place() {
  const tag = el("span", { class: "tag" });
  const cells = ["gRPC", "HTTP", "Raft", "Id"].map((head) => {
    const text = el("span");
    const copy = copyButton(head, () => text.textContent);
    return { text, copy, element: el("td", { "data-head": head }, text, copy) };
  });
  const element = el("tr", {}, el("th", { scope: "row" }, tag), ...cells.map((cell) => cell.element));
  const update = (m) => {
    element.dataset.tag = m.tag;
    write(tag, m.tag);
    [m.grpcAddress, m.httpAddress, m.raftAddress, m.id].forEach((text, i) => {
      write(cells[i].text, text);
      cells[i].copy.hidden = !text;
      cells[i].copy.setAttribute("aria-label", `Copy ${cells[i].element.dataset.head} of ${m.tag}`);
    });
  };
  return { element, update };
}

function transferLeadership(m) {
  ask({
    title: `Make ${m.tag} the leader?`, does: `Transfer to ${m.tag}`,
    content: [el("p", {}, "Calls wait for a moment while it takes over; none is lost.")],
    act: async () => {
      const { leaderTag } = await ofCluster("TransferLeadership", { tag: m.tag });
      say(`${leaderTag} leads.`);
    },
  });
}

// changeVote lets a watcher vote, or makes a voter one.
function changeVote(m) {
  const watcher = m.role !== "watcher";
  ask({
    title: watcher ? `Demote ${m.tag} to a watcher?` : `Promote ${m.tag} to a voter?`, does: watcher ? `Demote ${m.tag}` : `Promote ${m.tag}`,
    content: [el("p", {}, watcher
      ? `It keeps all data and answers callers, but neither votes nor leads.${m.role === "leader" ? " It transfers leadership first." : ""} One voter fewer may make fewer failures tolerable.`
      : "It votes once it has caught up, and may lead. Of four voters one may fail, as of three; of five two.")],
    act: async () => {
      await ofCluster("SetWatcher", { tag: m.tag, watcher });
      say(watcher ? `${m.tag} is a watcher.` : `${m.tag} votes once it has caught up.`);
    },
  });
}

// removal asks for the tag to be typed: it cannot be taken back.
function removal(m) {
  const tag = field(`Type ${m.tag} to remove it`, { maxlength: "4" });
  const submit = ask({
    title: `Remove member ${m.tag}?`, does: "Remove for good", danger: true,
    content: [
      el("p", {}, `It has not answered for ${elapsed(m.silentMillis)}. Its tag is never given again, and its data directory is worth nothing any more: ` +
        "a node in its place joins under a new tag. A member that will be back needs nothing done."),
      tag.element,
    ],
    act: async (closed) => {
      const { status: { members } } = await get("overview");
      closed.throwIfAborted();
      if (members.some(({ tag, reachable }) => tag === m.tag && reachable)) {
        throw new Failure("INVALID_REQUEST", `Member ${m.tag} answers; the page removes only what is gone.`, { field: "tag" });
      }
      await ofCluster("RemoveMember", { tag: m.tag });
      say(`Member ${m.tag} is removed.`);
    },
  });
  judged(submit, [tag.input], () => tag.input.value.trim().toUpperCase() === m.tag ? "" : `Type ${m.tag} first.`);
}
