"""Bind the sessions and subagents of coding clients to sessions of Landlane.

A client names its own sessions. The first hook of a client session starts a session here and binds the two. A
subagent that the client reports separately gets its own session, as a child of its parent's.
"""

from __future__ import annotations

from landlane.ids import digest
from landlane.sessions.join import add_process, drop_secret, join
from landlane.sessions.leases import (
    end_session,
    find_latest_session,
    find_live_session,
    find_session,
    is_dead,
    lapse,
    list_processes,
    lock_live_session,
    restart_lease,
    session_over,
)
from landlane.sessions.model import Claim, Session
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.platform.process import Process
    from landlane.repository import Repository
    from landlane.sessions.join import Joined
    from landlane.store.interface import Snapshot, Transaction
    from landlane.store.journal_chain import JournalEntry
    from landlane.values import Row


_NAME_PART = 6
_LONGEST_PARENT = 38  # leaves room for the longest name of a subagent behind it
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")


@value
class ClientName:
    """A client's own name for one of its sessions, or for a subagent of it."""

    client: str
    session: str
    agent: str = ""

    def columns(self) -> dict[str, str]:
        """Return the name as columns of the table `client_sessions`."""
        return {"client": self.client, "client_session": self.session, "client_agent": self.agent}


@value
class ClientLink:
    """The session that a client's session or subagent is bound to, and its parent session, if it has one."""

    name: ClientName
    session: str
    parent: str

    @classmethod
    def from_row(cls, row: Row) -> ClientLink:
        name = ClientName(client=row["client"], session=row["client_session"], agent=row["client_agent"])
        return cls(name=name, session=row["session"], parent=row["parent"])


@value
class BoundSession:
    """The session that a client's session is bound to."""

    session: Session
    parent: str
    is_new: bool


def find_bound_session(repo: Repository, name: ClientName) -> BoundSession | None:
    """Return the live session that a client's session was bound to before."""

    def look(snapshot: Snapshot) -> BoundSession | None:
        link = _find_link(snapshot, name)
        session = find_live_session(snapshot, link.session) if link is not None else None
        if link is None or session is None:
            return None
        return BoundSession(session=session, parent=link.parent, is_new=False)

    return repo.store.view(look)


def _find_link(snapshot: Snapshot, name: ClientName) -> ClientLink | None:
    row = snapshot.one("client_session_get", **name.columns())
    return ClientLink.from_row(row) if row is not None else None


def list_links(snapshot: Snapshot, session: str) -> list[ClientLink]:
    """Return the sessions and subagents of clients that are bound to a session."""
    return [ClientLink.from_row(row) for row in snapshot.all("client_session_of", session=session)]


def list_live_links(snapshot: Snapshot) -> list[ClientLink]:
    """Return the sessions and subagents of clients that are bound to sessions that have not ended."""
    return [ClientLink.from_row(row) for row in snapshot.all("client_sessions_live")]


def is_client_session(snapshot: Snapshot, session: str) -> bool:
    """Return whether a coding client, one of its subagents or a worker is bound to the session."""
    return bool(list_links(snapshot, session))


def bind_session(repo: Repository, name: ClientName, joined: Joined, parent: str = "") -> BoundSession:
    """Bind a client's session to a session."""
    bound = _bind_if(lambda _: True, repo, name, joined, parent)
    assert bound is not None
    return bound


def _bind_if(
    is_free: Callable[[Transaction], bool],
    repo: Repository,
    name: ClientName,
    joined: Joined,
    parent: str,
    process: Process | None = None,
) -> BoundSession | None:
    """Bind a client's session to a session if that is still free, checked in the same transaction."""
    session = joined.session

    def work(tx: Transaction) -> bool | None:
        tx.one("session_lock", session=session.id)  # two clients that start at once must not both get it
        known = _find_link(tx, name)
        if known is not None and (known.session, known.parent) == (session.id, parent):
            return False
        if not is_free(tx):
            return None
        if known is not None:  # the client continues after its lease expired and remembers what it read
            tx.run("reads_hand_on", session=session.id, former=known.session)
        facts = {**name.columns(), "parent": parent}
        tx.run("client_bind", session=session.id, **facts)
        tx.record("client.bound", session.agent, session.id, facts)
        add_process(tx, session.id, process)
        return True

    is_new = repo.change(work)
    return None if is_new is None else BoundSession(session=session, parent=parent, is_new=is_new)


def replay_binding(tx: Transaction, entry: JournalEntry) -> None:
    """Apply a journal entry to a store that is rebuilt."""
    tx.run("client_bind", session=entry.session, **entry.facts())


def begin_client_session(
    repo: Repository,
    name: ClientName,
    *,
    chosen: str = "",
    role: str = "",
    parent: str = "",
    process: Process | None = None,
) -> BoundSession:
    """Start the session of a client, or attach to the one with the chosen name.

    `parent` is the session for which the client works.

    Raises:
        Held: the chosen name is in use, and this user cannot read the secret of that session.
    """
    names = _suggest_names(f"{name.client}-", name.session)
    if chosen:
        names = [chosen, *_suggest_names(f"{chosen[:_LONGEST_PARENT]}-", name.session)]
    return _begin(repo, name, names, chosen=chosen, role=role, parent=parent, process=process)


def begin_subagent(repo: Repository, name: ClientName, parent: Session) -> BoundSession:
    """Start the session of a subagent. It has no process of its own: it ends when reported, or lapses."""
    names = _suggest_names(f"{parent.agent[:_LONGEST_PARENT]}.", name.agent)
    return _begin(repo, name, names, parent=parent.id, role=parent.role)


def _suggest_names(prefix: str, client_id: str) -> list[str]:
    """Return names for a session, shortest first: with the start of the client's id, then with its digest.

    The digest distinguishes ids with the same start, such as those made from the time.
    """
    letters = "".join(letter for letter in client_id.lower() if letter in _LETTERS)
    hashed = digest(client_id)
    parts = [letters[:_NAME_PART] or hashed[:_NAME_PART], hashed[:_NAME_PART], hashed[:24]]
    return [f"{prefix}{part}" for part in parts]


def _begin(
    repo: Repository,
    name: ClientName,
    agents: list[str],
    *,
    chosen: str = "",
    parent: str = "",
    role: str = "",
    process: Process | None = None,
) -> BoundSession:
    """Start a session under the first of these agent names that no other client session uses."""

    def is_free(snapshot: Snapshot, session: Session | None) -> bool:
        if session is None or session.has_ended:
            return True
        if all(link.name == name for link in list_links(snapshot, session.id)):
            return True
        # After a crash, a chosen name is taken over with everything it holds.
        return session.agent == chosen and is_dead(snapshot, session.id, repo.processes)

    def try_name(agent: str) -> BoundSession | None:
        if not repo.store.view(lambda snapshot: is_free(snapshot, find_latest_session(snapshot, agent))):
            return None
        joined = join(repo, agent, role=role, keeps_role=agent == chosen, is_internal=agent != chosen)
        id = joined.session.id
        return _bind_if(lambda tx: is_free(tx, find_session(tx, id)), repo, name, joined, parent, process)

    bound = next((bound for agent in agents if (bound := try_name(agent)) is not None), None)
    if bound is not None:
        return bound
    joined = join(repo, agents[-1], role=role, process=process, is_internal=True)
    return bind_session(repo, name, joined, parent)


def register_process(repo: Repository, session: str, process: Process | None) -> None:
    """Register a process for a session, so that whatever it starts acts for the session."""
    if process is None or process in repo.store.view(lambda snapshot: list_processes(snapshot, session)):
        return
    repo.store.change(lambda tx: add_process(tx, session, process))


def list_subagents(snapshot: Snapshot, session: str) -> list[Session]:
    """Return the subagents of a session that have not ended."""
    return [Session.from_row(row) for row in snapshot.all("children_of", session=session)]


def end_subagent(repo: Repository, child: Session, parent_id: str) -> list[str]:
    """End a subagent, pass its claims to its parent, and return their patterns.

    Raises:
        Stale: it had ended already.
    """

    def work(tx: Transaction) -> list[str]:
        for session_id in (child.id, parent_id):  # expired claims are neither passed on nor renewed
            lapse(tx, session_id)
        live_child = lock_live_session(tx, child.id)
        if live_child is None:
            raise session_over(child.agent)
        parent = lock_live_session(tx, parent_id)
        passed = _pass_claims_to_parent(tx, child, parent) if parent is not None else []
        end_session(tx, live_child, "session.left", {"parent": parent_id})
        return passed

    passed = repo.change(work)
    drop_secret(repo, child)
    return passed


def _pass_claims_to_parent(tx: Transaction, child: Session, parent: Session) -> list[str]:
    """Give a child's claims to its parent under the same tokens, so that no other session gets in between."""
    claims = Claim.from_rows(tx.all("claims_of", session=child.id))
    for claim in claims:
        tx.run("claim_hand_up", session=child.id, parent=parent.id, token=claim.token)
        facts = {"pattern": claim.pattern, "token": claim.token, "to": parent.id}
        tx.record("claim.passed", child.agent, child.id, facts)
    if claims:
        # From now on the parent's own signs of life renew the claims.
        restart_lease(tx, parent.id, min([parent.shortest_ms, *(claim.ttl_ms for claim in claims)]))
    return [claim.pattern for claim in claims]
