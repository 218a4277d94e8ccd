// The dialogs on ranges of numbers that an authority allotted to a scope.

import { ofSeries } from "./api.js";
import { ask, explain, say } from "./dialog.js";
import { choice, el, field } from "./dom.js";
import { judged } from "./gate.js";
import { all } from "./seriesbooks.js";
import { count, number, scopeOf } from "./text.js";

// rangeOf is an allotment for people.
export function rangeOf({ from, to, until, note }) {
  return [`${number(from)} to ${number(to)}`, until && `until ${until}`, note].filter(Boolean).join(", ");
}

// allot has a scope give the numbers of a range.
export function allot(database, { name }) {
  const scope = field("Scope", {}, "Its period and values, as in 2026,BERLIN; empty for a series without scopes.");
  const from = field("First number", { inputmode: "numeric", required: true }, "Above all numbers that the scope has given.");
  const to = field("Last number", { inputmode: "numeric", required: true });
  const until = field("Last day", { placeholder: "2026-12-31" }, "On which it gives numbers. Empty: without end.");
  const note = field("Note", { maxlength: "64" }, "Such as the authority's code: each of its numbers is shown with it.");
  const submit = ask({
    title: `Allot numbers of ${name}`, does: "Allot",
    content: [
      el("p", {}, "The scope then gives the numbers of its ranges, one after the other, and no others."),
      ...[scope, from, to, until, note].map(({ element }) => element),
    ],
    act: async () => {
      const range = { from: count(from.input.value), to: count(to.input.value), until: until.input.value.trim(), note: note.input.value };
      await ofSeries("AllotNumbers", { database, series: name, scope: scopeOf(scope.input.value), allotment: range });
      say(`${rangeOf(range)} is allotted.`);
    },
  });
  judged(submit, [from.input, to.input], () => from.input.value && to.input.value ? "" : "Give the first and the last number first.");
}

// withdraw takes back a range that gave no number.
export async function withdraw(database, { name }) {
  const unused = [];
  try {
    for await (const { scope, allotments = [] } of all("ReportSeries", "scopes", { database, series: name, pageSize: 1000 })) {
      unused.push(...allotments.filter(({ given }) => given === "0").map((range) => ({ scope, range })));
    }
  } catch (failure) {
    return say(explain(failure));
  }
  if (!unused.length) {
    return say(`${name} has no allotment that gave no number.`);
  }
  const which = choice("Range", unused.map(({ scope, range }, i) => [i, [...scope, rangeOf(range)].join(", ")]), 0);
  return ask({
    title: `Withdraw numbers of ${name}?`, does: "Withdraw", danger: true,
    content: [el("p", {}, "It gave no number yet, and gives none then. A scope without any range gives all numbers again."), which.element],
    act: async () => {
      const { scope, range: { from, to } } = unused[which.input.value];
      await ofSeries("AllotNumbers", { database, series: name, scope, allotment: { from, to }, withdraw: true });
      say(`${rangeOf({ from, to })} is taken back.`);
    },
  });
}
