// Small live charts.

import { el, write } from "./dom.js";
import { kept } from "./live.js";
import { about, rate } from "./text.js";

const width = 240;
const height = 56;
// shortest is how much time the width is at least; a longer history makes it more.
const shortest = 30_000;

// rates are ids a second between each two samples, with the time of the second.
function rates(samples, strategy) {
  const points = [];
  for (let i = 1; i < samples.length; i++) {
    const seconds = (samples[i].millis - samples[i - 1].millis) / 1000;
    const ids = (samples[i].issued[strategy] ?? 0) - (samples[i - 1].issued[strategy] ?? 0);
    if (seconds > 0) {
      points.push({ millis: samples[i].millis, value: ids / seconds });
    }
  }
  return points;
}

// chart shows the rate of one strategy. The newest point is at the right end, and
// the height is that of the peak in sight.
export function chart(strategy, title, note) {
  const line = el("path", { class: "line" });
  const area = el("path", { class: "area" });
  const picture = el(
    "svg", { viewBox: `0 0 ${width} ${height + 4}`, preserveAspectRatio: "none", role: "img" },
    el("line", { class: "base", x1: "0", x2: width, y1: height, y2: height }), area, line,
  );
  const now = el("strong");
  const peak = el("span");
  const total = el("span");
  const element = el(
    "li", { class: "card rate", "data-strategy": strategy },
    el("h3", {}, title), el("p", { class: "hint" }, note), el("p", { class: "now" }, now, " ids/s"), picture,
    el("p", { class: "hint ends" }, peak, total),
  );
  const update = (samples) => {
    const points = rates(samples, strategy);
    const value = points.at(-1)?.value ?? 0;
    const highest = Math.max(0, ...points.map((point) => point.value));
    draw(points, highest, line, area);
    write(now, rate(value));
    write(peak, `peak ${rate(highest)}`);
    write(total, `${about(samples.at(-1)?.issued[strategy] ?? 0)} in all`);
    picture.setAttribute("aria-label", `${title}: ${rate(value)} ids a second now, at most ${rate(highest)} in the last two minutes`);
  };
  return { element, update };
}

function draw(points, highest, line, area) {
  const end = points.at(-1)?.millis ?? 0;
  const longest = Math.min(end - (points[0]?.millis ?? 0), (kept - 1) * 1000);
  const scale = width / Math.max(shortest, longest);
  const top = highest || 1;
  const path = points
    .filter((point) => end - point.millis <= longest)
    .map((point, i) => `${i ? "L" : "M"}${(width - (end - point.millis) * scale).toFixed(1)},${(height - (point.value / top) * (height - 3)).toFixed(1)}`)
    .join("");
  const first = path.slice(1, path.indexOf(","));
  line.setAttribute("d", path);
  area.setAttribute("d", path && `${path}L${width},${height}L${first},${height}Z`);
}
