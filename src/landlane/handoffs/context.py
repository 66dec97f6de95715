"""Describe to the next owner of a task what was handed off, or what earlier owners left without a handoff."""

from __future__ import annotations

from landlane.clock import rfc3339
from landlane.errors import LandlaneError
from landlane.handoffs.collect_state import failures_in, paths_changed_by
from landlane.handoffs.model import ACCEPTED, WITHDRAWN
from landlane.handoffs.records import handed_to
from landlane.handoffs.text import (
    format_commands,
    format_failures,
    format_handoff,
    shorten,
)
from landlane.handoffs.transfer import newest_handoff
from landlane.rescue.refs import list_rescues
from landlane.sessions.notices import take_undelivered
from landlane.sessions.tool_calls import commands_in
from landlane.store import records
from landlane.tasks.attempts import attempts_of
from landlane.tasks.model import ANYBODY, branch_of, returned_branch_of
from landlane.tasks.records import history_in
from landlane.text import in_lines, list_some
from landlane.workspaces.model import OPEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.handoffs.model import Handoff
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot
    from landlane.tasks.model import Task


_MOST_NAMED = 10
_LONGEST_CONTEXT = 7000


def waiting_messages(repo: Repository, session: Session, *, is_start: bool = False) -> list[str]:
    """Return a message for each handoff that waits for a session and is new to it; at its start, for all.

    Handoffs are found by the name of the session, not by a stored message. So the next session of that name
    is notified even if this one is killed meanwhile.
    """
    waiting = [one for one in handed_to(repo, session) if one.to != ANYBODY]
    new = set(take_undelivered(repo, session.id, f"handoffs/{session.id}", [one.id for one in waiting]))
    return [
        f"{one.sender} hands {one.task} to you ({one.id}, hash {one.digest[:12]}): "
        f"{in_lines(shorten(one.next or one.context, 300))}\n"
        f"`landlane handoff accept {one.task}` takes it over with its claims and workspace, and "
        f"shows all of it; "
        f"or `landlane handoff decline {one.task} --why WHY`. It waits until {rfc3339(one.until)}."
        for one in waiting
        if one.id in new or is_start
    ]


def context_for(repo: Repository, task: Task) -> str:
    """Return what the next owner of a task should read first; empty for a task that had no owner before.

    This is the handoff, or what an owner left that ended without one: branches, workspaces, rescues, commands
    and the reason it ended.
    """
    handoff, history = repo.store.view(
        lambda snapshot: (newest_handoff(snapshot, task.id), history_in(snapshot, task.id))
    )
    lines = _describe_handoff(repo, handoff, task)
    if not lines and (task.attempt > 1 or any(entry.kind == "task.returned" for entry in history)):
        lines = _describe_earlier_attempts(repo, task)
    return shorten(in_lines("\n".join(lines)), _LONGEST_CONTEXT, f"landlane handoff show {task.id}")


def _describe_handoff(repo: Repository, handoff: Handoff | None, task: Task) -> list[str]:
    """Return the handoff in lines if the present attempt continues from it."""
    if handoff is None or handoff.taken.get("attempt") != task.attempt:
        return []
    if handoff.state == WITHDRAWN:
        return []
    if handoff.state == ACCEPTED and handoff.accepted_session != task.session:
        return []  # the session that accepted it has ended, too
    lines = [*format_handoff(handoff), *_branch_changes_since(repo, handoff)]
    # The work of a worker that ended after the handoff is saved later, so it is not part of the handoff.
    return lines if handoff.taken.get("rescue") else [*lines, *_rescues(repo, task, since=handoff.sent_at)]


def _branch_changes_since(repo: Repository, handoff: Handoff) -> list[str]:
    """Return lines about a branch that moved, and about changes that were returned, after the handoff."""
    branch, head = handoff.taken.get("branch"), handoff.taken.get("head")
    lines: list[str] = []
    if branch and head:
        current = _head_of_branch(repo, branch)
        if not current:
            lines.append(f"Take care: {branch} is not here; ask {handoff.sender} for it, or git fetch.")
        elif current != head:
            lines.append(f"Since then {branch} has moved: it is at {current[:12]} now.")
    returned = returned_branch_of(handoff.task, int(handoff.taken.get("attempt", 0)))
    if current := _head_of_branch(repo, returned):
        lines.append(f"Its worker returned a change afterwards: {returned} at {current[:12]}.")
    return lines


def _head_of_branch(repo: Repository, branch: str) -> str:
    try:
        return repo.git.commit_id(f"refs/heads/{branch}")
    except LandlaneError:
        return ""


def _describe_earlier_attempts(repo: Repository, task: Task) -> list[str]:
    failures = repo.store.view(lambda snapshot: failures_in(snapshot, task))
    lines = [*_branches(repo, task), *traces_of(repo, task), *format_failures(failures)]
    return [f"{task.id} was worked on before; this is attempt {task.attempt}.", *lines] if lines else []


def traces_of(repo: Repository, task: Task) -> list[str]:
    """Return lines about workspaces, rescues, commands and ended attempts of earlier owners."""

    def look(snapshot: Snapshot) -> tuple[list[dict[str, Any]], Handoff | None]:
        owners = [entry for entry in history_in(snapshot, task.id) if entry.kind == "task.taken"]
        earlier = [entry.session for entry in owners if entry.session != task.session]
        return commands_in(snapshot, earlier[-3:]), newest_handoff(snapshot, task.id)

    commands, handoff = repo.store.view(look)
    lines = [*_workspaces(repo, task), *_rescues(repo, task)]
    lines += [
        f"Attempt {one.attempt} of {one.agent} ended: {one.code} {shorten(one.reason, 500)}"
        for one in attempts_of(repo, task.id)[-3:]
        if one.reason and one.session != task.session
    ]
    lines += format_commands(commands)
    if handoff is not None:
        lines.append(f"Earlier it was handed over: landlane handoff show {handoff.id}")
    return lines


def handed_by(repo: Repository, task: Task) -> Handoff | None:
    """Return the handoff that gave the present owner its task, if there was one."""
    handoff = repo.store.view(lambda snapshot: newest_handoff(snapshot, task.id))
    if handoff is None or handoff.state != ACCEPTED or handoff.accepted_session != task.session:
        return None
    return handoff


def _branches(repo: Repository, task: Task) -> list[str]:
    lines: list[str] = []
    for attempt in range(max(1, task.attempt - 3), task.attempt + 1):
        for branch in (branch_of(task.id, attempt), returned_branch_of(task.id, attempt)):
            if head := _head_of_branch(repo, branch):
                changes = _list_changes(repo, head)
                lines.append(f"Branch of attempt {attempt}: {branch} at {head[:12]}{changes}")
    if lines:
        lines.append("Look at what is there before you start over: git log, git diff, git cherry-pick.")
    return lines


def _list_changes(repo: Repository, head: str) -> str:
    if not repo.common_dir:
        return ""
    try:
        changed = paths_changed_by(repo, head)
    except LandlaneError:
        return ""
    return f", changes {list_some(changed, _MOST_NAMED) or 'nothing'}"


def _workspaces(repo: Repository, task: Task) -> list[str]:
    found = repo.store.view(lambda snapshot: records.find_by_key(snapshot, "workspace", task.id))
    lines: list[str] = []
    for document in found[-5:]:
        if document["session"] == task.session:
            continue
        rescue = f", what was not committed is saved: landlane rescue restore {document['rescue']}"
        state = document["path"] if document["state"] == OPEN else document["state"]
        lines.append(f"Workspace {document['id']}: {state}{rescue if document['rescue'] else ''}")
    return lines


def _rescues(repo: Repository, task: Task, since: int = 0) -> list[str]:
    if not repo.common_dir:
        return []
    try:
        saved = [
            one
            for one in list_rescues(repo.common_dir)
            if one.facts.get("task") == task.id and one.at >= since
        ]
    except LandlaneError:
        return []
    return [
        f"Saved work: landlane rescue restore {one.id} ({one.files} files, {one.facts.get('reason', '')})"
        for one in saved[-3:]
    ]
