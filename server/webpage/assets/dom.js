// Makes elements. Text only ever becomes text: nothing here takes HTML, and the
// page's policy would refuse it.

const svgNames = new Set(["svg", "path", "line", "g", "title"]);

// shown escapes what docid.FirstInvisible looks for in a name: it would turn or break the
// text around it, or make it look like another.
const shown = (text) => typeof text !== "string" ? text : text.replace(
  /[\p{Cc}\p{Zl}\p{Zp}\p{Cf}\p{Default_Ignorable_Code_Point}]/gu,
  (c) => c.replace(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`),
);

// el makes an element. A property that is a function listens to the event of its
// name; true and false set and drop an attribute; the rest are attributes.
export function el(name, properties = {}, ...children) {
  const element = svgNames.has(name)
    ? document.createElementNS("http://www.w3.org/2000/svg", name)
    : document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (typeof value === "function") {
      element.addEventListener(key, value);
    } else if (value !== false && value !== undefined && value !== null) {
      element.setAttribute(key, value === true ? "" : key === "aria-label" ? shown(value) : value);
    }
  }
  element.append(...children.filter((child) => child !== undefined && child !== null && child !== false).map(shown));
  return element;
}

// write changes an element's text only if it is another, so that a screen reader
// hears of it once and a selection stays.
export function write(element, text) {
  const now = shown(text);
  if (element.textContent !== now) {
    element.textContent = now;
  }
}

// keyed keeps the children of a parent in step with a list of items: each item
// keeps its element, and thereby the focus in it, for as long as it is there.
export function keyed(parent, make) {
  const rows = new Map();
  return (items, keyOf) => {
    const wanted = new Set(items.map(keyOf));
    for (const [key, row] of rows) {
      if (!wanted.has(key)) {
        row.element.remove();
        rows.delete(key);
      }
    }
    items.forEach((item, i) => {
      const key = keyOf(item);
      let row = rows.get(key);
      if (!row) {
        row = make(item);
        rows.set(key, row);
      }
      if (parent.children[i] !== row.element) {
        parent.insertBefore(row.element, parent.children[i] ?? null);
      }
      row.update(item);
    });
  };
}

// code is a command, or what is typed of one.
export const code = (text) => el("code", {}, text);

// button is one that does no more than what it says.
export function button(text, click, properties = {}) {
  return el("button", { type: "button", click, ...properties }, text);
}

let fields = 0;

// field is a labelled input with a line of help below it. The input is what the
// second value is.
export function field(label, properties = {}, help = "") {
  const id = `field-${++fields}`;
  const input = el("input", { id, autocomplete: "off", spellcheck: "false", autocapitalize: "none", ...properties });
  const hint = el("p", { class: "hint", id: `${id}-hint` }, help);
  input.setAttribute("aria-describedby", hint.id);
  return { element: el("div", { class: "field" }, el("label", { for: id }, label), input, hint), input, hint };
}

// wrong says of an input that what is typed is none of its values, or takes that back.
export const wrong = (input, is) => input.setAttribute("aria-invalid", String(is));

// check is a labelled check box.
export function check(label, properties = {}) {
  const input = el("input", { type: "checkbox", ...properties });
  return { element: el("label", { class: "check" }, input, el("span", {}, label)), input };
}

// choice is a labelled list of values, each with its text, of which one is chosen.
export function choice(label, values, chosen) {
  const id = `field-${++fields}`;
  const input = el("select", { id }, ...values.map(([value, text]) => el("option", { value, selected: value === chosen }, text)));
  return { element: el("div", { class: "field" }, el("label", { for: id }, label), input), input };
}
