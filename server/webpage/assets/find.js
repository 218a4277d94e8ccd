// The view that finds what an id or a name is, whatever its kind: it asks all kinds, and says
// which of them know nothing of it.

import { get, known, ofCluster, ofIds, ofSeries } from "./api.js";
import { explain } from "./dialog.js";
import { el, field, write } from "./dom.js";
import { live } from "./live.js";
import { pageOf } from "./nodes.js";
import { address, place } from "./place.js";
import { told } from "./seriesbooks.js";
import { dated, number, integer } from "./text.js";

// An id that ends with a number has a separator before it; see docid.
const numbered = /^(.+)[^\p{L}\p{N}\p{Cc}\- |\\](\d{1,19})(?:-(.+))?$/u;
const guid = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

// kinds are what there is to ask: each returns what it knows of a text, as words and the view
// that has it, or nothing.
const kinds = [
  ["a GUID", (at) => guid.test(at.text) && { words: "It has the form of a GUID. No node remembers those." }],
  ["the value of an identity", valueOf],
  ["the number of a HiLo range", holderOf],
  ["a server-side id", etagOf],
  ["a claim", claimOf],
  ["a document's number or key", documentOf],
  ["the name of an identity", async (at) => {
    const name = at.text.replace(/\|$/, "");
    const { identity } = await ofIds("GetIdentity", { database: at.database, name, ...known });
    return { view: "identities", words: `${identity.name} is an identity. Its last used value is ${number(identity.value)}.` };
  }],
  ["a HiLo tag", async (at) => {
    const { hilo } = await ofIds("GetHiLo", { database: at.database, tag: at.text, ...known });
    return { view: "hilo", words: `${hilo.tag} is a HiLo tag. Its Max is ${number(hilo.max)}.` };
  }],
  ["the name of a series", async (at) => {
    const { series } = await ofSeries("GetSeries", { database: at.database, name: at.text, ...known });
    return { view: "series", words: `${series.name} is a series of document numbers, with ${number(series.keys)} keys.` };
  }],
  ["a database", async ({ text }) => {
    const { databases } = await ofCluster("ListDatabases", { prefix: text, pageSize: 1, ...known });
    return same(databases[0], text) && { view: "identities", database: databases[0], words: `${databases[0]} is a database.` };
  }],
];

// same compares as names do, but for rare letters.
const same = (a, b) => a?.toUpperCase().toLowerCase() === b.toUpperCase().toLowerCase();

// unknown says that a failure only means that there is no such thing, or can be none.
const unknown = ({ reason }) => /_NOT_FOUND$|^INVALID_/.test(reason);

// parts takes an id apart: its name, number and suffix.
function parts(text) {
  const [, name, digits, suffix] = numbered.exec(text) ?? [];
  return { name, digits, suffix, value: name && integer(digits) };
}

async function valueOf({ database, text }) {
  const { name, suffix, value } = parts(text);
  if (value === undefined || suffix) {
    return undefined;
  }
  const { identity } = await ofIds("GetIdentity", { database, name, ...known });
  const last = `The last used value of the identity ${identity.name} is ${number(identity.value)}`;
  return {
    view: "identities",
    words: value > BigInt(identity.value) ? `${last}, so it was not given yet.` : `${last}, so it was given, or stepped over: by a seed, or because it was claimed.`,
  };
}

async function holderOf({ database, text }) {
  const { name, suffix, value } = parts(text);
  if (!value || suffix === undefined && text.includes("|")) {
    return undefined;
  }
  const { state, low, high, holder } = await ofIds("WhoHolds", { database, tag: name, number: String(value), ...known });
  const range = `It is in the range ${number(low)} to ${number(high)} of the tag ${name}`;
  const whom = [holder?.label, holder?.principal, holder?.nodeTag && `through node ${holder.nodeTag}`, holder?.issuedAt && `at ${dated(Date.parse(holder.issuedAt))}`];
  return {
    view: "hilo",
    words: {
      RANGE_STATE_OUTSTANDING: `${range}, given ${whom.filter(Boolean).join(", ") || "to a caller that is not remembered"}.`,
      RANGE_STATE_RESERVED: `${range}, in the reserve of node ${holder?.nodeTag ?? "?"}.`,
      RANGE_STATE_NOT_REMEMBERED: `A range of the tag ${name} had it; who got that is not remembered any more.`,
      RANGE_STATE_NOT_ISSUED: `No range of the tag ${name} had it yet.`,
    }[state],
  };
}

async function etagOf({ database, text }) {
  const { digits, suffix, value } = parts(text);
  if (digits?.length !== 19 || !/^[A-Z]{1,4}$/.test(suffix ?? "") || value === undefined) {
    return undefined;
  }
  const { self, members } = live.overview;
  const member = members.find(({ tag }) => tag === suffix);
  if (suffix !== self.tag) {
    return { link: member?.httpAddress && pageOf(member) + location.hash, words: `It has the form of a server-side id of node ${suffix}, whose own counter only its page knows.` };
  }
  const { etags } = await get("etags", { prefix: database, pageSize: 1 });
  const last = same(etags[0]?.name, database) ? etags[0].last : "0";
  return { view: "etags", words: `It has the form of a server-side id of this node, whose newest in this database has the number ${number(last)}: ${value > BigInt(last) ? "it was not given yet" : "it was given, or left out at a crash"}.` };
}

async function claimOf({ database, text }) {
  const { ids } = await ofIds("ListClaims", { database, prefix: text, pageSize: 1, ...known });
  return same(ids[0], text) && { view: "claims", words: `${ids[0]} is claimed.` };
}

async function documentOf({ database, text }) {
  const { numbers } = await get("numbers", { database, of: text });
  return numbers.length ? { view: "series", words: numbers.map(({ series, number: found }) => `${series}: ${told(found)}`).join(" ") } : undefined;
}

export function find(database) {
  const text = place().of;
  const what = field("Id or name", { type: "search", value: text, maxlength: "2025", placeholder: "invoices/4711" });
  const results = el("ul", { class: "found", role: "status", "aria-label": "Found" });
  const missing = el("p", { class: "hint missing" });
  const form = el("form", { class: "card finding", novalidate: true }, what.element, el("button", { class: "main" }, "Find"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const to = address("find", database, what.input.value);
    location.hash === to ? search() : location.hash = to;
  });
  let asked = 0;
  async function search() {
    const mine = ++asked;
    const at = { database, text: what.input.value };
    results.replaceChildren();
    write(missing, "Looking …");
    const nothing = [];
    await Promise.all(kinds.map(async ([kind, ask]) => {
      let answer;
      try {
        answer = await ask(at);
      } catch (failure) {
        answer = unknown(failure) ? undefined : { failed: true, words: explain(failure) };
      }
      if (mine !== asked) {
        return;
      }
      answer ? results.append(shown(kind, answer, database)) : nothing.push(kind);
    }));
    if (mine === asked) {
      write(missing, nothing.length ? `By what this node knows, in the database ${database}, it is not ${nothing.join(", ")}.` : "");
    }
  }
  if (text) {
    search();
  }
  return {
    element: el("div", {}, el("p", { class: "lead" }, "Says what an id or a name is, and who holds it, whatever its kind."), form, results, missing),
    close: () => {
      asked = Infinity;
    },
  };
}

function shown(kind, { words, view, link, failed, database: other }, database) {
  const to = view ? address(view, other ?? database) : link;
  return el("li", { class: `card ${failed ? "failed" : ""}`, "data-kind": kind },
    el("h3", {}, failed ? `Could not ask: ${kind}` : `As ${kind}`), el("p", {}, words), to && el("a", { href: to }, view ? "Show" : "Its page"));
}
