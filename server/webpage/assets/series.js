// The view of series of document numbers: the list, what their scopes have, and whose a
// number is.

import { known, ofSeries } from "./api.js";
import { ask, explain, say } from "./dialog.js";
import { el, field, write } from "./dom.js";
import { judged } from "./gate.js";
import { list } from "./list.js";
import { allot, rangeOf, withdraw } from "./seriesallot.js";
import { reconcile, resume, told } from "./seriesbooks.js";
import { define } from "./seriesdefine.js";
import { number } from "./text.js";

export function series(database) {
  const active = ({ suspended }) => suspended ? "" : "It is active: only a suspended series is resumed.";
  const all = list({
    call: (query) => ofSeries("ListSeries", query), database, items: (answer) => answer.series, noun: "Series", label: `Series of document numbers of the database ${database}`,
    columns: [
      { head: "Format", text: (item) => item.definition.format },
      { head: "Keys", key: "keys", text: (item) => number(item.keys) },
      { head: "State", text: (item) => item.suspended ? "suspended" : "active" },
    ],
    actions: [
      { text: "Numbers", needs: ["read"], reads: true, run: (item) => look(database, item) },
      { text: "Redefine", needs: ["read", "series"], run: (item) => readFirst(database, item, (series) => define(database, all.refresh, series)) },
      { text: "Allot", needs: ["series"], run: (item) => allot(database, item) },
      { text: "Withdraw", needs: ["read", "series"], run: (item) => withdraw(database, item) },
      { text: "Resume", needs: ["read", "series"], not: active, run: (item) => readFirst(database, item, (series) => resume(database, series, all.refresh)) },
      { text: "Unknown", needs: ["read", "series"], run: (item) => reconcile(database, item, all.refresh) },
      { text: "Delete", needs: ["read", "series"], class: "danger quiet", run: (item) => readFirst(database, item, (series) => remove(database, series, all.refresh)) },
    ],
    tools: [{ text: "Define a series", needs: ["series"], run: () => define(database, all.refresh) }],
    empty: "No series yet.",
    lead: "Each gives numbers without holes to the keys of documents. A suspended one gives none until somebody resumes it. Unknown numbers are those that a restore or a recovery left open.",
  });
  return all;
}

// readFirst opens a dialog on a series as the cluster knows it, or says why it cannot.
async function readFirst(database, { name }, open) {
  try {
    await open((await ofSeries("GetSeries", { database, name })).series);
  } catch (failure) {
    say(explain(failure));
  }
}

function remove(database, { name, version, keys }, done) {
  ask({
    title: `Delete ${name}?`, does: "Delete", danger: true,
    content: [el("p", {}, `It forgets ${keys === "1" ? "1 key" : `${number(keys)} keys`}, and what is open. Its name can begin another series. Once a number was confirmed or voided, a series stays.`)],
    act: async () => {
      await ofSeries("DeleteSeries", { database, name, expectedVersion: version });
      say(`${name} is deleted.`);
      done();
    },
  });
}

// look shows the scopes of a series, and finds a number, by what this node knows.
async function look(database, { name, definition }) {
  const rows = el("tbody");
  const scopes = el("table", { class: "scopes" }, el("caption", { class: "unseen" }, "Scopes"),
    el("thead", {}, el("tr", {}, ...["Scope", "Numbers", "Left"].map((head) => el("th", { scope: "col" }, head)))), rows);
  const note = el("p", { class: "hint", role: "status" });
  const of = field("Find a number", { maxlength: "128" }, "A document's key, or a number in the series' format.");
  const submit = ask({
    title: `Numbers of ${name}`, does: "Find",
    content: [el("p", { class: "id" }, definition.format), scopes, note, of.element],
    act: async () => say(told(await find(database, name, of.input.value))),
  });
  judged(submit, [of.input], () => of.input.value ? "" : "Give a key or a number first.");
  try {
    const page = await ofSeries("ReportSeries", { database, series: name, pageSize: 20, ...known });
    rows.replaceChildren(...page.scopes.flatMap(lines));
    write(note, page.nextPageToken ? "There are more: idnode series report lists them." : page.scopes.length ? "" : "Nobody has taken a number yet.");
  } catch (failure) {
    write(note, explain(failure));
  }
}

// find finds a number by its key, or else by its text.
async function find(database, series, of) {
  const by = async (what) => (await ofSeries("WhoHas", { database, series, ...what, ...known })).number;
  try {
    return await by({ key: of });
  } catch (failure) {
    if (failure.reason !== "NUMBER_NOT_FOUND") {
      throw failure;
    }
    return by({ text: of }).catch(() => { throw failure; });
  }
}

// lines are that of a scope, and one for each of its allotments.
function lines(scope) {
  const counts = ["open", "overdue", "confirmed", "voided", "released", "unknown"].filter((state) => scope[state] !== "0");
  const allotments = scope.allotments ?? []; // A node of an older program knows none.
  const line = (head, words, left) => el("tr", {}, el("th", { scope: "row" }, head), el("td", {}, words), el("td", { class: "number" }, left));
  return [
    line(scope.scope.join(", ") || "All numbers",
      `${allotments.length ? "allotted ones up" : number(String(BigInt(scope.before) + 1n))} to ${number(scope.last)}` +
      counts.map((state) => `, ${number(scope[state])} ${state}`).join("") +
      (scope.before === "0" ? "" : `; 1 to ${number(scope.before)} before this series`) + (scope.closed ? "; closed" : ""),
      scope.left === undefined ? "" : number(scope.left)),
    ...allotments.map((a) => line("", `${rangeOf(a)}: ${number(a.given)} given`, number(a.left ?? "0"))),
  ];
}
