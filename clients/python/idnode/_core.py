"""The client, as coroutines over threads or an event loop. ``idnode.Client`` and ``idnode.aio.Client`` are made of it."""

from __future__ import annotations

import functools
import os
import random
import re
import secrets
import socket
import ssl
import sys
import time
import warnings
import weakref
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any, AsyncIterator, Callable, Iterable, Sequence, TypeVar

from . import _checks as checks
from ._config import TLS
from ._errors import REFUSED, UNKNOWN, AnyRequestId, ClosedError, Failure, IdnodeError, RequestId, closed, invalid
from ._events import Event as Told
from ._events import Observe, teller
from ._handle import Handle
from ._hilo import HiLo, Range
from ._http import Event, Runtime
from ._locks import Lock, Single
from ._names import tag_of
from ._nodes import GREETED, Node, Router, log
from ._snowflake import Snowflake, time_of

__version__ = "1.0.0"
T = TypeVar("T")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.025, 0.4  # Between tries, once every endpoint had its turn; in seconds.
_MAX_OVERLOADS = 3  # More tries would only keep an overload going.
_CLOSERS = 16  # How many handles are closed side by side.


@dataclass(frozen=True)
class Counter:
    """An identity in a listing: its folded name, and the last value taken."""

    name: str
    value: int


@dataclass(frozen=True)
class ValueBlock:
    """Consecutive values of an identity, first and last included."""

    first: int
    last: int


@dataclass(frozen=True)
class DocumentNumber:
    """The number of a document."""

    key: str
    text: str  #: The number in the series' format.
    scope: tuple[str, ...]  #: The period, where numbers begin again, and the values of the format.
    number: int  #: The number in its scope.
    state: str  #: ``open``, ``confirmed``, ``voided``, ``released`` or ``unknown``.
    overdue: bool  #: It is open, and its time has ended.
    date: str  #: The document's, as ``2026-12-31``.
    taken: datetime | None  #: When the key got it, by the leader's clock, in UTC; None if it has no key.
    expires: datetime | None  #: When its time ends, in UTC; None means never.
    label: str
    reason: str  #: That of a voided number.
    note: str  #: That of the range which an authority allotted.


class Client(Single):
    """The calls of a client."""

    def __init__(
        self, runtime: Callable[[], Runtime], endpoints: Sequence[str], database: str, tls: ssl.SSLContext | TLS | None, timeout: float,
        try_timeout: float, label: str, traceparent: Callable[[], str] | None, cluster_id: str, max_connections: int,
        fail_fast_after: float | None, observe: Observe | None,
    ) -> None:
        self._most = checks.connections(max_connections)
        self._fail_fast_after = None if fail_fast_after is None else checks.timeout(fail_fast_after)
        if tls is not None and not isinstance(tls, TLS) and not hasattr(tls, "wrap_socket"):
            raise ValueError(f"tls is an ssl.SSLContext or a TLS, as TLS(ca=\"ca.crt\"), not {tls!r}")
        self._tell = teller(checks.function("observe", observe))
        self._database, self._timeout, self._try_timeout = database, checks.timeout(timeout), checks.timeout(try_timeout)
        self._label = checks.label(label, socket.gethostname(), "".join(sys.argv[:1]))
        self._traceparent = checks.function("traceparent", traceparent)
        self._endpoints, self._tls, self._make_runtime = checks.endpoints(endpoints), tls, runtime
        self._cluster_id = checks.cluster_id(cluster_id)
        self._closing = False
        self._hilos: dict[tuple[str, str, str], HiLo] = {}
        self._snowflakes: dict[tuple[str, str], Snowflake] = {}
        self._begin()
        _clients.add(self)

    def _begin(self) -> None:
        """Also after a fork: the child has none of the threads, and the ranges and connections are its parent's."""
        self._lock = Lock()
        self._runtime = self._make_runtime()
        agent = f"idnode-python/{__version__}"
        self._router = Router(self._runtime, self._endpoints, self._tls, agent, self._cluster_id, self._most, self._tell)
        self._router.closed = self._closing
        for handle in self._handles():
            handle._begin()

    def __repr__(self) -> str:
        return f"<idnode client of {self._router!r}>"

    def __del__(self) -> None:
        router = getattr(self, "_router", None)  # The constructor may have failed.
        if router and router.newest and not self._closing:
            warnings.warn(f"{self!r} was not closed: the unused numbers of its ranges are lost", ResourceWarning, source=self)

    def set_endpoints(self, endpoints: Sequence[str]) -> None:
        """Replaces the endpoints: calls that begin now go to the new ones. With asyncio it is called in the client's loop."""
        self._runtime.check()
        given = checks.endpoints(endpoints)
        self._router.set_endpoints(given)
        self._endpoints = given

    def _handles(self) -> list[Handle]:
        return [*self._hilos.values(), *self._snowflakes.values()]

    async def next(
        self, template: str, *, separator: str = "", claim: bool = False, request_id: AnyRequestId = None, database: str = "",
        timeout: float | None = None,
    ) -> str:
        """Makes an id: ``users/`` a server-side id, ``users|`` an identity, empty a GUID, else the id itself.

        The options are those of next_n.
        """
        ids = await self.next_n(template, 1, separator=separator, claim=claim, request_id=request_id, database=database, timeout=timeout)
        return ids[0]

    async def next_n(
        self, template: str, n: int, *, separator: str = "", claim: bool = False, request_id: AnyRequestId = None, database: str = "",
        timeout: float | None = None,
    ) -> list[str]:
        """Makes n ids, 1 to 1,000,000, from a template in one call.

        Args:
            claim: Record the id in the cluster as taken; for finished ids only.
            request_id: The caller's own, or that of an error: the same call with it counts once. For identities and claims;
                with other templates it is an InvalidError, and nothing is sent.
            database: Whose ids are given, if it is not the client's.
            timeout: Replaces the client's, in seconds.
        """
        checks.count(n)
        checks.text("template", template)
        numbered = template.endswith("|") or template.endswith(separator or "/")
        semantic = not numbered and bool(template.strip())
        if semantic:
            checks.id_(template)
        counted = template.endswith("|") or (semantic and claim)
        if request_id is not None and not counted:
            raise invalid("INVALID_OPTION", "", "request_id does not apply to this template")
        request = {
            "template": template, "separator": separator, "count": n, "claim": claim, "blocksOnly": numbered and n > 1,
            "database": database,
        }
        if counted:
            ids = await self._count_once("Generate", request, request_id, _ids, timeout)
        else:
            # What these take comes from a supply in which holes do not matter.
            ids = await self._invoke("IdsService/Generate", request, _ids, timeout, to_leader=False)
        if len(ids) != n:
            raise IdnodeError(f"asked for {n} ids, got {len(ids)}")
        return ids

    def identity(self, name: str, *, database: str = "") -> Identity:
        """The identity with this name. It exists once a value was taken."""
        return Identity(self, checks.text("name", name), database)

    async def identities(
        self, prefix: str = "", *, stale: bool = False, database: str = "", timeout: float | None = None,
    ) -> AsyncIterator[Counter]:
        """Lists the identities whose folded names begin with prefix, in order. The timeout is that of each page of 1,000."""
        def read(page: dict[str, Any]) -> list[Counter]:
            return [Counter(i["name"], int(i["value"])) for i in page["identities"]]

        async for counter in self._pages("ListIdentities", prefix, stale, database, timeout, read):
            yield counter

    def series(self, name: str, *, database: str = "") -> Series:
        """The series of document numbers with this name. ``idnode series define`` defines it."""
        return Series(self, checks.text("name", name), database)

    async def claim(
        self, id: str, *, separator: str = "", request_id: AnyRequestId = None, database: str = "", timeout: float | None = None,
    ) -> None:
        """Records a finished id as the caller's. The first claim wins; others raise IdClaimedError."""
        checks.id_(id)
        await self._count_once("Claim", {"id": id, "separator": separator, "database": database}, request_id, bool, timeout)

    async def release(self, id: str, *, request_id: AnyRequestId = None, database: str = "", timeout: float | None = None) -> None:
        """Gives a claimed id free."""
        await self._count_once("Release", {"id": checks.text("id", id), "database": database}, request_id, bool, timeout)

    async def claims(
        self, prefix: str = "", *, stale: bool = False, database: str = "", timeout: float | None = None,
    ) -> AsyncIterator[str]:
        """Lists the claimed ids that begin with prefix, folded, in order. The timeout is that of each page of 1,000."""
        async for id in self._pages("ListClaims", prefix, stale, database, timeout, lambda page: list(page["ids"])):
            yield id

    def hilo(self, tag: str, *, separator: str = "", first_size: int = 0, database: str = "") -> HiLo:
        """The handle of a collection's tag, which is made once, and shared until it is closed."""
        key = (database or self._database, checks.text("tag", tag), separator or "/")
        checks.whole("first_size", first_size)
        with self._lock:
            if self._closing:
                raise closed("client")
            handle = self._hilos.get(key)
            if not handle or handle._closed:
                handle = self._hilos[key] = HiLo(self, tag, separator, first_size, database)
            if first_size and handle._first_size not in (0, first_size):
                raise ValueError(f"the handle of {tag!r} is there already, with first_size={handle._first_size}")
            return handle

    def snowflake(self, pool: str, *, database: str = "") -> Snowflake:
        """The handle of a pool of Snowflake workers, which is made once, and shared until it is closed."""
        key = (database or self._database, checks.text("pool", pool))
        with self._lock:
            if self._closing:
                raise closed("client")
            handle = self._snowflakes.get(key)
            if not handle or handle._closed:
                handle = self._snowflakes[key] = Snowflake(self, pool, database)
            return handle

    async def id_for(self, kind: type, /, *, database: str = "", timeout: float | None = None) -> str:
        """The next HiLo id for documents of a class, as RavenDB's clients name them: OrderLine → OrderLines/1-A."""
        if not isinstance(kind, type):
            raise TypeError(f"a class is expected, not {kind!r}")
        return await self.hilo(tag_of(kind.__name__), database=database).next_id(timeout=timeout)

    async def next_range(
        self, tag: str, *, separator: str = "", size: int = 0, last_size: int = 0, last_at: datetime | None = None, last_max: int = 0,
        request_id: AnyRequestId = None, database: str = "", timeout: float | None = None,
    ) -> Range:
        """Reserves the next range of a tag. Most programs are better off with hilo."""
        request: dict[str, Any] = {
            "tag": checks.text("tag", tag), "separator": separator, "size": size, "lastSize": last_size, "lastMax": str(last_max),
            "label": self._label, "database": database,
        }
        if last_at is not None:
            if not isinstance(last_at, datetime):
                raise TypeError(f"last_at is a datetime, not {last_at!r}")
            request["lastRangeAt"] = last_at.astimezone(timezone.utc).isoformat()
        return await self._count_once("NextRange", request, request_id, _range, timeout)

    async def return_range(self, tag: str, range: Range, last: int, /, *, database: str = "", timeout: float | None = None) -> bool:
        """Gives the numbers of a range above last back; last is low - 1 if none was used. False if they stay a hole: the range is not the newest."""
        return await self._give_back(tag, range, last, database, self._deadline(timeout))

    async def _give_back(self, tag: str, r: Range, last: int, database: str, deadline: float) -> bool:
        request = {"tag": tag, "low": str(r.low), "high": str(r.high), "last": str(last), "token": r.token, "database": database}
        return await self._count_once("ReturnRange", request, None, lambda answer: bool(answer["returned"]), deadline=deadline)

    async def close(self) -> None:
        """Gives back what all handles hold. It takes no longer than the client's timeout.

        An error says that something could not be given back; the client is closed all the same.
        """
        self._runtime.check()
        self._router.check()
        with self._lock:
            for handle in self._handles():
                handle._lock.check()
            self._closing, handles = True, deque(self._handles())
        deadline = self._deadline(None)
        failed: list[IdnodeError] = []

        async def close_some(done: Event) -> None:
            try:
                with suppress(IndexError):  # At the end of the handles.
                    while True:
                        try:
                            await handles.pop()._close(deadline)
                        except IdnodeError as error:
                            failed.append(error)
            finally:
                done.set()

        ends: list[Event] = []
        try:
            with suppress(RuntimeError):  # No thread can be started, as at the end of the program.
                for _ in range(min(len(handles), _CLOSERS) - 1):
                    done = self._runtime.event()
                    self._runtime.spawn(close_some(done), "idnode-close")
                    ends.append(done)
            if handles:
                await close_some(self._runtime.event())
            for done in ends:
                await done.wait(None)
        finally:
            self._router.close()
            await self._runtime.close()
        if failed:
            raise failed[0]

    async def _pages(
        self, method: str, prefix: str, stale: bool, database: str, timeout: float | None, read: Callable[[dict[str, Any]], list[T]],
    ) -> AsyncIterator[T]:
        request = {
            "prefix": checks.text("prefix", prefix), "pageSize": 1000, "consistency": _consistency(stale), "pageToken": "", "database": database,
        }
        more = True
        while more:
            found, request["pageToken"] = await self._invoke(
                f"IdsService/{method}", request, lambda page: (read(page), page["nextPageToken"]), timeout, to_leader=not stale)
            for one in found:
                yield one
            more = bool(request["pageToken"])

    def _deadline(self, timeout: float | None) -> float:
        return time.monotonic() + (self._timeout if timeout is None else checks.timeout(timeout))

    async def _count_once(
        self, method: str, request: dict[str, Any], request_id: AnyRequestId, read: Callable[[dict[str, Any]], T],
        timeout: float | None = None, *, deadline: float | None = None,
    ) -> T:
        own = request_id is None
        if not isinstance(request_id, RequestId):
            request_id = RequestId(secrets.token_hex(16) if request_id is None else request_id)
        if not checks.text("request_id", request_id.id):
            raise invalid("INVALID_REQUEST_ID", "request_id", "the request id is empty")
        return await self._invoke(f"IdsService/{method}", request, read, timeout, request_id, own=own, deadline=deadline)

    async def _invoke(
        self, method: str, request: dict[str, Any], read: Callable[[dict[str, Any]], T], timeout: float | None = None,
        request_id: RequestId | None = None, *, own: bool = False, changes: bool = False, to_leader: bool = True,
        deadline: float | None = None,
    ) -> T:
        """Makes tries at changing nodes until one gives a final answer or the time is over.

        With own, no other call has sent the request id. With changes, the call may be repeated without one, but what a
        lost try has done matters.
        """
        self._runtime.check()
        called = time.monotonic()
        deadline = self._deadline(timeout) if deadline is None else deadline
        request = {**request, "database": request["database"] or self._database}
        # Whoever names an index has made the call before: until the cluster decides it, its outcome is what it was.
        unknown = repeats = request_id is not None and request_id.since is not None
        if self._fail_fast_after is not None:
            try:
                self._router.check_failing(self._fail_fast_after)
            except Failure as failure:
                raise failure.error(unknown, request_id) from None
        traceparent = self._traceparent() if self._traceparent else ""
        if traceparent and not re.fullmatch("[0-9a-f-]{0,255}", traceparent):
            raise ValueError(f"not a traceparent: {traceparent!r}")
        await self._router.prepare(deadline, to_leader, request_id is not None)
        node: Node | None = None
        told: Failure | None = None
        tries = overloads = foreign = 0
        lost = False  # A try of this call may have taken effect.
        while True:
            try:
                node = self._router.route(to_leader, node)
            except ClosedError:
                if unknown and told:  # A try before may have taken effect.
                    raise told.error(unknown, request_id)
                raise
            began, asked = time.monotonic(), 0.0
            silent = functools.partial(self._router.silent, node, began)
            ended: BaseException | None = None
            try:
                await node.enter(deadline, to_leader)
                try:
                    cluster = self._router.own()
                    left = self._left(deadline)
                    asked = time.monotonic()
                    if not cluster or not node.greeted():  # Whatever it is, it gets no call.
                        await self._router.greet(node, left, silent)
                        cluster = self._router.own()
                        if not cluster:
                            raise Failure(f"{node.address} is no endpoint any more, and no other has told its cluster", "unavailable", "NO_ENDPOINT")
                    if request_id:
                        # The first try says it too: the network may hold it up until its retry was forgotten. A try that certainly
                        # did nothing is none.
                        if not unknown:
                            request_id = replace(request_id, since=self._router.newest or None)
                        request["requestId"] = _wire(request_id)
                    (got, seen), _ = await node.call(
                        method, request, self._left(deadline), lambda answer: (read(answer), int(answer["logIndex"])), silent,
                        traceparent, cluster)
                finally:
                    node.leave(to_leader)
                node.suspect_until, node.greeted_until = 0.0, time.monotonic() + GREETED
                self._router.saw(seen)
                return got
            except Failure as failure:
                last = failure
                last.late = last.late and self._router.heard(called)
                ended = failure.error(last.effect() == UNKNOWN and (changes or request_id is not None), request_id)
                if asked and last.reason in ("", "NO_ENDPOINT"):
                    self._router.unanswered(asked)
            except BaseException as error:
                ended = error
                if request_id:
                    log.info("%s ended with %s, and may have taken effect (request id %s)", method, type(error).__name__, request_id)
                raise
            finally:
                self._tell(Told("try", node.address, tries + 1, time.monotonic() - began, ended))
            tries += 1
            effect, overloaded = last.effect(), last.reason == "OVERLOADED"
            matters = effect == UNKNOWN and (changes or request_id is not None)
            if told is None or matters or last.tells() == 2 or last.tells() > told.tells():
                told = last
            lost = lost or matters
            unknown = lost or repeats and not last.decided()
            if request_id and unknown:
                request_id = replace(request_id, since=request_id.since or 0)
            # The index named was forgotten before the first try came: begin again, once, with a newer one. No try took effect, and
            # a copy of one that comes late names the old index.
            if request_id and own and not unknown and last.reason == "REQUEST_ID_EXPIRED":
                own = False
                if await self._router.latest(deadline, 0, lambda look: look.done) > (request_id.since or 0):
                    node = told = None
                    continue
            overloads += overloaded
            # What answers is no node: a mistake if none ever did, or it is another cluster's. Else a proxy may say so for a while.
            mistaken = last.reason == "OTHER_CLUSTER" or not self._router.newest
            foreign = foreign + 1 if last.foreign and effect != UNKNOWN and mistaken else 0
            pause = max(last.pause, _FIRST_PAUSE) if overloaded else _pause(tries - self._router.size)
            final = effect == REFUSED or overloads > _MAX_OVERLOADS or foreign >= self._router.size
            if final or time.monotonic() + pause >= deadline:
                raise told.error(unknown, request_id)
            log.info("%s failed at %s, again in %.3f s: %s (request id %s)", method, node.address, pause, last.message, request_id)
            if not overloaded:
                self._router.failed(node)
            await self._runtime.sleep(pause)

    def _left(self, deadline: float) -> float:
        """The time of a try that begins now."""
        left = min(self._try_timeout, deadline - time.monotonic())
        if left <= 0:
            raise Failure("the time was over before a node could be asked", "unavailable", "NO_ENDPOINT", late=True)
        return left


_clients: weakref.WeakSet[Client] = weakref.WeakSet()


def _forked() -> None:
    for client in list(_clients):
        if isinstance(client._tls, TLS):
            client._tls._unlock()
        client._begin()


if hasattr(os, "register_at_fork"):  # Not on Windows.
    os.register_at_fork(after_in_child=_forked)


class Identity:
    """A counter agreed by the cluster: it gives 1, 2, 3 … without holes. Made by Client.identity, not by its constructor."""

    def __init__(self, client: Client, name: str, database: str) -> None:
        self._client, self._request = client, {"name": name, "database": database}

    async def next(self, *, separator: str = "", request_id: AnyRequestId = None, timeout: float | None = None) -> int:
        """Takes the next value."""
        return (await self.next_n(1, separator=separator, request_id=request_id, timeout=timeout))[0].first

    async def next_n(self, n: int, *, separator: str = "", request_id: AnyRequestId = None, timeout: float | None = None) -> list[ValueBlock]:
        """Takes the next n values: one block, or several where claimed ids lie between."""
        checks.count(n)
        request = {**self._request, "count": n, "separator": separator}
        return await self._client._count_once("NextIdentity", request, request_id, _blocks, timeout)

    async def get(self, *, stale: bool = False, timeout: float | None = None) -> int:
        """Reads the last value taken. Raises NotFoundError if none ever was."""
        request = {**self._request, "consistency": _consistency(stale)}
        return await self._client._invoke(
            "IdsService/GetIdentity", request, lambda answer: int(answer["identity"]["value"]), timeout, to_leader=not stale)

    async def seed(
        self, value: int, *, force: bool = False, expected: int | None = None, request_id: AnyRequestId = None,
        timeout: float | None = None,
    ) -> int:
        """Raises the last value taken to value, and returns what it is now.

        Args:
            force: Set exactly value, also a lower one: values may then come twice.
            expected: Only if this is the current value; otherwise ConcurrencyError.
        """
        request = {**self._request, "value": checks.whole("value", value), "force": force}
        if expected is not None:
            request["expected"] = checks.whole("expected", expected)
        return await self._client._count_once("SeedIdentity", request, request_id, _value, timeout)

    async def delete(self, *, forget: bool = False, request_id: AnyRequestId = None, timeout: float | None = None) -> int:
        """Hides the identity and returns its last value. With forget it starts at 1 again, and values come twice."""
        return await self._client._count_once("DeleteIdentity", {**self._request, "forget": forget}, request_id, _value, timeout)


class Series:
    """Gives documents numbers without a hole: a number belongs to a document's key, and asking again gives the same one.

    Store the document without a number, take a number for the document's own id, store the number, and confirm it. Every
    call may be made again: it has no request id, and one that failed without being refused may have happened. Made by Client.series, not by its constructor.
    """

    def __init__(self, client: Client, name: str, database: str) -> None:
        self._client, self._request = client, {"series": name, "database": database}

    async def take(
        self, keys: Iterable[str], *, values: dict[str, str] | None = None, date: str = "", label: str = "",
        expires_in: float = 0.0, number: int = 0, because: str = "", timeout: float | None = None,
    ) -> list[DocumentNumber]:
        """Gives each of 1 to 1,000 keys a number, or none. A key that has one keeps it, also a voided one: look at its state.

        Args:
            values: Those of the format, as ``{"branch": "BERLIN"}``.
            date: The document's, as ``2026-12-31``; empty is the present day in the series' zone.
            label: Stored with each new number, at most 64 bytes.
            expires_in: Replaces the definition's, in seconds, if it is not 0: at
                least 60, and at most the definition's.
            number: What the document of the only key has already, from another tool or by hand, if it is not 0. It
                becomes confirmed; numbers that it passes over are voided.
            because: Why a number is entered, or those that it passes over are voided, in 1 to 128 bytes.
        """
        request: dict[str, Any] = {"keys": _listed(keys), "values": values or {}, "date": checks.text("date", date), "label": label}
        entered = {"number": checks.whole("number", number), "because": checks.text("because", because)}
        if number or because:
            request.update(entered)
        if expires_in != 0:
            request["expiresIn"] = checks.duration("expires_in", expires_in)
        return await self._numbers("TakeNumbers", request, timeout)

    async def confirm(self, numbers: Iterable[str | DocumentNumber], *, timeout: float | None = None) -> list[DocumentNumber]:
        """Makes the numbers of documents final, or none. A plain key means whatever number it has."""
        return await self._numbers("ConfirmNumbers", {"keys": _bound(numbers)}, timeout)

    async def void(self, numbers: Iterable[str | DocumentNumber], reason: str, *, timeout: float | None = None) -> list[DocumentNumber]:
        """Says that open numbers belong to no document, and why, in 1 to 128 bytes."""
        return await self._numbers("VoidNumbers", {"keys": _bound(numbers), "reason": checks.text("reason", reason)}, timeout)

    async def release(self, numbers: Iterable[str | DocumentNumber], *, timeout: float | None = None) -> list[DocumentNumber]:
        """Gives open numbers back: another key may get them, or they are voided, as the series' policy says."""
        return await self._numbers("ReleaseNumbers", {"keys": _bound(numbers)}, timeout)

    async def find(self, key: str, *, stale: bool = False, timeout: float | None = None) -> DocumentNumber:
        """Reads the number of a key. Raises NotFoundError if it has none."""
        request = {**self._request, "key": checks.text("key", key), "consistency": _consistency(stale)}
        return await self._client._invoke(
            "SeriesService/WhoHas", request, lambda answer: _document_number(answer["number"]), timeout, to_leader=not stale)

    async def _numbers(self, method: str, request: dict[str, Any], timeout: float | None) -> list[DocumentNumber]:
        def read(answer: dict[str, Any]) -> list[DocumentNumber]:
            return [_document_number(n) for n in answer["numbers"]]

        return await self._client._invoke(f"SeriesService/{method}", {**request, **self._request}, read, timeout, changes=True)


def _wire(request_id: RequestId) -> dict[str, str]:
    return {"id": request_id.id, **({} if request_id.since is None else {"retrySince": str(request_id.since)})}


def _pause(round: int) -> float:
    """The time until the next try: none while there are endpoints that were not tried yet."""
    return 0.0 if round < 0 else min(_FIRST_PAUSE * (1 << min(round, 10)), _LONGEST_PAUSE) * random.uniform(0.5, 1)


def _consistency(stale: bool) -> str:
    return "CONSISTENCY_STALE" if stale else "CONSISTENCY_LINEARIZABLE"


def _listed(keys: Iterable[T]) -> list[T]:
    if isinstance(keys, (str, bytes)):  # Their parts are no keys.
        raise TypeError(f"a list of keys is expected, not a {type(keys).__name__}")
    return list(keys)


def _bound(numbers: Iterable[str | DocumentNumber]) -> list[dict[str, str]]:
    bound = list[dict[str, str]]()
    for n in _listed(numbers):
        if not isinstance(n, (str, DocumentNumber)):
            raise TypeError(f"a key or a DocumentNumber is expected, not {n!r}")
        bound.append({"key": n} if isinstance(n, str) else {"key": n.key, "number": str(n.number)})
    return bound


def _ids(answer: dict[str, Any]) -> list[str]:
    return answer["ids"] or [
        f"{b['prefix']}{number:0{b['width']}d}{b['suffix']}"
        for b in answer["blocks"] for number in range(int(b["first"]), int(b["last"]) + 1)
    ]


def _blocks(answer: dict[str, Any]) -> list[ValueBlock]:
    return [ValueBlock(int(b["first"]), int(b["last"])) for b in answer["blocks"]]


def _value(answer: dict[str, Any]) -> int:
    return int(answer["value"])


def _range(r: dict[str, Any]) -> Range:
    return Range(
        r["prefix"], r["nodeTag"], int(r["low"]), int(r["high"]), int(r["size"]), time_of(r.get("rangeAt")), r["fromReserve"], r["token"],
    )


def _document_number(n: dict[str, Any]) -> DocumentNumber:
    state = n["state"].replace("NUMBER_STATE_", "").lower()
    return DocumentNumber(
        n["key"], n["text"], tuple(n["scope"]), int(n["number"]), state, n["overdue"], n["date"], time_of(n.get("taken")),
        time_of(n.get("expires")), n["label"], n["reason"], n["note"],
    )
