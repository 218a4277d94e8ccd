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

const { hostname } = require("node:os");
const { inspect } = require("node:util");
const { basename } = require("node:path");
const { randomUUID } = require("node:crypto");
const {
  IdnodeError, OutcomeUnknownError, NoQuorumError, NoEndpointError, DeadlineError, OtherClusterError, OverloadedError, StorageFullError,
  QuotaError, RateLimitedError, ExhaustedError, ConcurrencyError, IdClaimedError, KeyConflictError, SeriesSuspendedError, ReservationExpiredError,
  RequestIdReusedError, RequestIdExpiredError, PermissionDeniedError, NotFoundError, InvalidError, ClosedError, AbortError,
  Failure, copyOf, closedError, aborted, invalid,
} = require("./errors.js");
const {
  ASYNC_DISPOSE, SLICE, now, given, checkCount, checkNone, checkText, checkTime, checkSignal, checkTrace, integer, durationOf, within, wait, sleep,
  othersTurn, patience, many,
} = require("./waiting.js");
const { Router } = require("./router.js");
const { Tls } = require("./tls.js");
const { fromEnv, fromUrl } = require("./config.js");
const { Snowflake } = require("./snowflake.js");
const { tagOf } = require("./tag.js");
const { channels, teller, dropped } = require("./events.js");

// All times are in milliseconds.
const FIRST_PAUSE = 25; // Between tries, once every endpoint had its turn.
const LONGEST_PAUSE = 400;
const MAX_OVERLOADS = 3; // More tries would only keep an overload going.
const FETCH_PAUSE = 100; // After a prefetch that failed.
const LONGEST_FETCH_PAUSE = 10_000;
const MAX_LABEL = 64; // Bytes.
const MAX_CONNECTIONS = 1024; // A node has no more for all of an address.

const max = (a, b) => (a > b ? a : b); // Of BigInts.

function checkId(id) {
  checkText(id, "INVALID_ID", "id");
  if (id.startsWith("/")) throw invalid("INVALID_ID", "id", "an id must not begin with /");
}

function checkEndpoints(endpoints) {
  if (!Array.isArray(endpoints) || endpoints.length === 0) throw new TypeError("endpoints is a list of at least one address");
}

// The names of the host and of the program, never empty.
function defaultLabel() {
  const names = `${hostname()} ${basename(process.argv[1] ?? process.argv0)}`;
  const label = names.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu, "").trim() || "node";
  return Buffer.from(label).subarray(0, MAX_LABEL).toString().replace(/\uFFFD+$/, ""); // The last character may be cut.
}

class Client {
  #database;
  #timeout;
  #tryTimeout;
  #label;
  #failFastAfter;
  #tell;
  #router;
  #closing = false;
  #handles = new Map();
  #leaving = new Set(); // Handles that are closed, and have successors.

  constructor(endpoints, options) {
    const {
      database = "", tls, timeout = 10_000, tryTimeout = 3000, label, clusterId = "", maxConnections = 128, failFastAfter, observe, ...unknown
    } = given(options);
    checkNone(unknown);
    checkCount(maxConnections, MAX_CONNECTIONS, "maxConnections");
    if (typeof clusterId !== "string" || !/^[!-~]{0,64}$/.test(clusterId)) throw new TypeError(`not the id of a cluster: ${clusterId}`);
    checkEndpoints(endpoints);
    checkText(database, "INVALID_DATABASE", "database");
    checkText(label ?? "", "INVALID_LABEL", "label");
    if (failFastAfter !== undefined) checkTime(failFastAfter);
    [timeout, tryTimeout].forEach(checkTime);
    this.#database = database;
    this.#timeout = timeout;
    this.#tryTimeout = tryTimeout;
    this.#label = label || defaultLabel();
    this.#failFastAfter = failFastAfter;
    this.#tell = teller(observe);
    this.#router = new Router(endpoints, clusterId, { tls: tls === undefined ? undefined : new Tls(tls), maxConnections, tell: this.#tell });
    dropped.register(this, this.#router, this);
  }

  static fromEnv(options) {
    return Client.#from(fromEnv(process.env), options);
  }

  static fromUrl(url, options) {
    return Client.#from(fromUrl(url), options);
  }

  // What the caller leaves undefined is as if it were not there.
  static #from({ endpoints, options }, own) {
    return new Client(endpoints, { ...options, ...Object.fromEntries(Object.entries(given(own)).filter(([, value]) => value !== undefined)) });
  }

  setEndpoints(endpoints) {
    checkEndpoints(endpoints);
    this.#router.setEndpoints(endpoints);
  }

  async next(template, options) {
    return (await this.nextN(template, 1, options))[0];
  }

  async nextN(template, n, options) {
    const { separator = "", claim = false, requestId, ...call } = given(options);
    checkCount(n);
    checkText(template, "INVALID_ID", "template");
    const identity = template.endsWith("|");
    const numbered = identity || template.endsWith(separator || "/");
    const semantic = !numbered && template.trim() !== "";
    if (semantic) checkId(template);
    const counted = identity || (semantic && claim);
    if (requestId !== undefined && !counted) throw invalid("INVALID_OPTION", "", "requestId does not apply to this template");
    const request = { template, separator, count: n, claim, blocksOnly: numbered && n > 1 };
    // What the others take comes from a supply in which holes do not matter.
    const ids = counted
      ? await this._once("Generate", request, { requestId, ...call }, idsOf)
      : await this._invoke("IdsService/Generate", request, call, idsOf, { local: true, toLeader: false });
    if (ids.count !== BigInt(n)) throw new IdnodeError(`asked for ${n} ids, got ${ids.count}`);
    return ids.list ?? idsIn(ids.blocks);
  }

  identity(name) {
    return new Identity(this, name);
  }

  async *identities(prefix = "", options) {
    yield* this.#pages("ListIdentities", prefix, options, ({ identities }) => identities.map(({ name, value }) => new Answer({ name, value: BigInt(value) })));
  }

  series(name) {
    return new Series(this, name);
  }

  async claim(id, options) {
    const { separator = "", ...call } = given(options);
    checkId(id);
    await this._once("Claim", { id, separator }, call, () => undefined);
  }

  async release(id, options) {
    await this._once("Release", { id }, options, () => undefined);
  }

  async *claims(prefix = "", options) {
    yield* this.#pages("ListClaims", prefix, options, ({ ids }) => ids.map(String));
  }

  hilo(tag, options) {
    const { separator = "", database = this.#database, firstSize = 0, ...unknown } = given(options);
    checkNone(unknown);
    const make = () => new HiLo(this, database, { tag, separator, size: firstSize, label: this.#label });
    return this.#handle(JSON.stringify([database, tag, separator || "/"]), make);
  }

  snowflake(pool, options) {
    const { database = this.#database, ...unknown } = given(options);
    checkNone(unknown);
    checkText(pool, "INVALID_NAME", "pool");
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

  async idFor(type, options) {
    const { database, ...call } = given(options);
    if (typeof type?.name !== "string" || type.name === "") throw new TypeError("a class without a name has no tag");
    return this.hilo(tagOf(type.name), { database }).nextId(call);
  }

  async close() {
    this.#closing = true;
    dropped.unregister(this);
    const closed = await Promise.allSettled([...this.#handles.values(), ...this.#leaving].map((handle) => handle.close()));
    this.#router.close();
    const failed = closed.find((result) => result.status === "rejected");
    if (failed) throw failed.reason;
  }

  [ASYNC_DISPOSE]() {
    return this.close();
  }

  toString() {
    return `Client(${this.#router})`;
  }

  [inspect.custom]() {
    return this.toString();
  }

  async *#pages(method, prefix, options, read) {
    const { stale, ...call } = given(options);
    const request = { prefix, pageSize: 1000, consistency: consistency(stale), pageToken: "" };
    do {
      const [found, next] = await this._invoke(`IdsService/${method}`, request, call, (page) => [read(page), page.nextPageToken], { local: stale });
      yield* found;
      request.pageToken = next;
    } while (request.pageToken);
  }

  // Makes a call that counts once. For this module only.
  _once(method, request, options, read, { service = "IdsService", deadline = Infinity } = {}) {
    let { requestId, ...call } = given(options);
    const own = requestId === undefined;
    if (own) requestId = randomUUID();
    const { id, since } = typeof requestId === "string" ? { id: requestId } : requestId ?? {};
    if (typeof id !== "string" || id === "") throw invalid("INVALID_REQUEST_ID", "request_id", "it is a string that is not empty, or an object with such an id");
    requestId = since === undefined ? { id } : { id, since: /^\d+$/.test(since) && typeof since === "string" ? since : integer(since) };
    return this._invoke(`${service}/${method}`, request, call, read, { requestId, own, deadline });
  }

  // Tells the application of an event. For this module only.
  _tell(event) {
    this.#tell?.(event);
  }

  // The error of a caller for whom a handle had nothing in time. For this module only.
  _late(what, began) {
    const late = this.#router.hasAnswered(began);
    return Object.assign(new Failure(`no ${what} came in time`, "unavailable", "NO_ENDPOINT"), { late }).error(false);
  }

  get _timeout() {
    return this.#timeout;
  }

  _deadline() {
    return now() + this.#timeout;
  }

  // Makes a call, with what its caller says of it. For this module only.
  _invoke(method, fields, options, read, how = {}) {
    const { signal, timeout = this.#timeout, database = this.#database, traceparent, ...unknown } = given(options);
    checkNone(unknown);
    checkText(database, "INVALID_DATABASE", "database"); // Null would be another database than the client's.
    checkTime(timeout);
    checkSignal(signal);
    checkTrace(traceparent);
    const call = { method, request: { ...fields, database }, read, decided: !how.local, tries: 0, node: undefined, bounds: { watched: true, signal, traceparent } };
    const ended = this.#tries(call, Math.min(how.deadline ?? Infinity, now() + timeout), how);
    return channels.call.hasSubscribers ? told(call, ended) : ended;
  }

  // Makes tries at changing nodes until one gives a final answer or the time is over.
  // With own, no other call has sent the request id. A local call is one that any node answers by itself. With changes, the call may be repeated without one, but what a lost
  // try has done matters.
  async #tries(call, deadline, { requestId, own = false, changes = false, toLeader = true }) {
    const { request, bounds: { signal } } = call;
    // Whoever names an index has made the call before: until the cluster decides it, its outcome is what it was.
    const repeats = requestId?.since !== undefined;
    const called = now();
    try {
      this.#router.checkSilence(this.#failFastAfter);
    } catch (failure) {
      throw failure.error(repeats, requestId);
    }
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
      const began = now();
      const tell = (err) => this.#tell?.({ kind: "try", node: node.address, attempt: call.tries, duration: now() - began, err: err?.error(unknown, requestId) });
      try {
        const got = await this.#try(call, node, deadline, () => {
          if (!requestId) return;
          // The first try says it too: the network may hold it up until its retry was forgotten. A try that certainly did nothing
          // is none.
          if (!unknown) requestId = { id: requestId.id, since: this.#router.newest ? String(this.#router.newest) : undefined };
          request.requestId = { id: requestId.id, retrySince: requestId.since };
        });
        tell();
        return got;
      } catch (failure) {
        if (!(failure instanceof Failure)) throw failure;
        last = failure;
        last.late &&= this.#router.hasAnswered(called);
      }
      const matters = last.effect === "unknown" && (changes || requestId !== undefined);
      if (!told || matters || last.tells === 2 || last.tells > told.tells) told = last;
      lost ||= matters;
      unknown = lost || (repeats && !last.decided);
      if (requestId && unknown) requestId = { ...requestId, since: requestId.since ?? "0" };
      tell(last);
      if (signal?.aborted) throw aborted(signal, unknown, requestId);
      // The index named was forgotten before the first try came: begin again, once, with a newer one. No try took
      // effect, and a copy of one that comes late names the old index.
      if (own && !unknown && last.reason === "REQUEST_ID_EXPIRED") {
        own = false;
        if (await this.#router.latest(deadline, signal, 0, "all") > BigInt(requestId.since ?? 0)) {
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

  async #try({ method, request, read, decided, bounds }, node, deadline, ready) {
    const left = () => Math.min(this.#tryTimeout, deadline - now());
    const turn = node.begin(decided, deadline, bounds.signal);
    if (turn) await turn;
    try {
      if (turn && left() <= 0) throw node.late();
      // Whatever it is, it gets no call.
      if (!this.#router.own() || !node.greeted) await this.#router.greet(node, left(), bounds);
      const own = this.#router.own();
      if (!own || left() <= 0) {
        throw Object.assign(new Failure(`${node.address} did not say in time of which cluster it is`, "unavailable", "NO_ENDPOINT"), { late: left() <= 0 });
      }
      ready();
      const [got, index] = await node.call(method, request, left(), (answer) => [read(answer), BigInt(answer.logIndex)], bounds, own);
      node.suspectUntil = 0;
      node.welcome();
      this.#router.saw(index);
      return got;
    } finally {
      node.end(decided);
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

  async nextN(n, options) {
    const { separator = "", ...call } = given(options);
    checkCount(n);
    return this.#client._once("NextIdentity", { name: this.#name, count: n, separator }, call, blocksOf);
  }

  async get(options) {
    const { stale, ...call } = given(options);
    const request = { name: this.#name, consistency: consistency(stale) };
    return this.#client._invoke("IdsService/GetIdentity", request, call, ({ identity }) => valueOf(identity), { local: stale });
  }

  async seed(value, options) {
    const { force = false, expected, ...call } = given(options);
    const request = { name: this.#name, value: integer(value), force, expected: expected === undefined ? undefined : integer(expected) };
    return this.#client._once("SeedIdentity", request, call, valueOf);
  }

  async delete(options) {
    const { forget = false, ...call } = given(options);
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

  async take(keys, options) {
    const { values = {}, date = "", label = "", expiresIn = 0, number = 0, because = "", ...call } = given(options);
    const entered = BigInt(integer(number)) || because ? { number: String(number), because } : {};
    return this.#numbers("TakeNumbers", { keys: listed(keys), values, date, label, expiresIn: durationOf(expiresIn), ...entered }, call);
  }

  async confirm(numbers, options) {
    return this.#numbers("ConfirmNumbers", { keys: listed(numbers).map(bound) }, options);
  }

  async void(numbers, reason, options) {
    return this.#numbers("VoidNumbers", { keys: listed(numbers).map(bound), reason }, options);
  }

  async release(numbers, options) {
    return this.#numbers("ReleaseNumbers", { keys: listed(numbers).map(bound) }, options);
  }

  async find(key, options) {
    const { stale, ...call } = given(options);
    const request = { series: this.#name, key, consistency: consistency(stale) };
    return this.#client._invoke("SeriesService/WhoHas", request, call, ({ number }) => documentNumber(number), { local: stale });
  }

  #numbers(method, request, options) {
    const read = ({ numbers }) => numbers.map(documentNumber);
    return this.#client._invoke(`SeriesService/${method}`, { series: this.#name, ...request }, options, read, { changes: true });
  }
}

function listed(keys) {
  if (Array.isArray(keys)) return keys;
  throw new TypeError(`an array of keys is expected, not ${keys}`);
}

// A key alone means whatever number it has.
function bound(number) {
  if (typeof number === "string") return { key: number };
  checkText(number?.key, "INVALID_SERIES", "keys");
  return { key: number.key, number: integer(number.number) };
}

const timeOf = (text) => (text ? new Date(text) : undefined);

function documentNumber({ key, text, scope, number, state, overdue, date, taken, expires, label, reason, note }) {
  const named = String(state).replace("NUMBER_STATE_", "").toLowerCase();
  return new Answer({ key, text, scope, number: BigInt(number), state: named, overdue, date, taken: timeOf(taken), expires: timeOf(expires), label, reason, note });
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
    const began = now();
    const late = () => (signal?.aborted ? aborted(signal) : this.#client._late("range", began));
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
      await this.#client._once("ReturnRange", request, { database: this.#database }, ({ returned }) => returned, { deadline }).then(
        (returned) => { if (!returned) this.#client._tell({ kind: "gap" }); },
        (error) => { failed ??= error; },
      );
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
  Client, tagOf,
  IdnodeError, OutcomeUnknownError, NoQuorumError, NoEndpointError, DeadlineError, OtherClusterError, OverloadedError, StorageFullError,
  QuotaError, RateLimitedError, ExhaustedError, ConcurrencyError, IdClaimedError, KeyConflictError, SeriesSuspendedError, ReservationExpiredError,
  RequestIdReusedError, RequestIdExpiredError, PermissionDeniedError, NotFoundError, InvalidError, ClosedError, AbortError,
};
