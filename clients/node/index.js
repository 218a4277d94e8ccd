// A client of idnode, which hands out ids that are unique across a cluster.
//
//   const ids = new Client(["a:7402", "b:7402", "c:7402"]);
//   await ids.next("invoices|");            // "invoices/1"
//   await ids.identity("invoices").next();  // 2n
//   await ids.hilo("users").nextId();       // "users/1-A"
//   await ids.close();                      // gives unused numbers back
//
// It is one file that needs nothing but Node, and calls the API as JSON over HTTP. The
// types are in index.d.ts. Whole numbers of 64 bits are BigInts.

import http from "node:http";
import https from "node:https";
import { randomBytes } from "node:crypto";

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
const GREET_TIMEOUT = 2000; // Connect, TLS and an answer over a long way.
const GREETED = 30_000; // Unused for longer, an address may have become another's.
const DISTRUST = 2000; // How long a node that failed is asked only if no other is left.
const LARGEST = 32 << 20; // Bytes of an answer.
const FETCH_PAUSE = 100; // After a prefetch that failed.
const LONGEST_FETCH_PAUSE = 10_000;

const now = () => performance.now();
const max = (a, b) => (a > b ? a : b); // Of BigInts.

export class IdnodeError extends Error {
  code = "unknown";
  reason = "";
  field = "";
  requestId = undefined;
  ids = [];

  constructor(message, { cause, ...details } = {}) {
    const name = details.reason || details.code;
    super((name ? `${name}: ` : "") + message + (details.field ? ` (field ${details.field})` : ""), { cause });
    Object.assign(this, details);
    this.name = new.target.name;
  }
}

// An error of a caller's own, with its stack.
function copyOf(error) {
  const { code, reason, field, requestId, cause } = error;
  return Object.assign(new error.constructor(error.message, { cause }), { code, reason, field, requestId });
}

export class OutcomeUnknownError extends IdnodeError {}
export class NoQuorumError extends IdnodeError {}
export class NoEndpointError extends IdnodeError {}
export class OtherClusterError extends IdnodeError {}
export class OverloadedError extends IdnodeError {}
export class StorageFullError extends IdnodeError {}
export class QuotaError extends IdnodeError {}
export class RateLimitedError extends IdnodeError {}
export class ExhaustedError extends IdnodeError {}
export class ConcurrencyError extends IdnodeError {}
export class IdClaimedError extends IdnodeError {}
export class KeyConflictError extends IdnodeError {}
export class SeriesSuspendedError extends IdnodeError {}
export class ReservationExpiredError extends IdnodeError {}
export class RequestIdReusedError extends IdnodeError {}
export class RequestIdExpiredError extends IdnodeError {}
export class PermissionDeniedError extends IdnodeError {}
export class NotFoundError extends IdnodeError {}
export class InvalidError extends IdnodeError {}
export class ClosedError extends IdnodeError {}

const BY_REASON = {
  OUTCOME_UNKNOWN: OutcomeUnknownError, NO_QUORUM: NoQuorumError, NO_ENDPOINT: NoEndpointError,
  OTHER_CLUSTER: OtherClusterError,
  OVERLOADED: OverloadedError, STORAGE_FULL: StorageFullError, QUOTA: QuotaError, RATE_LIMITED: RateLimitedError,
  COUNTER_EXHAUSTED: ExhaustedError, CONCURRENCY: ConcurrencyError, ID_CLAIMED: IdClaimedError,
  REQUEST_ID_REUSED: RequestIdReusedError, REQUEST_ID_EXPIRED: RequestIdExpiredError,
  PERMISSION_DENIED: PermissionDeniedError, KEY_CONFLICT: KeyConflictError, SERIES_SUSPENDED: SeriesSuspendedError,
  RESERVATION_EXPIRED: ReservationExpiredError,
};
const BY_CODE = { not_found: NotFoundError, invalid_argument: InvalidError };

const closedError = () => new ClosedError("the client or the handle is closed", { code: "canceled", reason: "CLIENT_CLOSED" });
const invalid = (reason, field, message) => new InvalidError(message, { code: "invalid_argument", reason, field });

function checkCount(n) {
  if (!Number.isSafeInteger(n) || n < 1) throw invalid("INVALID_COUNT", "count", "it must be a whole number of at least 1");
}

// Refuses options that a call does not have: one that is misspelt would do nothing.
function checkNone(unknown) {
  const names = Object.keys(unknown);
  if (names.length > 0) throw new TypeError(`there is no option ${names.join(", ")}`);
}

// A whole number as the API writes it. A Number above 2^53 may be another one than its caller wrote.
function integer(value) {
  if (typeof value === "bigint" || Number.isSafeInteger(value)) return String(value);
  throw new TypeError(`a BigInt or a safe integer is expected, not ${value}`);
}

function checkId(id) {
  if (id.startsWith("/")) throw invalid("INVALID_ID", "id", "an id must not begin with /");
}

// A failed try.
class Failure extends Error {
  constructor(message, code, reason = "", foreign = false, cause = undefined) {
    super(message, { cause });
    Object.assign(this, { code, reason, foreign, field: "", pause: 0 });
  }

  // What the try may have done: "nothing", which is "unknown", or "refused" for good.
  get effect() {
    if (this.reason === "OUTCOME_UNKNOWN") return "unknown";
    if (["OVERLOADED", "TAG_NOT_ASSIGNED", "NOT_FORMED", "TAG_NOT_MEMBER", "CORRUPT", "OTHER_CLUSTER"].includes(this.reason)) return "nothing";
    if (this.reason) return { unavailable: "nothing", internal: "unknown" }[this.code] ?? "refused";
    // Not an answer of idnode's, or no answer at all.
    if (this.code === "unimplemented") return "nothing";
    return ["invalid_argument", "permission_denied", "unauthenticated"].includes(this.code) ? "refused" : "unknown";
  }

  // Whether the state of the cluster refused the call, and not a node before it came there.
  get decided() {
    return this.reason !== "" && this.effect === "refused" && !["resource_exhausted", "permission_denied"].includes(this.code);
  }

  error(unknown, requestId) {
    // It is not a node of idnode's, or a call whose repetition changes nothing that matters.
    const reason = !this.reason && !unknown && this.effect !== "refused" ? "NO_ENDPOINT" : this.reason;
    const Kind = unknown ? OutcomeUnknownError : BY_REASON[reason] ?? BY_CODE[this.code] ?? IdnodeError;
    return new Kind(this.message, { code: this.code, reason, field: this.field, requestId, cause: this.cause });
  }

  // Reads the answer to a call that a node, or something before it, refused.
  static of(status, body) {
    const foreign = status < 500 && ![408, 429].includes(status); // Nobody between here and a node passed the call on.
    const codes = { 401: "unauthenticated", 403: "permission_denied" };
    const failure = new Failure(`HTTP status ${status}`, codes[status] ?? (foreign ? "unimplemented" : "unavailable"), "", foreign);
    try {
      const { code, message = "", details = [] } = JSON.parse(body);
      if (typeof code !== "string") return failure;
      Object.assign(failure, { code, message });
      for (const { debug = {} } of details) {
        if (debug.domain === "idnode") Object.assign(failure, { reason: debug.reason, foreign: false });
        for (const violation of debug.fieldViolations ?? []) failure.field = violation.field;
        if (debug.retryDelay) failure.pause = parseFloat(debug.retryDelay) * 1000;
      }
    } catch {
      // It is not a node that answers.
    }
    return failure;
  }
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
  #options; // Those of every request.
  #connected; // The event of a socket that can be written to.
  #request;
  #agent;
  #dropped = now(); // When idle connections were last dropped.
  #free = MAX_TRIES;
  #waiting = new Set(); // Those that wait for another's end, in order.

  constructor(address, tls) {
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
  }

  get suspected() {
    return now() < this.suspectUntil;
  }

  get greeted() {
    return now() < this.greetedUntil;
  }

  // Makes one try, which is over early if the node is silent. What cannot be read is not an answer of a node. Rejects with
  // a Failure.
  async call(method, body, timeout, read, silent = async () => false) {
    const { status, text } = await this.#post(`/idnode.v1.${method}`, JSON.stringify(body), Math.max(Math.ceil(timeout), 1), silent);
    if (status !== 200) throw Failure.of(status, text);
    try {
      return read(JSON.parse(text));
    } catch (error) {
      throw new Failure(`${this.address}: this is not an answer of a node`, "internal", "", true, error);
    }
  }

  // Makes a try once fewer than MAX_TRIES are in progress. One that cannot begin in time did nothing.
  async turn(deadline, attempt) {
    if (this.#free > 0) this.#free--;
    else await this.#begin(deadline);
    try {
      return await attempt();
    } finally {
      const [next] = this.#waiting;
      if (next) next.begin();
      else this.#free++;
    }
  }

  #begin(deadline) {
    return new Promise((resolve, reject) => {
      const end = (settle, value) => {
        clearTimeout(late);
        this.#waiting.delete(waiter);
        settle(value);
      };
      const giveUp = (why) => end(reject, new Failure(why, "unavailable", "NO_ENDPOINT"));
      const waiter = { begin: () => end(resolve), giveUp };
      const late = setTimeout(giveUp, deadline - now(), `too many calls wait for ${this.address}`);
      this.#waiting.add(waiter);
    });
  }

  // Lets those that wait go elsewhere. Nothing of theirs was sent.
  turnAway() {
    for (const { giveUp } of [...this.#waiting]) giveUp(`${this.address} does not answer`);
  }

  #dropIdle() {
    if (now() - this.#dropped < IDLE_TIMEOUT / 4) return;
    this.#dropped = now();
    for (const socket of Object.values(this.#agent.freeSockets).flat()) if (now() - socket.idleSince > IDLE_TIMEOUT) socket.destroy();
  }

  #post(path, body, timeout, silent) {
    this.#dropIdle();
    return new Promise((resolve, reject) => {
      let connected = false;
      const headers = { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body), "Connect-Timeout-Ms": timeout };
      const request = this.#request({ ...this.#options, path, headers });
      const give = (message) => request.destroy(new Error(message));
      const whole = setTimeout(give, timeout, "no answer in time");
      const connecting = setTimeout(() => connected || give("no connection in time"), CONNECT_TIMEOUT);
      const slow = setInterval(async () => { if (await silent()) give("the node is silent"); }, SLOW);
      const end = (settle, value) => {
        [whole, connecting, slow].forEach(clearTimeout);
        settle(value);
      };
      const fail = (error) => {
        // Nothing is sent before there is a connection, so nothing happened without one.
        const alert = error.code?.includes("_ALERT_");
        const refused = !request.reusedSocket && REFUSES_TLS.test(error.code);
        const [what, reason] = connected && !refused ? [this.address, ""] : [`cannot reach ${this.address}`, "NO_ENDPOINT"];
        this.greetedUntil = 0;
        // What is no HTTP, or no TLS, at all.
        end(reject, new Failure(`${what}: ${error.message}`, "unavailable", reason, !alert && /^(HPE_INVALID|ERR_SSL|EPROTO)/.test(error.code), error));
      };
      request.on("socket", (socket) => {
        if (request.reusedSocket) connected = true;
        else socket.once(this.#connected, () => { connected = true; });
      });
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
        response.on("end", () => end(resolve, { status: response.statusCode, text: Buffer.concat(parts).toString() }));
      });
      request.end(body);
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
  #cluster; // That of the first node that answered.
  #newestLook = { began: -Infinity, over: true };

  constructor(addresses, tls) {
    this.#nodes = addresses.map((address) => new Node(address, tls));
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

  // The newest log index before a call. It is looked for if none, or only an old one, is known.
  async index(deadline, toLeader, counted) {
    if (toLeader && !this.newest) return this.latest(deadline, LOOK_AGAIN, "done");
    if (counted && now() - this.#newestAt > LOOK_AFTER) return this.latest(deadline, LOOK_AGAIN, "heard");
    return this.newest;
  }

  // The same after a look, unless one is younger than age.
  async latest(deadline, age, until) {
    await within(this.#look(age)[until], Math.min(LOOK_TIMEOUT, deadline - now()));
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
    const start = this.#nodes.includes(last) ? this.#nodes.indexOf(last) + 1 : this.#home;
    const order = this.#nodes.map((_, i) => this.#nodes[(start + i) % this.size]);
    return order.find((node) => node !== last && !node.suspected) ?? order[0];
  }

  failed(node) {
    node.suspectUntil = now() + DISTRUST;
    if (this.size > 1) node.turnAway();
    if (this.#leader === node) this.#leader = undefined;
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
    look.ended = new Map(this.#nodes.map((node, i) => [node, asked[i].catch(() => undefined)]));
    const leading = asked.map((answer) => answer.then(({ node, leads }) => (leads ? node : Promise.reject(node))));
    look.heard = Promise.any(asked).catch(() => undefined); // A node has told its index.
    look.done = Promise.any(leading).catch(() => undefined).then((leader) => { // The leader has, or every node.
      if (leader) leader.suspectUntil = 0;
      this.#leader = leader;
      look.over = true;
    });
    this.#newestLook = look;
    return look;
  }

  // Asks a node whether it leads, and is of the client's cluster. Rejects with a Failure that did nothing.
  async greet(node, timeout, silent) {
    const { id, index, leads } = await node.call("ClusterService/GetStatus", {}, Math.min(timeout, GREET_TIMEOUT), statusOf, silent).catch((failure) => {
      if (!failure.reason || failure.effect === "unknown") Object.assign(failure, { code: "unavailable", reason: "NO_ENDPOINT" });
      if (failure.foreign) failure.message = `${node.address} does not speak idnode's HTTP API: is it the address of --http (7402)? ${failure.message}`;
      throw failure;
    });
    if (!id) throw new Failure(`${node.address} has no cluster yet`, "failed_precondition", "NOT_FORMED"); // It may get any.
    this.#cluster ??= id;
    node.greetedUntil = id === this.#cluster ? now() + GREETED : 0;
    if (!node.greeted) {
      const text = `the node at ${node.address} belongs to cluster ${id}, and this client to cluster ${this.#cluster}`;
      throw new Failure(text, "failed_precondition", "OTHER_CLUSTER", true);
    }
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

const statusOf = ({ clusterId, appliedIndex, hasQuorum, leaderTag, self }) =>
  ({ id: clusterId, index: BigInt(appliedIndex), leads: hasQuorum && leaderTag !== "" && leaderTag === self.tag });

// Waits for a promise, but not longer than for a time.
async function within(promise, time) {
  let timer;
  await Promise.race([promise, new Promise((resolve) => { timer = setTimeout(resolve, Math.max(time, 0)); })]);
  clearTimeout(timer);
}

const sleep = (time) => new Promise((resolve) => { setTimeout(resolve, time); });

export class Client {
  #database;
  #timeout;
  #tryTimeout;
  #label;
  #router;
  #closing = false;
  #handles = new Map();

  constructor(endpoints, { database = "", tls, timeout = 10_000, tryTimeout = 3000, label = "", ...unknown } = {}) {
    checkNone(unknown);
    if (!Array.isArray(endpoints) || endpoints.length === 0) throw new TypeError("endpoints is a list of at least one address");
    // A longer timer of Node's fires at once.
    if (![timeout, tryTimeout].every((time) => time > 0 && time < 2 ** 31)) throw new RangeError("a timeout is above zero and below 2^31 ms");
    this.#database = database;
    this.#timeout = timeout;
    this.#tryTimeout = tryTimeout;
    this.#label = label;
    this.#router = new Router(endpoints, tls);
  }

  async next(template, options) {
    return (await this.nextN(template, 1, options))[0];
  }

  async nextN(template, n, { separator = "", claim = false, requestId, ...unknown } = {}) {
    checkNone(unknown);
    checkCount(n);
    const identity = template.endsWith("|");
    const numbered = identity || template.endsWith(separator || "/");
    const semantic = !numbered && template.trim() !== "";
    if (semantic) checkId(template);
    const request = { template, separator, count: n, claim, blocksOnly: numbered && n > 1 };
    // What the others take comes from a supply in which holes do not matter.
    const ids = identity || (semantic && claim)
      ? await this._once("Generate", request, requestId, idsOf)
      : await this._invoke("IdsService/Generate", request, idsOf, { toLeader: false });
    if (ids.length !== n) throw new IdnodeError(`asked for ${n} ids, got ${ids.length}`);
    return ids;
  }

  identity(name) {
    return new Identity(this, name);
  }

  async *identities(prefix = "", options = {}) {
    yield* this.#pages("ListIdentities", prefix, options, ({ identities }) => identities.map(({ name, value }) => ({ name, value: BigInt(value) })));
  }

  series(name) {
    return new Series(this, name);
  }

  async claim(id, { separator = "", requestId, ...unknown } = {}) {
    checkNone(unknown);
    checkId(id);
    await this._once("Claim", { id, separator }, requestId, () => undefined);
  }

  async release(id, { requestId, ...unknown } = {}) {
    checkNone(unknown);
    await this._once("Release", { id }, requestId, () => undefined);
  }

  async *claims(prefix = "", options = {}) {
    yield* this.#pages("ListClaims", prefix, options, ({ ids }) => ids.map(String));
  }

  hilo(tag, { separator = "", firstSize = 0, ...unknown } = {}) {
    checkNone(unknown);
    if (this.#closing) throw closedError();
    const key = JSON.stringify([tag, separator || "/"]);
    if (!this.#handles.has(key)) this.#handles.set(key, new HiLo(this, { tag, separator, size: firstSize, label: this.#label }));
    return this.#handles.get(key);
  }

  async idFor(type) {
    return this.hilo(collectionOf(type.name)).nextId();
  }

  async close() {
    this.#closing = true;
    const closed = await Promise.allSettled([...this.#handles.values()].map((handle) => handle.close()));
    this.#router.close();
    const failed = closed.find((result) => result.status === "rejected");
    if (failed) throw failed.reason;
  }

  async *#pages(method, prefix, options, read) {
    const request = { prefix, pageSize: 1000, consistency: consistency(options), pageToken: "" };
    do {
      const [found, next] = await this._invoke(`IdsService/${method}`, request, (page) => [read(page), page.nextPageToken]);
      yield* found;
      request.pageToken = next;
    } while (request.pageToken);
  }

  // Makes a call that counts once. For this module only.
  _once(method, request, requestId, read, deadline = Infinity) {
    const own = !requestId;
    if (own) requestId = randomBytes(16).toString("hex");
    if (typeof requestId === "string") requestId = { id: requestId };
    return this._invoke(`IdsService/${method}`, request, read, { requestId, own, deadline });
  }

  _deadline() {
    return now() + this.#timeout;
  }

  // Makes tries at changing nodes until one gives a final answer or the time is over.
  // With own, no other call has sent the request id. With changes, the call may be repeated without one, but what a lost
  // try has done matters. For this module only.
  async _invoke(method, fields, read, { requestId, own = false, changes = false, toLeader = true, deadline = Infinity } = {}) {
    deadline = Math.min(deadline, this._deadline());
    // Whoever names an index has made the call before: until the cluster decides it, its outcome is what it was.
    const repeats = requestId?.since !== undefined;
    const index = await this.#router.index(deadline, toLeader, requestId !== undefined);
    // The first try says it too: the network may hold it up until its retry was forgotten.
    if (requestId && requestId.since === undefined && index) requestId = { ...requestId, since: index };
    let node, told, last;
    let lost = false; // A try of this call may have taken effect.
    let unknown = repeats;
    for (let tries = 1, overloads = 0, foreign = 0; ; tries++) {
      const request = { ...fields, database: this.#database };
      if (requestId) request.requestId = { id: requestId.id, retrySince: requestId.since === undefined ? undefined : integer(requestId.since) };
      try {
        node = this.#router.route(toLeader, node);
      } catch (closed) {
        // The try that closing has cut off may have taken effect.
        throw unknown && told ? told.error(unknown, requestId) : closed;
      }
      try {
        const silent = () => this.#router.silent(node);
        const [got, index] = await node.turn(deadline, async () => {
          if (!node.greeted) await this.#router.greet(node, Math.min(this.#tryTimeout, deadline - now()), silent); // Whatever it is, it gets no call.
          return node.call(method, request, Math.min(this.#tryTimeout, deadline - now()), (answer) => [read(answer), BigInt(answer.logIndex)], silent);
        });
        [node.suspectUntil, node.greetedUntil] = [0, now() + GREETED];
        this.#router.saw(index);
        return got;
      } catch (failure) {
        if (!(failure instanceof Failure)) throw failure;
        last = failure;
      }
      // A node that answered tells more than one that was not reached.
      if (!told || last.reason !== "NO_ENDPOINT") told = last;
      lost ||= last.effect === "unknown" && (changes || requestId !== undefined);
      unknown = lost || (repeats && !last.decided);
      if (requestId) {
        requestId = { ...requestId, since: requestId.since ?? 0n };
        // The index named was forgotten before the first try came: begin again, once, with a newer one. No try took
        // effect, and a copy of one that comes late names the old index.
        if (own && !unknown && last.reason === "REQUEST_ID_EXPIRED") {
          own = false;
          const newest = await this.#router.latest(deadline, 0, "done");
          if (newest > requestId.since) {
            [requestId, node, told] = [{ ...requestId, since: newest }, undefined, undefined];
            continue;
          }
        }
      }
      const overloaded = last.reason === "OVERLOADED";
      if (overloaded) overloads++;
      // What answers is no node: a mistake if none ever did, or it is another cluster's. Else a proxy may say so for a while.
      const mistaken = last.reason === "OTHER_CLUSTER" || !this.#router.newest;
      foreign = last.foreign && last.effect !== "unknown" && mistaken ? foreign + 1 : 0;
      const pause = overloaded ? Math.max(last.pause, FIRST_PAUSE) : pauseAfter(tries - this.#router.size);
      const final = last.effect === "refused" || overloads > MAX_OVERLOADS || foreign >= this.#router.size;
      if (final || now() + pause >= deadline) {
        throw told.error(unknown, requestId);
      }
      if (!overloaded) this.#router.failed(node);
      if (pause > 0) await sleep(pause);
    }
  }
}

// The time until the next try: none while there are endpoints that were not tried yet.
function pauseAfter(round) {
  return round < 0 ? 0 : Math.min(FIRST_PAUSE * 2 ** Math.min(round, 10), LONGEST_PAUSE) * (0.5 + Math.random() / 2);
}

function consistency({ stale = false, ...unknown }) {
  checkNone(unknown);
  return stale ? "CONSISTENCY_STALE" : "CONSISTENCY_LINEARIZABLE";
}

// How answers are read.
const idsOf = ({ ids, blocks }) => (ids.length > 0 ? ids : blocks.flatMap((block) =>
  [...numbers(block)].map((number) => block.prefix + String(number).padStart(block.width, "0") + block.suffix)));
const valueOf = ({ value }) => BigInt(value);
const blocksOf = ({ blocks }) => blocks.map(({ first, last }) => ({ first: BigInt(first), last: BigInt(last) }));

function* numbers({ first, last }) {
  for (let number = BigInt(first); number <= BigInt(last); number++) yield number;
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

  async nextN(n, { separator = "", requestId, ...unknown } = {}) {
    checkNone(unknown);
    checkCount(n);
    return this.#client._once("NextIdentity", { name: this.#name, count: n, separator }, requestId, blocksOf);
  }

  async get(options = {}) {
    const request = { name: this.#name, consistency: consistency(options) };
    return this.#client._invoke("IdsService/GetIdentity", request, ({ identity }) => valueOf(identity));
  }

  async seed(value, { force = false, expected, requestId, ...unknown } = {}) {
    checkNone(unknown);
    const request = { name: this.#name, value: integer(value), force, expected: expected === undefined ? undefined : integer(expected) };
    return this.#client._once("SeedIdentity", request, requestId, valueOf);
  }

  async delete({ forget = false, requestId, ...unknown } = {}) {
    checkNone(unknown);
    return this.#client._once("DeleteIdentity", { name: this.#name, forget }, requestId, valueOf);
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

  async take(keys, { values = {}, date = "", label = "", expiresIn = 0, ...unknown } = {}) {
    checkNone(unknown);
    const expires = expiresIn > 0 ? { expiresIn: `${(expiresIn / 1000).toFixed(9)}s` } : {};
    return this.#numbers("TakeNumbers", { keys: listed(keys), values, date, label, ...expires });
  }

  async confirm(numbers) {
    return this.#numbers("ConfirmNumbers", { keys: listed(numbers).map(bound) });
  }

  async void(numbers, reason) {
    return this.#numbers("VoidNumbers", { keys: listed(numbers).map(bound), reason });
  }

  async release(numbers) {
    return this.#numbers("ReleaseNumbers", { keys: listed(numbers).map(bound) });
  }

  async find(key, options = {}) {
    const request = { series: this.#name, key, consistency: consistency(options) };
    return this.#client._invoke("SeriesService/WhoHas", request, ({ number }) => documentNumber(number));
  }

  #numbers(method, request) {
    const read = ({ numbers }) => numbers.map(documentNumber);
    return this.#client._invoke(`SeriesService/${method}`, { series: this.#name, ...request }, read, { changes: true });
  }
}

function listed(keys) {
  if (Array.isArray(keys)) return keys;
  throw new TypeError(`an array of keys is expected, not ${keys}`);
}

// A key alone means whatever number it has.
const bound = (number) => (typeof number === "string" ? { key: number } : { key: number.key, number: integer(number.number) });

function documentNumber({ key, text, scope, number, state, overdue, date, label, reason }) {
  return { key, text, scope, number: BigInt(number), state: state.replace("NUMBER_STATE_", "").toLowerCase(), overdue, date, label, reason };
}

// Gives the ids of one collection, without a call for most of them. The next range is
// fetched once half of the current one is used.
class HiLo {
  #client;
  #fields; // Those of every request.
  #current;
  #ahead;
  #fetching; // The promise of the fetch in progress. It is never rejected.
  #last; // What the next request tells of the ranges before. It belongs to the fetch in progress.
  #again; // The request id of a fetch whose outcome is unknown.
  #waiting = []; // The callers that found no number, in order.
  #pause = FETCH_PAUSE;
  #resume = 0; // When to prefetch again after a failure.
  #closed;

  constructor(client, { size, ...fields }) {
    this.#client = client;
    this.#fields = fields;
    this.#last = { size };
  }

  async next() {
    if (this.#closed) throw closedError();
    const number = this.#take();
    if (number) return number;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#fetch();
    });
  }

  async nextId() {
    return (await this.next()).id;
  }

  async nextIds(n) {
    checkCount(n);
    const ids = [];
    try {
      while (ids.length < n) ids.push(await this.nextId());
    } catch (error) {
      throw Object.assign(error, { ids });
    }
    return ids;
  }

  close() {
    this.#closed ??= this.#giveBack();
    return this.#closed;
  }

  // Takes a number; undefined if none is at hand.
  #take() {
    if (!left(this.#current) && this.#ahead) [this.#current, this.#ahead] = [this.#ahead, undefined];
    const range = this.#current;
    if (!left(range)) return undefined;
    const value = range.next++;
    if (range.next > range.half && now() >= this.#resume) this.#fetch();
    return { value, nodeTag: range.nodeTag, id: range.prefix + value + (range.nodeTag ? `-${range.nodeTag}` : "") };
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
        for (const { reject } of this.#waiting.splice(0)) reject(copyOf(error));
      },
    );
  }

  // Hands numbers to the callers that wait, as far as they go.
  #serve() {
    while (this.#waiting.length > 0 && !this.#closed) {
      const number = this.#take();
      if (!number) return this.#fetch();
      this.#waiting.shift().resolve(number);
    }
  }

  async #fetchOne() {
    const ask = (requestId) => this.#client._once("NextRange", { ...this.#fields, ...this.#last }, requestId, rangeOf);
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
    for (const { reject } of this.#waiting.splice(0)) reject(closedError());
    if (this.#fetching) await within(this.#fetching, deadline - now());
    let failed;
    for (const { low, high, next, token } of [this.#ahead, this.#current].filter(left)) {
      const request = { tag: this.#fields.tag, low: String(low), high: String(high), last: String(next - 1n), token };
      await this.#client._once("ReturnRange", request, undefined, () => undefined, deadline).catch((error) => { failed ??= error; });
    }
    if (failed) throw failed;
  }
}

function rangeOf({ low, high, prefix, nodeTag, token, size, rangeAt, fromReserve }) {
  if (![prefix, nodeTag, token].every((text) => typeof text === "string")) throw new TypeError("a range has a prefix, a tag and a token");
  return { low: BigInt(low), high: BigInt(high), prefix, nodeTag, token, size: BigInt(size).toString(), rangeAt, fromReserve };
}

const left = (range) => range !== undefined && range.next <= range.high;

// The words and rules are those of pluralize (MIT licence), by which the Go client names collections.
const IRREGULAR = new Map((
  "i:we me:us he:they she:they them:them myself:ourselves yourself:yourselves itself:themselves herself:themselves " +
  "himself:themselves themself:themselves is:are was:were has:have this:these that:those my:our its:their his:their " +
  "her:their echo:echoes dingo:dingoes volcano:volcanoes tornado:tornadoes torpedo:torpedoes genus:genera " +
  "viscus:viscera stigma:stigmata stoma:stomata dogma:dogmata lemma:lemmata schema:schemata anathema:anathemata " +
  "ox:oxen axe:axes die:dice yes:yeses foot:feet eave:eaves goose:geese tooth:teeth quiz:quizzes human:humans " +
  "proof:proofs carve:carves valve:valves looey:looies thief:thieves groove:grooves pickaxe:pickaxes " +
  "passerby:passersby canvas:canvases sms:sms"
).split(" ").map((pair) => pair.split(":")));
const PLURAL = new Set(IRREGULAR.values());
const UNCOUNTABLE = new Set((
  "adulthood advice agenda aid aircraft alcohol ammo analytics anime athletics audio bison blood bream buffalo butter " +
  "carp cash chassis chess clothing cod commerce cooperation corps debris diabetes digestion elk energy equipment " +
  "excretion expertise firmware flounder fun gallows garbage graffiti hardware headquarters health herpes highjinks " +
  "homework housework information jeans justice kudos labour literature machinery mackerel mail media mews moose music " +
  "mud manga news only personnel pike plankton pliers police pollution premises rain research rice salmon scissors " +
  "series sewage shambles shrimp software staff swine tennis traffic transportation trout tuna wealth welfare whiting " +
  "wildebeest wildlife you"
).split(" "));
const PLURALS = [ // The first that matches decides.
  [/(pok[eé]mon|[^aeiou]ese|deer|fish|measles|o[iu]s|pox|sheep)$/i, "$1"], [/^thou$/i, "you"], [/m[ae]n$/i, "men"],
  [/(eaux)$/i, "$1"], [/(child)(?:ren)?$/i, "$1ren"], [/(pe)(?:rson|ople)$/i, "$1ople"],
  [/\b((?:tit)?m|l)(?:ice|ouse)$/i, "$1ice"], [/(matr|cod|mur|sil|vert|ind|append)(?:ix|ex)$/i, "$1ices"],
  [/(x|ch|ss|sh|zz)$/i, "$1es"], [/([^ch][ieo][ln])ey$/i, "$1ies"], [/([^aeiouy]|qu)y$/i, "$1ies"],
  [/(?:(kni|wi|li)fe|(ar|l|ea|eo|oa|hoo)f)$/i, "$1$2ves"], [/sis$/i, "ses"],
  [/(apheli|hyperbat|periheli|asyndet|noumen|phenomen|criteri|organ|prolegomen|hedr|automat)(?:a|on)$/i, "$1a"],
  [/(agend|addend|millenni|dat|extrem|bacteri|desiderat|strat|candelabr|errat|ov|symposi|curricul|automat|quor)(?:a|um)$/i, "$1a"],
  [/(her|at|gr)o$/i, "$1oes"], [/(seraph|cherub)(?:im)?$/i, "$1im"], [/(alumn|alg|vertebr)(?:a|ae)$/i, "$1ae"],
  [/(alumn|syllab|vir|radi|nucle|fung|cact|stimul|termin|bacill|foc|uter|loc|strat)(?:us|i)$/i, "$1i"],
  [/([^l]ias|[aeiou]las|[ejzr]as|[iu]am)$/i, "$1"], [/(e[mn]u)s?$/i, "$1s"],
  [/(alias|[^aou]us|t[lm]as|gas|ris)$/i, "$1es"], [/(ax|test)is$/i, "$1es"], [/([^\x00-\x7f])$/i, "$1"], [/s?$/i, "s"],
];

export function collectionOf(name) {
  const collection = plural(name);
  return collection.match(/\p{Lu}/gu)?.length > 1 ? collection : collection.toLowerCase();
}

function plural(word) {
  const token = word.toLowerCase();
  if (PLURAL.has(token)) return like(word, token);
  if (UNCOUNTABLE.has(token)) return word;
  if (IRREGULAR.has(token)) return like(word, IRREGULAR.get(token));
  const [rule, replacement] = PLURALS.find(([rule]) => rule.test(word));
  const found = word.match(rule);
  const ending = replacement.replace(/\$(\d)/g, (_, group) => found[group] ?? "");
  return word.slice(0, found.index) + like(found[0] || word.slice(-1), ending);
}

// like returns token in the case of word.
function like(word, token) {
  if (word === token) return token;
  if (word === word.toLowerCase()) return token.toLowerCase();
  if (word === word.toUpperCase()) return token.toUpperCase();
  const [first, rest] = [word[0], token.slice(1).toLowerCase()];
  return (first === first.toUpperCase() ? token[0].toUpperCase() : token[0].toLowerCase()) + rest;
}
