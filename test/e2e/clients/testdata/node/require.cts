import { Client, IdnodeError } from "idnode";
import idnode = require("idnode");
const ids: idnode.Client = new Client(["a:7402"]);
async function main() { const n: bigint = await ids.identity("a").next(); void n; const b = await ids.identity("a").nextN(5); void b[0].first; }
main().catch((error: unknown) => { if (error instanceof idnode.IdnodeError && error instanceof IdnodeError) void error.code; });
