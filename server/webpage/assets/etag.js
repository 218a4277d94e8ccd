// The view of this node's own etags.

import { get } from "./api.js";
import { el, write } from "./dom.js";
import { list } from "./list.js";
import { number } from "./text.js";

export function etags() {
  const who = el("span");
  const all = list({
    call: ({ prefix, pageSize, pageToken }) => get("etags", { prefix, pageSize, pageToken }), items: ({ etags }) => etags, noun: "Database", label: "Etags of this node by database",
    columns: [
      { head: "Last given", key: "last", text: (item) => item.last === "0" ? "none" : number(item.last) },
      { head: "Reserved to", key: "reserved", text: (item) => number(item.reserved) },
      { head: "Ceiling", key: "ceiling", text: (item) => item.ceiling === "0" ? "none yet" : number(item.ceiling) },
    ],
    empty: "This node has given no server-side id yet.", lead: who,
  });
  return {
    ...all,
    update: ({ overview: o }) => write(who, `The counters of node ${o.self.tag || "?"} alone, one for each database, for its server-side ids. ` +
      "They only rise. A block is reserved on this node's disk before it is used, and the cluster keeps a ceiling above it, " +
      "so that a disk that was set back is noticed."),
  };
}
