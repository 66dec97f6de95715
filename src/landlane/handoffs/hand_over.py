"""Hand a task over, and tell the next owner what was handed over and what was tried before.

So nobody depends on what the former owner remembered to say, or whether it lived to say anything.
"""

from __future__ import annotations

from landlane.clock import rfc3339
from landlane.errors import LandlaneError
from landlane.handoffs.accept import send_handoff
from landlane.handoffs.collect_state import changed_beyond, failed_in, observe
from landlane.handoffs.model import ACCEPTED, REFUSED, SENT, check_draft
from landlane.handoffs.records import handed_to, newest_in
from landlane.handoffs.text import cut, plain, tell_commands, tell_failed, tell_handoff
from landlane.repository import Repository
from landlane.rescue.save import saved_work
from landlane.sessions.command_history import commands_in
from landlane.sessions.leases import require_live
from landlane.sessions.notices import take_untold
from landlane.store import records
from landlane.tasks.attempts import attempts_of
from landlane.tasks.model import ANYBODY, branch_of, returned_branch_of
from landlane.tasks.records import history_in, owned
from landlane.values import replace
from landlane.workspaces.model import OPEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from landlane.handoffs.model import Draft, Handoff
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.model import Task

    Step = Callable[[str], None]


__all__ = ["context_for", "hand_over", "handed_by", "observe", "tell_waiting", "traces_of"]

_MOST_NAMED = 10
_LONGEST = 7000  # characters of what the next owner reads first


# ------------------------------------------------------------------------------------------ sending


def hand_over(
    repo: Repository,
    session: Session,
    draft: Draft,
    on_step: Step = lambda _: None,
    also: Callable[[Transaction, Handoff], object] = lambda _tx, _made: None,
) -> Handoff:
    """Take down how a task stands, and send it to its next owner with what its present one says.

    Raises:
        Malformed: the handoff is not as the schema of this project wants it.
        Stale: the task is not this session's any more.
        WaitsForPerson: the work was handed on too often.
    """
    _check_first(repo, session, draft)
    taken = observe(repo, draft.task, session)
    on_step("observed")
    return send_handoff(repo, session, replace(draft, taken=taken), on_step, also)


def _check_first(repo: Repository, session: Session, draft: Draft) -> None:
    """Refuse before anything is saved what would be refused anyway."""
    check_draft(draft, repo.settings)
    repo.change(lambda tx: owned(tx, require_live(tx, session), draft.task, by_hands=True))


def tell_waiting(repo: Repository, session: Session, *, is_start: bool = False) -> list[str]:
    """What a session must hear of: each handoff that waits for it, once; and all of them at a start.

    It is found by the session's name and not by a message. So the successor of one that died hears of it,
    even if that was killed while it was being told.
    """
    waiting = [one for one in handed_to(repo, session) if one.to != ANYBODY]
    new = set(take_untold(repo, session.id, f"handoffs/{session.id}", [one.id for one in waiting]))
    return [
        f"{one.sender} hands {one.task} to you ({one.id}, hash {one.digest[:12]}): "
        f"{plain(cut(one.next or one.context, 300))}\n`landlane accept {one.task}` takes it over with its "
        f"claims and workspace, and shows all of it; or `landlane decline {one.task} --why WHY`. It "
        f"waits until {rfc3339(one.until)}."
        for one in waiting
        if one.id in new or is_start
    ]


# ------------------------------------------------------------------------------------- reading first


def context_for(repo: Repository, task: Task) -> str:
    """What the next owner of a task reads first; empty for a task that nobody had before.

    What was handed over, or, where the former owner just died, what it left: branches, workspaces, rescues,
    commands, and why it ended. All of it is told from the state alone.
    """
    handoff, history = repo.store.view(
        lambda snapshot: (newest_in(snapshot, task.id), history_in(snapshot, task.id))
    )
    lines = _handed(repo, handoff, task)
    if not lines and (task.attempt > 1 or any(entry.kind == "task.returned" for entry in history)):
        lines = _left(repo, task)
    return cut(plain("\n".join(lines)), _LONGEST, f"landlane handoff show {task.id}")


def _handed(repo: Repository, handoff: Handoff | None, task: Task) -> list[str]:
    """What was handed over, if that is how the task came to where it is now."""
    if handoff is None or handoff.taken.get("attempt") != task.attempt:
        return []
    if handoff.state == ACCEPTED and handoff.accepted_session != task.session:
        return []  # who accepted it has gone, too
    if handoff.state not in (SENT, ACCEPTED, REFUSED):
        return []
    return [*tell_handoff(handoff), *_moved(repo, handoff), *_left_by_worker(repo, task, handoff)]


def _moved(repo: Repository, handoff: Handoff) -> list[str]:
    """Whether the branch is somewhere else by now than when it was handed over, and what came in since."""
    branch, head = handoff.taken.get("branch"), handoff.taken.get("head")
    came = _came_in(repo, returned_branch_of(handoff.task, int(handoff.taken.get("attempt", 0))))
    if not branch or not head:
        return came
    try:
        now = repo.git.commit_id(f"refs/heads/{branch}")
    except LandlaneError:
        return [f"Take care: {branch} is not here; ask {handoff.sender} for it, or git fetch.", *came]
    return came if now == head else [f"Since then {branch} has moved: it is at {now[:12]} now.", *came]


def _came_in(repo: Repository, branch: str) -> list[str]:
    """What the worker of a former owner returned only after it had handed the task over."""
    try:
        head = repo.git.commit_id(f"refs/heads/{branch}")
    except LandlaneError:
        return []
    return [f"Its worker returned a change afterwards: {branch} at {head[:12]}."]


def _left_by_worker(repo: Repository, task: Task, handoff: Handoff) -> list[str]:
    """What the worker of a former owner had not finished: saved once it had ended, so after the handoff."""
    return _rescues(repo, task, since=handoff.sent_at) if not handoff.taken.get("rescue") else []


def _left(repo: Repository, task: Task) -> list[str]:
    """What former owners left who handed nothing over."""
    failed = repo.store.view(lambda snapshot: failed_in(snapshot, task))
    lines = [*_branches(repo, task), *traces_of(repo, task), *tell_failed(failed)]
    return [f"{task.id} was worked on before; this is attempt {task.attempt}.", *lines] if lines else []


def traces_of(repo: Repository, task: Task) -> list[str]:
    """What former owners left beside branches and words: workspaces, rescues, commands, ends of attempts."""

    def look(snapshot: Snapshot) -> tuple[list[dict[str, Any]], Handoff | None]:
        owners = [entry for entry in history_in(snapshot, task.id) if entry.kind == "task.taken"]
        former = [entry.session for entry in owners if entry.session != task.session]
        return commands_in(snapshot, former[-3:]), newest_in(snapshot, task.id)

    commands, handoff = repo.store.view(look)
    lines = [*_workspaces(repo, task), *_rescues(repo, task)]
    lines += [
        f"Attempt {one.attempt} of {one.agent} ended: {one.code} {cut(one.reason, 500)}"
        for one in attempts_of(repo, task.id)[-3:]
        if one.reason and one.session != task.session
    ]
    lines += tell_commands(commands)
    if handoff is not None:
        lines.append(f"Earlier it was handed over: landlane handoff show {handoff.id}")
    return lines


def handed_by(repo: Repository, task: Task) -> Handoff | None:
    """The handoff by which the present owner has a task, if it came by one."""
    handoff = repo.store.view(lambda snapshot: newest_in(snapshot, task.id))
    is_by_it = handoff is not None and handoff.state == ACCEPTED and handoff.accepted_session == task.session
    return handoff if is_by_it else None


def _branches(repo: Repository, task: Task) -> list[str]:
    lines: list[str] = []
    for attempt in range(max(1, task.attempt - 3), task.attempt + 1):
        for branch in (branch_of(task.id, attempt), returned_branch_of(task.id, attempt)):
            try:
                head = repo.git.commit_id(f"refs/heads/{branch}")
            except LandlaneError:
                continue
            lines.append(f"Branch of attempt {attempt}: {branch} at {head[:12]}{_changes(repo, head)}")
    if lines:
        lines.append("Look at what is there before you begin anew: git log, git diff, git cherry-pick.")
    return lines


def _changes(repo: Repository, head: str) -> str:
    """What a branch changes beyond the target, as far as that can be told quickly."""
    if not repo.common_dir:
        return ""
    try:
        changed = changed_beyond(repo, head)
    except LandlaneError:
        return ""
    more = f" and {len(changed) - _MOST_NAMED} more" if len(changed) > _MOST_NAMED else ""
    return f", changes {', '.join(changed[:_MOST_NAMED])}{more}" if changed else ", changes nothing"


def _workspaces(repo: Repository, task: Task) -> list[str]:
    found = repo.store.view(lambda snapshot: records.by_key(snapshot, "workspace", task.id))
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
        saved = [one for one in saved_work(repo) if one.facts.get("task") == task.id and one.at >= since]
    except LandlaneError:
        return []
    return [
        f"Saved work: landlane rescue restore {one.id} ({one.files} files, {one.facts.get('reason', '')})"
        for one in saved[-3:]
    ]
