"""Answer an event of a client hook: find the session behind it, then do what its kind asks for."""

from __future__ import annotations

from landlane.clients.calling_process import client_process
from landlane.clients.registry import setup_of
from landlane.errors import LandlaneError, NotAllowed, RepositoryError, Stale
from landlane.hooks.action import describe_action
from landlane.hooks.edit import check_edit, note_edit, note_named
from landlane.ids import digest
from landlane.protocol.hook_events import (
    NOTHING,
    HookAnswer,
    HookEventKind,
    HookVerdict,
    ToolAction,
    deny,
    inform,
    is_own_tool,
)
from landlane.sessions.client_sessions import (
    ClientName,
    begin_client_session,
    begin_subagent,
    bind_session,
    end_subagent,
    find_bound_session,
    list_subagents,
    register_process,
)
from landlane.sessions.join import Joined, leave, prove
from landlane.sessions.leases import find_parent, find_session, touch
from landlane.sessions.model import parse_credentials, worker_task
from landlane.sessions.notices import add_notice, take_undelivered
from landlane.sessions.signs_of_life import show_life
from landlane.sessions.tool_calls import announce_call, forget_reads, list_open_calls, note_command
from landlane.values import replace
from landlane.workspaces.records import adopt, is_held, list_workspaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from landlane.platform.process import Process
    from landlane.protocol.hook_events import HookEvent
    from landlane.repository import Repository
    from landlane.sessions.client_sessions import BoundSession
    from landlane.sessions.model import Session


_PID_VARIABLE = "CLAUDE_PID"
_SESSION_VARIABLE = "LANDLANE_SESSION"
_AGENT_VARIABLE = "LANDLANE_AGENT"


def find_or_begin_session(repo: Repository, event: HookEvent, environment: Mapping[str, str]) -> BoundSession:
    """Return the session of an event; a subagent has its own where the client identifies it.

    Raises:
        NotAllowed: the session's secret cannot be read by this user.
        Held: the chosen agent name is in use elsewhere.
    """
    main = _main(repo, event, environment)
    if not main.is_new and _may_run_commands(event) and not was_given(main.session, environment):
        # A session may continue in another process, or share one process with other sessions.
        register_process(repo, main.session.id, _process(repo, event, environment))
    if not event.agent:
        return main
    name = ClientName(client=event.client, session=event.session, agent=event.agent)
    return _proven(repo, find_bound_session(repo, name)) or begin_subagent(repo, name, main.session)


def find_live_session(repo: Repository, event: HookEvent) -> Session | None:
    """Return the live session of an event, or None; never start one."""
    name = ClientName(client=event.client, session=event.session, agent=event.agent)
    bound = _proven(repo, find_bound_session(repo, name))
    return bound.session if bound else None


def was_given(session: Session, environment: Mapping[str, str]) -> bool:
    """Return whether the program that started the client passed it this session, and will end it."""
    given = environment.get(_SESSION_VARIABLE, "")
    return bool(given) and parse_credentials(given).session == session.id


def _may_run_commands(event: HookEvent) -> bool:
    """Return whether commands may follow that are attributed by their process."""
    return event.kind in (HookEventKind.START, HookEventKind.PROMPT) or (
        event.kind == HookEventKind.BEFORE and event.tool == ToolAction.SHELL
    )


def _main(repo: Repository, event: HookEvent, environment: Mapping[str, str]) -> BoundSession:
    name = ClientName(client=event.client, session=event.session)
    known = _proven(repo, find_bound_session(repo, name))
    if known is not None:
        return known
    given = environment.get(_SESSION_VARIABLE, "")
    process = _process(repo, event, environment)
    if not given:
        return _begin(repo, name, environment.get(_AGENT_VARIABLE, ""), process)
    # Landlane started the client: its session exists already and is bound to the client here.
    credentials = parse_credentials(given)
    try:
        session = prove(repo, credentials)
    except Stale:  # the session expired; the client continues with the same name and role
        last = repo.store.view(lambda snapshot: find_session(snapshot, credentials.session))
        if last is None:
            raise
        return begin_client_session(repo, name, chosen=last.agent, role=last.role, process=process)
    return bind_session(repo, name, Joined(session=session, secret=credentials.secret, is_new=False))


def _begin(repo: Repository, name: ClientName, chosen: str, process: Process | None) -> BoundSession:
    """Start a session: in a person's workspace it works for them, an abandoned workspace it adopts."""
    workspace = next((known for known in list_workspaces(repo) if known.path == repo.git.root), None)
    if workspace is None or workspace.machine != repo.processes.machine or chosen == workspace.agent:
        return begin_client_session(repo, name, chosen=chosen, process=process)
    holder = repo.store.view(lambda snapshot: find_session(snapshot, workspace.session))
    is_abandoned = not is_held(repo, workspace)
    is_for_person = holder is not None and holder.is_person and not is_abandoned
    bound = begin_client_session(
        repo, name, chosen=chosen, parent=workspace.session if is_for_person else "", process=process
    )
    if is_abandoned:
        adopt(repo, workspace, bound.session)
    return bound


def _process(repo: Repository, event: HookEvent, environment: Mapping[str, str]) -> Process | None:
    # Other clients may inherit the variable.
    pid = environment.get(_PID_VARIABLE, "") if event.client == "claude" else ""
    return client_process(repo.processes.ancestry(), int(pid) if pid.isdecimal() else 0)


def _proven(repo: Repository, bound: BoundSession | None) -> BoundSession | None:
    """Verify that this user may act for a bound session and renew its lease; None when it has lapsed.

    Raises:
        NotAllowed: the secret belongs to another user.
    """
    if bound is None:
        return None
    session = bound.session
    now = repo.store.view(lambda snapshot: snapshot.now)
    if session.lease_ends_at <= now:
        return None  # lapsed, but not yet removed from the store
    known = repo.secrets.load(session.agent)
    if known is None or known.session != session.id or digest(known.secret) != session.secret_hash:
        raise NotAllowed(
            f"the secret of {session.agent} cannot be read by this user",
            code="NOT_YOUR_SESSION",
            hint="run the client as the user who began its session",
        )
    touch(repo.store, session)
    return bound


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
    if event.kind == HookEventKind.END:
        return _end(repo, event, environment)
    if event.kind == HookEventKind.CHILD_STOP:
        return _end_child(repo, event)
    if event.kind == HookEventKind.SETTINGS:
        return _judge_settings(repo, event)
    if event.kind == HookEventKind.OTHER:
        return NOTHING
    caller = find_or_begin_session(repo, event, environment)
    answer = _answer(repo, caller, event)
    is_refused = answer.verdict == HookVerdict.DENY
    show_life(repo, caller.session, "" if is_refused else describe_action(repo.checkout.root, event))
    return answer


def _answer(repo: Repository, caller: BoundSession, event: HookEvent) -> HookAnswer:
    session = caller.session
    report = _report_earlier_calls(repo, session, event)
    if event.kind == HookEventKind.BEFORE:
        if report:  # shown with the result of the tool
            _notify(repo, session.id, report)
        if caller.is_new:  # no start event came, so the fast path must not skip its briefing
            _notify(repo, session.id, _LATE)
        return _before(repo, session, event)
    if event.kind == HookEventKind.STOP:
        return _stop(repo, session, event, report)
    if event.kind in (HookEventKind.START, HookEventKind.CHILD_START):
        return inform(_start(repo, session, event))
    result = _after(repo, session, event) if event.kind == HookEventKind.AFTER else ""
    return inform(_join((report, result, *_news(repo, session, event))))


def _news(repo: Repository, session: Session, event: HookEvent) -> list[str]:
    """Return the messages for the session, and its briefing if its client sent no start event."""
    from landlane.hooks.messages import due_messages  # noqa: PLC0415 - not before a tool call

    is_first = _note_briefed(repo.require_git(), session)
    briefing = [_brief(repo, session, event)] if is_first else []
    return briefing + due_messages(repo, session)


def _join(texts: Iterable[str]) -> str:
    return "\n\n".join(text for text in texts if text)


def _notify(repo: Repository, session: str, text: str) -> None:
    repo.change(lambda tx: add_notice(tx, session, text))


def _report_earlier_calls(repo: Repository, session: Session, event: HookEvent) -> str:
    """Return what shell calls without an end event, or with processes still running, have changed.

    If the check fails now, the event goes on and the next event checks again.
    """
    if event.kind not in (
        HookEventKind.BEFORE,
        HookEventKind.AFTER,
        HookEventKind.PROMPT,
        HookEventKind.STOP,
    ):
        return ""
    is_check_due = event.kind in (HookEventKind.PROMPT, HookEventKind.STOP) or event.tool == ToolAction.SHELL
    if not is_check_due and not list_open_calls(repo, session.id):
        return ""
    try:
        return _shell_effects().check_earlier_calls(repo.require_git(), session, event)
    except LandlaneError:
        return ""


def _before(repo: Repository, session: Session, event: HookEvent) -> HookAnswer:
    if event.tool == ToolAction.EDIT:
        return check_edit(repo, session, event)
    if event.tool == ToolAction.READ:
        note_edit(repo, session, event)  # noted before the read, so that a change in between is detected
        return NOTHING
    if event.tool == ToolAction.SHELL:
        answer = _shell_effects().before_shell(repo.require_git(), session, event)
        if answer.verdict != HookVerdict.DENY:
            note_named(repo, session, event)
        return answer
    if is_own_tool(event.tool_name):
        # The server sees one process for a client and all its subagents: this identifies the caller.
        announce_call(repo, session.id, event.call, event.tool_name)
    return NOTHING


def _shell_effects():
    from landlane.hooks.shell import effects  # noqa: PLC0415 - only shell calls need it

    return effects


def _start(repo: Repository, session: Session, event: HookEvent) -> str:
    is_first = _note_briefed(repo.require_git(), session)
    # A client that runs several hooks at once got the briefing from another one.
    return _brief(repo, session, event) if is_first or event.source in _AGAIN else ""


def _after(repo: Repository, session: Session, event: HookEvent) -> str:
    if event.tool == ToolAction.EDIT and not event.source:  # after a failed edit it has not seen the content
        note_edit(repo, session, event)
    if event.tool != ToolAction.SHELL:
        return ""
    note_command(repo, session.id, event.command, event.exit_code)
    return _shell_effects().after_shell(repo.require_git(), session, event).text


def _brief(repo: Repository, session: Session, event: HookEvent) -> str:
    from landlane.hooks.briefing.compose import brief  # noqa: PLC0415 - once per session

    return brief(repo, session, event)


def _note_briefed(repo: Repository, session: Session) -> bool:
    """Record that a session has had its briefing; return whether this was the first time."""
    return bool(take_undelivered(repo, session.id, f"briefing-{session.id}", ["told"]))


def _stop(repo: Repository, session: Session, event: HookEvent, report: str) -> HookAnswer:
    """Report unfinished work at the end of a turn, but only once: holding every time would never end."""
    is_worker = bool(worker_task(session.agent))  # its last answer is its result
    if event.is_again or event.is_background or is_worker or not repo.settings.hooks.remind:
        if report:  # shown with the next event
            _notify(repo, session.id, report)
        return NOTHING
    from landlane.hooks.session_end import leftovers, should_point_out  # noqa: PLC0415 - only the end of a turn needs it

    unfinished = leftovers(repo.require_git(), session)
    if unfinished and not should_point_out(repo, session, unfinished):
        unfinished = ""
    text = _join((report, unfinished))
    return HookAnswer(verdict=HookVerdict.HOLD, text=text) if text else NOTHING


def _end(repo: Repository, event: HookEvent, environment: Mapping[str, str]) -> HookAnswer:
    """End the client's subagents, then its session, unless the program that started it owns the session."""
    session = find_live_session(repo, event)
    if session is None:
        return NOTHING
    for child in repo.store.view(lambda snapshot: list_subagents(snapshot, session.id)):
        forget_reads(repo, child.id)
        try:
            end_subagent(repo, child, session.id)
        except Stale:
            continue  # it has already ended
    # The file versions it has read are kept: a resumed client still relies on them.
    if was_given(session, environment):
        return NOTHING
    parent = repo.store.view(lambda snapshot: find_parent(snapshot, session.id))
    if parent:  # it worked for a person, who takes over its claims
        end_subagent(repo, session, parent)
    else:
        leave(repo, session)
    return NOTHING


def _end_child(repo: Repository, event: HookEvent) -> HookAnswer:
    child = find_live_session(repo, event) if event.agent else None
    if child is None:
        return NOTHING
    parent = repo.store.view(lambda snapshot: find_parent(snapshot, child.id))
    report = _report_earlier_calls(repo, child, replace(event, kind=HookEventKind.STOP))
    if report and parent:
        _notify(repo, parent, f"{child.agent}, your subagent, got this at its end: {report}")
    forget_reads(repo, child.id)
    end_subagent(repo, child, parent)
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
