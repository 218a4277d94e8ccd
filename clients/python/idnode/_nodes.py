"""The nodes of a cluster: how one is called, which of them leads, and how far the log is."""

from __future__ import annotations

import functools
import json
import logging
import re
import socket
import ssl
import time
from collections import deque
from contextlib import suppress
from typing import Any, Callable, Iterable, NamedTuple, Optional, TypeVar, cast

from ._config import TLS
from ._errors import UNKNOWN, Failure, closed, failure_of
from ._events import Event as Told
from ._events import Observe
from ._http import Answer, Connection, Event, NotHTTP, Runtime
from ._locks import Lock, Within

log = logging.getLogger("idnode")
T = TypeVar("T")

# All times are in seconds.
_CONNECT_TIMEOUT = 1.5
_IDLE_TIMEOUT = 60.0  # Shorter than the two minutes after which a node closes an idle connection.
_INDEX_AFTER = 5.0  # How old the newest log index may get that a request id names.
_LOOK_AFTER = 30.0  # How old what is known of the members may get. Each answer names the leader.
_LOOK_SOON = 1.0  # The same while no leader is known.
_LOOK_AGAIN = 0.2  # The least time between two looks, however much fails.
_LOOK_TIMEOUT = 1.0
_SLOW = 0.3  # When a try without an answer asks whether its node is silent to all.
_GLANCE = 0.02  # From one look at an open verdict to the next. The answer may come meanwhile.
_SILENT = 0.2  # How long the node has to say that it is not.
_OTHERS = 0.3  # How long a client that does not know its cluster waits for the other endpoints after the first one's answer.
_GREET_TIMEOUT = 2.0  # Connect, TLS and an answer over a long way.
GREETED = 30.0  # Unused for longer, an address may have become another's.
_PROBE = 1.0  # How often a call is let through that would fail at once.
_MOST_LEARNT = 16
_VOTERS = ("ROLE_LEADER", "ROLE_FOLLOWER")
_DISTRUST = 2.0  # How long a node that failed is asked only if no other is left.

_ENDPOINT = re.compile(r"(?:(https?)://)?(\[[^][\s/@]+\]|[^][\s/?#@:]+):([0-9]{1,5})/?")
# The alerts by which a node refuses a certificate, or the rest of a handshake. With TLS 1.3 the client learns of them only after
# it has sent its request.
_REFUSES_TLS = re.compile("_ALERT_(.*CERTIFICATE|UNKNOWN_CA|ACCESS_DENIED|DECRYPT_ERROR|HANDSHAKE_FAILURE)")


#: Whether a node is silent; None while that is undecided.
Verdict = Callable[[], Optional[bool]]


def _not_silent() -> Verdict:
    return lambda: False


class _Turn:
    """A caller that waits for a place at a node."""

    def __init__(self, event: Event) -> None:
        self.event, self.given, self.since = event, False, time.monotonic()


class How(NamedTuple):
    """How a client calls its nodes."""

    runtime: Runtime
    tls: ssl.SSLContext | TLS | None
    agent: str
    most: int  #: Calls to one node at a time. A node takes 1,024 connections from an address, and drops those beyond.
    heard: Callable[[Answer], None]  #: Is told of the answers of the client's cluster.


class Node:
    """One address, and the connections to it."""

    def __init__(self, how: How, address: str) -> None:
        found = _ENDPOINT.fullmatch(address.strip()) if isinstance(address, str) else None
        if not found or not 0 < int(found[3]) < 1 << 16:
            raise ValueError(f"an endpoint is host:port, or a URL of that, not {address!r}")
        if how.tls and found[1] == "http":
            raise ValueError(f"the endpoint {address!r} has no TLS")
        self._how = how
        self._host, self._port = found[2].strip("[]"), int(found[3])
        self.address = f"{found[2]}:{self._port}"
        self.member: str | None = None  # Its HTTP address as members know it, once it told the client's cluster.
        self.suspect_until = 0.0
        # Until when it counts as a node of the client's cluster: it answered, and no connection broke since.
        self.greeted_until = 0.0
        self.scheme = "https" if how.tls or found[1] == "https" else "http"
        self._tls = how.tls or (ssl.create_default_context() if found[1] == "https" else None)
        self._head = f"Host: {self.address}\r\nUser-Agent: {how.agent}\r\nContent-Type: application/json\r\n"
        self._idle: deque[tuple[Connection, float]] = deque()  # The newest last.
        self._lock = Lock()
        self._calls = self._led = 0  # Those that have entered, and those of them that need the leader.
        self._waiting: dict[bool, deque[_Turn]] = {True: deque(), False: deque()}  # Those that are to enter, by whether they need it.
        self.closed = False

    def suspected(self) -> bool:
        return time.monotonic() < self.suspect_until

    def greeted(self) -> bool:
        return time.monotonic() < self.greeted_until

    async def enter(self, deadline: float, to_leader: bool) -> None:
        """Waits while the node has the most calls. Raises a Failure that did nothing if a connection to it breaks meanwhile.

        A quarter of the places is kept for calls that need no leader: a node holds others while it has none.
        """
        with self._lock:
            if self._free(to_leader):
                self._take(to_leader)
                return
            turn = _Turn(self._how.runtime.event())
            self._waiting[to_leader].append(turn)
        try:
            set = await turn.event.wait(deadline - time.monotonic())
        except BaseException:
            if self._withdraw(turn, to_leader):
                self.leave(to_leader)
            raise
        if not self._withdraw(turn, to_leader):
            busy = f"{self.address} is busy with other calls"
            raise Failure(busy, "unavailable", "NO_ENDPOINT") if set else Failure(busy, "resource_exhausted", "OVERLOADED")

    def _free(self, to_leader: bool) -> bool:
        """Whether there is a place. The caller holds the lock."""
        most = self._how.most
        return self._calls < most and not (to_leader and self._led >= most - most // 4)

    def _take(self, to_leader: bool) -> None:
        """Takes a place. The caller holds the lock."""
        self._calls += 1
        self._led += to_leader

    def _withdraw(self, turn: _Turn, to_leader: bool) -> bool:
        """Waits no longer. Says whether the place was given."""
        with self._lock:
            with suppress(ValueError):
                self._waiting[to_leader].remove(turn)
            return turn.given

    def leave(self, to_leader: bool) -> None:
        with self._lock:
            self._calls -= 1
            self._led -= to_leader
            if not any(self._waiting.values()):
                return
            free = [kind for kind, waiting in self._waiting.items() if waiting and self._free(kind)]
            if free:
                kind = min(free, key=lambda kind: self._waiting[kind][0].since)
                self._take(kind)
                turn = self._waiting[kind].popleft()
                turn.given = True
                turn.event.set()

    async def call(
        self, method: str, request: dict[str, Any], timeout: float, read: Callable[[dict[str, Any]], T],
        silent: Callable[[], Verdict] = _not_silent, traceparent: str = "", cluster: str = "",
    ) -> tuple[T, Answer]:
        """Makes one try for a cluster, and returns what was read, and the answer.

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
            failure = Failure(f"{self.address}: {error or type(error).__name__}", "unavailable", reason, isinstance(error, NotHTTP))
            failure.late = isinstance(error, socket.timeout)
            raise failure from error
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
        if cluster and answer.cluster == cluster:
            self._how.heard(answer)
        if answer.status != 200:
            failure = failure_of(answer.status, answer.body)
            if failure.reason == "OTHER_CLUSTER":
                self.greeted_until = 0.0
            if failure.reason == "CERTIFICATE_ENDED":
                self._close_idle()  # The others show the same certificate.
            raise failure
        if cluster and answer.cluster != cluster:
            self.greeted_until = 0.0
            if answer.cluster:
                raise self.other(answer.cluster, cluster)
            raise Failure(f"{self.address}: the answer names no cluster", "internal", foreign=True)
        try:
            return read(json.loads(answer.body)), answer
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
            files = self._tls if isinstance(self._tls, TLS) else None
            tls, name = files._fresh() if files else cast("ssl.SSLContext | None", self._tls), files and files._server_name or self._host
            return await self._how.runtime.connect(self._host, self._port, tls, name, min(timeout, _CONNECT_TIMEOUT)), True
        except (OSError, ValueError) as error:  # UnicodeError of a name is a ValueError.
            self.greeted_until = 0.0
            # What is no TLS at all, unlike a certificate that is refused or a connection that broke.
            noise = type(error) is ssl.SSLError and "_ALERT_" not in (error.reason or "")
            # Nothing was sent, so nothing happened.
            late = isinstance(error, socket.timeout)
            raise Failure(f"cannot reach {self.address}: {error}", "unavailable", "NO_ENDPOINT", noise, late) from error

    def drop(self) -> None:
        with self._lock:
            for waiting in self._waiting.values():
                while waiting:
                    waiting.popleft().event.set()
        self._close_idle()

    def _close_idle(self) -> None:
        with suppress(IndexError):
            while True:
                self._idle.pop()[0].close()

    def close(self) -> None:
        self.closed = True
        self.drop()


async def _answer(connection: Connection, end: float, silent: Callable[[], Verdict]) -> Answer:
    answer, wait = Answer(), _SLOW
    verdict: Verdict | None = None
    while True:
        left = end - time.monotonic()
        if left <= 0:
            raise socket.timeout("no answer in time")
        try:
            if answer.take(await connection.receive(left if answer.begun else min(left, wait))):
                return answer
        except socket.timeout:
            if answer.begun or left <= wait:
                raise
            verdict = verdict or silent()
            is_silent = verdict()
            if is_silent:
                raise
            wait = _GLANCE
            if is_silent is not None:
                verdict, wait = None, _SLOW


def _is_address(text: str) -> bool:
    """Whether a member's address is written as Node writes it. Another one would be new in each look."""
    found = _ENDPOINT.fullmatch(text)
    return found is not None and 0 < int(found[3]) < 1 << 16 and text == f"{found[2]}:{int(found[3])}"


class Look:
    """One look for the leader, at all endpoints side by side."""

    def __init__(self, nodes: list[Node], event: Callable[[], Event]) -> None:
        self.left = len(nodes)
        self.began = time.monotonic()
        self.answered = dict.fromkeys(nodes, False)
        self.leader: Node | None = None
        self.heard, self.done = event(), event()  # A node has told its index; the leader, or every node.
        self.all = event()  # Every node has.

    def silent(self, node: Node) -> bool | None:
        """Whether the node had its time to answer, and only others did; None while that is undecided."""
        if self.answered.get(node, True):  # A look that did not ask it knows nothing.
            return False
        age = time.monotonic() - self.began
        if age >= _SILENT and any(self.answered.values()):
            return True
        return None if age < _LOOK_TIMEOUT else False


class Router:
    """Knows the nodes, which of them leads, and how far the cluster's log is."""

    def __init__(
        self, runtime: Runtime, addresses: Iterable[str], tls: ssl.SSLContext | TLS | None, agent: str, cluster_id: str, most: int,
        tell: Observe,
    ) -> None:
        self._runtime, self._tell = runtime, tell
        self._how = How(runtime, tls, agent, most, self._answer)
        self._lock = Lock()
        self._leader: Node | None = None
        self._leader_address = ""  # As the members know it, in the greatest term seen.
        self._term = -1
        self._members_at = 0  # The log index of the newest list of members.
        self.newest = 0  # The newest log index of any answer.
        self._newest_at = 0.0
        self._cluster = cluster_id  # Once known it stays: ranges are of that cluster.
        self._sure = bool(cluster_id)  # The program has told it, or two endpoints, or the only one.
        self._mixed = False  # The endpoints told two clusters.
        self._told: dict[str, str] = {}  # The cluster that each endpoint told last.
        self._newest_look: Look | None = None
        self._answered_at = float("-inf")
        self._failing_since: float | None = None  # No node answers, as the tries have found that ended until then.
        self._failing_until = 0.0
        self._probed_at = 0.0
        self.closed = False
        self._home: Node | None = None  # The one for calls that need no leader.
        self._given: list[Node] = []
        self._learnt: list[Node] = []  # Those that the cluster names beside them.
        self.set_endpoints(addresses)

    def __repr__(self) -> str:
        learnt = ", ".join(node.address for node in self._learnt)
        leader = self._leader.address if self._leader else "none known"
        given = ", ".join(node.address for node in self._given)
        return f"{given}{learnt and ', learnt ' + learnt}; leader {leader}; {'closed' if self.closed else 'open'}"

    def set_endpoints(self, addresses: Iterable[str]) -> None:
        made = {node.address: node for node in (Node(self._how, address) for address in addresses)}
        with self._lock:
            known = {node.address: node for node in [*self._learnt, *self._given]}
            before, self._given = self._given, [known.get(address, node) for address, node in made.items()]
            self._learnt = [node for node in self._learnt if node not in self._given]
            gone = [node for node in before if node not in self._given]
            for node in gone:
                self._told.pop(node.address, None)
            self._places = len(self._given)
            self._arrange()
            if before:
                self._look(0)
        for node in gone:
            node.close()

    def _arrange(self) -> None:
        """The nodes that get calls: one that was learnt only once it has told the client's cluster. The caller holds the lock."""
        self._nodes = [*self._given, *(node for node in self._learnt if node.member is not None)]
        self.size = len(self._nodes)
        if self._home not in self._nodes:
            self._home = self._nodes[0]
        self._leader = self._at(self._leader_address)

    def _at_home(self) -> int:
        return next(i for i, node in enumerate(self._nodes) if node is self._home)

    def _at(self, address: str) -> Node | None:
        return next((node for node in self._nodes if address and address in (node.address, node.member)), None)

    def _answer(self, answer: Answer) -> None:
        """Notes whom an answer of the client's cluster names as the leader. A term has one leader, and an older one has none."""
        self._answered_at, self._failing_since = time.monotonic(), None
        if answer.leader and answer.term > self._term:
            self._leads(answer.term, answer.leader)

    def _leads(self, term: int, address: str) -> None:
        with self._lock:
            if term < self._term:
                return
            before, self._term, self._leader_address = self._leader, term, address
            leader = self._leader = self._at(address)
            if leader:
                leader.suspect_until = 0.0
        self._tell_leader(before)

    def _tell_leader(self, before: Node | None) -> None:
        """Says where calls go now, without the lock."""
        leader = self._leader
        if leader and leader is not before:
            log.info("%s leads", leader.address)
            self._tell(Told("leader", leader.address))

    def _learn(self, members: list[dict[str, Any]], index: int, teller: Node) -> None:
        """Learns the addresses that a node names, and forgets those that it does not. The endpoints stay."""
        with self._lock:
            if self.closed or index < self._members_at:
                return
            self._members_at = index
            given = {address for node in self._given for address in (node.address, node.member)}
            named = [m.get("httpAddress") or "" for m in members if m.get("role") in _VOTERS]
            addresses = [address for address in dict.fromkeys(named) if _is_address(address) and address not in given][:_MOST_LEARNT]
            gone = [node for node in self._learnt if node.address not in addresses]
            known = {node.address for node in self._learnt}
            found = [Node(self._how, f"{teller.scheme}://{address}") for address in addresses if address not in known]
            if gone or found:
                self._learnt = [node for node in self._learnt if node not in gone] + found
                self._arrange()
        for node in gone:
            node.close()
        with suppress(RuntimeError):  # No thread can be started. The next look asks.
            for node in found:
                self._runtime.spawn(self._meet(node), "idnode-look")

    async def _meet(self, node: Node) -> None:
        with suppress(Failure):
            await self.greet(node, _LOOK_TIMEOUT)

    def heard(self, began: float) -> bool:
        """Whether a node has answered since a call began, or not long before."""
        return self._answered_at > began - GREETED

    def unanswered(self, began: float) -> None:
        """Notes that a try has ended without an answer. A time in which nobody asked is no outage."""
        with self._lock:
            if self._failing_since is None or began - self._failing_until > 2 * _PROBE:
                self._failing_since = max(began, self._answered_at)
            self._failing_until = time.monotonic()

    def check_failing(self, most: float) -> None:
        """Raises a Failure if no node has answered for longer. One call a second is let through."""
        with self._lock:
            now = time.monotonic()
            if self._failing_since is None or self._failing_until - self._failing_since <= most:
                return
            if now - self._probed_at >= _PROBE:
                self._probed_at = now
                return
            text = f"no node has answered for {now - self._failing_since:.1f} s (fail_fast_after={most:g})"
        raise Failure(text, "unavailable", "NO_ENDPOINT")

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
        elif counted and time.monotonic() - self._newest_at > _INDEX_AFTER:
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
        if self._sure:
            return self._cluster
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
                    self._term, self._members_at = -1, 0
                self._cluster, self._sure = next(iter(told)), len(self._told) >= min(2, self._places)
                if not self._sure:
                    self._look(_LOOK_SOON)
            return self._cluster

    def silent(self, node: Node, began: float) -> Verdict:
        """Whether a node says nothing at all while another one does. A call that waits for it since began goes elsewhere then.

        To send the call elsewhere unasked, as a hedge ("The Tail at Scale", Dean and Barroso 2013), would double the load of a
        cluster that is only slow. The question writes nothing, and all calls share it. A node that writes slowly answers it, so
        a call is sent again for a node that stands still, and for no other reason. While no node answers, nothing is known.
        """
        with self._lock:
            last = self._newest_look
            if not (last and last.began >= began and last.leader and last.leader is not node and last.silent(node)):
                last = self._look(_LOOK_AGAIN, node)
        if not last:
            return _not_silent()
        return functools.partial(last.silent, node)

    def route(self, to_leader: bool, last: Node | None) -> Node:
        """The node for the next try: not that of the try before if there is another."""
        with self._lock:
            if self.closed:
                raise closed("client")
            leader = None if not self._leader or self._leader.suspected() else self._leader
            self._look(_LOOK_AFTER if leader and self._members_at else _LOOK_SOON)
            if to_leader and leader and leader is not last:
                return leader
            if not last and self._home and not self._home.suspected():
                return self._home
            start = next((i + 1 for i, node in enumerate(self._nodes) if node is last), self._at_home())
            order = [self._nodes[(start + i) % self.size] for i in range(self.size)]
            return next((n for n in order if n is not last and not n.suspected()), order[0])

    def failed(self, node: Node) -> None:
        node.suspect_until = time.monotonic() + _DISTRUST
        with self._lock:
            if self._home is node:
                self._home = self._nodes[(self._at_home() + 1) % self.size]
            self._look(_LOOK_AGAIN)

    def _look(self, age: float, also: Node | None = None) -> Look | None:
        """Looks for the leader, unless a look is in progress or younger than age, and returns the newest look. The caller holds the lock.

        The look asks also a node that is no longer one of the client's, whose calls go on.
        """
        last = self._newest_look
        asks = last and (not also or also in last.answered)
        if self.closed or last and asks and (not last.done.is_set() or time.monotonic() - last.began < age):
            return last
        nodes = list(dict.fromkeys([*self._given, *self._learnt, *([also] if also else [])]))
        look = Look(nodes, self._runtime.event)
        try:
            for node in nodes:
                self._runtime.spawn(self._ask(look, node), "idnode-look")
        except RuntimeError as error:
            if isinstance(error, Within):
                raise
            return last  # No thread can be started. Another call looks again.
        self._newest_look = look  # What was started needs the lock to end the look.
        return look

    async def _ask(self, look: Look, node: Node) -> None:
        """Asks one node, and ends the look with the first answer that names a leader."""
        leader: Node | None = None
        try:
            leader = await self.greet(node, _LOOK_TIMEOUT)
            log.debug("%s says that %s leads", node.address, leader.address if leader else "none")
            look.answered[node] = True
            look.heard.set()
        except Failure as failure:
            log.debug("%s does not say who leads: %s", node.address, failure.message)
            if failure.reason != "NO_ENDPOINT" and not failure.foreign:  # A refusal, as of a node that is overloaded, is an answer.
                look.answered[node] = True
        finally:
            with self._lock:
                look.left -= 1
                if not look.left:
                    look.all.set()
                over = (leader or not look.left) and not look.done.is_set()
                if over:
                    look.leader = leader
                    look.heard.set()
                    look.done.set()
            if over:
                self._tell(Told("look", leader.address if leader else "", duration=time.monotonic() - look.began))

    async def greet(self, node: Node, timeout: float, silent: Callable[[], Verdict] = _not_silent) -> Node | None:
        """Asks a node who leads, and whether it is of the client's cluster. Raises a Failure that did nothing."""
        try:
            status, answer = await node.call("ClusterService/GetStatus", {}, min(timeout, _GREET_TIMEOUT), _Status, silent)
        except Failure as failure:
            if not failure.reason or failure.effect() == UNKNOWN:
                failure.code, failure.reason = "unavailable", "NO_ENDPOINT"
            if failure.foreign:
                failure.message = f"{node.address} does not speak idnode's HTTP API: is it the address of --http (7402)? {failure.message}"
            raise
        if not status.id:  # It may get any.
            raise Failure(f"{node.address} has no cluster yet", "failed_precondition", "NOT_FORMED")
        cluster = answer.cluster
        with self._lock:
            given = node in self._given
            news = given and self._told.get(node.address) != cluster
            if cluster and given:
                self._told[node.address] = cluster
            own = self._cluster or status.id
        if news and len(status.members) == 1 and self._places > 1:
            log.warning("%s is one of several endpoints, and a cluster of one node (%s)", node.address, cluster)
        if cluster != own:
            node.greeted_until = 0.0
            stranger = node.other(cluster, own)
            if news:
                log.warning("%s", stranger.message)
            raise stranger
        node.greeted_until = time.monotonic() + GREETED
        self.saw(status.index, applied=True)
        self._settle(node, status, answer)
        return self._leader

    def _settle(self, node: Node, status: _Status, answer: Answer) -> None:
        """Takes over what a node of the client's cluster has told of itself and of the others."""
        with self._lock:
            before, known = self._leader, node.member is not None
            node.member = status.member
            if not known:
                self._arrange()
        self._tell_leader(before)
        self._answer(answer)
        if status.leads:  # Also where no header says so.
            self._leads(max(answer.term, 0), answer.leader or node.address)
        if self._cluster and status.quorum and (answer.term < 0 or answer.term >= self._term):
            self._learn(status.members, status.index, node)

    def check(self) -> None:
        """Raises Within where the threads that the caller would wait for need what it has."""
        shared = [self._how.tls._lock] if isinstance(self._how.tls, TLS) else []
        for lock in (self._lock, *shared, *(node._lock for node in [*self._given, *self._learnt])):
            lock.check()

    def close(self) -> None:
        with self._lock:
            self.closed = True
        for node in [*self._given, *self._learnt]:
            node.close()


class _Status:
    """What a node tells of itself, its cluster and its members."""

    def __init__(self, s: dict[str, Any]) -> None:
        self.id, self.index, self.quorum = str(s["clusterId"]), int(s["appliedIndex"]), bool(s["hasQuorum"])
        self.leads = self.quorum and bool(s["leaderTag"]) and s["leaderTag"] == s["self"]["tag"]
        self.member = str(s["self"].get("httpAddress") or "")
        self.members: list[dict[str, Any]] = list(s.get("members") or ())
