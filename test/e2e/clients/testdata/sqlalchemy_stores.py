"""Stores rows in each way that SQLAlchemy has while rows of other origin have the next ids. Prints what came of it."""

import asyncio
import sys
from dataclasses import replace
from types import SimpleNamespace

import idnode
import idnode.aio
from idnode.sqlalchemy import column_default, fill
from sqlalchemy import (
    BigInteger, Boolean, Column, Float, ForeignKey, Index, Integer, String, UniqueConstraint, create_engine, func, insert, select, text,
)
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.exc import IntegrityError, StatementError
from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session, create_async_engine
from sqlalchemy.orm import declarative_base, relationship, sessionmaker

Base = declarative_base()
client = idnode.Client(sys.argv[1:])
users, orders = client.hilo("users"), client.identity("orders")


class User(Base):
    __tablename__ = "users"
    id = Column(String, primary_key=True, default=column_default(users))
    name = Column(String)


class Order(Base):
    __tablename__ = "orders"
    id = Column(Integer, primary_key=True)
    number = Column(BigInteger, unique=True)
    name = Column(String)
    ext = Column(String, unique=True)
    user_id = Column(ForeignKey(User.id))
    user = relationship(User)
    __table_args__ = (UniqueConstraint("ext", "name", name="once"), UniqueConstraint("ext", "number", name="both"))


class Flake(Base):
    __tablename__ = "flakes"
    id = Column(BigInteger, primary_key=True, default=column_default(lambda: client.snowflake("flakes")))
    text = Column(String)
    name = Column(String)


engine = create_engine("sqlite://")
Base.metadata.create_all(engine)
Session = sessionmaker(engine)
fill(Session, Order.number, lambda: orders)
fill(Session, Flake.text, client.snowflake("flakes"))


def nested(session, kind):
    one = kind(name="new")
    try:
        with session.begin_nested():
            session.add(one)
            session.flush()
            raise ValueError
    except ValueError:
        session.add(one)


def parent(session, kind):
    session.add(Order(name="new", user=User(name="new")))


WAYS = {
    "add": lambda session, kind: session.add(kind(name="new")),
    "add_all": lambda session, kind: session.add_all([kind(name="new")]),
    "merge": lambda session, kind: session.merge(kind(name="new")),
    "bulk_save_objects": lambda session, kind: session.bulk_save_objects([kind(name="new")]),
    "bulk_insert_mappings": lambda session, kind: session.bulk_insert_mappings(kind, [{"name": "new"}]),
    "insert": lambda session, kind: session.execute(insert(kind).values(name="new")),
    "insert of rows": lambda session, kind: session.execute(insert(kind).values([{"name": "new"}])),
    "insert of many": lambda session, kind: session.execute(insert(kind), [{"name": "new"}]),
    "upsert": lambda session, kind: session.execute(sqlite.insert(kind).values(name="new").on_conflict_do_update(
        index_elements=[_id(kind)], set_={"name": "new"})),
    "insert or replace": lambda session, kind: session.execute(insert(kind).prefix_with("OR REPLACE").values(name="new")),
    "insert from select": lambda session, kind: session.execute(insert(kind).from_select(["name"], select(User.name))),
    "nested": nested,
    "parent": parent,
}


def _id(kind):
    return kind.id if kind is User else kind.number


def store(way, kind, taken):
    """Stores while a row has the next id, or none has it."""
    if kind is User:
        number = users.next()
        following = str(replace(number, value=number.value + 1))
    else:
        following = orders.next() + 1
    with Session() as session:
        for table in "orders", "users":
            session.execute(text(f"DELETE FROM {table}"))
        if taken:
            session.execute(insert(kind).values({_id(kind).key: following, "name": "imported"}))
        session.commit()
        try:
            WAYS[way](session, kind)
            session.commit()
            ended = "right" if session.query(kind).filter(_id(kind) == following, kind.name == "new").count() else "wrong"
        except IntegrityError:
            session.rollback()
            ended = "refused"
        except StatementError as error:
            session.rollback()
            ended = "refused at once" if isinstance(error.orig, ValueError) else str(error)
        imported = session.query(kind).filter(_id(kind) == following, kind.name == "imported").count()
        empty = session.query(kind).filter((_id(kind).is_(None)) | (_id(kind) == "")).count()
        return ended + ("" if imported == taken and not empty else " and wrong rows")


Index("folded", func.lower(Order.number))


def number_upsert(dialect, **target):
    """An upsert of an order, as far as its number is taken."""
    statement = dialect.insert(Order).values(name="a").on_conflict_do_update(set_={"name": "b"}, **target)
    column = Order.__table__.c.number
    column.default.arg(SimpleNamespace(current_column=column, compiled=SimpleNamespace(statement=statement)))


def refused(what, call):
    try:
        call()
        print(what, "passed")
    except (TypeError, ValueError) as error:
        print(f"{what}: {type(error).__name__}")
    except StatementError as error:
        print(f"{what}: {type(error.orig).__name__}")


with client:
    for way in WAYS:
        print(f"{way}:", ", ".join(store(way, kind, taken) for kind in (User, Order) for taken in (True, False)))
    with Session() as session:
        session.add_all([Order(name="many") for _ in range(500)])
        session.commit()
        print("many:", session.query(Order.number).filter(Order.name == "many").distinct().count())
        session.add(Flake(name="a"))
        session.execute(insert(Flake), [{"name": "b"}, {"name": "c"}])
        session.commit()
        print("snowflake:", [client.snowflake("flakes").parse(id).worker for id, in session.query(Flake.id)],
              [client.snowflake("flakes").parse(int(t)).worker for t, in session.query(Flake.text)])
        order = session.query(Order).first()
        order.number = None
        refused("a number that becomes None", session.flush)
        session.rollback()
        upsert = mysql.insert(User).values(name="a").on_duplicate_key_update(name="b")
        context = SimpleNamespace(current_column=User.__table__.c.id, compiled=SimpleNamespace(statement=upsert))
        refused("an upsert of MySQL", lambda: column_default(users).arg(context))
    for target in "number", "NUMBER", text("number"), text('"number"'), func.lower(Order.ext), "ext", Order.ext, text("EXT"):
        refused(f"an upsert by {target}", lambda: number_upsert(sqlite, index_elements=[target]))
    refused("an upsert by any", lambda: number_upsert(sqlite))
    for name in "both", "orders_number_key", "folded", "unknown", "once", "orders_ext_key":
        refused(f"an upsert by constraint {name}", lambda: number_upsert(postgresql, constraint=name))
    with Session() as session:
        twice = Order(name="twice")
        session.bulk_save_objects([twice, twice])
        print("one object twice:", len({number for number, in session.query(Order.number).filter(Order.name == "twice")}))
    for attribute in "number", Order.__table__.c.number, Order, Order.user:
        refused("no attribute of a column", lambda: fill(Session, attribute, orders))
    refused("a source that is none", lambda: column_default(7))
    refused("a class as a source", lambda: fill(Session, Order.number, idnode.Client))
    for kind in Float, Boolean:
        refused(f"a column of {kind.__name__}", lambda: Column("x", kind, default=column_default(users)))
        refused(f"an attribute of {kind.__name__}", lambda: fill(Session, type("X" + kind.__name__, (Base,), {
            "__tablename__": "x" + kind.__name__, "id": Column(Integer, primary_key=True), "x": Column(kind)}).x, users))


async def main():
    """AsyncSession, with handles of both clients."""
    async with idnode.aio.Client(sys.argv[1:]) as ids:
        class Bill(Base):
            __tablename__ = "bills"
            id = Column(String, primary_key=True, default=column_default(ids.hilo("bills")))
            number = Column(BigInteger)
            flake = Column(BigInteger)
            plain = Column(String, default=column_default(ids.identity("plain")))

        async_engine = create_async_engine("sqlite+aiosqlite://")
        async with async_engine.begin() as connection:
            await connection.run_sync(Bill.__table__.create)
        maker = sessionmaker(async_engine, class_=AsyncSession)
        fill(maker, Bill.number, ids.identity("bills"))
        fill(async_scoped_session(maker, asyncio.current_task), Bill.flake, lambda: ids.snowflake("flakes"))
        async with maker() as session:
            session.add_all([Bill() for _ in range(100)])
            await session.commit()
            await session.execute(insert(Bill), [{}, {}])
            await session.execute(insert(Bill).values([{"plain": "1"}, {"plain": "2"}]))
            await session.merge(Bill())
            await session.commit()
            rows = (await session.execute(select(Bill.id, Bill.number, Bill.flake, Bill.plain))).all()
        print("asyncio:", len(rows), [len(set(column) - {None, ""}) for column in zip(*rows)])
        one = AsyncSession(async_engine)
        fill(one, Bill.number, ids.identity("bills"))
        one.add(Bill())
        await one.commit()
        await one.close()
        with create_engine("sqlite://").connect() as blocking:
            Bill.__table__.create(blocking)
            try:
                blocking.execute(insert(Bill))
            except Exception as error:
                print("a handle of asyncio without a loop:", type(error).__name__)
        await async_engine.dispose()


asyncio.run(main())
