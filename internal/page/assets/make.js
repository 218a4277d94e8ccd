// The view that makes ids, and says by which strategy and why.

import { change, get } from "./api.js";
import { explain, say } from "./dialog.js";
import { button, check, el, field, write } from "./dom.js";
import { number } from "./text.js";

const names = { guid: "GUID", "server-side": "Server-side id", identity: "Identity", semantic: "Semantic id", HiLo: "HiLo range" };
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
  const element = el(
    "div", { class: "making" },
    el("div", { class: "forms" }, fromTemplate(database, show), fromTag(database, show)),
    el("section", { class: "results", "aria-label": "Made" }, made),
  );
  return { element };
}

function fromTemplate(database, show) {
  const template = field("Template", { name: "template", placeholder: "empty: a GUID", maxlength: "2025" });
  const separator = field("Separator", { name: "separator", placeholder: "/", maxlength: "2", class: "short" });
  const count = field("How many", { name: "count", type: "number", min: "1", max: "1000", value: "1", class: "short" });
  const claim = check("Claim it, so that nobody else gets it", { name: "claim" });
  const what = el("strong");
  const why = el("span");
  const verdict = el("p", { class: "verdict", role: "status" }, what, " ", why);
  const failure = el("p", { class: "failure", role: "alert" });
  const submit = el("button", { class: "main" }, "Make it");
  let asked = 0;

  // tell says what would come of the template.
  async function tell() {
    const mine = ++asked;
    const query = { template: template.input.value, separator: separator.input.value };
    let answer;
    try {
      answer = await get("explain", query);
    } catch (error) {
      answer = { strategy: "", why: explain(error) };
    }
    if (mine === asked) {
      write(what, names[answer.strategy] ?? "No id.");
      write(why, answer.why);
      verdict.dataset.strategy = answer.strategy;
      claim.element.hidden = answer.strategy !== "semantic";
      count.element.hidden = answer.strategy === "semantic";
      submit.disabled = !answer.strategy;
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
    el("div", { class: "actions" }, submit),
  );
  submitting(form, failure, async () => {
    const body = { database, template: template.input.value, separator: separator.input.value };
    const claimed = !claim.element.hidden && claim.input.checked;
    const answer = await change(
      "ids", claimed ? { ...body, claim: true } : { ...body, count: count.element.hidden ? 1 : Number(count.input.value) || 1 },
      { once: ["identity", "semantic"].includes(verdict.dataset.strategy) },
    );
    show(entry(names[answer.strategy], answer.ids, answer.why, claimed ? "Claimed." : ""));
  });
  template.input.addEventListener("input", tell);
  separator.input.addEventListener("input", tell);
  tell();
  return form;
}

function fromTag(database, show) {
  const tag = field("Collection's tag", { name: "tag", placeholder: "orders", maxlength: "2000" });
  const size = field("Size", { name: "size", inputmode: "numeric", placeholder: "chosen for you", class: "short" });
  const failure = el("p", { class: "failure", role: "alert" });
  const submit = el("button", { class: "main", disabled: true }, "Reserve a range");
  const form = el(
    "form", { class: "card", "aria-label": "From a collection's tag", novalidate: true },
    el("h2", {}, "From a collection's tag (HiLo)"), tag.element, size.element, failure, el("div", { class: "actions" }, submit),
  );
  tag.input.addEventListener("input", () => { submit.disabled = !tag.input.value; });
  submitting(form, failure, async () => {
    const answer = await change("ranges", { database, tag: tag.input.value, size: Number(size.input.value) || 0 });
    const suffix = answer.node_tag && `-${answer.node_tag}`;
    const ids = [`${answer.prefix}${answer.low}${suffix}`, `${answer.prefix}${answer.high}${suffix}`];
    show(entry(names.HiLo, [ids.join(" … ")], answer.why, giveBack(database, tag.input.value, answer)));
  });
  return form;
}

// giveBack is a button that returns a range that nobody has used.
function giveBack(database, tag, range) {
  const back = button("Give it back unused", async () => {
    back.disabled = true;
    try {
      const answer = await change("ranges/return", { database, tag, low: range.low, high: range.high, token: range.token });
      back.replaceWith(answer.returned
        ? `Given back: the next range begins at ${number(range.low)} again.`
        : "Not taken back: a newer range was given out since. Its numbers stay unused.");
    } catch (failure) {
      back.disabled = false;
      say(explain(failure));
    }
  });
  return back;
}

function submitting(form, failure, act) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (form.getAttribute("aria-busy") === "true" || form.querySelector(".main").disabled) {
      return;
    }
    form.setAttribute("aria-busy", "true");
    write(failure, "");
    try {
      await act();
    } catch (error) {
      write(failure, explain(error));
    } finally {
      form.removeAttribute("aria-busy");
    }
  });
}

// entry is what one click made.
function entry(strategy, ids, why, more) {
  return el(
    "li", { class: "card" },
    el("p", { class: "strategy" }, strategy),
    el("ul", { class: "ids" }, ...ids.map((id) => el("li", { class: "id" }, id))),
    el("p", { class: "hint" }, why), more && el("p", { class: "more" }, more),
  );
}
