"""What was spent today, per landed task, and which task is closest to its budget."""

from __future__ import annotations

from landlane.landing.model import LANDED
from landlane.landing.records import list_landings
from landlane.usage.model import day_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from landlane.repository import Repository
    from landlane.status.headline import Headline
    from landlane.status.json_types import MoneyJson


def money_json(repo: Repository, headline: Headline, working: Sequence[Mapping[str, Any]]) -> MoneyJson:
    """Return today's spending, its share per landed task, and the task that is closest to its budget."""
    spent = headline.spent_micros / 1_000_000
    day_budget, task_budget = headline.day_budget_micros, repo.settings.budgets.task_micros
    landed = _landed_today(repo) if spent else 0
    closest = max(working, key=lambda row: row["cost_usd"] or 0, default=None)
    has_closest = task_budget is not None and closest is not None and closest["cost_usd"]
    return {
        "today_usd": spent,
        "is_known": not headline.has_unknown_cost,
        "day_budget_usd": None if day_budget is None else day_budget / 1_000_000,
        "per_landed_usd": spent / landed if landed else None,
        "closest_task": closest["task"] if has_closest and closest is not None else None,
        "closest_usd": closest["cost_usd"] if has_closest and closest is not None else None,
        "task_budget_usd": None if task_budget is None else task_budget / 1_000_000,
    }


def _landed_today(repo: Repository) -> int:
    """Return how many tasks have landed since midnight UTC."""
    today = day_of(repo.store.wall_of(repo.store.view(lambda snapshot: snapshot.now)))
    landed = list_landings(repo, (LANDED,))
    return len({landing.task for landing in landed if landing.task and day_of(landing.ended_at) == today})
