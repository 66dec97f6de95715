"""Identify the caller of a tool: by our start, by the token, or by the subagent that its hook announced."""

from __future__ import annotations

import os

from landlane.errors import NotAllowed
from landlane.ids import digest
from landlane.sessions.client_sessions import ClientName, find_bound_session
from landlane.sessions.join import Caller, identify, join, known_session, leave, prove
from landlane.sessions.leases import find_session
from landlane.sessions.signs_of_life import show_life
from landlane.sessions.tool_calls import end_call, list_announced_calls
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from landlane.ids import Credentials
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.sessions.tool_calls import AnnouncedCall


# How clients name a call in a hook's input, to match it with the call that arrives here.
_CALL_IDS = ("claudecode/toolUseId", "callId")
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")


@value
class Starter:
    """What our own start says about the caller: arguments, environment, and the client's name."""

    name: str = ""
    session_text: str = ""
    client: str = ""
    credentials: Credentials | None = None  # over HTTP: the session whose token came with the request

    @property
    def caller(self) -> Caller:
        """Return it as the command line does, with the client in place of a person."""
        environment = os.environ
        return Caller(
            name=self.name,
            session_text=self.session_text or environment.get("LANDLANE_SESSION", ""),
            agent_variable=environment.get("LANDLANE_AGENT", ""),
            person=self.own_name,
        )

    @property
    def own_name(self) -> str:
        """Return the name for an unnamed client; its session ends with this process."""
        letters = "".join(letter if letter in _LETTERS else "-" for letter in self.client.lower()).strip("-")
        return f"{letters[:40].strip('-') or 'mcp'}-{os.getpid()}"


def acting_session(repo: Repository, starter: Starter, tool: str, meta: Mapping[str, Any]) -> Session:
    """Return the session that makes this call; begin one if there is none.

    Raises:
        NotAllowed: it cannot prove to be who it says.
        Stale: its session is over.
    """
    base = known_base(repo, starter)
    found = _announced(repo, base, tool, meta)
    if found is not None:
        end_call(repo, found.session, found.call)
        if base is None or found.session != base.id:
            return _proven(repo, found.session)
    if base is None:
        base = _bound_by_meta(repo, meta)
    return base if base is not None else _begin(repo, starter)


def looking_session(repo: Repository, starter: Starter) -> Session | None:
    """Return the session that reads, if known; never begin one, and accept a lost one."""
    try:
        return known_base(repo, starter)
    except NotAllowed:
        raise
    except Exception:  # noqa: BLE001 - reading works without a live session
        return None


def known_base(repo: Repository, starter: Starter) -> Session | None:
    """Return the session of our start or of the token, if there is one."""
    if starter.credentials is not None:
        return prove(repo, starter.credentials)
    joined = known_session(repo, starter.caller)
    return joined.session if joined is not None else None


def _announced(
    repo: Repository, base: Session | None, tool: str, meta: Mapping[str, Any]
) -> AnnouncedCall | None:
    """Return what a hook announced of this call, from the caller's own sessions only: ids may repeat."""
    calls = list_announced_calls(repo)
    if not calls:
        return None
    if base is not None:
        calls = [announced for announced in calls if base.id in (announced.session, announced.parent)]
    ids = [str(meta[key]) for key in _CALL_IDS if isinstance(meta.get(key), str)]
    if ids:
        calls = [announced for announced in calls if announced.call in ids]
    else:  # the client sent no id: use the announced call to this tool if there is only one
        calls = [announced for announced in calls if announced.tool.endswith(tool)]
    return calls[0] if len({announced.session for announced in calls}) == 1 else None


def _bound_by_meta(repo: Repository, meta: Mapping[str, Any]) -> Session | None:
    """Return the Codex session named in the call, if its hook has announced it."""
    session = meta.get("sessionId")
    bound = (
        find_bound_session(repo, ClientName(client="codex", session=session))
        if isinstance(session, str)
        else None
    )
    return _proven(repo, bound.session.id) if bound is not None else None


def _proven(repo: Repository, session_id: str) -> Session:
    """Return a live session, if this user may act for it."""
    session = repo.store.view(lambda snapshot: find_session(snapshot, session_id))
    known = repo.secrets.load(session.agent) if session is not None else None
    is_known = known is not None and known.session == session_id
    if session is None or known is None or not is_known or digest(known.secret) != session.secret_hash:
        raise NotAllowed(
            "the secret of the calling session cannot be read by this user",
            code="NOT_YOUR_SESSION",
            hint="run the client and its server as one user",
        )
    show_life(repo, session)
    return session


def _begin(repo: Repository, starter: Starter) -> Session:
    """Begin a session under the given name, or a client session that ends with this process."""
    caller = starter.caller
    if caller.name or caller.agent_variable or caller.session_text:
        return identify(repo, caller).session
    return join(repo, starter.own_name, process=repo.processes.current()).session


def end_own_session(repo: Repository, starter: Starter) -> None:
    """End the session that this server began for itself."""
    caller = starter.caller
    if starter.credentials is not None or caller.name or caller.agent_variable or caller.session_text:
        return
    known = repo.secrets.load(starter.own_name)
    if known is not None:
        leave(repo, prove(repo, known))
