// The view that makes ids, and says by which strategy and why.

import { change, get, ofIds } from "./api.js";
import { explain, say, submitting } from "./dialog.js";
import { copyButton } from "./copy.js";
import { button, check, el, field, write, wrong } from "./dom.js";
import { hold, obstacle, watched } from "./gate.js";
import { number, within } from "./text.js";

const names = { guid: "GUID", "server-side": "Server-side id", identity: "Identity", semantic: "Semantic id", HiLo: "HiLo range" };
// mostIDs is how many are made by one click, and mostNumbers the longest range.
const mostIDs = 1000;
const mostNumbers = 2 ** 20;
const examples = [["users/", "users/"], ["invoices|", "invoices|"], ["users/ayende", "users/ayende"], ["", "empty"]];

export function make(database) {
  const made = el("ol", { class: "made", "aria-label": "Made on this page", "aria-live": "polite" });
  const show = (entry) => {
    made.prepend(entry);
    entry.scrollIntoView({ block: "nearest" });
    while (made.children.length > 20) {
      made.lastChild.remove();
    }
  };
  const forms = [fromTemplate(database, show), fromTag(database, show)];
  const element = el(
    "div", { class: "making" },
    el("div", { class: "forms" }, ...forms.map((form) => form.element)),
    el("section", { class: "results", "aria-label": "Made" }, made),
  );
  return { element, update: () => forms.forEach((form) => form.update()) };
}

// bounded is a field for a whole number between two bounds. What it returns is the
// number, the one that stands for nothing typed, or undefined.
function bounded(label, greatest, empty, properties) {
  const made = field(label, { inputmode: "numeric", class: "short", ...properties });
  const value = () => made.input.value.trim() === "" ? empty : within(made.input.value, 1, greatest);
  const judge = () => {
    const none = value() === undefined;
    write(made.hint, none ? `A whole number from 1 to ${number(greatest)}.` : "");
    wrong(made.input, none);
  };
  made.input.addEventListener("input", judge);
  return { ...made, value };
}

function fromTemplate(database, show) {
  const template = field("Template", { name: "template", placeholder: "empty: a GUID", maxlength: "2025" });
  const separator = field("Separator", { name: "separator", placeholder: "/", maxlength: "2", class: "short" });
  const count = bounded("How many", mostIDs, undefined, { name: "count", value: "1" });
  const claim = check("Claim it, so that no other caller gets it", { name: "claim" });
  const what = el("strong");
  const why = el("span");
  const verdict = el("p", { class: "verdict", role: "status" }, what, " ", why);
  const failure = el("p", { class: "failure", role: "alert" });
  const submit = el("button", { class: "main" }, "Make it");
  const reason = el("p", { class: "hint reason" });
  let asked = 0;
  let answer = { strategy: "", why: "" };

  // asks is what the page asks of what is typed.
  const asks = () => ({ database, template: template.input.value, separator: separator.input.value });
  // claiming says whether an id of the strategy is claimed, too.
  const claiming = (strategy) => strategy === "semantic" && !claim.element.hidden && claim.input.checked;

  function judge() {
    const wrong = !answer.strategy ? "No id comes of this template." : !count.element.hidden && count.value() === undefined ? "Say how many first." : "";
    const why = wrong || obstacle(claiming(answer.strategy) ? ["generate", "claims"] : ["generate"], { may: answer.may, writes: claiming(answer.strategy) || answer.needs_quorum });
    hold(submit, why);
    write(reason, wrong ? "" : why);
  }

  // tell says what would come of the template.
  async function tell() {
    const mine = ++asked;
    let newest;
    try {
      newest = await get("explain", asks());
    } catch (error) {
      newest = { strategy: "", why: explain(error) };
    }
    if (mine === asked) {
      answer = newest;
      write(what, names[answer.strategy] ?? "No id.");
      write(why, answer.why);
      verdict.dataset.strategy = answer.strategy;
      claim.element.hidden = answer.strategy !== "semantic";
      count.element.hidden = answer.strategy === "semantic";
      judge();
    }
  }

  const form = el(
    "form", { class: "card", "aria-label": "From a template", novalidate: true },
    el("h2", {}, "From a template"), template.element,
    el("div", { class: "examples" }, el("span", { class: "hint" }, "Try "), ...examples.map(([text, label]) => button(label, () => {
      template.input.value = text;
      template.input.focus();
      tell();
    }))),
    verdict, el("div", { class: "row" }, count.element, separator.element), claim.element, failure,
    el("div", { class: "actions" }, reason, submit),
  );
  submitting(form, failure, async () => {
    const typed = asks();
    const request = { ...typed, count: count.element.hidden ? 1 : count.value() };
    const { strategy, why } = await get("explain", typed); // The verdict may be of what was typed before.
    const claimed = claiming(strategy);
    // The others take no request id.
    const { ids } = await (["identity", "semantic"].includes(strategy) ? change : ofIds)("Generate", { ...request, claim: claimed });
    show(entry(names[strategy], ids, why, claimed ? "Claimed." : ""));
  });
  count.input.addEventListener("input", judge);
  claim.input.addEventListener("input", judge);
  watched([template.input, separator.input], tell);
  return { element: form, update: judge };
}

function fromTag(database, show) {
  const tag = field("Collection's tag", { name: "tag", placeholder: "orders", maxlength: "2000" });
  const size = bounded("Size", mostNumbers, 0, { name: "size", placeholder: "chosen for you" });
  const failure = el("p", { class: "failure", role: "alert" });
  const submit = el("button", { class: "main" }, "Reserve a range");
  const reason = el("p", { class: "hint reason" });
  const form = el(
    "form", { class: "card", "aria-label": "From a collection's tag", novalidate: true },
    el("h2", {}, "From a collection's tag (HiLo)"), tag.element, size.element, failure, el("div", { class: "actions" }, reason, submit),
  );
  const judge = () => {
    const why = obstacle(["ranges"]);
    hold(submit, why || (!tag.input.value ? "Name the tag first." : size.value() === undefined ? "Give a size, or none." : ""));
    write(reason, why);
  };
  watched([tag.input, size.input], judge);
  submitting(form, failure, async () => {
    const answer = await change("NextRange", { database, tag: tag.input.value, size: size.value() });
    const suffix = answer.nodeTag && `-${answer.nodeTag}`;
    const ids = [`${answer.prefix}${answer.low}${suffix}`, `${answer.prefix}${answer.high}${suffix}`];
    show(entry(names.HiLo, [ids.join(" … ")],
      "A collection's tag was given, so the cluster reserved the next range of its numbers. A client uses them up without another call.", giveBack(database, tag.input.value, answer)));
  });
  return { element: form, update: judge };
}

// giveBack is a button that returns an unused range.
function giveBack(database, tag, { low, high, token }) {
  const back = button("Give it back unused", async () => {
    back.disabled = true;
    try {
      const answer = await change("ReturnRange", { database, tag, low, high, last: String(BigInt(low) - 1n), token });
      back.replaceWith(answer.returned
        ? `Given back: the next range begins at ${number(low)} again.`
        : "Not taken back: a newer range was given out since. Its numbers stay unused.");
    } catch (failure) {
      back.disabled = false;
      say(explain(failure));
    }
  });
  return back;
}

// entry is what one click made.
function entry(strategy, ids, why, more) {
  return el(
    "li", { class: "card" },
    el("p", { class: "strategy" }, strategy, copyButton(ids.length > 1 ? `${number(ids.length)} ids` : ids[0], () => ids.join("\n"))),
    el("ul", { class: "ids" }, ...ids.map((id) => el("li", { class: "id" }, id))),
    el("p", { class: "hint" }, why), more && el("p", { class: "more" }, more),
  );
}
