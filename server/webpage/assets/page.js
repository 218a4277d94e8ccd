// The page: the frame around the views, and which view is seen.

import { known, ofCluster } from "./api.js";
import { el, keyed, write } from "./dom.js";
import { listen, live, look } from "./live.js";
import { address, place } from "./place.js";
import { elapsed } from "./text.js";
import { claims } from "./claim.js";
import { databases } from "./databases.js";
import { etags } from "./etag.js";
import { events } from "./events.js";
import { find } from "./find.js";
import { hilos } from "./hilo.js";
import { identities } from "./identity.js";
import { make } from "./make.js";
import { pageOf } from "./nodes.js";
import { operate } from "./operate.js";
import { overview } from "./overview.js";
import { pools } from "./snowflake.js";
import { series } from "./series.js";

// views stand in groups; the first of a group is marked.
const views = {
  overview: { title: "Cluster", open: overview },
  events: { title: "Events", open: events },
  find: { title: "Find", open: find, database: true },
  make: { title: "Make an id", open: make, database: true },
  identities: { title: "Identities", open: identities, database: true, first: true },
  hilo: { title: "HiLo", open: hilos, database: true },
  claims: { title: "Claims", open: claims, database: true },
  series: { title: "Series", open: series, database: true },
  pools: { title: "Snowflake", open: pools, database: true },
  databases: { title: "Databases", open: databases, first: true },
  etags: { title: "Etags", open: etags },
  operate: { title: "Operate", open: operate },
};

const main = document.getElementById("main");
const database = document.getElementById("database");
let close = () => {};

// current is the view of the address.
function current() {
  const { view } = place();
  return views[view] ? view : "overview";
}

// show opens the view of the address.
function show(moveFocus) {
  const at = place();
  const name = current();
  close();
  document.querySelectorAll("dialog").forEach((dialog) => dialog.close());
  const view = views[name].open(at.database);
  const title = el("h1", { tabindex: "-1" }, views[name].title);
  main.replaceChildren(title, view.element);
  const deaf = listen(view.update ?? (() => {}));
  close = () => {
    deaf();
    view.close?.();
  };
  if (live.overview) {
    view.update?.(live);
  }
  database.value = at.database;
  database.parentElement.classList.toggle("idle", !views[name].database);
  document.title = `${views[name].title} · idnode`;
  links(name);
  frame(live); // Which alarms are seen depends on the view.
  look(); // What one may do depends on the database.
  if (moveFocus) {
    title.focus();
  }
}

function links(seen) {
  const nav = document.getElementById("views");
  nav.replaceChildren(...Object.entries(views).map(([name, view]) =>
    el("a", { href: address(name), "aria-current": name === seen && "page", class: view.first && "first" }, view.title)));
  const link = nav.querySelector("[aria-current]");
  nav.scrollTo({ left: link.offsetLeft - (nav.clientWidth - link.offsetWidth) / 2 });
}

// frame keeps what is around the views up to date.
function frame({ overview: o, lostAt }) {
  trouble(o, lostAt);
  main.classList.toggle("old", Boolean(lostAt));
  if (!o) {
    return;
  }
  const self = o.self;
  document.getElementById("where").replaceChildren(
    el("span", { class: "tag" }, self.tag || "?"),
    el("span", { class: `state ${lostAt ? "lost" : o.hasQuorum ? "good" : "bad"}` }, lostAt ? "no answer" : o.hasQuorum ? "quorum" : "no quorum"),
  );
  const alarms = document.getElementById("alarms");
  alarms.href = address("overview");
  alarms.hidden = !o.alarms.length || Boolean(lostAt);
  alarms.className = `state ${o.alarms.some((alarm) => alarm.critical) ? "bad" : "late"}`;
  write(alarms, o.alarms.length === 1 ? "1 alarm" : `${o.alarms.length} alarms`);
  write(document.getElementById("foot"), `idnode ${o.version} · node ${self.id.slice(0, 8)}${o.clusterId ? ` · cluster ${o.clusterId.slice(0, 8)}` : ""}`);
}

// What is wrong: all alarms on the view of the cluster, on others what stops them.
const troubles = keyed(document.getElementById("trouble"), (item) => {
  // The time runs on. A screen reader has read the rest, and need not read it each second.
  const time = el("span", { "aria-hidden": "true" });
  const rule = item.name && el("a", { class: "rule", href: item.runbook, target: "_blank", rel: "noreferrer" }, item.name);
  return {
    element: el("p", { class: `trouble ${item.kind}`, "data-alarm": item.name }, el("strong", {}, item.title), " ", item.text, " ", time, " ", ...(item.links ?? []), rule),
    update: (now) => write(time, now.millis ? `For ${elapsed(now.millis)}.` : ""),
  };
});

function trouble(o, lostAt) {
  const alarms = lostAt ? [unreached(o, lostAt)] : o?.alarms ?? [];
  const all = alarms.map((alarm) => ({ kind: alarm.critical ? "critical" : "warning", ...alarm }));
  troubles(all.filter((alarm) => alarm.critical || current() === "overview"), (item) => item.name + item.title + item.text);
}

// unreached leads to the nodes that may answer.
function unreached(o, lostAt) {
  const others = (o?.members ?? []).filter((m) => !m.self && m.httpAddress);
  return {
    critical: true, kind: "unreached", title: "This node does not answer.", millis: Date.now() - lostAt,
    name: "", text: o ? "What you see is what it last said. The page goes on trying." : "The page goes on trying.",
    links: others.length ? ["Ask another: ", ...others.flatMap((m) => [el("a", { href: pageOf(m) + location.hash }, m.tag), " "])] : [],
  };
}

// Databases: those that the cluster knows are offered; any other may be typed.
const offered = document.getElementById("databases");
async function offer() {
  try {
    const { databases } = await ofCluster("ListDatabases", { ...known, prefix: database.value === place().database ? "" : database.value, pageSize: 50 });
    offered.replaceChildren(...databases.map((value) => el("option", { value })));
  } catch {
    offered.replaceChildren(); // The field does without; what is wrong is said elsewhere.
  }
}
database.addEventListener("focus", () => {
  database.select();
  offer();
});
database.addEventListener("input", offer);
database.addEventListener("change", () => {
  location.hash = address(current(), database.value.trim() || "default");
});

// Light or dark: as the system has it, unless the viewer chooses.
const themes = { auto: "Auto", light: "Light", dark: "Dark" };
const theme = document.getElementById("theme");
function paint(now) {
  document.documentElement.dataset.theme = now;
  theme.replaceChildren(el("span", { "aria-hidden": "true" }, "◐"), " ", el("span", { class: "word" }, themes[now]));
  theme.setAttribute("aria-label", `Colours: ${themes[now]}`);
}
theme.addEventListener("click", () => {
  const names = Object.keys(themes);
  const next = names[(names.indexOf(document.documentElement.dataset.theme) + 1) % names.length];
  paint(next);
  remember((storage) => storage.setItem("theme", next));
});

// remember uses what the browser keeps for the page; some are told to keep nothing.
function remember(use) {
  try {
    return use(localStorage);
  } catch {
    return undefined;
  }
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // The address holds the view.
  main.focus();
});
addEventListener("hashchange", () => show(true));

const chosen = remember((storage) => storage.getItem("theme"));
paint(themes[chosen] ? chosen : "auto");
listen(frame);
show(false);
