"""Find the Landlane session of a hook event, starting one at the client session's first event."""

from __future__ import annotations

from landlane.clients.calling_process import client_process
from landlane.errors import NotAllowed, Stale
from landlane.ids import digest
from landlane.protocol.hook_events import BEFORE, PROMPT, SHELL, START
from landlane.sessions.client_sessions import ClientName, begin, begin_child, bind, find_bound, register
from landlane.sessions.identify import prove
from landlane.sessions.join import Joined
from landlane.sessions.leases import touch
from landlane.sessions.model import parse_credentials
from landlane.sessions.read import find_session
from landlane.values import value
from landlane.workspaces.records import adopt, is_held, list_workspaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from landlane.platform.process_identity import Process
    from landlane.protocol.hook_events import HookEvent
    from landlane.repository import Repository
    from landlane.sessions.client_sessions import Bound
    from landlane.sessions.model import Session


_PID_VARIABLE = "CLAUDE_PID"
_SESSION_VARIABLE = "LANDLANE_SESSION"
_AGENT_VARIABLE = "LANDLANE_AGENT"


@value
class CallerOfHook:
    """The session of a hook event, the session of its main agent, and whether it is new."""

    session: Session
    main: Session
    is_new: bool


def caller_of(repo: Repository, event: HookEvent, environment: Mapping[str, str]) -> CallerOfHook:
    """Return the session of an event; a subagent has its own where the client identifies it.

    Raises:
        NotAllowed: the session's secret cannot be read by this user.
        Held: the chosen agent name is in use elsewhere.
    """
    main = _main(repo, event, environment)
    if not main.is_new and _may_run_commands(event) and not was_given(main.session, environment):
        # A session may continue in another process, or share one process with other sessions.
        register(repo, main.session.id, _process(repo, event, environment))
    if not event.agent:
        return CallerOfHook(session=main.session, main=main.session, is_new=main.is_new)
    name = ClientName(client=event.client, session=event.session, agent=event.agent)
    child = _proven(repo, find_bound(repo, name)) or begin_child(repo, name, main.session)
    return CallerOfHook(session=child.session, main=main.session, is_new=child.is_new)


def known_caller(repo: Repository, event: HookEvent) -> Session | None:
    """Return the live session of an event, or None; never start one."""
    name = ClientName(client=event.client, session=event.session, agent=event.agent)
    bound = _proven(repo, find_bound(repo, name))
    return bound.session if bound else None


def was_given(session: Session, environment: Mapping[str, str]) -> bool:
    """Return whether the program that started the client passed it this session, and will end it."""
    shown = environment.get(_SESSION_VARIABLE, "")
    return bool(shown) and parse_credentials(shown).session == session.id


def _may_run_commands(event: HookEvent) -> bool:
    """Return whether commands may follow that are attributed by their process."""
    return event.kind in (START, PROMPT) or (event.kind == BEFORE and event.tool == SHELL)


def _main(repo: Repository, event: HookEvent, environment: Mapping[str, str]) -> Bound:
    name = ClientName(client=event.client, session=event.session)
    known = _proven(repo, find_bound(repo, name))
    if known is not None:
        return known
    shown = environment.get(_SESSION_VARIABLE, "")
    process = _process(repo, event, environment)
    if not shown:
        return _begin(repo, name, environment.get(_AGENT_VARIABLE, ""), process)
    # Landlane started the client: its session exists already and is bound to the client here.
    credentials = parse_credentials(shown)
    try:
        session = prove(repo, credentials)
    except Stale:  # the session expired; the client continues with the same name and role
        last = repo.store.view(lambda snapshot: find_session(snapshot, credentials.session))
        if last is None:
            raise
        return begin(repo, name, chosen=last.agent, role=last.role, process=process)
    return bind(repo, name, Joined(session=session, secret=credentials.secret, is_new=False))


def _begin(repo: Repository, name: ClientName, chosen: str, process: Process | None) -> Bound:
    """Start a session: in a person's workspace it works for them, an abandoned workspace it adopts."""
    workspace = next((known for known in list_workspaces(repo) if known.path == repo.git.root), None)
    if workspace is None or workspace.machine != repo.processes.machine or chosen == workspace.agent:
        return begin(repo, name, chosen=chosen, process=process)
    holder = repo.store.view(lambda snapshot: find_session(snapshot, workspace.session))
    is_abandoned = not is_held(repo, workspace)
    is_for_person = holder is not None and holder.is_person and not is_abandoned
    bound = begin(
        repo, name, chosen=chosen, parent=workspace.session if is_for_person else "", process=process
    )
    if is_abandoned:
        adopt(repo, workspace, bound.session)
    return bound


def _process(repo: Repository, event: HookEvent, environment: Mapping[str, str]) -> Process | None:
    pid = (
        environment.get(_PID_VARIABLE, "") if event.client == "claude" else ""
    )  # other clients may inherit the variable
    return client_process(repo.processes.ancestry(), int(pid) if pid.isdecimal() else 0)


def _proven(repo: Repository, bound: Bound | None) -> Bound | None:
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
