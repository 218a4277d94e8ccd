// The view of databases: the list, each leading to what is in it.

import { ofCluster } from "./api.js";
import { list } from "./list.js";
import { address } from "./place.js";

export function databases() {
  const go = (view) => (item) => {
    location.hash = address(view, item.name);
  };
  return list({
    call: (query) => ofCluster("ListDatabases", query), items: (answer) => answer.databases.map((name) => ({ name })), noun: "Database", label: "Databases", columns: [],
    actions: [["Identities", "identities"], ["HiLo", "hilo"], ["Claims", "claims"], ["Series", "series"], ["Snowflake", "pools"]].map(([text, view]) => ({ text, needs: [], reads: true, run: go(view) })),
    empty: "No database yet. The first comes with the first id.",
    lead: "All that the cluster has ever used. Ids are unique within one.",
  });
}
