// Dialogs, and the line that says what was done.

import { button, el, write } from "./dom.js";

let timer;

// say tells what was done: seen for a while, and heard.
export function say(text) {
  const said = document.getElementById("said");
  clearTimeout(timer);
  said.replaceChildren(el("p", {}, text));
  timer = setTimeout(() => said.replaceChildren(), 8000);
}

let titles = 0;

// ask opens a dialog over the page. act is called for the button that does it, with the signal
// that the dialog was closed, and may fail: the dialog then stays and says why. Without act it only
// shows something. The dialog's submit button is returned, so that the caller can disable it.
export function ask({ title, content, does, danger = false, act }) {
  const id = `dialog-${++titles}`;
  const failure = el("p", { class: "failure", role: "alert" });
  const closed = new AbortController();
  const submit = el("button", { class: danger ? "danger" : "main" }, does);
  const cancel = button(act ? "Cancel" : "Close", () => dialog.close());
  const form = el(
    "form", { novalidate: true },
    el("h2", { id }, title), ...content, failure, el("div", { class: "actions" }, cancel, act && submit),
  );
  // A screen reader reads what the dialog says with its title: the focus may be behind that.
  const says = content.filter((each) => each?.localName === "p" && !each.role);
  says.forEach((each, i) => each.setAttribute("id", `${id}-${i}`));
  const dialog = el("dialog", { "aria-labelledby": id, "aria-describedby": says.map((each) => each.id).join(" ") || false }, form);
  const back = document.activeElement;
  submitting(form, failure, async () => {
    try {
      await act(closed.signal);
      dialog.close();
    } catch (error) {
      if (error === closed.signal.reason) {
        return; // What could still be stopped was.
      }
      closed.signal.aborted && say(explain(error));
      throw error;
    }
  });
  dialog.addEventListener("close", () => {
    closed.abort();
    dialog.remove();
    // What opened it may have gone, with the row that it was in.
    (back?.isConnected ? back : document.getElementById("main")).focus();
  });
  document.body.append(dialog);
  dialog.showModal();
  // Enter must not do what cannot be taken back.
  (form.querySelector("input:not([type=checkbox])") ?? cancel).focus();
  return submit;
}

// submitting does what a form is for, one time after the other, and writes why that failed.
export function submitting(form, failure, act) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (form.getAttribute("aria-busy") === "true") {
      return;
    }
    form.setAttribute("aria-busy", "true");
    write(failure, "");
    try {
      await act();
    } catch (error) {
      write(failure, explain(error));
    } finally {
      form.removeAttribute("aria-busy");
    }
  });
}

// explain says what a failure means for the author of the change.
export function explain(failure) {
  const again = failure.once ? " Do the same again: it counts once." : "";
  if (failure.unreached && failure.unknown) {
    return `This node does not answer, so it is not known whether that was done.${again}`;
  }
  if (failure.unreached || failure.unknown) {
    return failure.message + again;
  }
  const at = [failure.reason, failure.field].filter(Boolean).join(", ");
  return at ? `${failure.message} (${at})` : failure.message;
}
