"""Budgets: which one of a task is used up, what is left, and asking a person when it is."""

from __future__ import annotations

from landlane.settings.money import micros_from
from landlane.store import records
from landlane.tasks.model import READY
from landlane.tasks.records import get_task, lock_task
from landlane.tasks.retry import hold_for_person_in
from landlane.units import money, money_limit
from landlane.usage.model import ATTEMPT, RUN, TASK, TODAY, Budget, day_of, price_of
from landlane.usage.totals import of_day, of_lineage, of_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from landlane.protocol.worker.messages import Usage
    from landlane.repository import Repository
    from landlane.settings.model import Settings
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.model import Task
    from landlane.usage.model import UsageEntry


def reached_text(budget: Budget) -> str:
    """Return what was spent of a budget of the day or the run: `$20.04 of $20 today`."""
    scope = "today" if budget.kind == TODAY else "for this run"
    return f"{money(budget.spent)} of {money_limit(budget.limit)} {scope}"


def why_over_budget(repo: Repository, task: Task, *, run: str = "", so_far: Usage | None = None) -> str:
    """Return which budget of a task is used up, in words; empty when none is."""
    used_up = over_budget(repo, task, run=run, so_far=so_far)
    return used_up.why if used_up is not None else ""


def over_budget(repo: Repository, task: Task, *, run: str = "", so_far: Usage | None = None) -> Budget | None:
    """Return the budget of a task that is used up, if any.

    Called before an attempt and while it runs, with what it used `so_far` if that was not recorded yet.
    `run` names the orchestrator that asks.
    """
    if not has_budget(repo, task):
        return None
    return repo.store.view(lambda snapshot: over_in(snapshot, repo, task, run=run, so_far=so_far))


def park_spent(repo: Repository, task_id: str) -> None:
    """Ask a person about a task that is not started yet, if its budget is used up."""
    task = get_task(repo, task_id)
    over = over_budget(repo, task) if task.state == READY else None
    if over is None or over.kind != TASK:
        return

    def work(tx: Transaction) -> None:
        now = lock_task(tx, task_id)
        if now.state == READY:
            hold_for_person_in(tx, repo, now, f"its budget is used up: {over.why}")

    repo.change(work)


def over_in(
    snapshot: Snapshot, repo: Repository, task: Task, *, run: str = "", so_far: Usage | None = None
) -> Budget | None:
    """Like `over_budget`, in one transaction."""
    found = _budgets_in(snapshot, repo, task, run, so_far)
    return next((budget for budget in found if budget.spent >= budget.limit), None)


def has_budget(repo: Repository, task: Task) -> bool:
    """Return whether the cost of a task is limited."""
    budgets = repo.settings.budgets
    limits = (budgets.task_micros, budgets.run_micros, budgets.day_micros, own_budget(task))
    return any(limit is not None for limit in limits)


def left_for(repo: Repository, task: Task, *, run: str = "") -> int | None:
    """Return what an attempt at a task may cost now, in millionths of a US dollar; None without a limit."""
    found = repo.store.view(lambda snapshot: _budgets_in(snapshot, repo, task, run, None))
    left = [max(0, budget.limit - budget.spent) for budget in found]
    own = own_budget(task)
    return min([*left, *([own] if own is not None else [])], default=None)


def task_budget(repo: Repository, task: Task) -> Budget | None:
    """Return the smallest limit for all attempts at a task, and what counts against it; None without one."""
    found = repo.store.view(lambda snapshot: _budgets_in(snapshot, repo, task, "", None))
    limits = [budget for budget in found if budget.kind == TASK]
    return min(limits, key=lambda budget: budget.limit - budget.spent, default=None)


def _budgets_in(
    snapshot: Snapshot, repo: Repository, task: Task, run: str, so_far: Usage | None
) -> list[Budget]:
    if not has_budget(repo, task):
        return []
    settings = repo.settings
    family = of_lineage(snapshot, task.lineage)

    def is_running(entry: UsageEntry) -> bool:
        return not entry.is_final and (entry.task, entry.attempt) == (task.id, task.attempt)

    noted = next((entry for entry in family if is_running(entry)), None)
    more = _cost_so_far(repo, noted, so_far)

    def budget(kind: str, limit: int, entries: Iterable[UsageEntry], words: str) -> Budget:
        # The caller's number for the running attempt is newer than the recorded entry.
        kept = (entry for entry in entries if not more or not is_running(entry))
        return Budget(kind=kind, limit=limit, spent=counted(kept, settings) + more, words=words)

    found: list[Budget] = []
    rounds = _rounds(snapshot, task.lineage)
    own = own_budget(task)
    if own is not None:
        mine = [entry for entry in family if entry.task == task.id]
        found.append(budget(ATTEMPT, own, filter(is_running, mine), f"the attempt at {task.id}"))
        tries = task.max_attempts * rounds
        found.append(budget(TASK, own * tries, mine, f"all {tries} attempts at {task.id}"))
    if settings.budgets.task_micros is not None:
        words = f"{task.lineage} and what came of it ([budgets] task)"
        found.append(budget(TASK, settings.budgets.task_micros * rounds, family, words))
    if settings.budgets.run_micros is not None and run:
        found.append(
            budget(RUN, settings.budgets.run_micros, of_run(snapshot, run), "this run ([budgets] run)")
        )
    if settings.budgets.day_micros is not None:
        today = of_day(snapshot, day_of(repo.store.wall_of(snapshot.now)))
        found.append(budget(TODAY, settings.budgets.day_micros, today, "today, by UTC ([budgets] day)"))
    return found


def _rounds(snapshot: Snapshot, lineage: str) -> int:
    """Return how many budgets a lineage has: one, plus one for each time a person let it continue."""
    found = records.find(snapshot, "lineage", lineage)
    return 1 + int(found.get("rounds", 0)) if found is not None else 1


def _cost_so_far(repo: Repository, noted: UsageEntry | None, so_far: Usage | None) -> int:
    """Return the running attempt's cost: the caller's number or the recorded one, whichever is higher."""
    if so_far is None:
        return 0
    cost = micros_from(so_far.cost_usd)
    if cost is None:
        model = noted.model if noted is not None else ""
        cost = price_of(repo.settings.prices, model, so_far.input_tokens, so_far.output_tokens)
    return max(cost or 0, (noted.cost_micros or 0) if noted is not None else 0)


def own_budget(task: Task) -> int | None:
    """Return what one attempt at a task may cost, from its label `budget:1.50`; None without one."""
    label = next((label for label in task.labels if label.startswith("budget:")), "")
    return micros_from(label.removeprefix("budget:")) if label else None


def counted(entries: Iterable[UsageEntry], settings: Settings) -> int:
    """Return what counts against a budget: known costs, plus the configured amount per unknown cost."""
    stand_in = settings.budgets.unknown_micros or 0
    return sum(stand_in if entry.cost_micros is None else entry.cost_micros for entry in entries)
