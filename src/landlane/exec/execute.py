"""Running a command as an agent in its sandbox: a session, a clone of its own, a scratch, and the kernel.

What it writes, it writes in its clone or in its scratch. It speaks to the state through the resident, with
the secret of its own session. When it ends, everything that it started ends with it, and what it committed
is brought home by a fetch that hashes every object anew. A role that changes nothing gets a clone that is
thrown away with the scratch, so that it can build and test there all the same.

The run is written down before anything of it is made. Whoever finds that its starter was killed clears away
what is left: see `exec/cleanup.py`.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile

from landlane.errors import Held, LandlaneError, StoreError
from landlane.exec.cleanup import SCRATCH_PREFIX, clear_forsaken, remove_scratch, unpin
from landlane.exec.clone import Ground, drop_own, make_ground
from landlane.exec.git_identity import sign_commits, write_git_settings
from landlane.exec.request import AT_TERMINAL, Executed
from landlane.exec.resident_connection import Door
from landlane.exec.sandbox_rules import make_sandbox, requested_sandbox, search_path
from landlane.exec.start_client import furnish, prepare_start
from landlane.git.create_checkout import fetch_clone_branch
from landlane.ids import short_id
from landlane.platform.process_identity import Process
from landlane.processes.tree import ProcessTree, new_tree_id
from landlane.roles.built_in import bound_by, find_role
from landlane.roles.model import forbidden
from landlane.sandbox.guarantees import list_guarantees
from landlane.sandbox.model import require_guarantees
from landlane.sandbox.start import choose_backend, start_sandboxed
from landlane.sessions.join import join, leave
from landlane.sessions.leases import end_if_gone, lapse
from landlane.sessions.model import SessionKind, check_agent_name
from landlane.sessions.read import find_latest_session, find_live_session
from landlane.sessions.sandbox_runs import ENDED, begin_run, change_run, tree_facts
from landlane.tasks.model import OVER
from landlane.tasks.read import get_task
from landlane.workspaces.close import close_workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.exec.request import Order, Stopping
    from landlane.repository import Repository
    from landlane.roles.model import Role
    from landlane.sandbox.model import Backend
    from landlane.sandbox.model import Guarantee as Promise
    from landlane.sandbox.start import SandboxedChild
    from landlane.sessions.join import Joined
    from landlane.sessions.model import Session
    from landlane.sessions.sandbox_runs import Run
    from landlane.store.interface import Transaction


_FOR_EVER = 10.0 * 365 * 86_400
# Bubblewrap must not end by ctrl-C, so it is started with that ignored; what it starts heeds it again.
_HEED_AGAIN = (
    "import os, signal, sys\n"
    "for number in (2, 3, signal.SIGPIPE, signal.SIGXFSZ): signal.signal(number, signal.SIG_DFL)\n"
    "os.execvp(sys.argv[1], sys.argv[1:])\n"
)


def execute(
    repo: Repository,
    caller: Session,
    order: Order,
    on_start: Callable[[Sequence[Promise], str], None],
    stopping: Stopping,
) -> Executed:
    """Run a command to its end. `on_start` hears what is held, and by what.

    Raises:
        NotAllowed: a required promise cannot be held here, or the caller may not start this role.
        Held: an agent of that name is at work.
        LandlaneError: the workspace cannot be made, or nobody answers for the state.
    """
    role = find_role(repo.settings, order.role)
    _check_may_start(repo, caller, role)
    backend = choose_backend()
    require_guarantees(
        list_guarantees(backend, requested_sandbox(role)), repo.settings.sandbox.required, backend
    )
    for line in clear_forsaken(repo):
        repo.report(line)
    with Door(os.path.join(repo.common_dir, "landlane")) as door:
        joined = _begin(repo, role, order)
        return _Execution(repo, caller, joined, role, order, stopping, door, backend).run(on_start)


def _check_may_start(repo: Repository, caller: Session, role: Role) -> None:
    """An agent with a role starts others only if handing out work is its business, or they just read."""
    own = bound_by(repo.settings, caller.role) if caller.kind == SessionKind.AGENT else None
    if own is None or own.name == role.name or "agents" in own.tools:
        return
    if not (role.is_read_only and not role.verbs):
        raise forbidden(caller.agent, own.name, f"the role {own.name} may not start agents as {role.name}")


def _begin(repo: Repository, role: Role, order: Order) -> Joined:
    """A session of its own; this process stands for it, so that nobody waits for it when we are gone."""
    name = check_agent_name(order.agent or f"{role.name}-{short_id('x')[2:8]}")
    living = _find_living(repo, name)
    if living is None:
        process = repo.processes.current()
        joined = join(repo, name, role=role.name, process=process, may_choose_role=True)
        if joined.is_new:
            return joined
        living = joined.session
    raise Held(
        f"{name} is already at work",
        code="AGENT_IN_USE",
        hint="name another with --name, or leave it out",
        holder=name,
        until_at=living.lapses_at,
    )


def _find_living(repo: Repository, name: str) -> Session | None:
    """The live session of this name; one whose processes have ended is none."""

    def work(tx: Transaction) -> Session | None:
        last = find_latest_session(tx, name)
        if last is None or last.has_ended:
            return None
        lapse(tx, last.id)
        live = find_live_session(tx, last.id)
        return live if live is not None and not end_if_gone(tx, live.id, repo.processes) else None

    return repo.change(work, areas={f"//agent:{name}": True})


class _Execution:
    """One run, from its record to its end."""

    def __init__(
        self,
        repo: Repository,
        caller: Session,
        joined: Joined,
        role: Role,
        order: Order,
        stopping: Stopping,
        door: Door,
        backend: Backend,
    ) -> None:
        self._repo = repo
        self._caller = caller
        self._joined = joined
        self._session = joined.session
        self._role = role
        self._order = order
        self._stopping = stopping
        self._door = door
        self._backend = backend
        self._scratch = os.path.join(
            os.path.realpath(tempfile.gettempdir()), SCRATCH_PREFIX + short_id("x")[2:]
        )
        self._run: Run | None = None
        self._ground: Ground | None = None
        self._exit_code: int | None = None
        self._left: dict[str, str | bool] = {}

    def run(self, on_start: Callable[[Sequence[Promise], str], None]) -> Executed:
        """Make everything, run the command, and clear everything away."""
        try:
            self._prepare()
            self._stopping.is_calm = (
                True  # from here on a signal ends the tree, and not us in the midst of it
            )
            child = self._start(on_start)
            try:
                self._exit_code = child.wait(_FOR_EVER, lambda: self._tick(child)).exit_code
            finally:
                child.end(grace_seconds=0)
        finally:
            self._stopping.is_calm = True
            self._finish()
        ground = self._ground
        assert ground is not None
        workspace = ground.workspace
        return Executed(
            exit_code=self._exit_code,
            agent=self._session.agent,
            backend=child.backend.name,
            held=child.held,
            task=ground.task,
            workspace=workspace.id if workspace else "",
            branch=workspace.branch if workspace else "",
            stopped_by=self._stopping.number,
            **self._left,  # type: ignore[arg-type]
        )

    def _prepare(self) -> None:
        repo = self._repo
        here = repo.processes.current()
        unknown = Process(boot_id=here.boot_id, namespace=here.namespace, pid=0, started=0)
        self._run = begin_run(
            repo,
            self._session,
            ProcessTree(id=new_tree_id(), root=unknown, is_wrapped=bool(self._backend.bwrap)),
            program=os.path.basename(self._order.command[0])[:80],
            home=self._repo.common_dir,
            user=os.geteuid(),
            scratch=self._scratch,
            task=self._order.task,
        )
        os.mkdir(self._scratch, 0o700)
        self._ground = make_ground(
            self._repo,
            self._caller,
            self._session,
            self._role,
            task=self._order.task,
            title=f"Run: {' '.join(self._order.command)}"[:120],
            scratch=self._scratch,
        )
        furnish(self._scratch, self._ground.path, search_path())
        write_git_settings(self._repo.home, os.path.join(self._scratch, "home"))
        if self._ground.workspace is not None:
            sign_commits(self._ground.path, self._session, self._ground.task)

    def _start(self, on_start: Callable[[Sequence[Promise], str], None]) -> SandboxedChild:
        repo, ground, order = self._repo, self._ground, self._order
        assert ground is not None
        assert self._run is not None
        start = prepare_start(order.command, self._role, repo.settings, self._scratch, ground.path)
        words = list(start.command)
        is_wrapped_at_terminal = order.has_terminal and bool(self._backend.bwrap)
        if is_wrapped_at_terminal:
            words = [sys.executable, "-I", "-S", "-c", _HEED_AGAIN, *words]
        sandbox = make_sandbox(repo, self._role, ground, self._scratch, self._door.path, self._joined, start)
        on_start(
            list_guarantees(self._backend, sandbox), self._backend.name
        )  # before the command says anything
        before = {number: signal.getsignal(number) for number in AT_TERMINAL}
        try:
            for number in AT_TERMINAL if is_wrapped_at_terminal else ():
                signal.signal(number, signal.SIG_IGN)
            child = start_sandboxed(
                words,
                sandbox,
                cwd=ground.path,
                backend=self._backend,
                required=repo.settings.sandbox.required,
                streams=(0, order.out, 2),
                has_terminal=order.has_terminal,
                tree_id=self._run.tree["id"],
            )
        finally:
            for number in AT_TERMINAL if is_wrapped_at_terminal else ():
                signal.signal(number, before[number])
        workspace = ground.workspace.id if ground.workspace else ""
        facts = {"tree": tree_facts(child.tree), "task": ground.task, "workspace": workspace}
        try:
            self._run = change_run(repo, self._run, "started", self._session, **facts)
        except StoreError as error:
            repo.report(f"its processes are not written down: {error}")
        return child

    def _tick(self, child: SandboxedChild) -> None:
        """A few times a second: end it if we are asked to, and keep what it needs alive."""
        if self._stopping.number:
            child.end()
        self._door.tick(self._repo.store, self._session)

    def _finish(self) -> None:
        """Bring home what was made and clear away the rest; each step whatever becomes of the others."""
        repo, ground = self._repo, self._ground
        self._try(self._bring_home, "what it committed is still in its workspace")
        self._try(lambda: _end(repo, self._session), "its session lapses by itself")
        if ground is not None and ground.workspace is not None:
            self._try(self._tidy, f"{ground.workspace.id} stays open")
        self._try(lambda: unpin(repo, self._session.id), "`landlane doctor --fix` clears it away")
        self._try(lambda: remove_scratch(self._scratch), f"{self._scratch} is left")
        if self._run is not None:
            self._try(self._end_run, "`landlane doctor --fix` clears it away")

    def _try(self, step: Callable[[], None], otherwise: str) -> None:
        try:
            step()
        except (LandlaneError, OSError) as error:
            self._repo.report(f"{error}; {otherwise}")

    def _end_run(self) -> None:
        assert self._run is not None
        signalled = f"stopped by signal {self._stopping.number}" if self._stopping.number else ""
        facts = {"state": ENDED, "exit_code": self._exit_code, "why": signalled}
        change_run(self._repo, self._run, "ended", self._session, **facts)

    def _bring_home(self) -> None:
        ground = self._ground
        if ground is None or ground.workspace is None:
            return
        head = fetch_clone_branch(self._repo.home, ground.path, ground.workspace.branch)
        self._left["head"] = head if head != ground.workspace.base else ""

    def _tidy(self) -> None:
        """Close a workspace in which nothing is left to do; a task made for this run alone ends with it."""
        repo, ground = self._repo, self._ground
        assert ground is not None
        assert ground.workspace is not None
        is_over = get_task(repo, ground.task).state in OVER
        self._left["is_over"] = is_over
        if is_over or (ground.has_own_task and self._left.get("head") == ""):
            closed = close_workspace(repo, self._caller, ground.workspace, force=True)
            self._left["rescue"] = closed.rescue
            if closed.rescue:
                repo.report(f"what it did not commit is saved: `landlane rescue restore {closed.rescue}`")
            if not is_over:
                drop_own(repo, self._caller, ground.task, "it was run, and committed nothing")


def _end(repo: Repository, session: Session) -> None:
    try:
        leave(repo, session)
    except StoreError:
        raise
    except LandlaneError:
        return  # it left by itself, or lapsed
