"""What fills the fields of object mappers: handles of either client, or functions that return one."""

from __future__ import annotations

from typing import Any, Awaitable, Callable

from . import _core, _hilo, _snowflake
from ._threads import HiLo, Identity, Snowflake

_MOST = 10_000  # The most Snowflake ids of one call.
_BLOCKING = (HiLo, Identity, Snowflake)
_OF_ASYNCIO = (_hilo.HiLo, _core.Identity, _snowflake.Snowflake)


def check(source: Any, *, asyncio: bool = False) -> None:
    """Raises a TypeError for what can be no source."""
    if not isinstance(source, _BLOCKING) and (isinstance(source, _OF_ASYNCIO) and not asyncio or not _called(source)):
        kinds = "a handle of HiLo or Snowflake, an identity, or a function that returns one"
        raise TypeError(f"a source is {kinds}{'' if asyncio else ', of idnode.Client'}, not {source!r}")


def _called(source: Any) -> bool:
    return isinstance(source, _OF_ASYNCIO) or callable(source) and not isinstance(source, type)


def take(source: Any, n: int, integers: bool, wait: Callable[[Awaitable[Any]], Any] | None = None) -> list[Any]:
    """Takes n ids. The client of asyncio needs wait, which returns what a coroutine returns."""
    found = source if isinstance(source, _BLOCKING + _OF_ASYNCIO) else source()
    if not isinstance(found, _BLOCKING + (_OF_ASYNCIO if wait else ())):
        raise TypeError(f"a source has returned {found!r}")

    def result(got: Any) -> Any:
        return wait(got) if wait and isinstance(found, _OF_ASYNCIO) else got

    if isinstance(found, (HiLo, _hilo.HiLo)):
        return [result(found.next()).value for _ in range(n)] if integers else list(result(found.next_ids(n)))
    if isinstance(found, (Snowflake, _snowflake.Snowflake)):
        values = [id for begin in range(0, n, _MOST) for id in result(found.next_ids(min(_MOST, n - begin)))]
    else:
        values = [value for block in result(found.next_n(n)) for value in range(block.first, block.last + 1)]
    return values if integers else list(map(str, values))
