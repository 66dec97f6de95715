"""The inbox: all that waits for a person, in one form: questions, landings, reviews, handoffs, dead tasks."""

from __future__ import annotations

from landlane.clock import rfc3339
from landlane.gates.model import REJECTED
from landlane.gates.records import read_gates
from landlane.gates.subject import diff_size
from landlane.handoffs.transfer import waiting_in
from landlane.inbox.unblocks import find_unblocked
from landlane.landing.model import HELD, gated_path
from landlane.landing.records import read_landings
from landlane.reviews.model import PERSON, UNDECIDED
from landlane.reviews.records import reviews_in
from landlane.store import records
from landlane.tasks.model import DEAD
from landlane.tasks.records import list_tasks, task_history
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from landlane.gates.model import Gate
    from landlane.handoffs.model import Handoff
    from landlane.landing.model import Landing
    from landlane.repository import Repository
    from landlane.reviews.model import Review
    from landlane.store.interface import Snapshot
    from landlane.tasks.model import Task

_LANDING_RISK = 40  # the order among items that unblock nothing
_DEAD_RISK = 30
_HANDOFF_RISK = 25
_REVIEW_RISK = 20


@value
class Waiting:
    """What waits for a person."""

    gates: Sequence[Gate]
    landings: Sequence[Landing]
    reviews: Sequence[Review]
    handoffs: Sequence[Handoff]
    dead: Sequence[Task]  # failed for good, and no person has decided that

    def __len__(self) -> int:
        kinds = (self.gates, self.landings, self.reviews, self.handoffs, self.dead)
        return sum(len(items) for items in kinds)


def find_waiting(repo: Repository, person: str = "") -> Waiting:
    """Return what waits for a person; reviews and handoffs only if they are addressed to one."""
    dead = list_tasks(repo, (DEAD,))

    def look(snapshot: Snapshot) -> Waiting:
        return Waiting(
            gates=read_gates(snapshot),
            landings=read_landings(snapshot, (HELD,)),
            reviews=[review for review in reviews_in(snapshot, UNDECIDED) if _asks_person(review, person)],
            handoffs=[handoff for handoff in waiting_in(snapshot) if _is_for_person(handoff, person)],
            dead=[task for task in dead if not _was_rejected(snapshot, task)],
        )

    return repo.store.view(look)


def _is_for_person(handoff: Handoff, person: str) -> bool:
    return handoff.to in {PERSON, person} - {""} and person not in handoff.declined


def _was_rejected(snapshot: Snapshot, task: Task) -> bool:
    """Return whether a person has decided that a task is not tried again."""
    return bool(records.find_by_key(snapshot, "gate", task.id, REJECTED))


def _asks_person(review: Review, person: str) -> bool:
    """Return whether a review waits for the verdict of a person; a decision of theirs is a gate."""
    names = {PERSON, person} - {""}
    return not review.gate and any(entry.name in names for entry in review.awaited)


def list_items(repo: Repository, person: str = "") -> list[dict[str, Any]]:
    """Return the items of the inbox as JSON: first what unblocks most, then the riskiest, then the oldest."""
    waiting, now = find_waiting(repo, person), repo.wall_ms()
    if not len(waiting):
        return []
    tasks = {task.id: task for task in list_tasks(repo)}
    items = [_landing_item(landing, tasks) for landing in waiting.landings]
    items += [_gate_item(gate, tasks) for gate in waiting.gates]
    items += [_review_item(repo, review, tasks) for review in waiting.reviews]
    items += [_handoff_item(handoff, tasks) for handoff in waiting.handoffs]
    items += [_dead_item(repo, task, tasks) for task in waiting.dead]
    items.sort(key=lambda item: (-len(item["unblocks"]), -item["risk"], item["asked_ms"], item["id"]))
    for item in items:
        asked = item.pop("asked_ms")
        item |= {"asked_at": rfc3339(asked), "waited_seconds": max(now - asked, 0) // 1000}
    return items


def _landing_item(landing: Landing, tasks: Mapping[str, Task]) -> dict[str, Any]:
    named = gated_path(landing.gate) or (landing.paths[0] if landing.paths else landing.branch)
    about = _named(landing.task, tasks) or landing.subject
    what = f"approve a change to {named}" + (f" ({about})" if about else "")
    return _item(landing.id, "landing", what, landing.task, tasks, landing.submitted_at, _LANDING_RISK)


def _gate_item(gate: Gate, tasks: Mapping[str, Task]) -> dict[str, Any]:
    name = _named(gate.task, tasks)
    why = " ".join(gate.why.split())
    if gate.task and why.startswith(f"{gate.task} "):
        why = why.removeprefix(f"{gate.task} ")
        what = f"{name} {why}"
    else:
        what = f"{name}: {why}" if name else why
    return _item(gate.id, "gate", what, gate.task, tasks, gate.asked_at, gate.risk)


def _review_item(repo: Repository, review: Review, tasks: Mapping[str, Task]) -> dict[str, Any]:
    size = diff_size(repo, review.head) if review.head and repo.checkout.common_dir else {}
    lines = f" (+{size['added']} −{size['removed']})" if size else ""
    what = f"review {_named(review.task, tasks) or review.task}{lines}"
    return _item(review.id, "review", what, review.task, tasks, review.opened_at, _REVIEW_RISK)


def _handoff_item(handoff: Handoff, tasks: Mapping[str, Task]) -> dict[str, Any]:
    then = f": {' '.join(handoff.next.split())}" if handoff.next else ""
    what = f"take over {_named(handoff.task, tasks)} from {handoff.sender}{then}"
    return _item(handoff.id, "handoff", what, handoff.task, tasks, handoff.sent_at, _HANDOFF_RISK)


def _dead_item(repo: Repository, task: Task, tasks: Mapping[str, Task]) -> dict[str, Any]:
    why = f" ({' '.join(task.why.split())})" if task.why else ""
    what = f"{task.id} {task.title} failed for good{why}: retry?"
    history = task_history(repo, task.id)
    died_at = history[-1].at if history else 0
    return _item(task.id, "dead", what, task.id, tasks, died_at, _DEAD_RISK)


def _named(task_id: str, tasks: Mapping[str, Task]) -> str:
    return f"{task_id} {tasks[task_id].title}" if task_id in tasks else task_id


def _item(
    id: str, kind: str, what: str, task: str, tasks: Mapping[str, Task], asked_ms: int, risk: int
) -> dict[str, Any]:
    return {
        "id": id,
        "kind": kind,
        "what": what,
        "task": task or None,
        "title": tasks[task].title if task in tasks else None,
        "risk": risk,
        "asked_ms": asked_ms,
        "unblocks": find_unblocked(tasks.values(), task) if task else [],
        "command": f"landlane inbox {id}",
    }
