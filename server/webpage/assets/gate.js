// What cannot be done now, and why. A button that cannot work is off, but it can
// still be reached: a press on it shows the reason.

import { say } from "./dialog.js";
import { write } from "./dom.js";
import { live } from "./live.js";

// obstacle says why something cannot be done; empty if it can. needs are the rights
// that it takes, may those that there are, or else those on a name; on some name of the
// database, if none is given. writes says that it goes through the log.
export function obstacle(needs, { may, name, writes = true } = {}) {
  const o = live.overview;
  if (live.lostAt || !o) {
    return "This node does not answer.";
  }
  const missing = lacking(needs, may ?? rightsOn(name));
  if (missing) {
    return missing;
  }
  if (writes && !o.hasQuorum) {
    return "There is no quorum.";
  }
  return writes && o.storageFull ? "Storage is full: nothing is written until there is room." : "";
}

// rightsOn are those that the viewer's grants give on a name, which is folded as they are; on
// some name of the database, if none is given. See covers in package rights.
export function rightsOn(name) {
  const covers = (g) => g.Name ? [g.Name, `${g.Name}|`].includes(name)
    : name.startsWith(g.Prefix) && (!g.Boundary || "/|".includes(name.charAt(g.Prefix.length)));
  return live.overview.you.grants.filter((g) => name === undefined || covers(g)).map((g) => g.Rights).join();
}

// lacking says which rights are missing; empty if none is.
export function lacking(needs, may) {
  const have = may.split(",");
  const missing = needs.filter((right) => !have.includes(right));
  return missing.length ? `You have no right to do that: it takes the right${missing.length > 1 ? "s" : ""} ${missing.join(" and ")}.` : "";
}

// hold turns a button off for a reason, or on again if there is none.
export function hold(button, why) {
  if (why) {
    button.setAttribute("aria-disabled", "true");
    button.title = why;
  } else {
    button.removeAttribute("aria-disabled");
    button.removeAttribute("title");
  }
}

// judged holds a button for what why says, now and whenever an input changes.
export function judged(button, inputs, why) {
  watched(inputs, () => hold(button, why()));
}

// watched calls judge now and whenever an input changes.
export function watched(inputs, judge) {
  inputs.forEach((input) => input.addEventListener("input", judge));
  judge();
}

// Enter in a form clicks its button too, so this is the one place to look.
document.addEventListener("click", (event) => {
  const off = event.target.closest?.("[aria-disabled=true]");
  if (off) {
    event.preventDefault();
    event.stopImmediatePropagation();
    // What is behind a dialog is not heard.
    const failure = off.closest("dialog")?.querySelector(".failure");
    failure ? write(failure, off.title) : say(off.title);
  }
}, true);
