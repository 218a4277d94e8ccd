// Where the page is: the view and the database, kept in the address, so that a
// place can be shared.

export function place() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { view: path, database: new URLSearchParams(query).get("database") || "default" };
}

// address is that of a view, in the database that is looked at.
export function address(view, database = place().database) {
  return `#/${view}` + (database === "default" ? "" : `?${new URLSearchParams({ database })}`);
}
