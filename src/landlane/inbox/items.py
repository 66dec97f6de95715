"""The inbox: all that waits for a person, in one form: questions, landings, reviews, handoffs, dead tasks."""

from __future__ import annotations

from landlane.clock import rfc3339
from landlane.gates.records import is_given_up, read_gates
from landlane.gates.subject import diff_size
from landlane.handoffs.transfer import waiting_in
from landlane.inbox.unblocks import find_unblocked
from landlane.landing.model import HELD, NEW_CHECKS, gated_path
from landlane.landing.records import read_landings
from landlane.reviews.model import PERSON, UNDECIDED
from landlane.reviews.records import reviews_in
from landlane.tasks.model import DEAD, FAILED, is_for_person
from landlane.tasks.records import list_tasks, task_history
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from landlane.gates.json_types import GateEvidenceJson
    from landlane.gates.model import Gate
    from landlane.handoffs.model import Handoff
    from landlane.inbox.json_types import InboxItemJson, InboxKind
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


@value
class _Known:
    """What the items are described with: all tasks by id, and the time."""

    tasks: Mapping[str, Task]
    now: int


def find_waiting(repo: Repository, person: str = "") -> Waiting:
    """Return what waits for a person; reviews and handoffs only if they are addressed to one."""
    dead = list_tasks(repo, (FAILED, DEAD))

    def look(snapshot: Snapshot) -> Waiting:
        return Waiting(
            gates=read_gates(snapshot),
            landings=read_landings(snapshot, (HELD,)),
            reviews=[review for review in reviews_in(snapshot, UNDECIDED) if _asks_person(review, person)],
            handoffs=[handoff for handoff in waiting_in(snapshot) if _is_for_person(handoff, person)],
            dead=[task for task in dead if not is_given_up(snapshot, task.id, task.attempt)],
        )

    return repo.store.view(look)


def _is_for_person(handoff: Handoff, person: str) -> bool:
    is_named = is_for_person(handoff.to) or handoff.to == (person or PERSON)
    return is_named and person not in handoff.declined


def _asks_person(review: Review, person: str) -> bool:
    """Return whether a review waits for the verdict of a person; a decision of theirs is a gate."""
    names = {PERSON, person} - {""}
    return not review.gate and any(entry.name in names for entry in review.awaited)


def list_items(repo: Repository, person: str = "") -> list[InboxItemJson]:
    """Return the items of the inbox as JSON: first what unblocks most, then the riskiest, then the oldest."""
    waiting, now = find_waiting(repo, person), repo.wall_ms()
    if not len(waiting):
        return []
    known = _Known(tasks={task.id: task for task in list_tasks(repo)}, now=now)
    items = [_landing_item(landing, known) for landing in waiting.landings]
    items += [_gate_item(gate, known) for gate in waiting.gates]
    items += [_review_item(repo, review, known) for review in waiting.reviews]
    items += [_handoff_item(handoff, known) for handoff in waiting.handoffs]
    items += [_dead_item(repo, task, known) for task in waiting.dead]
    items.sort(key=lambda item: (-len(item["unblocks"]), -item["risk"], item["asked_at"], item["id"]))
    return items


def _landing_item(landing: Landing, known: _Known) -> InboxItemJson:
    named = gated_path(landing.gate) or (landing.paths[0] if landing.paths else landing.branch)
    about = _named(landing.task, known) or landing.subject
    change = f"a change to {named}" if not landing.gate.startswith(NEW_CHECKS) else "other [landing] checks"
    what = f"approve {change}" + (f" ({about})" if about else "")
    return _item(landing.id, "landing", what, landing.task, known, landing.submitted_at, _LANDING_RISK)


def _gate_item(gate: Gate, known: _Known) -> InboxItemJson:
    name = _named(gate.task, known)
    why = " ".join(gate.why.split())
    if gate.task and why.startswith(f"{gate.task} "):
        why = why.removeprefix(f"{gate.task} ")
        what = f"{name} {why}"
    else:
        what = f"{name}: {why}" if name else why
    return _item(gate.id, "gate", what, gate.task, known, gate.asked_at, gate.risk)


def _review_item(repo: Repository, review: Review, known: _Known) -> InboxItemJson:
    size: GateEvidenceJson = diff_size(repo, review.head) if review.head and repo.checkout.common_dir else {}
    lines = f" (+{size.get('added')} −{size.get('removed')})" if size else ""
    what = f"review {_named(review.task, known) or review.task}{lines}"
    return _item(review.id, "review", what, review.task, known, review.opened_at, _REVIEW_RISK)


def _handoff_item(handoff: Handoff, known: _Known) -> InboxItemJson:
    then = f": {' '.join(handoff.next.split())}" if handoff.next else ""
    what = f"take over {_named(handoff.task, known)} from {handoff.sender}{then}"
    return _item(handoff.id, "handoff", what, handoff.task, known, handoff.sent_at, _HANDOFF_RISK)


def _dead_item(repo: Repository, task: Task, known: _Known) -> InboxItemJson:
    what = f"retry {task.title}? {' '.join(task.why.split()) or 'it failed for good'}"
    history = task_history(repo, task.id)
    died_at = history[-1].at if history else 0
    return _item(task.id, "dead", what, task.id, known, died_at, _DEAD_RISK)


def _named(task_id: str, known: _Known) -> str:
    return f"{task_id} {known.tasks[task_id].title}" if task_id in known.tasks else task_id


def _item(
    id: str, kind: InboxKind, what: str, task: str, known: _Known, asked_ms: int, risk: int
) -> InboxItemJson:
    return {
        "id": id,
        "kind": kind,
        "what": what,
        "task": task or None,
        "title": known.tasks[task].title if task in known.tasks else None,
        "risk": risk,
        "unblocks": find_unblocked(known.tasks.values(), task) if task else [],
        "command": f"landlane inbox {id}",
        "asked_at": rfc3339(asked_ms),
        "waited_seconds": max(known.now - asked_ms, 0) // 1000,
    }
