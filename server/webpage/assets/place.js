// Where the page is: the view, the database and what is looked for, kept in the address, so
// that a place can be shared.

export function place() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const parameters = new URLSearchParams(query);
  return { view: path, database: parameters.get("database") || "default", of: parameters.get("of") ?? "" };
}

// address is that of a view, in the database that is looked at.
export function address(view, database = place().database, of = "") {
  const query = new URLSearchParams({ ...(database !== "default" && { database }), ...(of && { of }) }).toString();
  return `#/${view}` + (query && `?${query}`);
}
