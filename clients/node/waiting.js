// What calls take, and how callers wait: until a time is over, or a signal is aborted. Times are in milliseconds.

"use strict";

const { invalid } = require("./errors.js");

const ASYNC_DISPOSE = Symbol.asyncDispose ?? Symbol("Symbol.asyncDispose");
const SLICE = 5000; // Ids that are made before others get their turn: about a millisecond.
const now = () => performance.now();

function checkCount(n, most = Infinity, name = "count") {
  if (Number.isSafeInteger(n) && n >= 1 && n <= most) return;
  throw invalid("INVALID_COUNT", name, `it must be a whole number ${most === Infinity ? "of at least 1" : `from 1 to ${most}`}`);
}

// The options of a caller, which may be left out.
function given(options = {}) {
  if (typeof options === "object" && options !== null) return options;
  throw new TypeError(`options are an object, not ${options}`);
}

// Refuses options that a call does not have: one that is misspelt would do nothing.
function checkNone(unknown) {
  const names = Object.keys(unknown);
  if (names.length > 0) throw new TypeError(`there is no option ${names.join(", ")}`);
}

function checkText(value, reason, field) {
  if (typeof value !== "string") throw invalid(reason, field, `text is expected, not ${value}`);
}

// A whole number as the API writes it. A Number above 2^53 may be another one than its caller wrote.
function integer(value) {
  if (typeof value === "bigint" || Number.isSafeInteger(value)) return String(value);
  throw new TypeError(`a BigInt or a safe integer is expected, not ${value}`);
}

// A time as the API writes it, undefined for none. Less than a nanosecond would be none there.
function durationOf(time) {
  if (time === 0) return undefined;
  if (typeof time === "number" && Math.abs(time) >= 1e-6 && Math.abs(time) < 1e15) return `${(time / 1000).toFixed(9)}s`;
  throw invalid("INVALID_OPTION", "expires_in", `a number of milliseconds is expected, not ${time}`);
}

// A longer timer of Node's fires at once.
function checkTime(time) {
  if (typeof time === "number" && time > 0 && time < 2 ** 31) return;
  throw new RangeError(`a timeout is a number of milliseconds above 0 and below 2^31, not ${time}`);
}

function checkSignal(signal) {
  if (signal && typeof signal.addEventListener !== "function") throw new TypeError(`a signal is an AbortSignal, not ${signal}`);
}

function checkTrace(parent) {
  if (parent === undefined || /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(parent)) return;
  throw new TypeError(`a traceparent is 00-TRACE-SPAN-FLAGS in hexadecimal digits, not ${parent}`);
}

// The callers of each signal that are to be woken. A listener for each would be one of thousands: Node warns of more than ten.
const wakers = new WeakMap();

// Calls wake when the signal is aborted, until the function that it returns is called.
function onAbort(signal, wake) {
  if (!signal) return () => {};
  let wakes = wakers.get(signal);
  if (!wakes) {
    wakes = new Set();
    wakers.set(signal, wakes);
    signal.addEventListener("abort", () => { for (const wake of wakes) wake(); });
  }
  wakes.add(wake);
  return () => wakes.delete(wake);
}

// Waits for a promise, but not longer than for a time, or until a signal is aborted.
async function within(promise, time, signal) {
  if (signal?.aborted) return;
  let timer, leave;
  const over = new Promise((resolve) => {
    timer = setTimeout(resolve, Math.max(time, 0));
    leave = onAbort(signal, resolve);
  });
  await Promise.race([promise, over]);
  clearTimeout(timer);
  leave();
}

// Waits in a queue, until another resolves or rejects the place there, a time is over or a signal is aborted.
function wait(queue, time, signal, over, order = 0) {
  return new Promise((resolve, reject) => {
    const end = (settle) => (value) => {
      clearTimeout(timer);
      leave();
      queue.delete(place);
      settle(value);
    };
    const place = { resolve: end(resolve), reject: end(reject), order };
    const giveUp = () => place.reject(over());
    const timer = time < Infinity ? setTimeout(giveUp, time) : undefined;
    const leave = onAbort(signal, giveUp);
    queue.add(place);
    if (signal?.aborted) giveUp();
  });
}

// The places of the tries at a node. A quarter of the connections is kept for looks, of which each node has one, and for calls that
// the node answers by itself: those which it holds until the cluster decides do not keep them out.
class Places {
  #most;
  #mostDecided; // How many may be taken by calls that the cluster decides.
  #taken = 0;
  #takenDecided = 0;
  #waiting = { true: new Set(), false: new Set() }; // By whether the cluster decides the call.
  #order = 0;

  constructor(connections) {
    const kept = Math.max(Math.floor(connections / 4), 2);
    [this.#most, this.#mostDecided] = [connections - 1, connections - kept].map((places) => Math.max(places, 1));
  }

  // Takes a place. If none is free, returns the promise of one.
  take(decided, deadline, signal, late) {
    if (this.#free(decided)) return this.#take(decided);
    return wait(this.#waiting[decided], deadline - now(), signal, late, this.#order++);
  }

  give(decided) {
    this.#taken--;
    if (decided) this.#takenDecided--;
    const [[held], [other]] = [this.#waiting.true, this.#waiting.false];
    const first = held && this.#free(true) && !(other?.order < held.order);
    if (!first && !other) return;
    this.#take(first);
    (first ? held : other).resolve();
  }

  get idle() {
    return this.#taken === 0;
  }

  // Ends the waiting of all.
  clear(error) {
    for (const { reject } of [...this.#waiting.true, ...this.#waiting.false]) reject(error());
  }

  #free(decided) {
    return this.#taken < this.#most && !(decided && this.#takenDecided >= this.#mostDecided);
  }

  #take(decided) {
    this.#taken++;
    if (decided) this.#takenDecided++;
  }
}

const sleep = (time, signal) => within(new Promise(() => {}), time, signal);
const othersTurn = () => new Promise(setImmediate);

// Until when a caller waits for a number. One that does not say waits for the fetch.
function patience(options) {
  const { signal, timeout, ...unknown } = given(options);
  checkNone(unknown);
  checkSignal(signal);
  if (timeout === undefined) return { signal, deadline: Infinity };
  checkTime(timeout);
  return { signal, deadline: now() + timeout };
}

// Takes n ids with a function that gives one, or the promise of one. An error has those taken before it.
async function many(n, options, take) {
  const ids = [];
  const caller = patience(options);
  try {
    while (ids.length < n) {
      const id = take(caller);
      ids.push(id instanceof Promise ? await id : id);
      if (ids.length % SLICE === 0) await othersTurn();
    }
  } catch (error) {
    throw Object.assign(error, { ids });
  }
  return ids;
}

module.exports = {
  ASYNC_DISPOSE, SLICE, now, given, checkCount, checkNone, checkText, checkTime, checkSignal, checkTrace, integer, durationOf, onAbort, within, wait, sleep,
  othersTurn, patience, many, Places,
};
