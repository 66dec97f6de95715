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
from landlane.tasks.records import unknown_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.store.interface import Snapshot


def list_fans(repo: Repository, *, with_all: bool = False) -> list[Fan]:
    """The fans that are open, or all of them."""
    settle_fans(repo)
    states = () if with_all else (OPEN,)
    return [fan_from(one) for one in repo.store.view(lambda it: records.all_of(it, NOUN, states))]


def find_fan(repo: Repository, name: str) -> tuple[Fan, tuple[Branch, ...]]:
    """A fan by its id, or the newest of a task, with its results in order.

    Raises:
        Malformed: there is none.
    """

    def look(snapshot: Snapshot) -> tuple[Fan, tuple[Branch, ...]]:
        document = records.find(snapshot, NOUN, name)
        if document is None:
            if name[:1] == "T" and snapshot.one("task_get", task=name) is None:
                raise unknown_task(name)
            document = next(reversed(records.by_key(snapshot, NOUN, name)), None)
        if document is None:
            raise Malformed(
                f"{name[:40]!r} was not split",
                code="UNKNOWN_FAN",
                hint="`landlane fan list --all` shows all",
            )
        fan = fan_from(document)
        return fan, results_of(snapshot, fan)

    settle_fans(repo)
    return repo.store.view(look)
