"""Join as an agent: start a session, attach to a live one, or leave.

The secret of a session is kept in a file that only its user can read. It is written before the transaction
that begins the session is committed, so that a session is never there without its secret.
"""

from __future__ import annotations

from landlane.errors import Held, NotAllowed
from landlane.ids import Credentials, digest, new_secret, short_id
from landlane.sessions.extensions import installed
from landlane.sessions.leases import (
    end_if_gone,
    end_session,
    lapse,
    session_over,
    sweep_if_due,
    touch,
)
from landlane.sessions.model import Session, SessionKind, check_agent_name, parse_credentials
from landlane.sessions.notices import inherit_in
from landlane.sessions.read import (
    find_latest_session,
    find_live_session,
    find_session,
    list_live_sessions,
    lock_live_session,
)
from landlane.text import check_label
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.platform.process_identity import Process
    from landlane.repository import Repository
    from landlane.store.interface import Snapshot, Transaction


@value
class Joined:
    """A session one may act for, and the secret that proves it."""

    session: Session
    secret: str
    is_new: bool


def join(
    repo: Repository,
    name: str,
    *,
    role: str = "",
    kind: SessionKind = SessionKind.AGENT,
    process: Process | None = None,
    shown: str = "",
    may_choose_role: bool = False,
    keeps_role: bool = False,
) -> Joined:
    """Attach to the live session of this name on this machine, or begin one.

    Who is started by an agent with a role has that role, under any name: `shown` is the session that the
    caller shows, besides the one it provably descends from. Only a person, or what acts for nobody, may
    choose a role freely, also that of a live session. `keeps_role`: the caller says that it is this agent,
    and has the role that the agent had when it left.

    Raises:
        Held: the name is in use where this user cannot prove to be it.
        Malformed: nobody has defined this role.
        NotAllowed: the caller has a role, and it is another.
    """
    check_agent_name(name)
    if role:
        check_label(role, "role")
        installed().check_role(repo.settings, role)
    kept = "" if may_choose_role or kind != SessionKind.AGENT else _kept_role(repo, name, role, shown)
    secret = new_secret()

    def work(tx: Transaction) -> Joined | None:
        wanted = kept or role
        if keeps_role and not may_choose_role and kind == SessionKind.AGENT:
            wanted = _last_role(tx, name, wanted)
        return _begin(tx, repo, name, role=wanted, kind=kind, secret=secret, process=process)

    while True:
        known = repo.secrets.load(name)
        attached = attach(repo, known, role, process, may_choose_role, kept) if known else None
        if attached is not None:
            return attached
        joined = repo.store.change(work, areas={f"//agent:{name}": True})
        if joined is not None:
            return joined


def _kept_role(repo: Repository, name: str, role: str, shown: str) -> str:
    """The role that whoever is below an agent with a role must have: the same. Empty where nobody has one.

    Raises:
        NotAllowed: it asks for another.
    """
    registered = registered_ancestor(repo)
    session_id = registered.session if registered is not None else ""
    if not session_id and shown:
        session_id = parse_credentials(shown).session
    own = repo.store.view(lambda snapshot: find_session(snapshot, session_id)) if session_id else None
    if own is None or not own.role or own.kind != SessionKind.AGENT:
        return ""
    if role and role != own.role:
        raise _other_role(own.agent, own.role, role, name)
    return own.role


def _last_role(tx: Snapshot, name: str, wanted: str) -> str:
    """The role of an agent that comes back: the one it had. Leaving does not shake it off.

    Raises:
        NotAllowed: it asks for another.
    """
    last = find_latest_session(tx, name)
    had = last.role if last is not None and last.kind == SessionKind.AGENT else ""
    if had and wanted and wanted != had:
        raise _other_role(name, had, wanted, name)
    return wanted or had


def _other_role(agent: str, has: str, wants: str, name: str) -> NotAllowed:
    whose = "its own role" if name == agent else f"{name} a role other than its own"
    return NotAllowed(
        f"{agent} has the role {has} and cannot give {whose}: {wants}",
        code="ROLE_FORBIDS",
        hint=f"a person can, in a terminal of their own: landlane join {name} --role {wants}",
        holder=agent,
        role=has,
        wanted=wants,
    )


def attach(
    repo: Repository,
    known: Credentials,
    role: str = "",
    process: Process | None = None,
    may_choose_role: bool = False,
    kept: str = "",
) -> Joined | None:
    """The session that a secret on this machine belongs to, if it still lives."""

    def look(snapshot: Snapshot) -> tuple[Session | None, int]:
        return find_live_session(snapshot, known.session), snapshot.now

    session, now = repo.store.view(look)
    if session is None or session.secret_hash != digest(known.secret):
        return None
    if session.lapses_at <= now:  # perhaps over: only a change can tell for sure

        def settle(tx: Transaction) -> Session | None:
            lapse(tx, known.session)
            return find_live_session(tx, known.session)

        session = repo.change(settle)
        if session is None:
            return None
    if kept and session.role != kept:  # in the place of somebody who may do more, or other things
        raise _other_role(session.agent, kept, session.role or "none", session.agent)
    if role and session.role and role != session.role and not may_choose_role:
        raise _other_role(session.agent, session.role, role, session.agent)
    if process is not None or (role and role != session.role):

        def amend(tx: Transaction, session: Session = session) -> None:
            _register(tx, session.id, process)
            if role and role != session.role:
                tx.run("session_set_role", session=session.id, role=role)
                tx.record("session.role", session.agent, session.id, {"role": role, "before": session.role})

        repo.change(amend)
        session = replace(session, role=role or session.role)
    touch(repo.store, session)
    return Joined(session=session, secret=known.secret, is_new=False)


def _begin(
    tx: Transaction,
    repo: Repository,
    name: str,
    *,
    role: str,
    kind: str,
    secret: str,
    process: Process | None,
) -> Joined | None:
    """Begin a session; nothing when this user began one a moment ago, whose secret can be read by now."""
    last = find_latest_session(tx, name)
    if last is not None and not last.has_ended:
        lapse(tx, last.id)
        last = find_latest_session(tx, name)
    if last is not None and not last.has_ended:
        if last.secret_hash == digest(secret):
            return Joined(session=last, secret=secret, is_new=True)  # this very call, run again
        if not end_if_gone(tx, last.id, repo.processes):
            known = repo.secrets.load(name)
            if known is not None and known.session == last.id and last.secret_hash == digest(known.secret):
                return None
            raise _in_use(repo, name, last)
    session_id = short_id("s")
    generation = (last.generation if last is not None else 0) + 1
    lease_ms = repo.settings.sessions.lease_ms
    facts = {
        "generation": generation,
        "kind": kind,
        "role": role,
        "machine": repo.processes.machine,
        "secret_hash": digest(secret),
        "lease_ms": lease_ms,
    }
    tx.run("session_add", session=session_id, agent=name, **facts)
    _register(tx, session_id, process)
    tx.record("session.joined", name, session_id, facts)
    if last is not None:
        inherit_in(tx, last.id, session_id)
    session = find_session(tx, session_id)
    assert session is not None
    # Before the commit and under the name's lock: whoever finds the session finds its secret, and a crash
    # leaves at worst the secret of a session that never began.
    repo.secrets.save(Credentials(session=session_id, secret=secret, agent=name, generation=generation))
    return Joined(session=session, secret=secret, is_new=True)


def _register(tx: Transaction, session_id: str, process: Process | None) -> None:
    if process is not None:
        tx.run(
            "process_add",
            session=session_id,
            boot_id=process.boot_id,
            namespace=process.namespace,
            pid=process.pid,
            started=process.started,
        )


def _in_use(repo: Repository, name: str, session: Session) -> Held:
    here = session.machine == repo.processes.machine
    where = "on this machine, in another clone or for another user" if here else f"on {session.machine}"
    return Held(
        f"{name} is already at work {where}",
        code="AGENT_IN_USE",
        hint="join under another name, or wait until that session leaves or lapses",
        holder=name,
        until_at=max(session.lapses_at, session.lease_ends_at),
    )


def forsaken_ancestor(repo: Repository, name: str) -> Process | None:
    """The ancestor whose session of this name ran out: once its child joins anew, it stands for that."""
    registered = registered_ancestor(repo)
    if registered is None or not registered.is_over or registered.agent != name:
        return None
    return registered.process


@value
class RegisteredProcess:
    """A process that stands for a session, and whether that session is over."""

    process: Process
    session: str
    agent: str
    is_over: bool


def registered_ancestor(repo: Repository) -> RegisteredProcess | None:
    """Return the nearest parent process that is registered for a session."""
    chain = repo.processes.ancestry()
    if not chain:
        return None
    rows = repo.store.view(
        lambda snapshot: snapshot.all(
            "processes_among",
            boot_id=chain[0].boot_id,
            namespace=chain[0].namespace,
            pids=[process.pid for process in chain],
        )
    )
    known = {(row["pid"], row["started"]): row for row in rows}
    for process in chain:
        row = known.get((process.pid, process.started))
        if row is not None:
            return RegisteredProcess(
                process=process,
                session=row["session"],
                agent=row["agent"],
                is_over=row["ended_at"] is not None,
            )
    return None


def leave(repo: Repository, session: Session) -> tuple[str, ...]:
    """End a session; tells what became free.

    Raises:
        Stale: it was over already.
    """

    def work(tx: Transaction) -> tuple[str, ...]:
        live = lock_live_session(tx, session.id)
        if live is None:
            raise session_over(session.agent)
        return tuple(end_session(tx, live, "session.left", {}))

    freed = repo.change(work)
    # Under the name's lock: looking and removing must not meet the secret of a successor that begins now.
    repo.store.change(
        lambda _: repo.secrets.drop(session.agent, session.id), areas={f"//agent:{session.agent}": True}
    )
    return tuple(dict.fromkeys(freed))


def live_sessions(repo: Repository) -> list[Session]:
    """All sessions that have not ended."""
    sweep_if_due(repo.store)
    return repo.store.view(list_live_sessions)
