"""Snowflake ids, made from leased windows of time."""

from __future__ import annotations

import re
import secrets
import time
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

from . import _checks as checks
from ._errors import IdnodeError, NotFoundError, RequestId, closed, invalid
from ._handle import Calls, Handle
from ._locks import Within

_MOST = 10_000  # Ids of a call.
_AHEAD = 100  # How far the times of ids may run before the clock, in milliseconds.
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True)
class SnowflakeParts:
    """The parts of an id."""

    time: datetime  #: When the unit of the id's time begins, in UTC.
    worker: int
    sequence: int  #: The number of the id within the unit.


class _Layout(NamedTuple):
    epoch: int  # In milliseconds since 1970.
    unit: int  # In milliseconds.
    worker_bits: int
    sequence_bits: int

    def units(self, ms: int) -> int:
        return (ms - self.epoch) // self.unit

    def id(self, place: int, worker: int) -> int:
        """The id of a worker at a place: a time and a sequence number."""
        sequence = place & ((1 << self.sequence_bits) - 1)
        return (place >> self.sequence_bits << self.worker_bits | worker) << self.sequence_bits | sequence

    def parts(self, id: int) -> SnowflakeParts:
        above = id >> self.sequence_bits
        at = _EPOCH + ((above >> self.worker_bits) * self.unit + self.epoch) * _MILLISECOND
        return SnowflakeParts(at, above & ((1 << self.worker_bits) - 1), id & ((1 << self.sequence_bits) - 1))


class _Lease:
    """A worker with its window, in units of the layout. next is the place of the next id."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.layout, self.worker, self.token = _layout(answer["layout"]), int(answer["worker"]), answer["token"]
        begin, self.until = int(answer["from"]), int(answer["until"])
        self.next = begin << self.layout.sequence_bits
        self.renew_at, self.renewing = begin + (self.until - begin) // 2, False


class Snowflake(Handle):
    """Makes the 64-bit ids of a pool, most of them without a call. Made by Client.snowflake, not by its constructor, and meant to be shared.

    Its worker has a window of time, which no other worker of its number overlaps, so no id comes twice. The window is renewed
    in the background at half of its time, while ids are made. ``idnode snowflake define`` defines a pool.
    """

    def __init__(self, client: Calls, pool: str, database: str) -> None:
        self._request = {"pool": pool, "database": database}
        self._layout: _Layout | None = None
        super().__init__(client)

    def _begin(self) -> None:
        super()._begin()
        self._lease: _Lease | None = None
        self._wall = 0  # The wall clock less the monotonic one, in nanoseconds, when it was read last.

    async def next_id(self, *, timeout: float | None = None) -> int:
        """Makes an id. It waits for a lease, for the begin of its window, and where a unit's ids are used up."""
        return (self._ready(1) or await self._take(1, self._client._deadline(timeout)))[0]

    async def next_ids(self, n: int, *, timeout: float | None = None) -> list[int]:
        """Makes n ids, 1 to 10,000, which rise. An error has the ids that were made before it."""
        checks.whole("n", n)
        if not 1 <= n <= _MOST:
            raise invalid("INVALID_COUNT", "count", f"it must be from 1 to {_MOST}")
        deadline, ids = self._client._deadline(timeout), list[int]()
        try:
            while len(ids) < n:
                ids += await self._take(n - len(ids), deadline)
        except IdnodeError as error:
            error.ids = ids
            raise
        return ids

    async def parse(self, id: int, *, timeout: float | None = None) -> SnowflakeParts:
        """The parts of an id of this pool. It asks for the pool's layout if no id was made yet."""
        checks.whole("id", id)
        if not self._layout:
            pool, database = self._request["pool"], self._request["database"]
            request = {"prefix": pool, "pageSize": 1, "database": database}
            found = await self._client._invoke("SnowflakeService/ListPools", request, lambda answer: list(answer["pools"]), timeout)
            if not found or len(found[0]["name"]) != len(pool):  # Another one that begins so.
                raise NotFoundError("there is no such pool", code="not_found", reason="POOL_NOT_FOUND", field="pool")
            self._layout = _layout(found[0]["layout"])
        return self._layout.parts(id)

    def _ready(self, n: int) -> list[int]:
        """Makes up to n ids without waiting."""
        with self._lock:
            return self._at_hand(n)[0]

    async def _take(self, n: int, deadline: float) -> list[int]:
        """Makes 1 to n ids."""
        failures = self._failures
        while True:
            with self._lock:
                ids, wait = self._at_hand(n)
                if ids:
                    return ids
                if not wait:
                    self._raise(failures)
                    self._lease = None  # A clock that is set back would make its window a later one.
                    changed = self._change()
                    if not self._fetching:
                        self._spawn(self._acquire(), "snowflake")
            if not wait:
                await self._wait(changed, deadline, "lease")
            elif wait > deadline - time.monotonic():
                text = f"the window of the lease begins in {wait:.3f} s: another may still make ids until then, or the clock is late"
                raise IdnodeError(text, code="unavailable", reason="WINDOW_EARLY", retry_after=wait)
            else:
                await self._client._runtime.sleep(min(wait, 0.1))  # The handle may be closed.

    def _at_hand(self, n: int) -> tuple[list[int], float]:
        """Up to n ids. If there are none: how many seconds to wait; 0 where the window has passed. The caller holds the lock."""
        if self._closed:
            raise closed("handle")
        lease = self._lease
        if not lease:
            return [], 0.0
        layout, now = lease.layout, lease.layout.units(self._now())
        first = max(lease.next, now << layout.sequence_bits)
        end = min(now + _AHEAD // layout.unit + 1, lease.until) << layout.sequence_bits
        if first >= end:
            early = (first >> layout.sequence_bits) - now
            passed = first >> layout.sequence_bits >= lease.until
            return [], 0.0 if passed else max(early * layout.unit - _AHEAD, 1) / 1000
        lease.next = min(first + n, end)
        if now >= lease.renew_at and not lease.renewing:
            try:
                lease.renewing = True
                self._client._runtime.spawn(self._renew(lease), "idnode-snowflake")
            except BaseException as error:  # No thread can be started, or a signal's handler has raised it.
                self._renewed(lease, 0)
                if isinstance(error, Within) or not isinstance(error, RuntimeError):
                    raise
        return [layout.id(place, lease.worker) for place in range(first, lease.next)], 0.0

    def _now(self) -> int:
        """Milliseconds since 1970 by the monotonic clock: a wall clock that is set changes nothing in the middle of a window."""
        return (self._wall + time.monotonic_ns()) // 1_000_000

    async def _acquire(self) -> None:
        lease: _Lease | None = None
        error: Exception = IdnodeError("the call was cancelled", code="canceled", reason="CANCELED")
        try:
            with self._lock:
                self._wall = time.time_ns() - time.monotonic_ns()
            request = {**self._request, "holder": self._client._label, "now": _timestamp(self._now())}
            once = RequestId(secrets.token_hex(16))
            lease = await self._client._invoke("SnowflakeService/AcquireWorker", request, _Lease, request_id=once, own=True)
        except Exception as caught:  # The callers that wait must have it, whatever it is.
            error = caught
        finally:
            with self._lock:
                if lease:
                    self._lease, self._layout, self._fetching = lease, lease.layout, False
                    self._changed()
                else:
                    self._failed(error)

    async def _renew(self, lease: _Lease) -> None:
        until = 0
        try:
            with self._lock:  # The machine may have slept.
                self._wall = max(self._wall, time.time_ns() - time.monotonic_ns())
            request = {**self._owned(lease), "now": _timestamp(self._now())}
            until = await self._client._invoke("SnowflakeService/RenewWorker", request, lambda answer: int(answer["until"]), changes=True)
        except Exception:
            pass  # The window goes on to its end, and then a lease fails.
        finally:
            with self._lock:
                self._renewed(lease, until)

    def _renewed(self, lease: _Lease, until: int) -> None:
        """Notes the new end of a window; 0 after a failure. The caller holds the lock."""
        lease.until = max(lease.until, until)
        now = lease.layout.units(self._now())
        lease.renew_at, lease.renewing = now + (lease.until - now) // (2 if until else 10), False

    async def _give_back(self, deadline: float) -> None:
        lease = self._lease
        if lease:
            after = (lease.next - 1 >> lease.layout.sequence_bits) + 1
            request = {**self._owned(lease), "next": str(after)}
            await self._client._invoke("SnowflakeService/ReleaseWorker", request, bool, changes=True, deadline=deadline)

    def _owned(self, lease: _Lease) -> dict[str, Any]:
        return {**self._request, "worker": lease.worker, "token": lease.token}


def _timestamp(ms: int) -> str:
    return (_EPOCH + ms * _MILLISECOND).isoformat(timespec="milliseconds")


def time_of(text: str | None) -> datetime | None:
    """A time as protobuf's JSON has it, with up to nine decimals of a second; None where it has none."""
    return datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text).replace("Z", "+00:00")) if text else None


def _layout(answer: dict[str, Any]) -> _Layout:
    epoch = ((time_of(answer["epoch"]) or _EPOCH) - _EPOCH) // _MILLISECOND
    return _Layout(epoch, round(float(answer["unit"][:-1]) * 1000), answer["workerBits"], answer["sequenceBits"])
