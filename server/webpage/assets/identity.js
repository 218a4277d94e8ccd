// The view of identities: the list, seeds and deletions.

import { change, known, ofIds } from "./api.js";
import { ask, say } from "./dialog.js";
import { check, el, field, write, wrong } from "./dom.js";
import { hold, lacking, rightsOn, watched } from "./gate.js";
import { list } from "./list.js";
import { integer, number } from "./text.js";

export function identities(database) {
  const all = list({
    call: (query) => ofIds("ListIdentities", query), database, items: ({ identities }) => identities, noun: "Identity", label: `Identities of the database ${database}`,
    columns: [{ head: "Last used", key: "value", text: (item) => number(item.value) }],
    actions: [
      { text: "Seed", needs: ["seed"], run: (item) => seed(database, item, all.refresh) },
      { text: "Delete", needs: ["delete"], class: "danger quiet", run: (item) => remove(database, item, all.refresh) },
    ],
    tools: [{ text: "Seed an identity", needs: ["seed"], run: () => seed(database, undefined, all.refresh) }],
    empty: "No identity yet. The first comes with the first id, or with a seed.",
    lead: "Counters that the cluster agrees on. The next id is the last used value and one.",
  });
  return all;
}

// seed sets what was used last; without an identity, one is named.
function seed(database, identity, done) {
  const name = field("Identity", { value: identity?.name ?? "", required: true });
  const value = field("Last used value", { inputmode: "numeric", value: identity?.value ?? "", required: true });
  const warning = el("p", { class: "warning", role: "status", hidden: true });
  const sure = check("Lower it all the same");
  sure.element.hidden = true;
  // current is the value that the node knows; undefined if the name is new.
  let current = identity && BigInt(identity.value);
  let looked = 0;

  function judge() {
    const wanted = integer(value.input.value);
    const lower = wanted !== undefined && current !== undefined && wanted < current;
    wrong(value.input, Boolean(value.input.value) && wanted === undefined);
    warning.hidden = sure.element.hidden = !lower;
    if (lower) {
      write(warning, `${number(String(wanted))} is lower than the present value, ${number(String(current))}. ` +
        `The ids from ${number(String(wanted + 1n))} to ${number(String(current))} may then come out a second time.`);
    } else {
      sure.input.checked = false;
    }
    write(value.hint, wanted === undefined
      ? (value.input.value ? "A whole number, below 2^63." : "")
      : lower ? "" : wanted === current ? "That is its value already."
        : `The next id will be ${name.input.value.replace(/\|$/, "") || "…"}/${wanted + 1n}.`);
    hold(submit, !name.input.value ? "Name the identity first." : wanted === undefined ? "Give it a value first."
      : lower ? (identity && lacking(["force"], rightsOn(identity.name))) || (sure.input.checked ? "" : "It lowers the value: tick the box if that is meant.") : "");
  }

  async function find() {
    const mine = ++looked;
    current = undefined;
    let found;
    try {
      found = name.input.value && (await ofIds("GetIdentity", { database, name: name.input.value, ...known })).identity;
    } catch {
      // It is new, or its name is none; then the seed says so.
    }
    if (mine === looked) {
      current = found ? BigInt(found.value) : undefined;
      write(name.hint, current === undefined ? "" : `Its last used value is ${number(String(current))}.`);
      judge();
    }
  }

  const submit = ask({
    title: identity ? `Seed ${identity.name}` : "Seed an identity", does: "Seed",
    content: [identity ? el("p", {}, `Its last used value is ${number(identity.value)}.`) : name.element, value.element, warning, sure.element],
    act: async () => {
      const body = { database, name: identity?.name ?? name.input.value, value: String(integer(value.input.value)) };
      const answer = await change("SeedIdentity", sure.input.checked ? { ...body, force: true, expected: String(current) } : body);
      say(`${body.name} is at ${number(answer.value)}.`);
      done();
    },
  });
  if (!identity) {
    name.input.addEventListener("input", find);
  }
  identity && value.input.select(); // Else the name comes first.
  watched([value.input, sure.input, name.input], judge);
}

function remove(database, identity, done) {
  const noForce = lacking(["force"], rightsOn(identity.name));
  const forget = check("Forget the value too: the next id is then 1 again, and ids come out a second time", { disabled: Boolean(noForce) });
  ask({
    title: `Delete ${identity.name}?`, does: "Delete", danger: true,
    content: [
      el("p", {}, `It vanishes from the lists. Its last used value, ${number(identity.value)}, is kept, so that an id asked for later goes on above it.`),
      forget.element, noForce && el("p", { class: "hint" }, noForce),
    ],
    act: async () => {
      await change("DeleteIdentity", { database, name: identity.name, forget: forget.input.checked });
      say(forget.input.checked ? `${identity.name} is forgotten.` : `${identity.name} is deleted.`);
      done();
    },
  });
}
