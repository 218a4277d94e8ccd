// The endpoints and options of a client, from the environment or a URL.

"use strict";

// The variables and the parameters have the names of the command line's flags.
const PARAMETERS = ["tls", "tls-ca", "tls-cert", "tls-key", "tls-server-name", "cluster-id"];

function optionsOf(database, value) {
  const files = { ca: value("tls-ca"), cert: value("tls-cert"), key: value("tls-key"), servername: value("tls-server-name") };
  const tls = Object.fromEntries(Object.entries(files).filter(([, text]) => text));
  const secure = value("tls") || Object.keys(tls).length > 0;
  return { database, clusterId: value("cluster-id"), ...(secure ? { tls } : {}) };
}

function fromEnv(env) {
  const endpoints = (env.IDNODE_ENDPOINTS ?? "").split(",").map((text) => text.trim()).filter(Boolean);
  if (endpoints.length === 0) throw new TypeError("IDNODE_ENDPOINTS names no endpoint: a list of the nodes' HTTP addresses, such as a:7402,b:7402");
  const value = (name) => (name === "tls" ? "" : env[`IDNODE_${name.toUpperCase().replaceAll("-", "_")}`] ?? "");
  return { endpoints, options: optionsOf(env.IDNODE_DATABASE ?? "", value) };
}

function fromUrl(url) {
  const wrong = (why) => new TypeError(`a URL is idnode://HOST:PORT,HOST:PORT/DATABASE?PARAMETERS: ${why}`);
  const decoded = (text) => {
    try {
      return decodeURIComponent(text);
    } catch {
      throw wrong(`${text} is not percent-encoded`);
    }
  };
  const [, scheme, hosts, path = "", query = "", fragment] = /^(?:([^:/?#]*):\/\/)?([^/?#]*)(?:\/([^?#]*))?(?:\?([^#]*))?(#.*)?$/s.exec(url) ?? [];
  if (scheme !== "idnode") throw wrong(`the scheme is ${scheme || "missing"}`);
  if (hosts.includes("@")) throw wrong("it has a user or a password, which idnode does not know"); // They are not shown.
  if (fragment !== undefined) throw wrong(`it has the fragment ${fragment}`);
  if (path.includes("/")) throw wrong(`the path /${path} is longer than a database`);
  const values = new Map();
  for (const pair of query.split("&").filter(Boolean)) {
    const [name, value] = [pair.split("=", 1)[0], pair.slice(pair.indexOf("=") + 1 || pair.length)].map(decoded);
    if (!PARAMETERS.includes(name)) throw wrong(`there is no parameter ${name}`);
    if (values.has(name)) throw wrong(`the parameter ${name} comes twice`);
    if (name === "tls" && value !== "true") throw wrong(`tls is true or not there, not ${value}`);
    values.set(name, value);
  }
  return { endpoints: hosts.split(",").map(decoded), options: optionsOf(decoded(path), (name) => values.get(name) ?? "") };
}

module.exports = { fromEnv, fromUrl };
