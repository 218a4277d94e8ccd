// Drives the client for test/e2e/clients: takes a task on each line, and answers with a line.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

import { Client, collectionOf, IdnodeError } from "./index.js";

const say = (answer) => process.stdout.write(`${JSON.stringify(answer)}\n`);

function connect({ endpoints, options = {}, tls }) {
  return new Client(endpoints, {
    timeout: options.timeoutMs,
    tryTimeout: options.tryTimeoutMs,
    tls: tls && { ca: readFileSync(tls.ca), cert: readFileSync(tls.cert), key: readFileSync(tls.key) },
  });
}

async function outcome(client, { call, args }) {
  try {
    return { values: (await make(client, call, args)).map(String) };
  } catch (error) {
    if (!(error instanceof IdnodeError)) throw error;
    return { error: { type: error.name.replace(/Error$/, ""), reason: error.reason, field: error.field } };
  }
}

async function all(list) {
  const values = [];
  for await (const value of list) values.push(value);
  return values;
}

async function make(client, call, args) {
  const identity = client.identity(args.name ?? "");
  const { n = 1, separator, requestId, claim, force, forget, expected } = args;
  switch (call) {
    case "next":
      return client.nextN(args.template ?? "", n, { separator, requestId, claim });
    case "identity.next":
      return (await identity.nextN(n, { separator, requestId })).flatMap(({ first, last }) =>
        Array.from({ length: Number(last - first) + 1 }, (_, i) => first + BigInt(i)));
    case "identity.get":
      return [await identity.get()];
    case "identity.seed":
      return [await identity.seed(BigInt(args.value), { force, requestId, expected: expected && BigInt(expected) })];
    case "identity.delete":
      return [await identity.delete({ forget, requestId })];
    case "identities":
      return (await all(client.identities(args.prefix))).map(({ name, value }) => `${name}=${value}`);
    case "claim":
      await client.claim(args.id, { separator, requestId });
      return [];
    case "release":
      await client.release(args.id, { requestId });
      return [];
    case "claims":
      return all(client.claims(args.prefix));
    case "hilo":
      return client.hilo(args.tag, { separator }).nextIds(n);
    case "collection":
      return [collectionOf(args.name)];
    case "series.take":
      return told(await client.series(args.name).take(args.keys, args));
    case "series.confirm":
      return told(await client.series(args.name).confirm(args.keys));
    case "series.confirmTaken":
      return told(await client.series(args.name).confirm(await client.series(args.name).take(args.keys)));
    case "series.void":
      return told(await client.series(args.name).void(args.keys, args.reason));
    case "series.release":
      return told(await client.series(args.name).release(args.keys));
    case "series.find":
      return told([await client.series(args.name).find(args.keys[0])]);
    default:
      throw new Error(`there is no call ${call}`);
  }
}

const told = (numbers) => numbers.map(({ key, text, number, state }) => `${key} ${text} ${number} ${state}`);

// load takes values of an identity and HiLo ids with many promises, until the input ends.
async function load(task, ended) {
  const client = connect(task);
  const { callers, client: first, name, tag } = task.load;
  await Promise.all(Array.from({ length: callers }, async (_, i) => {
    try {
      while (!ended()) {
        const begin = process.hrtime.bigint();
        const value = await client.identity(name).next();
        const end = process.hrtime.bigint();
        const id = await client.hilo(tag).nextId();
        say({ client: first + i, call: Number(begin), return: Number(end), value: Number(value), id });
      }
    } catch (error) {
      say({ error: String(error) });
    }
  }));
  await client.close();
}

const lines = createInterface({ input: process.stdin });
let ended = false;
lines.on("close", () => { ended = true; });
let before = Promise.resolve();
lines.on("line", (line) => {
  const task = JSON.parse(line);
  before = before.then(async () => {
    if (task.load) return load(task, () => ended);
    const client = connect(task);
    const answer = [];
    for (const call of task.calls) answer.push(await outcome(client, call));
    await client.close();
    say(answer); // After what closing the client asks of the server.
  });
});
