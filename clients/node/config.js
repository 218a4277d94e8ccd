// The endpoints and options of a client, from the environment or a URL.

"use strict";

// The variables and the parameters have the names of the command line's flags.
const PARAMETERS = ["tls", "tls-ca", "tls-cert", "tls-key", "tls-server-name", "cluster-id"];
const variable = (name) => `IDNODE_${name.toUpperCase().replaceAll("-", "_")}`;

// The options of values; called names a parameter as its user does.
function optionsOf(database, value, called) {
  const files = { ca: value("tls-ca"), cert: value("tls-cert"), key: value("tls-key"), servername: value("tls-server-name") };
  const tls = Object.fromEntries(Object.entries(files).filter(([, text]) => text));
  const missing = (name) => new TypeError(`TLS needs ${called(name)} too`);
  const on = value("tls") || tls.ca;
  if (!on && Object.keys(tls).length > 0) throw missing("tls-ca");
  if (tls.cert && !tls.key) throw missing("tls-key");
  if (tls.key && !tls.cert) throw missing("tls-cert");
  return { database, clusterId: value("cluster-id"), ...(on && { tls }) };
}

function fromEnv(env) {
  const endpoints = (env.IDNODE_HTTP_ENDPOINTS ?? "").split(",").map((address) => address.trim()).filter(Boolean);
  if (endpoints.length === 0) throw new TypeError("IDNODE_HTTP_ENDPOINTS has no addresses, such as a:7402,b:7402");
  const value = (name) => (name === "tls" ? "" : env[variable(name)] ?? ""); // The command line has no such flag.
  return { endpoints, options: optionsOf(env.IDNODE_DATABASE ?? "", value, variable) };
}

function fromUrl(url) {
  const wrong = (why) => new TypeError(`a URL is idnode+http://HOST:PORT,HOST:PORT/DATABASE?PARAMETERS: ${why}`);
  const [, hosts, path = "", query = "", fragment] = /^idnode\+http:\/\/([^/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?(#.*)?$/s.exec(url) ?? [];
  if (/^idnode:\/\//.test(url)) throw wrong("idnode:// names gRPC addresses, and this client calls HTTP ones");
  if (hosts === undefined) throw wrong(`it begins with ${String(url).split(":", 1)[0] || "nothing"}`); // The rest may have a password.
  if (fragment !== undefined) throw wrong("it has a fragment");
  if (hosts.includes("@")) throw wrong("it has a user or a password");
  if (hosts === "") throw wrong("it has no endpoints");
  const database = decoded(path);
  if (database === undefined || path.includes("/")) throw wrong(`${path} is no database`);
  const values = new Map();
  for (const pair of query === "" ? [] : query.split("&")) {
    const [name, ...rest] = pair.split("=");
    const value = decoded(rest.join("="));
    if (!PARAMETERS.includes(name)) throw wrong(`there is no parameter ${name}`);
    if (values.has(name)) throw wrong(`the parameter ${name} is repeated`);
    if (!value || (name === "tls" && value !== "true")) throw wrong(`the parameter ${name} has no value, or a wrong one`);
    values.set(name, value);
  }
  return { endpoints: hosts.split(","), options: optionsOf(database, (name) => values.get(name) ?? "", (name) => name) };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

module.exports = { fromEnv, fromUrl };
