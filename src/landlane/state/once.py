"""Run a command at most once per key: a second caller waits for the first and gets its result.

The start is recorded with the process that runs it before the command begins, and the end with its exit code.
A process that is gone without a recorded end has crashed. It is unknown how far it came, so the run neither
counts as a success nor is it repeated automatically.
"""

from __future__ import annotations

import contextlib
import shlex

from landlane.errors import Malformed, Stale
from landlane.sessions.leases import (
    current_process,
    find_live_session,
    process_from_row,
    require_live,
    stay_alive,
)
from landlane.state.key_rules import check_key
from landlane.state.once_waits import announced_wait
from landlane.values import as_dict, from_columns, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.platform.process import Process
    from landlane.processes.passthrough import RunCommand
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.store.journal_chain import JournalEntry
    from landlane.values import Row

LONGEST_COMMAND = 1000
_CHECK_SECONDS = 1.0
_INTERRUPTED = 130  # the exit code of a shell for a command that Ctrl-C ended
_CANNOT_START = 126


@value
class OnceRun:
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
    def from_row(cls, row: Row) -> OnceRun:
        return from_columns(cls, row)


@value
class RunEnded:
    """The run has ended; `is_now` says whether this call ran it."""

    run: OnceRun
    is_now: bool


@value
class RunCrashed:
    """The process that ran it is gone and recorded no end: it is unknown how far the command came."""

    run: OnceRun


@value
class StillRunning:
    """Another process still runs it, and the time to wait is over."""

    run: OnceRun
    processes: tuple[Process, ...] = ()  # the one that records its end, and the command


if TYPE_CHECKING:
    RunStatus = OnceRun | RunEnded | RunCrashed | StillRunning


def exit_status(code: int) -> int:
    """Return the exit code as a shell reports it: 128 plus the signal that ended the command."""
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
    on_wait: Callable[[OnceRun], None] | None = None,
) -> RunEnded | RunCrashed | StillRunning:
    """Run a command unless it was run under this key before; with `is_again`, run it in any case.

    If it is running, wait until it ends, or for `wait_ms`; `on_wait` is called once with the run.

    Raises:
        Malformed: the key cannot be used, or its command is running and made this call.
        Held: its command is running, and waits for what made this call.
        Stale: the session is over.
    """
    check_key(key)
    # Bytes that are not UTF-8 become question marks, which every store can hold.
    shown = shlex.join(command).encode("utf-8", "replace").decode()[:LONGEST_COMMAND]
    found = _begin(repo, session, key, shown, is_again=is_again)
    if isinstance(found, StillRunning):
        _check_not_nested(repo, found)
        with announced_wait(repo, session, key, found.run.agent):
            if on_wait is not None and wait_ms != 0:
                on_wait(found.run)
            found = _wait(repo, session, key, shown, is_again=is_again, wait_ms=wait_ms)
    return _carry_out(repo, session, found, runner) if isinstance(found, OnceRun) else found


def _check_not_nested(repo: Repository, running: StillRunning) -> None:
    """Refuse to wait for a run that the caller is a part of: it would wait for itself."""
    if any(ancestor in running.processes for ancestor in repo.processes.ancestry()):
        key = running.run.key
        raise Malformed(
            f"{key} is what runs this command, so waiting for {key} would never end",
            code="ONCE_NESTED",
            hint=f"use another key inside it: landlane once {shlex.quote(f'{key}/part')} -- COMMAND",
        )


def _wait(
    repo: Repository, session: Session, key: str, shown: str, *, is_again: bool, wait_ms: int | None
) -> RunStatus:
    listener = repo.store.listen()  # before looking, so that an end in between is not missed
    try:
        begun_at = repo.store.view(lambda snapshot: snapshot.now)
        while True:
            found = _begin(repo, session, key, shown, is_again=is_again)
            if not isinstance(found, StillRunning):
                return found
            stay_alive(repo, session)
            left_seconds = _CHECK_SECONDS
            if wait_ms is not None:
                now = repo.store.view(lambda snapshot: snapshot.now)
                left_seconds = min((begun_at + wait_ms - now) / 1000, left_seconds)
                if left_seconds <= 0:
                    return found
            listener.wait(left_seconds)
    finally:
        listener.close()


def _begin(repo: Repository, session: Session, key: str, shown: str, *, is_again: bool) -> RunStatus:
    """Return a new run that this caller must carry out, or the status of the newest run."""
    before = repo.store.view(lambda snapshot: _read_status(repo, snapshot, key))
    if before is not None and (isinstance(before, StillRunning) or not is_again):
        return before  # without the lock: only a new run needs it
    me = current_process(repo)

    def work(tx: Transaction) -> RunStatus:
        found = _read_status(repo, tx, key)
        if found is not None and (isinstance(found, StillRunning) or not is_again):
            return found
        require_live(tx, session)
        run = OnceRun(
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
        facts = {"key": key, "run": run.run, "machine": repo.processes.machine, **as_dict(me)}
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
    # The root is locked shared, as for claims; moving the store takes it exclusively.
    return {"": False, f"//once:{key}": True}


def _read_status(
    repo: Repository, snapshot: Snapshot, key: str
) -> RunEnded | RunCrashed | StillRunning | None:
    """Return the status of the newest run of a key; None if there is none."""
    row = snapshot.one("once_get", key=key)
    if row is None:
        return None
    run = OnceRun.from_row(row)
    if run.exit_code is not None:
        return RunEnded(run=run, is_now=False)
    process = process_from_row(row)
    child = None
    if row["child_pid"]:
        child = replace(process, pid=row["child_pid"], started=row["child_started"])
    has_crashed = _has_crashed(repo, snapshot, run.session, row["machine"], process, child)
    if has_crashed:
        return RunCrashed(run=run)
    return StillRunning(run=run, processes=(process, child) if child is not None else (process,))


def _has_crashed(
    repo: Repository, snapshot: Snapshot, session: str, machine: str, process: Process, child: Process | None
) -> bool:
    """Return whether the process of a run without an end is gone, or else whether its session has ended."""
    is_gone = repo.processes.is_gone
    if is_gone(process):
        # The command may live on without the process that was to record its end.
        return child is None or is_gone(child)
    here = current_process(repo)
    if (process.boot_id, process.namespace) == (here.boot_id, here.namespace):
        return False
    if machine == repo.processes.machine and process.boot_id != here.boot_id:
        return True  # the machine was restarted since
    return find_live_session(snapshot, session) is None


def _carry_out(repo: Repository, session: Session, run: OnceRun, runner: RunCommand) -> RunEnded:
    """Run the command and record how it ended, also when we are interrupted."""

    def on_start(pid: int) -> None:
        """Record the process of the command before it runs, unless the run was given up meanwhile."""

        def work(tx: Transaction) -> None:
            _require_newest(tx, session, run)
            if child is not None:
                columns = {"child_pid": child.pid, "child_started": child.started}
                tx.run("once_child", key=run.key, run=run.run, **columns)

        child: Process | None = None
        with contextlib.suppress(Malformed):  # this system cannot identify processes
            child = repo.processes.identify(pid)
        repo.change(work, areas=_areas(run.key))

    try:
        result = runner(on_start, lambda: stay_alive(repo, session))
    except OSError as error:
        return _end(repo, run, _CANNOT_START, f"it could not be started: {error}")
    except BaseException:
        _end(repo, run, _INTERRUPTED, "")
        raise
    return _end(repo, run, exit_status(result.exit_code), result.stdout.replace("\0", "\ufffd"))


def _require_newest(tx: Transaction, session: Session, run: OnceRun) -> None:
    """Check that a run was not taken for crashed, and started again, before its command has begun.

    Raises:
        Stale: it was, or the session is over, so that another machine may do so.
    """
    require_live(tx, session)
    row = tx.one("once_get", key=run.key)
    newest = OnceRun.from_row(row) if row is not None else run
    if newest.run != run.run:
        raise Stale(
            f"{newest.agent} has run {run.key} again meanwhile",
            code="RUN_REPLACED",
            hint=f"see how that ended: landlane once {shlex.quote(run.key)} -- {run.command}"[:300],
            holder=newest.agent,
        )


def _end(repo: Repository, run: OnceRun, exit_code: int, output: str) -> RunEnded:
    def work(tx: Transaction) -> OnceRun:
        done_at = repo.store.wall_of(tx.now)
        columns = {"key": run.key, "run": run.run, "exit_code": exit_code, "output": output}
        if tx.run("once_end", done_at=done_at, **columns):
            facts = {"key": run.key, "run": run.run, "exit": exit_code}
            tx.record("once.ended", run.agent, run.session, facts)
        return replace(run, done_at=done_at, exit_code=exit_code, output=output)

    return RunEnded(run=repo.change(work, areas=_areas(run.key)), is_now=True)


def replay_once(tx: Transaction, entry: JournalEntry) -> None:
    """Apply a journal entry to a store that is rebuilt; entries hold neither commands nor output."""
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
