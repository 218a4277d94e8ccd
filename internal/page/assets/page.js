// The page: the frame around the views, and which view is seen.

import { get } from "./api.js";
import { el, keyed, write } from "./dom.js";
import { listen, live, look } from "./live.js";
import { address, place } from "./place.js";
import { span } from "./text.js";
import { claims } from "./claims.js";
import { etags } from "./etags.js";
import { hilos } from "./hilos.js";
import { identities } from "./identities.js";
import { make } from "./make.js";
import { overview } from "./overview.js";

const views = {
  overview: { title: "Cluster", open: overview },
  make: { title: "Make an id", open: make, database: true },
  identities: { title: "Identities", open: identities, database: true },
  hilo: { title: "HiLo", open: hilos, database: true },
  claims: { title: "Claims", open: claims, database: true },
  etags: { title: "Etags", open: etags },
};

const main = document.getElementById("main");
const database = document.getElementById("database");
let close = () => {};

// show opens the view of the address.
function show(moveFocus) {
  const at = place();
  const name = views[at.view] ? at.view : "overview";
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
  if (moveFocus) {
    title.focus();
  }
}

function links(current) {
  const nav = document.getElementById("views");
  nav.replaceChildren(...Object.entries(views).map(([name, view]) =>
    el("a", { href: address(name), "aria-current": name === current && "page" }, view.title)));
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
    el("span", { class: `state ${lostAt ? "lost" : o.has_quorum ? "good" : "bad"}` }, lostAt ? "no answer" : o.has_quorum ? "quorum" : "no quorum"),
  );
  write(document.getElementById("foot"), `idnode ${o.version} · node ${self.id.slice(0, 8)}${o.cluster_id ? ` · cluster ${o.cluster_id.slice(0, 8)}` : ""}`);
}

const troubles = keyed(document.getElementById("trouble"), (item) => {
  // The time runs on; who listens has heard the rest, and need not hear it each second.
  const time = el("span", { "aria-hidden": "true" });
  return {
    element: el("p", { class: `trouble ${item.key}` }, el("strong", {}, item.title), " ", item.text, " ", time),
    update: (now) => write(time, now.since),
  };
});

function trouble(o, lostAt) {
  const all = [];
  if (lostAt) {
    all.push({
      key: "unreached", title: "This node does not answer.",
      text: o ? "What you see is what it last said. The page goes on trying." : "The page goes on trying.",
      since: `For ${span(Date.now() - lostAt)}.`,
    });
  } else if (!o.has_quorum) {
    all.push({
      key: "quorum", title: "No quorum.",
      text: `This node is not in touch with a majority of the voters${o.voters ? ` (${o.reachable} of ${o.voters} in reach, ${o.quorum} needed)` : ""}. ` +
        "It refuses identities, HiLo ranges, claims and seeds; server-side ids and GUIDs go on.",
      since: `For ${span(o.quorum_missing_millis)}.`,
    });
  }
  if (o?.storage_full && !lostAt) {
    all.push({ key: "storage", title: "The disk is nearly full.", text: "Nothing is written to the log, on this node or on a quorum, until there is room.", since: "" });
  }
  troubles(all, (item) => item.key + item.text);
}

// Databases: those that the cluster knows are offered; any other may be typed.
const offered = document.getElementById("databases");
async function offer() {
  try {
    const { items } = await get("databases", { prefix: database.value === place().database ? "" : database.value, size: 50 });
    offered.replaceChildren(...items.map((item) => el("option", { value: item.name })));
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
  location.hash = address(views[place().view] ? place().view : "overview", database.value.trim() || "default");
});

// Light or dark: as the system has it, unless somebody says otherwise.
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
show(false);
listen(frame);
look();
