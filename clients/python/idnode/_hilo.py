"""HiLo ranges and handles."""

from __future__ import annotations

import functools
import random
import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any, AsyncIterator, Protocol

from . import _checks as checks
from ._errors import AnyRequestId, IdnodeError, OutcomeUnknownError, RequestIdExpiredError, closed
from ._events import Event
from ._handle import Calls, Handle

_FETCH_PAUSE, _LONGEST_FETCH_PAUSE = 0.1, 10.0  # After a prefetch that failed, in seconds.


@dataclass(frozen=True)
class Range:
    """A HiLo range. Prefix and node tag belong to its numbers alone."""

    prefix: str
    node_tag: str
    low: int
    high: int
    granted: int  #: The size that the cluster granted, which the next request names as ``last_size``.
    at: datetime | None  #: The cluster's time of the range, in UTC, which the next request names as ``last_at``.
    from_reserve: bool  #: The numbers may lie below those of the last range.
    token: str  #: Proves that the range is the caller's when it is returned.


@dataclass(frozen=True)
class HiLoNumber:
    """A number of a HiLo range. ``str`` of it is its id."""

    value: int
    prefix: str
    node_tag: str

    def __str__(self) -> str:
        return f"{self.prefix}{self.value}-{self.node_tag}" if self.node_tag else f"{self.prefix}{self.value}"


class Ranges(Calls, Protocol):
    """The client of a HiLo handle."""

    async def next_range(
        self, tag: str, *, separator: str = "", size: int = 0, last_size: int = 0, last_at: datetime | None = None, last_max: int = 0,
        request_id: AnyRequestId = None, database: str = "",
    ) -> Range: ...
    async def _give_back(self, tag: str, r: Range, last: int, database: str, deadline: float) -> bool: ...


class HiLo(Handle):
    """Gives the ids of one collection, without a call for most of them. Made by Client.hilo, not by its constructor, and meant to be shared.

    The next range is fetched in the background once half of the current one is used. A loop over the handle takes ids.
    A caller that is cancelled, or whose timeout is over, takes no number; the fetch goes on.
    """

    _client: Ranges

    def __init__(self, client: Ranges, tag: str, separator: str, first_size: int, database: str) -> None:
        self._tag, self._separator, self._first_size, self._database = tag, separator, first_size, database
        super().__init__(client)

    def _begin(self) -> None:
        super()._begin()
        self._current: tuple[Range, int] | None = None  # With its next number: what a signal's handler raises must not part them.
        self._ahead: Range | None = None
        self._untaken: list[HiLoNumber] = []  # Those of callers that were cancelled.
        self._request: dict[str, Any] = {"size": self._first_size}  # The next one. It belongs to the fetch in progress.
        self._pause, self._resume = _FETCH_PAUSE, 0.0

    async def next(self, *, timeout: float | None = None) -> HiLoNumber:
        """Takes a number. It waits only if none is left of the ranges at hand."""
        return (self._ready(1) or await self._take(1, self._client._deadline(timeout)))[0]

    async def next_id(self, *, timeout: float | None = None) -> str:
        """Takes a number and returns its id, for example ``users/65-A``."""
        return str((self._ready(1) or await self._take(1, self._client._deadline(timeout)))[0])

    async def next_ids(self, n: int, *, timeout: float | None = None) -> list[str]:
        """Takes n numbers and returns their ids. They need not be consecutive. An error has the ids that were taken before it."""
        checks.count(n)
        deadline = self._client._deadline(timeout)
        taken: list[HiLoNumber] = []
        try:
            while len(taken) < n:
                taken += await self._take(n - len(taken), deadline)
        except IdnodeError as error:
            error.ids = [str(number) for number in taken]
            raise
        except BaseException:  # The caller is cancelled, and does not learn of them.
            with self._lock:
                self._untaken += taken
            raise
        return [str(number) for number in taken]

    async def __aiter__(self) -> AsyncIterator[str]:
        while True:
            yield await self.next_id()

    def _ready(self, n: int) -> list[HiLoNumber]:
        """Takes up to n numbers without waiting."""
        with self._lock:
            return self._at_hand(n)

    async def _take(self, n: int, deadline: float) -> list[HiLoNumber]:
        """Takes 1 to n numbers."""
        failures = self._failures
        while True:
            with self._lock:
                taken = self._at_hand(n)
                if taken:
                    return taken
                self._raise(failures)
                changed = self._change()
                self._fetch()
            await self._wait(changed, deadline, "range")

    def _at_hand(self, n: int) -> list[HiLoNumber]:
        """The same. The caller holds the lock, as of those below."""
        if self._closed:
            raise closed("handle")
        if self._untaken:
            taken, self._untaken = self._untaken[:n], self._untaken[n:]
            return taken
        current = self._current
        if not current or current[1] > current[0].high:
            ahead, self._ahead = self._ahead, None
            if not ahead:
                return []
            current = ahead, ahead.low
        r, first = current
        following = min(first + n, r.high + 1)
        self._current = r, following
        if following > r.low + (r.high - r.low) // 2 and time.monotonic() >= self._resume:
            self._fetch()
        return [HiLoNumber(i, r.prefix, r.node_tag) for i in range(first, following)]

    def _fetch(self) -> None:
        """Starts to fetch a range unless there is one, or one is coming."""
        if not self._fetching and not self._ahead:
            self._spawn(self._fetch_one(), f"hilo-{self._tag}")

    async def _fetch_one(self) -> None:
        got: Range | None = None
        error: Exception | None = None
        try:
            ask = functools.partial(self._client.next_range, self._tag, separator=self._separator, database=self._database)
            try:
                got = await ask(**self._request)
            except RequestIdExpiredError:
                if not self._request.get("request_id"):
                    raise
                got = await ask(**{**self._request, "request_id": None})  # Nobody will know what the one asked for again was.
            last_max = self._request.get("last_max", 0)
            if got.low < 1 or got.high < got.low or (got.low <= last_max and not got.from_reserve):
                raise IdnodeError(f"a wrong range: {got.low} to {got.high} after {last_max}")
            self._request = {"last_size": got.granted, "last_at": got.at, "last_max": max(last_max, got.high)}
        except Exception as caught:  # The callers that wait must have it, whatever it is.
            error = caught
            # What may have been granted is asked for again, and is no hole then.
            again = caught.request_id if isinstance(caught, OutcomeUnknownError) else None
            self._request = {**self._request, "request_id": again}
        finally:  # Also when it is cancelled: the next caller fetches again then.
            with self._lock:
                self._fetched(got if not error else None, error)

    def _fetched(self, got: Range | None, error: Exception | None) -> None:
        """Notes how a fetch ended."""
        if error:
            self._failed(error)
            return
        self._fetching = False
        if got:
            self._ahead, self._pause = got, _FETCH_PAUSE
        self._changed()

    def _failed(self, error: Exception) -> None:
        self._resume = time.monotonic() + self._pause * random.uniform(0.5, 1)
        self._pause = min(2 * self._pause, _LONGEST_FETCH_PAUSE)
        super()._failed(error)

    async def _give_back(self, deadline: float) -> None:
        with self._lock:
            held = [self._current] if self._current and self._current[1] <= self._current[0].high else []
            held += [(self._ahead, self._ahead.low)] if self._ahead else []
        failed: IdnodeError | None = None
        for r, unused in reversed(held):  # Only the newest range of a tag can be given back.
            try:
                if not await self._client._give_back(self._tag, r, unused - 1, self._database, deadline):
                    self._client._tell(Event("gap"))
            except IdnodeError as error:
                failed = error
        if failed:
            raise failed
