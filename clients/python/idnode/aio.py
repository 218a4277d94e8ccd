"""The client of asyncio, with the methods of ``idnode.Client`` as coroutines.

    async with idnode.aio.Client(["a:7402", "b:7402", "c:7402"]) as ids:
        await ids.identity("invoices").next()  # 1
        async for id in ids.hilo("users"):     # 'users/1-A', 'users/2-A' …
            ...

A client belongs to the event loop of its first call: another loop gets a RuntimeError. A HiLo number that is at hand is given
without leaving the loop.

A call that is cancelled may have taken effect, as one that raises OutcomeUnknownError. HiLo loses no number by that: a fetch
goes on for the next caller. For other calls use ``timeout``, whose error has the request id with which the call may be
repeated; ``asyncio.timeout`` and ``wait_for`` cancel. A call that is to survive being cancelled is given a request id of its own.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from typing import Any, Callable, Coroutine, Sequence, TypeVar

from . import _config, _core
from ._config import TLS
from ._core import Identity, Series
from ._errors import IdnodeError
from ._events import Observe
from ._hilo import HiLo
from ._snowflake import Snowflake, SnowflakeParts

__all__ = ["Client", "HiLo", "Identity", "Series", "Snowflake", "SnowflakeParts"]

T = TypeVar("T")
_READ_AHEAD = 1 << 18  # Bytes that wait for their reader.


class Client(_core.Client):
    """Calls an idnode cluster. Close it, or use it as an async context manager: that gives unused numbers back."""

    def __init__(
        self, endpoints: Sequence[str], *, database: str = "", tls: ssl.SSLContext | TLS | None = None, timeout: float = 10.0,
        try_timeout: float = 3.0, label: str = "", traceparent: Callable[[], str] | None = None, cluster_id: str = "",
        max_connections: int = 128, fail_fast_after: float | None = None, observe: Observe | None = None,
    ) -> None:
        """Makes no call yet. The arguments are those of ``idnode.Client``."""
        super().__init__(
            _Loop, endpoints, database, tls, timeout, try_timeout, label, traceparent, cluster_id, max_connections, fail_fast_after, observe)

    @classmethod
    def from_url(cls, url: str, **options: Any) -> Client:
        """Makes a client as ``idnode.Client.from_url``."""
        return cls(**_config.of_url(url, options))

    @classmethod
    def from_env(cls, **options: Any) -> Client:
        """Makes a client as ``idnode.Client.from_env``."""
        return cls(**_config.of_environment(options))

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, kind: Any, *_: Any) -> None:
        try:
            await self.close()
        except IdnodeError:
            if kind is None:
                raise  # Otherwise what went wrong before matters more.


class _Loop:
    """The runtime of an event loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()  # The loop itself holds none of them.

    def check(self) -> None:
        loop = asyncio.get_running_loop()
        self._loop = self._loop or loop
        if loop is not self._loop:
            raise RuntimeError("the client belongs to another event loop")

    def event(self) -> _Event:
        self.check()
        return _Event()

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        try:
            self.check()
            # A task that the loop's factory made might begin at once, under the caller's lock.
            task = asyncio.Task(work, loop=asyncio.get_running_loop(), name=name)
        except BaseException:
            work.close()
            raise
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def connect(self, host: str, port: int, tls: ssl.SSLContext | None, name: str, timeout: float) -> _Connection:
        """Tries the addresses of a name one after the other, each for its share of the time that is left.

        The loop's own create_connection leaves sockets open when it is cancelled.
        """
        end = time.monotonic() + timeout
        addresses = await _within(timeout, asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM))
        for left in range(len(addresses), 0, -1):
            connection = _Connection()
            try:
                await _within((end - time.monotonic()) / left, connection.open(addresses[-left], tls, name))
                return connection
            except BaseException as error:
                connection.close()
                if left == 1 or not isinstance(error, OSError):
                    raise
        raise OSError("the name has no address")

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _within(timeout: float, work: Coroutine[Any, Any, T]) -> T:
    task = asyncio.Task(work, loop=asyncio.get_running_loop())
    try:
        await asyncio.wait({task}, timeout=timeout)
        if not task.done():
            raise socket.timeout("no connection in time")
        return task.result()
    except BaseException:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)  # No task outlives its caller, and the loop.
        raise


class _Event:
    def __init__(self) -> None:
        self._set = asyncio.get_running_loop().create_future()

    def set(self) -> None:
        if not self._set.done():
            self._set.set_result(None)

    def is_set(self) -> bool:
        return self._set.done()

    async def wait(self, timeout: float | None) -> bool:
        if not self._set.done():
            await asyncio.wait({self._set}, timeout=timeout)
        return self._set.done()


class _Connection(asyncio.Protocol):
    """A connection. It stops to read while nobody takes what came."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._closed = self._ended = self._paused = False
        self._error: Exception | None = None
        self._data = bytearray()
        self._change: _Event | None = None

    async def open(self, address: Any, tls: ssl.SSLContext | None, name: str) -> None:
        loop = asyncio.get_running_loop()
        opened = socket.socket(*address[:3])
        try:
            opened.setblocking(False)
            await loop.sock_connect(opened, address[4])
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except BaseException:
            opened.close()
            raise
        await loop.create_connection(lambda: self, sock=opened, ssl=tls, server_hostname=name if tls else None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self._closed:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        self._data += data
        if len(self._data) > _READ_AHEAD and self._transport and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        self._changed()

    def connection_lost(self, error: Exception | None) -> None:
        self._ended, self._error = True, error
        self._changed()

    def _changed(self) -> None:
        if self._change:
            self._change.set()

    async def send(self, data: bytes, timeout: float) -> None:
        assert self._transport
        self._transport.write(data)  # What it cannot send at once it keeps: a request is small.

    async def receive(self, timeout: float) -> bytes:
        if not self._data and not self._ended:
            self._change = _Event()
            await self._change.wait(timeout)
        if self._data:
            taken, self._data = bytes(self._data), bytearray()
            if self._paused and self._transport and not self._ended:
                self._paused = False
                self._transport.resume_reading()
            return taken
        if not self._ended:
            raise socket.timeout("no answer in time")
        if self._error:
            raise self._error
        return b""

    def quiet(self) -> bool:
        return not (self._data or self._ended or self._closed)

    def close(self) -> None:
        self._closed = True
        if self._transport:
            self._transport.abort()
