// Drives the client for test/e2e/clients: takes a task on each line, and answers with a line.

import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";

import { Client, tagOf, IdnodeError } from "./index.js";

const say = (answer) => process.stdout.write(`${JSON.stringify(answer)}\n`);

function connect({ endpoints, options = {}, tls }) {
  return new Client(endpoints, {
    clusterId: options.clusterId,
    timeout: options.timeoutMs,
    tryTimeout: options.tryTimeoutMs,
    tls,
  });
}

async function outcomes(client, calls) {
  const answer = [];
  let failed;
  for (const { call, args } of calls) {
    try {
      answer.push({ values: (await make(client, call, args, failed)).map(String) });
    } catch (error) {
      if (!(error instanceof IdnodeError || error instanceof TypeError)) throw error;
      failed = error;
      const { name, reason = "", field = "", ids = [] } = error;
      answer.push({ values: ids.map(String), cause: error.cause !== undefined, error: { type: name.replace(/Error$/, ""), reason, field } });
    }
  }
  return answer;
}

function requestIdOf({ requestId, since, again }, failed) {
  if (again) return failed.requestId;
  return since ? { id: requestId, since: BigInt(since) } : requestId;
}

async function all(list) {
  const values = [];
  for await (const value of list) values.push(value);
  return values;
}

async function make(client, call, args, failed) {
  const identity = client.identity(args.name ?? "");
  const { n = 1, separator, claim, force, forget, expected, options } = args;
  const once = { requestId: requestIdOf(args, failed), ...options };
  const series = client.series(args.name ?? "");
  const keys = args.key ?? args.keys;
  switch (call) {
    case "next":
      return client.nextN(args.template ?? "", n, { separator, claim, ...once });
    case "identity.next":
      return (await identity.nextN(n, { separator, ...once })).flatMap(({ first, last }) =>
        Array.from({ length: Number(last - first) + 1 }, (_, i) => first + BigInt(i)));
    case "identity.get":
      return [await identity.get(options)];
    case "identity.seed":
      return [await identity.seed(BigInt(args.value), { force, expected: expected && BigInt(expected), ...once })];
    case "identity.delete":
      return [await identity.delete({ forget, ...once })];
    case "identities":
      return (await all(client.identities(args.prefix, options))).map(({ name, value }) => `${name}=${value}`);
    case "claim":
      await client.claim(args.id, { separator, ...once });
      return [];
    case "release":
      await client.release(args.id, once);
      return [];
    case "claims":
      return all(client.claims(args.prefix, options));
    case "hilo":
      return client.hilo(args.tag, { separator, ...options }).nextIds(n);
    case "snowflake.next":
      return client.snowflake(args.name).nextIds(n);
    case "snowflake.parse": {
      const { time, worker, sequence } = await client.snowflake(args.name).parse(BigInt(args.id));
      return [`${time.getTime()} ${worker} ${sequence}`];
    }
    case "snowflake.close":
      await client.snowflake(args.name).close();
      return [];
    case "collection":
      return [tagOf(args.name)];
    case "series.take":
      return told(await series.take(keys, { values: args.values, date: args.date, label: args.label, number: args.number && BigInt(args.number), because: args.because, expiresIn: args.expiresInMs, ...options }));
    case "series.confirm":
      return told(await series.confirm(keys));
    case "series.confirmTaken":
      return told(await series.confirm(await series.take(keys)));
    case "series.void":
      return told(await series.void(keys, args.reason));
    case "series.release":
      return told(await series.release(keys));
    case "series.find":
      return told([await series.find(keys[0], options)]);
    default:
      throw new Error(`there is no call ${call}`);
  }
}

const told = (numbers) => numbers.map(({ key, text, number, state, note }) => `${key} ${text} ${number} ${state} ${note}`.trimEnd());

// load takes values of an identity and HiLo ids, or Snowflake ids of a pool, with many promises, until the input ends.
async function load(task, ended) {
  const client = connect(task);
  const { callers, client: first, name, tag, pool } = task.load;
  await Promise.all(Array.from({ length: callers }, async (_, i) => {
    try {
      while (pool && !ended()) {
        say({ client: first + i, ids: (await client.snowflake(pool).nextIds(10)).map(String) });
        await setTimeout(10);
      }
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
    let client;
    try {
      client = connect(task);
    } catch {
      say([{ error: { type: "Refused" } }]);
      return;
    }
    const answer = await outcomes(client, task.calls);
    await client.close();
    say(answer); // After what closing the client asks of the server.
  });
});
