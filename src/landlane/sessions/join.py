"""Join as an agent: find the session that a call belongs to, attach to a live one, start one, or leave.

The secret of a session is kept in a file that only its user can read. It is written before the transaction
that starts the session is committed, so that no session exists without its secret.
"""

from __future__ import annotations

from landlane.errors import Held, NotAllowed
from landlane.ids import Credentials, digest, new_secret, short_id
from landlane.sessions.extensions import installed
from landlane.sessions.leases import (
    end_if_gone,
    end_session,
    find_latest_session,
    find_live_session,
    find_session,
    get_session,
    lapse,
    list_live_sessions,
    lock_live_session,
    session_over,
    sweep_if_due,
)
from landlane.sessions.model import (
    Session,
    SessionKind,
    check_agent_name,
    check_not_reserved,
    parse_credentials,
)
from landlane.sessions.notices import pass_on_unread
from landlane.sessions.signs_of_life import forget_file, mark_file, show_life
from landlane.text import check_label
from landlane.values import as_dict, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.platform.process import Process
    from landlane.repository import Repository
    from landlane.store.interface import Snapshot, Transaction


@value
class Joined:
    """A session to act for, and the secret that proves the right to do so."""

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
    is_internal: bool = False,
) -> Joined:
    """Attach to the live session with this name on this machine, or start one.

    Everything that an agent with a role starts has the same role, under any name. `shown` are the credentials
    that the caller presents, in addition to the session that it provably descends from. Only a person, or a
    caller without a session, may choose a role freely, even for a live session. With `keeps_role` the caller
    claims to be this agent, and gets the role that the agent had when it left. `is_internal` allows a name
    that is reserved for workers.

    Raises:
        Held: the name is in use, and this user cannot read the secret of that session.
        Malformed: the role is not defined, or the name is reserved.
        NotAllowed: the caller has another role.
    """
    check_agent_name(name)
    if role:
        check_label(role, "role")
        installed().check_role(repo.settings, role)
    is_bound = kind == SessionKind.AGENT and not may_choose_role
    inherited = _inherited_role(repo, name, role, shown) if is_bound else ""
    secret = new_secret()

    def work(tx: Transaction) -> Joined | None:
        wanted = inherited or role
        if keeps_role and is_bound:
            wanted = _last_role(tx, name, wanted)
        return _begin(tx, repo, name, role=wanted, kind=kind, secret=secret, process=process)

    while True:
        known = repo.secrets.load(name)
        attached = attach(repo, known, role, process, may_choose_role, inherited) if known else None
        if attached is not None:
            return attached
        if not is_internal:
            check_not_reserved(name)
        joined = repo.store.change(work, areas={f"//agent:{name}": True})
        if joined is not None:
            if repo.store.activity_folder:
                mark_file(repo.store, joined.session.id)
            return joined


def _inherited_role(repo: Repository, name: str, role: str, shown: str) -> str:
    """Return the role of the agent that started the caller; empty if there is none.

    Raises:
        NotAllowed: the caller asks for another role.
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
    """Return the role of an agent that comes back: the one it had, because leaving must not remove it.

    Raises:
        NotAllowed: it asks for another role.
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
    inherited: str = "",
) -> Joined | None:
    """Return the session that a secret on this machine belongs to, if it is still alive."""

    def look(snapshot: Snapshot) -> tuple[Session | None, int]:
        return find_live_session(snapshot, known.session), snapshot.now

    session, now = repo.store.view(look)
    if session is None or session.secret_hash != digest(known.secret):
        return None
    if session.lapses_at <= now:  # it may be over: only a transaction can find out

        def settle(tx: Transaction) -> Session | None:
            lapse(tx, known.session)
            return find_live_session(tx, known.session)

        session = repo.change(settle)
        if session is None:
            return None
    if inherited and session.role != inherited:  # acting for it would change what the caller may do
        raise _other_role(session.agent, inherited, session.role or "none", session.agent)
    changes_role = bool(role) and role != session.role
    if changes_role and session.role and not may_choose_role:
        raise _other_role(session.agent, session.role, role, session.agent)
    if process is not None or changes_role:

        def amend(tx: Transaction, session: Session = session) -> None:
            add_process(tx, session.id, process)
            if changes_role:
                tx.run("session_set_role", session=session.id, role=role)
                tx.record("session.role", session.agent, session.id, {"role": role, "before": session.role})

        repo.change(amend)
        session = replace(session, role=role or session.role)
    show_life(repo, session)
    return Joined(session=session, secret=known.secret, is_new=False)


def _begin(
    tx: Transaction,
    repo: Repository,
    name: str,
    *,
    role: str,
    kind: SessionKind,
    secret: str,
    process: Process | None,
) -> Joined | None:
    """Start a session; return None if this user started one a moment ago, whose secret can be read now."""
    last = find_latest_session(tx, name)
    if last is not None and not last.has_ended:
        lapse(tx, last.id)
        last = find_latest_session(tx, name)
    if last is not None and not last.has_ended:
        if last.secret_hash == digest(secret):
            return Joined(session=last, secret=secret, is_new=True)  # this transaction ran before
        if not end_if_gone(tx, last.id, repo.processes):
            known = repo.secrets.load(name)
            if known is not None and known.session == last.id and last.secret_hash == digest(known.secret):
                return None
            raise _in_use(repo, name, last)
    session = add_session(
        tx,
        name,
        generation=(last.generation if last is not None else 0) + 1,
        kind=kind,
        role=role,
        machine=repo.processes.machine,
        secret=secret,
        lease_ms=repo.settings.sessions.lease_ms,
    )
    add_process(tx, session.id, process)
    if last is not None:
        pass_on_unread(tx, last.id, session.id)
    # Before the commit and with the name locked: every committed session has its secret, and a crash leaves
    # at worst the secret of a session that never started.
    repo.secrets.save(
        Credentials(session=session.id, secret=secret, agent=name, generation=session.generation)
    )
    return Joined(session=session, secret=secret, is_new=True)


def add_session(
    tx: Transaction,
    agent: str,
    *,
    generation: int,
    kind: SessionKind,
    role: str,
    machine: str,
    secret: str,
    lease_ms: int,
) -> Session:
    """Write a new session and its journal entry."""
    session_id = short_id("s")
    facts = {
        "generation": generation,
        "kind": kind,
        "role": role,
        "machine": machine,
        "secret_hash": digest(secret),
        "lease_ms": lease_ms,
    }
    tx.run("session_add", session=session_id, agent=agent, **facts)
    tx.record("session.joined", agent, session_id, facts)
    return get_session(tx, session_id)


def add_process(tx: Transaction, session_id: str, process: Process | None) -> None:
    """Register a process for a session, if one is given."""
    if process is not None:
        tx.run("process_add", session=session_id, **as_dict(process))


def is_secret_lost(repo: Repository, session: Session) -> bool:
    """Return whether no command can act in a session any more, because the file with its secret is gone.

    Of a shared store, the file may be in another clone.
    """
    is_here = session.machine == repo.processes.machine and not repo.store.is_shared
    return is_here and not session.is_holder and repo.secrets.is_lost(session.agent)


def _where(repo: Repository, session: Session) -> str:
    """Return where a session is that this caller cannot act for."""
    if is_secret_lost(repo, session):
        return "on this machine, but the file with the secret of its session is gone"
    is_here = session.machine == repo.processes.machine
    return "on this machine, in another clone or for another user" if is_here else f"on {session.machine}"


def _in_use(repo: Repository, name: str, session: Session) -> Held:
    return Held(
        f"{name} is already at work {_where(repo, session)}",
        code="AGENT_IN_USE",
        hint="join under another name, or wait until that session leaves or lapses",
        holder=name,
        until_at=max(session.lapses_at, session.lease_ends_at),
    )


@value
class RegisteredProcess:
    """A process that is registered for a session, and whether that session has ended."""

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


def find_ancestor_of_ended(repo: Repository, name: str) -> Process | None:
    """Return the ancestor that was registered for an ended session of this agent; joining again reuses it."""
    registered = registered_ancestor(repo)
    if registered is None or not registered.is_over or registered.agent != name:
        return None
    return registered.process


def find_live_by_name(repo: Repository, name: str) -> Session | None:
    """Return the live session of this name, unless its lease or its processes have ended."""

    def work(tx: Transaction) -> Session | None:
        last = find_latest_session(tx, name)
        if last is None or last.has_ended:
            return None
        lapse(tx, last.id)
        live = find_live_session(tx, last.id)
        return live if live is not None and not end_if_gone(tx, live.id, repo.processes) else None

    return repo.change(work, areas={f"//agent:{name}": True})


def leave(repo: Repository, session: Session) -> tuple[str, ...]:
    """End a session and return the patterns that became free.

    Raises:
        Stale: it had ended already.
    """

    def work(tx: Transaction) -> list[str]:
        live = lock_live_session(tx, session.id)
        if live is None:
            raise session_over(session.agent)
        return end_session(tx, live, "session.left", {})

    freed = repo.change(work)
    drop_secret(repo, session)
    forget_file(repo.store, session.id)
    return tuple(dict.fromkeys(freed))


def drop_secret(repo: Repository, session: Session) -> None:
    """Delete the secret of an ended session, with its name locked: a successor may be saving its own."""
    repo.store.change(
        lambda _: repo.secrets.drop(session.agent, session.id), areas={f"//agent:{session.agent}": True}
    )


def live_sessions(repo: Repository) -> list[Session]:
    """Return all sessions that have not ended."""
    sweep_if_due(repo.store)
    return repo.store.view(list_live_sessions)


@value
class Caller:
    """How a call identifies itself."""

    name: str = ""
    session_text: str = ""
    agent_variable: str = ""
    person: str = ""


def prove(repo: Repository, credentials: Credentials) -> Session:
    """Return the live session that these credentials belong to.

    Raises:
        NotAllowed: there is no such session, or it has another secret.
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
    show_life(repo, session)
    return session


def identify(repo: Repository, caller: Caller, *, role: str = "") -> Joined:
    """Return the session that acts, and start it if necessary.

    It is found by the nearest registered ancestor, the credentials, the name, or the person, in this order.

    Raises:
        NotAllowed: the caller provably belongs to another session than it names.
    """
    found = known_session(repo, caller)
    if found is not None and role in ("", found.session.role):
        return found
    name = found.session.agent if found else caller.name or caller.agent_variable
    if name:
        return join(repo, name, role=role, shown=caller.session_text, keeps_role=True)
    return join(repo, caller.person, role=role, kind=SessionKind.PERSON)


def known_session(repo: Repository, caller: Caller) -> Joined | None:
    """Return the session that this caller already belongs to, without starting one."""
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
        return _check_name(_prove_joined(repo, known), caller)
    if caller.session_text:
        return _check_name(_prove_joined(repo, parse_credentials(caller.session_text)), caller)
    known = repo.secrets.load(check_agent_name(caller.name or caller.agent_variable or caller.person))
    return attach(repo, known) if known is not None else None


def _prove_joined(repo: Repository, credentials: Credentials) -> Joined:
    return Joined(session=prove(repo, credentials), secret=credentials.secret, is_new=False)


def _check_name(joined: Joined, caller: Caller) -> Joined:
    """Return the session, unless the caller names another agent."""
    if caller.name and caller.name != joined.session.agent:
        raise NotAllowed(
            f"this process belongs to {joined.session.agent} and cannot act as {caller.name}",
            code="NOT_YOUR_SESSION",
            hint=f"act as {joined.session.agent}: leave out --as",
        )
    return joined
