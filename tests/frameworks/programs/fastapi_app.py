# SPDX-License-Identifier: Apache-2.0
"""A FastAPI application with an engine of its own, and a worker for its queue in the same process."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException
from sqlalchemy import create_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

import sqsqlite

engine = create_engine(
    "sqlite:///app.db", module=sqsqlite.dbapi, connect_args={"isolation_level": "IMMEDIATE"}
)


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    item: Mapped[str] = mapped_column(unique=True)
    is_mailed: Mapped[bool] = mapped_column(default=False)


sqs = sqsqlite.connect("app.db", adopt=True)
mail = sqs.create_queue("mail")
Base.metadata.create_all(engine)


def session() -> Iterator[Session]:
    """Use it with scope="function": FastAPI would otherwise commit after it has answered."""
    with Session(engine) as opened, opened.begin():
        yield opened


def work(stop: threading.Event) -> None:
    while not stop.is_set():
        for message in mail.receive(10, wait=1):
            with Session(engine) as opened, opened.begin():
                opened.get_one(Order, int(message.body)).is_mailed = True
                message.delete(connection=opened)


@contextlib.asynccontextmanager
async def lifespan(_: FastAPI):
    stop = threading.Event()
    worker = threading.Thread(target=work, args=(stop,))
    worker.start()
    yield
    stop.set()
    worker.join()


app = FastAPI(lifespan=lifespan)


@app.post("/orders/{item}")
def place(item: str, opened: Annotated[Session, Depends(session, scope="function")]) -> dict[str, int]:
    order = Order(item=item)
    opened.add(order)
    opened.flush()
    mail.send(str(order.id), connection=opened)
    if item == "broken":
        raise HTTPException(409, "this order can't be placed")
    return {"id": order.id}


@app.get("/orders")
def orders(opened: Annotated[Session, Depends(session, scope="function")]) -> dict[str, bool]:
    return {order.item: order.is_mailed for order in opened.query(Order)}
