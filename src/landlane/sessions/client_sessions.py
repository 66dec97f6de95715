"""Which session of ours a coding client's session is, and whose subagents are at work.

A client names its sessions itself. The first hook of one begins a session here and binds the two names; a
subagent that the client tells apart gets a session of its own, under its parent.
"""

from __future__ import annotations

from landlane.ids import digest
from landlane.sessions.join import join
from landlane.sessions.leases import end_session, is_dead, lapse, session_over
from landlane.sessions.model import Claim, Session
from landlane.sessions.read import (
    find_latest_session,
    find_live_session,
    find_session,
    list_processes,
    lock_live_session,
)
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.platform.process_identity import Process
    from landlane.repository import Repository
    from landlane.sessions.join import Joined
    from landlane.store.interface import Snapshot, Transaction
    from landlane.store.journal_chain import Entry
    from landlane.values import Row


_NAME_PART = 6
_LONGEST_PARENT = 38  # leaves room for the longest name of a subagent behind it
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")


@value
class ClientName:
    """How a client calls one of its sessions, or a subagent of it."""

    client: str
    session: str
    agent: str = ""


@value
class Bound:
    """A session of ours that a client's session is."""

    session: Session
    parent: str
    is_new: bool


def _names(base: str, id: str) -> list[str]:
    """What a session may be called, shortest first: after the client and the beginning of its own id.

    Ids that begin alike, as those made from the time do, are told apart by their digest.
    """
    letters = "".join(letter for letter in id.lower() if letter in _LETTERS)
    parts = [letters[:_NAME_PART] or digest(id)[:_NAME_PART], digest(id)[:_NAME_PART], digest(id)[:24]]
    return [f"{base}{part}" for part in parts]


def find_bound(repo: Repository, name: ClientName) -> Bound | None:
    """The live session that a client's session is, if it was bound before."""

    def look(snapshot: Snapshot) -> Bound | None:
        link = _find_link(snapshot, name)
        session = find_live_session(snapshot, link.session) if link is not None else None
        if link is None or session is None:
            return None
        return Bound(session=session, parent=link.parent, is_new=False)

    return repo.store.view(look)


@value
class ClientLink:
    """Which session of ours a client's session or subagent is, and whose subagent that is."""

    client: str
    client_session: str
    client_agent: str
    session: str
    parent: str

    @classmethod
    def from_row(cls, row: Row) -> ClientLink:
        return cls(**row)

    def is_for(self, name: ClientName) -> bool:
        return (self.client, self.client_session, self.client_agent) == (
            name.client,
            name.session,
            name.agent,
        )


def _find_link(snapshot: Snapshot, name: ClientName) -> ClientLink | None:
    row = snapshot.one(
        "client_session_get", client=name.client, client_session=name.session, client_agent=name.agent
    )
    return ClientLink.from_row(row) if row is not None else None


def links_of(snapshot: Snapshot, session: str) -> list[ClientLink]:
    """Return the sessions and subagents of clients that a session of ours is bound to."""
    return [ClientLink.from_row(row) for row in snapshot.all("client_session_of", session=session)]


def live_links(snapshot: Snapshot) -> list[ClientLink]:
    """Return the sessions and subagents of clients whose session of ours has not ended."""
    return [ClientLink.from_row(row) for row in snapshot.all("client_sessions_live")]


def is_client_session(snapshot: Snapshot, session: str) -> bool:
    """Whether a coding client, one of its subagents or a worker is bound to the session."""
    return bool(links_of(snapshot, session))


def bind(repo: Repository, name: ClientName, joined: Joined, parent: str = "") -> Bound:
    """From now on the client's session is this one of ours."""
    bound = _bind(repo, name, joined, parent, lambda _: True)
    assert bound is not None
    return bound


def _bind(
    repo: Repository,
    name: ClientName,
    joined: Joined,
    parent: str,
    may: Callable[[Transaction], bool],
    process: Process | None = None,
) -> Bound | None:
    """Bind, if the session may still be had for it: looked at and bound in one step."""
    session = joined.session

    def work(tx: Transaction) -> bool | None:
        tx.one("session_lock", session=session.id)  # two that began at once must not both have it
        known = _find_link(tx, name)
        if known is not None and (known.session, known.parent) == (session.id, parent):
            return False
        if not may(tx):
            return None
        facts = {
            "client": name.client,
            "client_session": name.session,
            "client_agent": name.agent,
            "parent": parent,
        }
        if known is not None:  # it goes on after its lease ran out: what it has read it still believes
            tx.run("reads_hand_on", session=session.id, former=known.session)
        tx.run("client_bind", session=session.id, **facts)
        tx.record("client.bound", session.agent, session.id, facts)
        _register(tx, session.id, process)
        return True

    is_new = repo.change(work)
    return None if is_new is None else Bound(session=session, parent=parent, is_new=is_new)


def replay_binding(tx: Transaction, entry: Entry) -> None:
    """Do again what an entry of the journal tells."""
    tx.run("client_bind", session=entry.session, **entry.facts())


def begin(
    repo: Repository,
    name: ClientName,
    *,
    chosen: str = "",
    role: str = "",
    parent: str = "",
    process: Process | None = None,
) -> Bound:
    """Begin the session of a client, or attach to the one of that name. `parent` is whom it works for.

    Raises:
        Held: the name chosen for it is in use where this user cannot prove to be it.
    """
    names = _names(f"{name.client}-", name.session)
    if chosen:
        names = [chosen, *_names(f"{chosen[:_LONGEST_PARENT]}-", name.session)]
    return _begin(repo, name, names, chosen=chosen, role=role, parent=parent, process=process)


def begin_child(repo: Repository, name: ClientName, parent: Session) -> Bound:
    """Begin the session of a subagent. It has no process of its own: it ends when it says so, or lapses."""
    names = _names(f"{parent.agent[:_LONGEST_PARENT]}.", name.agent)
    return _begin(repo, name, names, parent=parent.id, role=parent.role)


def _begin(
    repo: Repository,
    name: ClientName,
    names: list[str],
    *,
    chosen: str = "",
    parent: str = "",
    role: str = "",
    process: Process | None = None,
) -> Bound:
    """Begin a session under the first of these names that no other session of a client goes by."""

    def is_free(snapshot: Snapshot, session: Session | None) -> bool:
        if session is None or session.has_ended:
            return True
        if all(link.is_for(name) for link in links_of(snapshot, session.id)):
            return True
        # A chosen name is taken up again after a crash, with all that it holds.
        return session.agent == chosen and is_dead(snapshot, session.id, repo.processes)

    def try_name(called: str) -> Bound | None:
        if not repo.store.view(lambda snapshot: is_free(snapshot, find_latest_session(snapshot, called))):
            return None
        joined = join(repo, called, role=role, keeps_role=called == chosen)
        id = joined.session.id
        return _bind(repo, name, joined, parent, lambda tx: is_free(tx, find_session(tx, id)), process)

    found = next((bound for called in names if (bound := try_name(called)) is not None), None)
    return found or bind(repo, name, join(repo, names[-1], role=role, process=process), parent)


def register(repo: Repository, session: str, process: Process | None) -> None:
    """From now on this process stands for the session: what it starts acts for it."""
    if process is None or process in repo.store.view(lambda snapshot: list_processes(snapshot, session)):
        return
    repo.store.change(lambda tx: _register(tx, session, process))


def _register(tx: Transaction, session: str, process: Process | None) -> None:
    if process is not None:
        facts = {"boot_id": process.boot_id, "namespace": process.namespace}
        tx.run("process_add", session=session, pid=process.pid, started=process.started, **facts)


def children_of(snapshot: Snapshot, session: str) -> list[Session]:
    """The subagents of a session that are still there."""
    return [Session.from_row(row) for row in snapshot.all("children_of", session=session)]


def end_child(repo: Repository, child: Session, parent_id: str) -> list[str]:
    """End a subagent; what it holds passes to its parent, whose work it is part of. Tells what did.

    Raises:
        Stale: it was over already.
    """

    def work(tx: Transaction) -> list[str]:
        for one in (child.id, parent_id):  # what has run out is not passed on, nor renewed by it
            lapse(tx, one)
        live_child = lock_live_session(tx, child.id)
        if live_child is None:
            raise session_over(child.agent)
        parent = lock_live_session(tx, parent_id)
        passed = _hand_up(tx, child, parent) if parent is not None else []
        end_session(tx, live_child, "session.left", {"parent": parent_id})
        return passed

    passed = repo.change(work)
    repo.store.change(
        lambda _: repo.secrets.drop(child.agent, child.id), areas={f"//agent:{child.agent}": True}
    )
    return passed


def _hand_up(tx: Transaction, child: Session, parent: Session) -> list[str]:
    """Give a child's claims to its parent under the tokens they have: nobody else gets in between."""
    claims = Claim.from_rows(tx.all("claims_of", session=child.id))
    shortest = min([parent.shortest_ms, *(claim.ttl_ms for claim in claims)])
    for claim in claims:
        tx.run("claim_hand_up", session=child.id, parent=parent.id, token=claim.token)
        facts = {"pattern": claim.pattern, "token": claim.token, "to": parent.id}
        tx.record("claim.passed", child.agent, child.id, facts)
    if claims:
        # Counted from now: the parent's own signs of life renew it from here on.
        tx.run(
            "session_set_lease",
            session=parent.id,
            seen_at=tx.now,
            shortest_ms=shortest,
            lapses_at=tx.now + shortest,
        )
    return [claim.pattern for claim in claims]
