"""Which session a call belongs to: credentials, ancestor process or name."""

from __future__ import annotations

from landlane.errors import NotAllowed
from landlane.ids import Credentials, digest
from landlane.sessions.join import Joined, attach, join, registered_ancestor
from landlane.sessions.leases import session_over, touch
from landlane.sessions.model import Session, SessionKind, check_agent_name, parse_credentials
from landlane.sessions.read import find_session
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository


@value
class Caller:
    """What a call brings along to say who it is."""

    name: str = ""
    session_text: str = ""
    agent_variable: str = ""
    person: str = ""


def prove(repo: Repository, credentials: Credentials) -> Session:
    """The live session that these credentials belong to.

    Raises:
        NotAllowed: there is no such session, or the secret is another's.
        Stale: the session is over.
    """
    session = repo.store.view(lambda snapshot: find_session(snapshot, credentials.session))
    if session is None or session.secret_hash != digest(credentials.secret):
        raise NotAllowed(
            f"the secret shown is not that of session {credentials.session[:40]}",
            code="NOT_YOUR_SESSION",
            hint="act under your own name: `landlane join NAME`, or --as NAME",
        )
    if session.has_ended:
        raise session_over(session.agent)
    touch(repo.store, session)
    return session


def identify(repo: Repository, caller: Caller, *, role: str = "") -> Joined:
    """Who acts: the nearest registered ancestor, the session shown, the name given, or the person.

    Raises:
        NotAllowed: the caller says it is somebody else than it provably is.
    """
    found = known_session(repo, caller)
    if found is not None and role in ("", found.session.role):
        return found
    name = found.session.agent if found else caller.name or caller.agent_variable
    if name:
        return join(repo, name, role=role, shown=caller.session_text, keeps_role=True)
    return join(repo, caller.person, role=role, kind=SessionKind.PERSON)


def known_session(repo: Repository, caller: Caller) -> Joined | None:
    """The session this caller already belongs to; nothing is begun."""
    registered = registered_ancestor(repo)
    if registered is not None:
        if registered.is_over:
            raise session_over(registered.agent)
        known = repo.secrets.load(registered.agent)
        if known is None or known.session != registered.session:
            raise NotAllowed(
                f"this process belongs to a session of {registered.agent} whose secret this user cannot read",
                code="NOT_YOUR_SESSION",
                hint="start the command outside that agent",
            )
        return _as_claimed(Joined(session=prove(repo, known), secret=known.secret, is_new=False), caller)
    if caller.session_text:
        credentials = parse_credentials(caller.session_text)
        session = prove(repo, credentials)
        return _as_claimed(Joined(session=session, secret=credentials.secret, is_new=False), caller)
    known = repo.secrets.load(check_agent_name(caller.name or caller.agent_variable or caller.person))
    return attach(repo, known) if known is not None else None


def _as_claimed(joined: Joined, caller: Caller) -> Joined:
    """Refuse a caller that says it is somebody else than it is."""
    if caller.name and caller.name != joined.session.agent:
        raise NotAllowed(
            f"this process belongs to {joined.session.agent} and cannot act as {caller.name}",
            code="NOT_YOUR_SESSION",
            hint=f"leave out --as, or run it outside the session of {joined.session.agent}",
        )
    return joined
