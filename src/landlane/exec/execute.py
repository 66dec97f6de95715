"""Run a command as an agent in a sandbox, with a session, a clone and a scratch folder of its own.

The command writes only in its clone and its scratch folder, and reaches the state through the resident with
the secret of its session. When it ends, everything it started ends with it, and its commits are fetched into
the repository with every object checked. A read-only role gets a throwaway clone, so that it can build and
test there.
"""

from __future__ import annotations

import os
import signal
import sys

from landlane.errors import Held, LandlaneError
from landlane.exec.cleanup import PINS, end_abandoned_runs, end_session
from landlane.exec.clone import drop_own_task, make_clone
from landlane.exec.model import TERMINAL_SIGNALS, ExecResult
from landlane.exec.resident_connection import ResidentConnection
from landlane.exec.sandboxed_run import SandboxedRun, choose_sandbox_backend
from landlane.exec.save_leftovers import save_leftovers
from landlane.exec.start_client import prepare_command
from landlane.git.create_checkout import fetch_clone_branch
from landlane.git.target import commit_at
from landlane.ids import short_id
from landlane.roles.model import find_role, forbidden, role_or_read_only
from landlane.sandbox.guarantees import list_guarantees
from landlane.sessions.join import find_live_by_name, join
from landlane.sessions.model import SessionKind, check_agent_name
from landlane.tasks.model import FINAL
from landlane.tasks.records import get_task
from landlane.workspaces.close import close_workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.exec.model import ExecRequest, StopSignal
    from landlane.repository import Repository
    from landlane.roles.model import Role
    from landlane.sandbox.model import Backend, Guarantee
    from landlane.sandbox.start import SandboxedChild
    from landlane.sessions.join import Joined
    from landlane.sessions.model import Session


_NO_LIMIT_SECONDS = 10.0 * 365 * 86_400
# Bubblewrap must survive ctrl-C, so it starts with that signal ignored; the command gets the default again.
_RESTORE_SIGNALS = (
    "import os, signal, sys\n"
    "for number in (2, 3, signal.SIGPIPE, signal.SIGXFSZ): signal.signal(number, signal.SIG_DFL)\n"
    "os.execvp(sys.argv[1], sys.argv[1:])\n"
)


def execute(
    repo: Repository,
    caller: Session,
    request: ExecRequest,
    on_start: Callable[[Sequence[Guarantee], str], None],
    stop: StopSignal,
) -> ExecResult:
    """Run a command to its end. `on_start` gets the guarantees and the name of the sandbox backend.

    Raises:
        NotAllowed: a required guarantee cannot be given here, or the caller may not start this role.
        Held: an agent of that name is running.
        LandlaneError: the workspace cannot be created, or no resident starts.
    """
    role = find_role(repo.settings, request.role)
    _check_may_start(repo, caller, role)
    backend = choose_sandbox_backend(repo, role)
    for line in end_abandoned_runs(repo):
        repo.report(line)
    with ResidentConnection(os.path.join(repo.common_dir, "landlane")) as resident:
        joined = _join_new_session(repo, role, request)
        return _Execution(repo, caller, joined, role, request, stop, resident, backend).run(on_start)


def _check_may_start(repo: Repository, caller: Session, role: Role) -> None:
    """Refuse an agent in a role that may not start other agents, unless those only read."""
    own = role_or_read_only(repo.settings, caller.role) if caller.kind == SessionKind.AGENT else None
    if own is None or own.name == role.name or "agents" in own.tools:
        return
    if not (role.is_read_only and not role.verbs):
        raise forbidden(caller.agent, own.name, f"the role {own.name} may not start agents as {role.name}")


def _join_new_session(repo: Repository, role: Role, request: ExecRequest) -> Joined:
    """Start a session bound to this process, so that it ends when this process does."""
    name = check_agent_name(request.agent or f"{role.name}-{short_id('x')[2:8]}")
    live = find_live_by_name(repo, name)
    if live is None:
        process = repo.processes.current()
        joined = join(repo, name, role=role.name, process=process, may_choose_role=True)
        if joined.is_new:
            return joined
        live = joined.session
    raise Held(
        f"{name} is already at work",
        code="AGENT_IN_USE",
        hint="name another with --name, or leave it out",
        holder=name,
        until_at=live.lapses_at,
    )


class _Execution:
    """One command, from the record of its run to its end."""

    def __init__(
        self,
        repo: Repository,
        caller: Session,
        joined: Joined,
        role: Role,
        request: ExecRequest,
        stop: StopSignal,
        resident: ResidentConnection,
        backend: Backend,
    ) -> None:
        self._repo = repo
        self._caller = caller
        self._joined = joined
        self._session = joined.session
        self._role = role
        self._request = request
        self._stop = stop
        self._resident = resident
        self._backend = backend
        self._run = SandboxedRun(repo, role)
        self._exit_code: int | None = None
        self._head: str | None = None  # of its new commits; None until they were fetched
        self._rescue = ""
        self._is_task_over = False

    def run(self, on_start: Callable[[Sequence[Guarantee], str], None]) -> ExecResult:
        """Prepare, run the command, and clean up."""
        try:
            self._prepare()
            self._stop.is_deferred = True  # from here on a signal ends the process tree, not this process
            child = self._start(on_start)
            try:
                self._exit_code = child.wait(_NO_LIMIT_SECONDS, lambda: self._tick(child)).exit_code
            finally:
                child.end(grace_seconds=0)
        finally:
            self._stop.is_deferred = True
            self._finish()
        clone = self._run.clone
        assert clone is not None
        workspace = clone.workspace
        return ExecResult(
            exit_code=self._exit_code,
            agent=self._session.agent,
            backend=child.backend.name,
            guarantees=child.guarantees,
            task=clone.task,
            workspace=workspace.id if workspace else "",
            branch=workspace.branch if workspace else "",
            head=self._head or "",
            rescue=self._rescue,
            is_task_over=self._is_task_over,
            stopped_by=self._stop.number,
        )

    def _prepare(self) -> None:
        request = self._request
        program = os.path.basename(request.command[0])
        self._run.begin(self._session, self._backend, program=program, task=request.task)
        clone = make_clone(
            self._repo,
            self._caller,
            self._session,
            self._role,
            task=request.task,
            title=f"Run: {' '.join(request.command)}"[:120],
            scratch=self._run.scratch,
        )
        self._run.enter(clone)

    def _start(self, on_start: Callable[[Sequence[Guarantee], str], None]) -> SandboxedChild:
        request, run = self._request, self._run
        assert run.clone is not None
        command = prepare_command(
            request.command, self._role, self._repo.settings, run.scratch, run.clone.path
        )
        words = list(command.words)
        is_wrapped_at_terminal = request.has_terminal and bool(self._backend.bwrap)
        if is_wrapped_at_terminal:
            words = [sys.executable, "-I", "-S", "-c", _RESTORE_SIGNALS, *words]
        sandbox = run.make_sandbox(self._resident, self._joined, command, self._backend)
        on_start(list_guarantees(self._backend, sandbox), self._backend.name)  # before the command writes
        ignored = TERMINAL_SIGNALS if is_wrapped_at_terminal else ()
        before = {number: signal.getsignal(number) for number in ignored}
        try:
            for number in ignored:
                signal.signal(number, signal.SIG_IGN)
            streams = (0, request.stdout, 2)
            return run.start(words, sandbox, self._backend, streams, has_terminal=request.has_terminal)
        finally:
            for number in ignored:
                signal.signal(number, before[number])

    def _tick(self, child: SandboxedChild) -> None:
        """Called a few times a second: end the command on a signal, and keep the resident running."""
        if self._stop.number:
            child.end()
        self._resident.tick(self._repo.store, self._session)

    def _finish(self) -> None:
        """Fetch the commits and clean up; a step that fails does not stop the next ones."""
        run, clone = self._run, self._run.clone
        self._try(self._fetch_commits, "what it committed is still in its workspace")
        self._try(lambda: end_session(self._repo, self._session), "its session lapses by itself")
        is_saved = True
        if clone is not None and clone.workspace is not None:
            self._try(self._close_workspace, f"{clone.workspace.id} stays open")
        elif clone is not None:
            is_saved = self._try(self._save_leftovers, f"what it wrote is still in {run.scratch}")
        if not is_saved:
            return  # the next process that cleans up saves it
        self._try(run.unpin, "`landlane doctor --fix` clears it away")
        self._try(run.remove_scratch, f"{run.scratch} is left")
        why = f"stopped by signal {self._stop.number}" if self._stop.number else ""
        self._try(
            lambda: run.end(why, self._exit_code, self._session), "`landlane doctor --fix` clears it away"
        )

    def _try(self, step: Callable[[], None], otherwise: str) -> bool:
        try:
            step()
        except (LandlaneError, OSError) as error:
            self._repo.report(f"{error}; {otherwise}")
            return False
        return True

    def _save_leftovers(self) -> None:
        """Save what the command changed in its throwaway clone."""
        repo, run = self._repo, self._run
        base = commit_at(repo.home, PINS + self._session.id)
        task = run.clone.task if run.clone is not None else ""
        reason = f"left by {self._session.agent} in the role {self._role.name}"
        self._rescue = save_leftovers(repo, self._session, run.scratch, base=base, reason=reason, task=task)
        if self._rescue:
            repo.report(f"what it changed is saved: `landlane rescue show {self._rescue}`")

    def _fetch_commits(self) -> None:
        clone = self._run.clone
        if clone is None or clone.workspace is None:
            return
        head = fetch_clone_branch(self._repo.home, clone.path, clone.workspace.branch)
        self._head = head if head != clone.workspace.base else ""

    def _close_workspace(self) -> None:
        """Close a workspace that is not needed any more, and drop the run's own task if it made no commit."""
        repo, clone = self._repo, self._run.clone
        assert clone is not None
        assert clone.workspace is not None
        self._is_task_over = get_task(repo, clone.task).state in FINAL
        made_nothing = clone.has_own_task and self._head == ""
        if self._is_task_over or made_nothing:
            closed = close_workspace(repo, self._caller, clone.workspace, force=True)
            self._rescue = closed.rescue
            if closed.rescue:
                repo.report(f"what it did not commit is saved: `landlane rescue restore {closed.rescue}`")
            if not self._is_task_over:
                drop_own_task(repo, self._caller, clone.task, "it was run, and committed nothing")
