"""Handle the hook events of coding clients."""

from __future__ import annotations

from landlane.clients.registry import setup_of
from landlane.errors import LandlaneError, RepositoryError, Stale
from landlane.hooks.edit import check_edit, note_edit, note_named
from landlane.hooks.event_session import caller_of, known_caller, was_given
from landlane.hooks.shell.late_effects import hold_for, settle_child, settle_earlier
from landlane.protocol import hook_events as hooking
from landlane.protocol.hook_events import HOLD, NOTHING, HookAnswer, deny, inform, is_own_tool
from landlane.sessions.client_sessions import children_of, end_child
from landlane.sessions.command_history import note_command
from landlane.sessions.file_versions import forget
from landlane.sessions.join import leave
from landlane.sessions.notices import add_notice, take_untold
from landlane.sessions.read import find_parent
from landlane.sessions.tool_calls import announce_call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from landlane.hooks.event_session import CallerOfHook
    from landlane.protocol.hook_events import HookEvent
    from landlane.repository import Repository
    from landlane.sessions.model import Session


_BETWEEN = "\n\n"
_AGAIN = ("resume", "compact", "clear")
_LATE = "From here on Landlane watches over what you change in this repository."


def handle(repo: Repository, event: HookEvent, environment: Mapping[str, str]) -> HookAnswer:
    """Answer one event; outside a git repository only edits are checked.

    Raises:
        LandlaneError: the event could not be checked; the caller then refuses guarded calls.
    """
    try:
        return _handle(repo, event, environment)
    except RepositoryError as error:
        if error.code != "NO_GIT_HERE":
            raise
        return NOTHING


def _handle(repo: Repository, event: HookEvent, environment: Mapping[str, str]) -> HookAnswer:
    if event.kind == hooking.END:
        return _end(repo, event, environment)
    if event.kind == hooking.CHILD_STOP:
        return _end_child(repo, event)
    if event.kind == hooking.SETTINGS:
        return _judge_settings(repo, event)
    if event.kind == hooking.OTHER_KIND:
        return NOTHING
    caller = caller_of(repo, event, environment)
    earlier = settle_earlier(repo, caller.session, event)
    if event.kind == hooking.BEFORE:
        if caller.is_new:  # no start event came, so the fast path must not skip its briefing
            repo.change(lambda tx: add_notice(tx, caller.session.id, _LATE))
        return _before(repo, caller.session, event)
    answers = [_HANDLERS[event.kind](repo, caller, event)] if event.kind in _HANDLERS else []
    if event.kind == hooking.STOP:
        return hold_for(repo, caller.session, event, answers[0], earlier)
    texts = [text for text in (earlier, *(answer.text for answer in answers)) if text]
    if event.kind in (hooking.PROMPT, hooking.AFTER):
        texts += [text for text in (_brief_once(repo, caller, event),) if text]
        texts += _messages(repo, caller.session)
    return inform(_BETWEEN.join(texts))


def _before(repo: Repository, session: Session, event: HookEvent) -> HookAnswer:
    if event.tool == hooking.EDIT:
        return check_edit(repo, session, event)
    if event.tool == hooking.READ:
        note_edit(repo, session, event)  # noted before the read, so that a change in between is detected
        return NOTHING
    if event.tool == hooking.SHELL:
        answer = _shell_effects().before_shell(repo.require_git(), session, event)
        if answer.verdict != hooking.DENY:
            note_named(repo, session, event)
        return answer
    if is_own_tool(event.tool_name):
        # The server sees one process for a client and all its subagents: this identifies the caller.
        announce_call(repo, session.id, event.call, event.tool_name)
    return NOTHING


def _shell_effects():
    from landlane.hooks.shell import effects  # noqa: PLC0415 - only shell calls need it

    return effects


def _start(repo: Repository, caller: CallerOfHook, event: HookEvent) -> HookAnswer:
    repo.require_git()
    if not _note_briefed(repo, caller.session) and event.source not in _AGAIN:
        return NOTHING  # a client that runs several hooks at once got the briefing from another one
    return inform(_brief(repo, caller.session, event))


def _after(repo: Repository, caller: CallerOfHook, event: HookEvent) -> HookAnswer:
    if event.tool == hooking.EDIT:
        if not event.source:  # after a failed edit the session has not seen the file's content
            note_edit(repo, caller.session, event)
    elif event.tool == hooking.SHELL:
        note_command(repo, caller.session.id, event.command, event.exit_code)
        return _shell_effects().after_shell(repo.require_git(), caller.session, event)
    return NOTHING


def _brief_once(repo: Repository, caller: CallerOfHook, event: HookEvent) -> str:
    """Return the briefing if the session has not had it, because its client sent no start event."""
    repo.require_git()
    if not _note_briefed(repo, caller.session):
        return ""
    return _brief(repo, caller.session, event)


def _brief(repo: Repository, session: Session, event: HookEvent) -> str:
    from landlane.hooks.briefing.compose import brief  # noqa: PLC0415 - once per session

    return brief(repo, session, event)


def _note_briefed(repo: Repository, session: Session) -> bool:
    """Record that a session has had its briefing; return whether this was the first time."""
    return bool(take_untold(repo, session.id, f"briefing-{session.id}", ["told"]))


def _stop(repo: Repository, caller: CallerOfHook, event: HookEvent) -> HookAnswer:
    """Report unfinished work at the end of a turn, but only once: holding every time would never end."""
    if event.is_again or event.is_background or not repo.settings.hooks.remind:
        return NOTHING
    from landlane.hooks.session_end import leftovers, should_point_out  # noqa: PLC0415 - only the end of a turn needs it

    text = leftovers(repo.require_git(), caller.session)
    if text and should_point_out(repo, caller.session, text):
        return HookAnswer(verdict=HOLD, text=text)
    return NOTHING


_HANDLERS: dict[str, Callable[[Repository, CallerOfHook, HookEvent], HookAnswer]] = {
    hooking.START: _start,
    hooking.CHILD_START: _start,
    hooking.AFTER: _after,
    hooking.STOP: _stop,
}


def _messages(repo: Repository, session: Session) -> list[str]:
    from landlane.hooks.messages import due_messages  # noqa: PLC0415 - not before a tool call

    return due_messages(repo.require_git(), session)


def _end(repo: Repository, event: HookEvent, environment: Mapping[str, str]) -> HookAnswer:
    """End the client's subagents, then its session, unless the program that started it owns the session."""
    session = known_caller(repo, event)
    if session is None:
        return NOTHING
    for child in repo.store.view(lambda snapshot: children_of(snapshot, session.id)):
        forget(repo, child.id)
        try:
            end_child(repo, child, session.id)
        except Stale:
            continue  # it has already ended
    # The file versions it has read are kept: a resumed client still relies on them.
    if was_given(session, environment):
        return NOTHING
    parent = repo.store.view(lambda snapshot: find_parent(snapshot, session.id))
    if parent:  # it worked for a person, who takes over its claims
        end_child(repo, session, parent)
    else:
        leave(repo, session)
    return NOTHING


def _end_child(repo: Repository, event: HookEvent) -> HookAnswer:
    child = known_caller(repo, event) if event.agent else None
    if child is None:
        return NOTHING
    parent = repo.store.view(lambda snapshot: find_parent(snapshot, child.id))
    settle_child(repo, child, parent, event)
    forget(repo, child.id)
    end_child(repo, child, parent)
    return NOTHING


def _judge_settings(repo: Repository, event: HookEvent) -> HookAnswer:
    """Refuse settings that would disable Landlane's hooks in the client."""
    from landlane.clients.setup_files import environment_at  # noqa: PLC0415 - few events need it

    try:
        env = environment_at(repo.require_git().checkout.root)
    except LandlaneError:
        return NOTHING
    for problem in setup_of(event.client).find_problems(env, _run_nothing):
        if problem.is_open:
            return deny(
                f"These settings would switch Landlane off: {problem.what}. They are not taken over. "
                "A person can end it: `landlane init --undo`."
            )
    return NOTHING


def _run_nothing(words: list[str]) -> str:
    """Return no output: a hook has no time to run programs, and the setup files are enough."""
    del words
    return ""
