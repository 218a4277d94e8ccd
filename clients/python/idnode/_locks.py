"""What must be one, and locks and events that end a wait for itself: a signal's handler runs in the thread, and the call, that it interrupts."""

from __future__ import annotations

import queue
import threading
from contextlib import suppress
from typing import Any, Callable


class Within(RuntimeError):
    """A signal's handler needs what the call has that goes on only after it."""


class Single:
    """What a copy would give again. copy.copy gives the same one."""

    def __copy__(self) -> Any:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"a {type(self).__name__} of idnode is not copied, to another process or within one: make one there")


class Lock:
    """A lock for ``with``. Where its owner would wait for it, Within is raised."""

    __slots__ = ("__exit__", "_acquire", "_owned")

    def __init__(self) -> None:
        lock = threading.RLock()  # It knows its owner once it is taken: no signal comes between.
        self._acquire, self.__exit__, self._owned = lock.acquire, lock.__exit__, lock._is_owned  # type: ignore

    @property
    def __enter__(self) -> Callable[[], bool]:  # Called at once by ``with``, and a signal in between changes nothing.
        if self._owned():
            self.check()
        return self._acquire

    def check(self) -> None:
        if self._owned():
            raise Within("a signal's handler, or a finalizer, called idnode within a call of its own thread: raise SystemExit there instead")


class Event:
    """Set once. Unlike threading.Event it has no lock, for which a handler would wait that sets it within its wait."""

    def __init__(self) -> None:
        self._set = False
        self._woken: queue.SimpleQueue[None] = queue.SimpleQueue()  # Its put may interrupt its get.

    def set(self) -> None:
        self._set = True
        self._woken.put(None)

    def is_set(self) -> bool:
        return self._set

    async def wait(self, timeout: float | None) -> bool:
        try:
            if not self._set:
                with suppress(queue.Empty):
                    self._woken.get(timeout=None if timeout is None else max(timeout, 0))
        finally:
            if self._set:  # Others may wait.
                self._woken.put(None)
        return self._set
