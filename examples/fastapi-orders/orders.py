"""A web service that takes orders, each of which gets a number of its own from idnode. README.md shows it."""

import os
import re
import sys

import idnode
import idnode.aio
import uvicorn
from fastapi import FastAPI, Header, HTTPException
from fastapi.responses import JSONResponse
from idnode.sqlalchemy import column_default
from pydantic import BaseModel
from sqlalchemy import BigInteger, Column, String, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import declarative_base, sessionmaker

NOT_NOW = idnode.DeadlineError, idnode.NoEndpointError, idnode.NoQuorumError, idnode.OutcomeUnknownError, idnode.OverloadedError
REFUSED = idnode.InvalidError, idnode.RequestIdReusedError, idnode.RequestIdExpiredError
KEY = re.compile("[!-~]{1,48}")  # A request id has at most 64 bytes.

ids = idnode.aio.Client.from_env()
engine = create_async_engine("sqlite+aiosqlite:///" + os.environ.get("DATABASE", "orders.db"), connect_args={"timeout": 30})
Session = sessionmaker(engine, class_=AsyncSession, expire_on_commit=False)
Base = declarative_base()
app = FastAPI()


class Order(Base):
    __tablename__ = "orders"
    id = Column(String, primary_key=True, default=column_default(ids.hilo("orders")))
    key = Column(String, unique=True, nullable=False)
    customer = Column(String, nullable=False)
    number = Column(BigInteger, unique=True)

    def told(self):
        return {"id": self.id, "key": self.key, "customer": self.customer, "number": str(self.number or "")}


class Placed(BaseModel):
    customer: str


async def number(session, order):
    """Takes the order's number and stores it. The service's name and the order's key are the request id of the call: whoever repeats it,
    this caller, another one at the same time or the service after a crash, gets the same number."""
    order.number = await ids.identity("orders").next(request_id=f"fastapi-orders-{order.key}")
    await session.commit()
    return order


async def find(session, key):
    return (await session.execute(select(Order).where(Order.key == key))).scalar_one_or_none()


@app.post("/orders")
async def place(placed: Placed, idempotency_key: str = Header("")):
    if not KEY.fullmatch(idempotency_key):
        raise HTTPException(400, "an order has a header Idempotency-Key of 1 to 48 characters of ASCII")
    async with Session() as session:
        order = await find(session, idempotency_key)
        if not order:
            order = Order(key=idempotency_key, customer=placed.customer)
            session.add(order)
            try:
                await session.commit()
            except IntegrityError:  # Another call has stored it.
                await session.rollback()
                order = await find(session, idempotency_key)
        return (order if order.number else await number(session, order)).told()


@app.get("/orders")
async def orders():
    async with Session() as session:
        return [order.told() for order in (await session.execute(select(Order))).scalars()]


async def not_now(request, error):
    return JSONResponse({"error": str(error)}, 503)  # The same call later gives the order its number.


for kind in NOT_NOW:
    app.add_exception_handler(kind, not_now)


@app.on_event("startup")
async def begin():
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    async with Session() as session:  # What was stored without a number when the service ended gets it now.
        for order in (await session.execute(select(Order).where(Order.number.is_(None)))).scalars().all():
            try:
                await number(session, order)
            except REFUSED as error:  # For good. The others get theirs.
                print(f"the order {order.key} gets no number: {error}", file=sys.stderr)
    print("ready", flush=True)


@app.on_event("shutdown")
async def end():
    await ids.close()
    await engine.dispose()


uvicorn.run(app, host="127.0.0.1", port=int(os.environ.get("PORT", "8080")), log_level="warning")
