"""A lease for work that one process may do at a time, with a fencing token; taken over from dead owners.

A claim belongs to a session, and a session may have many processes; this belongs to one process. Whoever
finds it taken looks whether that process has provably ended, or has not renewed its lease in time, and then
takes it over under a higher token. The one who was overtaken hears of it when it wants to record something.
"""

from __future__ import annotations

from landlane.errors import Malformed, Stale
from landlane.ids import token_of
from landlane.platform.process_identity import Process
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction


_LOOK_SECONDS = 1.0  # a process that died wakes nobody: whoever waits looks so often


@value
class RunnerLease:
    """The right to run something alone, until the store's time `until` unless it is renewed.

    `was_left` tells that somebody ran it before and did not end it: its process died, or fell silent.
    """

    name: str
    agent: str
    token: int
    lease_ms: int
    until: int
    was_left: bool = False


@value
class RunnerBusy:
    """Somebody else runs it."""

    name: str
    agent: str
    token: int
    until: int


def take_runner(repo: Repository, who: Session | str, name: str, lease_ms: int) -> RunnerLease | RunnerBusy:
    """Become the one process that runs this, or say who does; `who` is a session or an agent's name."""
    me = _this_process(repo)
    agent, session = (who, "") if isinstance(who, str) else (who.agent, who.id)

    def work(tx: Transaction) -> RunnerLease | RunnerBusy:
        last = _lock_runner(tx, name)
        if last is not None and not _is_over(repo, last, tx.now):
            return RunnerBusy(name=name, agent=last.agent, token=last.token, until=last.until)
        (number,) = tx.next_numbers(1)
        token, until = token_of(tx.epoch, number), tx.now + lease_ms
        facts = {"name": name, "token": token, "pid": me.pid, "machine": repo.processes.machine}
        facts |= {"from": last.agent} if last is not None else {}
        tx.run(
            "runner_put",
            name=name,
            holder=session or agent or "?",
            agent=agent,
            token=token,
            until=until,
            boot_id=me.boot_id,
            namespace=me.namespace,
            pid=me.pid,
            started=me.started,
        )
        tx.record("runner.taken", agent, session, facts, number)
        was_left = last is not None
        return RunnerLease(
            name=name, agent=agent, token=token, lease_ms=lease_ms, until=until, was_left=was_left
        )

    return repo.change(work, areas=_areas(name))


def wait_for_runner(
    repo: Repository,
    who: Session | str,
    name: str,
    lease_ms: int,
    wait_ms: int,
    *,
    on_wait: Callable[[RunnerBusy], None] = lambda _: None,
    on_tick: Callable[[], None] = lambda: None,
) -> RunnerLease | RunnerBusy:
    """Become the one process that runs this, waiting for it at most so long.

    `on_wait` hears once who is in the way; `on_tick` is called about every second meanwhile.
    """
    outcome = take_runner(repo, who, name, lease_ms)
    if isinstance(outcome, RunnerLease) or wait_ms <= 0:
        return outcome
    listener = repo.store.listen()  # before looking again, so that an end in between is not missed
    try:
        deadline = _now(repo) + wait_ms
        on_wait(outcome)
        while isinstance(outcome := take_runner(repo, who, name, lease_ms), RunnerBusy):
            now = _now(repo)
            if now >= deadline:
                return outcome
            ends = [end for end in (outcome.until, deadline) if end > now]
            listener.wait(min([_LOOK_SECONDS, *((end - now + 1) / 1000 for end in ends)]))
            on_tick()
        return outcome
    finally:
        listener.close()


def renew_runner(repo: Repository, lease: RunnerLease) -> RunnerLease:
    """Say that we are still at it, when it is time to; tells the lease as it is then.

    Raises:
        Stale: somebody took it over.
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
    """Make sure, until the transaction ends, that nobody took it over.

    Raises:
        Stale: somebody did.
    """
    runner = _lock_runner(tx, lease.name)
    if runner is None or runner.token != lease.token:
        raise _overtaken(lease, runner.agent if runner is not None else "")


def end_runner(repo: Repository, lease: RunnerLease) -> bool:
    """Let the next one run it; tells whether it was ours to end."""
    return repo.change(lambda tx: end_runner_in(tx, lease), areas=_areas(lease.name))


def end_runner_in(tx: Transaction, lease: RunnerLease) -> bool:
    """The same inside a transaction that ends other things with it."""
    runner = _lock_runner(tx, lease.name)
    if runner is None or runner.token != lease.token:
        return False
    tx.run("runner_drop", name=lease.name, token=lease.token)
    tx.record("runner.ended", lease.agent, "", {"name": lease.name, "token": lease.token})
    tx.frees = True
    return True


@value
class _Runner:
    """The process that runs something, as the store knows it."""

    agent: str
    token: int
    until: int
    process: Process


def _lock_runner(tx: Transaction, name: str) -> _Runner | None:
    """Return who runs this, or started to run it and never ended; it stays so until the transaction ends."""
    row = tx.one("runner_lock", name=name)
    if row is None or not row["holder"]:
        return None
    process = Process(
        boot_id=row["boot_id"], namespace=row["namespace"], pid=row["pid"], started=row["started"]
    )
    return _Runner(agent=row["agent"], token=row["token"], until=row["until"], process=process)


def _is_over(repo: Repository, runner: _Runner, now: int) -> bool:
    return runner.until <= now or (runner.process.pid != 0 and repo.processes.is_gone(runner.process))


def _areas(name: str) -> dict[str, bool]:
    # The root is locked shared, as for claims: who moves the whole store away takes it alone.
    return {"": False, f"//runner:{name}": True}


def _now(repo: Repository) -> int:
    return repo.store.view(lambda snapshot: snapshot.now)


def _this_process(repo: Repository) -> Process:
    try:
        return repo.processes.current()
    except Malformed:  # a system that tells nothing of its processes: then only the lease counts
        return Process(boot_id="", namespace="", pid=0, started=0)


def _overtaken(lease: RunnerLease, by: str) -> Stale:
    return Stale(
        f"{by or 'somebody'} took {lease.name} over: this process was silent for too long",
        code="RUNNER_OVERTAKEN",
        hint="look at what was done meanwhile, then begin anew",
        holder=by or None,
    )
