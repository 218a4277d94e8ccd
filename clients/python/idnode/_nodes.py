"""The nodes of a cluster: how one is called, which of them leads, and how far the log is."""

from __future__ import annotations

import json
import logging
import re
import socket
import ssl
import threading
import time
from collections import deque
from contextlib import suppress
from typing import Any, Awaitable, Callable, Iterable, TypeVar

from ._errors import UNKNOWN, Failure, closed, failure_of
from ._http import Answer, Connection, Event, NotHTTP, Runtime

log = logging.getLogger("idnode")
T = TypeVar("T")

# All times are in seconds.
_CONNECT_TIMEOUT = 1.5
_IDLE_TIMEOUT = 60.0  # Shorter than the two minutes after which a node closes an idle connection.
_LOOK_AFTER = 5.0  # How old what is known of the leader may get.
_LOOK_SOON = 1.0  # The same while no leader is known.
_LOOK_AGAIN = 0.2  # The least time between two looks, however much fails.
_LOOK_TIMEOUT = 1.0
_SLOW = 0.3  # When a try without an answer asks whether its node is silent to all.
_SILENT = 0.2  # How long the node has to say that it is not.
_OTHERS = 0.3  # How long a client that does not know its cluster waits for the other endpoints after the first one's answer.
_GREET_TIMEOUT = 2.0  # Connect, TLS and an answer over a long way.
GREETED = 30.0  # Unused for longer, an address may have become another's.
_DISTRUST = 2.0  # How long a node that failed is asked only if no other is left.

_ENDPOINT = re.compile(r"(?:(https?)://)?(\[[^][\s/@]+\]|[^][\s/?#@:]+):([0-9]{1,5})/?")
# The alerts by which a node refuses a certificate, or the rest of a handshake. With TLS 1.3 the client learns of them only after
# it has sent its request.
_REFUSES_TLS = re.compile("_ALERT_(.*CERTIFICATE|UNKNOWN_CA|ACCESS_DENIED|DECRYPT_ERROR|HANDSHAKE_FAILURE)")


async def _not_silent() -> bool:
    return False


class Node:
    """One address, and the connections to it."""

    def __init__(self, runtime: Runtime, address: str, tls: ssl.SSLContext | None, agent: str) -> None:
        found = _ENDPOINT.fullmatch(address.strip()) if isinstance(address, str) else None
        if not found or not 0 < int(found[3]) < 1 << 16:
            raise ValueError(f"an endpoint is host:port, or a URL of that, not {address!r}")
        if tls and found[1] == "http":
            raise ValueError(f"the endpoint {address!r} has no TLS")
        self._runtime = runtime
        self._host, self._port = found[2].strip("[]"), int(found[3])
        self.address = f"{found[2]}:{self._port}"
        self.suspect_until = 0.0
        # Until when it counts as a node of the client's cluster: it answered, and no connection broke since.
        self.greeted_until = 0.0
        self._tls = tls or (ssl.create_default_context() if found[1] == "https" else None)
        self._head = f"Host: {self.address}\r\nUser-Agent: {agent}\r\nContent-Type: application/json\r\n"
        self._idle: deque[tuple[Connection, float]] = deque()  # The newest last.
        self._calls = 0  # Those that have entered. Threads, which have no bound, do not count exactly.
        self._waiting: deque[Event] = deque()  # Those that are to enter.
        self._breaks = 0  # How often connections broke.
        self.closed = False

    def suspected(self) -> bool:
        return time.monotonic() < self.suspect_until

    def greeted(self) -> bool:
        return time.monotonic() < self.greeted_until

    async def enter(self, deadline: float) -> None:
        """Waits while the node has the most calls. Raises a Failure that did nothing if a connection to it breaks meanwhile."""
        breaks, turn = self._breaks, None
        while self._calls >= self._runtime.most_calls:
            again, turn = turn, self._runtime.event()
            (self._waiting.appendleft if again else self._waiting.append)(turn)
            try:
                if not await turn.wait(deadline - time.monotonic()) or self._breaks != breaks:
                    raise Failure(f"{self.address} is busy with other calls", "unavailable", "NO_ENDPOINT")
            except BaseException:
                self._wake() if turn.is_set() else self._waiting.remove(turn)  # It is another one's turn.
                raise
        self._calls += 1

    def leave(self) -> None:
        self._calls -= 1
        self._wake()

    def _wake(self) -> None:
        if self._waiting:
            self._waiting.popleft().set()

    async def call(
        self, method: str, request: dict[str, Any], timeout: float, read: Callable[[dict[str, Any]], T],
        silent: Callable[[], Awaitable[bool]] = _not_silent, traceparent: str = "", cluster: str = "",
    ) -> tuple[T, str]:
        """Makes one try for a cluster, and returns the one that the answer names.

        It is over early if the node is silent. What cannot be read is not an answer of a node, nor is one that does not name the
        call's cluster. Raises Failure.
        """
        began = time.monotonic()
        end = began + timeout
        sent = json.dumps(request, ensure_ascii=False).encode("utf-8", "surrogatepass")  # The server refuses half a character.
        connection, fresh = await self._connection(timeout)
        kept = False
        try:
            left = max(end - time.monotonic(), 0.001)
            trace = f"traceparent: {traceparent}\r\n" if traceparent else ""
            named = f"Idnode-Cluster-Id: {cluster}\r\n" if cluster else ""
            head = (
                f"POST /idnode.v1.{method} HTTP/1.1\r\n{self._head}{trace}{named}"
                f"Content-Length: {len(sent)}\r\nConnect-Timeout-Ms: {max(int(left * 1000), 1)}\r\n\r\n"
            )
            # In one piece: a reset in between would hide what a server has said that speaks no HTTP.
            await connection.send(head.encode() + sent, left)
            answer = await _answer(connection, end, silent)
            kept = answer.reusable
        except (OSError, NotHTTP) as error:
            self.greeted_until = 0.0
            self.drop()  # The other connections are likely to be broken too.
            refused = fresh and isinstance(error, ssl.SSLError) and _REFUSES_TLS.search(error.reason or "")
            reason = "NO_ENDPOINT" if refused else ""
            raise Failure(f"{self.address}: {error or type(error).__name__}", "unavailable", reason, isinstance(error, NotHTTP)) from error
        finally:
            if kept:
                self._idle.append((connection, time.monotonic()))
                with suppress(IndexError):  # Another thread took the last one.
                    while time.monotonic() - self._idle[0][1] > _IDLE_TIMEOUT:
                        self._idle.popleft()[0].close()
                if self.closed:
                    self.drop()
            else:
                connection.close()
        took = time.monotonic() - began
        if took > _SLOW:
            log.info("%s answered %s late, after %.3f s", self.address, method, took)
        if answer.status != 200:
            failure = failure_of(answer.status, answer.body)
            if failure.reason == "OTHER_CLUSTER":
                self.greeted_until = 0.0
            raise failure
        if cluster and answer.cluster != cluster:
            self.greeted_until = 0.0
            if answer.cluster:
                raise self.other(answer.cluster, cluster)
            raise Failure(f"{self.address}: the answer names no cluster", "internal", foreign=True)
        try:
            return read(json.loads(answer.body)), answer.cluster
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise Failure(f"{self.address}: this is not an answer of a node", "internal", foreign=True) from error

    def other(self, cluster: str, own: str) -> Failure:
        text = f"the node at {self.address} belongs to cluster {cluster or '(it names none)'}, and this client to cluster {own}"
        return Failure(text, "failed_precondition", "OTHER_CLUSTER", True)

    async def _connection(self, timeout: float) -> tuple[Connection, bool]:
        """A connection, and whether it is a new one."""
        with suppress(IndexError):  # There is none, or another thread took the last one.
            while True:
                connection, since = self._idle.pop()
                if time.monotonic() - since < _IDLE_TIMEOUT and connection.quiet():
                    return connection, False
                connection.close()
        try:
            return await self._runtime.connect(self._host, self._port, self._tls, min(timeout, _CONNECT_TIMEOUT)), True
        except (OSError, ValueError) as error:  # UnicodeError of a name is a ValueError.
            self.greeted_until = 0.0
            # What is no TLS at all, unlike a certificate that is refused or a connection that broke.
            noise = type(error) is ssl.SSLError and "_ALERT_" not in (error.reason or "")
            # Nothing was sent, so nothing happened.
            raise Failure(f"cannot reach {self.address}: {error}", "unavailable", "NO_ENDPOINT", noise) from error

    def drop(self) -> None:
        self._breaks += 1
        while self._waiting:
            self._wake()
        with suppress(IndexError):
            while True:
                self._idle.pop()[0].close()

    def close(self) -> None:
        self.closed = True
        self.drop()


async def _answer(connection: Connection, end: float, silent: Callable[[], Awaitable[bool]]) -> Answer:
    answer = Answer()
    while True:
        left = end - time.monotonic()
        if left <= 0:
            raise socket.timeout("no answer in time")
        try:
            if answer.take(await connection.receive(left if answer.begun else min(left, _SLOW))):
                return answer
        except socket.timeout:
            if answer.begun or left <= _SLOW or await silent():
                raise


class Look:
    """One look for the leader, at all endpoints side by side."""

    def __init__(self, nodes: list[Node], event: Callable[[], Event]) -> None:
        self.left = len(nodes)
        self.began = time.monotonic()
        self.answered = {node: event() for node in nodes}
        self.first = event()  # A node has answered.
        self.leader: Node | None = None
        self.heard, self.done = event(), event()  # A node has told its index; the leader, or every node.
        self.all = event()  # Every node has.

    def mute(self, node: Node) -> bool:
        """Whether the node had its time to answer, and only others did."""
        return self.first.is_set() and not self.answered[node].is_set() and time.monotonic() - self.began >= _SILENT

    def answers(self, node: Node) -> None:
        self.answered[node].set()
        self.first.set()


class Router:
    """Knows the nodes, which of them leads, and how far the cluster's log is."""

    def __init__(self, runtime: Runtime, addresses: Iterable[str], tls: ssl.SSLContext | None, agent: str, cluster_id: str) -> None:
        self._runtime = runtime
        self._given = [Node(runtime, address, tls, agent) for address in addresses]
        self._lock = threading.Lock()
        self._leader: Node | None = None
        self._home = 0  # The endpoint for calls that need no leader.
        self.newest = 0  # The newest log index of any answer.
        self._newest_at = 0.0
        self._cluster = cluster_id  # Once known it stays: ranges are of that cluster.
        self._sure = bool(cluster_id)  # The program has told it, or two endpoints, or the only one.
        self._mixed = False  # The endpoints told two clusters.
        self._told: dict[str, str] = {}  # The cluster that each endpoint told last.
        self._newest_look: Look | None = None
        self.closed = False
        self.size = len(self._given)
        self._places = len({node.address for node in self._given})

    def saw(self, index: int, applied: bool = False) -> None:
        """Notes a log index. What a node has applied is as new as the answer."""
        with self._lock:
            if index > self.newest or (applied and index == self.newest):
                self.newest, self._newest_at = index, time.monotonic()

    async def prepare(self, deadline: float, to_leader: bool, counted: bool) -> None:
        """Before a call looks for what is not known, or too old: the cluster, the leader, or the newest log index.

        The first call waits for all endpoints: they may be of two clusters.
        """
        if not self._cluster:
            await self.latest(deadline, _LOOK_AGAIN, lambda look: look.heard)
            now = time.monotonic()
            await self.latest(now + min((deadline - now) / 2, _OTHERS), _LOOK_TIMEOUT, lambda look: look.all)
        if to_leader and not self.newest:
            await self.latest(deadline, _LOOK_AGAIN, lambda look: look.done)
        elif counted and time.monotonic() - self._newest_at > _LOOK_AFTER:
            await self.latest(deadline, _LOOK_AGAIN, lambda look: look.heard)

    async def latest(self, deadline: float, age: float, until: Callable[[Look], Event]) -> int:
        """The newest log index after a look, unless one is younger than age."""
        with self._lock:
            look = self._look(age)
        if look:
            await until(look).wait(min(_LOOK_TIMEOUT, max(deadline - time.monotonic(), 0)))
        return self.newest

    def own(self) -> str:
        """The client's cluster, which each call names; empty before any endpoint has told one. Raises a Failure while they tell two."""
        with self._lock:
            if not self._sure and self._told:
                told = {cluster: address for address, cluster in self._told.items()}
                if len({*told, self._cluster or next(iter(told))}) > 1:
                    self._mixed = True
                    self._look(_LOOK_AGAIN)
                    places = ", ".join(f"{cluster} at {address}" for cluster, address in sorted(told.items()))
                    text = f"the endpoints are not of one cluster: {places}; take the others out of the list, or set cluster_id"
                    raise Failure(text, "failed_precondition", "OTHER_CLUSTER", True)
                if self._mixed:
                    self.newest, self._mixed = 0, False  # It may be another log's.
                self._cluster, self._sure = next(iter(told)), len(self._told) >= min(2, self._places)
                if not self._sure:
                    self._look(_LOOK_SOON)
            return self._cluster

    async def silent(self, node: Node, began: float) -> bool:
        """Whether a node says nothing at all while another one does. A call that waits for it since began goes elsewhere then.

        To send the call elsewhere unasked, as a hedge ("The Tail at Scale", Dean and Barroso 2013), would double the load of a
        cluster that is only slow. The question writes nothing, and all calls share it. A node that writes slowly answers it, so
        a call is sent again for a node that stands still, and for no other reason. While no node answers, nothing is known.
        """
        with self._lock:
            last = self._newest_look
            if last and last.began >= began and last.leader and last.leader is not node and last.mute(node):
                return True
            look = self._look(_LOOK_AGAIN)
        if not look or await look.answered[node].wait(max(look.began + _SILENT - time.monotonic(), 0)):
            return False
        await look.first.wait(max(look.began + _LOOK_TIMEOUT - time.monotonic(), 0))
        return look.mute(node)

    def route(self, to_leader: bool, last: Node | None) -> Node:
        """The node for the next try: not that of the try before if there is another."""
        with self._lock:
            if self.closed:
                raise closed("client")
            if to_leader:
                self._look(_LOOK_AFTER if self._leader else _LOOK_SOON)
                if self._leader and self._leader is not last and not self._leader.suspected():
                    return self._leader
            start = self._given.index(last) + 1 if last in self._given else self._home
            order = [self._given[(start + i) % self.size] for i in range(self.size)]
            return next((n for n in order if n is not last and not n.suspected()), order[0])

    def failed(self, node: Node) -> None:
        node.suspect_until = time.monotonic() + _DISTRUST
        with self._lock:
            if self._leader is node:
                self._leader = None
            if self._given[self._home] is node:
                self._home = (self._home + 1) % self.size
            self._look(_LOOK_AGAIN)

    def _look(self, age: float) -> Look | None:
        """Looks for the leader, unless a look is in progress or younger than age, and returns the newest look. The caller holds the lock."""
        last = self._newest_look
        if self.closed or last and (not last.done.is_set() or time.monotonic() - last.began < age):
            return last
        look = Look(self._given, self._runtime.event)
        try:
            for node in self._given:
                self._runtime.spawn(self._ask(look, node), "idnode-look")
        except RuntimeError:  # No thread can be started. Another call looks again.
            return last
        self._newest_look = look  # What was started needs the lock to end the look.
        return look

    async def _ask(self, look: Look, node: Node) -> None:
        """Asks one endpoint. The first that says of itself that it leads does; nodes hand calls on to one that is no endpoint."""
        leads = False
        try:
            leads = await self.greet(node, _LOOK_TIMEOUT)
            log.debug("%s %s", node.address, "leads" if leads else "does not lead")
            look.heard.set()
            look.answers(node)
        except Failure as failure:
            log.debug("%s does not say who leads: %s", node.address, failure.message)
            if failure.reason != "NO_ENDPOINT" and not failure.foreign:  # A refusal, as of a node that is overloaded, is an answer.
                look.answers(node)
        finally:
            with self._lock:
                look.left -= 1
                if not look.left:
                    look.all.set()
                if (leads or not look.left) and not look.done.is_set():
                    look.leader = node if leads else None
                    self._leader = node if leads else None
                    node.suspect_until = 0.0 if leads else node.suspect_until
                    look.heard.set()
                    look.done.set()

    async def greet(self, node: Node, timeout: float, silent: Callable[[], Awaitable[bool]] = _not_silent) -> bool:
        """Asks a node whether it leads, and is of the client's cluster. Raises a Failure that did nothing."""
        try:
            (id, index, leads, members), cluster = await node.call(
                "ClusterService/GetStatus", {}, min(timeout, _GREET_TIMEOUT), _status, silent)
        except Failure as failure:
            if not failure.reason or failure.effect() == UNKNOWN:
                failure.code, failure.reason = "unavailable", "NO_ENDPOINT"
            if failure.foreign:
                failure.message = f"{node.address} does not speak idnode's HTTP API: is it the address of --http (7402)? {failure.message}"
            raise
        if not id:  # It may get any.
            raise Failure(f"{node.address} has no cluster yet", "failed_precondition", "NOT_FORMED")
        with self._lock:
            news = self._told.get(node.address) != cluster
            if cluster:
                self._told[node.address] = cluster
            own = self._cluster or id
        if news and members == 1 and self._places > 1:
            log.warning("%s is one of several endpoints, and a cluster of one node (%s)", node.address, cluster)
        if cluster != own:
            node.greeted_until = 0.0
            stranger = node.other(cluster, own)
            if news:
                log.warning("%s", stranger.message)
            raise stranger
        node.greeted_until = time.monotonic() + GREETED
        self.saw(index, applied=True)
        return leads

    def close(self) -> None:
        with self._lock:
            self.closed = True
        for node in self._given:
            node.close()


def _status(s: dict[str, Any]) -> tuple[str, int, bool, int]:
    """The cluster of a node, its log index, whether it leads, and how many members there are."""
    leads = bool(s["hasQuorum"] and s["leaderTag"]) and s["leaderTag"] == s["self"]["tag"]
    return s["clusterId"], int(s["appliedIndex"]), leads, len(s.get("members") or ())
