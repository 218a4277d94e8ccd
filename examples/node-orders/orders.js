// A web service that takes orders, each of which gets a number of its own from idnode. README.md shows it.

import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import {
  Client, DeadlineError, InvalidError, NoEndpointError, NoQuorumError, OutcomeUnknownError, OverloadedError, RequestIdExpiredError,
  RequestIdReusedError,
} from "idnode";
import { Books } from "./books.js";

const NOT_NOW = [DeadlineError, NoEndpointError, NoQuorumError, OutcomeUnknownError, OverloadedError];
const REFUSED = [InvalidError, RequestIdReusedError, RequestIdExpiredError];
const KEY = /^[!-~]{1,48}$/; // A request id has at most 64 bytes.
const ids = Client.fromEnv();
const books = await Books.open(process.env.BOOKS ?? "orders.jsonl");

// Stores the order, takes a number, and stores that. The service's name and the order's key are the request id of the call: whoever repeats
// it, this caller, another one at the same time or the service after a crash, gets the same number.
async function number(order) {
  const taken = await ids.identity("orders").next({ requestId: `node-orders-${order.key}` });
  const numbered = { ...order, number: String(taken) };
  await books.write(numbered);
  return numbered;
}

async function place(key = "", { customer }) {
  if (!KEY.test(key) || typeof customer !== "string") {
    throw Object.assign(new Error("an order has a customer, and a header Idempotency-Key of 1 to 48 characters of ASCII"), { status: 400 });
  }
  const known = books.get(key);
  if (known?.number) return known;
  if (!known) await books.write({ key, customer });
  return number(books.get(key));
}

async function answer(request) {
  switch (`${request.method} ${request.url}`) {
    case "POST /orders":
      return place(request.headers["idempotency-key"], JSON.parse(await text(request)));
    case "GET /orders":
      return books.all;
    default:
      throw Object.assign(new Error("there are POST /orders and GET /orders"), { status: 404 });
  }
}

function statusOf(error) {
  if (NOT_NOW.some((kind) => error instanceof kind)) return 503; // The same call later gives the order its number.
  return error.status ?? (error instanceof SyntaxError ? 400 : 500);
}

const server = createServer(async (request, response) => {
  const [status, body] = await answer(request).then((found) => [200, found], (error) => [statusOf(error), { error: error.message }]);
  response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));
});

// What was stored without a number when the service ended gets its number now.
for (const order of books.all.filter((order) => !order.number)) {
  await number(order).catch((error) => {
    if (!REFUSED.some((kind) => error instanceof kind)) throw error;
    console.error(`the order ${order.key} gets no number: ${error.message}`); // For good. The others get theirs.
  });
}

server.listen(Number(process.env.PORT ?? 8080), "127.0.0.1", () => console.log("ready"));

process.once("SIGTERM", () => server.close(async () => {
  await ids.close();
  await books.close();
}));
