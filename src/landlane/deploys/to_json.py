"""The public JSON forms of positions, updates and deploys."""

from __future__ import annotations

from landlane.clock import rfc3339
from landlane.deploys.model import LIVE
from landlane.deploys.sync import position_facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.deploys.json_types import DeployJson
    from landlane.deploys.model import Deploy
    from landlane.deploys.sync import Position
    from landlane.deploys.update_checkout import Update

_HINTS = {
    "DEPLOY_FAILED": "check {target}: the command may have done part of its work; then deploy again",
    "VERIFY_FAILED": "{target} has the new version but does not pass its check; look at it first",
    "MOVED_MEANWHILE": "{target} may have a mix of versions: leave the checkout alone and deploy again",
}


def sync_json(position: Position) -> dict[str, Any]:
    """Return the answer to `sync` of a checkout that is not behind."""
    return {"ok": True, **position_facts(position)}


def update_json(update: Update) -> tuple[dict[str, Any], int]:
    """Return the answer to `sync --update`, and its exit code."""
    has_moved = update.before != update.position.head
    answer: dict[str, Any] = {
        **position_facts(update.position),
        "updated": update.method if has_moved else None,
        "before": update.before,
        "checks": list(update.checks),
    }
    failed = [check["name"] for check in update.checks if not check["passed"]]
    if not failed:
        return {"ok": True, **answer}, 0
    return {
        "ok": False,
        "code": "CHECK_FAILED",
        "message": f"{update.position.branch} is up to date, and {failed[0]} fails on it",
        "hint": "fix it here before you land; the update stays",
        **answer,
    }, 1


def deploy_json(deploy: Deploy) -> DeployJson:
    """Return the public JSON form of a deploy."""
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
        "verify": deploy.verify or None,
        "seconds": (deploy.ended_at - deploy.began_at) / 1000 if deploy.ended_at is not None else None,
        "output": deploy.output or None,
    }


def deployed_json(deploy: Deploy) -> tuple[dict[str, Any], int]:
    """Return the answer to `deploy`, and its exit code."""
    if deploy.state == LIVE:
        return {"ok": True, **deploy_json(deploy)}, 0
    return {
        "ok": False,
        "code": deploy.code,
        "message": f"{deploy.id}: the deploy to {deploy.target} failed: {deploy.reason}",
        "hint": _HINTS.get(deploy.code, "check {target} first").format(target=deploy.target),
        **deploy_json(deploy),
    }, 1


def history_json(deploys: Sequence[Deploy]) -> dict[str, Any]:
    """Return the answer to `deploy history`."""
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
