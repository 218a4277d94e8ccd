"""Users with HiLo ids and numbered orders, in SQLite: ``python3 sqlalchemy_orders.py 127.0.0.1:7402``."""

import sys

import idnode
from idnode.sqlalchemy import column_default, fill
from sqlalchemy import BigInteger, Column, ForeignKey, Integer, String, create_engine, select
from sqlalchemy.orm import declarative_base, sessionmaker

Base = declarative_base()
ids = idnode.Client(sys.argv[1:])


class User(Base):
    __tablename__ = "users"
    id = Column(String, primary_key=True, default=column_default(lambda: ids.hilo("users")))
    name = Column(String)


class Order(Base):
    __tablename__ = "orders"
    id = Column(Integer, primary_key=True, default=column_default(lambda: ids.hilo("orders")))
    number = Column(BigInteger, unique=True)
    user = Column(String, ForeignKey(User.id))


engine = create_engine("sqlite://")
Base.metadata.create_all(engine)
Session = sessionmaker(engine)
fill(Session, Order.number, lambda: ids.identity("orders"))

with ids, Session() as session:
    session.add(User(name="Ayende"))
    session.commit()
    user = session.execute(select(User)).scalar_one()
    session.add_all([Order(user=user.id), Order(user=user.id), Order(user=user.id, number=1000)])
    session.commit()
    session.execute(User.__table__.insert(), [{"name": "Fitzchak"}, {"name": "Michael"}])
    print(*[user.id for user in session.execute(select(User).order_by(User.id)).scalars()])
    print(*[(order.id, order.number) for order in session.execute(select(Order).order_by(Order.id)).scalars()])
