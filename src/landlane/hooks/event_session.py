"""Who calls a hook: the session that stands for a coding client's own, begun when it is first heard of."""

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


_PID = "CLAUDE_PID"
_BASE = "LANDLANE_SESSION"
_NAMED = "LANDLANE_AGENT"


@value
class CallerOfHook:
    """The session that a hook's event belongs to, that of its main agent, and whether it has just begun."""

    session: Session
    main: Session
    is_new: bool


def caller_of(repo: Repository, event: HookEvent, environment: Mapping[str, str]) -> CallerOfHook:
    """The session that an event belongs to; a subagent's own where the client tells it apart.

    Raises:
        NotAllowed: the session's secret cannot be read by this user.
        Held: the name that was chosen for it is in use elsewhere.
    """
    main = _main(repo, event, environment)
    if not main.is_new and _may_type(event) and not was_given(main.session, environment):
        # It may go on in another process than it began in, or be one of several sessions of one process.
        register(repo, main.session.id, _process(repo, event, environment))
    if not event.agent:
        return CallerOfHook(session=main.session, main=main.session, is_new=main.is_new)
    name = ClientName(client=event.client, session=event.session, agent=event.agent)
    child = _proven(repo, find_bound(repo, name)) or begin_child(repo, name, main.session)
    return CallerOfHook(session=child.session, main=main.session, is_new=child.is_new)


def known_caller(repo: Repository, event: HookEvent) -> Session | None:
    """The live session that an event belongs to, if there is one; nothing is begun."""
    name = ClientName(client=event.client, session=event.session, agent=event.agent)
    bound = _proven(repo, find_bound(repo, name))
    return bound.session if bound else None


def was_given(session: Session, environment: Mapping[str, str]) -> bool:
    """Whether whoever started the client gave it this session, to end it by itself."""
    shown = environment.get(_BASE, "")
    return bool(shown) and parse_credentials(shown).session == session.id


def _may_type(event: HookEvent) -> bool:
    """Whether commands may follow that are attributed by the process they come from."""
    return event.kind in (START, PROMPT) or (event.kind == BEFORE and event.tool == SHELL)


def _main(repo: Repository, event: HookEvent, environment: Mapping[str, str]) -> Bound:
    name = ClientName(client=event.client, session=event.session)
    known = _proven(repo, find_bound(repo, name))
    if known is not None:
        return known
    shown = environment.get(_BASE, "")
    process = _process(repo, event, environment)
    if not shown:
        return _begin(repo, name, environment.get(_NAMED, ""), process)
    # Started by us: the session is there already, and the client gets to know it now.
    credentials = parse_credentials(shown)
    try:
        session = prove(repo, credentials)
    except Stale:  # it ran out, and the client goes on under the name and the role that it was given
        last = repo.store.view(lambda snapshot: find_session(snapshot, credentials.session))
        if last is None:
            raise
        return begin(repo, name, chosen=last.agent, role=last.role, process=process)
    return bind(repo, name, Joined(session=session, secret=credentials.secret, is_new=False))


def _begin(repo: Repository, name: ClientName, chosen: str, process: Process | None) -> Bound:
    """Begin a session. Started in the workspace of a person it works for them; one that was left it takes."""
    here = next((one for one in list_workspaces(repo) if one.path == repo.git.root), None)
    if here is None or here.machine != repo.processes.machine or chosen == here.agent:
        return begin(repo, name, chosen=chosen, process=process)
    holder = repo.store.view(lambda snapshot: find_session(snapshot, here.session))
    is_left = not is_held(repo, here)
    is_persons = holder is not None and holder.is_person and not is_left
    bound = begin(repo, name, chosen=chosen, parent=here.session if is_persons else "", process=process)
    if is_left:
        adopt(repo, here, bound.session)
    return bound


def _process(repo: Repository, event: HookEvent, environment: Mapping[str, str]) -> Process | None:
    told = environment.get(_PID, "") if event.client == "claude" else ""  # others only inherit it
    return client_process(repo.processes.ancestry(), int(told) if told.isdecimal() else 0)


def _proven(repo: Repository, bound: Bound | None) -> Bound | None:
    """A bound session that this user may act for, with this call as its sign of life; nothing when it lapsed.

    Raises:
        NotAllowed: its secret is another user's.
    """
    if bound is None:
        return None
    session = bound.session
    now = repo.store.view(lambda snapshot: snapshot.now)
    if session.lease_ends_at <= now:
        return None  # over; only nobody has swept it away yet
    known = repo.secrets.load(session.agent)
    if known is None or known.session != session.id or digest(known.secret) != session.secret_hash:
        raise NotAllowed(
            f"the secret of {session.agent} cannot be read by this user",
            code="NOT_YOUR_SESSION",
            hint="run the client as the user who began its session",
        )
    touch(repo.store, session)
    return bound
