"""Ids of columns, for SQLAlchemy 1.4 and 2.

    class User(Base):
        __tablename__ = "users"
        id = Column(String, primary_key=True, default=column_default(users))  # users = ids.hilo("users")

    fill(Session, Order.number, lambda: ids.identity("orders"))  # One call for all new orders of a flush.

A source is a HiLo handle or an identity, or a function that returns one, which is called for each row or flush: then the
client may be made later than the classes. A column of integers gets a number, another one the id or the digits as text.
A transaction that is rolled back leaves its numbers unused: what must have no hole is a series.
"""

from __future__ import annotations

from typing import Any, Callable, Union

from sqlalchemy import event
from sqlalchemy.orm import object_mapper

from ._threads import HiLo, Identity

Source = Union[HiLo, Identity, Callable[[], Union[HiLo, Identity]]]


def column_default(source: Source) -> Callable[[Any], Any]:
    """A value for ``Column(default=…)`` that takes an id for each row."""
    def default(context: Any) -> Any:
        return _take(source, 1, _is_integer(context.current_column))[0]
    return default


def fill(session: Any, attribute: Any, source: Source) -> None:
    """Has the flushes of a session, a sessionmaker or a class of sessions fill an attribute where it is None."""
    def before_flush(flushed: Any, *_: Any) -> None:
        empty = [new for new in flushed.new if isinstance(new, attribute.class_) and getattr(new, attribute.key) is None]
        if empty:
            column = object_mapper(empty[0]).columns[attribute.key]
            for new, value in zip(empty, _take(source, len(empty), _is_integer(column))):
                setattr(new, attribute.key, value)

    event.listen(session, "before_flush", before_flush)


def _take(source: Source, n: int, integers: bool) -> list[Any]:
    found = source if isinstance(source, (HiLo, Identity)) else source()
    if isinstance(found, HiLo):
        return [found.next().value for _ in range(n)] if integers else list(found.next_ids(n))
    values = [value for block in found.next_n(n) for value in range(block.first, block.last + 1)]
    return list(values if integers else map(str, values))


def _is_integer(column: Any) -> bool:
    return issubclass(column.type.python_type, int)
