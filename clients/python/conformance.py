"""Drives the client for test/e2e/clients: takes a task on each line, and answers with a line. ``asyncio`` has that of asyncio driven."""

import asyncio
import inspect
import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import idnode
import idnode.aio

loop = asyncio.new_event_loop() if sys.argv[1:] == ["asyncio"] else None


class Waiting:
    """The client of asyncio, or a handle of it, whose calls wait for their outcomes."""

    def __init__(self, awaited):
        self.awaited = awaited

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __getattr__(self, name):
        return lambda *args, **options: self.outcome(getattr(self.awaited, name)(*args, **options))

    def outcome(self, got):
        if inspect.isasyncgen(got):
            return self.outcome(self.listed(got))
        return loop.run_until_complete(got) if inspect.iscoroutine(got) else Waiting(got)

    async def listed(self, got):
        return [one async for one in got]


def main():
    for line in sys.stdin:
        task = json.loads(line)
        if "load" in task:
            loop.run_until_complete(load_asyncio(task)) if loop else load(task)
            return
        try:
            client = connect(task, Waiting, idnode.aio.Client) if loop else connect(task)
        except ValueError:
            say([{"error": {"type": "Refused"}}])
            continue
        with client:
            answer = outcomes(client, task["calls"])
        say(answer)  # After what closing the client asks of the server.


def connect(task, wrap=lambda client: client, kind=idnode.Client):
    options = task.get("options", {})
    tls = idnode.TLS(**task["tls"]) if "tls" in task else None
    return wrap(kind(
        task["endpoints"], tls=tls,
        cluster_id=options.get("clusterId", ""), timeout=options.get("timeoutMs", 10_000) / 1000, try_timeout=options.get("tryTimeoutMs", 3_000) / 1000,
    ))


def outcomes(client, calls):
    answer, failed = [], None
    for call in calls:
        try:
            answer.append({"values": [str(value) for value in make(client, call["call"], call["args"], failed)]})
        except (idnode.IdnodeError, TypeError) as error:
            failed = error
            name = type(error).__name__[: -len("Error")]
            answer.append({"values": list(getattr(error, "ids", ())), "cause": error.__cause__ is not None, "error": {"type": name, "reason": getattr(error, "reason", ""), "field": getattr(error, "field", "")}})
    return answer


def request_id(args, failed):
    if args.get("again"):
        return failed.request_id
    since = args.get("since")
    return idnode.RequestId(args["requestId"], int(since)) if since else args.get("requestId")


def make(client, name, args, failed):
    identity = client.identity(args.get("name", ""))
    n = args.get("n", 1)
    more = args.get("options", {})
    once = {"request_id": request_id(args, failed), **more}
    within = {"separator": args.get("separator", ""), **once}
    if name == "next":
        return client.next_n(args.get("template", ""), n, claim=args.get("claim", False), **within)
    if name == "identity.next":
        return [v for block in identity.next_n(n, **within) for v in range(block.first, block.last + 1)]
    if name == "identity.get":
        return [identity.get(**more)]
    if name == "identity.seed":
        expected = int(args["expected"]) if "expected" in args else None
        return [identity.seed(int(args["value"]), force=args.get("force", False), expected=expected, **once)]
    if name == "identity.delete":
        return [identity.delete(forget=args.get("forget", False), **once)]
    if name == "identities":
        return [f"{counter.name}={counter.value}" for counter in client.identities(args.get("prefix", ""), **more)]
    if name == "claim":
        client.claim(args["id"], **within)
        return []
    if name == "release":
        client.release(args["id"], **once)
        return []
    if name == "claims":
        return client.claims(args.get("prefix", ""), **more)
    if name.startswith("series."):
        return numbers(client.series(args["name"]), name, args)
    if name == "hilo":
        return client.hilo(args["tag"], separator=args.get("separator", ""), **more).next_ids(n)
    if name.startswith("snowflake."):
        return snowflakes(client.snowflake(args["name"]), name, args)
    if name == "collection":
        return [idnode.tag_of(args["name"])]
    raise ValueError(name)


def snowflakes(pool, name, args):
    if name == "snowflake.next":
        return pool.next_ids(args.get("n", 1))
    if name == "snowflake.parse":
        parts = pool.parse(int(args["id"]))
        return [f"{round(parts.time.timestamp() * 1000)} {parts.worker} {parts.sequence}"]
    pool.close()
    return []


def numbers(series, name, args):
    keys, more = args.get("key") or args["keys"], args.get("options", {})
    if name == "series.take":
        more = {**more, "expires_in": args.get("expiresInMs", 0) / 1000, "number": int(args.get("number", "0")), "because": args.get("because", "")}
        got = series.take(keys, values=args.get("values"), date=args.get("date", ""), label=args.get("label", ""), **more)
    elif name == "series.confirm":
        got = series.confirm(keys)
    elif name == "series.void":
        got = series.void(keys, args["reason"])
    elif name == "series.confirmTaken":
        got = series.confirm(series.take(keys))
    elif name == "series.release":
        got = series.release(keys)
    else:
        got = [series.find(keys[0], **more)]
    return [f"{n.key} {n.text} {n.number} {n.state} {n.note}".rstrip() for n in got]


def load(task):
    """Takes values of an identity and HiLo ids, or Snowflake ids of a pool, in many threads, until the input ends."""
    load = task["load"]
    ended = threading.Event()

    def maker(client, number):
        try:
            while not ended.wait(0.01):
                say({"client": number, "ids": [str(id) for id in client.snowflake(load["pool"]).next_ids(10)]})
        except idnode.IdnodeError as error:
            say({"error": repr(error)})

    def caller(client, number):
        handle = client.hilo(load["tag"])
        while not ended.is_set():
            try:
                begin = time.monotonic_ns()
                value = client.identity(load["name"]).next()
                end = time.monotonic_ns()
                say({"client": number, "call": begin, "return": end, "value": value, "id": handle.next_id()})
            except idnode.IdnodeError as error:
                say({"error": repr(error)})
                return

    with connect(task) as client, ThreadPoolExecutor(load["callers"]) as callers:
        for i in range(load["callers"]):
            callers.submit(maker if "pool" in load else caller, client, load["client"] + i)
        sys.stdin.read()
        ended.set()


async def load_asyncio(task):
    load = task["load"]
    ended = threading.Event()

    async def maker(client, number):
        try:
            while not ended.is_set():
                say({"client": number, "ids": [str(id) for id in await client.snowflake(load["pool"]).next_ids(10)]})
                await asyncio.sleep(0.01)
        except idnode.IdnodeError as error:
            say({"error": repr(error)})

    async def caller(client, number):
        handle = client.hilo(load["tag"])
        while not ended.is_set():
            try:
                begin = time.monotonic_ns()
                value = await client.identity(load["name"]).next()
                end = time.monotonic_ns()
                say({"client": number, "call": begin, "return": end, "value": value, "id": await handle.next_id()})
            except idnode.IdnodeError as error:
                say({"error": repr(error)})
                return

    async with connect(task, kind=idnode.aio.Client) as client:
        work = maker if "pool" in load else caller
        callers = [asyncio.ensure_future(work(client, load["client"] + i)) for i in range(load["callers"])]
        await loop.run_in_executor(None, sys.stdin.read)
        ended.set()
        await asyncio.gather(*callers)


_printing = threading.Lock()


def say(answer):
    with _printing:
        print(json.dumps(answer), flush=True)


main()
