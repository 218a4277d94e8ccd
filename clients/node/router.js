// Which nodes there are, which of them leads, and how far the cluster's log is.

"use strict";

const { Failure, closedError } = require("./errors.js");
const { now, within } = require("./waiting.js");
const { channels } = require("./events.js");
const { GREETED, Node, isAddress } = require("./node.js");

// All times are in milliseconds.
const INDEX_AFTER = 5000; // How old the newest log index may get.
const LOOK_AFTER = 30_000; // How old what is known of the members may get.
const LOOK_SOON = 1000; // The same while no leader is known.
const LOOK_AGAIN = 200; // The least time between two looks, however much fails.
const LOOK_TIMEOUT = 1000;
const SILENT = 200; // How long the node has to say that it is not.
const OTHERS = 300; // How long a client that does not know its cluster waits for the other endpoints after the first one's answer.
const GREET_TIMEOUT = 2000; // Connect, TLS and an answer over a long way.
const MAX_LEARNT = 16;
const VOTERS = ["ROLE_LEADER", "ROLE_FOLLOWER"];
const PROBE = 1000; // How often a call is let through while no node answers.
const IDLE = 5000; // After so long without tries it is not known whether nodes answer.
const DISTRUST = 2000; // How long a node that failed is asked only if no other is left.

// Knows the nodes, which of them leads, and how far the cluster's log is.
class Router {
  closed = false;
  newest = 0n; // The newest log index of any answer.
  #newestAt = -Infinity;
  #how; // How nodes are called.
  #given; // The nodes at the program's endpoints.
  #learnt = []; // Those that the cluster has named beside them.
  #nodes; // Those that get calls: a learnt one only once it has told the client's cluster.
  #leader;
  #leaderAddress; // As the members know it, in the greatest term that was seen.
  #term = -1n;
  #heardTerm; // The text of the term that was heard last.
  #membersAt = -1n; // The log index of the newest list of members.
  #home; // The node for calls that need no leader.
  #cluster; // Once known it stays: ranges are of that cluster.
  #sure; // The program has told it, or two endpoints, or the only one.
  #mixed = false; // The endpoints told two clusters.
  #told = new Map(); // The cluster that each endpoint told last.
  #answeredAt = -Infinity;
  #silence; // Since when no node has answered, when that was noticed last, and when a call was let through last.
  #newestLook = { began: -Infinity, over: true, answered: new Set(), answers: new Map() };

  constructor(addresses, cluster, how) {
    this.#how = how;
    [this.#cluster, this.#sure] = [cluster, cluster !== ""];
    this.#given = this.#at(addresses);
    this.#home = this.#given[0];
    this.#arrange();
  }

  get size() {
    return this.#nodes.length;
  }

  toString() {
    const list = (nodes) => nodes.map(({ address }) => address).join(", ");
    const learnt = this.#learnt.length > 0 ? `; learnt ${list(this.#learnt)}` : "";
    return `${list(this.#given)}${learnt}; ${this.#leader ? `${this.#leader.address} leads` : "no leader is known"}; ${this.closed ? "closed" : "open"}`;
  }

  // The nodes at endpoints, each once. One that is known stays as it is.
  #at(addresses) {
    const nodes = addresses.map((address) => new Node(address, this.#how, this));
    const known = [...(this.#given ?? []), ...this.#learnt];
    return [...new Map(nodes.map((node) => [node.url, known.find(({ url }) => url === node.url) ?? node])).values()];
  }

  setEndpoints(addresses) {
    const before = this.#given;
    this.#given = this.#at(addresses);
    this.#learnt = this.#learnt.filter((node) => !this.#given.includes(node));
    for (const node of before) if (!this.#given.includes(node)) this.#forget(node);
    this.#arrange();
    this.#look(0);
  }

  // Lets go of a node. Its tries go on to their end.
  #forget(node) {
    this.#told.delete(node.address);
    node.retire();
  }

  #arrange() {
    this.#nodes = [...this.#given, ...this.#learnt.filter(({ member }) => member !== undefined)];
    if (!this.#nodes.includes(this.#home)) [this.#home] = this.#nodes;
    this.#follow();
  }

  // Notes a log index. What a node has applied is as new as the answer.
  saw(index, applied = false) {
    if (index > this.newest || (applied && index === this.newest)) {
      this.newest = index;
      this.#newestAt = now();
    }
  }

  // Notes whom an answer of the client's cluster names as the leader. A term has one leader at most, and an older one has none any more.
  heard(term, leader) {
    if (!leader || term === this.#heardTerm || !/^\d{1,20}$/.test(term)) return; // As in nearly each answer.
    this.#heardTerm = term;
    if (BigInt(term) <= this.#term) return;
    [this.#term, this.#leaderAddress] = [BigInt(term), leader];
    this.#follow();
    if (this.#leader) this.#leader.suspectUntil = 0;
  }

  // Finds the node with the leader's address.
  #follow() {
    const leader = this.#leaderAddress && this.#nodes.find((node) => [node.address, node.member].includes(this.#leaderAddress));
    if (leader === this.#leader) return;
    if (channels.failover.hasSubscribers) channels.failover.publish({ from: this.#leader?.address, to: leader?.address });
    if (leader) this.#how.tell?.({ kind: "leader", node: leader.address });
    this.#leader = leader;
    if (leader) this.#leaveOthers(leader, this.#look(LOOK_AGAIN));
  }

  // Ends the tries at the nodes that a look does not hear, now that another one leads.
  async #leaveOthers(leader, look) {
    const others = [...look.answers.keys()].filter((node) => node !== leader);
    await within(Promise.all(others.map((node) => look.answers.get(node))), look.began + SILENT - now());
    for (const node of others) if (!look.answered.has(node)) node.leave();
  }

  // Learns the addresses that a node names, and forgets those that it does not. The endpoints stay.
  #learn({ members, index }, { scheme }) {
    if (index < this.#membersAt) return;
    this.#membersAt = index;
    const given = (address) => this.#given.some((node) => [node.address, node.member].includes(address));
    const named = members.filter(({ role, httpAddress }) => VOTERS.includes(role) && isAddress(httpAddress) && !given(httpAddress));
    const addresses = named.map(({ httpAddress }) => httpAddress).slice(0, MAX_LEARNT);
    const [kept, gone] = [true, false].map((keep) => this.#learnt.filter(({ address }) => addresses.includes(address) === keep));
    const found = addresses.filter((address) => !kept.some((node) => node.address === address)).map((address) => new Node(`${scheme}://${address}`, this.#how, this));
    if (found.length + gone.length === 0) return;
    this.#learnt = [...kept, ...found];
    for (const node of gone) this.#forget(node);
    this.#arrange();
    for (const node of found) this.greet(node, LOOK_TIMEOUT).catch(() => undefined); // Another look asks again.
  }

  // Whether a node has answered since a call began, or not long before.
  hasAnswered(began) {
    return this.#answeredAt > began - GREETED;
  }

  answered() {
    this.#answeredAt = now();
    this.#silence = undefined;
  }

  // Notes that a try has ended without an answer. It tells nothing if a node has answered since it began.
  unanswered(began) {
    if (this.#answeredAt > began) return;
    if (!this.#silence || began - this.#silence.until > IDLE) this.#silence = { since: began };
    this.#silence.until = now();
  }

  // Throws a Failure if tries had no answer of any node for longer than a time. One call a second is let through.
  checkSilence(most = Infinity) {
    const { since, until, tried = -Infinity } = this.#silence ?? {};
    if (!(until - since > most) || now() - until > IDLE) return;
    if (now() - tried < PROBE) {
      const text = `no node has answered for ${((now() - since) / 1000).toFixed(1)} s, and failFastAfter is ${most / 1000} s`;
      throw new Failure(text, "unavailable", "NO_ENDPOINT");
    }
    this.#silence.tried = now();
  }

  // Before a call looks for what is not known, or too old: the cluster, the leader, or the newest log index. The first call waits
  // for all endpoints: they may be of two clusters.
  async prepare(deadline, signal, toLeader, counted) {
    if (!this.#cluster) {
      await this.latest(deadline, signal, LOOK_AGAIN, "heard");
      await this.latest(Math.min((now() + deadline) / 2, now() + OTHERS), signal, LOOK_TIMEOUT, "all");
    }
    if ((toLeader && !this.newest) || (counted && now() - this.#newestAt > INDEX_AFTER)) await this.latest(deadline, signal, LOOK_AGAIN, "heard");
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
    if (first !== this.#cluster) [this.#term, this.#membersAt, this.#heardTerm] = [-1n, -1n, undefined];
    [this.#cluster, this.#sure] = [first, this.#told.size >= Math.min(2, this.#given.length)];
    for (const node of this.#given) this.#settle(node);
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
    const look = this.#look(LOOK_AGAIN, node);
    await within(look.answers.get(node), look.began + SILENT - now());
    // Others that need longer have not said no: the question is open until somebody answers, or nobody did.
    if (!look.answered.size) await look.any;
    return look.answered.size > 0 && !look.answered.has(node);
  }

  // The node for the next try: not that of the try before if there is another.
  route(toLeader, last) {
    if (this.closed) throw closedError();
    const leader = this.#leader?.suspected ? undefined : this.#leader;
    this.#look(leader ? LOOK_AFTER : LOOK_SOON);
    if (toLeader && leader && leader !== last) return leader;
    if (!last && !this.#home.suspected) return this.#home;
    const start = this.#nodes.includes(last) ? this.#nodes.indexOf(last) + 1 : this.#nodes.indexOf(this.#home);
    const order = this.#nodes.map((_, i) => this.#nodes[(start + i) % this.size]);
    return order.find((node) => node !== last && !node.suspected) ?? order[0];
  }

  failed(node) {
    node.suspectUntil = now() + DISTRUST;
    if (this.size > 1) node.turnAway();
    if (this.#home === node) this.#home = this.#nodes[(this.#nodes.indexOf(node) + 1) % this.size];
    this.#look(LOOK_AGAIN);
  }

  // Asks all nodes for their status side by side, and one also that may be none of them any more, unless a look is in progress or
  // younger than age. Returns the newest look.
  #look(age, also = undefined) {
    const last = this.#newestLook;
    if (this.closed || ((!last.over || now() - last.began < age) && (!also || last.answers.has(also)))) return last;
    const nodes = [...new Set([...this.#given, ...this.#learnt, ...(also ? [also] : [])])];
    const look = { began: now(), over: false, answered: new Set() };
    this.#newestLook = look;
    const asked = nodes.map((node) => this.greet(node, LOOK_TIMEOUT).then(() => look.answered.add(node), (failure) => {
      // A refusal, as of a node that is overloaded, is an answer.
      if (failure.reason !== "NO_ENDPOINT" && !failure.foreign) look.answered.add(node);
      throw failure;
    }));
    const answers = asked.map((answer, i) => answer.catch(() => look.answered.has(nodes[i]) || Promise.reject()));
    look.answers = new Map(nodes.map((node, i) => [node, answers[i].catch(() => undefined)]));
    look.any = Promise.any(answers).catch(() => undefined); // A node has said anything.
    look.heard = Promise.any(asked).catch(() => undefined).then(() => { look.over = true; }); // A node has told its index, or none does.
    look.all = Promise.allSettled(asked).then(() => {
      this.#how.tell?.({ kind: "look", node: this.#leader?.address, duration: now() - look.began });
      if (channels.look.hasSubscribers) {
        channels.look.publish({ leader: this.#leader?.address, answered: [...look.answered].map(({ address }) => address), duration: now() - look.began });
      }
    });
    return look;
  }

  // Asks a node for its status, and whether it is of the client's cluster. Rejects with a Failure that did nothing.
  async greet(node, timeout, bounds) {
    const view = await node.call("ClusterService/GetStatus", {}, Math.min(timeout, GREET_TIMEOUT), statusOf, bounds).catch((failure) => {
      if (!failure.reason || failure.effect === "unknown") Object.assign(failure, { code: "unavailable", reason: "NO_ENDPOINT" });
      if (failure.foreign && failure.reason === "NO_ENDPOINT") failure.message = `${node.address} does not speak idnode's HTTP API: is it the address of --http (7402)? ${failure.message}`;
      throw failure;
    });
    const { id, named } = view;
    if (!id) throw new Failure(`${node.address} has no cluster yet`, "failed_precondition", "NOT_FORMED"); // It may get any.
    const given = this.#given.includes(node);
    const news = given && this.#told.get(node.address) !== named;
    if (named && given) this.#told.set(node.address, named);
    const warn = (text) => news && process.emitWarning(text, "IdnodeWarning");
    if (view.members.length === 1 && this.#given.length > 1) warn(`${node.address} is one of several endpoints, and a cluster of one node (${named})`);
    if (named !== (this.#cluster || id)) {
      const stranger = node.other(named, this.#cluster || id);
      warn(stranger.message);
      throw stranger;
    }
    node.welcome();
    this.saw(view.index, true);
    node.view = view;
    this.#settle(node);
  }

  // Takes over what a node has told of the others. It does so again once the client knows its cluster.
  #settle(node) {
    const { view } = node;
    if (!view || (this.#cluster && view.named !== this.#cluster)) return;
    const before = node.member;
    node.member = view.member;
    if (node.member !== before) this.#arrange();
    this.heard(view.term, view.leader);
    if (this.#cluster && view.quorum && view.term >= this.#term) this.#learn(view, node);
  }

  close() {
    this.closed = true;
    for (const node of [...this.#given, ...this.#learnt]) {
      node.turnAway();
      node.close();
    }
  }
}

function statusOf({ clusterId, appliedIndex, hasQuorum, self, members = [] }, headers) {
  const { "idnode-cluster-id": named, "idnode-term": term, "idnode-leader-address": leader } = headers;
  return { id: clusterId, named, index: BigInt(appliedIndex), member: self.httpAddress ?? "", members, quorum: hasQuorum, term, leader };
}

module.exports = { Router };
