"""The client for threads: the coroutines of ``_core`` over calls that block, so that they never suspend."""

from __future__ import annotations

import functools
import inspect
import socket
import ssl
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence, TypeVar, cast

from . import _config, _core, _hilo, _snowflake
from ._config import TLS
from ._errors import IdnodeError
from ._events import Observe
from ._http import Connection
from ._locks import Event

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec

    P = ParamSpec("P")
T = TypeVar("T")


def _run(work: Coroutine[Any, Any, T]) -> T:
    try:
        work.send(None)
    except StopIteration as end:
        return cast(T, end.value)
    raise RuntimeError("a call suspended")


def _work(work: Coroutine[Any, Any, None]) -> None:
    if inspect.getcoroutinestate(work) == inspect.CORO_CREATED:  # Else it was closed: its caller was interrupted.
        _run(work)


def _blocking(call: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Any, P], T]:
    """The method of _core as one that waits for its outcome."""
    @functools.wraps(call)
    def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return _run(call(self._core, *args, **kwargs))
    return method


def _listing(call: Callable[Concatenate[Any, P], AsyncIterator[T]]) -> Callable[Concatenate[Any, P], Iterator[T]]:
    @functools.wraps(call)
    def method(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        found = call(self._core, *args, **kwargs)
        with suppress(StopAsyncIteration):
            while True:
                yield _run(cast("Coroutine[Any, Any, T]", found.__anext__()))
    return method


class Client:
    """Calls an idnode cluster. Close it, or use it as a context manager: that gives unused numbers back.

    It is safe for concurrent use by threads; make one and share it.
    """

    def __init__(
        self, endpoints: Sequence[str], *, database: str = "", tls: ssl.SSLContext | TLS | None = None, timeout: float = 10.0,
        try_timeout: float = 3.0, label: str = "", traceparent: Callable[[], str] | None = None, cluster_id: str = "",
        max_connections: int = 128, fail_fast_after: float | None = None, observe: Observe | None = None,
    ) -> None:
        """Makes no call yet.

        Args:
            endpoints: HTTP addresses of nodes of one cluster, as ``host:port`` or URLs.
            database: Whose ids are given; empty means ``default``.
            tls: Trusts the cluster's CA, and holds the client's certificate. ``TLS`` has the names of files, and reads them again.
            timeout: Bounds every call with all its tries, in seconds.
            try_timeout: Bounds one try at one node, in seconds.
            label: Kept with each HiLo range and Snowflake worker, for people who ask whose it is; at most 64 bytes. Empty means the
                names of the host and of the program.
            traceparent: Asked once for each call, gives the trace that the call belongs to, as the W3C's traceparent, or nothing.
            cluster_id: The cluster's, as ``idnode cluster status`` shows it: nodes of another one get no call. Empty means the one
                that the endpoints tell, which must be the same at all that answer before the first call.
            max_connections: Calls to one node at a time, each over a connection of its own. A quarter is kept for those that need no
                leader. A call for which none is free in time is an OverloadedError.
            fail_fast_after: After so many seconds without an answer of any node, calls fail at once with NoEndpointError until a node
                answers; one a second is let through. None means never.
            observe: Is told of tries, looks for the leader, new leaders and gaps, as an Event.
        """
        self._core = _core.Client(
            Threads, endpoints, database, tls, timeout, try_timeout, label, traceparent, cluster_id, max_connections, fail_fast_after, observe)

    @classmethod
    def from_url(cls, url: str, **options: Any) -> Client:
        """Makes a client of ``idnode+http://HOST:PORT,HOST:PORT/DATABASE?tls-ca=FILE&tls-cert=FILE&tls-key=FILE&cluster-id=ID``.

        Options given beside win.
        """
        return cls(**_config.of_url(url, options))

    @classmethod
    def from_env(cls, **options: Any) -> Client:
        """Makes a client of ``IDNODE_HTTP_ENDPOINTS``, as ``a:7402,b:7402``, ``IDNODE_TLS_CA``, ``_CERT``, ``_KEY`` and ``_SERVER_NAME``,
        ``IDNODE_CLUSTER_ID`` and ``IDNODE_DATABASE``. Options given beside win."""
        return cls(**_config.of_environment(options))

    def set_endpoints(self, endpoints: Sequence[str]) -> None:
        """Replaces the endpoints: calls that begin now go to the new ones."""
        self._core.set_endpoints(endpoints)

    def __repr__(self) -> str:
        return repr(self._core)

    next = _blocking(_core.Client.next)
    next_n = _blocking(_core.Client.next_n)
    identities = _listing(_core.Client.identities)
    claim = _blocking(_core.Client.claim)
    release = _blocking(_core.Client.release)
    claims = _listing(_core.Client.claims)
    id_for = _blocking(_core.Client.id_for)
    next_range = _blocking(_core.Client.next_range)
    return_range = _blocking(_core.Client.return_range)
    close = _blocking(_core.Client.close)

    def identity(self, name: str, *, database: str = "") -> Identity:
        """The identity with this name. It exists once a value was taken."""
        return Identity(self._core.identity(name, database=database))

    def series(self, name: str, *, database: str = "") -> Series:
        """The series of document numbers with this name. ``idnode series define`` defines it."""
        return Series(self._core.series(name, database=database))

    def hilo(self, tag: str, *, separator: str = "", first_size: int = 0, database: str = "") -> HiLo:
        """The handle of a collection's tag, which is made once, and shared until it is closed."""
        return HiLo(self._core.hilo(tag, separator=separator, first_size=first_size, database=database))

    def snowflake(self, pool: str, *, database: str = "") -> Snowflake:
        """The handle of a pool of Snowflake workers, which is made once, and shared until it is closed."""
        return Snowflake(self._core.snowflake(pool, database=database))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        try:
            self.close()
        except IdnodeError:
            if kind is None:
                raise  # Otherwise what went wrong before matters more.


class Identity:
    __doc__ = _core.Identity.__doc__

    def __init__(self, core: _core.Identity) -> None:
        self._core = core

    next = _blocking(_core.Identity.next)
    next_n = _blocking(_core.Identity.next_n)
    get = _blocking(_core.Identity.get)
    seed = _blocking(_core.Identity.seed)
    delete = _blocking(_core.Identity.delete)


class Series:
    __doc__ = _core.Series.__doc__

    def __init__(self, core: _core.Series) -> None:
        self._core = core

    take = _blocking(_core.Series.take)
    confirm = _blocking(_core.Series.confirm)
    void = _blocking(_core.Series.void)
    release = _blocking(_core.Series.release)
    find = _blocking(_core.Series.find)


class HiLo:
    __doc__ = _hilo.HiLo.__doc__

    def __init__(self, core: _hilo.HiLo) -> None:
        self._core = core

    def next(self, *, timeout: float | None = None) -> _hilo.HiLoNumber:
        """Takes a number. It waits only if none is left of the ranges at hand."""
        return (self._core._ready(1) or [_run(self._core.next(timeout=timeout))])[0]

    def next_id(self, *, timeout: float | None = None) -> str:
        """Takes a number and returns its id, for example ``users/65-A``."""
        return str(self.next(timeout=timeout))

    next_ids = _blocking(_hilo.HiLo.next_ids)
    close = _blocking(_hilo.HiLo.close)
    __iter__ = _listing(_hilo.HiLo.__aiter__)


class Snowflake:
    __doc__ = _snowflake.Snowflake.__doc__

    def __init__(self, core: _snowflake.Snowflake) -> None:
        self._core = core

    next_id = _blocking(_snowflake.Snowflake.next_id)
    next_ids = _blocking(_snowflake.Snowflake.next_ids)
    parse = _blocking(_snowflake.Snowflake.parse)
    close = _blocking(_snowflake.Snowflake.close)


class Threads:
    """The runtime of threads."""

    def check(self) -> None:
        pass

    def event(self) -> Event:
        return Event()

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        try:
            threading.Thread(target=_work, args=(work,), name=name, daemon=True).start()
        except BaseException:
            with suppress(ValueError):  # The thread has begun.
                work.close()
            raise

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    async def connect(self, host: str, port: int, tls: ssl.SSLContext | None, name: str, timeout: float) -> Connection:
        """Connects in a thread: the look-up of a name has no timeout."""
        ended: list[socket.socket | Exception] = []

        def run() -> None:
            try:
                ended.append(_connect(host, port, tls, name, timeout))
            except Exception as error:
                ended.append(error)

        thread = threading.Thread(target=run, name="idnode-connect", daemon=True)
        try:
            thread.start()
            thread.join(timeout)
        except RuntimeError:  # No thread can be started, as at the end of the program.
            run()
        got = ended[0] if ended else socket.timeout("no connection in time")
        if isinstance(got, Exception):
            raise got
        return _Connection(got)

    async def close(self) -> None:
        pass


def _connect(host: str, port: int, tls: ssl.SSLContext | None, name: str, timeout: float) -> socket.socket:
    """Tries the addresses of a name one after the other. Each has its share of the time that is left, as Go's net.Dialer has it."""
    end = time.monotonic() + timeout
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    for left in range(len(addresses), 1, -1):
        with suppress(OSError):
            return _connect_to(addresses[-left], tls, name, (end - time.monotonic()) / left)
    return _connect_to(addresses[-1], tls, name, end - time.monotonic())


def _connect_to(address: Any, tls: ssl.SSLContext | None, name: str, timeout: float) -> socket.socket:
    connection = socket.socket(*address[:3])
    try:
        connection.settimeout(max(timeout, 0.001))
        connection.connect(address[4])
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return tls.wrap_socket(connection, server_hostname=name) if tls else connection
    except BaseException:
        connection.close()
        raise


class _Connection:
    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    async def send(self, data: bytes, timeout: float) -> None:
        self._socket.settimeout(timeout)
        self._socket.sendall(data)

    async def receive(self, timeout: float) -> bytes:
        self._socket.settimeout(timeout)
        return self._socket.recv(1 << 16)

    def quiet(self) -> bool:
        self._socket.settimeout(0)
        try:
            self._socket.recv(1)
        except (BlockingIOError, ssl.SSLWantReadError):
            return True
        except OSError:
            pass
        return False

    def close(self) -> None:
        self._socket.close()
