// The view for operators: the viewer's name, backups, settings and roles.

import { download, known, ofCluster } from "./api.js";
import { ask, explain, say } from "./dialog.js";
import { button, code, el, field, write, wrong } from "./dom.js";
import { hold, judged, obstacle } from "./gate.js";
import { live, repeat } from "./live.js";
import { heads } from "./sort.js";
import { integer, number, size } from "./text.js";

// pause is between two looks at settings and roles, which change rarely.
const pause = 10_000;
// most is how many lines of roles are shown.
const most = 100;

export function operate() {
  const who = el("p", { class: "lead" });
  const open = el("p", { class: "warning", hidden: true }, "Everybody who reaches this port may read, change and delete everything. With TLS and roles only those may to whom you give the right.");
  const backup = backups();
  const settings = section("Settings", "ListSettings", ["Limits that the whole cluster shares. A change counts at once, on all nodes."], settingsTable);
  const roles = section("Roles", "GetRoles", ["Roles and their rights: ", code("idnode cluster set-roles"), " changes them."], rolesTable);
  const element = el("div", { class: "operate" }, who, open, backup.element, settings.element, roles.element);
  const update = ({ overview: o }) => {
    write(who, `You are ${o.you.name ? o.you.name : "known by no certificate"}. ` +
      (o.you.cluster ? `On the cluster as a whole you have the rights ${o.you.cluster.replaceAll(",", ", ")}.` : "On the cluster as a whole you have no right."));
    open.hidden = Boolean(o.you.name) || !o.you.cluster.split(",").includes("delete");
    backup.update(o);
    settings.element.querySelectorAll(".change").forEach((each) => hold(each, obstacle(["cluster"], { may: o.you.cluster })));
  };
  const look = () => Promise.all([settings.look(), roles.look()]);
  return { element, update, close: repeat(look, pause) };
}

function backups() {
  const failure = el("p", { class: "failure", role: "alert" });
  const hint = el("p", { class: "hint" });
  const take = button("Download a backup", async () => {
    const o = live.overview;
    write(failure, "");
    section.setAttribute("aria-busy", "true");
    hold(take, "A backup is in progress.");
    try {
      const file = await download("backup", o.hasQuorum ? {} : known);
      save(file, `idnode-${o.clusterId.slice(0, 8)}-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}.backup`);
      say(`The backup has ${size(file.size)}.`);
    } catch (error) {
      write(failure, explain(error));
    } finally {
      section.removeAttribute("aria-busy");
      update(live.overview);
    }
  }, { class: "main" });
  const section = el(
    "section", { class: "card", "aria-label": "Backup" }, el("h2", {}, "Backup"),
    el("p", {}, "Everything that the cluster has agreed on, as it is at one log entry, while the node goes on serving. ", code("idnode backup inspect"), " checks the file, ", code("idnode restore"), " merges it."),
    hint, failure, el("div", { class: "actions" }, take),
  );
  const update = (o) => {
    const why = obstacle(["backup"], { may: o.you.cluster, writes: false });
    if (section.getAttribute("aria-busy") !== "true") {
      hold(take, why);
    }
    write(hint, why || (o.hasQuorum ? "" : "There is no quorum: the backup has what this node knows, and may lack the newest ids."));
  };
  return { element: section, update };
}

// save hands a file to the browser.
function save(file, name) {
  const link = el("a", { href: URL.createObjectURL(file), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

// section shows what a call answers, or why it does not.
function section(title, method, about, show) {
  const body = el("div");
  const note = el("p", { class: "note", role: "status" });
  const element = el(
    "section", { class: "card list", "data-about": title.toLowerCase() }, el("div", { class: "head" }, el("div", {}, el("h2", {}, title), el("p", { class: "hint" }, ...about))), body, note,
  );
  let shown = "";
  async function look() {
    try {
      const answer = await ofCluster(method, known);
      const now = JSON.stringify({ ...answer, logIndex: undefined });
      if (now !== shown) { // What has the focus stays.
        body.replaceChildren(...show(answer, title, look));
        shown = now;
      }
      write(note, body.children.length ? "" : "There are none: every caller that reaches this node may do everything, except what its setting admin keeps to administrators.");
    } catch (error) {
      if (!error.unreached) {
        body.replaceChildren();
        shown = "";
        write(note, explain(error));
      }
    }
  }
  return { element, look };
}

function table(label, columns, rows) {
  return el(
    "table", { class: "rows" }, el("caption", { class: "unseen" }, label),
    heads(columns.map(([head, kind]) => ({ head, class: kind, unseen: kind === "do" }))),
    el("tbody", {}, ...rows.map(([name, ...cells]) => el(
      "tr", { "data-name": name }, el("th", { scope: "row" }, name),
      ...cells.map((cell, i) => el("td", { class: columns[i + 1][1], "data-head": columns[i + 1][1] !== "do" && columns[i + 1][0] }, cell)),
    ))),
  );
}

function settingsTable({ settings }, title, again) {
  return [table(title, [["Setting"], ["Value", "number"], ["Default", "number"], ["What it limits"], ["What to do", "do"]],
    settings.map((s) => [s.key, written(s.key, s.value), written(s.key, s.defaultValue), s.description, button("Change", () => change(s, again), { class: "change", "aria-label": `Change ${s.key}` })]))];
}

// written is the value of a setting: bytes in their unit.
const written = (key, value) => /bytes/.test(key) ? size(Number(value)) : number(value);

// change sets a setting.
function change({ key, value, defaultValue, description, lowered }, done) {
  const wanted = field("Value", { inputmode: "numeric", value });
  const submit = ask({
    title: `Change ${key}?`, does: "Change",
    content: [el("p", {}, `${description} It is ${written(key, value)}; by default ${written(key, defaultValue)}. With a lower value ${lowered}.`), wanted.element],
    act: async () => {
      const { setting } = await ofCluster("UpdateSetting", { key, value: String(integer(wanted.input.value)) });
      say(`${key} is ${written(key, setting.value)}.`);
      done();
    },
  });
  wanted.input.select();
  judged(submit, [wanted.input], () => {
    const none = integer(wanted.input.value) === undefined;
    wrong(wanted.input, none);
    return none ? "Give a whole number." : "";
  });
}

// namesOf says which names a grant is for.
function namesOf(g) {
  if (g.name) {
    return `the name ${g.name}`;
  }
  return !g.prefix ? "everything" : g.boundary ? `${g.prefix}, and what goes on with / or |` : `names that begin with ${g.prefix}`;
}

function rolesTable({ table: { roles, limits } }, title) {
  const grants = roles.flatMap((role) => role.grants.map((g) => [
    role.name, role.principals.join(", "), `${g.database === "*" ? "all databases" : g.database}, ${namesOf(g)}`,
    g.rights.map((right) => right.replace("RIGHT_", "").toLowerCase()).join(", "),
  ]));
  const bounds = limits.map((l) => [
    l.principals.join(", "), ...[l.inFlight, l.idsPerSecond, l.newNamesPerHour].map((bound) => bound === "0" ? "no limit" : number(bound)),
  ]);
  return [
    grants.length && table(title, [["Role"], ["Who"], ["On"], ["Rights"]], grants.slice(0, most)),
    grants.length > most && el("p", { class: "note" }, `${number(grants.length - most)} more: `, code("idnode cluster roles"), " has them all."),
    bounds.length && table("Limits of callers", [["Who"], ["Calls in flight", "number"], ["Ids a second", "number"], ["New names an hour", "number"]], bounds),
  ].filter(Boolean);
}
