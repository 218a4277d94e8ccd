// What the client does that the clients of other languages have no word for. Run it with "npm test".

import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { generateKeyPairSync } from "node:crypto";
import { getEventListeners, once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { rootCertificates } from "node:tls";
import { execFile } from "node:child_process";
import { inspect, promisify } from "node:util";
import { Worker } from "node:worker_threads";

import * as idnode from "idnode";

const { AbortError, Client, ClosedError, DeadlineError, NoEndpointError, OutcomeUnknownError, OverloadedError, RateLimitedError } = idnode;
const require = createRequire(import.meta.url);
const { fromUrl } = require("./config.js");
const { Router } = require("./router.js");
const { Tls } = require("./tls.js");
const run = promisify(execFile);
const FOREVER = 2 ** 31 - 1; // Nothing but what is tested ends such a call.
const STATUS = { clusterId: "c", self: { tag: "A" }, hasQuorum: true, appliedIndex: "100" };
const RANGE = { prefix: "users/", nodeTag: "A", rangeAt: null, size: "100", token: "AQ==", fromReserve: false };
const LAYOUT = { epoch: "1970-01-01T00:00:00Z", unit: "0.001s", timeBits: 45, workerBits: 2, sequenceBits: 12 };
const NARROW = { ...LAYOUT, sequenceBits: 2 }; // Four ids a unit.
const REFUSED = [{ code: "permission_denied", message: "no", details: [{ debug: { domain: "idnode", reason: "PERMISSION_DENIED" } }] }, 403];

// A node, by default one that counts. With hold it keeps the answers that hold chooses, until they are let go.
class Node {
  asked = [];
  held = [];
  statuses = 0; // How often it was asked for its own.
  sockets = 0; // That were ever opened.
  hold = () => false;
  cluster = STATUS.clusterId;
  layout = LAYOUT;
  status = (give) => give(STATUS);
  leader = () => ({ term: "1", address: this.address }); // As its answers name it.
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
      response.setHeader("Idnode-Cluster-Id", this.cluster);
      const { term, address } = this.leader() ?? {};
      if (address) response.setHeader("Idnode-Leader-Address", address).setHeader("Idnode-Term", term);
      response.statusCode = status;
      response.end(JSON.stringify({ logIndex: "101", ...answer }));
    };
    if (method === "GetStatus") {
      this.statuses++;
      return this.status(give);
    }
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
        return [{ worker: 2, token: "0000000000000007", from: String(from), until: String(from + 61_000), layout: this.layout }];
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
  assert.ok(idnode.Client && idnode.tagOf && idnode.IdnodeError);
});

test("a request id where it does not count is refused, and nothing is sent", async (t) => {
  const node = await Node.start(t);
  for (const [template, options] of [["users/"], ["", {}], ["users/ayende"], ["users-", { separator: "-" }]]) {
    for (const requestId of ["order-17", { id: "order-17", since: 5n }]) {
      await assert.rejects(node.client.next(template, { ...options, requestId }), { name: "InvalidError", reason: "INVALID_OPTION", field: "" });
    }
  }
  assert.deepEqual(node.asked, []);
});

test("a request id that is none is refused, and nothing is sent", async (t) => {
  const node = await Node.start(t);
  const { client } = node;
  const a = client.identity("a");
  for (const requestId of ["", null, 0, 17, 17n, true, {}, { id: "" }, { id: 17 }, new Uint8Array(3)]) {
    for (const call of [
      () => client.next("a|", { requestId }), () => client.claim("a", { requestId }), () => client.release("a", { requestId }),
      () => a.next({ requestId }), () => a.seed(7n, { requestId }), () => a.delete({ requestId }),
    ]) await assert.rejects(call(), { name: "InvalidError", reason: "INVALID_REQUEST_ID", field: "request_id", message: /a string that is not empty/ });
    await assert.rejects(client.next("users/", { requestId }), { reason: "INVALID_OPTION" });
  }
  assert.deepEqual(node.asked, []);
  await a.next({ requestId: undefined });
});

test("a signal that is aborted before a call ends it, and nothing is sent", async (t) => {
  const node = await Node.start(t);
  const signal = AbortSignal.abort("because");
  const users = node.client.hilo("users");
  for (const call of [
    () => node.client.identity("invoices").next({ signal }), () => node.client.next("users/", { signal }), () => users.nextId({ signal }),
    () => users.nextIds(3, { signal }), () => node.client.series("bills").take(["a"], { signal }), () => node.client.claims("", { signal }).next(),
  ]) {
    await assert.rejects(call(), (error) => error instanceof AbortError && error.name === "AbortError" && error.cause === "because" && error.reason === "CANCELED");
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
  await node.holds(96);
  assert.equal(getEventListeners(abort.signal, "abort").length, 1);
  abort.abort();
  const errors = await Promise.all(calls);
  assert.ok(errors.every((error) => error instanceof AbortError));
  assert.equal(errors.filter(({ reason }) => reason === "OUTCOME_UNKNOWN").length, 96);
  node.letGo();
  assert.ok(await node.client.identity("invoices").next());
});

test("calls that a node holds do not keep out those that it answers by itself", async (t) => {
  const node = await Node.start(t);
  node.hold = (method) => method === "NextIdentity";
  const abort = new AbortController();
  const held = Array.from({ length: 200 }, () => node.client.identity("invoices").next({ signal: abort.signal }).catch((error) => error));
  await node.holds(96);
  const ids = await Promise.all(Array.from({ length: 100 }, () => node.client.next("users/")));
  assert.equal(ids.length, 100);
  await assert.rejects(node.client.identity("invoices").next({ timeout: 20 }), OverloadedError);
  abort.abort();
  await Promise.all(held);
  assert.equal(node.held.length, 96);
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

test("with one connection, a look does not wait behind a call", { timeout: 10_000 }, async (t) => {
  let hear = () => {};
  const node = await Node.start(t, { maxConnections: 1, observe: ({ kind }) => kind === "look" && hear() });
  await node.client.identity("invoices").next();
  node.hold = () => true;
  const call = node.client.identity("invoices").next();
  await node.holds(1);
  const { statuses } = node;
  const looked = new Promise((resolve) => { hear = resolve; });
  node.client.setEndpoints([node.address]);
  await looked;
  assert.ok(node.statuses > statuses);
  node.letGo();
  assert.equal(await call, 2n);
  assert.equal(node.sockets, 2);
});

test("a caller of a range that leaves does not end the fetch of the others", async (t) => {
  const node = await Node.start(t);
  node.hold = (method) => method === "NextRange";
  const users = node.client.hilo("users");
  await node.client.next("users/"); // Else no node has answered when the time is over.
  const abort = new AbortController();
  const [left, late, lateIds, stays] = [
    users.nextId({ signal: abort.signal }), users.nextId({ timeout: 1 }), users.nextIds(3, { timeout: 1 }), users.nextId(),
  ].map((call) => call.catch((error) => error));
  await node.holds(1);
  abort.abort();
  assert.ok(await left instanceof AbortError);
  assert.ok(await late instanceof DeadlineError);
  assert.deepEqual((await lateIds).ids, []);
  node.letGo();
  assert.deepEqual([await stays, await users.nextId()], ["users/1-A", "users/2-A"]);
  assert.equal(node.asked.filter(({ method }) => method === "NextRange").length, 1);
});

const SILENT = Infinity;

// Three nodes of which the first leads, until it falls silent and keeps what comes. The others then need a time to answer, or are
// silent too; the first that is not is elected, or not yet.
async function falling(t, delays, elected = true) {
  const nodes = [await Node.start(t), await Node.start(t), await Node.start(t)];
  const client = new Client(nodes.map(({ address }) => address), { timeout: FOREVER, tryTimeout: FOREVER });
  let times = [0, 0, 0];
  for (const [i, node] of nodes.entries()) {
    const voted = () => elected && times[0] === SILENT;
    const leads = () => nodes[voted() ? times.findIndex((time) => time !== SILENT) : 0];
    node.leader = () => ({ term: voted() ? "2" : "1", address: leads().address });
    node.status = (give) => times[i] === SILENT || setTimeout(() => give(STATUS), times[i]);
    node.hold = () => times[i] === SILENT;
  }
  await client.identity("invoices").next();
  return { client, nodes, fall: () => { times = [SILENT, ...delays]; } };
}

test("a look that finds another leader ends the tries at a node that it did not hear", async (t) => {
  const { client, nodes: [first, second], fall } = await falling(t, [0, 0]);
  first.hold = () => true;
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

// A view of the cluster in which nodes are voters, but for those with another role.
const viewOf = (nodes, ...others) => ({ ...STATUS, members: [...nodes.map(({ address }) => ({ role: "ROLE_FOLLOWER", httpAddress: address })), ...others] });

test("each answer names the leader, and an older term changes nothing", async (t) => {
  const nodes = [await Node.start(t), await Node.start(t)];
  const [first, second] = nodes;
  const client = new Client(nodes.map(({ address }) => address));
  const said = { term: "7", address: first.address };
  for (const node of nodes) node.leader = () => said;
  const call = () => client.identity("invoices").next();
  await call();
  for (const [term, address, leads] of [["8", second.address, second], ["7", first.address, second], ["x", first.address, second], ["18446744073709551615", first.address, first]]) {
    Object.assign(said, { term, address });
    await call();
    const before = leads.asked.length;
    await call();
    assert.equal(leads.asked.length, before + 1, term);
  }
});

test("a refusal names the leader too", async (t) => {
  const nodes = [await Node.start(t), await Node.start(t)];
  const [first, second] = nodes;
  const client = new Client(nodes.map(({ address }) => address));
  for (const node of nodes) node.leader = () => ({ term: "1", address: first.address });
  await client.identity("invoices").next();
  first.leader = () => ({ term: "2", address: second.address });
  first.answer = () => REFUSED;
  await assert.rejects(client.identity("invoices").next(), { reason: "PERMISSION_DENIED" });
  await client.identity("invoices").next();
  assert.deepEqual([first.asked.length, second.asked.length], [2, 1]);
});

test("addresses are learnt from the cluster, and forgotten again", async (t) => {
  const [given, leader, stranger, watcher, removed] = [await Node.start(t), await Node.start(t), await Node.start(t), await Node.start(t), await Node.start(t)];
  const client = new Client([given.address], { clusterId: "c" });
  stranger.cluster = "other";
  const others = [{ role: "ROLE_WATCHER", httpAddress: watcher.address }, { role: "ROLE_REMOVED", httpAddress: removed.address }, ...["no address", "", undefined, "a:0", "a:65536", "http://a:1", "a:1/"].map((httpAddress) => ({ role: "ROLE_FOLLOWER", httpAddress }))];
  let view = viewOf([given, leader, stranger], ...others);
  let said = leader.leader();
  for (const node of [given, leader, stranger]) {
    node.status = (give) => give(view);
    node.leader = () => said;
  }
  while (leader.asked.length === 0) await client.identity("invoices").next();
  assert.equal(String(client), `Client(${given.address}; learnt ${leader.address}, ${stranger.address}; ${leader.address} leads; open)`);
  said = { term: "2", address: stranger.address };
  for (let i = 0; i < 10; i++) await client.identity("invoices").next();
  assert.deepEqual([stranger, watcher, removed].map(({ asked }) => asked.length), [0, 0, 0]);
  const looked = async () => {
    const statuses = given.statuses;
    while (given.statuses === statuses) {
      client.setEndpoints([given.address]);
      await client.identity("invoices").next();
    }
  };
  view = { ...viewOf([given]), hasQuorum: false }; // One that is cut off.
  await looked();
  view = { ...viewOf([given]), appliedIndex: "99" }; // One that is behind.
  await looked();
  assert.match(String(client), /learnt/);
  view = viewOf([given]);
  while (/learnt/.test(client)) await looked();
  assert.equal(String(client), `Client(${given.address}; no leader is known; open)`);
  await client.close();
});

test("a node whose members call it otherwise is learnt once", async (t) => {
  const node = await Node.start(t);
  const self = { role: "ROLE_LEADER", httpAddress: "a.example:7402" };
  node.status = (give) => give({ ...STATUS, self, members: [self] });
  node.leader = () => ({ term: "1", address: self.httpAddress });
  for (let i = 0; i < 3; i++) await node.client.identity("invoices").next();
  assert.equal(`${node.client}`, `Client(${node.address}; ${node.address} leads; open)`);
});

test("endpoints are replaced on a living client", async (t) => {
  const [first, second] = [await Node.start(t), await Node.start(t)];
  first.hold = () => true;
  const held = first.client.identity("invoices").next();
  await first.holds(1);
  first.client.setEndpoints([second.address]);
  first.letGo();
  await held;
  await first.client.identity("invoices").next();
  assert.deepEqual([first.asked.length, second.asked.length], [1, 1]);
  for (const wrong of [[], "a:1", ["a"], [second.address, "a:b"]]) assert.throws(() => first.client.setEndpoints(wrong), TypeError);
  assert.match(String(first.client), new RegExp(`^Client\\(${second.address};`));
});

// A client that fails fast, and its only node. pass makes calls while time passes, until they have failed.
async function failingFast(t) {
  const clock = stop(t);
  const node = await Node.start(t);
  const client = new Client([node.address], { failFastAfter: 5000, timeout: 6000, tryTimeout: 1000 });
  const { status } = node;
  await client.identity("invoices").next();
  const fall = () => {
    node.hold = () => true;
    node.status = () => {};
  };
  const rise = () => {
    node.status = status;
    node.letGo();
  };
  const pass = async (...begin) => {
    const passing = setInterval(() => clock.go(50), 1);
    const errors = await Promise.all(begin.map((call) => call().catch((failed) => failed)));
    clearInterval(passing);
    for (const { message } of errors) assert.doesNotMatch(message, /failFastAfter/);
    return errors;
  };
  return { clock, node, client, call: () => client.identity("invoices").next(), fall, rise, pass };
}

test("after an outage calls fail at once, until a node answers", async (t) => {
  const { call, fall, rise, pass } = await failingFast(t);
  fall();
  await pass(call);
  const tries = call(); // The one of this second.
  const error = await call().catch((failed) => failed);
  assert.ok(error instanceof NoEndpointError);
  assert.match(error.message, /no node has answered for \d+\.\d s/);
  rise();
  await tries;
  await call();
});

test("a call that fails at once stays unknown if it was, and a range is asked for again", async (t) => {
  const { node, client, call, fall, rise, pass } = await failingFast(t);
  const users = client.hilo("users");
  fall();
  const [{ requestId }] = await pass(call, () => users.nextId());
  const tries = call(); // The one of this second.
  for (const again of [() => client.identity("invoices").next({ requestId }), () => users.nextId()]) {
    const error = await again().catch((failed) => failed);
    assert.match(error.message, /failFastAfter/);
    assert.ok(error instanceof OutcomeUnknownError);
  }
  rise();
  await tries;
  await users.nextId();
  assert.equal(new Set(calls(node, "NextRange").map((body) => body.requestId.id)).size, 1);
});

test("a time without tries is no outage", async (t) => {
  const { clock, call, fall, rise, pass } = await failingFast(t);
  fall();
  await pass(call);
  clock.go(60_000);
  rise();
  assert.equal((await Promise.all([call(), call(), call()])).length, 3);
});

test("tries that fail with a long time between are no outage", (t) => {
  const clock = stop(t);
  const router = new Router(["a:1"], "", { maxConnections: 1 });
  router.unanswered(clock.monotonic);
  clock.go(60_000);
  router.unanswered(clock.monotonic);
  for (let i = 0; i < 2; i++) router.checkSilence(5000);
  for (let i = 0; i < 2; i++, clock.go(4000)) router.unanswered(clock.monotonic);
  router.unanswered(clock.monotonic);
  router.checkSilence(5000); // The one of this second.
  assert.throws(() => router.checkSilence(5000), { reason: "NO_ENDPOINT" });
});

test("a try that fails after another node has answered is no outage", (t) => {
  const clock = stop(t);
  const router = new Router(["a:1"], "", { maxConnections: 1 });
  const began = clock.monotonic;
  clock.go(1000);
  router.answered();
  clock.go(6000);
  router.unanswered(began);
  for (let i = 0; i < 2; i++) router.checkSilence(5000);
});

test("a client is told what it is by the environment or a URL", async (t) => {
  const node = await Node.start(t);
  const env = { IDNODE_HTTP_ENDPOINTS: ` ${node.address}, b:7402, `, IDNODE_DATABASE: "shop", IDNODE_CLUSTER_ID: "c", IDNODE_TLS_CA: "" };
  t.after(() => { for (const name of [...Object.keys(env), "IDNODE_TLS_CERT"]) delete process.env[name]; });
  Object.assign(process.env, env);
  for (const client of [Client.fromEnv(), Client.fromUrl(`idnode+http://${node.address},b:7402/sho%70?cluster-id=c`)]) {
    assert.equal(String(client), `Client(${node.address}, b:7402; no leader is known; open)`);
    await client.next("users/");
    await client.close();
  }
  await Client.fromEnv({ database: "own" }).next("users/");
  assert.deepEqual(node.asked.map(({ body, headers }) => [body.database, headers["idnode-cluster-id"]]), [["shop", "c"], ["shop", "c"], ["own", "c"]]);
  process.env.IDNODE_TLS_CERT = "/no/such/file";
  assert.throws(() => Client.fromEnv(), /IDNODE_TLS_CA/);
  process.env.IDNODE_TLS_CA = "/no/such/file";
  assert.throws(() => Client.fromEnv(), /IDNODE_TLS_KEY/);
  delete process.env.IDNODE_TLS_CERT;
  assert.throws(() => Client.fromEnv(), /no.such.file/);
  for (const none of [" ", ",", " , "]) {
    process.env.IDNODE_HTTP_ENDPOINTS = none;
    assert.throws(() => Client.fromEnv(), /IDNODE_HTTP_ENDPOINTS/);
  }
});

test("an option that is undefined leaves what the environment or a URL says, and one that is null is refused", async (t) => {
  const node = await Node.start(t);
  t.after(() => { for (const name of ["IDNODE_HTTP_ENDPOINTS", "IDNODE_DATABASE"]) delete process.env[name]; });
  Object.assign(process.env, { IDNODE_HTTP_ENDPOINTS: node.address, IDNODE_DATABASE: "shop" });
  const none = { database: undefined, clusterId: undefined, tls: undefined, timeout: undefined };
  const client = Client.fromUrl(`idnode+http://${node.address}/shop?cluster-id=c`, none);
  for (const of of [client, Client.fromEnv(none)]) await of.identity("a").next({ database: undefined });
  await client.hilo("users", { database: undefined }).next();
  assert.deepEqual(node.asked.map(({ body }) => body.database), ["shop", "shop", "shop"]);
  await assert.rejects(Client.fromUrl(`idnode+http://${node.address}?cluster-id=other`, none).next("a|"), { name: "OtherClusterError" });
  await assert.rejects(Client.fromUrl(`idnode+http://${node.address}?tls=true`, none).next("a|"), { name: "NoEndpointError" });
  const wrong = { name: "InvalidError", reason: "INVALID_DATABASE", field: "database" };
  for (const database of [null, 5]) {
    assert.throws(() => new Client(["a:1"], { database }), wrong);
    for (const of of [client.hilo("users", { database }), client.snowflake("orders", { database })]) await assert.rejects(of.nextIds(1), wrong);
    await assert.rejects(client.identity("a").next({ database }), wrong);
  }
  assert.throws(() => new Client(["a:1"], { tls: null }), TypeError);
  assert.equal(node.asked.length, 3);
});

test("URLs are read as those of the other clients, but name HTTP addresses", () => {
  const http = (text) => text.replace(/^idnode:/, "idnode+http:");
  const urls = JSON.parse(readFileSync(new URL("../conformance/urls.json", import.meta.url), "utf8"));
  for (const [name, { endpoints, database = "", clusterId = "", tls, error, hides }] of Object.entries(urls)) {
    const url = http(name);
    if (error !== undefined) {
      assert.throws(() => Client.fromUrl(url), (failed) => failed instanceof TypeError && failed.message.includes(http(error)) && !(hides && failed.message.includes(hides)), url);
      continue;
    }
    const files = tls && Object.fromEntries(Object.entries({ ca: tls.ca, cert: tls.cert, key: tls.key, servername: tls.serverName }).filter(([, text]) => text));
    assert.deepEqual(fromUrl(url), { endpoints, options: { database, clusterId, ...(files && { tls: files }) } }, url);
  }
  assert.throws(() => Client.fromUrl("idnode://a:7400/shop"), { name: "TypeError", message: /idnode:\/\/ names gRPC addresses/ });
});

test("an observer hears of tries, looks, leaders and gaps, and ends no call", async (t) => {
  const heard = [];
  const node = await Node.start(t, { observe: (event) => heard.push(event) });
  const answer = node.answer.bind(node);
  node.answer = (method, body) => (method === "ReturnRange" ? [{ returned: false, max: "1" }] : answer(method, body));
  await node.client.hilo("users").nextId();
  node.answer = ((before) => (method, body) => (method === "NextIdentity" ? REFUSED : before(method, body)))(node.answer);
  await assert.rejects(node.client.identity("a").next(), { reason: "PERMISSION_DENIED" });
  await node.client.close();
  const tries = heard.filter(({ kind }) => kind === "try");
  assert.deepEqual(tries.map(({ node: at, attempt, err }) => [at, attempt, err?.reason]), [[node.address, 1, undefined], [node.address, 1, "PERMISSION_DENIED"], [node.address, 1, undefined]]);
  assert.ok(tries.every(({ duration }) => duration >= 0));
  assert.deepEqual(heard.filter(({ kind }) => ["leader", "gap"].includes(kind)), [{ kind: "leader", node: node.address }, { kind: "gap" }]);
  assert.equal(heard.find(({ kind }) => kind === "look").node, node.address);
  assert.throws(() => new Client(["a:1"], { observe: true }), TypeError);
});

test("what an observer throws, now or later, is a warning, and ends nothing", async (t) => {
  const node = await Node.start(t);
  const program = `
    const { Client } = require(process.argv[1]);
    const seen = [];
    process.on("warning", ({ name, message }) => seen.push(name + ": " + message));
    const client = new Client([process.argv[2]], { observe: ASYNC ({ kind }) => { if (kind === "try") throw new Error("mine"); } });
    client.identity("a").next().then(() => client.close()).then(() => setImmediate(() => console.log(seen.join())));`;
  for (const kind of ["", "async"]) {
    const { stdout } = await run(process.execPath, ["-e", program.replace("ASYNC", kind), require.resolve("idnode"), node.address]);
    assert.equal(stdout, "IdnodeWarning: an observer failed: Error: mine\n");
  }
});

test("a client that is dropped without close is a warning, and its sockets are closed", async (t) => {
  const node = await Node.start(t);
  const program = `
    const { Client } = require(process.argv[1]);
    process.on("warning", ({ name, message }) => { console.log(name, message); clearInterval(collecting); });
    const use = async (close) => { const client = new Client([process.argv[2]]); await client.hilo("users").nextId(); if (close) await client.close(); };
    let collecting;
    for (let i = 0; i < 100; i++) new Client(["a:1"]).hilo("users"); // They never called.
    use(true).then(() => use(false)).then(() => { collecting = setInterval(gc, 10); });`;
  const { stdout } = await run(process.execPath, ["--expose-gc", "-e", program, require.resolve("idnode"), node.address]);
  assert.equal(stdout, `IdnodeWarning a client was dropped without close, and unused numbers of it may be lost: ${node.address}; ${node.address} leads; open\n`);
});

test("a certificate that ended on a connection is another one on the next", async (t) => {
  const node = await Node.start(t);
  const ended = [{ code: "unauthenticated", message: "it has ended", details: [{ debug: { domain: "idnode", reason: "CERTIFICATE_ENDED" } }] }, 401];
  await Promise.all(Array.from({ length: 5 }, () => node.client.next("users/")));
  const answer = node.answer.bind(node);
  let refused = 0;
  node.answer = (method, body) => (refused++ < 1 ? ended : answer(method, body));
  const { sockets } = node;
  await node.client.identity("a").next();
  assert.equal(refused, 2);
  assert.ok(node.sockets > sockets);
  node.answer = () => ended;
  await assert.rejects(node.client.identity("a").get({ timeout: 300 }), { code: "unauthenticated", reason: "CERTIFICATE_ENDED" });
});

test("a file of TLS that is empty, wrong or cut off is refused, or leaves what it had before", async (t) => {
  const clock = stop(t);
  const folder = mkdtempSync(join(tmpdir(), "idnode-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const [first, second] = rootCertificates;
  const key = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" });
  const half = (text) => text.slice(0, text.length / 2);
  const broken = second.replace(/(?<=CERTIFICATE-----\n)..../, "AAAA");
  const wrong = ["", "\n", "garbage", half(first), `${first}\n${half(second)}`, `${first}\n${broken}`, broken];
  for (const [name, right, texts] of [["ca", first, [...wrong, key]], ["cert", first, [...wrong, key]], ["key", key, ["", "garbage", half(key), first]]]) {
    const file = join(folder, name);
    const make = () => new Tls({ [name]: file });
    writeFileSync(file, right);
    const tls = make();
    const { context } = tls;
    for (const text of texts) {
      writeFileSync(file, text);
      assert.throws(make, ({ message }) => message.includes(file), `${name}: ${text}`);
      clock.go(1001);
      const warned = once(process, "warning");
      assert.equal(tls.context, context, `${name}: ${text}`);
      const [{ message }] = await warned;
      assert.match(message, /as they were/);
      writeFileSync(file, right); // The next is told of again.
      clock.go(1001);
      assert.equal(tls.context, context);
    }
    writeFileSync(file, `# A comment.\r\n${right}\n${name === "key" ? "" : second}`);
    clock.go(1001);
    assert.notEqual(tls.context, context);
  }
});

test("options of TLS that the client does not know are refused, and names of files may be in a list", (t) => {
  for (const tls of ["ca.crt", true, null, 5, ["ca.crt"], { caFile: "ca.crt" }, { serverName: "x" }, { ca: rootCertificates[0], maxSockets: 1 }, { ca: ["/no/such/file"] }]) {
    assert.throws(() => new Client(["a:1"], { tls }), (error) => error instanceof TypeError || /no.such.file/.test(error.message), inspect(tls));
  }
  new Client(["a:1"], { tls: { ca: undefined, servername: "x", minVersion: "TLSv1.3", rejectUnauthorized: false, ciphers: undefined, pfx: undefined, passphrase: "p" } });
  const clock = stop(t);
  const folder = mkdtempSync(join(tmpdir(), "idnode-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "ca.crt");
  writeFileSync(file, rootCertificates[0]);
  const tls = new Tls({ ca: [file, rootCertificates[1], Buffer.from(rootCertificates[2])] });
  const { context } = tls;
  clock.go(1001);
  assert.equal(tls.context, context);
  assert.equal(tls.options.maxCachedSessions, 0);
  writeFileSync(file, rootCertificates[3]);
  clock.go(1001);
  assert.notEqual(tls.context, context);
});

test("a client shows no secret", () => {
  const client = Client.fromUrl("idnode+http://a:1,[::1]:2/shop?tls=true", { tls: { passphrase: "secret" } });
  for (const text of [String(client), inspect(client), inspect({ client }, { depth: 9 })]) assert.match(text, /^(\{ client: )?Client\(a:1, \[::1\]:2; no leader is known; open\)( \})?$/);
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

test("what is no argument is refused by its name, and nothing is sent", async (t) => {
  const node = await Node.start(t);
  const { client } = node;
  const [a, bills, users, orders] = [client.identity("a"), client.series("bills"), client.hilo("users"), client.snowflake("orders")];
  for (const wrong of [undefined, null, 5, {}]) {
    for (const [reason, field, call] of [
      ["INVALID_ID", "template", () => client.next(wrong)], ["INVALID_ID", "template", () => client.nextN(wrong, 2)],
      ["INVALID_ID", "id", () => client.claim(wrong)], ["INVALID_NAME", "pool", () => client.snowflake(wrong)],
      ["INVALID_SERIES", "keys", () => bills.confirm([wrong])], ["INVALID_SERIES", "keys", () => bills.void([wrong], "no")],
      ["INVALID_SERIES", "keys", () => bills.release(["a", wrong])],
    ]) await assert.rejects(async () => call(), { name: "InvalidError", reason, field }, `${field}: ${inspect(wrong)}`);
    await assert.rejects(client.idFor(wrong), { name: "TypeError", message: /a class without a name/ });
  }
  for (const wrong of [null, 5, "a"]) {
    for (const call of [
      () => client.next("a|", wrong), () => client.nextN("a|", 2, wrong), () => client.claim("a", wrong), () => client.release("a", wrong),
      () => client.identities("", wrong).next(), () => client.claims("", wrong).next(), () => client.idFor(class Order {}, wrong),
      () => client.hilo("users", wrong), () => client.snowflake("orders", wrong), () => a.next(wrong), () => a.nextN(2, wrong), () => a.get(wrong),
      () => a.seed(7n, wrong), () => a.delete(wrong), () => bills.take(["a"], wrong), () => bills.confirm(["a"], wrong),
      () => bills.void(["a"], "no", wrong), () => bills.release(["a"], wrong), () => bills.find("a", wrong), () => users.next(wrong),
      () => users.nextId(wrong), () => users.nextIds(2, wrong), () => orders.nextId(wrong), () => orders.nextIds(2, wrong), () => orders.parse(1, wrong),
      () => new Client([node.address], wrong), () => Client.fromUrl(`idnode+http://${node.address}`, wrong),
    ]) await assert.rejects(async () => call(), { name: "TypeError", message: new RegExp(`^options are an object, not ${wrong}$`) });
  }
  for (const traceparent of ["", "hello", 5, null, "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\nx: y"]) {
    await assert.rejects(a.next({ traceparent }), { name: "TypeError", message: /^a traceparent is 00-TRACE-SPAN-FLAGS in hexadecimal digits, not/ });
  }
  for (const n of [0, 1.5, "5", 5n, undefined]) {
    for (const call of [() => client.nextN("a|", n), () => a.nextN(n), () => users.nextIds(n)]) await assert.rejects(call(), { reason: "INVALID_COUNT", message: /a whole number of at least 1 / });
    await assert.rejects(orders.nextIds(n), { reason: "INVALID_COUNT", message: /from 1 to 10000 / });
  }
  assert.deepEqual(node.asked, []);
});

test("the timeout of a call goes before that of the client", async (t) => {
  const node = await Node.start(t);
  node.hold = () => true;
  await assert.rejects(node.client.identity("a").next({ timeout: 20 }), { name: /OutcomeUnknownError|DeadlineError|NoEndpointError/ });
});

test("a read of a node that does not answer in time ends with its time, and of one that is not reached otherwise", async (t) => {
  const node = await Node.start(t);
  await node.client.next("users/");
  node.hold = () => true;
  const read = (client) => client.identity("a").get({ timeout: 20 });
  await assert.rejects(read(node.client), { name: "DeadlineError", code: "deadline_exceeded", reason: "DEADLINE_EXCEEDED" });
  await assert.rejects(read(new Client(["127.0.0.1:1"])), { name: "NoEndpointError", code: "unavailable", reason: "NO_ENDPOINT" });
});

test("what a node answered before the time of a read was over tells more than the time", async (t) => {
  const clock = stop(t);
  const node = await Node.start(t);
  node.answer = () => {
    node.hold = () => clock.go(6000) ?? true;
    return [{ code: "unavailable", message: "no", details: [{ debug: { domain: "idnode", reason: "NO_QUORUM" } }] }, 503];
  };
  await assert.rejects(node.client.identity("a").get({ timeout: 5000 }), { name: "NoQuorumError", reason: "NO_QUORUM" });
  assert.equal(node.asked.length, 2);
});

test("a call whose time is over before its node can be asked is not sent", async (t) => {
  const clock = stop(t);
  const node = await Node.start(t, { maxConnections: 2 });
  const call = (options) => node.client.identity("a").next(options);
  node.status = (give) => {
    clock.go(6000);
    give(STATUS);
  };
  await assert.rejects(call({ timeout: 5000 }), (error) => error instanceof DeadlineError && error.reason === "DEADLINE_EXCEEDED");
  assert.equal(node.asked.length, 0);
  node.status = (give) => give(STATUS);
  node.hold = () => true;
  const [held, waits] = [call(), call({ timeout: 5000 }).catch((error) => error)];
  await node.holds(1);
  clock.go(6000);
  node.letGo();
  await held;
  assert.ok(await waits instanceof OverloadedError);
  assert.equal(node.asked.length, 1);
});

test("a connection that ends without an answer, as one that switches protocols, ends the try", { timeout: 10_000 }, async (t) => {
  const server = net.createServer((socket) => socket.on("error", () => {}).once("data", () => {
    socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n");
  }));
  await new Promise((resolve) => { server.listen(0, "127.0.0.1", resolve); });
  t.after(() => server.close());
  const client = new Client([`127.0.0.1:${server.address().port}`], { timeout: 1000 });
  await assert.rejects(client.next("a|"), { name: "NoEndpointError", message: /without an answer/ });
});

test("a call that knows no cluster is not sent", async (t) => {
  const [first, second] = [await Node.start(t), await Node.start(t)];
  const asked = new Promise((resolve) => {
    first.status = (give) => {
      first.status = resolve; // The question of the try itself.
      give({}, 503);
    };
  });
  const call = first.client.identity("a").next();
  const give = await asked;
  const asking = []; // A look, and then the second try.
  second.status = (tell) => {
    asking.push(tell);
    if (asking.length < 2) return;
    second.status = (answer) => answer(STATUS);
    asking.forEach((answer) => answer(STATUS));
  };
  first.client.setEndpoints([second.address]);
  give(STATUS); // From what is no endpoint any more.
  await call;
  assert.deepEqual([first.asked.length, second.asked.length], [0, 1]);
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

test("an empty label is the default, which is never empty", async (t) => {
  for (const label of ["", undefined, null]) {
    const node = await Node.start(t, { label });
    await Promise.all([node.client.hilo("users").next(), node.client.snowflake("orders").nextId()]);
    const [range, lease] = ["NextRange", "AcquireWorker"].map((method) => calls(node, method)[0]);
    for (const text of [range.label, lease.holder]) assert.match(text, / client\.test\.mjs$/);
  }
  const node = await Node.start(t);
  const program = `
    require("node:os").hostname = () => "\u200b";
    process.argv[1] = process.argv0 = "";
    const client = new (require(process.argv[2]).Client)([process.argv[3]]);
    client.hilo("users").next().then(() => client.close());`;
  await run(process.execPath, ["-e", program, "", require.resolve("idnode"), node.address]);
  assert.equal(calls(node, "NextRange")[0].label, "node");
  for (const label of [5, {}]) assert.throws(() => new Client(["a:1"], { label }), { name: "InvalidError", reason: "INVALID_LABEL", field: "label" });
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
  const tell = ({ method }) => { renewing &&= method !== "SnowflakeService/RenewWorker"; };
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
  assert.deepEqual(release, { ...of, worker: 2, token: "0000000000000007", next: String(timeOf(last) + 1) });
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
  assert.deepEqual(calls(node, "RenewWorker")[0], { pool: "orders", worker: 2, token: "0000000000000007", now: "2027-01-15T08:00:49.000Z", database: "" });
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
  await node.client.next("users/"); // Else no node has answered when the time is over.
  node.hold = (method) => method === "AcquireWorker";
  const abort = new AbortController();
  const [left, late] = [orders.nextId({ signal: abort.signal }), orders.nextIds(3, { timeout: 1 })].map((call) => call.catch((error) => error));
  await node.holds(1);
  abort.abort();
  assert.ok(await left instanceof AbortError);
  assert.ok(await late instanceof DeadlineError);
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

test("a state of a number that the client does not know passes through", async (t) => {
  const node = await Node.start(t);
  const states = ["NUMBER_STATE_OPEN", "NUMBER_STATE_HELD", 9]; // A node that does not know it either tells its number.
  node.answer = () => [{ numbers: states.map((state) => ({ key: "a", text: "1", scope: [], number: "1", state })) }];
  assert.deepEqual((await node.client.series("bills").take(["a"])).map(({ state }) => state), ["open", "held", "9"]);
});

test("a number has the times when it was taken and when it expires, if any", async (t) => {
  const node = await Node.start(t);
  const number = { key: "a", text: "1", scope: [], number: "1", state: "NUMBER_STATE_OPEN", taken: "2026-11-30T17:02:04.950123456Z", expires: "2026-12-01T00:00:00Z" };
  node.answer = () => [{ numbers: [number, { ...number, taken: null, expires: undefined }] }];
  const [first, second] = await node.client.series("bills").take(["a", "b"]);
  assert.deepEqual([first.taken, first.expires], [new Date(Date.UTC(2026, 10, 30, 17, 2, 4, 950)), new Date(Date.UTC(2026, 11, 1))]);
  assert.deepEqual([second.taken, second.expires], [undefined, undefined]);
  assert.equal(JSON.parse(JSON.stringify(first)).expires, "2026-12-01T00:00:00.000Z");
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
