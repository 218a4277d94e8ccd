// One node: its address, the connections to it, and a try of a call there.

"use strict";

const http = require("node:http");
const https = require("node:https");
const { Failure } = require("./errors.js");
const { now, onAbort, Places } = require("./waiting.js");
const { version } = require("./package.json");

// All times are in milliseconds.
const CONNECT_TIMEOUT = 1500;
const IDLE_TIMEOUT = 60_000; // Shorter than the two minutes after which a node closes an idle connection.
const SLOW = 300; // When a try without an answer asks whether its node is silent to all.
const GREETED = 30_000; // Unused for longer, an address may have become another's.
const LARGEST = 32 << 20; // Bytes of an answer.

const ENDPOINT = /^(?:(https?):\/\/)?(\[[^[\]\s/@]+\]|[^[\]\s/?#@:]+):(\d{1,5})\/?$/;

// The alerts by which a node refuses a certificate, or the rest of a handshake. With TLS 1.3 the client learns of them only
// after it has sent its request.
const REFUSES_TLS = /_ALERT_(.*CERTIFICATE|UNKNOWN_CA|ACCESS_DENIED|DECRYPT_ERROR|HANDSHAKE_FAILURE)/;

// One address, and the connections to it. fetch cannot show a client certificate, nor
// tell a connection that was never made from an answer that was lost.
class Node {
  suspectUntil = 0;
  view; // What it told of the cluster last.
  member; // Its address as the members know it; undefined before it has told the client's cluster, and empty if it has none.
  greetedUntil = 0; // Until when it counts as a node of the client's cluster: it answered, and no connection broke since.
  #router;
  #options; // Those of every request.
  #headers;
  #connected; // The event of a socket that can be written to.
  #request;
  #agent;
  #dropped = now(); // When idle connections were last dropped.
  #places;
  #retired = false;
  #watched = []; // What ends the tries in progress that are over if the node is silent. Each knows its place.

  constructor(address, { tls, maxConnections }, router) {
    this.#router = router;
    const [, scheme = tls ? "https" : "http", host, port] = ENDPOINT.exec(String(address).trim()) ?? [];
    if (!(port >= 1 && port < 2 ** 16)) throw new TypeError(`an endpoint is host:port, or a URL of that, not ${address}`);
    if (tls && scheme === "http") throw new TypeError(`the endpoint ${address} has no TLS`);
    this.address = `${host}:${port}`;
    this.scheme = scheme;
    this.url = `${scheme}://${this.address}`;
    const library = scheme === "https" ? https : http;
    this.#request = library.request;
    this.#connected = scheme === "https" ? "secureConnect" : "connect";
    this.#places = new Places(maxConnections);
    // A look needs a connection beside the call's. A timeout of the agent's would cost each request a tenth of its rate.
    // Of a name's addresses, one that does not answer does not keep the connection from the next. Node 18 does so only if told.
    this.#agent = new library.Agent({ keepAlive: true, scheduling: "lifo", autoSelectFamily: true, maxSockets: Math.max(maxConnections, 2), ...tls?.options });
    const { createConnection } = this.#agent;
    if (tls) this.#agent.createConnection = (options, ...rest) => createConnection.call(this.#agent, { ...options, secureContext: tls.context }, ...rest);
    this.#agent.on("free", (socket) => { socket.idleSince = now(); });
    this.#options = { host: host.replace(/[[\]]/g, ""), port, method: "POST", agent: this.#agent };
    // Pairs are written as they are; an object's would be stored first.
    this.#headers = [["Host", this.address], ["User-Agent", `idnode-node/${version}`], ["Content-Type", "application/json"]];
  }

  get suspected() {
    return now() < this.suspectUntil;
  }

  get greeted() {
    return now() < this.greetedUntil;
  }

  welcome() {
    this.greetedUntil = now() + GREETED;
  }

  // Begins a try. If it has no place yet, returns the promise of one; a try that cannot begin in time did nothing.
  begin(decided, deadline, signal) {
    return this.#places.take(decided, deadline, signal, () => this.late());
  }

  late() {
    return new Failure(`no connection to ${this.address} came free in time: other calls wait for it`, "resource_exhausted", "OVERLOADED");
  }

  end(decided) {
    this.#places.give(decided);
    this.#retireIfIdle();
  }

  // Closes the connections once the tries in progress have ended.
  retire() {
    this.turnAway();
    this.#retired = true;
    this.#retireIfIdle();
  }

  #retireIfIdle() {
    if (this.#retired && this.#places.idle) this.close();
  }

  // Ends the tries that are watched: the node is silent.
  leave() {
    for (const end of [...this.#watched]) end();
  }

  // The last one takes the place. The tables that a Set has outgrown would keep tries from being collected: a call would cost 40 % more.
  #unwatch(end) {
    const { place } = end;
    if (place === undefined) return;
    end.place = undefined;
    const last = this.#watched.pop();
    if (last === end) return;
    this.#watched[place] = last;
    last.place = place;
  }

  // Lets those that wait go elsewhere. Nothing of theirs was sent.
  turnAway() {
    this.#places.clear(() => new Failure(`${this.address} does not answer`, "unavailable", "NO_ENDPOINT"));
  }

  #dropIdle(time) {
    this.#dropped = now();
    for (const socket of Object.values(this.#agent.freeSockets).flat()) if (now() - socket.idleSince >= time) socket.destroy();
  }

  // A node of another cluster than the client's.
  other(cluster, own) {
    this.greetedUntil = 0;
    const text = `the node at ${this.address} belongs to cluster ${cluster || "(it names none)"}, and this client to cluster ${own}`;
    return new Failure(text, "failed_precondition", "OTHER_CLUSTER", true);
  }

  // Makes one try for a cluster, which is over early if the signal is aborted, or the node watched and silent. What cannot be
  // read is not an answer of a node, nor is one that does not name the call's cluster. Rejects with a Failure.
  call(method, body, timeout, read, { watched = false, signal, traceparent } = {}, cluster = undefined) {
    if (now() - this.#dropped >= IDLE_TIMEOUT / 4) this.#dropIdle(IDLE_TIMEOUT);
    const text = JSON.stringify(body);
    const headers = [...this.#headers, ["Content-Length", Buffer.byteLength(text)], ["Connect-Timeout-Ms", Math.max(Math.ceil(timeout), 1)]];
    if (cluster) headers.push(["Idnode-Cluster-Id", cluster]);
    if (traceparent !== undefined) headers.push(["traceparent", traceparent]);
    return new Promise((resolve, reject) => {
      const begin = now();
      const request = this.#request({ ...this.#options, path: `/idnode.v1.${method}`, headers });
      let connected = request.reusedSocket;
      if (!connected) request.once("socket", (socket) => socket.once(this.#connected, () => { connected = true; }));
      let late = false;
      const give = (message) => request.destroy(new Error(message));
      const giveUp = (message) => {
        late = true;
        give(message);
      };
      const leave = onAbort(signal, () => give("the caller's signal"));
      if (signal?.aborted) give("the caller's signal");
      const silent = () => giveUp("the node is silent");
      if (watched) silent.place = this.#watched.push(silent) - 1;
      const check = async () => {
        const age = now() - begin;
        if (age >= timeout) return giveUp("no answer in time");
        if (!connected && age >= CONNECT_TIMEOUT) return giveUp("no connection in time");
        timer = setTimeout(check, Math.min(SLOW, timeout - age));
        if (watched && await this.#router.silent(this)) silent();
      };
      let timer = setTimeout(check, Math.min(SLOW, timeout));
      const end = () => {
        clearTimeout(timer);
        request.off("close", closed);
        leave();
        this.#unwatch(silent);
      };
      const fail = (error) => {
        end();
        // Nothing is sent before there is a connection, so nothing happened without one.
        const alert = error.code?.includes("_ALERT_");
        const refused = !request.reusedSocket && REFUSES_TLS.test(error.code);
        const [what, reason] = connected && !refused ? [this.address, ""] : [`cannot reach ${this.address}`, "NO_ENDPOINT"];
        if (!signal?.aborted) {
          this.greetedUntil = 0;
          this.#router.unanswered(begin);
        }
        // What is no HTTP, or no TLS, at all.
        const foreign = !alert && /^(HPE_INVALID|ERR_SSL|EPROTO)/.test(error.code);
        reject(Object.assign(new Failure(`${what}: ${error.message}`, "unavailable", reason, foreign, error), { late }));
      };
      const closed = () => fail(new Error("the connection ended without an answer")); // All that Node tells of one that switches protocols.
      request.on("error", fail);
      request.on("close", closed);
      request.on("response", (response) => {
        request.off("close", closed); // The response tells its end, also of one that is cut off.
        const { socket } = response;
        const parts = [];
        let room = LARGEST;
        response.on("data", (part) => {
          parts.push(part);
          room -= part.length;
          if (room < 0) give("the answer is too large");
        });
        response.on("error", fail);
        response.on("end", () => {
          end();
          const answer = (parts.length === 1 ? parts[0] : Buffer.concat(parts)).toString();
          const { "idnode-cluster-id": named, "idnode-term": term, "idnode-leader-address": leader } = response.headers;
          if (cluster && named === cluster) this.#router.heard(term, leader);
          if (response.statusCode !== 200) {
            const failure = Failure.of(response.statusCode, answer);
            if (failure.reason === "CERTIFICATE_ENDED") { // The other connections show the same certificate.
              socket.destroy();
              this.#dropIdle(0);
            }
            if (failure.reason) this.#router.answered();
            if (failure.reason === "OTHER_CLUSTER") this.greetedUntil = 0;
            return reject(failure);
          }
          if (cluster && named && named !== cluster) return reject(this.other(named, cluster));
          try {
            if (cluster && !named) throw new Error("the answer names no cluster");
            const got = read(JSON.parse(answer), response.headers);
            this.#router.answered();
            resolve(got);
          } catch (error) {
            this.greetedUntil = 0;
            reject(new Failure(`${this.address}: this is not an answer of a node`, "internal", "", true, error));
          }
        });
      });
      request.end(text);
    });
  }

  close() {
    this.#agent.destroy();
  }
}

// Whether a member's address can be called, and is written as that of a Node.
function isAddress(text) {
  const [, scheme, host, port] = ENDPOINT.exec(text) ?? [];
  return !scheme && port >= 1 && port < 2 ** 16 && text === `${host}:${port}`;
}

module.exports = { GREETED, Node, isAddress };
