"""The tool `handoff`, and handoffs in the answers of other tools."""

from __future__ import annotations

from landlane.handoffs.context import context_for
from landlane.handoffs.model import Draft
from landlane.handoffs.records import handed_to
from landlane.handoffs.send import collect_and_send, send_handoff
from landlane.handoffs.to_json import handoff_json
from landlane.tasks.model import ANYBODY
from landlane.tasks.records import get_task
from landlane.tasks.to_json import task_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.mcp.call import Call
    from landlane.sessions.model import Session
    from landlane.tasks.pick import Picked


_SHOWN = ("id", "to", "until", "hash", "taken")


def hand_over(
    call: Call, task: str, context: str, to: str = "", fields: Any = None, **texts: Any
) -> dict[str, Any]:
    """Hand off the caller's task; without a receiver, to any agent."""
    repo = call.repo
    draft = Draft(
        task=task, to=to or ANYBODY, context=context, fields=fields if fields is not None else {}, **texts
    )
    if repo.checkout.common_dir:
        sent = collect_and_send(repo.require_git(), call.session, draft)
    else:
        sent = send_handoff(repo, call.session, draft)
    handoff = handoff_json(sent)
    item = task_json(get_task(repo, task), repo.store)
    return {"ok": True, "task": item, "handoff": {name: handoff[name] for name in _SHOWN}}


def waiting_for(call: Call, me: Session) -> list[str]:
    """Return the handoffs that wait for the caller."""
    return [
        f"{one.sender} hands {one.task} to you ({one.id}, hash {one.digest[:12]}): next takes it over"
        for one in handed_to(call.repo, me)
        if one.to != ANYBODY
    ]


def left_before(call: Call, picked: Picked) -> str:
    """Return what the previous owner handed over or left."""
    if picked.task.attempt < 2 and not picked.lessons:
        return ""
    repo = call.repo
    return context_for(repo.require_git() if repo.checkout.common_dir else repo, picked.task)
