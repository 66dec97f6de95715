"""Run a command at most once per key: a second caller waits for the first and gets its result.

The start is recorded with the process that runs it before the command begins, and the end with its exit code.
A process that is gone without a recorded end has crashed. It is unknown how far it came, so the run neither
counts as a success nor is it repeated automatically.
"""

from __future__ import annotations

import shlex

from landlane.errors import Malformed, Stale
from landlane.platform.process_identity import Process
from landlane.sessions.leases import require_live, touch
from landlane.sessions.read import find_live_session
from landlane.state.key_rules import check_key
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.processes.passthrough import CommandResult, RunCommand
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.store.journal_chain import Entry
    from landlane.values import Row

LONGEST_COMMAND = 1000
_LOOK_SECONDS = 1.0
_INTERRUPTED = 130  # what a shell says of a command that Ctrl-C ended
_CANNOT_START = 126


@value
class Run:
    """One run of a command. Instants are milliseconds since 1970; `exit_code` is None until it is known."""

    key: str
    run: int
    agent: str
    session: str
    command: str
    begun_at: int
    done_at: int | None
    exit_code: int | None
    output: str

    @classmethod
    def from_row(cls, row: Row) -> Run:
        return cls(
            key=row["key"],
            run=row["run"],
            agent=row["agent"],
            session=row["session"],
            command=row["command"],
            begun_at=row["begun_at"],
            done_at=row["done_at"],
            exit_code=row["exit_code"],
            output=row["output"],
        )


@value
class Ran:
    """The run has ended; `is_now` tells whether this call ran it or another did before."""

    run: Run
    is_now: bool


@value
class RunCrashed:
    """The process that ran it is gone without saying how it ended: it may have done all, some or nothing."""

    run: Run


@value
class StillRunning:
    """It goes on, and the caller did not want to wait any longer."""

    run: Run


if TYPE_CHECKING:
    Found = Run | Ran | RunCrashed | StillRunning


def exit_status(code: int) -> int:
    """The exit code as a shell tells it: a signal is 128 and its number."""
    return 128 - code if code < 0 else code


def run_once(
    repo: Repository,
    session: Session,
    key: str,
    command: Sequence[str],
    runner: RunCommand,
    *,
    is_again: bool = False,
    wait_ms: int | None = None,
    on_wait: Callable[[Run], None] | None = None,
) -> Ran | RunCrashed | StillRunning:
    """Run a command unless it was run under this key before; with `is_again`, run it in any case.

    Who finds it running waits until it ends, or for `wait_ms`; `on_wait` hears once what is waited for.

    Raises:
        Malformed: the key cannot be used.
        Stale: the session is over.
    """
    check_key(key)
    # What is no text shows as question marks: every store can hold those.
    shown = shlex.join(command).encode("utf-8", "replace").decode()[:LONGEST_COMMAND]
    found = _begin(repo, session, key, shown, is_again=is_again)
    if isinstance(found, StillRunning):
        if on_wait is not None and wait_ms != 0:
            on_wait(found.run)
        found = _wait(repo, session, key, shown, is_again=is_again, wait_ms=wait_ms)
    return _carry_out(repo, session, found, runner) if isinstance(found, Run) else found


def _wait(
    repo: Repository, session: Session, key: str, shown: str, *, is_again: bool, wait_ms: int | None
) -> Found:
    listener = repo.store.listen()  # before looking, so that an end in between is not missed
    try:
        begun_at = repo.store.view(lambda snapshot: snapshot.now)
        while True:
            found = _begin(repo, session, key, shown, is_again=is_again)
            if not isinstance(found, StillRunning):
                return found
            _stay_alive(repo, session)
            left = _LOOK_SECONDS
            if wait_ms is not None:
                now = repo.store.view(lambda snapshot: snapshot.now)
                left = min((begun_at + wait_ms - now) / 1000, left)
                if left <= 0:
                    return found
            listener.wait(left)
    finally:
        listener.close()


def _begin(repo: Repository, session: Session, key: str, shown: str, *, is_again: bool) -> Found:
    """The run that this caller is to carry out, or what is known of the one before; in one transaction."""
    before = repo.store.view(lambda snapshot: _judge(repo, snapshot, key))
    if before is not None and (isinstance(before, StillRunning) or not is_again):
        return before  # settled by a look; only who may run it needs the lock
    me = _this_process(repo)

    def work(tx: Transaction) -> Found:
        found = _judge(repo, tx, key)
        if found is not None and (isinstance(found, StillRunning) or not is_again):
            return found
        require_live(tx, session)
        run = Run(
            key=key,
            run=found.run.run + 1 if found else 1,
            agent=session.agent,
            session=session.id,
            command=shown,
            begun_at=repo.store.wall_of(tx.now),
            done_at=None,
            exit_code=None,
            output="",
        )
        facts = {
            "key": key,
            "run": run.run,
            "machine": repo.processes.machine,
            "boot_id": me.boot_id,
            "namespace": me.namespace,
            "pid": me.pid,
            "started": me.started,
        }
        tx.run(
            "once_begin",
            agent=session.agent,
            session=session.id,
            command=shown,
            begun_at=run.begun_at,
            **facts,
        )
        tx.record("once.started", session.agent, session.id, facts)
        return run

    return repo.change(work, areas=_areas(key))


def _areas(key: str) -> dict[str, bool]:
    # The root is locked shared, as for claims: who moves the whole store away takes it alone.
    return {"": False, f"//once:{key}": True}


def _judge(repo: Repository, snapshot: Snapshot, key: str) -> Ran | RunCrashed | StillRunning | None:
    """What became of the newest run of a key; nothing when there was none."""
    row = snapshot.one("once_get", key=key)
    if row is None:
        return None
    run = Run.from_row(row)
    if run.exit_code is not None:
        return Ran(run=run, is_now=False)
    process = Process(
        boot_id=row["boot_id"], namespace=row["namespace"], pid=row["pid"], started=row["started"]
    )
    child = None
    if row["child_pid"]:
        child = replace(process, pid=row["child_pid"], started=row["child_started"])
    has_crashed = _has_crashed(repo, snapshot, run.session, row["machine"], process, child)
    return RunCrashed(run=run) if has_crashed else StillRunning(run=run)


def _has_crashed(
    repo: Repository, snapshot: Snapshot, session: str, machine: str, process: Process, child: Process | None
) -> bool:
    """Whether the process of a run without an end is gone: provably, or as far as its session can tell."""
    is_gone = repo.processes.is_gone
    if is_gone(process):
        # The command may live on without the process that was to record its end.
        return child is None or is_gone(child)
    here = _this_process(repo)
    if (process.boot_id, process.namespace) == (here.boot_id, here.namespace):
        return False
    if machine == repo.processes.machine and process.boot_id != here.boot_id:
        return True  # the machine was restarted since
    return find_live_session(snapshot, session) is None


def _this_process(repo: Repository) -> Process:
    try:
        return repo.processes.current()
    except Malformed:  # a system that tells nothing of its processes: then only the session counts
        return Process(boot_id="", namespace="", pid=0, started=0)


def _carry_out(repo: Repository, session: Session, run: Run, runner: RunCommand) -> Ran:
    """Run it, and record how it ended whatever happens to us, unless we are killed."""

    def on_start(pid: int) -> None:
        try:
            child = repo.processes.identify(pid)
        except Malformed:
            return  # it has ended already
        repo.store.change(
            lambda tx: tx.run(
                "once_child", key=run.key, run=run.run, child_pid=child.pid, child_started=child.started
            ),
            is_durable=False,
        )

    try:
        ending = runner(on_start, lambda: _stay_alive(repo, session))
    except OSError as error:
        return _end(repo, run, _CANNOT_START, f"it could not be started: {error}")
    except BaseException:
        _end(repo, run, _INTERRUPTED, "")
        raise
    return _end_as(repo, run, ending)


def _end_as(repo: Repository, run: Run, ending: CommandResult) -> Ran:
    return _end(repo, run, exit_status(ending.exit_code), ending.stdout.replace("\0", "\ufffd"))


def _end(repo: Repository, run: Run, exit_code: int, output: str) -> Ran:
    def work(tx: Transaction) -> Run:
        done_at = repo.store.wall_of(tx.now)
        columns = {"key": run.key, "run": run.run, "exit_code": exit_code, "output": output}
        if tx.run("once_end", done_at=done_at, **columns):
            facts = {"key": run.key, "run": run.run, "exit": exit_code}
            tx.record("once.ended", run.agent, run.session, facts)
        return replace(run, done_at=done_at, exit_code=exit_code, output=output)

    return Ran(run=repo.change(work, areas=_areas(run.key)), is_now=True)


def _stay_alive(repo: Repository, session: Session) -> None:
    """Running and waiting count as signs of life; a session that is over does not end the command."""
    try:
        live = repo.store.view(lambda snapshot: find_live_session(snapshot, session.id))
        if live is not None:
            touch(repo.store, live)
    except Stale:
        return


def replay_once(tx: Transaction, entry: Entry) -> None:
    """Do again what an entry of the journal tells; the command and its output are not in it."""
    facts = entry.facts()
    if entry.kind == "once.started":
        tx.run("once_begin", agent=entry.agent, session=entry.session, command="", begun_at=entry.at, **facts)
    else:
        tx.run(
            "once_end",
            key=facts["key"],
            run=facts["run"],
            exit_code=facts["exit"],
            done_at=entry.at,
            output="",
        )
