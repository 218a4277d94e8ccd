// The view of series of document numbers: the list, what their scopes have, and whose a
// number is.

import { change, get } from "./api.js";
import { ask, explain, say } from "./dialog.js";
import { check, el, field, write } from "./dom.js";
import { hold } from "./gate.js";
import { list } from "./list.js";
import { number } from "./text.js";

export function series(database) {
  const all = list({
    path: "series", parameters: { database }, noun: "Series", label: `Series of document numbers of the database ${database}`,
    columns: [
      { head: "Format", text: (item) => item.format },
      { head: "Keys", key: "keys", text: (item) => number(item.keys) },
      { head: "State", text: (item) => item.suspended ? "suspended" : "active" },
    ],
    actions: [
      { text: "Numbers", needs: ["read"], reads: true, run: (item) => look(database, item) },
      { text: "Unknown", needs: ["read", "series"], run: (item) => reconcile(database, item, all.refresh) },
    ],
    tools: [{ text: "Define a series", needs: ["series"], run: () => define(database, all.refresh) }],
    empty: "No series yet.",
  });
  return {
    element: el("div", {}, el("p", { class: "lead" }, "Each gives numbers without holes to the keys of documents. A suspended one gives none until idnode series resume. Unknown numbers are those that a restore or a recovery left open."), all.element),
    update: all.update, close: all.close,
  };
}

const resets = ["never", "year", "month", "day", "week", "fiscal-year"];

// define begins a series, and shows what it means while one types. idnode series define has
// the policies too.
function define(database, done) {
  const name = field("Series", { maxlength: "128", required: true });
  const format = field("Format", { maxlength: "256", placeholder: "INV-{year}-{number:6}", required: true });
  const reset = el("select", { "aria-label": "Numbers begin at 1 again each" }, ...resets.map((each) => el("option", { value: each }, each)));
  const verdict = el("p", { class: "verdict", role: "status" });
  const asked = () => ({ database, name: name.input.value, format: format.input.value, reset: reset.value });
  const submit = ask({
    title: "Define a series", does: "Define it",
    content: [name.element, format.element, el("div", { class: "field" }, el("label", {}, "Numbers begin at 1 again each: ", reset)), verdict],
    act: async () => {
      const given = asked();
      const { suspended } = await change("series/define", given, { once: false });
      say(`${given.name} ${suspended ? "is suspended" : "gives numbers"}.`);
      await done();
    },
  });
  let looked = 0;
  async function judge() {
    const mine = ++looked;
    let means = "", why = "Name the series and its format first.";
    if (name.input.value && format.input.value) {
      hold(submit, "Wait for the preview.");
      try {
        means = meaning(await get("series/preview", asked()));
        why = "";
      } catch (failure) {
        means = why = explain(failure);
      }
    }
    if (mine === looked) {
      write(verdict, means);
      hold(submit, why);
    }
  }
  name.input.addEventListener("input", judge);
  format.input.addEventListener("input", judge);
  reset.addEventListener("change", judge);
  judge();
}

function meaning({ texts, values, begins_again: again }) {
  return `The first numbers are ${texts.join(", ")}. ${values.length ? `Each call gives ${values.join(", ")}. ` : ""}` +
    (again ? `They begin again on ${again}.` : "They never begin again.");
}

// look shows the scopes of a series, and finds a number.
async function look(database, { name, format }) {
  const lines = el("ul", { class: "scopes" });
  const of = field("Find a number", { maxlength: "128" }, "A document's key, or a number in the series' format.");
  const submit = ask({
    title: name, does: "Find",
    content: [el("p", { class: "id" }, format), lines, of.element],
    act: async () => say(told(await get("series/number", { database, name, of: of.input.value }))),
  });
  const judge = () => hold(submit, of.input.value ? "" : "Give a key or a number first.");
  of.input.addEventListener("input", judge);
  judge();
  try {
    const { items, next } = await get("series/scopes", { database, name });
    lines.replaceChildren(...items.map(line), next ? el("li", {}, "There are more: idnode series report lists them.") : "");
    if (!items.length) {
      lines.replaceChildren(el("li", {}, "Nobody has taken a number yet."));
    }
  } catch {
    lines.replaceChildren(el("li", {}, "This node does not answer."));
  }
}

function line(scope) {
  const counts = ["open", "overdue", "confirmed", "voided", "released", "unknown"].filter((state) => scope[state] !== "0");
  return el("li", {},
    el("strong", {}, scope.scope.join(", ") || "All numbers"),
    `: ${number(String(BigInt(scope.before) + 1n))} to ${number(scope.last)}, ${counts.map((state) => `${number(scope[state])} ${state}`).join(", ")}`,
    scope.before === "0" ? "" : `; 1 to ${number(scope.before)} before this series`, scope.closed ? "; closed" : "");
}

// reconcile asks for one unknown number after the other what the books have of it.
async function reconcile(database, { name }, done) {
  let first;
  try {
    first = await get("series/unknown", { database, name, fresh: "true" });
  } catch (failure) {
    return say(explain(failure));
  }
  if (first.left === "0") {
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
      const answer = await change("series/reconcile", { database, name, scope: first.scope, number: first.number, key: none.input.checked ? "" : key.input.value });
      say(told(answer));
      done();
      setTimeout(() => reconcile(database, { name }, done)); // When this dialog has closed.
    },
  });
  const judge = () => {
    key.input.disabled = none.input.checked;
    hold(submit, none.input.checked || key.input.value ? "" : "Give the key, or say that no document has the number.");
  };
  key.input.addEventListener("input", judge);
  none.input.addEventListener("change", judge);
  judge();
}

function told(found) {
  const words = [found.overdue ? "overdue" : found.state, found.reason, found.date].filter(Boolean).join(", ");
  return `${found.text} ${found.key ? `is that of ${found.key}` : "has no key"}: ${words}.`;
}
