// Small charts of one quantity over time.

import { el, write } from "./dom.js";
import { told } from "./past.js";
import { clock } from "./text.js";

const width = 240;
const height = 56;
// most is how many marks are drawn: the newest.
const most = 60;

// chart shows a quantity; text writes a value of it.
export function chart({ key, title, note, unit, text }) {
  const line = el("path", { class: "line" });
  const area = el("path", { class: "area" });
  const lines = el("g");
  const picture = el(
    "svg", { viewBox: `0 0 ${width} ${height + 4}`, preserveAspectRatio: "none", role: "img" },
    el("line", { class: "base", x1: "0", x2: width, y1: height, y2: height }), lines, area, line,
  );
  const now = el("strong");
  const peak = el("span");
  const total = el("span");
  const ticks = [el("span"), el("span"), el("span")];
  const element = el(
    "li", { class: "card rate", "data-strategy": key },
    el("h3", {}, title), el("p", { class: "hint" }, note), el("p", { class: "now" }, now, ` ${unit}`),
    picture, el("p", { class: "hint axis", "aria-hidden": "true" }, ...ticks), el("p", { class: "hint ends" }, peak, total),
  );
  // pointed writes the value under the pointer, or the peak if there is none.
  let drawn, pointer;
  const pointed = () => {
    const { from, to, seen, began, highest, seconds } = drawn ?? { seen: [] };
    const at = from + pointer * (to - from);
    const near = pointer !== undefined && seen.reduce((a, b) => Math.abs(b.at - at) < Math.abs(a.at - at) ? b : a, seen[0] ?? false);
    write(peak, near ? `${clock(began + near.at, seconds)}: ${text(near.value)}` : drawn ? `peak ${text(highest)}` : "");
  };
  picture.addEventListener("pointermove", (event) => {
    pointer = event.offsetX / picture.clientWidth;
    pointed();
  });
  picture.addEventListener("pointerleave", () => {
    pointer = undefined;
    pointed();
  });
  // update draws points, each with the time at which it ends, in milliseconds of the node, from
  // one time to another; each is how long a point is for. A line breaks where the next point is
  // more than step away. began is the time of 0 by the viewer's clock.
  const update = ({ points, from, to, step, each, events, began, newest, sum }) => {
    const seen = points.filter(({ at }) => at >= from);
    const highest = Math.max(0, newest ?? 0, ...seen.map(({ value }) => value));
    const x = (at) => Math.max(0, (at - from) / (to - from) * width);
    const y = (value) => height - value / (highest || 1) * (height - 3);
    const paths = runs(seen, step).map((run) => {
      const begin = x(Math.max(from, run[0].at - each)).toFixed(1);
      const path = `M${begin},${y(run[0].value).toFixed(1)}` + run.map(({ at, value }) => `L${x(at).toFixed(1)},${y(value).toFixed(1)}`).join("");
      return [path, `${path}L${x(run.at(-1).at).toFixed(1)},${height}L${begin},${height}Z`];
    });
    line.setAttribute("d", paths.map(([path]) => path).join(""));
    area.setAttribute("d", paths.map(([, path]) => path).join(""));
    lines.replaceChildren(...events.filter(({ at }) => at >= from).slice(-most).map((event) => mark(event, x(event.at), began)));
    write(now, text(newest ?? 0));
    write(total, sum ?? "");
    const seconds = to - from < 600_000;
    drawn = { from, to, seen, began, highest, seconds };
    pointed();
    [from, (from + to) / 2, to].forEach((at, i) => write(ticks[i], clock(began + at, seconds)));
    picture.setAttribute("aria-label", `${title}: ${text(newest ?? 0)} ${unit} now, at most ${text(highest)} since ${clock(began + from, seconds)}`);
  };
  return { element, update };
}

// runs parts points where nothing is known between them.
function runs(points, step) {
  const all = [];
  points.forEach((point, i) => {
    if (i && point.at - points[i - 1].at <= step) {
      all.at(-1).push(point);
    } else {
      all.push([point]);
    }
  });
  return all;
}

// mark is a line where something happened.
function mark(event, x, began) {
  const kind = event.kind === "leader" ? "leader" : "alarm";
  return el("line", { class: `event ${kind}`, x1: x.toFixed(1), x2: x.toFixed(1), y1: "0", y2: height }, el("title", {}, `${clock(began + event.at, true)} ${told(event)}`));
}
