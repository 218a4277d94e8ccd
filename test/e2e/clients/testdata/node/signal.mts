import { Client } from "idnode";
const abort = new AbortController();
const signal: AbortSignal = abort.signal;
await new Client(["a:7402"]).hilo("a").next({ signal });
await new Client(["a:7402"]).next("a", { signal: abort.signal });
