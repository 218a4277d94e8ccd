// Which nodes there are, which of them leads, and how far the cluster's log is.

"use strict";

const { Failure, closedError } = require("./errors.js");
const { now, within } = require("./waiting.js");
const { channels } = require("./events.js");
const { Node } = require("./node.js");

// All times are in milliseconds.
const LOOK_AFTER = 5000; // How old what is known of the leader may get.
const LOOK_SOON = 1000; // The same while no leader is known.
const LOOK_AGAIN = 200; // The least time between two looks, however much fails.
const LOOK_TIMEOUT = 1000;
const SILENT = 200; // How long the node has to say that it is not.
const OTHERS = 300; // How long a client that does not know its cluster waits for the other endpoints after the first one's answer.
const GREET_TIMEOUT = 2000; // Connect, TLS and an answer over a long way.
const DISTRUST = 2000; // How long a node that failed is asked only if no other is left.

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

  constructor(addresses, cluster, how) {
    this.#nodes = addresses.map((address) => new Node(address, how, this));
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
    await within(look.answers?.get(node), look.began + SILENT - now());
    // Others that need longer have not said no: the question is open until somebody answers, or nobody did.
    if (!look.answered?.size) await look.any;
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
    const answers = asked.map((answer, i) => answer.catch(() => look.answered.has(this.#nodes[i]) || Promise.reject()));
    look.all = Promise.allSettled(asked);
    look.any = Promise.any(answers).catch(() => undefined); // A node has said anything.
    look.answers = new Map(this.#nodes.map((node, i) => [node, answers[i].catch(() => undefined)]));
    const leading = asked.map((answer) => answer.then(({ node, leads }) => (leads ? node : Promise.reject(node))));
    look.heard = Promise.any(asked).catch(() => undefined); // A node has told its index.
    look.done = Promise.any(leading).catch(() => undefined).then((leader) => { // The leader has, or every node.
      if (leader) leader.suspectUntil = 0;
      if (leader && leader !== this.#leader) this.#leaveOthers(look, leader);
      this.#lead(leader);
      look.over = true;
      if (channels.look.hasSubscribers) {
        channels.look.publish({ leader: leader?.address, answered: [...look.answered].map(({ address }) => address), duration: now() - look.began });
      }
    });
    this.#newestLook = look;
    return look;
  }

  // Ends the tries at the nodes that a look did not hear, which found another leader.
  async #leaveOthers(look, leader) {
    const others = this.#nodes.filter((node) => node !== leader);
    await within(Promise.all(others.map((node) => look.answers.get(node))), look.began + SILENT - now());
    for (const node of others) if (!look.answered.has(node)) node.leave();
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
    node.welcome();
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

module.exports = { Router };
