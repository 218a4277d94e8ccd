"""HTTP/1.1 without input and output, and what a client needs of threads or of asyncio."""

from __future__ import annotations

import re
import ssl
from typing import Any, Coroutine, Generator, Protocol

_LARGEST = 32 << 20  # Bytes of an answer.
_LONGEST = 64 << 10  # Bytes of its head, and of a line.
_TERM = re.compile(rb"[0-9]{1,20}")
_STATUS = re.compile(rb"HTTP/1\.([01]) ([0-9]{3})(?![0-9])")


class Event(Protocol):
    """Set once. ``wait`` says whether it is, at the latest after a time in seconds."""

    def set(self) -> None: ...
    def is_set(self) -> bool: ...
    async def wait(self, timeout: float | None) -> bool: ...


class Connection(Protocol):
    """A connection. An OSError says that it broke, a socket.timeout that a time was over."""

    async def send(self, data: bytes, timeout: float) -> None: ...
    async def receive(self, timeout: float) -> bytes:
        """Some bytes; none at its end."""

    def quiet(self) -> bool:
        """Whether nothing came since the last answer, not even its end."""

    def close(self) -> None: ...


class Runtime(Protocol):
    """Threads, whose coroutines never suspend, or an event loop."""

    def check(self) -> None:
        """Raises a RuntimeError where the client must not be called."""

    def event(self) -> Event: ...
    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Runs work beside the caller, or raises a RuntimeError."""

    async def sleep(self, seconds: float) -> None: ...
    async def connect(self, host: str, port: int, tls: ssl.SSLContext | None, name: str, timeout: float) -> Connection: ...
    async def close(self) -> None: ...


class NotHTTP(Exception):
    """What came is no answer of an HTTP server."""


class Answer:
    """One answer, read from the pieces in which it comes."""

    def __init__(self) -> None:
        self.begun = False
        self.status, self.body, self.cluster = 0, b"", ""
        self.term, self.leader = -1, ""  # Raft's, and the leader's HTTP address; -1 and empty where the node names none.
        self.reusable = False  # The connection is, for the next call.
        self._room = _LARGEST
        self._data = bytearray()
        self._reader = self._read()
        next(self._reader)

    def take(self, piece: bytes) -> bool:
        """Takes a piece, none at the end of the connection. Says whether the answer is complete."""
        self.begun = True
        self._room -= len(piece)
        if self._room < 0:
            raise ConnectionError("the answer is too large")
        try:
            self._reader.send(piece)
        except StopIteration:
            self.reusable = self.reusable and not self._data  # What follows an answer is none.
            return True
        return False

    def _read(self) -> Generator[None, bytes, None]:
        while self.status < 200:  # Those below announce the answer.
            fields = yield from self._head()
        self.cluster = fields.get(b"idnode-cluster-id", b"").decode("latin-1")
        term = fields.get(b"idnode-term", b"")
        self.term, self.leader = int(term) if _TERM.fullmatch(term) else -1, fields.get(b"idnode-leader-address", b"").decode("latin-1")
        length = fields.get(b"content-length", b"0" if self.status in (204, 304) else b"")[:10]
        if fields.get(b"transfer-encoding", b"").lower() == b"chunked":
            yield from self._chunks()
        elif length.isdigit():
            self.body = yield from self._bytes(int(length))
        else:
            self.reusable = False
            yield from self._rest()

    def _head(self) -> Generator[None, bytes, dict[bytes, bytes]]:
        lines = (yield from self._line(b"\r\n\r\n")).split(b"\r\n")
        status = _STATUS.match(lines[0])
        if not status:
            raise NotHTTP(repr(lines[0][:24]))
        self.status = int(status[2])
        fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines[1:])}
        self.reusable = status[1] == b"1" and fields.get(b"connection", b"").lower() != b"close"
        return fields

    def _chunks(self) -> Generator[None, bytes, None]:
        body = bytearray()
        while True:
            line = (yield from self._line()).split(b";")[0].strip()
            if not re.fullmatch(rb"[0-9A-Fa-f]{1,8}", line):
                raise ConnectionError(f"a wrong chunk: {line[:24]!r}")
            if not int(line, 16):
                break
            body += yield from self._bytes(int(line, 16))
            yield from self._line()
        while (yield from self._line()):
            pass
        self.body = bytes(body)

    def _rest(self) -> Generator[None, bytes, None]:
        piece = b" "
        while piece:
            piece = yield
            self._data += piece
        self.body = bytes(self._data)

    def _bytes(self, n: int) -> Generator[None, bytes, bytes]:
        while len(self._data) < n:
            yield from self._more()
        taken = bytes(self._data[:n])
        del self._data[:n]
        return taken

    def _line(self, end: bytes = b"\r\n") -> Generator[None, bytes, bytes]:
        while end not in self._data:
            if len(self._data) > _LONGEST:
                raise ConnectionError("a line of the answer is too long")
            yield from self._more()
        line = yield from self._bytes(self._data.index(end) + len(end))
        return line[:-len(end)]

    def _more(self) -> Generator[None, bytes, None]:
        piece = yield
        if not piece:
            raise ConnectionError("the connection ended before the answer did")
        self._data += piece
        if not self.status and self._data[:5] != b"HTTP/"[:len(self._data)]:
            raise NotHTTP(repr(bytes(self._data[:24])))  # Now: there may be no line, but a reset.
