// What the client does that the clients of other languages have no word for. Run it with "npm test".

import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { getEventListeners } from "node:events";
import http from "node:http";
import { createRequire } from "node:module";
import test from "node:test";
import { Worker } from "node:worker_threads";

import * as idnode from "idnode";

const { AbortError, Client, ClosedError, NoEndpointError, OverloadedError, RateLimitedError } = idnode;
const require = createRequire(import.meta.url);
const FOREVER = 2 ** 31 - 1; // Nothing but what is tested ends such a call.
const STATUS = { clusterId: "c", self: { tag: "A" }, leaderTag: "A", hasQuorum: true, appliedIndex: "100" };
const RANGE = { prefix: "users/", nodeTag: "A", rangeAt: null, size: "100", token: "AQ==", fromReserve: false };
const LAYOUT = { epoch: "1970-01-01T00:00:00Z", unit: "0.001s", timeBits: 45, workerBits: 2, sequenceBits: 12 };
const NARROW = { ...LAYOUT, sequenceBits: 2 }; // Four ids a unit.
const REFUSED = [{ code: "permission_denied", message: "no", details: [{ debug: { domain: "idnode", reason: "PERMISSION_DENIED" } }] }, 403];

// A node, by default one that counts. With hold it keeps the answers that hold chooses, until they are let go.
class Node {
  asked = [];
  held = [];
  sockets = 0; // That were ever opened.
  hold = () => false;
  layout = LAYOUT;
  status = (give) => give(STATUS);
  #given = 0n;
  #arrived = () => {};

  static async start(t, options) {
    const node = new Node();
    const server = http.createServer((request, response) => {
      let text = "";
      request.on("data", (part) => { text += part; });
      request.on("end", () => node.#answer(request, JSON.parse(text), response));
    });
    server.on("connection", () => { node.sockets++; });
    await new Promise((resolve) => { server.listen(0, "127.0.0.1", resolve); });
    node.address = `127.0.0.1:${server.address().port}`;
    node.client = new Client([node.address], { timeout: FOREVER, tryTimeout: FOREVER, ...options });
    t.after(() => {
      server.closeAllConnections();
      server.close();
    });
    return node;
  }

  #answer({ url, headers }, body, response) {
    const method = url.split("/").pop();
    const give = (answer, status = 200) => {
      response.setHeader("Idnode-Cluster-Id", STATUS.clusterId);
      response.statusCode = status;
      response.end(JSON.stringify({ logIndex: "101", ...answer }));
    };
    if (method === "GetStatus") return this.status(give);
    this.asked.push({ method, body, headers });
    const go = () => give(...this.answer(method, body));
    if (!this.hold(method)) return go();
    this.held.push(go);
    this.#arrived();
  }

  answer(method, { count = 1 }) {
    const first = this.#given + 1n;
    switch (method) {
      case "NextRange":
        this.#given += 100n;
        return [{ ...RANGE, low: String(first), high: String(this.#given) }];
      case "AcquireWorker": {
        const from = Date.now() - 1000; // The epoch is that of JavaScript, and the unit its own.
        return [{ worker: 2, token: "AAAAAAAAAAc=", from: String(from), until: String(from + 61_000), layout: this.layout }];
      }
      case "RenewWorker":
        return [{ until: String(Date.now() + 60_000) }];
      case "ReleaseWorker":
        return [{}];
      case "ListPools":
        return [{ pools: [{ name: "orders", layout: this.layout }] }];
      case "ReturnRange":
        return [{ returned: true, max: "1" }];
      case "Generate":
        return [{ ids: [], blocks: [{ prefix: "users/", first: "1", last: String(count), width: 19, suffix: "-A" }] }];
      default:
        this.#given += BigInt(count);
        return [{ blocks: [{ first: String(first), last: String(this.#given) }] }];
    }
  }

  // Waits until n answers are held.
  async holds(n) {
    while (this.held.length < n) await new Promise((resolve) => { this.#arrived = resolve; });
  }

  letGo() {
    this.hold = () => false;
    for (const go of this.held.splice(0)) go();
  }
}

test("require and import give the same classes", () => {
  const required = require("idnode");
  for (const name of Object.keys(required)) assert.equal(idnode[name], required[name], name);
  assert.ok(idnode.Client && idnode.collectionOf && idnode.IdnodeError);
});

test("a signal that is aborted before a call ends it, and nothing is sent", async (t) => {
  const node = await Node.start(t);
  const signal = AbortSignal.abort("because");
  const users = node.client.hilo("users");
  for (const call of [
    () => node.client.identity("invoices").next({ signal }), () => node.client.next("users/", { signal }), () => users.nextId({ signal }),
    () => users.nextIds(3, { signal }), () => node.client.series("bills").take(["a"], { signal }), () => node.client.claims("", { signal }).next(),
  ]) {
    await assert.rejects(call(), (error) => error instanceof AbortError && error.name === "AbortError" && error.cause === "because" && error.reason === "");
  }
  assert.deepEqual(node.asked, []);
});

test("a signal ends a call that was sent, whose request id repeats it", async (t) => {
  const node = await Node.start(t);
  node.hold = () => true;
  const abort = new AbortController();
  const call = node.client.identity("invoices").next({ signal: abort.signal });
  await node.holds(1);
  abort.abort();
  const error = await call.catch((failed) => failed);
  assert.ok(error instanceof AbortError);
  assert.deepEqual([error.code, error.reason, error.cause], ["canceled", "OUTCOME_UNKNOWN", abort.signal.reason]);
  node.hold = () => false;
  const { requestId } = JSON.parse(JSON.stringify(error));
  await node.client.identity("invoices").next({ requestId });
  assert.match(requestId.since, /^(100|0)$/); // On a busy machine the node's status may be late.
  assert.equal(node.asked[0].body.requestId.id, requestId.id);
  assert.deepEqual(node.asked[1].body.requestId, { id: requestId.id, retrySince: requestId.since });
});

test("a signal ends thousands of calls, of which most wait for a socket, and leaves one listener", async (t) => {
  const node = await Node.start(t);
  node.hold = () => true;
  const abort = new AbortController();
  const calls = Array.from({ length: 2000 }, () => node.client.identity("invoices").next({ signal: abort.signal }).catch((error) => error));
  await node.holds(48);
  assert.equal(getEventListeners(abort.signal, "abort").length, 1);
  abort.abort();
  const errors = await Promise.all(calls);
  assert.ok(errors.every((error) => error instanceof AbortError));
  assert.equal(errors.filter(({ reason }) => reason === "OUTCOME_UNKNOWN").length, 48);
  node.letGo();
  assert.ok(await node.client.identity("invoices").next());
});

test("calls that a node holds do not keep out those that it answers by itself", async (t) => {
  const node = await Node.start(t);
  node.hold = (method) => method === "NextIdentity";
  const abort = new AbortController();
  const held = Array.from({ length: 100 }, () => node.client.identity("invoices").next({ signal: abort.signal }).catch((error) => error));
  await node.holds(48);
  const ids = await Promise.all(Array.from({ length: 100 }, () => node.client.next("users/")));
  assert.equal(ids.length, 100);
  await assert.rejects(node.client.identity("invoices").next({ timeout: 20 }), OverloadedError);
  abort.abort();
  await Promise.all(held);
  assert.equal(node.held.length, 48);
});

test("maxConnections bounds the sockets to a node", async (t) => {
  const node = await Node.start(t, { maxConnections: 4 });
  node.hold = (method) => method === "NextIdentity";
  const call = () => node.client.identity("invoices").next();
  const calls = Array.from({ length: 20 }, call);
  await node.holds(2);
  assert.match(await node.client.next("users/"), /^users/);
  assert.equal(node.held.length, 2);
  node.letGo();
  assert.equal(new Set(await Promise.all(calls)).size, 20);
  assert.ok(node.sockets <= 4, `${node.sockets} sockets`);
  for (const maxConnections of [0, 1.5, "4", 1025]) assert.throws(() => new Client(["a:1"], { maxConnections }), { field: "maxConnections" });
});

test("a caller of a range that leaves does not end the fetch of the others", async (t) => {
  const node = await Node.start(t);
  node.hold = (method) => method === "NextRange";
  const users = node.client.hilo("users");
  const abort = new AbortController();
  const [left, late, lateIds, stays] = [
    users.nextId({ signal: abort.signal }), users.nextId({ timeout: 1 }), users.nextIds(3, { timeout: 1 }), users.nextId(),
  ].map((call) => call.catch((error) => error));
  await node.holds(1);
  abort.abort();
  assert.ok(await left instanceof AbortError);
  assert.ok(await late instanceof NoEndpointError);
  assert.deepEqual((await lateIds).ids, []);
  node.letGo();
  assert.deepEqual([await stays, await users.nextId()], ["users/1-A", "users/2-A"]);
  assert.equal(node.asked.filter(({ method }) => method === "NextRange").length, 1);
});

// Three nodes of which the first leads, until it falls silent and keeps what comes. The others then answer after delay.
async function falling(t, delay) {
  const nodes = [await Node.start(t), await Node.start(t), await Node.start(t)];
  const [first, second] = nodes;
  const client = new Client(nodes.map(({ address }) => address), { timeout: FOREVER, tryTimeout: FOREVER });
  let leads = first;
  for (const node of nodes) {
    node.status = (give) => {
      if (node === first && leads !== first) return;
      setTimeout(() => give({ ...STATUS, leaderTag: leads === node ? "A" : "B" }), leads === first ? 0 : delay);
    };
  }
  await client.identity("invoices").next();
  first.hold = () => true;
  return { client, nodes, fall: () => { leads = second; } };
}

test("a call leaves a silent node, also where the others need long to say who leads", async (t) => {
  const { client, nodes, fall } = await falling(t, 250);
  fall();
  await client.identity("invoices").next();
  assert.deepEqual(nodes.map(({ held }) => held.length), [1, 0, 0]);
});

test("a look that finds another leader ends the tries at a node that it did not hear", async (t) => {
  const { client, nodes: [first, second], fall } = await falling(t, 0);
  const left = [];
  const tell = ({ node }) => left.push(node);
  subscribe("idnode:retry", tell);
  t.after(() => unsubscribe("idnode:retry", tell));
  const one = client.identity("invoices").next();
  await first.holds(1);
  const looking = new Promise((resolve) => {
    const { status } = second;
    second.status = (give) => resolve(status(give));
  });
  fall();
  await looking;
  let asked = false; // When the second call would ask by itself whether the node is silent.
  setTimeout(() => { asked = left.length < 2; }, 300);
  const two = client.identity("invoices").next();
  await Promise.all([one, two]);
  assert.deepEqual([left, asked], [[first.address, first.address], false]);
});

test("a timeout is a number of milliseconds", async (t) => {
  const node = await Node.start(t);
  const users = node.client.hilo("users");
  for (const timeout of [0, -1, NaN, Infinity, 2 ** 31, "10", null, 10n]) {
    assert.throws(() => new Client(["a:1"], { timeout }), RangeError);
    for (const call of [
      () => node.client.next("users/", { timeout }), () => node.client.identity("a").get({ timeout }), () => node.client.claim("a", { timeout }),
      () => users.next({ timeout }), () => users.nextIds(2, { timeout }), () => node.client.idFor(class Order {}, { timeout }),
    ]) await assert.rejects(call(), RangeError, String(timeout));
  }
  await assert.rejects(users.next({ tiemout: 1 }), TypeError);
  await assert.rejects(users.next({ signal: {} }), TypeError);
  await assert.rejects(node.client.idFor(class {}), TypeError);
});

test("the timeout of a call goes before that of the client", async (t) => {
  const node = await Node.start(t);
  node.hold = () => true;
  await assert.rejects(node.client.identity("a").next({ timeout: 20 }), { name: /OutcomeUnknownError|NoEndpointError/ });
});

test("a call says its database, its trace and what calls", async (t) => {
  const node = await Node.start(t, { database: "books" });
  await node.client.identity("a").next({ database: "other", traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" });
  await node.client.identity("a").next();
  await node.client.hilo("users", { database: "other" }).next();
  assert.deepEqual(node.asked.map(({ body }) => body.database), ["other", "books", "other"]);
  assert.match(node.asked[0].headers.traceparent, /^00-0af7/);
  assert.equal(node.asked[1].headers.traceparent, undefined);
  assert.match(node.asked[1].headers["user-agent"], /^idnode-node\/\d+\.\d+\.\d+$/);
  assert.match(node.asked[2].body.label, / client\.test\.mjs$/);
});

// The clocks, which stand still but for go. Timers run.
function stop(t) {
  const clock = { wall: 1_800_000_000_000, monotonic: performance.now() };
  t.mock.method(Date, "now", () => clock.wall);
  t.mock.method(performance, "now", () => clock.monotonic);
  clock.go = (time) => {
    clock.wall += time;
    clock.monotonic += time;
  };
  return clock;
}

const timeOf = (id, { sequenceBits } = LAYOUT) => Number(id >> BigInt(2 + sequenceBits));
const calls = (node, method) => node.asked.filter((asked) => asked.method === method).map(({ body }) => body);

// Takes ids until a renewal of the window has ended.
async function renewed(orders) {
  let renewing = true;
  const tell = ({ method }) => { renewing &&= method !== "WorkersService/RenewWorker"; };
  subscribe("idnode:call", tell);
  while (renewing) {
    await orders.nextId();
    await new Promise((resolve) => { setTimeout(resolve); });
  }
  unsubscribe("idnode:call", tell);
}

test("Snowflake ids rise inside of one window, whose rest is given back", async (t) => {
  const clock = stop(t);
  const node = await Node.start(t, { database: "books", label: "shop 1" });
  const orders = node.client.snowflake("orders");
  assert.equal(node.client.snowflake("orders"), orders);
  let last = 0n;
  for (let i = 0; i < 300; i++, clock.go(i % 7)) {
    const [id, ...more] = i % 2 ? await orders.nextIds(3) : [await orders.nextId()];
    for (const next of [id, ...more]) {
      assert.ok(next > last, `${next} after ${last}`);
      last = next;
    }
    assert.ok(Math.abs(timeOf(last) - clock.wall) <= 100);
  }
  assert.deepEqual(await orders.parse(last), { time: new Date(timeOf(last)), worker: 2, sequence: Number(last & 4095n) });
  await orders.close();
  await assert.rejects(orders.nextId(), ClosedError);
  const [acquire, release] = node.asked.map(({ body }) => body);
  const of = { pool: "orders", database: "books" };
  assert.deepEqual([acquire.holder, acquire.now, acquire.database], ["shop 1", "2027-01-15T08:00:00.000Z", "books"]);
  assert.deepEqual(release, { ...of, worker: 2, token: "AAAAAAAAAAc=", next: String(timeOf(last) + 1) });
  assert.equal(node.asked.length, 2);
  assert.ok(await node.client.snowflake("orders").nextId());
});

test("a window is renewed at half of its time, while it is used", async (t) => {
  const clock = stop(t);
  const node = await Node.start(t);
  const orders = node.client.snowflake("orders");
  await orders.nextId();
  clock.go(29_000);
  await orders.nextId();
  clock.go(20_000); // Nobody asks.
  assert.equal(calls(node, "RenewWorker").length, 0);
  for (let i = 0; i < 4; i++, clock.go(31_000)) await renewed(orders);
  assert.equal(calls(node, "RenewWorker").length, 4);
  assert.deepEqual(calls(node, "RenewWorker")[0], { pool: "orders", worker: 2, token: "AAAAAAAAAAc=", now: "2027-01-15T08:00:49.000Z", database: "" });
  assert.equal(calls(node, "AcquireWorker").length, 1);
});

test("one that is cut off makes ids until its window ends, and then throws the lease's error", async (t) => {
  const clock = stop(t);
  const node = await Node.start(t);
  const orders = node.client.snowflake("orders");
  const end = clock.wall + 60_000;
  await orders.nextId();
  node.answer = () => REFUSED;
  clock.go(31_000);
  for (let i = 0; i < 4; i++, clock.go(3000)) await renewed(orders); // At a tenth of the rest, each time.
  for (; clock.wall < end; clock.go(500)) assert.ok(timeOf(await orders.nextId()) < end);
  clock.wall -= 3600_000; // A clock that is set back makes no more ids.
  const error = await orders.nextIds(2).catch((failed) => failed);
  assert.deepEqual([error.reason, error.ids], ["PERMISSION_DENIED", []]);
  delete node.answer;
  clock.wall += 3600_000;
  assert.ok(timeOf(await orders.nextId()) >= end - 1000);
});

test("no id has a time at or after the window's end", async (t) => {
  const clock = stop(t);
  const node = await Node.start(t);
  node.layout = NARROW;
  const orders = node.client.snowflake("orders");
  const end = clock.wall + 60_000;
  await orders.nextId();
  clock.go(59_990);
  node.hold = () => true;
  const ids = orders.nextIds(41).catch((error) => error);
  await node.holds(2); // The renewal, and another lease for the last one.
  node.answer = () => REFUSED;
  node.letGo();
  const error = await ids;
  assert.equal(error.ids.length, 40);
  assert.ok(error.ids.every((id) => timeOf(id, NARROW) < end));
  assert.equal(JSON.parse(JSON.stringify(error)).ids[0], String(error.ids[0]));
});

test("a clock that is set changes nothing in the middle of a window", async (t) => {
  const clock = stop(t);
  const node = await Node.start(t);
  const orders = node.client.snowflake("orders");
  const first = await orders.nextId();
  clock.wall -= 3600_000;
  clock.monotonic += 5;
  assert.equal(timeOf(await orders.nextId()), timeOf(first) + 5);
  clock.wall += 7200_000;
  assert.equal(timeOf(await orders.nextId()), timeOf(first) + 5);
  assert.equal(node.asked.length, 1);
});

test("where the sequence is full, ids run before the clock by a tenth of a second, and wait then", async (t) => {
  const clock = stop(t);
  const node = await Node.start(t);
  node.layout = NARROW;
  const orders = node.client.snowflake("orders");
  const ids = await orders.nextIds(404);
  assert.deepEqual([timeOf(ids[403], NARROW) - clock.wall, ids[403] & 3n], [100, 3n]);
  const abort = new AbortController();
  const [left, late, ...rest] = [
    orders.nextId({ signal: abort.signal }), orders.nextId({ timeout: 1 }), ...Array.from({ length: 1000 }, () => orders.nextId()),
  ].map((call) => call.catch((error) => error));
  abort.abort();
  assert.ok(await left instanceof AbortError);
  assert.equal((await late).reason, "WINDOW_EARLY");
  let waits = true;
  const all = Promise.all(rest).finally(() => { waits = false; });
  while (waits) {
    clock.go(1);
    await new Promise((resolve) => { setTimeout(resolve); });
  }
  assert.equal(new Set([...ids, ...await all]).size, 1404);
});

test("a window that begins later is waited for up to the client's timeout", async (t) => {
  const clock = stop(t);
  const node = await Node.start(t, { timeout: 5000 });
  const orders = node.client.snowflake("orders");
  const answer = node.answer.bind(node);
  node.answer = (method, body) => {
    const [lease] = answer(method, body);
    return [{ ...lease, from: String(clock.wall + 5200) }];
  };
  const error = await orders.nextId().catch((failed) => failed);
  assert.deepEqual([error.name, error.reason, error.retryAfter], ["IdnodeError", "WINDOW_EARLY", 5100]);
  const from = clock.wall + 5200;
  clock.go(5100);
  assert.equal(timeOf(await orders.nextId()), from);
  await orders.close();
  assert.deepEqual(node.asked.map(({ method }) => method), ["AcquireWorker", "ReleaseWorker"]);
});

test("callers share an acquisition, which the abort of one, or a close, does not end", async (t) => {
  const node = await Node.start(t);
  const orders = node.client.snowflake("orders");
  node.hold = (method) => method === "AcquireWorker";
  const abort = new AbortController();
  const [left, late] = [orders.nextId({ signal: abort.signal }), orders.nextIds(3, { timeout: 1 })].map((call) => call.catch((error) => error));
  await node.holds(1);
  abort.abort();
  assert.ok(await left instanceof AbortError);
  assert.ok(await late instanceof NoEndpointError);
  const ended = orders.nextId().catch((error) => error);
  const closed = orders.close();
  assert.ok(await ended instanceof ClosedError);
  node.letGo();
  await closed;
  assert.equal(calls(node, "ReleaseWorker").length, 1);
  assert.equal(calls(node, "AcquireWorker").length, 1);
});

test("an id has its parts, also one of 53 bits as a Number", async (t) => {
  const node = await Node.start(t);
  const web = node.client.snowflake("web");
  await assert.rejects(web.parse(1n), { reason: "POOL_NOT_FOUND", field: "pool" });
  const layout = { epoch: "2020-01-01T00:00:00Z", unit: "0.010s", timeBits: 38, workerBits: 7, sequenceBits: 8 };
  node.answer = () => [{ pools: [{ name: "web", layout }] }];
  const parts = { time: new Date(4_326_615_869_430), worker: 127, sequence: 255 };
  assert.deepEqual([await web.parse(Number.MAX_SAFE_INTEGER), await web.parse(2n ** 53n - 1n)], [parts, parts]);
  await assert.rejects(web.parse(2 ** 60), TypeError);
  await assert.rejects(web.parse(1, { tiemout: 1 }), TypeError);
  await assert.rejects(web.nextIds(10_001), { reason: "INVALID_COUNT", field: "count" });
  assert.equal(node.asked.length, 2);
});

test("errors and answers are JSON", async (t) => {
  const node = await Node.start(t);
  const users = node.client.hilo("users");
  assert.equal(JSON.stringify(await users.next()), '{"value":"1","nodeTag":"A","id":"users/1-A"}');
  assert.equal(JSON.stringify(await node.client.identity("a").nextN(2)), '[{"first":"101","last":"102"}]');
  const details = [{ debug: { domain: "idnode", reason: "RATE_LIMITED" } }, { debug: { retryDelay: "1.5s" } }];
  node.answer = () => [{ code: "resource_exhausted", message: "too fast", details }, 429];
  const error = await node.client.identity("a").next().catch((failed) => failed);
  assert.ok(error instanceof RateLimitedError);
  const { name, message, reason, retryAfter, requestId } = JSON.parse(JSON.stringify(error));
  assert.deepEqual({ name, message, reason, retryAfter }, { name: "RateLimitedError", message: "RATE_LIMITED: too fast", reason: "RATE_LIMITED", retryAfter: 1500 });
  assert.deepEqual(requestId, error.requestId);
});

test("many ids leave turns to others", async (t) => {
  const node = await Node.start(t);
  let turns = 0;
  let counting = true;
  const count = () => {
    turns++;
    if (counting) setImmediate(count);
  };
  setImmediate(count);
  const ids = await node.client.nextN("users/", 200_000);
  counting = false;
  assert.equal(ids.length, 200_000);
  assert.deepEqual([ids[0], ids[199_999]], ["users/0000000000000000001-A", "users/0000000000000200000-A"]);
  assert.ok(turns >= 20, `${turns} turns`);
});

test("a closed handle has a successor", async (t) => {
  const node = await Node.start(t);
  const users = node.client.hilo("users");
  await users.nextId();
  await users.close();
  assert.ok(users.closed);
  await assert.rejects(users.nextId(), ClosedError);
  assert.equal(await node.client.hilo("users").nextId(), "users/101-A");
  await node.client.close();
  assert.deepEqual(node.asked.filter(({ method }) => method === "ReturnRange").map(({ body }) => body.low), ["1", "101"]);
  assert.throws(() => node.client.hilo("users"), ClosedError);
});

test("a client and a handle are disposed of where the runtime can", { skip: !Symbol.asyncDispose }, async (t) => {
  const node = await Node.start(t);
  const users = node.client.hilo("users");
  await users.nextId();
  await users[Symbol.asyncDispose]();
  await node.client[Symbol.asyncDispose]();
  assert.equal(node.asked.filter(({ method }) => method === "ReturnRange").length, 1);
  await assert.rejects(node.client.next("users/"), ClosedError);
});

test("channels tell of calls, retries, changes of leader and looks", async (t) => {
  const node = await Node.start(t);
  const told = [];
  for (const name of ["call", "retry", "failover", "look"].map((kind) => `idnode:${kind}`)) {
    const tell = (message) => told.push([name, message]);
    subscribe(name, tell);
    t.after(() => unsubscribe(name, tell));
  }
  const answer = node.answer.bind(node);
  node.answer = () => {
    node.answer = answer;
    return [{ code: "unavailable", message: "starting", details: [{ debug: { domain: "idnode", reason: "STARTING" } }] }, 503];
  };
  assert.equal(await node.client.identity("a").next(), 1n);
  while (!told.some(([channel]) => channel === "idnode:look")) await new Promise(setImmediate);
  const [first, second] = ["idnode:failover", "idnode:look"].map((name) => told.find(([channel]) => channel === name)[1]);
  assert.deepEqual(first, { from: undefined, to: node.address });
  assert.deepEqual([second.leader, second.answered], [node.address, [node.address]]);
  const retry = told.find(([channel]) => channel === "idnode:retry")[1];
  assert.deepEqual([retry.method, retry.node, retry.tries, retry.error.reason], ["IdsService/NextIdentity", node.address, 1, "STARTING"]);
  const call = told.find(([channel]) => channel === "idnode:call")[1];
  assert.deepEqual([call.method, call.node, call.tries, call.error], ["IdsService/NextIdentity", node.address, 2, undefined]);
  assert.ok(call.duration > 0 && second.duration > 0);
});

test("each worker thread has a client of its own", async (t) => {
  const node = await Node.start(t);
  const program = `
    const { parentPort, workerData } = require("node:worker_threads");
    const { Client } = require(workerData.client);
    const client = new Client([workerData.address]);
    client.identity("a").nextN(5).then((blocks) => client.close().then(() => parentPort.postMessage(blocks)));`;
  const blocks = await Promise.all([1, 2].map(() => new Promise((resolve, reject) => {
    new Worker(program, { eval: true, workerData: { client: require.resolve("idnode"), address: node.address } }).once("message", resolve).once("error", reject);
  })));
  assert.deepEqual(blocks.flat().map(({ last }) => last).sort(), [10n, 5n]);
});
