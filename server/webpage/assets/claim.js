// The view of claims: the list, claiming and releasing.

import { change, ofIds } from "./api.js";
import { ask, say } from "./dialog.js";
import { el, field } from "./dom.js";
import { judged } from "./gate.js";
import { list } from "./list.js";

export function claims(database) {
  const all = list({
    call: (query) => ofIds("ListClaims", query), database, items: ({ ids }) => ids.map((name) => ({ name })), noun: "Id", label: `Claimed ids of the database ${database}`, columns: [],
    actions: [{ text: "Release", needs: ["claims"], class: "danger quiet", run: (item) => release(database, item.name, all.refresh) }],
    tools: [{ text: "Claim an id", needs: ["claims"], run: () => claim(database, all.refresh) }],
    empty: "Nothing is claimed.",
    lead: "Finished ids that a caller has claimed: the first claim wins, and identities step over them.",
  });
  return all;
}

function claim(database, done) {
  const id = field("Id", { required: true, maxlength: "2025" }, "A finished id, as users/ayende@example.org.");
  const submit = ask({
    title: "Claim an id", does: "Claim", content: [id.element],
    act: async () => {
      const answer = await change("Claim", { database, id: id.input.value });
      say(`${answer.id} is claimed.`);
      done();
    },
  });
  judged(submit, [id.input], () => id.input.value ? "" : "Name the id first.");
}

function release(database, id, done) {
  ask({
    title: "Release this id?", does: "Release", danger: true,
    content: [el("p", { class: "id" }, id), el("p", {}, "Anybody may claim it afterwards, and an identity may come to it.")],
    act: async () => {
      await change("Release", { database, id });
      say(`${id} is released.`);
      done();
    },
  });
}
