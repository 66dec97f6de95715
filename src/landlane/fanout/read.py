"""List fan-outs; show one with its results."""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.fanout.join import settle_fans
from landlane.fanout.model import (
    OPEN,
    Branch,
    Fan,
)
from landlane.fanout.records import NOUN, fan_from, results_of
from landlane.store import records
from landlane.tasks.rows import unknown_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.context import Context
    from landlane.store.interface import Reading


def list_fans(context: Context, *, with_all: bool = False) -> list[Fan]:
    """The fans that are open, or all of them."""
    settle_fans(context)
    states = () if with_all else (OPEN,)
    return [fan_from(one) for one in context.store.view(lambda it: records.all_of(it, NOUN, states))]


def find_fan(context: Context, name: str) -> tuple[Fan, tuple[Branch, ...]]:
    """A fan by its id, or the newest of a task, with its results in order.

    Raises:
        Malformed: there is none.
    """

    def look(reading: Reading) -> tuple[Fan, tuple[Branch, ...]]:
        document = records.find(reading, NOUN, name)
        if document is None:
            if name[:1] == "T" and reading.one("task_get", task=name) is None:
                raise unknown_task(name)
            document = next(reversed(records.by_key(reading, NOUN, name)), None)
        if document is None:
            raise Malformed(
                f"{name[:40]!r} was not split",
                code="UNKNOWN_FAN",
                hint="`landlane fan list --all` shows all",
            )
        fan = fan_from(document)
        return fan, results_of(reading, fan)

    settle_fans(context)
    return context.store.view(look)
