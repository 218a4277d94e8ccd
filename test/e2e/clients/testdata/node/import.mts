import { Client, IdnodeError, AbortError, tagOf, type Event, type HiLo, type ReadOptions, type RequestId, type ValueBlock } from "idnode";
class Order {}
const ids = new Client(["a:7402"], { tls: { ca: "x", cert: ["y"], key: [{ pem: "z" }] }, timeout: 5 });
const value: bigint = await ids.identity("invoices").next({ timeout: 5, database: "b", requestId: { id: "a", since: "5" }, traceparent: "x", separator: "-" });
const blocks: ValueBlock[] = await ids.identity("invoices").nextN(5);
const stale: ReadOptions = { stale: true };
const users: HiLo = ids.hilo("users", { database: "x" });
const text: string = await users.nextId({ timeout: 5 });
for await (const { name, value } of ids.identities("a", stale)) JSON.stringify([name, value === 5n]);
try { await ids.next("users/"); } catch (error) {
  if (error instanceof AbortError) { const id: RequestId | undefined = error.requestId; void id; }
  if (error instanceof IdnodeError) void [error.retryAfter, error.cause, error.message];
}
await ids.series("bills").confirm([...await ids.series("bills").take(["a"], { timeout: 5 }), "k", { key: "a", number: 5n }]);
await ids.idFor(Order, { timeout: 5 });
const flakes: bigint[] = await ids.snowflake("orders", { database: "x" }).nextIds(5, { timeout: 5 });
const at: Date = (await ids.snowflake("orders").parse(flakes[0] ?? 5)).time;
const told = (event: Event): void => { if (event.kind === "try") void [event.node, event.attempt, event.err?.reason]; };
Client.fromEnv({ observe: told, maxConnections: 8, failFastAfter: 5000 }).setEndpoints(["b:7402"]);
void String(Client.fromUrl("idnode+http://a:7402/shop", { tls: { ca: "ca.crt", cert: "client.crt", key: "client.key" } }));
// @ts-expect-error an option that does not exist
await ids.next("users/", { timeuot: 5 });
// @ts-expect-error numbers are BigInts
await ids.identity("a").seed(5);
await users[Symbol.asyncDispose]();
void [value, blocks, text, tagOf("a"), at];
