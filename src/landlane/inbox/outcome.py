"""Say what an answer did: which task goes on, and with whom."""

from __future__ import annotations

from landlane.gates.model import APPROVED
from landlane.landing.model import QUEUED, TESTING
from landlane.landing.records import list_landings
from landlane.tasks.model import DEAD, READY
from landlane.tasks.records import get_task
from landlane.units import count, ordinal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.gates.model import Gate
    from landlane.landing.model import Landing
    from landlane.repository import Repository
    from landlane.tasks.model import Task

_COMMIT = 8  # digits of a commit that people see


def gate_outcome(repo: Repository, gate: Gate) -> str:
    """Return what the answer to a gate did, in one sentence."""
    is_yes = gate.state == APPROVED
    done = f"{'approved' if is_yes else 'rejected'} {gate.id}"
    if not gate.task:
        return done
    task = get_task(repo, gate.task)
    name = f"{task.id} {task.title}"
    if gate.is_resumed:
        return f"{done}; {gate.agent} continues {name}"
    if task.state == DEAD:
        return f"{done}; {name} is not tried again"
    if task.state != READY:
        return f"{done}; {name} is {task.state.replace('_', ' ')}"
    if is_yes and gate.about.get("retries"):
        budget = count(task.max_attempts, "attempt")
        return f"{name} is ready again with your answer and a new budget of {budget}"
    return f"{done}; {name} is ready again with your {'answer' if is_yes else 'reason'}"


def landing_outcome(repo: Repository, landing: Landing) -> str:
    """Return what the answer to a held landing did, in one sentence."""
    if landing.state in (QUEUED, TESTING):
        queue = [one.id for one in list_landings(repo, (QUEUED, TESTING)) if one.target == landing.target]
        place = f" ({ordinal(queue.index(landing.id) + 1)})" if landing.id in queue else ""
        return f"approved {landing.head[:_COMMIT]}; {landing.id} is queued to land{place}"
    follow_up = landing.bounce_task or landing.task
    if not follow_up:
        return f"rejected {landing.id}; {landing.branch} stays as it is"
    return f"rejected {landing.id}; {_task_outcome(repo, get_task(repo, follow_up))}"


def _task_outcome(repo: Repository, task: Task) -> str:
    name = f"{task.id} {task.title}"
    if task.owner:
        return f"{task.owner} continues {name} with your reason"
    if task.state != READY:
        return f"{name} is {task.state.replace('_', ' ')}"
    return f"{name} is ready again with your reason (attempt {task.failures + 1} of {task.max_attempts})"
