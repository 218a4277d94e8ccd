// The view of what happened: the events that this node remembers, and its audit log.

import { get } from "./api.js";
import { explain } from "./dialog.js";
import { el, keyed, write } from "./dom.js";
import { repeat } from "./live.js";
import { follow, told } from "./past.js";
import { heads } from "./sort.js";
import { dated } from "./text.js";

const pause = 10_000;

export function events() {
  const seen = lines("What this node saw", "In its last two hours and before, as far as it remembers: the newest 250, of this process only.", ["Time", "Event"]);
  const audit = lines("Audit log of this node", "Who changed what through this node: the newest lines of its file.", ["Time", "Who", "What", "On", "Outcome", "Change"]);
  const element = el("div", { class: "operate" }, seen.element, audit.element);
  const close = follow(({ events, millis }) => {
    const began = Date.now() - millis;
    seen.show(events.toReversed().map((e) => [
      `${e.millis} ${e.kind} ${e.text}`, [dated(began + e.millis), el("span", { class: e.kind === "alarm" ? `state ${e.critical ? "bad" : "late"}` : "" }, told(e))],
    ]), "Nothing yet.");
  });
  let stop;
  const look = async (over) => {
    let lines, failure;
    try {
      ({ lines } = await get("audit"));
    } catch (error) {
      failure = error;
    }
    if (over() || failure?.unreached) {
      return;
    }
    audit.show((lines ?? []).filter(ended).reverse().map((line) => [`${line.seq} ${line.hash}`, recorded(line)]),
      failure ? explain(failure) : lines ? "Nothing is recorded yet." : "This node keeps no audit log: its setting audit names no file.");
  };
  // A call without the right would be a line in the log each time.
  const update = ({ overview: o }) => {
    if (!o.you.cluster.split(",").includes("cluster")) {
      stop?.();
      stop = undefined;
      audit.show([], "You have no right to read it: it takes the right cluster.");
    } else {
      stop ??= repeat(look, pause);
    }
  };
  return {
    element, update,
    close: () => {
      close();
      stop?.();
    },
  };
}

// lines is a table whose rows have keys.
function lines(title, about, names) {
  const body = el("tbody");
  const rows = keyed(body, ([, cells]) => ({
    element: el("tr", {}, ...cells.map((cell, i) => el("td", { "data-head": names[i] }, cell))), update: () => {},
  }));
  const table = el("table", { class: `rows lines${names.length}`, hidden: true }, el("caption", { class: "unseen" }, title), heads(names.map((head) => ({ head }))), body);
  const note = el("p", { class: "note", role: "status" });
  return {
    element: el("section", { class: "card list" }, el("div", { class: "head" }, el("div", {}, el("h2", {}, title), el("p", { class: "hint" }, about))), table, note),
    show: (all, empty) => {
      rows(all, ([key]) => key);
      table.hidden = !all.length;
      write(note, all.length ? "" : empty);
    },
  };
}

// ended leaves out the first line of a call that has another one with its outcome.
function ended(line, i, all) {
  return line.outcome !== "intended" || !all.slice(i + 1).some((later) =>
    later.outcome !== "intended" && ["event", "principal", "database", "name"].every((key) => later[key] === line[key]));
}

// recorded are the cells of a line.
function recorded(line) {
  const change = [line.before, line.after].filter((value) => value !== undefined).map((value) => typeof value === "string" ? value : JSON.stringify(value));
  return [
    dated(Date.parse(line.time)), line.principal || line.address || "–", line.call ? `${line.event}: ${line.call}` : line.event,
    [line.name, line.database && line.database !== "default" && `in ${line.database}`].filter(Boolean).join(" "),
    [line.outcome, line.reason].filter(Boolean).join(", "), cut(change.join(" → ")),
  ];
}

const cut = (text) => text.length > 200 ? `${text.slice(0, 200)}…` : text;
