"""A client of idnode, which hands out ids that are unique across a cluster.

    with idnode.Client(["a:7402", "b:7402", "c:7402"]) as ids:
        ids.next("invoices|")             # 'invoices/1'
        ids.identity("invoices").next()   # 2
        ids.hilo("users").next_id()       # 'users/1-A'
        ids.series("bills").take(["4711"])  # the number of document 4711

The module is one file and needs nothing but the standard library. It calls the API
as JSON over HTTP. A Client is safe for concurrent use by threads; make one and share it.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import http.client
import io
import json
import os
import random
import re
import secrets
import socket
import ssl
import threading
import time
import weakref
from collections import deque
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Tuple, TypeVar, Union

__version__ = "0.1.0"
__all__ = [
    "Block", "Client", "ClosedError", "ConcurrencyError", "Counter", "DocumentNumber", "ExhaustedError", "HiLo", "HiLoNumber",
    "IdClaimedError", "Identity", "IdnodeError", "InvalidError", "KeyConflictError", "NoEndpointError", "NoQuorumError",
    "NotFoundError", "OtherClusterError", "OutcomeUnknownError", "OverloadedError", "PermissionDeniedError", "QuotaError", "Range", "RequestId",
    "RateLimitedError", "RequestIdExpiredError", "RequestIdReusedError", "ReservationExpiredError", "Series",
    "SeriesSuspendedError", "StorageFullError", "collection_of",
]

# All times are in seconds.
_CONNECT_TIMEOUT = 1.5
_IDLE_TIMEOUT = 60.0  # Shorter than the two minutes after which a node closes an idle connection.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.025, 0.4  # Between tries, once every endpoint had its turn.
_MAX_OVERLOADS = 3  # More tries would only keep an overload going.
_LOOK_AFTER = 5.0  # How old what is known of the leader may get.
_LOOK_SOON = 1.0  # The same while no leader is known.
_LOOK_AGAIN = 0.2  # The least time between two looks, however much fails.
_LOOK_TIMEOUT = 1.0
_SLOW = 0.3  # When a try without an answer asks whether its node is silent to all.
_SILENT = 0.2  # How long the node has to say that it is not.
_GREET_TIMEOUT = 2.0  # Connect, TLS and an answer over a long way.
_GREETED = 30.0  # Unused for longer, an address may have become another's.
_DISTRUST = 2.0  # How long a node that failed is asked only if no other is left.
_CLOSERS = 16  # How many handles are closed side by side.
_LARGEST = 32 << 20  # Bytes of an answer.
_FETCH_PAUSE, _LONGEST_FETCH_PAUSE = 0.1, 10.0  # After a prefetch that failed.


class RequestId(NamedTuple):
    """Makes a call count once."""

    id: str  #: 1 to 64 bytes, unique per database and principal.
    since: Optional[int] = None  #: The log index that was known before the first try.


AnyRequestId = Union[str, RequestId]
_T = TypeVar("_T")


class IdnodeError(Exception):
    """Why a call failed. The subclasses tell the cases apart that a program can act on."""

    code = "unknown"  #: The gRPC status code in lower case, for example ``"unavailable"``.
    reason = ""  #: The API's name of the cause, for example ``"ID_CLAIMED"``; may be empty.
    field = ""  #: The field of the request that is at fault, if there is one.
    message = ""  #: A text for people.
    request_id: Optional[RequestId] = None  #: The same call with it counts once; None if the call had none.
    ids: Sequence[str] = ()  #: Those that HiLo.next_ids had taken before it failed.

    def __init__(self, message: str, **details: Any) -> None:
        reason = details.get("reason") or details.get("code") or self.code
        field = f" (field {details['field']})" if details.get("field") else ""
        super().__init__(f"{reason}: {message}{field}" if details else message)
        self.message = message
        self.__dict__.update(details)


class OutcomeUnknownError(IdnodeError):
    """A try of the call may have taken effect. Repeating it with ``request_id`` counts once."""


class NoQuorumError(IdnodeError):
    """The cluster has no leader, or no majority. Nothing happened."""


class NoEndpointError(IdnodeError):
    """No node answered. Nothing happened."""


class OtherClusterError(IdnodeError):
    """The nodes that answer belong to another cluster than the first that did. Nothing happened in its own."""


class OverloadedError(IdnodeError):
    """There are too many calls. Nothing happened."""


class StorageFullError(IdnodeError):
    """A disk of the cluster is nearly full. Nothing happened."""


class QuotaError(IdnodeError):
    """A limit on names, claims or sizes is reached. Nothing happened."""


class RateLimitedError(IdnodeError):
    """The caller has reached a limit of its own. Nothing happened."""


class ExhaustedError(IdnodeError):
    """The counter has no numbers left."""


class ConcurrencyError(IdnodeError):
    """An expected value is not the current one."""


class IdClaimedError(IdnodeError):
    """The id is claimed, or was issued by an identity."""


class KeyConflictError(IdnodeError):
    """The document's key has a number of another date or scope."""


class SeriesSuspendedError(IdnodeError):
    """The series was restored, and gives no numbers until somebody has looked into the books."""


class ReservationExpiredError(IdnodeError):
    """The number's time ended, and another document has it."""


class RequestIdReusedError(IdnodeError):
    """The request id was used for another request."""


class RequestIdExpiredError(IdnodeError):
    """The cluster no longer knows whether the first try of the call happened."""


class PermissionDeniedError(IdnodeError):
    """The caller's certificate has no right to it. Nothing happened."""


class NotFoundError(IdnodeError):
    """There is no such identity, counter or claim."""


class InvalidError(IdnodeError):
    """The request is wrong: ``field`` says where, ``reason`` why."""


class ClosedError(IdnodeError):
    """The client, or the HiLo handle, was closed."""


_BY_REASON = {
    "OUTCOME_UNKNOWN": OutcomeUnknownError, "NO_QUORUM": NoQuorumError, "NO_ENDPOINT": NoEndpointError,
    "OTHER_CLUSTER": OtherClusterError,
    "OVERLOADED": OverloadedError, "STORAGE_FULL": StorageFullError, "QUOTA": QuotaError,
    "RATE_LIMITED": RateLimitedError, "COUNTER_EXHAUSTED": ExhaustedError, "CONCURRENCY": ConcurrencyError,
    "ID_CLAIMED": IdClaimedError, "REQUEST_ID_REUSED": RequestIdReusedError,
    "REQUEST_ID_EXPIRED": RequestIdExpiredError, "PERMISSION_DENIED": PermissionDeniedError,
    "KEY_CONFLICT": KeyConflictError, "SERIES_SUSPENDED": SeriesSuspendedError, "RESERVATION_EXPIRED": ReservationExpiredError,
}
_BY_CODE = {"not_found": NotFoundError, "invalid_argument": InvalidError}


def _invalid(reason: str, field: str, message: str) -> InvalidError:
    return InvalidError(message, code="invalid_argument", reason=reason, field=field)


# The alerts by which a node refuses a certificate, or the rest of a handshake. With TLS 1.3 the client learns of them only after
# it has sent its request.
_REFUSES_TLS = re.compile("_ALERT_(.*CERTIFICATE|UNKNOWN_CA|ACCESS_DENIED|DECRYPT_ERROR|HANDSHAKE_FAILURE)")

# What a failed try may have done.
_NOTHING, _UNKNOWN, _REFUSED = "nothing", "unknown", "refused"


class _Failure(Exception):
    """A failed try."""

    def __init__(self, message: str, code: str, reason: str = "", foreign: bool = False) -> None:
        super().__init__(message)
        self.message, self.code, self.reason, self.foreign = message, code, reason, foreign
        self.field, self.pause = "", 0.0

    def effect(self) -> str:
        if self.reason == "OUTCOME_UNKNOWN":
            return _UNKNOWN
        if self.reason in ("OVERLOADED", "TAG_NOT_ASSIGNED", "NOT_FORMED", "TAG_NOT_MEMBER", "CORRUPT", "OTHER_CLUSTER"):
            return _NOTHING
        if not self.reason:  # Not an answer of idnode's, or no answer at all.
            if self.code == "unimplemented":
                return _NOTHING
            refused = self.code in ("invalid_argument", "permission_denied", "unauthenticated")
            return _REFUSED if refused else _UNKNOWN
        return {"unavailable": _NOTHING, "internal": _UNKNOWN}.get(self.code, _REFUSED)

    def decided(self) -> bool:
        """Whether the state of the cluster refused the call, and not a node before it came there."""
        before = self.code in ("resource_exhausted", "permission_denied")
        return bool(self.reason) and not before and self.effect() == _REFUSED

    def error(self, unknown: bool, request_id: Optional[RequestId]) -> IdnodeError:
        reason = self.reason
        if not reason and not unknown and self.effect() != _REFUSED:
            reason = "NO_ENDPOINT"  # Not a node of idnode's, or a call that changes nothing that matters.
        kind = OutcomeUnknownError if unknown else _BY_REASON.get(reason) or _BY_CODE.get(self.code, IdnodeError)
        return kind(self.message, code=self.code, reason=reason, field=self.field, request_id=request_id)


def _failure_of(status: int, body: bytes) -> _Failure:
    """Reads the answer of a call that a node, or something before it, refused."""
    foreign = status < 500 and status not in (408, 429)  # Nobody between here and a node passed the call on.
    codes = {401: "unauthenticated", 403: "permission_denied"}
    failure = _Failure(f"HTTP status {status}", codes.get(status, "unimplemented" if foreign else "unavailable"), foreign=foreign)
    try:
        problem = json.loads(body)
        failure.code, failure.message = str(problem["code"]), str(problem.get("message", ""))
        for detail in [detail.get("debug") or {} for detail in problem.get("details", [])]:
            if detail.get("domain") == "idnode":
                failure.reason, failure.foreign = detail.get("reason", ""), False
            for violation in detail.get("fieldViolations", []):
                failure.field = violation.get("field", "")
            if "retryDelay" in detail:
                failure.pause = float(detail["retryDelay"].rstrip("s"))
    except (ValueError, KeyError, TypeError, AttributeError):
        pass  # It is not a node that answers.
    return failure


class _Response(http.client.HTTPResponse):
    """An answer of a bounded size, that is there until a time unless the node is silent. A socket has a timeout for each piece."""

    def __init__(self, sock: Any, end: float, silent: Callable[[], bool]) -> None:
        super().__init__(sock, method="POST")
        self.fp = io.BufferedReader(_Pieces(self.fp.detach(), sock, end, silent))


class _Pieces(io.RawIOBase):
    def __init__(self, raw: io.RawIOBase, sock: Any, end: float, silent: Callable[[], bool]) -> None:
        self._raw, self._sock, self._end = raw, sock, end  # raw keeps the socket of an answer that ends the connection.
        self._silent, self._begun, self._room = silent, False, _LARGEST

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> Optional[int]:
        while True:
            left = self._end - time.monotonic()
            if left <= 0:
                raise socket.timeout("no answer in time")
            self._sock.settimeout(left if self._begun else min(left, _SLOW))
            try:
                size = self._sock.recv_into(into)  # Unlike raw, it may be asked again after a timeout.
                break
            except socket.timeout:
                if self._begun or left <= _SLOW or self._silent():
                    raise
        if not self._begun and size and bytes(into[:size])[:5] != b"HTTP/"[:size]:
            raise http.client.BadStatusLine(repr(bytes(into[:size])[:24]))  # Now: there may be no line, but a reset.
        self._begun = True
        self._room -= size
        if self._room < 0:
            raise http.client.HTTPException("the answer is too large")
        return size

    def close(self) -> None:
        self._raw.close()
        super().close()


_ENDPOINT = re.compile(r"(?:(https?)://)?(\[[^][\s/@]+\]|[^][\s/?#@:]+):([0-9]{1,5})/?")


class _Node:
    """One address, and the connections to it."""

    def __init__(self, address: str, tls: Optional[ssl.SSLContext]) -> None:
        found = _ENDPOINT.fullmatch(address.strip())
        if not found or not 0 < int(found[3]) < 1 << 16:
            raise ValueError(f"an endpoint is host:port, or a URL of that, not {address!r}")
        if tls and found[1] == "http":
            raise ValueError(f"the endpoint {address!r} has no TLS")
        self._host, self._port = found[2].strip("[]"), int(found[3])
        self.address = f"{found[2]}:{self._port}"
        self.suspect_until = 0.0
        # Until when it counts as a node of the client's cluster: it answered, and no connection broke since.
        self.greeted_until = 0.0
        self._tls = tls or (ssl.create_default_context() if found[1] == "https" else None)
        self._idle: deque[Tuple[socket.socket, float]] = deque()  # The newest last.

    def suspected(self) -> bool:
        return time.monotonic() < self.suspect_until

    def greeted(self) -> bool:
        return time.monotonic() < self.greeted_until

    def call(
        self, method: str, request: Dict[str, Any], timeout: float, read: Callable[[Dict[str, Any]], _T], silent: Callable[[], bool],
    ) -> _T:
        """Makes one try, which is over early if the node is silent. What cannot be read is not an answer of a node. Raises _Failure."""
        end = time.monotonic() + timeout
        connection, fresh = self._connection(timeout)
        response: Optional[_Response] = None
        kept = False
        try:
            left = max(end - time.monotonic(), 0.001)
            connection.settimeout(left)
            sent = json.dumps(request, ensure_ascii=False).encode("utf-8", "surrogatepass")  # The server refuses half a character.
            head = (
                f"POST /idnode.v1.{method} HTTP/1.1\r\nHost: {self.address}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(sent)}\r\nConnect-Timeout-Ms: {max(int(left * 1000), 1)}\r\n\r\n"
            )
            # In one piece: a reset in between would hide what a server has said that speaks no HTTP.
            connection.sendall(head.encode() + sent)
            response = _Response(connection, end, silent)
            response.begin()
            body = response.read()
            kept = not response.will_close
        except (OSError, http.client.HTTPException, MemoryError, OverflowError) as error:  # The last two of a length that is too large.
            self.greeted_until = 0.0
            self.close()  # The other connections are likely to be broken too.
            refused = fresh and isinstance(error, ssl.SSLError) and _REFUSES_TLS.search(error.reason or "")
            reason = "NO_ENDPOINT" if refused else ""
            noise = isinstance(error, http.client.BadStatusLine) and not isinstance(error, OSError)
            raise _Failure(f"{self.address}: {error or type(error).__name__}", "unavailable", reason, noise) from error
        finally:
            if kept:
                self._idle.append((connection, time.monotonic()))
                with contextlib.suppress(IndexError):  # Another thread took the last one.
                    while time.monotonic() - self._idle[0][1] > _IDLE_TIMEOUT:
                        self._idle.popleft()[0].close()
            else:
                if response:
                    response.close()  # It has the socket open too, and an error that is kept has it.
                connection.close()
        if response.status != 200:
            raise _failure_of(response.status, body)
        try:
            return read(json.loads(body))
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise _Failure(f"{self.address}: this is not an answer of a node", "internal", foreign=True) from error

    def _connection(self, timeout: float) -> Tuple[socket.socket, bool]:
        """A connection, and whether it is a new one."""
        while self._idle:
            try:
                connection, since = self._idle.pop()
            except IndexError:
                break  # Another thread took the last one.
            if time.monotonic() - since < _IDLE_TIMEOUT:
                return connection, False
            connection.close()
        timeout = min(timeout, _CONNECT_TIMEOUT)
        connection, error = _within(timeout, lambda: self._connect(timeout))
        if connection:
            return connection, True
        self.greeted_until = 0.0
        # What is no TLS at all, unlike a certificate that is refused or a connection that broke.
        noise = type(error) is ssl.SSLError and "_ALERT_" not in (error.reason or "")
        # Nothing was sent, so nothing happened.
        raise _Failure(f"cannot reach {self.address}: {error}", "unavailable", "NO_ENDPOINT", noise) from error

    def _connect(self, timeout: float) -> socket.socket:
        """Tries the addresses of a name one after the other. Each has its share of the time that is left, as Go's net.Dialer has it."""
        end = time.monotonic() + timeout
        addresses = socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        for left in range(len(addresses), 1, -1):
            with contextlib.suppress(OSError):
                return self._connect_to(addresses[-left], (end - time.monotonic()) / left)
        return self._connect_to(addresses[-1], end - time.monotonic())

    def _connect_to(self, address: Any, timeout: float) -> socket.socket:
        connection = socket.socket(*address[:3])
        try:
            connection.settimeout(max(timeout, 0.001))
            connection.connect(address[4])
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return self._tls.wrap_socket(connection, server_hostname=self._host) if self._tls else connection
        except BaseException:
            connection.close()
            raise

    def close(self) -> None:
        while self._idle:
            try:
                self._idle.pop()[0].close()
            except IndexError:
                break


def _within(timeout: float, connect: Callable[[], socket.socket]) -> Tuple[Optional[socket.socket], Optional[Exception]]:
    """Connects in a thread: the look-up of a name has no timeout."""
    ended: List[Tuple[Optional[socket.socket], Optional[Exception]]] = []

    def run() -> None:
        try:
            ended.append((connect(), None))
        except Exception as error:
            ended.append((None, error))

    thread = threading.Thread(target=run, name="idnode-connect", daemon=True)
    try:
        thread.start()
        thread.join(timeout)
    except RuntimeError:  # No thread can be started, as at the end of the program.
        run()
    return ended[0] if ended else (None, TimeoutError("no connection in time"))


class _Look:
    """One look for the leader, at all endpoints side by side."""

    def __init__(self, nodes: List[_Node]) -> None:
        self.left = len(nodes)
        self.began = time.monotonic()
        self.answered = {node: threading.Event() for node in nodes}
        self.heard, self.done = threading.Event(), threading.Event()  # A node has told its index; the leader, or every node.


class _Router:
    """Knows the nodes, which of them leads, and how far the cluster's log is."""

    def __init__(self, addresses: List[str], tls: Optional[ssl.SSLContext]) -> None:
        self._given = [_Node(address, tls) for address in addresses]
        self._lock = threading.Lock()
        self._leader: Optional[_Node] = None
        self._home = 0  # The endpoint for calls that need no leader.
        self.newest = 0  # The newest log index of any answer.
        self._newest_at = 0.0
        self._cluster = ""  # That of the first node that answered.
        self._newest_look: Optional[_Look] = None
        self.closed = False
        self.size = len(self._given)

    def saw(self, index: int, applied: bool = False) -> None:
        """Notes a log index. What a node has applied is as new as the answer."""
        with self._lock:
            if index > self.newest or (applied and index == self.newest):
                self.newest, self._newest_at = index, time.monotonic()

    def index(self, deadline: float, to_leader: bool, counted: bool) -> int:
        """The newest log index before a call. It is looked for if none, or only an old one, is known."""
        age = time.monotonic() - self._newest_at
        if to_leader and not self.newest:
            return self.latest(deadline, _LOOK_AGAIN, lambda look: look.done)
        if counted and age > _LOOK_AFTER:
            return self.latest(deadline, _LOOK_AGAIN, lambda look: look.heard)
        return self.newest

    def latest(self, deadline: float, age: float, until: Callable[[_Look], threading.Event]) -> int:
        """The same after a look, unless one is younger than age."""
        with self._lock:
            look = self._look(age)
        if look:
            until(look).wait(min(_LOOK_TIMEOUT, max(deadline - time.monotonic(), 0)))
        return self.newest

    def silent(self, node: _Node) -> bool:
        """Whether a node says nothing at all while another one does. A call that waits for it goes elsewhere then.

        To send the call elsewhere unasked, as a hedge ("The Tail at Scale", Dean and Barroso 2013), would double the load of a
        cluster that is only slow. The question writes nothing, and all calls share it. A node that writes slowly answers it, so
        a call is sent again for a node that stands still, and for no other reason.
        """
        with self._lock:
            look = self._look(_LOOK_AGAIN)
        if not look or look.answered[node].wait(max(look.began + _SILENT - time.monotonic(), 0)):
            return False
        return any(answered.is_set() for other, answered in look.answered.items() if other is not node)

    def route(self, to_leader: bool, last: Optional[_Node]) -> _Node:
        """The node for the next try: not that of the try before if there is another."""
        with self._lock:
            if self.closed:
                raise ClosedError("the client is closed", code="canceled", reason="CLIENT_CLOSED")
            if to_leader:
                self._look(_LOOK_AFTER if self._leader else _LOOK_SOON)
                if self._leader and self._leader is not last and not self._leader.suspected():
                    return self._leader
            start = self._given.index(last) + 1 if last in self._given else self._home
            order = [self._given[(start + i) % self.size] for i in range(self.size)]
            return next((n for n in order if n is not last and not n.suspected()), order[0])

    def failed(self, node: _Node) -> None:
        node.suspect_until = time.monotonic() + _DISTRUST
        with self._lock:
            if self._leader is node:
                self._leader = None
            if self._given[self._home] is node:
                self._home = (self._home + 1) % self.size
            self._look(_LOOK_AGAIN)

    def _look(self, age: float) -> Optional[_Look]:
        """Looks for the leader, unless a look is in progress or younger than age, and returns the newest look. The caller holds the lock."""
        last = self._newest_look
        if self.closed or last and (not last.done.is_set() or time.monotonic() - last.began < age):
            return last
        look = _Look(self._given)
        try:
            for node in self._given:
                threading.Thread(target=self._ask, args=(look, node), name="idnode-look", daemon=True).start()
        except RuntimeError:  # No thread can be started. Another call looks again.
            return last
        self._newest_look = look  # The threads need the lock to end the look.
        return look

    def _ask(self, look: _Look, node: _Node) -> None:
        """Asks one endpoint. The first that says of itself that it leads does; nodes hand calls on to one that is no endpoint."""
        leads = False
        try:
            leads = self.greet(node, _LOOK_TIMEOUT)
            look.heard.set()
            look.answered[node].set()
        except _Failure as failure:
            if failure.reason != "NO_ENDPOINT" and not failure.foreign:  # A refusal, as of a node that is overloaded, is an answer.
                look.answered[node].set()
        finally:
            with self._lock:
                look.left -= 1
                if (leads or not look.left) and not look.done.is_set():
                    self._leader = node if leads else None
                    node.suspect_until = 0.0 if leads else node.suspect_until
                    look.heard.set()
                    look.done.set()

    def greet(self, node: _Node, timeout: float, silent: Callable[[], bool] = lambda: False) -> bool:
        """Asks a node whether it leads, and is of the client's cluster. Raises a _Failure that did nothing."""
        try:
            cluster, index, leads = node.call("ClusterService/GetStatus", {}, min(timeout, _GREET_TIMEOUT), _status, silent)
        except _Failure as failure:
            if not failure.reason or failure.effect() == _UNKNOWN:
                failure.code, failure.reason = "unavailable", "NO_ENDPOINT"
            if failure.foreign:
                failure.message = f"{node.address} does not speak idnode's HTTP API: is it the address of --http (7402)? {failure.message}"
            raise
        if not cluster:  # It may get any.
            raise _Failure(f"{node.address} has no cluster yet", "failed_precondition", "NOT_FORMED")
        with self._lock:
            self._cluster = self._cluster or cluster
        if cluster != self._cluster:
            node.greeted_until = 0.0
            text = f"the node at {node.address} belongs to cluster {cluster}, and this client to cluster {self._cluster}"
            raise _Failure(text, "failed_precondition", "OTHER_CLUSTER", True)
        node.greeted_until = time.monotonic() + _GREETED
        self.saw(index, applied=True)
        return leads

    def close(self) -> None:
        with self._lock:
            self.closed = True
        for node in self._given:
            node.close()


def _status(s: Dict[str, Any]) -> Tuple[str, int, bool]:
    """The cluster of a node, its log index, and whether it leads."""
    leads = bool(s["hasQuorum"] and s["leaderTag"]) and s["leaderTag"] == s["self"]["tag"]
    return s["clusterId"], int(s["appliedIndex"]), leads


class Counter(NamedTuple):
    """An identity in a listing: its folded name, and the last value taken."""

    name: str
    value: int


class Block(NamedTuple):
    """A run of consecutive values, first and last included."""

    first: int
    last: int


class DocumentNumber(NamedTuple):
    """The number of a document."""

    key: str
    text: str  #: The number in the series' format.
    scope: Tuple[str, ...]  #: The period, where numbers begin again, and the values of the format.
    number: int  #: The number in its scope.
    state: str  #: ``open``, ``confirmed``, ``voided``, ``released`` or ``unknown``.
    overdue: bool  #: It is open, and its time has ended.
    date: str  #: The document's, as ``2026-12-31``.
    label: str
    reason: str  #: That of a voided number.


class Range(NamedTuple):
    """A HiLo range. Prefix and node tag belong to its numbers alone."""

    prefix: str
    node_tag: str
    low: int
    high: int
    size: int  #: The size granted, which the next request names as ``last_size``.
    at: str  #: The cluster's time of the range, as ``last_at`` of the next request.
    from_reserve: bool  #: The numbers may lie below those of the last range.
    token: str  #: Proves that the range is the caller's when it is returned.


class HiLoNumber(NamedTuple):
    """A number of a HiLo range. ``str`` of it is its id."""

    value: int
    prefix: str
    node_tag: str

    def __str__(self) -> str:
        return f"{self.prefix}{self.value}-{self.node_tag}" if self.node_tag else f"{self.prefix}{self.value}"


class Client:
    """Calls an idnode cluster. Close it, or use it as a context manager: that gives unused numbers back."""

    def __init__(
        self, endpoints: List[str], *, database: str = "", tls: Optional[ssl.SSLContext] = None,
        timeout: float = 10.0, try_timeout: float = 3.0, label: str = "",
    ) -> None:
        """Makes no call yet.

        Args:
            endpoints: HTTP addresses of nodes of one cluster, as ``host:port`` or URLs.
            database: Whose ids are given; empty means ``default``.
            tls: Trusts the cluster's CA, and holds the client's certificate.
            timeout: Bounds every call with all its tries, in seconds.
            try_timeout: Bounds one try at one node, in seconds.
            label: Kept with each HiLo range, for people who ask whose a number is; at most 64 bytes.
        """
        if isinstance(endpoints, str) or not endpoints:
            raise ValueError("endpoints is a list of at least one address")
        if timeout <= 0 or try_timeout <= 0:
            raise ValueError("a timeout is above zero")
        self._database, self._timeout, self._try_timeout, self._label = database, timeout, try_timeout, label
        self._endpoints, self._tls = list(endpoints), tls
        self._closing = False
        self._handles: Dict[Tuple[str, str], HiLo] = {}
        self._begin()
        _clients.add(self)

    def _begin(self) -> None:
        """Also after a fork: the child has none of the threads, and the ranges and connections are its parent's."""
        self._lock = threading.Lock()
        self._router = _Router(self._endpoints, self._tls)
        self._router.closed = self._closing
        for handle in self._handles.values():
            handle._begin()

    def next(self, template: str, *, separator: str = "", claim: bool = False, request_id: AnyRequestId = "") -> str:
        """Makes an id: ``users/`` a server-side id, ``users|`` an identity, empty a GUID, else the id itself.

        The options are those of next_n.
        """
        return self.next_n(template, 1, separator=separator, claim=claim, request_id=request_id)[0]

    def next_n(
        self, template: str, n: int, *, separator: str = "", claim: bool = False, request_id: AnyRequestId = "",
    ) -> List[str]:
        """Makes n ids, 1 to 1,000,000, from a template in one call.

        Args:
            claim: Record the id in the cluster as taken; for finished ids only.
            request_id: The caller's own, or that of an error: the same call with it counts once.
        """
        _check_count(n)
        numbered = template.endswith("|") or template.endswith(separator or "/")
        semantic = not numbered and bool(template.strip())
        if semantic:
            _check_id(template)
        request = {
            "template": template, "separator": separator, "count": n, "claim": claim, "blocksOnly": numbered and n > 1,
        }
        if template.endswith("|") or (semantic and claim):
            ids = self._count_once("Generate", request, request_id, _ids)
        else:
            # What these take comes from a supply in which holes do not matter.
            ids = self._invoke("IdsService/Generate", request, _ids, to_leader=False)
        if len(ids) != n:
            raise IdnodeError(f"asked for {n} ids, got {len(ids)}")
        return ids

    def identity(self, name: str) -> "Identity":
        """The identity with this name. It exists once a value was taken."""
        return Identity(self, name)

    def identities(self, prefix: str = "", *, stale: bool = False) -> Iterator[Counter]:
        """Lists the identities whose folded names begin with prefix, in order."""
        yield from self._pages("ListIdentities", prefix, stale, lambda page: [Counter(i["name"], int(i["value"])) for i in page["identities"]])

    def series(self, name: str) -> "Series":
        """The series of document numbers with this name. ``idnode series define`` defines it."""
        return Series(self, name)

    def claim(self, id: str, *, separator: str = "", request_id: AnyRequestId = "") -> None:
        """Records a finished id as the caller's. The first claim wins; others raise IdClaimedError."""
        _check_id(id)
        self._count_once("Claim", {"id": id, "separator": separator}, request_id, bool)

    def release(self, id: str, *, request_id: AnyRequestId = "") -> None:
        """Gives a claimed id free."""
        self._count_once("Release", {"id": id}, request_id, bool)

    def claims(self, prefix: str = "", *, stale: bool = False) -> Iterator[str]:
        """Lists the claimed ids that begin with prefix, folded, in order."""
        yield from self._pages("ListClaims", prefix, stale, lambda page: page["ids"])

    def hilo(self, tag: str, *, separator: str = "", first_size: int = 0) -> "HiLo":
        """The handle of a collection's tag, which is made once and shared from then on."""
        with self._lock:
            if self._closing:
                raise ClosedError("the client is closed", code="canceled", reason="CLIENT_CLOSED")
            key = (tag, separator or "/")
            if key not in self._handles:
                self._handles[key] = HiLo(self, tag, separator, first_size)
            return self._handles[key]

    def id_for(self, kind: type) -> str:
        """The next HiLo id for documents of a class, as RavenDB's clients name them: OrderLine → OrderLines/1-A."""
        return self.hilo(collection_of(kind.__name__)).next_id()

    def next_range(
        self, tag: str, *, separator: str = "", size: int = 0, last_size: int = 0, last_at: str = "", last_max: int = 0,
        request_id: AnyRequestId = "",
    ) -> Range:
        """Reserves the next range of a tag. Most programs are better off with hilo."""
        request: Dict[str, Any] = {
            "tag": tag, "separator": separator, "size": size, "lastSize": last_size, "lastMax": str(last_max), "label": self._label,
        }
        if last_at:
            request["lastRangeAt"] = last_at
        return self._count_once("NextRange", request, request_id, _range)

    def return_range(self, tag: str, r: Range, last: int, *, _deadline: Optional[float] = None) -> bool:
        """Gives the numbers above last back. False if they stay a hole, since the range is not the newest."""
        request = {"tag": tag, "low": str(r.low), "high": str(r.high), "last": str(last), "token": r.token}
        return self._count_once("ReturnRange", request, "", lambda answer: answer["returned"], _deadline)

    def close(self) -> None:
        """Gives the unused numbers of all handles back. It takes no longer than the client's timeout.

        An error says that numbers could not be given back; the client is closed all the same.
        """
        with self._lock:
            self._closing, handles = True, deque(self._handles.values())
        deadline = time.monotonic() + self._timeout
        failed: List[Exception] = []

        def close_some() -> None:
            with contextlib.suppress(IndexError):  # At the end of the handles.
                while True:
                    try:
                        handles.pop()._close(deadline)
                    except IdnodeError as error:
                        failed.append(error)

        threads = [threading.Thread(target=close_some, daemon=True) for _ in range(min(len(handles), _CLOSERS) - 1)]
        with contextlib.suppress(RuntimeError):  # No thread can be started, as at the end of the program.
            for thread in threads:
                thread.start()
        close_some()
        for thread in threads:
            if thread.ident:
                thread.join()
        self._router.close()
        if failed:
            raise failed[0]

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        try:
            self.close()
        except IdnodeError:
            if kind is None:
                raise  # Otherwise what went wrong before matters more.

    def _pages(self, method: str, prefix: str, stale: bool, read: Callable[[Dict[str, Any]], List[_T]]) -> Iterator[_T]:
        request = {"prefix": prefix, "pageSize": 1000, "consistency": _consistency(stale), "pageToken": ""}
        more = True
        while more:
            found, request["pageToken"] = self._invoke(f"IdsService/{method}", request, lambda page: (read(page), page["nextPageToken"]))
            yield from found
            more = bool(request["pageToken"])

    def _count_once(
        self, method: str, request: Dict[str, Any], request_id: AnyRequestId, read: Callable[[Dict[str, Any]], _T],
        deadline: Optional[float] = None,
    ) -> _T:
        own = not request_id
        if not isinstance(request_id, RequestId):
            request_id = RequestId(request_id or secrets.token_hex(16))
        return self._invoke(f"IdsService/{method}", request, read, request_id, own=own, deadline=deadline)

    def _invoke(
        self, method: str, request: Dict[str, Any], read: Callable[[Dict[str, Any]], _T], request_id: Optional[RequestId] = None, *,
        own: bool = False, changes: bool = False, to_leader: bool = True, deadline: Optional[float] = None,
    ) -> _T:
        """Makes tries at changing nodes until one gives a final answer or the time is over.

        With own, no other call has sent the request id. With changes, the call may be repeated without one, but what a
        lost try has done matters.
        """
        end = time.monotonic() + self._timeout
        deadline = end if deadline is None else min(deadline, end)
        request = {**request, "database": self._database}
        # Whoever names an index has made the call before: until the cluster decides it, its outcome is what it was.
        unknown = repeats = request_id is not None and request_id.since is not None
        index = self._router.index(deadline, to_leader, request_id is not None)
        if request_id and request_id.since is None and index:
            # The first try says it too: the network may hold it up until its retry was forgotten.
            request_id = request_id._replace(since=index)
        node: Optional[_Node] = None
        told: Optional[_Failure] = None
        tries = overloads = foreign = 0
        lost = False  # A try of this call may have taken effect.
        while True:
            if request_id:
                request["requestId"] = _wire(request_id)
            try:
                node = self._router.route(to_leader, node)
            except ClosedError:
                if unknown and told:  # A try before may have taken effect.
                    raise told.error(unknown, request_id) from told.__cause__
                raise
            silent = functools.partial(self._router.silent, node)
            try:
                if not node.greeted():  # Whatever it is, it gets no call.
                    self._router.greet(node, self._left(deadline), silent)
                got, seen = node.call(method, request, self._left(deadline), lambda answer: (read(answer), int(answer["logIndex"])), silent)
                node.suspect_until, node.greeted_until = 0.0, time.monotonic() + _GREETED
                self._router.saw(seen)
                return got
            except _Failure as failure:
                last = failure
            tries += 1
            if told is None or last.reason != "NO_ENDPOINT":
                told = last  # A node that answered tells more than one that was not reached.
            effect, overloaded = last.effect(), last.reason == "OVERLOADED"
            lost = lost or effect == _UNKNOWN and (changes or request_id is not None)
            unknown = lost or repeats and not last.decided()
            if request_id:
                request_id = request_id._replace(since=request_id.since or 0)
                # The index named was forgotten before the first try came: begin again, once, with a newer one. No try took
                # effect, and a copy of one that comes late names the old index.
                if own and not unknown and last.reason == "REQUEST_ID_EXPIRED":
                    own, newest = False, self._router.latest(deadline, 0, lambda look: look.done)
                    if newest > request_id.since:
                        request_id, node, told = request_id._replace(since=newest), None, None
                        continue
            overloads += overloaded
            # What answers is no node: a mistake if none ever did, or it is another cluster's. Else a proxy may say so for a while.
            mistaken = last.reason == "OTHER_CLUSTER" or not self._router.newest
            foreign = foreign + 1 if last.foreign and effect != _UNKNOWN and mistaken else 0
            pause = max(last.pause, _FIRST_PAUSE) if overloaded else _pause(tries - self._router.size)
            final = effect == _REFUSED or overloads > _MAX_OVERLOADS or foreign >= self._router.size
            if final or time.monotonic() + pause >= deadline:
                raise told.error(unknown, request_id) from told.__cause__
            if not overloaded:
                self._router.failed(node)
            time.sleep(pause)


    def _left(self, deadline: float) -> float:
        """The time of a try that begins now."""
        left = min(self._try_timeout, deadline - time.monotonic())
        if left <= 0:
            raise _Failure("the time was over before a node could be asked", "unavailable", "NO_ENDPOINT")
        return left


_clients: weakref.WeakSet[Client] = weakref.WeakSet()


def _forked() -> None:
    for client in list(_clients):
        client._begin()


if hasattr(os, "register_at_fork"):  # Not on Windows.
    os.register_at_fork(after_in_child=_forked)


def _wire(request_id: RequestId) -> Dict[str, str]:
    return {"id": request_id.id, **({} if request_id.since is None else {"retrySince": str(request_id.since)})}


def _pause(round: int) -> float:
    """The time until the next try: none while there are endpoints that were not tried yet."""
    return 0.0 if round < 0 else min(_FIRST_PAUSE * 2 ** min(round, 10), _LONGEST_PAUSE) * random.uniform(0.5, 1)


def _consistency(stale: bool) -> str:
    return "CONSISTENCY_STALE" if stale else "CONSISTENCY_LINEARIZABLE"


def _check_count(n: int) -> None:
    if n < 1:
        raise _invalid("INVALID_COUNT", "count", "it must be at least 1")


def _check_id(id: str) -> None:
    if id.startswith("/"):
        raise _invalid("INVALID_ID", "id", "an id must not begin with /")


class Identity:
    """A counter agreed by the cluster: it gives 1, 2, 3 … without holes."""

    def __init__(self, client: Client, name: str) -> None:
        self._client, self._name = client, name

    def next(self, *, separator: str = "", request_id: AnyRequestId = "") -> int:
        """Takes the next value."""
        return self.next_n(1, separator=separator, request_id=request_id)[0].first

    def next_n(self, n: int, *, separator: str = "", request_id: AnyRequestId = "") -> List[Block]:
        """Takes the next n values: one block, or several where claimed ids lie between."""
        _check_count(n)
        request = {"name": self._name, "count": n, "separator": separator}
        return self._client._count_once(
            "NextIdentity", request, request_id, lambda answer: [Block(int(b["first"]), int(b["last"])) for b in answer["blocks"]])

    def get(self, *, stale: bool = False) -> int:
        """Reads the last value taken. Raises NotFoundError if none ever was."""
        request = {"name": self._name, "consistency": _consistency(stale)}
        return self._client._invoke("IdsService/GetIdentity", request, lambda answer: int(answer["identity"]["value"]))

    def seed(
        self, value: int, *, force: bool = False, expected: Optional[int] = None, request_id: AnyRequestId = "",
    ) -> int:
        """Raises the last value taken to value, and returns what it is now.

        Args:
            force: Set exactly value, also a lower one: values may then come twice.
            expected: Only if this is the current value; otherwise ConcurrencyError.
        """
        request: Dict[str, Any] = {"name": self._name, "value": str(value), "force": force}
        if expected is not None:
            request["expected"] = str(expected)
        return self._client._count_once("SeedIdentity", request, request_id, _value)

    def delete(self, *, forget: bool = False, request_id: AnyRequestId = "") -> int:
        """Hides the identity and returns its last value. With forget it starts at 1 again, and values come twice."""
        request = {"name": self._name, "forget": forget}
        return self._client._count_once("DeleteIdentity", request, request_id, _value)


class Series:
    """Gives documents numbers without a hole: a number belongs to a document's key, and asking again gives the same one.

    Store the document without a number, take a number for the document's own id, store the number, and confirm it. Every
    call may be made again: it has no request id, and one that failed without being refused may have happened.
    """

    def __init__(self, client: Client, name: str) -> None:
        self._client, self._name = client, name

    def take(
        self, keys: Iterable[str], *, values: Optional[Dict[str, str]] = None, date: str = "", label: str = "",
        expires_in: float = 0.0,
    ) -> List[DocumentNumber]:
        """Gives each of 1 to 1,000 keys a number, or none. A key that has one keeps it, also a voided one: look at its state.

        Args:
            values: Those of the format, as ``{"branch": "BERLIN"}``.
            date: The document's, as ``2026-12-31``; empty is the present day in the series' zone.
            label: Stored with each new number, at most 64 bytes.
            expires_in: Replaces the definition's, in seconds, if it is not 0: at
                least 60, and at most the definition's.
        """
        request = {"keys": _listed(keys), "values": values or {}, "date": date, "label": label}
        if expires_in:
            request["expiresIn"] = f"{expires_in:.9f}s"
        return self._numbers("TakeNumbers", request)

    def confirm(self, numbers: Iterable[Union[str, DocumentNumber]]) -> List[DocumentNumber]:
        """Makes the numbers of documents final, or none. A plain key means whatever number it has."""
        return self._numbers("ConfirmNumbers", {"keys": _bound(numbers)})

    def void(self, numbers: Iterable[Union[str, DocumentNumber]], reason: str) -> List[DocumentNumber]:
        """Says that open numbers belong to no document, and why, in 1 to 128 bytes."""
        return self._numbers("VoidNumbers", {"keys": _bound(numbers), "reason": reason})

    def release(self, numbers: Iterable[Union[str, DocumentNumber]]) -> List[DocumentNumber]:
        """Gives open numbers back: another key may get them, or they are voided, as the series' policy says."""
        return self._numbers("ReleaseNumbers", {"keys": _bound(numbers)})

    def find(self, key: str, *, stale: bool = False) -> DocumentNumber:
        """Reads the number of a key. Raises NotFoundError if it has none."""
        request = {"series": self._name, "key": key, "consistency": _consistency(stale)}
        return self._client._invoke("SeriesService/WhoHas", request, lambda answer: _document_number(answer["number"]))

    def _numbers(self, method: str, request: Dict[str, Any]) -> List[DocumentNumber]:
        request["series"] = self._name
        return self._client._invoke(
            f"SeriesService/{method}", request, lambda answer: [_document_number(n) for n in answer["numbers"]], changes=True)


def _listed(keys: Iterable[Any]) -> List[Any]:
    if isinstance(keys, (str, bytes, DocumentNumber)):  # Its parts are no keys.
        raise TypeError(f"a list of keys is expected, not a {type(keys).__name__}")
    return list(keys)


def _bound(numbers: Iterable[Union[str, DocumentNumber]]) -> List[Dict[str, str]]:
    return [{"key": n} if isinstance(n, str) else {"key": n.key, "number": str(n.number)} for n in _listed(numbers)]


def _ids(answer: Dict[str, Any]) -> List[str]:
    return answer["ids"] or [
        f"{b['prefix']}{number:0{b['width']}d}{b['suffix']}"
        for b in answer["blocks"] for number in range(int(b["first"]), int(b["last"]) + 1)
    ]


def _value(answer: Dict[str, Any]) -> int:
    return int(answer["value"])


def _range(r: Dict[str, Any]) -> Range:
    return Range(
        r["prefix"], r["nodeTag"], int(r["low"]), int(r["high"]), int(r["size"]), r["rangeAt"] or "", r["fromReserve"], r["token"],
    )


def _document_number(n: Dict[str, Any]) -> DocumentNumber:
    state = n["state"].replace("NUMBER_STATE_", "").lower()
    return DocumentNumber(
        n["key"], n["text"], tuple(n["scope"]), int(n["number"]), state, n["overdue"], n["date"], n["label"], n["reason"],
    )


class HiLo:
    """Gives the ids of one collection, without a call for most of them. Made by Client.hilo, and meant to be shared.

    The next range is fetched in the background once half of the current one is used.
    """

    def __init__(self, client: Client, tag: str, separator: str, first_size: int) -> None:
        self._client, self._tag, self._separator, self._first_size = client, tag, separator, first_size
        self._closed = self._returned = False
        self._begin()

    def _begin(self) -> None:
        """Holds no range. Also after a fork."""
        self._changed = threading.Condition()
        self._current: Optional[Range] = None
        self._next = 0  # The next number of current.
        self._ahead: Optional[Range] = None
        self._fetching = False
        self._request: Dict[str, Any] = {"size": self._first_size}  # The next one. It belongs to the fetch in progress.
        self._failures = 0
        self._error: Optional[Exception] = None  # That of the newest failure.
        self._pause, self._resume = _FETCH_PAUSE, 0.0

    def next(self) -> HiLoNumber:
        """Takes a number. It waits only if none is left of the ranges at hand."""
        return self._take(1)[0]

    def next_id(self) -> str:
        """Takes a number and returns its id, for example ``users/65-A``."""
        return str(self.next())

    def next_ids(self, n: int) -> List[str]:
        """Takes n numbers and returns their ids. They need not be consecutive. An error has the ids that were taken before it."""
        _check_count(n)
        ids: List[str] = []
        try:
            while len(ids) < n:
                ids.extend(map(str, self._take(n - len(ids))))
        except IdnodeError as error:
            error.ids = ids
            raise
        return ids

    def close(self) -> None:
        """Returns the unused numbers to the cluster. Afterwards the handle raises ClosedError."""
        self._close(time.monotonic() + self._client._timeout)

    def _take(self, n: int) -> List[HiLoNumber]:
        """Takes 1 to n numbers."""
        with self._changed:
            failures = self._failures
            while True:
                if self._closed:
                    raise ClosedError("the handle is closed", code="canceled", reason="CLIENT_CLOSED")
                r, first = self._current, self._next
                if r and first <= r.high:
                    self._next = min(first + n, r.high + 1)
                    if self._next > r.low + (r.high - r.low) // 2 and time.monotonic() >= self._resume:
                        self._fetch()
                    return [HiLoNumber(i, r.prefix, r.node_tag) for i in range(first, self._next)]
                if self._ahead:
                    self._current, self._next, self._ahead = self._ahead, self._ahead.low, None
                elif self._failures != failures and self._error:
                    raise copy.copy(self._error) from self._error.__cause__  # Each caller gets an error, and traceback, of its own.
                else:
                    self._fetch()
                    if self._fetching:
                        self._changed.wait()

    def _fetch(self) -> None:
        """Starts to fetch a range unless there is one, or one is coming. The caller holds the lock."""
        if not self._fetching and not self._ahead:
            self._fetching = True
            try:
                threading.Thread(target=self._fetch_one, name=f"idnode-hilo-{self._tag}", daemon=True).start()
            except RuntimeError as error:  # No thread can be started.
                self._fetched(None, error)

    def _fetch_one(self) -> None:
        got: Optional[Range] = None
        error: Optional[Exception] = None
        try:
            ask = functools.partial(self._client.next_range, self._tag, separator=self._separator)
            try:
                got = ask(**self._request)
            except RequestIdExpiredError:
                if not self._request.get("request_id"):
                    raise
                got = ask(**{**self._request, "request_id": ""})  # Nobody will know what the one asked for again was.
            last_max = self._request.get("last_max", 0)
            if got.low < 1 or got.high < got.low or (got.low <= last_max and not got.from_reserve):
                raise IdnodeError(f"a wrong range: {got.low} to {got.high} after {last_max}")
            self._request = {"last_size": got.size, "last_at": got.at, "last_max": max(last_max, got.high)}
        except Exception as caught:  # The callers that wait must have it, whatever it is.
            error = caught
            # What may have been granted is asked for again, and is no hole then.
            again = caught.request_id if isinstance(caught, OutcomeUnknownError) else ""
            self._request = {**self._request, "request_id": again}
        with self._changed:
            self._fetched(got, error)

    def _fetched(self, got: Optional[Range], error: Optional[Exception]) -> None:
        """Notes how a fetch ended. The caller holds the lock."""
        self._fetching = False
        if got and not error:
            self._ahead, self._pause = got, _FETCH_PAUSE
        else:
            self._failures, self._error = self._failures + 1, error
            self._resume = time.monotonic() + self._pause * random.uniform(0.5, 1)
            self._pause = min(2 * self._pause, _LONGEST_FETCH_PAUSE)
        self._changed.notify_all()

    def _close(self, deadline: float) -> None:
        with self._changed:
            if self._closed:  # The first to close gives the numbers back; others wait for it.
                self._changed.wait_for(lambda: self._returned, max(deadline - time.monotonic(), 0))
                return
            self._closed = True
            self._changed.notify_all()
            # A range that is on its way is given back too.
            self._changed.wait_for(lambda: not self._fetching, max(deadline - time.monotonic(), 0))
            held = [(self._current, self._next)] if self._current and self._next <= self._current.high else []
            held += [(self._ahead, self._ahead.low)] if self._ahead else []
        try:
            # Only the newest range of a tag can be given back. The stack begins with the last, which is the one ahead.
            with contextlib.ExitStack() as stack:
                for r, unused in held:
                    stack.callback(self._client.return_range, self._tag, r, unused - 1, _deadline=deadline)
        finally:
            with self._changed:
                self._returned = True
                self._changed.notify_all()


# The words and rules are those of pluralize (MIT licence), by which the Go client names collections.
_IRREGULAR = dict(pair.split(":") for pair in (
    "i:we me:us he:they she:they them:them myself:ourselves yourself:yourselves itself:themselves herself:themselves "
    "himself:themselves themself:themselves is:are was:were has:have this:these that:those my:our its:their his:their "
    "her:their echo:echoes dingo:dingoes volcano:volcanoes tornado:tornadoes torpedo:torpedoes genus:genera "
    "viscus:viscera stigma:stigmata stoma:stomata dogma:dogmata lemma:lemmata schema:schemata anathema:anathemata "
    "ox:oxen axe:axes die:dice yes:yeses foot:feet eave:eaves goose:geese tooth:teeth quiz:quizzes human:humans "
    "proof:proofs carve:carves valve:valves looey:looies thief:thieves groove:grooves pickaxe:pickaxes "
    "passerby:passersby canvas:canvases sms:sms"
).split())
_UNCOUNTABLE = frozenset((
    "adulthood advice agenda aid aircraft alcohol ammo analytics anime athletics audio bison blood bream buffalo butter "
    "carp cash chassis chess clothing cod commerce cooperation corps debris diabetes digestion elk energy equipment "
    "excretion expertise firmware flounder fun gallows garbage graffiti hardware headquarters health herpes highjinks "
    "homework housework information jeans justice kudos labour literature machinery mackerel mail media mews moose music "
    "mud manga news only personnel pike plankton pliers police pollution premises rain research rice salmon scissors "
    "series sewage shambles shrimp software staff swine tennis traffic transportation trout tuna wealth welfare whiting "
    "wildebeest wildlife you"
).split())
_PLURALS = [(re.compile(rule, re.IGNORECASE), plural) for rule, plural in (  # The first that matches decides.
    (r"(pok[eé]mon|[^aeiou]ese|deer|fish|measles|o[iu]s|pox|sheep)$", r"\1"), (r"^thou$", "you"), (r"m[ae]n$", "men"),
    (r"(eaux)$", r"\1"), (r"(child)(?:ren)?$", r"\1ren"), (r"(pe)(?:rson|ople)$", r"\1ople"),
    (r"\b((?:tit)?m|l)(?:ice|ouse)$", r"\1ice"), (r"(matr|cod|mur|sil|vert|ind|append)(?:ix|ex)$", r"\1ices"),
    (r"(x|ch|ss|sh|zz)$", r"\1es"), (r"([^ch][ieo][ln])ey$", r"\1ies"), (r"([^aeiouy]|qu)y$", r"\1ies"),
    (r"(?:(kni|wi|li)fe|(ar|l|ea|eo|oa|hoo)f)$", r"\1\2ves"), (r"sis$", "ses"),
    (r"(apheli|hyperbat|periheli|asyndet|noumen|phenomen|criteri|organ|prolegomen|hedr|automat)(?:a|on)$", r"\1a"),
    (r"(agend|addend|millenni|dat|extrem|bacteri|desiderat|strat|candelabr|errat|ov|symposi|curricul|automat|quor)"
     r"(?:a|um)$", r"\1a"),
    (r"(her|at|gr)o$", r"\1oes"), (r"(seraph|cherub)(?:im)?$", r"\1im"), (r"(alumn|alg|vertebr)(?:a|ae)$", r"\1ae"),
    (r"(alumn|syllab|vir|radi|nucle|fung|cact|stimul|termin|bacill|foc|uter|loc|strat)(?:us|i)$", r"\1i"),
    (r"([^l]ias|[aeiou]las|[ejzr]as|[iu]am)$", r"\1"), (r"(e[mn]u)s?$", r"\1s"),
    (r"(alias|[^aou]us|t[lm]as|gas|ris)$", r"\1es"), (r"(ax|test)is$", r"\1es"), (r"([^\x00-\x7f])$", r"\1"),
    (r"s?$", "s"),
)]


@functools.lru_cache(maxsize=1024)
def collection_of(name: str) -> str:
    """The HiLo tag for documents of a class with this name: Company → companies, OrderLine → OrderLines."""
    collection = _plural(name)
    return collection if sum(c.isupper() for c in collection) > 1 else collection.lower()


def _plural(word: str) -> str:
    token = word.lower()
    if token in _IRREGULAR.values() or token in _UNCOUNTABLE:
        return word if token in _UNCOUNTABLE else _like(word, token)
    if token in _IRREGULAR:
        return _like(word, _IRREGULAR[token])
    rule, plural = next((rule, plural) for rule, plural in _PLURALS if rule.search(word))
    return rule.sub(lambda m: _like(m.group() or word[-1:], m.expand(plural)), word, count=1)


def _like(word: str, token: str) -> str:
    """token in the case of word."""
    if word == token or word == word.lower():
        return token if word == token else token.lower()
    return token.upper() if word == word.upper() else token.capitalize() if word[:1].isupper() else token.lower()
