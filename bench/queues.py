"""Queues to compare with: each moves so many trivial tasks through its full life, one worker, one by one."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import time
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Move = Callable[[int], None]

_SCHEMA = """
CREATE TABLE task (id INTEGER PRIMARY KEY, body TEXT, state INT, owner TEXT, until REAL);
CREATE INDEX ready ON task (id) WHERE state = 0;
"""
_INSERT = "INSERT INTO task (body, state) VALUES (?, 0)"
_TAKE = """
UPDATE task SET state = 1, owner = 'w', until = ?
WHERE id = (SELECT id FROM task WHERE state = 0 ORDER BY id LIMIT 1) RETURNING id
"""
_FINISH = "UPDATE task SET state = 2 WHERE id = ? AND owner = 'w'"


def bare_sqlite(folder: str) -> Move:
    """Three durable transactions for each task: insert, take, finish."""
    db = sqlite3.connect(os.path.join(folder, "bare.db"), isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    db.executescript(_SCHEMA)

    def move(count: int) -> None:
        for number in range(count):
            db.execute(_INSERT, (f"task {number}",))
            (task,) = db.execute(_TAKE, (time.time() + 1800,)).fetchone()
            db.execute(_FINISH, (task,))

    return move


def huey(folder: str) -> Move:
    """SqliteHuey: enqueue, dequeue, execute and keep the result."""
    from huey import SqliteHuey  # noqa: PLC0415 - may be missing

    queue: Any = SqliteHuey(filename=os.path.join(folder, "huey.db"), fsync=True)

    @queue.task()
    def nothing(number: int) -> int:
        return number

    def move(count: int) -> None:
        for number in range(count):
            nothing(number)
            queue.execute(queue.dequeue())

    return move


def litequeue(folder: str) -> Move:
    """LiteQueue: put, pop, done."""
    from litequeue import LiteQueue  # noqa: PLC0415 - may be missing

    queue: Any = LiteQueue(os.path.join(folder, "lite.db"))

    def move(count: int) -> None:
        for number in range(count):
            queue.put(str(number))
            queue.done(queue.pop().message_id)

    return move


def persist_queue(folder: str) -> Move:
    """SQLiteAckQueue: put, get, ack."""
    import persistqueue  # noqa: PLC0415 - may be missing

    queue: Any = persistqueue.SQLiteAckQueue(os.path.join(folder, "persist"), multithreading=False)

    def move(count: int) -> None:
        for number in range(count):
            queue.put(number)
            queue.ack(queue.get())

    return move


def procrastinate(url: str) -> Move:
    """On PostgreSQL: defer all, then let one worker run them."""
    from procrastinate import App, PsycopgConnector  # noqa: PLC0415 - may be missing

    warnings.simplefilter("ignore")
    logging.getLogger("procrastinate").setLevel(logging.CRITICAL)
    app: Any = App(connector=PsycopgConnector(conninfo=url))

    @app.task
    async def nothing(number: int) -> int:
        return number

    async def prepare() -> None:
        async with app.open_async():
            await app.schema_manager.apply_schema_async()

    async def work(count: int) -> None:
        async with app.open_async():
            for number in range(count):
                await nothing.defer_async(number=number)
            await app.run_worker_async(wait=False, concurrency=1, install_signal_handlers=False)

    asyncio.run(prepare())
    return lambda count: asyncio.run(work(count))


ON_SQLITE: dict[str, Callable[[str], Move]] = {
    "huey": huey,
    "litequeue": litequeue,
    "persist-queue": persist_queue,
}
