// How numbers and times are written.

const grouped = new Intl.NumberFormat("en");

// number groups digits; it takes numbers, and text that is a whole number of any
// size.
export function number(value) {
  return grouped.format(typeof value === "string" ? BigInt(value) : value);
}

const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

// about groups digits, and shortens what has more than five of them.
export function about(value) {
  return value < 100_000 ? grouped.format(value) : short.format(value);
}

// rate writes how many ids a second.
export function rate(value) {
  if (value >= 100_000) {
    return about(value);
  }
  if (value >= 100 || value === 0) {
    return grouped.format(Math.round(value));
  }
  return value.toFixed(value >= 10 ? 1 : 2);
}

// elapsed writes a time in milliseconds in words, on one line.
export function elapsed(millis) {
  const seconds = Math.floor(millis / 1000);
  const minutes = Math.floor(seconds / 60);
  const words = seconds < 60 ? `${seconds} s` : minutes < 60 ? `${minutes} min ${seconds % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return words.replaceAll(" ", "\u00a0");
}

// clock writes a time of the day, dated one with its date; both in the viewer's own zone.
export function clock(millis, seconds) {
  return new Date(millis).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: seconds ? "2-digit" : undefined });
}

export function dated(millis) {
  return new Date(millis).toLocaleString("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" });
}

// millis reads a duration of the public API, as 1.5s; 0 for none.
export function millis(duration = "0s") {
  return parseFloat(duration) * 1000;
}

// entries writes a number of log entries.
export function entries(count) {
  return count === 1 ? "1 log entry" : `${number(count)} log entries`;
}

// size writes bytes.
export function size(bytes) {
  for (const [unit, one] of [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]) {
    if (bytes >= one) {
      return `${(bytes / one).toFixed(1).replace(/\.0$/, "")} ${unit}`;
    }
  }
  return `${bytes} bytes`;
}

// duration writes a short time in microseconds, on one line.
export function duration(micros) {
  const millis = micros / 1000;
  const words = micros < 1000 ? `${micros} µs` : millis < 1000 ? `${millis.toFixed(millis < 10 ? 1 : 0)} ms` : `${(millis / 1000).toFixed(1)} s`;
  return words.replace(" ", "\u00a0");
}

const whole = /^[+-]?\d+$/;
const most = 2n ** 63n - 1n;

// integer reads the typed value of a counter; undefined if it is none. Spaces
// and commas between digits are ignored.
export function integer(typed) {
  const text = typed.trim().replace(/(?<=\d)[ ,](?=\d)/g, "");
  if (!whole.test(text)) {
    return undefined;
  }
  const value = BigInt(text.replace("+", ""));
  return value <= most && value >= -most - 1n ? value : undefined;
}

// within reads a whole number between two bounds, both included; undefined if it is
// none.
export function within(typed, least, greatest) {
  const value = integer(typed);
  return value !== undefined && value >= least && value <= greatest ? Number(value) : undefined;
}

// count is a typed whole number as the public API takes it, 0 for an empty field. What is none
// is in quotes, so that the API refuses it: by itself it takes 10.000, which some write for
// ten thousand, for ten.
export function count(typed) {
  return typed.trim() ? String(integer(typed) ?? `“${typed.trim()}”`) : "0";
}

// scopeOf reads a scope as the command line has it: 2026,BERLIN, or nothing for none.
export function scopeOf(typed) {
  return ["", "-"].includes(typed.trim()) ? [] : typed.split(",").map((part) => part.trim());
}
