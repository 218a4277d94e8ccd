// Makes the Snowflake ids of a pool: a time, the number of a worker, and a sequence number. The cluster leases the worker with a
// window of the ids' own time, which no other lease overlaps. So an id whose time is in the window is unique, whatever clocks show.
//
// Invariants: each id has a time inside of the window of its lease; the ids of one lease rise.

"use strict";

const { IdnodeError, NotFoundError, copyOf, closedError, aborted } = require("./errors.js");
const { ASYNC_DISPOSE, now, checkCount, integer, within, wait, patience, many } = require("./waiting.js");

const MOST = 10_000; // Ids of one call.
const AHEAD = 100; // How many milliseconds the times of ids may run before the clock, so that a burst need not wait for each unit.

class Snowflake {
  #client;
  #call; // The options of every call.
  #pool;
  #label;
  #layout; // Known from the first lease, or the first call of parse.
  #lease;
  #wall; // The wall clock when it was read last, and the monotonic clock then.
  #read;
  #pause = 0; // How long ids wait if none is at hand; 0 if there is no window.
  #waiting = new Set(); // The callers that found no id, in order.
  #timer; // While ids wait.
  #leasing; // The promise of the acquisition in progress. It is never rejected.
  #closed;

  constructor(client, database, pool, label) {
    [this.#client, this.#call, this.#pool, this.#label] = [client, { database }, pool, label];
  }

  async nextId(options) {
    return this.#next(patience(options));
  }

  async nextIds(n, options) {
    checkCount(n, MOST);
    return many(n, options, (caller) => this.#next(caller));
  }

  async parse(id, options) {
    const number = BigInt(integer(id));
    patience(options); // Refuses what is no option.
    this.#layout ??= await this.#defined(options);
    const { epoch, unit, worker, sequence } = this.#layout;
    const units = Number(number >> BigInt(worker + sequence));
    const low = (bits, from) => Number(BigInt.asUintN(bits, number >> BigInt(from)));
    return { time: new Date(epoch + units * unit), worker: low(worker, sequence), sequence: low(sequence, 0) };
  }

  get closed() {
    return this.#closed !== undefined;
  }

  close() {
    this.#closed ??= this.#release();
    return this.#closed;
  }

  [ASYNC_DISPOSE]() {
    return this.close();
  }

  // An id at hand, or the promise of one. The callers share leases, so that none of them ends an acquisition.
  #next({ signal, deadline }) {
    if (this.#closed) throw closedError();
    if (signal?.aborted) throw aborted(signal);
    const id = this.#take();
    if (id !== undefined) return id;
    const began = now();
    const late = () => {
      if (this.#waiting.size === 1) this.#timer?.unref(); // Nobody waits any more.
      if (signal?.aborted) return aborted(signal);
      return this.#timer ? this.#early() : this.#client._late("lease", began);
    };
    const waiting = wait(this.#waiting, deadline - now(), signal, late);
    this.#timer?.ref();
    this.#prepare();
    return waiting;
  }

  // Makes an id; undefined if none is at hand.
  #take() {
    const lease = this.#lease;
    if (!lease) return undefined;
    const { unit, worker, sequence } = this.#layout;
    const at = this.#units();
    let { time, number } = lease;
    if (++number === 2 ** sequence) [time, number] = [time + 1, 0];
    if (at > time) [time, number] = [at, 0];
    const early = (time - at) * unit;
    this.#pause = time < lease.until && early > AHEAD ? Math.max(early - AHEAD, 1) : 0;
    if (time >= lease.until || this.#pause > 0) return undefined;
    if (time !== lease.time) lease.base = (BigInt(time) << BigInt(worker + sequence)) + BigInt(lease.worker * 2 ** sequence);
    lease.time = time;
    lease.number = number;
    if (at >= lease.renewAt && !lease.renewing) this.#renew(lease);
    return lease.base + BigInt(number);
  }

  // The time now. A wall clock that is set does not change it in the middle of a window.
  #clock() {
    return this.#wall + now() - this.#read;
  }

  // Reads the wall clock, which counts if it is ahead, or for a new lease: the machine may have slept. Returns the time.
  #readClock(anew) {
    if (anew || Date.now() > this.#clock()) [this.#wall, this.#read] = [Date.now(), now()];
    return new Date(this.#clock());
  }

  #units() {
    return Math.floor((this.#clock() - this.#layout.epoch) / this.#layout.unit);
  }

  // Waits for the time of the next id, or leases, unless that is in progress.
  #prepare() {
    if (this.#timer || this.#leasing) return;
    if (this.#pause > this.#client._timeout) return this.#refuse(this.#early());
    if (this.#pause > 0) this.#timer = setTimeout(() => this.#serve(), this.#pause);
    else this.#leasing = this.#acquire().then(() => this.#serve(), (error) => this.#refuse(error));
  }

  // Hands ids to the callers that wait, as far as they go.
  #serve() {
    this.#timer = this.#leasing = undefined;
    for (const place of this.#waiting) {
      const id = this.#take();
      if (id === undefined) return this.#prepare();
      place.resolve(id);
    }
  }

  #refuse(error) {
    this.#leasing = undefined;
    for (const { reject } of [...this.#waiting]) reject(copyOf(error));
  }

  #early() {
    const text = `the window of the lease begins in ${Math.ceil(this.#pause)} ms`;
    return new IdnodeError(`${text}: another may still make ids until then, or the clock is late`, { code: "unavailable", reason: "WINDOW_EARLY", retryAfter: this.#pause });
  }

  async #acquire() {
    this.#lease = undefined; // It has passed, also if the clock is read, and was set back.
    const request = { pool: this.#pool, holder: this.#label, now: this.#readClock(true) };
    [this.#lease, this.#layout] = await this.#client._once("AcquireWorker", request, this.#call, leaseOf, { service: "SnowflakeService" });
  }

  // Renews a window beside the calls, from half of its time on. After a failure it is tried again at a tenth of the rest.
  async #renew(lease) {
    lease.renewing = true;
    let part = 2;
    try {
      const until = await this.#change("RenewWorker", { ...lease.proof, now: this.#readClock(false) }, ({ until }) => whole(until));
      lease.until = Math.max(lease.until, until);
    } catch {
      part = 10;
    }
    lease.renewAt = this.#units() + (lease.until - this.#units()) / part;
    lease.renewing = false;
  }

  async #release() {
    const deadline = this.#client._deadline();
    clearTimeout(this.#timer);
    for (const { reject } of [...this.#waiting]) reject(closedError());
    if (this.#leasing) await within(this.#leasing, deadline - now());
    if (!this.#lease || this.#units() >= this.#lease.until) return; // There is no rest, and the worker may be another's.
    const request = { ...this.#lease.proof, next: String(this.#lease.time + 1) };
    await this.#change("ReleaseWorker", request, () => undefined, deadline);
  }

  #change(method, request, read, deadline) {
    return this.#client._invoke(`SnowflakeService/${method}`, { pool: this.#pool, ...request }, this.#call, read, { changes: true, deadline });
  }

  // Asks for the layout of the pool. A pool comes before all others whose names begin with its own.
  async #defined({ signal, timeout } = {}) {
    const request = { prefix: this.#pool, pageSize: 1 };
    const read = ({ pools: [found] = [] }) => found && { name: found.name, layout: layoutOf(found.layout) };
    const found = await this.#client._invoke("SnowflakeService/ListPools", request, { signal, timeout, ...this.#call }, read);
    if (found?.name.toLowerCase() === this.#pool.toLowerCase()) return found.layout;
    throw new NotFoundError("there is no such pool", { code: "not_found", reason: "POOL_NOT_FOUND", field: "pool" });
  }
}

// How answers are read. JSON may leave out what is 0. Times are in units since the epoch.
function whole(value = 0) {
  if (Number.isSafeInteger(Number(value))) return Number(value);
  throw new TypeError(`a time or a number of bits is no ${value}`);
}

function leaseOf({ worker = 0, token, from, until, layout }) {
  if (typeof token !== "string" || token === "") throw new TypeError("a lease has a token");
  const [begin, end, parts] = [whole(from), whole(until), layoutOf(layout)];
  // time and number are those of the newest id, and base is that id without its number.
  const newest = { time: begin - 1, number: 2 ** parts.sequence - 1, base: 0n };
  return [{ ...newest, worker, proof: { worker, token }, until: end, renewAt: begin + (end - begin) / 2, renewing: false }, parts];
}

function layoutOf({ epoch, unit, workerBits, sequenceBits }) {
  const layout = { epoch: Date.parse(epoch), unit: Math.round(parseFloat(unit) * 1000), worker: whole(workerBits), sequence: whole(sequenceBits) };
  if (layout.unit > 0 && Number.isSafeInteger(layout.epoch)) return layout;
  throw new TypeError("a layout has an epoch and a unit");
}

module.exports = { Snowflake };
