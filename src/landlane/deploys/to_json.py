"""Positions, updates and deploys as the JSON that every door answers with."""

from __future__ import annotations

from landlane.clock import rfc3339
from landlane.deploys.model import LIVE
from landlane.deploys.sync import position_facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.deploys.model import Deploy
    from landlane.deploys.sync import Position
    from landlane.deploys.update_checkout import Update

_HINTS = {
    "DEPLOY_FAILED": "nobody knows how far it came: look at the target, then mend it and deploy again",
    "VERIFY_FAILED": "it was brought there and does not show as it should: look at the target first",
    "MOVED_MEANWHILE": "what was brought there may be no commit: leave the checkout alone, deploy again",
}


def sync_json(position: Position) -> dict[str, Any]:
    """The answer to `sync` of a checkout that is not behind."""
    return {"ok": True, **position_facts(position)}


def update_json(update: Update) -> tuple[dict[str, Any], int]:
    """The answer to `sync --update`, and the exit code that goes with it."""
    has_moved = update.before != update.position.head
    told: dict[str, Any] = {
        **position_facts(update.position),
        "updated": update.how if has_moved else None,
        "before": update.before,
        "checks": list(update.checks),
    }
    failed = [check["name"] for check in update.checks if not check["passed"]]
    if not failed:
        return {"ok": True, **told}, 0
    return {
        "ok": False,
        "code": "CHECK_FAILED",
        "message": f"{update.position.branch} is up to date, and {failed[0]} fails on it",
        "hint": "mend it here before you land; the update stays",
        **told,
    }, 1


def deploy_json(deploy: Deploy) -> dict[str, Any]:
    """A deploy as programs read it."""
    return {
        "id": deploy.id,
        "target": deploy.target,
        "state": deploy.state,
        "commit": deploy.commit,
        "agent": deploy.agent,
        "session": deploy.session,
        "task": deploy.task or None,
        "command": deploy.command,
        "began": rfc3339(deploy.began_at),
        "ended": rfc3339(deploy.ended_at) if deploy.ended_at is not None else None,
        "exit": deploy.exit,
        "reason": deploy.reason or None,
        "verified": deploy.verified,
        "output": deploy.output or None,
    }


def deployed_json(deploy: Deploy) -> tuple[dict[str, Any], int]:
    """The answer to `deploy`, and the exit code that goes with it."""
    if deploy.state == LIVE:
        return {"ok": True, **deploy_json(deploy)}, 0
    return {
        "ok": False,
        "code": deploy.code,
        "message": f"{deploy.id} to {deploy.target} failed: {deploy.reason}",
        "hint": _HINTS.get(deploy.code, "look at the target before all else"),
        **deploy_json(deploy),
    }, 1


def history_json(deploys: Sequence[Deploy]) -> dict[str, Any]:
    """The answer to `deploy history`."""
    live = {
        deploy.target: {
            "id": deploy.id,
            "commit": deploy.commit,
            "agent": deploy.agent,
            "at": rfc3339(deploy.ended_at) if deploy.ended_at is not None else None,
            "verified": deploy.verified,
        }
        for deploy in deploys
        if deploy.state == LIVE
    }
    return {"ok": True, "deploys": [deploy_json(deploy) for deploy in deploys], "live": live}
