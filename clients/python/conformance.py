"""Drives the client for test/e2e/clients: takes a task on each line, and answers with a line."""

import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import idnode


def main():
    for line in sys.stdin:
        task = json.loads(line)
        if "load" in task:
            load(task)
            return
        with connect(task) as client:
            answer = [outcome(client, call) for call in task["calls"]]
        say(answer)  # After what closing the client asks of the server.


def connect(task):
    options = task.get("options", {})
    tls = None
    if "tls" in task:
        import ssl

        tls = ssl.create_default_context(cafile=task["tls"]["ca"])
        tls.load_cert_chain(task["tls"]["cert"], task["tls"]["key"])
    return idnode.Client(
        task["endpoints"], tls=tls,
        timeout=options.get("timeoutMs", 10_000) / 1000, try_timeout=options.get("tryTimeoutMs", 3_000) / 1000,
    )


def outcome(client, call):
    try:
        return {"values": [str(value) for value in make(client, call["call"], call["args"])]}
    except idnode.IdnodeError as error:
        name = type(error).__name__[: -len("Error")]
        return {"error": {"type": name, "reason": error.reason, "field": error.field}}


def make(client, name, args):
    identity = client.identity(args.get("name", ""))
    n = args.get("n", 1)
    once = {"request_id": args.get("requestId", "")}
    within = {"separator": args.get("separator", ""), **once}
    if name == "next":
        return client.next_n(args.get("template", ""), n, claim=args.get("claim", False), **within)
    if name == "identity.next":
        return [v for block in identity.next_n(n, **within) for v in range(block.first, block.last + 1)]
    if name == "identity.get":
        return [identity.get()]
    if name == "identity.seed":
        expected = int(args["expected"]) if "expected" in args else None
        return [identity.seed(int(args["value"]), force=args.get("force", False), expected=expected, **once)]
    if name == "identity.delete":
        return [identity.delete(forget=args.get("forget", False), **once)]
    if name == "identities":
        return [f"{counter.name}={counter.value}" for counter in client.identities(args.get("prefix", ""))]
    if name == "claim":
        client.claim(args["id"], **within)
        return []
    if name == "release":
        client.release(args["id"], **once)
        return []
    if name == "claims":
        return client.claims(args.get("prefix", ""))
    if name.startswith("series."):
        return numbers(client.series(args["name"]), name, args)
    if name == "hilo":
        return client.hilo(args["tag"], separator=args.get("separator", "")).next_ids(n)
    if name == "collection":
        return [idnode.collection_of(args["name"])]
    raise ValueError(name)


def numbers(series, name, args):
    if name == "series.take":
        got = series.take(args["keys"], values=args.get("values"), date=args.get("date", ""), label=args.get("label", ""))
    elif name == "series.confirm":
        got = series.confirm(args["keys"])
    elif name == "series.void":
        got = series.void(args["keys"], args["reason"])
    elif name == "series.confirmTaken":
        got = series.confirm(series.take(args["keys"]))
    elif name == "series.release":
        got = series.release(args["keys"])
    else:
        got = [series.find(args["keys"][0])]
    return [f"{n.key} {n.text} {n.number} {n.state}" for n in got]


def load(task):
    """Takes values of an identity and HiLo ids in many threads, until the input ends."""
    load = task["load"]
    ended = threading.Event()

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
            callers.submit(caller, client, load["client"] + i)
        sys.stdin.read()
        ended.set()


_printing = threading.Lock()


def say(answer):
    with _printing:
        print(json.dumps(answer), flush=True)


main()
