// What the node says of itself, asked again and again while the page is seen: one
// call at a time, so that a slow node is not asked faster than it answers.

import { get } from "./api.js";
import { place } from "./place.js";
import { millis } from "./text.js";

const pause = 1000;
// soon is when a node that hangs counts as one that is gone: it answers this call
// without asking anybody.
const soon = 4000;
// kept is how many samples the charts show: two minutes.
export const kept = 121;

export const live = {
  // overview is the newest answer; undefined before the first.
  overview: undefined,
  // samples are the newest figures, oldest first: when, in milliseconds of the
  // node, how many ids by strategy, and when the members were asked how they are,
  // how far the furthest state was then, and the 99th percentile of commits.
  samples: [],
  // lostAt is since when the node has not answered; undefined if it does.
  lostAt: undefined,
  failure: undefined,
};

const listeners = new Set();

// listen calls back after every answer and every failure. It returns what ends
// that.
export function listen(callback) {
  listeners.add(callback);
  return () => listeners.delete(callback);
}

let timer;
let asking = false;

// look asks now, and from then on every second.
export async function look() {
  clearTimeout(timer);
  if (asking) {
    return;
  }
  asking = true;
  try {
    take(await get("overview", { database: place().database }, soon));
  } catch (failure) {
    live.lostAt ??= Date.now();
    live.failure = failure;
  } finally {
    asking = false;
  }
  if (!document.hidden) {
    timer = setTimeout(look, pause); // Whatever a listener throws.
  }
  for (const callback of listeners) {
    callback(live);
  }
}

// noFigures has those that an answer leaves out.
const noFigures = { identities_per_second: 0, ids_per_second: 0, commit_p99_micros: 0, write_p99_micros: 0, free_bytes: 0 };

// joined is the status of the public API with what it has not.
function joined({ status, members, ...rest }) {
  const whole = status.members.map((m, i) => ({
    ...m, ...members[i], figures: members[i].figures && { ...noFigures, ...members[i].figures },
    self: m.id === status.self.id, role: m.role.replace("ROLE_", "").toLowerCase(),
    appliedIndex: Number(m.appliedIndex), behind: Number(m.behind), silentMillis: millis(m.unreachableFor),
  }));
  return { ...status, ...rest, members: whole, self: whole.find((m) => m.self) ?? status.self };
}

function take(answer) {
  const overview = joined(answer);
  const last = live.samples.at(-1);
  if (last && overview.millis < last.millis) {
    live.samples = []; // The node was started again, and counts from the beginning.
  }
  live.samples.push({ millis: overview.millis, issued: overview.issued, taken: overview.taken_millis, furthest: overview.furthest_index, commit: overview.self.figures?.commit_p99_micros });
  live.samples.splice(0, live.samples.length - kept);
  live.overview = overview;
  live.lostAt = live.failure = undefined;
}

// before is how far the furthest state was when the members were asked the time before
// the newest; undefined if that is not known.
export function before() {
  const newest = live.samples.at(-1)?.taken;
  return live.samples.findLast((sample) => sample.taken < newest)?.furthest;
}

// repeat calls ask now, and again and again, with a pause between, while the page is seen. ask is
// given what says that nobody waits for it any more. It returns what ends that.
export function repeat(ask, pause) {
  let timer;
  let over = false;
  async function again() {
    clearTimeout(timer);
    await ask(() => over);
    if (!over) {
      timer = setTimeout(() => document.hidden || again(), pause);
    }
  }
  const seen = () => document.hidden || again();
  document.addEventListener("visibilitychange", seen);
  again();
  return () => {
    over = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", seen);
  };
}

document.addEventListener("visibilitychange", () => document.hidden || look());
