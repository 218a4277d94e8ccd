// A list of names that can be filtered and paged. It is looked at again every
// other second, from what this node knows by itself.

import { Failure, known, ofCluster } from "./api.js";
import { copyButton } from "./copy.js";
import { button, el, field, keyed, write } from "./dom.js";
import { explain } from "./dialog.js";
import { hold, obstacle } from "./gate.js";
import { heads } from "./sort.js";

const pause = 2000;
const size = 20;
// longest is how long a list may be in another order than that of names.
const longest = 10_000;

// used says whether the cluster knows a database; default is always there, and so is one of a viewer
// who may not list them.
async function used(database) {
  if (database === "default") {
    return true;
  }
  try {
    const { databases } = await ofCluster("ListDatabases", { ...known, prefix: database, pageSize: 1 });
    return databases[0]?.toLowerCase() === database.toLowerCase();
  } catch {
    return true;
  }
}

// list shows what a call lists, which takes a query as the lists of the public API do; items
// are those in its answer, each with a name. columns are those after the name: each has its key
// in the items, if they can be sorted by that number, and what makes a cell's text of an item.
// actions are what can be done with an item, tools what can be done without one: each has a
// text, the rights that it takes, and what does it; one that reads only takes no quorum, and
// one that not every item allows says why. lead says what is listed, of which database if it is
// of one.
export function list({ call, database, items: itemsOf, noun, label, columns, actions = [], tools = [], empty, lead }) {
  const filter = field("Filter", { type: "search", placeholder: "begins with …", maxlength: "2025", class: "filter" });
  const body = el("tbody");
  const rows = keyed(body, (item) => row(item, columns, actions));
  const begin = tools.map((tool) => button(tool.text, tool.run, { class: "main" }));
  const note = el("p", { class: "note", role: "status" }, "Loading …");
  const back = button("Previous", () => turn(-1));
  const on = button("Next", () => turn(1));
  const where = el("span", { class: "hint", "aria-live": "polite" });
  const head = heads([
    { head: noun, key: "name" }, ...columns.map((c) => ({ head: c.head, key: c.key, class: c.key && "number" })),
    { head: "What to do", unseen: true, class: "do" },
  ], (key, descending) => {
    order = { key, descending };
    again();
  });
  const table = el("table", { class: "rows", hidden: true }, el("caption", { class: "unseen" }, label), head, body);
  const pager = el("nav", { class: "pager", "aria-label": "Pages", hidden: true }, back, where, on);
  const element = el(
    "div", {}, el("p", { class: "lead" }, lead),
    el(
      "section", { class: "card list" },
      el("div", { class: "head" }, filter.element, el("div", { class: "tools" }, ...begin)),
      table, note, pager,
    ),
  );

  // items are those seen, and order how they are sorted.
  let items = [];
  let order = { key: "name", descending: false };
  // tokens lead to the pages so far; the last is that of the page seen. Of a list that is
  // sorted here they are places.
  let tokens = [""];
  let next = "";
  // asked and shown count questions and what is seen of them; turns is by how many
  // pages to go on once the newest is seen.
  let asked = 0;
  let shown = 0;
  let turns = 0;
  let timer;

  // look asks again, for what the cluster knows if fresh.
  async function look(fresh = false) {
    if (asked === Infinity) {
      return; // The view is another by now.
    }
    clearTimeout(timer);
    const mine = ++asked;
    const began = performance.now();
    let answer;
    try {
      answer = await page({ prefix: filter.input.value, ...(fresh ? {} : known) }, () => mine !== asked);
    } catch (failure) {
      answer = failure;
    }
    if (mine !== asked) {
      return; // The question is another by now.
    }
    shown = mine;
    show(answer);
    if (turns) {
      return turn(0);
    }
    if (fresh && answer instanceof Failure) {
      return look(); // The node's own view is better than none.
    }
    // What takes long is asked for less often.
    const rest = Math.min(5 * pause, 5 * (performance.now() - began));
    timer = setTimeout(() => document.hidden || look(), Math.max(pause, rest));
  }

  // page is one as the API has it, or of the whole list in another order.
  async function page(query, dated) {
    if (order.key === "name" && !order.descending) {
      const answer = await call({ ...(database && { database }), ...query, pageSize: size, pageToken: tokens.at(-1) });
      const items = itemsOf(answer);
      return { items, next: answer.nextPageToken, unused: !items.length && database && !(await used(database)) };
    }
    const [all, begin] = [await sorted(query, dated), Number(tokens.at(-1))];
    return { items: all.slice(begin, begin + size), next: begin + size < all.length ? String(begin + size) : "" };
  }

  // sorted is the whole list in its order, or nothing once nobody asks for it any more.
  async function sorted(query, dated) {
    const all = [];
    let next = { ...(database && { database }), ...query, pageSize: 1000 };
    while (next && !dated()) {
      const answer = await call(next);
      all.push(...itemsOf(answer));
      next = answer.nextPageToken && { ...next, ...known, pageToken: answer.nextPageToken };
      if (next && all.length >= longest) {
        throw new Failure("INVALID_REQUEST", `A list of more than ${longest} is shown in order of its names only; a filter makes it shorter.`, { field: "sort" });
      }
    }
    const { key, descending } = order;
    if (key !== "name") {
      const value = new Map(all.map((item) => [item, BigInt(item[key])]));
      all.sort((a, b) => value.get(a) < value.get(b) ? -1 : value.get(a) > value.get(b) ? 1 : 0);
    }
    return descending ? all.reverse() : all;
  }

  function show(answer) {
    if (answer instanceof Failure) {
      turns = 0;
      write(note, answer.unreached ? "" : explain(answer));
      return;
    }
    items = answer.items;
    update();
    next = answer.next;
    back.disabled = tokens.length === 1;
    on.disabled = !next;
    pager.hidden = back.disabled && on.disabled;
    table.hidden = !answer.items.length;
    write(where, `Page ${tokens.length}`);
    write(note, answer.items.length ? "" : answer.unused ? `No such database: ${database}. Its first id makes it.`
      : filter.input.value ? "Nothing begins with that." : empty);
  }

  // turn goes on or back by pages. The token of the next page belongs to the newest
  // answer, so it waits for that.
  function turn(by) {
    turns += by;
    if (shown !== asked) {
      return;
    }
    if (turns > 0 && next) {
      turns--;
      tokens.push(next);
    } else if (turns < 0 && tokens.length > 1) {
      turns++;
      tokens.pop();
    } else {
      turns = 0; // There is no such page.
    }
    look();
  }

  // again begins at the first page.
  function again() {
    tokens = [""];
    turns = 0;
    look();
  }

  // update shows what is known, and what can be done now.
  function update() {
    rows(items, (item) => item.name);
    tools.forEach((tool, i) => hold(begin[i], obstacle(tool.needs)));
  }

  filter.input.addEventListener("input", again);
  const seen = () => document.hidden || look();
  document.addEventListener("visibilitychange", seen);
  look();
  return {
    element, update, refresh: () => look(true),
    close: () => {
      asked = Infinity;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    },
  };
}

function row(item, columns, actions) {
  const cells = columns.map((column) => el("td", { class: column.key && "number", "data-head": column.head }));
  let newest = item;
  const buttons = actions.map((action) =>
    button(action.text, () => action.run(newest), { class: action.class, "aria-label": `${action.text} ${item.name}` }));
  const element = el(
    "tr", { "data-name": item.name }, el("th", { scope: "row" }, item.name), ...cells,
    el("td", { class: "do" }, copyButton(item.name, () => item.name), ...buttons),
  );
  const update = (now) => {
    newest = now;
    cells.forEach((cell, i) => write(cell, columns[i].text(now)));
    actions.forEach((action, i) => hold(buttons[i], obstacle(action.needs, { name: now.name, writes: !action.reads }) || action.not?.(now)));
  };
  return { element, update };
}
