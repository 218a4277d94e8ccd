// The dialogs on what the books have after a restore or a recovery: a suspended series is
// resumed, and unknown numbers are said.

import { ofSeries } from "./api.js";
import { ask, explain, say } from "./dialog.js";
import { button, check, code, el, field } from "./dom.js";
import { judged } from "./gate.js";
import { count, number, scopeOf } from "./text.js";

// resume asks for the last number of each scope, with the date where dates have an order.
export async function resume(database, { name, definition }, done) {
  const { scopes, nextPageToken } = await ofSeries("ReportSeries", { database, series: name, pageSize: 20 });
  const dated = definition.order !== "SERIES_ORDER_ANY";
  const books = scopes.map((scope) => inBooks(scope, dated));
  const another = button("Another scope", () => {
    const more = inBooks(undefined, dated);
    books.push(more);
    another.before(more.element);
    more.element.querySelector("input").focus();
  });
  const looked = check("I have looked into the books.");
  const submit = ask({
    title: `Resume ${name}`, does: "Resume it", danger: true,
    content: [
      el("p", {}, "Look into the books first: what they have, and nobody says here, comes a second time. Here is what the series knows. Numbers between become unknown."),
      ...books.map((each) => each.element), another,
      nextPageToken && el("p", { class: "hint" }, "There are more scopes: ", code("idnode series report"), " lists them. Those that are not said stay as they are."),
      looked.element,
    ].filter(Boolean),
    act: async () => {
      await ofSeries("ResumeSeries", { database, series: name, books: books.map((each) => each.said()).filter(Boolean) });
      say(`${name} gives numbers.`);
      done();
    },
  });
  judged(submit, [looked.input], () => looked.input.checked ? "" : "Look into the books first.");
}

// inBooks has the fields of a scope: of one that the series knows, or of another. What it
// says is undefined as long as it is nothing new.
function inBooks(known, dated) {
  const scope = field("Scope", {}, "Its period and values, as in 2026,BERLIN; empty for a series without scopes.");
  const last = field("Last number", { inputmode: "numeric", value: known?.last });
  const date = field("Greatest date", { placeholder: "2026-12-31" }, known?.lastDate ? `Known is ${known.lastDate}.` : "");
  const closed = check("It was closed");
  closed.input.checked = closed.input.disabled = Boolean(known?.closed);
  return {
    element: el("fieldset", {}, el("legend", {}, known ? known.scope.join(", ") || "All numbers" : "Another scope"),
      !known && scope.element, last.element, dated && date.element, closed.element),
    said: () => {
      const now = [scope, last, date].map(({ input }) => input.value.trim());
      const before = ["", known?.last ?? "", ""];
      return String(now) === String(before) && closed.input.checked === Boolean(known?.closed) ? undefined : {
        scope: known?.scope ?? scopeOf(now[0]), last: count(now[1]), lastDate: dated ? now[2] : "", closed: closed.input.checked,
      };
    },
  };
}

// reconcile asks for one unknown number after the other what the books have of it.
export async function reconcile(database, { name }, done) {
  let first;
  try {
    first = await firstUnknown(database, name);
  } catch (failure) {
    return say(explain(failure));
  }
  if (!first) {
    return say(`${name} has no unknown number.`);
  }
  const key = field("Document's key", { maxlength: "128" }, "Which document has this number in the books.");
  const none = check("No document has it: the number is voided.");
  const submit = ask({
    title: `${first.text} of ${name}`, does: "Say it", danger: true,
    content: [
      el("p", {}, `${number(first.left)} numbers of ${first.scope.join(", ") || "the series"} are unknown. ${first.key ? `This one was last known of ${first.key}` : "Of this one no key is known"}. What is said cannot be taken back.`),
      key.element, none.element,
    ],
    act: async () => {
      const { numbers } = await ofSeries("ReconcileNumbers", {
        database, series: name, scope: first.scope, numbers: [{ number: first.number, key: none.input.checked ? "" : key.input.value }],
      });
      say(told(numbers[0]));
      done();
      setTimeout(() => reconcile(database, { name }, done)); // When this dialog has closed.
    },
  });
  none.input.addEventListener("input", () => {
    key.input.disabled = none.input.checked;
  });
  judged(submit, [key.input, none.input], () => none.input.checked || key.input.value ? "" : "Give the key, or say that no document has the number.");
}

// firstUnknown is the first unknown number of the first scope that has one, with how many
// are left there.
async function firstUnknown(database, series) {
  for await (const scope of all("ReportSeries", "scopes", { database, series, pageSize: 1000 })) {
    if (scope.unknown !== "0") {
      for await (const first of all("ListNumbers", "numbers", { database, series, scope: scope.scope, state: "NUMBER_STATE_UNKNOWN", pageSize: 1 })) {
        return { ...first, left: scope.unknown };
      }
    }
  }
  return undefined;
}

// all goes through the pages of a list.
export async function* all(method, items, request) {
  let pageToken = "";
  do {
    const page = await ofSeries(method, { ...request, pageToken });
    yield* page[items];
    pageToken = page.nextPageToken;
  } while (pageToken);
}

// told says what is known of a number.
export function told(found) {
  const state = found.overdue ? "overdue" : found.state.replace("NUMBER_STATE_", "").toLowerCase();
  const words = [state, found.reason, found.date, found.note].filter(Boolean).join(", ");
  return `${found.text} ${found.key ? `is that of ${found.key}` : "has no key"}: ${words}.`;
}
