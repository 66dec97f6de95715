"""What the files claims.json and tasks.json beside the store show: live claims and open tasks."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from landlane.context import Context


def mirror_contents(context: Context) -> dict[str, Callable[[], list[dict[str, Any]]]]:
    """Return, by name of the file without its suffix, the function that lists its entries."""
    return {"claims": lambda: _live_claims(context), "tasks": lambda: _open_tasks(context)}


def _live_claims(context: Context) -> list[dict[str, Any]]:
    from landlane.claims.read import list_claims
    from landlane.claims.to_json import claim_json

    return [claim_json(claim, context.store) for claim in list_claims(context)]


def _open_tasks(context: Context) -> list[dict[str, Any]]:
    from landlane.tasks.model import OPEN
    from landlane.tasks.read import list_tasks
    from landlane.tasks.to_json import task_json

    return [task_json(task, context.store) for task in list_tasks(context, tuple(OPEN))]
