"""Ids of columns, for SQLAlchemy 1.4 and 2.

    class User(Base):
        __tablename__ = "users"
        id = Column(String, primary_key=True, default=column_default(users))  # users = ids.hilo("users")

    fill(Session, Order.number, lambda: ids.identity("orders"))  # One call for all new orders of a flush.

A source is a handle of HiLo or Snowflake or an identity, or a function that returns one, which is called for each row or flush:
then the client may be made later than the classes. A column of integers gets a number, one of text the id or the digits. Handles
of ``idnode.aio`` are sources for AsyncSession; those of ``idnode.Client`` hold up the loop there while they ask the cluster.
A transaction that is rolled back leaves its numbers unused: what must have no hole is a series.
"""

from __future__ import annotations

from typing import Any, Callable, Union

from sqlalchemy import ColumnDefault, event
from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session
from sqlalchemy.orm import attributes, class_mapper
from sqlalchemy.sql.dml import Insert
from sqlalchemy.types import NullType
from sqlalchemy.util import await_only

from . import _core, _hilo, _snowflake, _sources
from ._threads import HiLo, Identity, Snowflake

Handle = Union[HiLo, Identity, Snowflake, _hilo.HiLo, _core.Identity, _snowflake.Snowflake]
Source = Union[Handle, Callable[[], Handle]]


def column_default(source: Source) -> Any:
    """A value for ``Column(default=…)`` that takes an id for each row. The column must be one of integers or text."""
    _sources.check(source, asyncio=True)

    def default(context: Any) -> Any:
        column = getattr(context.current_column, "original", context.current_column)  # In an insert of several rows.
        statement = context.compiled.statement
        if isinstance(statement, Insert) and statement.select is not None:
            raise ValueError(f"all rows of a select would have the same id: let the select give {column}")
        _refuse_updates(statement, column)
        return _take(source, 1, column)[0]

    made = ColumnDefault(default)
    event.listen(made, "after_parent_attach", lambda _, column: isinstance(column.type, NullType) or _is_integer(column))
    return made


def fill(session: Any, attribute: Any, source: Source) -> None:
    """Has the flushes of sessions fill an attribute where it is None, in new objects, and what is inserted otherwise too.

    An object that has a value cannot lose it: its flush raises a ValueError.

    Args:
        session: A session, a sessionmaker or a class of sessions, also of AsyncSession.
    """
    _sources.check(source, asyncio=True)
    mapped = isinstance(attribute, attributes.QueryableAttribute)
    column = class_mapper(attribute.class_, configure=False).columns.get(attribute.key) if mapped else None
    if column is None:
        raise TypeError(f"an attribute is that of a column of a mapped class, as Order.number, not {attribute!r}")
    name = attribute.key
    _is_integer(column)
    if column.default is None:  # For bulk_save_objects and insert(), which no flush sees.
        column.default = column_default(source)
        column.default.column = column

    def before_flush(flushed: Any, *_: Any) -> None:
        empty = [new for new in flushed.new if isinstance(new, attribute.class_) and getattr(new, name) is None]
        for changed in flushed.dirty:
            if isinstance(changed, attribute.class_) and list(attributes.get_history(changed, name).added or ()) == [None]:
                raise ValueError(f"{attribute} of a stored object becomes None")
        if empty:
            for new, value in zip(empty, _take(source, len(empty), column)):
                setattr(new, name, value)

    event.listen(_blocking(session), "before_flush", before_flush)


def _blocking(session: Any) -> Any:
    """The sessions that flush."""
    if isinstance(session, async_scoped_session):
        session = session.session_factory
    if isinstance(session, AsyncSession):
        return session.sync_session
    kind: Any = getattr(session, "class_", session)
    if not hasattr(kind, "sync_session_class"):
        return session
    kind.sync_session_class = type("Session", (kind.sync_session_class,), {})  # Others have the one that it was.
    return kind.sync_session_class


def _refuse_updates(statement: Any, column: Any) -> None:
    """Refuses to take an id where a row that has it already would be changed."""
    conflict = getattr(statement, "_post_values_clause", None)
    updates = hasattr(conflict, "update_values_to_set") or hasattr(conflict, "update")
    replaces = any("REPLACE" in str(prefix).upper() for prefix, _ in getattr(statement, "_prefixes", ()))
    others = {_folded(other) for other in column.table.columns} - {_folded(column)}
    if replaces or updates and not others.issuperset(map(_folded, _targets(conflict, column.table) or [column])):
        raise ValueError(f"an id that is taken would change a row: give {column} a value")


def _targets(conflict: Any, table: Any) -> list[Any]:
    """The columns, or expressions, whose conflict changes a row; empty if they are not known."""
    name = getattr(conflict, "constraint_target", None)
    for found in [*table.constraints, *table.indexes] if name else ():
        columns = list(getattr(found, "expressions", found.columns))
        unnamed = f"{table.name}_pkey", f"{table.name}_{'_'.join(map(_folded, columns))}_key"  # As PostgreSQL names them.
        if name == (found.name or unnamed[found is not table.primary_key]):
            return columns
    return list(getattr(conflict, "inferred_target_elements", None) or ())


def _folded(target: Any) -> str:
    return str(getattr(target, "name", target)).strip('"').lower()


def _take(source: Source, n: int, column: Any) -> list[Any]:
    return _sources.take(source, n, _is_integer(column), await_only)


def _is_integer(column: Any) -> bool:
    try:
        kind = column.type.python_type
    except NotImplementedError:
        kind = None
    if kind not in (int, str):
        raise TypeError(f"{column} is a column of {column.type!r}, neither of integers nor of text")
    return bool(kind is int)
