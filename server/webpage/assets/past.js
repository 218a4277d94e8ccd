// What the node remembers of its last two hours.

import { get } from "./api.js";
import { repeat } from "./live.js";

const pause = 10_000;

// follow calls show with what the node remembers, again and again, while the page is seen. It
// returns what ends that.
export function follow(show) {
  return repeat(async (over) => {
    try {
      const answer = await get("history");
      if (!over()) {
        show(answer);
      }
    } catch {
      // The frame says what is wrong; what was seen stays.
    }
  }, pause);
}

// told says what an event is.
export function told({ kind, text }) {
  return {
    started: "The node was started.",
    paused: `The process stood still for ${text}.`,
    leader: text ? `${text} leads.` : "No leader is known.",
    joined: `Member ${text} joined.`,
    removed: `Member ${text} was removed.`,
    alarm: text,
    over: `Over: ${text}`,
  }[kind] ?? text;
}
