"""The commands for sessions: join and leave."""

from __future__ import annotations

from landlane.cli.person import why_no_person
from landlane.errors import LandlaneError, Malformed, NotAllowed, Stale
from landlane.rules.show_to_session import carry_rules
from landlane.rules.to_json import carried_json
from landlane.sessions.join import find_ancestor_of_ended
from landlane.sessions.join import join as join_session
from landlane.sessions.join import leave as leave_session
from landlane.sessions.to_json import joined_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.cli.command import CommandCall


def join(call: CommandCall, name: str, role: str, pid: str) -> int:
    """Begin or attach to a session and show it."""
    if pid and not (pid.isascii() and pid.isdigit() and len(pid) < 10):
        raise Malformed(f"--pid {pid[:40]!r} is not a process id", code="BAD_NUMBER", hint="as in: --pid $$")
    repo = call.repo
    caller = call.caller()
    if caller.name and caller.name != name:
        raise NotAllowed(
            f"--as {caller.name} contradicts `join {name}`", code="NOT_YOUR_SESSION", hint="leave out --as"
        )
    process = repo.processes.identify(int(pid)) if pid else find_ancestor_of_ended(repo, name)
    joined = join_session(
        repo,
        name,
        role=role,
        process=process,
        shown=caller.session_text,
        may_choose_role=bool(role) and _is_person(call),
        keeps_role=bool(caller.session_text or caller.agent_variable),
    )
    session = joined.session
    word = "joined" if joined.is_new else "attached to"
    text = f"{word} {session.agent}, generation {session.generation}, session {session.id}"
    if joined.is_new and not pid:
        text += f"\nfor its children: LANDLANE_SESSION={session.id}:{joined.secret}"
    rules = carry_rules(repo, session)
    text += f"\n\n{rules.text}" if rules is not None and rules.text else ""
    answer = {**joined_json(joined, call.repo.store), "rules": carried_json(rules)}
    return call.terminal.answer(answer, text)


def _is_person(call: CommandCall) -> bool:
    """Return whether a person chooses the role; only a person may change it."""
    try:
        return not why_no_person(call)
    except LandlaneError:
        return False  # started by an agent whose session has ended or is another's


def leave(call: CommandCall) -> int:
    """End the caller's session."""
    session = call.known_session()
    if session is None:
        raise Stale(
            "there is no live session to leave",
            code="SESSION_OVER",
            hint="`landlane status` shows who is here; --as NAME says who you are",
        )
    freed = leave_session(call.repo, session)
    text = f"{session.agent} left" + (f"; released {', '.join(freed)}" if freed else "")
    return call.terminal.answer(
        {"ok": True, "released": list(freed), "session": {"agent": session.agent, "id": session.id}}, text
    )
