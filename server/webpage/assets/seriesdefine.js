// The dialog that begins a series, or changes its definition: all that idnode series define
// has.

import { ofSeries } from "./api.js";
import { ask, explain, say } from "./dialog.js";
import { choice, el, field, write } from "./dom.js";
import { hold, watched } from "./gate.js";
import { count, number, scopeOf } from "./text.js";

// define begins a series, or changes was, and shows what that means while one types.
export function define(database, done, was) {
  const name = field("Series", { maxlength: "128", required: true });
  const parts = partsOf(was?.definition ?? {});
  const scope = field("Scope", {}, "That begins at another number than 1: its period and values, as in 2026,BERLIN; empty for a series without scopes.");
  const first = field("Its first number", { inputmode: "numeric" }, "1 takes back what was said before.");
  const verdict = el("p", { class: "verdict", role: "status" });
  const asked = () => ({
    database, name: was?.name ?? name.input.value, expectedVersion: was?.version ?? "0",
    definition: Object.fromEntries(Object.entries(parts).map(([key, part]) => [key, part.value()])),
    begins: scope.input.value || first.input.value ? [{ scope: scopeOf(scope.input.value), first: count(first.input.value) }] : [],
  });
  const { format, resetBy, ...policies } = parts;
  const submit = ask({
    title: was ? `Redefine ${was.name}` : "Define a series", does: was ? "Redefine it" : "Define it",
    content: [
      !was && name.element, format.element, resetBy.element,
      was && el("p", { class: "hint" }, "With another format or period all scopes begin at 1, unless it is said below where."),
      el("details", {}, el("summary", {}, "Policies and limits"), ...Object.values(policies).map((part) => part.element)),
      el("details", {}, el("summary", {}, "Begin at a number"), scope.element, first.element), verdict,
    ].filter(Boolean),
    act: async () => {
      const given = asked();
      const { suspended, version } = await ofSeries("DefineSeries", given);
      say(`${given.name} ${suspended ? "is suspended" : was ? `has version ${version}` : "gives numbers"}.`);
      await done();
    },
  });
  let looked = 0;
  async function judge() {
    const mine = ++looked;
    let means = "", why = "Name the series and its format first.";
    if (asked().name && format.input.value) {
      hold(submit, "Wait for the preview.");
      try {
        means = meaning(await ofSeries("DefineSeries", { ...asked(), dryRun: true }));
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
  watched([name, ...Object.values(parts), scope, first].map(({ input }) => input), judge);
}

// partsOf has a field for each part of a definition. The value of one is as the public API
// has it.
function partsOf(was) {
  const text = (key, label, properties = {}, help = "") => {
    const part = field(label, { value: was[key], ...properties }, help);
    return { ...part, value: () => part.input.value };
  };
  const limit = (key, label, help) => {
    const part = field(label, { inputmode: "numeric", value: +was[key] ? was[key] : "" }, help);
    return { ...part, value: () => count(part.input.value) };
  };
  const one = (key, label, prefix, words) => {
    const part = choice(label, words.map((word) => [prefix + word, word.toLowerCase().replaceAll("_", "-")]), was[key]);
    return { ...part, value: () => part.input.value };
  };
  const expires = field("Seconds that a number stays open", { inputmode: "numeric", value: was.expiresIn?.replace(/s$/, "") }, "Empty: without end.");
  const ahead = field("Days that a date may be ahead", { inputmode: "numeric", value: was.maxAheadDays },
    "0: none. Empty: 1 where dates have an order, else 366.");
  const allowed = field("Values that calls may give", { placeholder: "branch=BERLIN,HAMBURG", value: allowedText(was.allowed ?? []) },
    "With a blank between names. Empty: any.");
  return {
    format: text("format", "Format", { maxlength: "256", placeholder: "INV-{year}-{number:6}", required: true }),
    resetBy: one("resetBy", "Numbers begin at 1 again each", "SERIES_RESET_", ["NEVER", "YEAR", "MONTH", "DAY", "WEEK", "FISCAL_YEAR"]),
    order: one("order", "Order of dates", "SERIES_ORDER_", ["ANY", "DATES_DO_NOT_GO_BACK", "ONE_OPEN"]),
    onRelease: one("onRelease", "A released number", "SERIES_ON_RELEASE_", ["VOID", "REUSE_NEWEST", "REUSE_LOWEST"]),
    onExpiry: one("onExpiry", "A number whose time has ended", "SERIES_ON_EXPIRY_", ["REPORT", "VOID", "REUSE_LOWEST"]),
    expiresIn: { ...expires, value: () => lasting(expires.input.value.trim(), was.expiresIn) },
    maxOpen: limit("maxOpen", "Open numbers of a scope", "At most; empty: without limit."),
    maxKeys: limit("maxKeys", "Keys of the series", "At most; empty: without limit."),
    maxAheadDays: { ...ahead, value: () => (ahead.input.value.trim() ? count(ahead.input.value) : undefined) },
    maxLength: limit("maxLength", "Characters of a text", "At most; empty: without limit."),
    allowed: { ...allowed, value: () => allowedOf(allowed.input.value) },
    timeZone: text("timeZone", "Time zone", { placeholder: "Europe/Berlin" }, "Of dates that callers do not give. Empty: UTC."),
  };
}

// allowedOf reads values as the command line has them, allowedText writes them so.
function allowedOf(typed) {
  return typed.split(/\s+/).filter(Boolean).map((one) => {
    const [name, values = ""] = one.split("=", 2);
    return { name, values: values.split(",").filter(Boolean) };
  });
}

function allowedText(all) {
  return all.map(({ name, values }) => `${name}=${values.join(",")}`).join(" ");
}

// lasting is a typed number of seconds as the public API takes it; what it was may have parts of
// a second.
function lasting(typed, was) {
  return !typed ? undefined : `${typed}s` === was ? was : `${count(typed)}s`;
}

function meaning({ preview: { texts, values, beginsAgain, forgets, forgetsAllotments = "0" }, suspended }) {
  return `The first numbers are ${texts.join(", ")}. ${values.length ? `Each call gives ${values.join(", ")}. ` : ""}` +
    (beginsAgain ? `They begin again on ${beginsAgain}.` : "They never begin again.") +
    (forgets === "0" ? "" : ` Open numbers that it forgets: ${number(forgets)}.`) +
    (forgetsAllotments === "0" ? "" : ` Allotments that it forgets: ${number(forgetsAllotments)}.`) +
    (suspended ? " The series is suspended then: after a restore, one of this name may have given numbers." : "");
}
