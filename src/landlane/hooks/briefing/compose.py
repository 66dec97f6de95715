"""Compose the briefing at the start of a session: its name, the conventions, and the other sessions.

The parts are independent: one that fails becomes one line of the briefing, and the session still starts.
No remote is contacted, and every git call has a short time limit.
"""

from __future__ import annotations

import os
import shlex

from landlane.claims.held import held_by
from landlane.claims.take import list_claims
from landlane.errors import LandlaneError
from landlane.gates.records import list_gates
from landlane.handoffs.context import context_for, waiting_messages
from landlane.hooks.briefing.checkout import describe_base, describe_uncommitted
from landlane.hooks.briefing.memory_files import describe_memory
from landlane.processes.own_command import command_off_path
from landlane.protocol.hook_events import HookEventKind, HookPolicy
from landlane.rules.show_to_session import show_rules_safely
from landlane.sessions.join import live_sessions
from landlane.tasks.records import lessons_of, task_paths, tasks_of
from landlane.text import list_some
from landlane.workspaces.records import list_open

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.protocol.hook_events import HookEvent
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.tasks.model import Task


RESUMED = frozenset({"resume"})
COMPACTED = frozenset({"compact"})
_LONGEST = 9500  # characters; beyond 10,000 some clients only show the beginning
_MOST_OTHERS = 10
_MOST_PATTERNS = 5
_MOST_TASKS = 3
_LONGEST_BODY = 600
_LONGEST_WHY = 400
_LONGEST_CONTEXT = 4000

_POLICIES: dict[str, str] = {
    HookPolicy.STRICT: (
        "An edit of a path that you have not claimed before is refused: `landlane claim PATH` first."
    ),
    HookPolicy.WATCH: "Edits are not refused here, only reported; claim what you change anyway.",
}
_AUTO = "Editing a free path claims it for you; a path that another session holds is refused."
_SHARED = (
    "Others may work in this same checkout. If a build or a test fails in a file that you did not touch, "
    "wait half a minute and try again, three times, before you fix it: its owner may be in the middle of a "
    "change. Commit only your own paths: `landlane commit -m MESSAGE PATH…`; no `git add -A`, `stash`, "
    "`reset`, `clean` or `checkout` of a branch here."
)


def brief(repo: Repository, session: Session, event: HookEvent) -> str:
    """Return the briefing at the start of a session, or when it resumes.

    A resumed session still has its earlier briefing: it gets what it holds and what is new. After its context
    was compacted, the rules are shown again and the memory files are named.
    """
    is_resumed = event.source in RESUMED
    is_short = is_resumed or event.source in COMPACTED or event.kind == HookEventKind.CHILD_START
    parts: list[tuple[str, Callable[[], str]]] = [
        ("who you are", lambda: _identity(repo, session, event)),
        ("the rules", lambda: show_rules_safely(repo, session, is_reminder=is_resumed)),
        ("your task", lambda: _tasks(repo, session)),
        ("what you asked a person", lambda: _open_questions(repo, session)),
        ("what is handed to you", lambda: _handoffs(repo, session)),
        ("what you hold", lambda: _own_claims(repo, session)),
        ("the others", lambda: _others(repo, session)),
        ("your base", lambda: describe_base(repo)),
        ("uncommitted work", lambda: describe_uncommitted(repo, session)),
        ("the shared checkout", lambda: "" if is_resumed else _shared(repo)),
    ]
    texts = [text for what, compose in parts if (text := _safely(what, compose))]
    # Last, in the remaining space: a client that truncates long text truncates here.
    room = max(_LONGEST - sum(map(len, texts)), repo.settings.memory.max_bytes)
    memory = _safely("memory", lambda: describe_memory(repo, room, is_short=is_short))
    return "\n\n".join([*texts, *([memory] if memory else [])])


def _safely(what: str, compose: Callable[[], str]) -> str:
    try:
        return compose()
    except LandlaneError as error:
        return f"({what} is unknown: {error.message})"
    except Exception as error:  # noqa: BLE001 - no part may keep a session from starting
        return f"({what} is unknown: {type(error).__name__}: {error})"


def _identity(repo: Repository, session: Session, event: HookEvent) -> str:
    role = f", role {session.role}" if session.role else ""
    kind = " (a subagent)" if event.agent else ""
    policy = _POLICIES.get(repo.settings.hooks.policy, _AUTO)
    return (
        f"Landlane keeps several agents on this repository out of each other's way. You are "
        f"{session.agent}{kind}, session {session.id}{role}. {policy} Commands that you type are yours "
        "already; no name is needed: `landlane claim PATH`, `landlane release PATH`, `landlane claims`, "
        "`landlane next`, `landlane done TASK`. A refusal names who holds a path and what to do next; do "
        f"not go round it.{_reach()}"
    )


def _reach() -> str:
    """Return how to run landlane in a shell that does not have it on PATH."""
    path = command_off_path()
    return f" If `landlane` is not found, call it as {shlex.quote(path)}." if path else ""


def _tasks(repo: Repository, session: Session) -> str:
    tasks = repo.store.view(lambda snapshot: tasks_of(snapshot, session.id))
    if not tasks:
        return ""
    texts = [_task(repo, task) for task in tasks[:_MOST_TASKS]]
    more = [f"and {len(tasks) - _MOST_TASKS} more: `landlane task list`"] if len(tasks) > _MOST_TASKS else []
    return "\n\n".join([*texts, *more])


def _open_questions(repo: Repository, session: Session) -> str:
    return "\n".join(
        f"{gate.task} rests until a person has answered {gate.id} ({_cut(gate.why, _LONGEST_WHY)}). Its "
        "paths are kept for you; do not work on it meanwhile. "
        f"`landlane gate show {gate.id}` shows whether there is an answer."
        for gate in list_gates(repo)
        if gate.session == session.id and gate.task
    )


def _task(repo: Repository, task: Task) -> str:
    paths = list(task_paths(task))
    lines = [f"Your task {task.id} ({task.state}, attempt {task.attempt}): {task.title}"]
    if task.body.strip():
        lines.append(_cut(task.body.strip(), _LONGEST_BODY, f"`landlane task show {task.id}` shows the rest"))
    if paths:
        lines.append(f"Paths: {_some(paths)}")
    if task.check:
        lines.append(f"It is checked by: {task.check}")
    if task.next_action:
        lines.append(f"Next: {_cut(task.next_action, _LONGEST_WHY)}")
    if task.why:
        lines.append(f"Why it stands as it does: {_cut(task.why, _LONGEST_WHY)}")
    lessons = [one for one in lessons_of(repo, task.id) if one.why != task.why]
    if task.attempt > 1 or lessons:
        context = context_for(repo, task)
        return "\n".join([*lines, _cut(context, _LONGEST_CONTEXT, f"`landlane handoff show {task.id}`")])
    return "\n".join(lines)


def _handoffs(repo: Repository, session: Session) -> str:
    return "\n\n".join(waiting_messages(repo, session, is_start=True))


def _own_claims(repo: Repository, session: Session) -> str:
    held = repo.store.view(lambda snapshot: held_by(snapshot, session.id))
    patterns = [claim.pattern for same in held.values() for claim in same]
    return f"You hold: {_some(patterns)}." if patterns else ""


def _others(repo: Repository, session: Session) -> str:
    claims = list_claims(repo)
    others = [one for one in live_sessions(repo) if one.id != session.id and not one.is_holder]
    # Sessions with claims first: they may conflict.
    held = {one.id: [claim for claim in claims if claim.session == one.id] for one in others}
    others.sort(key=lambda one: (not held[one.id], one.agent))
    queued = [claim for claim in claims if claim.session not in held and claim.session != session.id]
    if not others and not queued:
        return "No other session is here now."
    lines = ["Here besides you:"]
    for one in others[:_MOST_OTHERS]:
        tasks = sorted({claim.task for claim in held[one.id] if claim.task})
        what = (
            f"holds {_some([claim.pattern for claim in held[one.id]])}" if held[one.id] else "holds nothing"
        )
        lines.append(f"- {one.agent} {what}{f' for {_some(tasks)}' if tasks else ''}")
    if len(others) > _MOST_OTHERS:
        lines.append(f"- and {len(others) - _MOST_OTHERS} more: `landlane status`")
    if queued:
        lines.append(f"- on its way to land: {_some([claim.pattern for claim in queued])}")
    return "\n".join(lines)


def _shared(repo: Repository) -> str:
    here = os.path.realpath(repo.checkout.root)
    is_own = any(os.path.realpath(one.path) == here for one in list_open(repo))
    return "" if is_own else _SHARED


def _some(names: list[str]) -> str:
    return list_some(list(dict.fromkeys(names)), _MOST_PATTERNS)


def _cut(text: str, most: int, rest: str = "") -> str:
    if len(text) <= most:
        return text
    return f"{text[:most].rstrip()} … ({rest or 'cut'})"
