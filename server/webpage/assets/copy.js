// Copies text, and says so.

import { say } from "./dialog.js";
import { button } from "./dom.js";

// copyButton copies what text returns; what names it.
export function copyButton(what, text) {
  return button("Copy", async (event) => {
    const copied = await copy(text(), event.currentTarget);
    say(copied ? `Copied ${what}.` : "The browser does not let the page copy; select the text instead.");
  }, { class: "quiet copy", "aria-label": `Copy ${what}` });
}

// copy works without TLS too, where browsers keep the clipboard from pages: a
// selection can be copied all the same.
async function copy(text, near) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "unseen";
    near.after(area); // Within a dialog nothing outside of it can be selected.
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    near.focus();
    return copied;
  }
}
