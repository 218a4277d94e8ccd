"""What handles have in common: they hold what the cluster lends, and give it back when they are closed."""

from __future__ import annotations

import copy
import inspect
import time
from typing import Any, Callable, Coroutine, Protocol, TypeVar

from ._errors import Failure, RequestId
from ._events import Observe
from ._http import Event, Runtime
from ._locks import Lock, Single, Within
from ._nodes import Router

T = TypeVar("T")


class Calls(Protocol):
    """The client of a handle."""

    _runtime: Runtime
    _router: Router
    _label: str

    @property
    def _tell(self) -> Observe: ...
    def _deadline(self, timeout: float | None) -> float: ...
    async def _invoke(
        self, method: str, request: dict[str, Any], read: Callable[[dict[str, Any]], T], timeout: float | None = None,
        request_id: RequestId | None = None, *, own: bool = False, changes: bool = False, deadline: float | None = None,
    ) -> T: ...


class Handle(Single):
    """Asks in the background, once for all callers that wait."""

    def __init__(self, client: Calls) -> None:
        self._client = client
        self._closed = self._returned = False
        self._begin()

    def _begin(self) -> None:
        """Holds nothing. Also after a fork."""
        self._lock = Lock()
        self._waiting: list[Event] = []  # Set at the next change.
        self._fetching = False
        self._failures = 0
        self._error: Exception | None = None  # That of the newest failure.

    async def close(self) -> None:
        """Gives back what is unused. Afterwards the handle raises ClosedError, and the client makes a new one."""
        await self._close(self._client._deadline(None))

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Starts to fetch. The caller holds the lock, as of those below."""
        try:
            self._fetching = True
            self._client._runtime.spawn(work, f"idnode-{name}")
        except BaseException as error:
            if isinstance(error, RuntimeError) and not isinstance(error, Within):  # No thread can be started.
                return self._failed(error)
            # That of a signal's handler. What has begun goes on, else the next caller fetches.
            self._fetching = inspect.getcoroutinestate(work) != inspect.CORO_CLOSED
            self._changed()
            raise

    def _failed(self, error: Exception) -> None:
        self._fetching = False
        self._failures, self._error = self._failures + 1, error
        self._changed()

    def _raise(self, failures: int) -> None:
        """Raises the newest error, if there were fewer failures when the caller came."""
        if self._failures != failures and self._error:
            raise copy.copy(self._error) from self._error.__cause__  # Each caller gets an error, and traceback, of its own.

    def _change(self) -> Event:
        """An event that is set at the next change."""
        event = self._client._runtime.event()
        self._waiting.append(event)
        return event

    def _changed(self) -> None:
        for event in self._waiting:
            event.set()
        self._waiting.clear()

    async def _wait(self, changed: Event, deadline: float, what: str) -> None:
        """Waits, without the lock."""
        self._client._router.check()
        began = time.monotonic()
        if not await changed.wait(deadline - began):
            text = f"the time was over before a {what} came"
            raise Failure(text, "unavailable", "NO_ENDPOINT", late=self._client._router.heard(began)).error(False, None)

    async def _close(self, deadline: float) -> None:
        self._client._router.check()
        with self._lock:
            first, self._closed = not self._closed, True
            self._changed()
        # The first to close gives all back, also what is on its way. Others wait for it.
        try:
            while True:
                with self._lock:
                    if not self._fetching if first else self._returned:
                        break
                    changed = self._change()
                if not await changed.wait(deadline - time.monotonic()):
                    break
            if first:
                await self._give_back(deadline)
        finally:
            if first:
                with self._lock:
                    self._returned = True
                    self._changed()

    async def _give_back(self, deadline: float) -> None:
        raise NotImplementedError
