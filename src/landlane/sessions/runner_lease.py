"""A lease for work that only one process may do at a time, with a fencing token; taken over from dead owners.

A claim belongs to a session, which may have many processes; a runner lease belongs to one process. A process
that finds it taken checks whether the owner has provably ended or has not renewed its lease in time, and then
takes it over under a higher token. The former owner finds out when it tries to record something.
"""

from __future__ import annotations

from landlane.errors import Stale
from landlane.ids import token_of
from landlane.sessions.leases import current_process, process_from_row
from landlane.values import as_dict, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.platform.process import Process
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.values import Row


_POLL_SECONDS = 1.0  # the end of a killed process wakes no listener


@value
class RunnerLease:
    """The right to run something alone, until the store's time `until` unless it is renewed.

    `is_takeover` means that a former owner did not end it: its process died or stopped renewing it.
    """

    name: str
    agent: str
    token: int
    lease_ms: int
    until: int
    is_takeover: bool = False


@value
class RunnerBusy:
    """Another process runs it."""

    name: str
    agent: str
    token: int
    until: int


def take_runner(repo: Repository, owner: Session | str, name: str, lease_ms: int) -> RunnerLease | RunnerBusy:
    """Take the lease, or return who has it; `owner` is a session or the name of an agent."""
    me = current_process(repo)
    agent, session = (owner, "") if isinstance(owner, str) else (owner.agent, owner.id)

    def work(tx: Transaction) -> RunnerLease | RunnerBusy:
        last = _lock_runner(tx, name)
        if last is not None and not _is_over(repo, last, tx.now):
            return RunnerBusy(name=name, agent=last.agent, token=last.token, until=last.until)
        (number,) = tx.next_numbers(1)
        lease = RunnerLease(
            name=name,
            agent=agent,
            token=token_of(tx.epoch, number),
            lease_ms=lease_ms,
            until=tx.now + lease_ms,
            is_takeover=last is not None,
        )
        columns = {"agent": agent, "token": lease.token, "until": lease.until, **as_dict(me)}
        tx.run("runner_put", name=name, holder=session or agent or "?", **columns)
        facts = {"name": name, "token": lease.token, "pid": me.pid, "machine": repo.processes.machine}
        facts |= {"from": last.agent} if last is not None else {}
        tx.record("runner.taken", agent, session, facts, number)
        return lease

    return repo.change(work, areas=_areas(name))


def wait_for_runner(
    repo: Repository,
    owner: Session | str,
    name: str,
    lease_ms: int,
    wait_ms: int,
    *,
    on_wait: Callable[[RunnerBusy], None] = lambda _: None,
    on_tick: Callable[[], None] = lambda: None,
) -> RunnerLease | RunnerBusy:
    """Take the lease, waiting for it at most `wait_ms`.

    `on_wait` is called once with the current owner, and `on_tick` about every second.
    """
    outcome = take_runner(repo, owner, name, lease_ms)
    if isinstance(outcome, RunnerLease) or wait_ms <= 0:
        return outcome
    listener = repo.store.listen()  # before trying again, so that no release in between is missed
    try:
        deadline = _now(repo) + wait_ms
        on_wait(outcome)
        while isinstance(outcome := take_runner(repo, owner, name, lease_ms), RunnerBusy):
            now = _now(repo)
            if now >= deadline:
                return outcome
            ends = [end for end in (outcome.until, deadline) if end > now]
            listener.wait(min([_POLL_SECONDS, *((end - now + 1) / 1000 for end in ends)]))
            on_tick()
        return outcome
    finally:
        listener.close()


def renew_runner(repo: Repository, lease: RunnerLease) -> RunnerLease:
    """Renew the lease if a third of it is over, and return it.

    Raises:
        Stale: another process took it over.
    """
    if lease.until - _now(repo) > lease.lease_ms * 2 // 3:
        return lease

    def work(tx: Transaction) -> int:
        until = tx.now + lease.lease_ms
        return until if tx.run("runner_renew", name=lease.name, token=lease.token, until=until) else 0

    until = repo.store.change(work, is_durable=False)
    if not until:
        raise _overtaken(lease, "")
    return replace(lease, until=until)


def check_runner(tx: Transaction, lease: RunnerLease) -> None:
    """Check that the lease is still ours; it stays so until the transaction ends.

    Raises:
        Stale: another process took it over.
    """
    runner = _lock_runner(tx, lease.name)
    if runner is None or runner.token != lease.token:
        raise _overtaken(lease, runner.agent if runner is not None else "")


def end_runner(repo: Repository, lease: RunnerLease) -> bool:
    """Release the lease; return whether it was still ours."""
    return repo.change(lambda tx: end_runner_in(tx, lease), areas=_areas(lease.name))


def end_runner_in(tx: Transaction, lease: RunnerLease) -> bool:
    """Release the lease in a transaction that also changes other things."""
    runner = _lock_runner(tx, lease.name)
    if runner is None or runner.token != lease.token:
        return False
    tx.run("runner_drop", name=lease.name, token=lease.token)
    tx.record("runner.ended", lease.agent, "", {"name": lease.name, "token": lease.token})
    tx.has_freed = True
    return True


def is_runner_lost(repo: Repository, name: str) -> bool:
    """Return whether the process that has the lease died, or was silent for too long."""

    def look(snapshot: Snapshot) -> bool:
        row = snapshot.one("runner_get", name=name)
        return row is not None and bool(row["holder"]) and _is_over(repo, _runner_from(row), snapshot.now)

    return repo.store.view(look)


@value
class _Runner:
    """The process that has the lease, as the store knows it."""

    agent: str
    token: int
    until: int
    process: Process


def _lock_runner(tx: Transaction, name: str) -> _Runner | None:
    """Return the owner, dead or alive, if the lease was not released; locked until the transaction ends."""
    row = tx.one("runner_lock", name=name)
    if row is None or not row["holder"]:
        return None
    return _runner_from(row)


def _runner_from(row: Row) -> _Runner:
    process = process_from_row(row)
    return _Runner(agent=row["agent"], token=row["token"], until=row["until"], process=process)


def _is_over(repo: Repository, runner: _Runner, now: int) -> bool:
    return runner.until <= now or (runner.process.pid != 0 and repo.processes.is_gone(runner.process))


def _areas(name: str) -> dict[str, bool]:
    # The root is locked shared, as for claims; moving the store takes it exclusively.
    return {"": False, f"//runner:{name}": True}


def _now(repo: Repository) -> int:
    return repo.store.view(lambda snapshot: snapshot.now)


def _overtaken(lease: RunnerLease, by: str) -> Stale:
    return Stale(
        f"{by or 'another process'} took {lease.name} over: this process was silent for too long",
        code="RUNNER_OVERTAKEN",
        hint="look at what was done since, then start again",
        holder=by or None,
    )
