// A client of idnode, which hands out ids that are unique across a cluster.
//
//   const ids = new Client(["a:7402", "b:7402", "c:7402"]);
//   await ids.identity("invoices").next();  // 1n
//   await ids.hilo("users").nextId();       // "users/1-A"
//   await ids.close();                      // gives unused numbers back
//
// It needs nothing but Node, and calls the API as JSON over HTTP. The types are in index.d.ts.
// Whole numbers of 64 bits are BigInts. It is a CommonJS module, which Node imports too, so that
// a program has each class once.

"use strict";

const http = require("node:http");
const https = require("node:https");
const { hostname } = require("node:os");
const { basename } = require("node:path");
const { randomUUID } = require("node:crypto");
const { channel } = require("node:diagnostics_channel");
const {
  IdnodeError, OutcomeUnknownError, NoQuorumError, NoEndpointError, OtherClusterError, OverloadedError, StorageFullError, QuotaError,
  RateLimitedError, ExhaustedError, ConcurrencyError, IdClaimedError, KeyConflictError, SeriesSuspendedError, ReservationExpiredError,
  RequestIdReusedError, RequestIdExpiredError, PermissionDeniedError, NotFoundError, InvalidError, ClosedError, AbortError,
  Failure, copyOf, closedError, aborted, invalid,
} = require("./errors.js");
const {
  ASYNC_DISPOSE, SLICE, now, checkCount, checkNone, checkTime, checkSignal, integer, onAbort, within, wait, sleep, othersTurn, patience, many,
} = require("./waiting.js");
const { Snowflake } = require("./snowflake.js");
const { collectionOf } = require("./collection.js");
const { version } = require("./package.json");

// All times are in milliseconds.
const CONNECT_TIMEOUT = 1500;
const MAX_TRIES = 64; // At a node at once, each with a socket of its own; the others wait. A node has 1,024 for all of an address.
const IDLE_TIMEOUT = 60_000; // Shorter than the two minutes after which a node closes an idle connection.
const FIRST_PAUSE = 25; // Between tries, once every endpoint had its turn.
const LONGEST_PAUSE = 400;
const MAX_OVERLOADS = 3; // More tries would only keep an overload going.
const LOOK_AFTER = 5000; // How old what is known of the leader may get.
const LOOK_SOON = 1000; // The same while no leader is known.
const LOOK_AGAIN = 200; // The least time between two looks, however much fails.
const LOOK_TIMEOUT = 1000;
const SLOW = 300; // When a try without an answer asks whether its node is silent to all.
const SILENT = 200; // How long the node has to say that it is not.
const OTHERS = 300; // How long a client that does not know its cluster waits for the other endpoints after the first one's answer.
const GREET_TIMEOUT = 2000; // Connect, TLS and an answer over a long way.
const GREETED = 30_000; // Unused for longer, an address may have become another's.
const DISTRUST = 2000; // How long a node that failed is asked only if no other is left.
const LARGEST = 32 << 20; // Bytes of an answer.
const FETCH_PAUSE = 100; // After a prefetch that failed.
const LONGEST_FETCH_PAUSE = 10_000;
const MAX_LABEL = 64; // Bytes.

// What programs can watch. The README has the messages. A channel without subscribers costs nothing.
const channels = { call: channel("idnode:call"), retry: channel("idnode:retry"), failover: channel("idnode:failover"), look: channel("idnode:look") };
const max = (a, b) => (a > b ? a : b); // Of BigInts.

function checkId(id) {
  if (id.startsWith("/")) throw invalid("INVALID_ID", "id", "an id must not begin with /");
}

const ENDPOINT = /^(?:(https?):\/\/)?(\[[^[\]\s/@]+\]|[^[\]\s/?#@:]+):(\d{1,5})\/?$/;

// The alerts by which a node refuses a certificate, or the rest of a handshake. With TLS 1.3 the client learns of them only
// after it has sent its request.
const REFUSES_TLS = /_ALERT_(.*CERTIFICATE|UNKNOWN_CA|ACCESS_DENIED|DECRYPT_ERROR|HANDSHAKE_FAILURE)/;

// One address, and the connections to it. fetch cannot show a client certificate, nor
// tell a connection that was never made from an answer that was lost.
class Node {
  suspectUntil = 0;
  greetedUntil = 0; // Until when it counts as a node of the client's cluster: it answered, and no connection broke since.
  #router;
  #options; // Those of every request.
  #headers;
  #connected; // The event of a socket that can be written to.
  #request;
  #agent;
  #dropped = now(); // When idle connections were last dropped.
  #free = MAX_TRIES;
  #waiting = new Set(); // Those that wait for another's end, in order.

  constructor(address, tls, router) {
    this.#router = router;
    const [, scheme = tls ? "https" : "http", host, port] = ENDPOINT.exec(String(address).trim()) ?? [];
    if (!(port >= 1 && port < 2 ** 16)) throw new TypeError(`an endpoint is host:port, or a URL of that, not ${address}`);
    if (tls && scheme === "http") throw new TypeError(`the endpoint ${address} has no TLS`);
    this.address = `${host}:${port}`;
    const library = scheme === "https" ? https : http;
    this.#request = library.request;
    this.#connected = scheme === "https" ? "secureConnect" : "connect";
    // A timeout of the agent's would cost each request a tenth of its rate.
    // Of a name's addresses, one that does not answer does not keep the connection from the next. Node 18 does so only if told.
    this.#agent = new library.Agent({ keepAlive: true, scheduling: "lifo", autoSelectFamily: true, ...tls });
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

  // Begins a try. If MAX_TRIES are in progress, returns the promise of that; one that cannot begin in time did nothing.
  begin(deadline, signal) {
    if (this.#free === 0) return wait(this.#waiting, deadline - now(), signal, () => this.#away(`too many calls wait for ${this.address}`));
    this.#free--;
    return undefined;
  }

  end() {
    const [next] = this.#waiting;
    if (next) next.resolve();
    else this.#free++;
  }

  // Lets those that wait go elsewhere. Nothing of theirs was sent.
  turnAway() {
    for (const { reject } of [...this.#waiting]) reject(this.#away(`${this.address} does not answer`));
  }

  #away(why) {
    return new Failure(why, "unavailable", "NO_ENDPOINT");
  }

  #dropIdle() {
    if (now() - this.#dropped < IDLE_TIMEOUT / 4) return;
    this.#dropped = now();
    for (const socket of Object.values(this.#agent.freeSockets).flat()) if (now() - socket.idleSince > IDLE_TIMEOUT) socket.destroy();
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
    this.#dropIdle();
    const text = JSON.stringify(body);
    const headers = [...this.#headers, ["Content-Length", Buffer.byteLength(text)], ["Connect-Timeout-Ms", Math.max(Math.ceil(timeout), 1)]];
    if (cluster) headers.push(["Idnode-Cluster-Id", cluster]);
    if (traceparent !== undefined) headers.push(["traceparent", traceparent]);
    return new Promise((resolve, reject) => {
      const begin = now();
      const request = this.#request({ ...this.#options, path: `/idnode.v1.${method}`, headers });
      let connected = request.reusedSocket;
      if (!connected) request.once("socket", (socket) => socket.once(this.#connected, () => { connected = true; }));
      const give = (message) => request.destroy(new Error(message));
      const leave = onAbort(signal, () => give("the caller's signal"));
      if (signal?.aborted) give("the caller's signal");
      const check = async () => {
        const age = now() - begin;
        if (age >= timeout) return give("no answer in time");
        if (!connected && age >= CONNECT_TIMEOUT) return give("no connection in time");
        timer = setTimeout(check, Math.min(SLOW, timeout - age));
        if (watched && await this.#router.silent(this)) give("the node is silent");
      };
      let timer = setTimeout(check, Math.min(SLOW, timeout));
      const end = () => {
        clearTimeout(timer);
        leave();
      };
      const fail = (error) => {
        end();
        // Nothing is sent before there is a connection, so nothing happened without one.
        const alert = error.code?.includes("_ALERT_");
        const refused = !request.reusedSocket && REFUSES_TLS.test(error.code);
        const [what, reason] = connected && !refused ? [this.address, ""] : [`cannot reach ${this.address}`, "NO_ENDPOINT"];
        if (!signal?.aborted) this.greetedUntil = 0;
        // What is no HTTP, or no TLS, at all.
        reject(new Failure(`${what}: ${error.message}`, "unavailable", reason, !alert && /^(HPE_INVALID|ERR_SSL|EPROTO)/.test(error.code), error));
      };
      request.on("error", fail);
      request.on("response", (response) => {
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
          const named = response.headers["idnode-cluster-id"];
          if (response.statusCode !== 200) {
            const failure = Failure.of(response.statusCode, answer);
            if (failure.reason === "OTHER_CLUSTER") this.greetedUntil = 0;
            return reject(failure);
          }
          if (cluster && named && named !== cluster) return reject(this.other(named, cluster));
          try {
            if (cluster && !named) throw new Error("the answer names no cluster");
            resolve(read(JSON.parse(answer), named));
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

// Knows the nodes, which of them leads, and how far the cluster's log is.
class Router {
  closed = false;
  #nodes;
  #leader;
  #home = 0; // The endpoint for calls that need no leader.
  newest = 0n; // The newest log index of any answer.
  #newestAt = -Infinity;
  #cluster; // Once known it stays: ranges are of that cluster.
  #sure; // The program has told it, or two endpoints, or the only one.
  #mixed = false; // The endpoints told two clusters.
  #told = new Map(); // The cluster that each endpoint told last.
  #places;
  #newestLook = { began: -Infinity, over: true };

  constructor(addresses, tls, cluster) {
    this.#nodes = addresses.map((address) => new Node(address, tls, this));
    this.#places = new Set(this.#nodes.map(({ address }) => address)).size;
    [this.#cluster, this.#sure] = [cluster, cluster !== ""];
  }

  get size() {
    return this.#nodes.length;
  }

  // Notes a log index. What a node has applied is as new as the answer.
  saw(index, applied = false) {
    if (index > this.newest || (applied && index === this.newest)) {
      this.newest = index;
      this.#newestAt = now();
    }
  }

  // Before a call looks for what is not known, or too old: the cluster, the leader, or the newest log index. The first call waits
  // for all endpoints: they may be of two clusters.
  async prepare(deadline, signal, toLeader, counted) {
    if (!this.#cluster) {
      await this.latest(deadline, signal, LOOK_AGAIN, "heard");
      await this.latest(Math.min((now() + deadline) / 2, now() + OTHERS), signal, LOOK_TIMEOUT, "all");
    }
    if (toLeader && !this.newest) await this.latest(deadline, signal, LOOK_AGAIN, "done");
    else if (counted && now() - this.#newestAt > LOOK_AFTER) await this.latest(deadline, signal, LOOK_AGAIN, "heard");
  }

  // The client's cluster, which each call names; empty before any endpoint has told one. Throws a Failure while they tell two.
  own() {
    if (this.#sure || this.#told.size === 0) return this.#cluster;
    const told = new Map([...this.#told].map(([address, cluster]) => [cluster, address]));
    const [first] = told.keys();
    if (told.size > 1 || first !== (this.#cluster || first)) {
      this.#mixed = true;
      this.#look(LOOK_AGAIN);
      const places = [...told].map(([cluster, address]) => `${cluster} at ${address}`).sort().join(", ");
      const text = `the endpoints are not of one cluster: ${places}; take the others out of the list, or set clusterId`;
      throw new Failure(text, "failed_precondition", "OTHER_CLUSTER", true);
    }
    if (this.#mixed) this.newest = 0n; // It may be another log's.
    this.#mixed = false;
    [this.#cluster, this.#sure] = [first, this.#told.size >= Math.min(2, this.#places)];
    if (!this.#sure) this.#look(LOOK_SOON);
    return this.#cluster;
  }

  // The newest log index after a look, unless one is younger than age.
  async latest(deadline, signal, age, until) {
    await within(this.#look(age)[until], Math.min(LOOK_TIMEOUT, deadline - now()), signal);
    return this.newest;
  }

  // Whether a node says nothing at all while another one does. A call that waits for it goes elsewhere then.
  //
  // To send the call elsewhere unasked, as a hedge ("The Tail at Scale", Dean and Barroso 2013), would double the load of a
  // cluster that is only slow. The question writes nothing, and all calls share it. A node that writes slowly answers it, so
  // a call is sent again for a node that stands still, and for no other reason.
  async silent(node) {
    const look = this.#look(LOOK_AGAIN);
    await within(look.ended?.get(node), look.began + SILENT - now());
    return look.answered?.size > 0 && !look.answered.has(node);
  }

  // The node for the next try: not that of the try before if there is another.
  route(toLeader, last) {
    if (this.closed) throw closedError();
    if (toLeader) {
      this.#look(this.#leader ? LOOK_AFTER : LOOK_SOON);
      if (this.#leader && this.#leader !== last && !this.#leader.suspected) return this.#leader;
    }
    if (!last && !this.#nodes[this.#home].suspected) return this.#nodes[this.#home];
    const start = this.#nodes.includes(last) ? this.#nodes.indexOf(last) + 1 : this.#home;
    const order = this.#nodes.map((_, i) => this.#nodes[(start + i) % this.size]);
    return order.find((node) => node !== last && !node.suspected) ?? order[0];
  }

  failed(node) {
    node.suspectUntil = now() + DISTRUST;
    if (this.size > 1) node.turnAway();
    if (this.#leader === node) this.#lead(undefined);
    if (this.#nodes[this.#home] === node) this.#home = (this.#home + 1) % this.size;
    this.#look(LOOK_AGAIN);
  }

  // Looks for the leader, at all endpoints side by side, unless a look is in progress or younger than age. Returns the newest
  // look. The first node that says of itself that it leads does; nodes hand calls on to one that is no endpoint.
  #look(age) {
    const last = this.#newestLook;
    if (this.closed || !last.over || now() - last.began < age) return last;
    const look = { began: now(), over: false, answered: new Set() };
    const asked = this.#nodes.map((node) => this.greet(node, LOOK_TIMEOUT).then((leads) => {
      look.answered.add(node);
      return { node, leads };
    }, (failure) => {
      // A refusal, as of a node that is overloaded, is an answer.
      if (failure.reason !== "NO_ENDPOINT" && !failure.foreign) look.answered.add(node);
      throw failure;
    }));
    look.all = Promise.allSettled(asked);
    look.ended = new Map(this.#nodes.map((node, i) => [node, asked[i].catch(() => undefined)]));
    const leading = asked.map((answer) => answer.then(({ node, leads }) => (leads ? node : Promise.reject(node))));
    look.heard = Promise.any(asked).catch(() => undefined); // A node has told its index.
    look.done = Promise.any(leading).catch(() => undefined).then((leader) => { // The leader has, or every node.
      if (leader) leader.suspectUntil = 0;
      this.#lead(leader);
      look.over = true;
      if (channels.look.hasSubscribers) {
        channels.look.publish({ leader: leader?.address, answered: [...look.answered].map(({ address }) => address), duration: now() - look.began });
      }
    });
    this.#newestLook = look;
    return look;
  }

  #lead(node) {
    if (node !== this.#leader && channels.failover.hasSubscribers) channels.failover.publish({ from: this.#leader?.address, to: node?.address });
    this.#leader = node;
  }

  // Asks a node whether it leads, and is of the client's cluster. Rejects with a Failure that did nothing.
  async greet(node, timeout, bounds) {
    const { id, index, leads, members, named } = await node.call("ClusterService/GetStatus", {}, Math.min(timeout, GREET_TIMEOUT), statusOf, bounds).catch((failure) => {
      if (!failure.reason || failure.effect === "unknown") Object.assign(failure, { code: "unavailable", reason: "NO_ENDPOINT" });
      if (failure.foreign && failure.reason === "NO_ENDPOINT") failure.message = `${node.address} does not speak idnode's HTTP API: is it the address of --http (7402)? ${failure.message}`;
      throw failure;
    });
    if (!id) throw new Failure(`${node.address} has no cluster yet`, "failed_precondition", "NOT_FORMED"); // It may get any.
    const news = this.#told.get(node.address) !== named;
    if (named) this.#told.set(node.address, named);
    const warn = (text) => news && process.emitWarning(text, "IdnodeWarning");
    if (members === 1 && this.#places > 1) warn(`${node.address} is one of several endpoints, and a cluster of one node (${named})`);
    if (named !== (this.#cluster || id)) {
      const stranger = node.other(named, this.#cluster || id);
      warn(stranger.message);
      throw stranger;
    }
    node.greetedUntil = now() + GREETED;
    this.saw(index, true);
    return leads;
  }

  close() {
    this.closed = true;
    for (const node of this.#nodes) {
      node.turnAway();
      node.close();
    }
  }
}

const statusOf = ({ clusterId, appliedIndex, hasQuorum, leaderTag, self, members = [] }, named) =>
  ({ id: clusterId, named, members: members.length, index: BigInt(appliedIndex), leads: hasQuorum && leaderTag !== "" && leaderTag === self.tag });

// The names of the host and of the program.
function defaultLabel() {
  const names = `${hostname()} ${basename(process.argv[1] ?? process.argv0)}`;
  const label = names.trim().replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu, "");
  return Buffer.from(label).subarray(0, MAX_LABEL).toString().replace(/\uFFFD+$/, ""); // The last character may be cut.
}

class Client {
  #database;
  #timeout;
  #tryTimeout;
  #label;
  #router;
  #closing = false;
  #handles = new Map();
  #leaving = new Set(); // Handles that are closed, and have successors.

  constructor(endpoints, { database = "", tls, timeout = 10_000, tryTimeout = 3000, label = defaultLabel(), clusterId = "", ...unknown } = {}) {
    checkNone(unknown);
    if (typeof clusterId !== "string" || !/^[!-~]{0,64}$/.test(clusterId)) throw new TypeError(`not the id of a cluster: ${clusterId}`);
    if (!Array.isArray(endpoints) || endpoints.length === 0) throw new TypeError("endpoints is a list of at least one address");
    [timeout, tryTimeout].forEach(checkTime);
    this.#database = database;
    this.#timeout = timeout;
    this.#tryTimeout = tryTimeout;
    this.#label = label;
    this.#router = new Router(endpoints, tls, clusterId);
  }

  async next(template, options) {
    return (await this.nextN(template, 1, options))[0];
  }

  async nextN(template, n, { separator = "", claim = false, requestId, ...call } = {}) {
    checkCount(n);
    const identity = template.endsWith("|");
    const numbered = identity || template.endsWith(separator || "/");
    const semantic = !numbered && template.trim() !== "";
    if (semantic) checkId(template);
    const request = { template, separator, count: n, claim, blocksOnly: numbered && n > 1 };
    // What the others take comes from a supply in which holes do not matter.
    const ids = identity || (semantic && claim)
      ? await this._once("Generate", request, { requestId, ...call }, idsOf)
      : await this._invoke("IdsService/Generate", request, call, idsOf, { toLeader: false });
    if (ids.count !== BigInt(n)) throw new IdnodeError(`asked for ${n} ids, got ${ids.count}`);
    return ids.list ?? idsIn(ids.blocks);
  }

  identity(name) {
    return new Identity(this, name);
  }

  async *identities(prefix = "", options = {}) {
    yield* this.#pages("ListIdentities", prefix, options, ({ identities }) => identities.map(({ name, value }) => new Answer({ name, value: BigInt(value) })));
  }

  series(name) {
    return new Series(this, name);
  }

  async claim(id, { separator = "", ...call } = {}) {
    checkId(id);
    await this._once("Claim", { id, separator }, call, () => undefined);
  }

  async release(id, call = {}) {
    await this._once("Release", { id }, call, () => undefined);
  }

  async *claims(prefix = "", options = {}) {
    yield* this.#pages("ListClaims", prefix, options, ({ ids }) => ids.map(String));
  }

  hilo(tag, { separator = "", database = this.#database, firstSize = 0, ...unknown } = {}) {
    checkNone(unknown);
    const make = () => new HiLo(this, database, { tag, separator, size: firstSize, label: this.#label });
    return this.#handle(JSON.stringify([database, tag, separator || "/"]), make);
  }

  snowflake(pool, { database = this.#database, ...unknown } = {}) {
    checkNone(unknown);
    return this.#handle(JSON.stringify([database, pool]), () => new Snowflake(this, database, pool, this.#label));
  }

  // The open handle of a key, which is made if there is none.
  #handle(key, make) {
    if (this.#closing) throw closedError();
    const open = this.#handles.get(key);
    if (open && !open.closed) return open;
    const handle = make();
    if (open) {
      const left = () => this.#leaving.delete(open);
      this.#leaving.add(open);
      open.close().then(left, left);
    }
    this.#handles.set(key, handle);
    return handle;
  }

  async idFor(type, { database, ...call } = {}) {
    if (!type.name) throw new TypeError("a class without a name has no collection");
    return this.hilo(collectionOf(type.name), { database }).nextId(call);
  }

  async close() {
    this.#closing = true;
    const closed = await Promise.allSettled([...this.#handles.values(), ...this.#leaving].map((handle) => handle.close()));
    this.#router.close();
    const failed = closed.find((result) => result.status === "rejected");
    if (failed) throw failed.reason;
  }

  [ASYNC_DISPOSE]() {
    return this.close();
  }

  async *#pages(method, prefix, { stale, ...call }, read) {
    const request = { prefix, pageSize: 1000, consistency: consistency(stale), pageToken: "" };
    do {
      const [found, next] = await this._invoke(`IdsService/${method}`, request, call, (page) => [read(page), page.nextPageToken]);
      yield* found;
      request.pageToken = next;
    } while (request.pageToken);
  }

  // Makes a call that counts once. For this module only.
  _once(method, request, { requestId, ...call }, read, { service = "IdsService", deadline = Infinity } = {}) {
    const own = !requestId;
    if (own) requestId = randomUUID();
    const { id, since } = typeof requestId === "string" ? { id: requestId } : requestId;
    requestId = since === undefined ? { id } : { id, since: /^\d+$/.test(since) && typeof since === "string" ? since : integer(since) };
    return this._invoke(`${service}/${method}`, request, call, read, { requestId, own, deadline });
  }

  get _timeout() {
    return this.#timeout;
  }

  _deadline() {
    return now() + this.#timeout;
  }

  // Makes a call, with what its caller says of it. For this module only.
  _invoke(method, fields, { signal, timeout = this.#timeout, database = this.#database, traceparent, ...unknown }, read, how = {}) {
    checkNone(unknown);
    checkTime(timeout);
    checkSignal(signal);
    const call = { method, request: { ...fields, database }, read, tries: 0, node: undefined, bounds: { watched: true, signal, traceparent } };
    const ended = this.#tries(call, Math.min(how.deadline ?? Infinity, now() + timeout), how);
    return channels.call.hasSubscribers ? told(call, ended) : ended;
  }

  // Makes tries at changing nodes until one gives a final answer or the time is over.
  // With own, no other call has sent the request id. With changes, the call may be repeated without one, but what a lost
  // try has done matters.
  async #tries(call, deadline, { requestId, own = false, changes = false, toLeader = true }) {
    const { request, bounds: { signal } } = call;
    // Whoever names an index has made the call before: until the cluster decides it, its outcome is what it was.
    const repeats = requestId?.since !== undefined;
    if (!signal?.aborted) await this.#router.prepare(deadline, signal, toLeader, requestId !== undefined);
    let node, told, last;
    let lost = false; // A try of this call may have taken effect.
    let unknown = repeats;
    for (let overloads = 0, foreign = 0; ;) {
      if (signal?.aborted) throw aborted(signal, unknown, requestId);
      try {
        node = call.node = this.#router.route(toLeader, node);
      } catch (closed) {
        // The try that closing has cut off may have taken effect.
        throw unknown && told ? told.error(unknown, requestId) : closed;
      }
      call.tries++;
      try {
        return await this.#try(call, node, deadline, () => {
          if (!requestId) return;
          // The first try says it too: the network may hold it up until its retry was forgotten. A try that certainly did nothing
          // is none.
          if (!unknown) requestId = { id: requestId.id, since: this.#router.newest ? String(this.#router.newest) : undefined };
          request.requestId = { id: requestId.id, retrySince: requestId.since };
        });
      } catch (failure) {
        if (!(failure instanceof Failure)) throw failure;
        last = failure;
      }
      // A node that answered tells more than one that was not reached.
      if (!told || last.reason !== "NO_ENDPOINT") told = last;
      lost ||= last.effect === "unknown" && (changes || requestId !== undefined);
      unknown = lost || (repeats && !last.decided);
      if (requestId && unknown) requestId = { ...requestId, since: requestId.since ?? "0" };
      if (signal?.aborted) throw aborted(signal, unknown, requestId);
      // The index named was forgotten before the first try came: begin again, once, with a newer one. No try took
      // effect, and a copy of one that comes late names the old index.
      if (own && !unknown && last.reason === "REQUEST_ID_EXPIRED") {
        own = false;
        if (await this.#router.latest(deadline, signal, 0, "done") > BigInt(requestId.since ?? 0)) {
          node = told = undefined;
          continue;
        }
      }
      const overloaded = last.reason === "OVERLOADED";
      if (overloaded) overloads++;
      // What answers is no node: a mistake if none ever did, or it is another cluster's. Else a proxy may say so for a while.
      const mistaken = last.reason === "OTHER_CLUSTER" || !this.#router.newest;
      foreign = last.foreign && last.effect !== "unknown" && mistaken ? foreign + 1 : 0;
      const pause = overloaded ? Math.max(last.pause, FIRST_PAUSE) : pauseAfter(call.tries - this.#router.size);
      const final = last.effect === "refused" || overloads > MAX_OVERLOADS || foreign >= this.#router.size;
      if (final || now() + pause >= deadline) throw told.error(unknown, requestId);
      if (channels.retry.hasSubscribers) {
        channels.retry.publish({ method: call.method, node: node.address, tries: call.tries, pause, error: last.error(unknown, requestId) });
      }
      if (!overloaded) this.#router.failed(node);
      if (pause > 0) await sleep(pause, signal);
    }
  }

  async #try({ method, request, read, bounds }, node, deadline, ready) {
    const left = () => Math.min(this.#tryTimeout, deadline - now());
    const turn = node.begin(deadline, bounds.signal);
    if (turn) await turn;
    try {
      // Whatever it is, it gets no call.
      if (!this.#router.own() || !node.greeted) await this.#router.greet(node, left(), bounds);
      const own = this.#router.own();
      ready();
      const [got, index] = await node.call(method, request, left(), (answer) => [read(answer), BigInt(answer.logIndex)], bounds, own);
      [node.suspectUntil, node.greetedUntil] = [0, now() + GREETED];
      this.#router.saw(index);
      return got;
    } finally {
      node.end();
    }
  }
}

// Tells those who watch of a call when it has ended.
async function told(call, ended) {
  const begin = now();
  let error;
  try {
    return await ended;
  } catch (failed) {
    error = failed;
    throw failed;
  } finally {
    channels.call.publish({ method: call.method, node: call.node?.address, tries: call.tries, duration: now() - begin, error });
  }
}

// The time until the next try: none while there are endpoints that were not tried yet.
function pauseAfter(round) {
  return round < 0 ? 0 : Math.min(FIRST_PAUSE * 2 ** Math.min(round, 10), LONGEST_PAUSE) * (0.5 + Math.random() / 2);
}

const consistency = (stale = false) => (stale ? "CONSISTENCY_STALE" : "CONSISTENCY_LINEARIZABLE");

// What a call returns. JSON has no BigInts: they are text there, as in the API.
class Answer {
  constructor(fields) {
    Object.assign(this, fields);
  }

  toJSON() {
    return Object.fromEntries(Object.entries(this).map(([name, value]) => [name, typeof value === "bigint" ? String(value) : value]));
  }
}

// How answers are read.
const valueOf = ({ value }) => BigInt(value);
const blocksOf = ({ blocks }) => blocks.map(({ first, last }) => new Answer({ first: BigInt(first), last: BigInt(last) }));

function idsOf({ ids, blocks }) {
  if (ids.length > 0) return { list: ids, count: BigInt(ids.length) };
  const read = blocks.map(({ first, last, prefix, suffix, width }) => ({ first: BigInt(first), last: BigInt(last), prefix, suffix, width }));
  return { blocks: read, count: read.reduce((sum, { first, last }) => sum + last - first + 1n, 0n) };
}

// Makes the ids of blocks, and lets others have their turn between slices of them.
async function idsIn(blocks) {
  const ids = [];
  for (const { first, last, prefix, suffix, width } of blocks) {
    const narrow = last <= Number.MAX_SAFE_INTEGER; // A Number is much faster.
    for (let number = narrow ? Number(first) : first; number <= last; number++) {
      ids.push(prefix + String(number).padStart(width, "0") + suffix);
      if (ids.length % SLICE === 0) await othersTurn();
    }
  }
  return ids;
}

// A counter agreed by the cluster.
class Identity {
  #client;
  #name;

  constructor(client, name) {
    this.#client = client;
    this.#name = name;
  }

  async next(options) {
    return (await this.nextN(1, options))[0].first;
  }

  async nextN(n, { separator = "", ...call } = {}) {
    checkCount(n);
    return this.#client._once("NextIdentity", { name: this.#name, count: n, separator }, call, blocksOf);
  }

  async get({ stale, ...call } = {}) {
    const request = { name: this.#name, consistency: consistency(stale) };
    return this.#client._invoke("IdsService/GetIdentity", request, call, ({ identity }) => valueOf(identity));
  }

  async seed(value, { force = false, expected, ...call } = {}) {
    const request = { name: this.#name, value: integer(value), force, expected: expected === undefined ? undefined : integer(expected) };
    return this.#client._once("SeedIdentity", request, call, valueOf);
  }

  async delete({ forget = false, ...call } = {}) {
    return this.#client._once("DeleteIdentity", { name: this.#name, forget }, call, valueOf);
  }
}

// Gives documents numbers without a hole. No call has a request id: a key has one number,
// however often it is asked for.
class Series {
  #client;
  #name;

  constructor(client, name) {
    this.#client = client;
    this.#name = name;
  }

  async take(keys, { values = {}, date = "", label = "", expiresIn = 0, ...call } = {}) {
    const expires = expiresIn > 0 ? { expiresIn: `${(expiresIn / 1000).toFixed(9)}s` } : {};
    return this.#numbers("TakeNumbers", { keys: listed(keys), values, date, label, ...expires }, call);
  }

  async confirm(numbers, call = {}) {
    return this.#numbers("ConfirmNumbers", { keys: listed(numbers).map(bound) }, call);
  }

  async void(numbers, reason, call = {}) {
    return this.#numbers("VoidNumbers", { keys: listed(numbers).map(bound), reason }, call);
  }

  async release(numbers, call = {}) {
    return this.#numbers("ReleaseNumbers", { keys: listed(numbers).map(bound) }, call);
  }

  async find(key, { stale, ...call } = {}) {
    const request = { series: this.#name, key, consistency: consistency(stale) };
    return this.#client._invoke("SeriesService/WhoHas", request, call, ({ number }) => documentNumber(number));
  }

  #numbers(method, request, call) {
    const read = ({ numbers }) => numbers.map(documentNumber);
    return this.#client._invoke(`SeriesService/${method}`, { series: this.#name, ...request }, call, read, { changes: true });
  }
}

function listed(keys) {
  if (Array.isArray(keys)) return keys;
  throw new TypeError(`an array of keys is expected, not ${keys}`);
}

// A key alone means whatever number it has.
const bound = (number) => (typeof number === "string" ? { key: number } : { key: number.key, number: integer(number.number) });

function documentNumber({ key, text, scope, number, state, overdue, date, label, reason }) {
  return new Answer({ key, text, scope, number: BigInt(number), state: state.replace("NUMBER_STATE_", "").toLowerCase(), overdue, date, label, reason });
}

// Gives the ids of one collection, without a call for most of them. The next range is
// fetched once half of the current one is used.
class HiLo {
  #client;
  #database;
  #fields; // Those of every request.
  #current;
  #ahead;
  #fetching; // The promise of the fetch in progress. It is never rejected.
  #last; // What the next request tells of the ranges before. It belongs to the fetch in progress.
  #again; // The request id of a fetch whose outcome is unknown.
  #waiting = new Set(); // The callers that found no number, in order.
  #pause = FETCH_PAUSE;
  #resume = 0; // When to prefetch again after a failure.
  #closed;

  constructor(client, database, { size, ...fields }) {
    this.#client = client;
    this.#database = database;
    this.#fields = fields;
    this.#last = { size };
  }

  async next(options) {
    return this.#next(patience(options));
  }

  async nextId(options) {
    return (await this.#next(patience(options))).id;
  }

  async nextIds(n, options) {
    checkCount(n);
    return many(n, options, (caller) => {
      const number = this.#next(caller);
      return number instanceof Promise ? number.then(({ id }) => id) : number.id;
    });
  }

  get closed() {
    return this.#closed !== undefined;
  }

  close() {
    this.#closed ??= this.#giveBack();
    return this.#closed;
  }

  [ASYNC_DISPOSE]() {
    return this.close();
  }

  // A number at hand, or the promise of one. The callers share fetches, so that none of them ends one.
  #next({ signal, deadline }) {
    if (this.#closed) throw closedError();
    if (signal?.aborted) throw aborted(signal);
    const number = this.#take();
    if (number) return number;
    const late = () => (signal?.aborted ? aborted(signal) : new NoEndpointError("no range came in time", { code: "unavailable", reason: "NO_ENDPOINT" }));
    const waiting = wait(this.#waiting, deadline - now(), signal, late);
    this.#fetch();
    return waiting;
  }

  // Takes a number; undefined if none is at hand.
  #take() {
    if (!left(this.#current) && this.#ahead) [this.#current, this.#ahead] = [this.#ahead, undefined];
    const range = this.#current;
    if (!left(range)) return undefined;
    const value = range.next++;
    if (range.next > range.half && now() >= this.#resume) this.#fetch();
    return new Answer({ value, nodeTag: range.nodeTag, id: range.prefix + value + (range.nodeTag ? `-${range.nodeTag}` : "") });
  }

  // Fetches a range unless there is one, or one is coming.
  #fetch() {
    if (this.#fetching || this.#ahead) return;
    this.#fetching = this.#fetchOne().then(
      (range) => {
        this.#ahead = range;
        this.#pause = FETCH_PAUSE;
        this.#fetching = undefined;
        this.#serve();
      },
      (error) => {
        // What may have been granted is asked for again, and is no hole then.
        this.#again = error instanceof OutcomeUnknownError ? error.requestId : undefined;
        this.#resume = now() + this.#pause * (0.5 + Math.random() / 2);
        this.#pause = Math.min(2 * this.#pause, LONGEST_FETCH_PAUSE);
        this.#fetching = undefined;
        for (const { reject } of [...this.#waiting]) reject(copyOf(error));
      },
    );
  }

  // Hands numbers to the callers that wait, as far as they go.
  #serve() {
    for (const place of this.#waiting) {
      const number = this.#take();
      if (!number) return this.#fetch();
      place.resolve(number);
    }
  }

  async #fetchOne() {
    const ask = (requestId) => this.#client._once("NextRange", { ...this.#fields, ...this.#last }, { database: this.#database, requestId }, rangeOf);
    const { size, rangeAt, fromReserve, ...range } = await ask(this.#again).catch((error) => {
      if (this.#again && error instanceof RequestIdExpiredError) return ask(); // Nobody will know what the one asked for again was.
      throw error;
    });
    const { low, high } = range;
    const lastMax = BigInt(this.#last.lastMax ?? 0);
    this.#again = undefined;
    if (low < 1n || high < low || (low <= lastMax && !fromReserve)) {
      throw new IdnodeError(`a wrong range: ${low} to ${high} after ${lastMax}`);
    }
    this.#last = { lastSize: size, lastRangeAt: rangeAt ?? undefined, lastMax: max(lastMax, high).toString() };
    return { ...range, next: low, half: low + (high - low) / 2n };
  }

  // Only the newest range of a tag can be given back, so the one ahead goes first. A
  // range that is on its way is given back too.
  async #giveBack() {
    const deadline = this.#client._deadline();
    for (const { reject } of [...this.#waiting]) reject(closedError());
    if (this.#fetching) await within(this.#fetching, deadline - now());
    let failed;
    for (const { low, high, next, token } of [this.#ahead, this.#current].filter(left)) {
      const request = { tag: this.#fields.tag, low: String(low), high: String(high), last: String(next - 1n), token };
      await this.#client._once("ReturnRange", request, { database: this.#database }, () => undefined, { deadline }).catch((error) => { failed ??= error; });
    }
    if (failed) throw failed;
  }
}

function rangeOf({ low, high, prefix, nodeTag, token, size, rangeAt, fromReserve }) {
  if (![prefix, nodeTag, token].every((text) => typeof text === "string")) throw new TypeError("a range has a prefix, a tag and a token");
  return { low: BigInt(low), high: BigInt(high), prefix, nodeTag, token, size: BigInt(size).toString(), rangeAt, fromReserve };
}

const left = (range) => range !== undefined && range.next <= range.high;

module.exports = {
  Client, collectionOf,
  IdnodeError, OutcomeUnknownError, NoQuorumError, NoEndpointError, OtherClusterError, OverloadedError, StorageFullError, QuotaError,
  RateLimitedError, ExhaustedError, ConcurrencyError, IdClaimedError, KeyConflictError, SeriesSuspendedError, ReservationExpiredError,
  RequestIdReusedError, RequestIdExpiredError, PermissionDeniedError, NotFoundError, InvalidError, ClosedError, AbortError,
};
