"""Turn the values of the packages below into those of the library: datetimes, timedeltas, and no internals.

A public value has the fields of the internal one by the same name. A `datetime` was an instant in
milliseconds, of the store's clock or of the calendar; a `timedelta` was a field whose name ends in `_ms`.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

from landlane.api import claim_values, shared_values, task_values
from landlane.api.hints import library_text
from landlane.claims import check
from landlane.claims import model as claims
from landlane.claims.to_json import outcome_json
from landlane.fanout import model as fanout
from landlane.fanout.split import SplitTask
from landlane.gates.model import Gate
from landlane.handoffs.accept import Accepted
from landlane.handoffs.model import Handoff
from landlane.landing.model import Landing
from landlane.plans.add_tasks import AddedPlan
from landlane.rescue.refs import Rescue
from landlane.reviews.model import Review, ReviewEntry
from landlane.sessions import model as sessions
from landlane.state import key_rules, slot_kinds
from landlane.state.numbers import AllocatedNumber
from landlane.state.steps import CompletedStep
from landlane.state.to_json import slot_outcome_json, stale_json
from landlane.stats.metrics import Stats
from landlane.store.journal_chain import JournalCheck, JournalEntry
from landlane.tasks import add, pick, retry_rules
from landlane.tasks.evidence import Completion
from landlane.tasks.import_checklist import Imported
from landlane.tasks.model import Evidence, Lesson, Task
from landlane.tasks.records import task_paths
from landlane.tasks.text import why_no_task
from landlane.tasks.worker_pool import Pool
from landlane.usage.add import Booked
from landlane.usage.model import UsageEntry
from landlane.usage.period import Period
from landlane.values import replace
from landlane.workspaces.close import Closed
from landlane.workspaces.model import Workspace
from landlane.workspaces.open import Opened
from landlane.workspaces.survey import WorkspaceStatus

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from landlane.store.interface import Store

_PUBLIC: dict[type, type] = {
    internal: getattr(module, internal.__name__)
    for module, internals in {
        claim_values: (
            claims.Claim, claims.Holding, claims.Refusal, claims.Taken, claims.Refused, check.PathCheck,
            sessions.Session, JournalCheck,
        ),
        task_values: (
            Task, Lesson, add.Added, add.LooksAlike, AddedPlan, Imported, pick.Picked, pick.NothingReady,
            Completion, retry_rules.Lineage, Pool, fanout.Fan, SplitTask, Handoff,
            Accepted, Gate, ReviewEntry, Review, Landing,
        ),
        shared_values: (
            key_rules.State, key_rules.StateStale, sessions.Slot, slot_kinds.SlotTaken,
            slot_kinds.SlotRefused, AllocatedNumber, CompletedStep, UsageEntry, Booked, Period, Stats,
            Workspace, Opened, Closed, WorkspaceStatus, Rescue,
        ),
    }.items()
    for internal in internals
}  # fmt: skip
_PUBLIC.update({JournalEntry: claim_values.Entry, retry_rules.RetryDecision: task_values.Decision})
_IN_STORE_TIME = (claims.Claim, claims.Refusal, sessions.Session, sessions.Slot, Task)


class Publisher:
    """Makes public values; the store knows what its instants are in calendar time."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def publish(self, item: object) -> Any:
        """Return the public form of a value, or of every value in a list or tuple."""
        if isinstance(item, list):
            return [self.publish(one) for one in cast("list[object]", item)]
        if isinstance(item, tuple):
            return tuple(self.publish(one) for one in cast("tuple[object, ...]", item))
        if isinstance(item, Evidence):
            return replace(item, hint=library_text(item.hint))
        public: Any = _PUBLIC.get(type(item))
        if public is None:
            return item
        special = self._special_fields(item)
        kinds: dict[str, str] = public.__annotations__
        names = [name for name in public._fields if name not in special]
        return public(**special, **{name: self._field(item, name, kinds[name]) for name in names})

    def _field(self, item: Any, name: str, kind: str) -> Any:
        if kind == "timedelta":
            return timedelta(milliseconds=getattr(item, f"{name}_ms"))
        found = getattr(item, name)
        if not kind.startswith("datetime"):
            return library_text(found) if name in ("hint", "advice") else self.publish(found)
        if not found and "None" in kind:
            return None
        return _moment(self._store.wall_of(found) if isinstance(item, _IN_STORE_TIME) else found)

    def _special_fields(self, item: object) -> dict[str, Any]:
        """Return the fields that are more than a field of the internal value."""
        found = _SPECIAL.get(type(item))
        return found(item, self._store) if found is not None else {}


def _moment(wall_ms: int) -> datetime:
    return datetime.fromtimestamp(wall_ms / 1000, tz=UTC)


def _sentences(document: dict[str, Any]) -> dict[str, str]:
    """Return code, message and hint of a refusal from its JSON form."""
    return {
        "code": document["code"],
        "message": library_text(document["message"]),
        "hint": library_text(document["hint"]),
    }


def _looks_alike(item: add.LooksAlike, _: Store) -> dict[str, Any]:
    first = item.similar[0]
    message = f"this looks like {first.task} {first.title} ({first.state}): {first.reason}"
    return {
        "code": "TASK_SIMILAR",
        "message": message,
        "hint": "if it is different work: add it with force=True",
    }


def _nothing_ready(item: pick.NothingReady, _: Store) -> dict[str, Any]:
    hint = "wait for one: tasks.next(wait='10m')"
    if item.in_hand:
        hint = "continue with it: tasks.next(resume=True)"
    elif not item.counts:
        hint = "add one: tasks.add('What to do')"
    return {
        "code": "NO_TASK",
        "message": f"no task to take: {why_no_task(item)}",
        "hint": hint,
        "held_back": tuple((task, _moment(until)) for task, until in item.held_back),
    }


_SPECIAL: dict[type, Callable[[Any, Store], dict[str, Any]]] = {
    claims.Refused: lambda item, store: _sentences(outcome_json(item, store)[0]),
    key_rules.StateStale: lambda item, _: _sentences(stale_json(item)[0]),
    slot_kinds.SlotRefused: lambda item, store: _sentences(slot_outcome_json(item, store)[0]),
    add.LooksAlike: _looks_alike,
    pick.NothingReady: _nothing_ready,
    JournalEntry: lambda item, _: {"data": item.facts()},
    Task: lambda item, _: {"paths": task_paths(item), "branch": item.branch if item.attempt else ""},
    retry_rules.Lineage: lambda item, _: {"held": {task: _moment(at) for task, at in item.held.items()}},
}
