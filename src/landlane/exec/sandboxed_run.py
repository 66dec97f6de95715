"""One sandboxed command: its record, scratch folder, sandbox and processes. `exec` and workers share it.

The record is written before anything else is created. After a crash `exec/cleanup.py` finds it and removes
the rest.
"""

from __future__ import annotations

import os
import sys

from landlane.errors import StoreError
from landlane.exec.cleanup import new_scratch_path, remove_scratch, unpin
from landlane.exec.clone import install_trailer_hook, write_git_settings
from landlane.exec.start_client import prepare_client_homes
from landlane.ids import new_uuid
from landlane.platform.process import Process
from landlane.processes.tree import ProcessTree
from landlane.sandbox.environment import secret_variables
from landlane.sandbox.guarantees import list_guarantees, refuses_new_unix_sockets
from landlane.sandbox.model import Sandbox, require_guarantees
from landlane.sandbox.start import SandboxedChild, choose_backend
from landlane.sandbox.visible_paths import (
    borrowed_objects,
    own_package,
    private_places,
    program_folders,
    tool_folders,
    workspace_folders,
)
from landlane.sessions.sandbox_runs import RunState, begin_run, change_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from landlane.exec.clone import SandboxClone
    from landlane.exec.resident_connection import ResidentConnection
    from landlane.exec.start_client import ClientCommand
    from landlane.repository import Repository
    from landlane.roles.model import Role
    from landlane.sandbox.model import Backend
    from landlane.sessions.join import Joined
    from landlane.sessions.model import Session
    from landlane.sessions.sandbox_runs import Run
    from landlane.settings.model import Settings


# Variables of the caller that would identify it, or lead git or Landlane to another repository.
_NO_SOCKETS = Sandbox(writable=(), scratch="")
_NOT_INHERITED = ("LANDLANE_AGENT", "LANDLANE_STORE", "LANDLANE_GIT_LOCK", "LANDLANE_OVERRIDE")


class SandboxedRun:
    """What exists of one run: `record` after `begin`, `clone` after `enter`."""

    def __init__(self, repo: Repository, role: Role) -> None:
        self.scratch = new_scratch_path()
        self.record: Run | None = None
        self.clone: SandboxClone | None = None
        self._repo = repo
        self._role = role
        self._session: Session | None = None

    def begin(self, session: Session, backend: Backend, *, program: str, task: str, worker: str = "") -> Run:
        """Write the record and create the scratch folder. `worker` is the session the command acts as."""
        repo = self._repo
        here = repo.processes.current()
        unknown = Process(boot_id=here.boot_id, namespace=here.namespace, pid=0, started=0)
        self._session = session
        self.record = begin_run(
            repo,
            session,
            ProcessTree(id=new_uuid(), root=unknown, is_wrapped=bool(backend.bwrap)),
            program=program[:80],
            home=repo.common_dir,
            user=os.geteuid(),
            scratch=self.scratch,
            task=task,
            worker=worker,
        )
        os.mkdir(self.scratch, 0o700)
        return self.record

    def enter(self, clone: SandboxClone) -> None:
        """Use this clone, and fill the private home for it."""
        assert self._session is not None
        self.clone = clone
        prepare_client_homes(self.scratch, clone.path, search_path())
        write_git_settings(self._repo.home, os.path.join(self.scratch, "home"))
        if clone.workspace is not None:
            install_trailer_hook(clone.path, self._session, clone.task)

    def make_sandbox(
        self,
        resident: ResidentConnection,
        joined: Joined,
        command: ClientCommand,
        backend: Backend,
        *,
        unix_sockets: bool = False,
    ) -> Sandbox:
        """Return the sandbox of a command: what its role allows, where it works, how it reaches the state.

        The command acts as `joined`. With `unix_sockets` its agent may use those of other programs.
        """
        repo, role, clone = self._repo, self._role, self.clone
        assert clone is not None
        settings = repo.settings
        opens_sockets = unix_sockets or may_use_unix_sockets(settings, role)
        # Where the kernel cannot limit which sockets are reached, the resident is reached by a port.
        by_port = not opens_sockets and refuses_new_unix_sockets(backend, _NO_SOCKETS)
        address = resident.port.address if by_port else resident.path
        connects = role.connects  # a client must reach its model, whatever its tools may not do
        if by_port and connects is not None:
            connects = (*connects, resident.port.port)
        hidden, readable = self._reading()
        slots: Mapping[str, str] = clone.workspace.environment if clone.workspace else {}
        return Sandbox(
            writable=(clone.path,) if clone.workspace else (),
            scratch=self.scratch,
            readable=readable,
            hidden=hidden,
            unix_sockets=opens_sockets,
            sockets_visible=() if by_port else (address,),
            tcp_connect=connects,
            udp=role.udp,
            environment=(
                *slots.items(),
                ("LANDLANE_SESSION", f"{joined.session.id}:{joined.secret}"),
                ("LANDLANE_RESIDENT", address),
                ("LANDLANE_ROLE", role.name),
                ("PATH", search_path()),
                ("GIT_CONFIG_GLOBAL", os.path.join(self.scratch, "home", ".gitconfig")),
                *command.environment,
            ),
            without=(
                *_NOT_INHERITED,
                *secret_variables(os.environ, (*command.own_variables, *settings.sandbox.variables)),
            ),
        )

    def _reading(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return what is hidden, and what stays readable in it.

        Hidden are the state, the home, temporary files of others and other workspaces.
        """
        repo = self._repo
        assert self.clone is not None
        root = os.path.realpath(repo.home.root)
        state = os.path.join(repo.common_dir, "landlane")
        hidden = map(os.path.realpath, (state, *private_places(), *workspace_folders(repo.settings, root)))
        hidden = tuple(path for path in dict.fromkeys(hidden) if os.path.lexists(path) and path != "/")
        named = [os.path.realpath(os.path.expanduser(path)) for path in repo.settings.sandbox.read]
        readable = (
            *(root, repo.common_dir, self.clone.path, *borrowed_objects(repo.common_dir)),
            *(
                os.path.join(own_package(), "landlane"),
                *tool_folders(),
                *program_folders(search_path(), hidden),
                *named,
            ),
        )
        return hidden, tuple(path for path in map(os.path.realpath, readable) if os.path.exists(path))

    def start(
        self,
        command: Sequence[str],
        sandbox: Sandbox,
        backend: Backend,
        streams: tuple[int, int, int],
        *,
        has_terminal: bool = False,
    ) -> SandboxedChild:
        """Start the command in its sandbox and record its processes."""
        assert self.record is not None
        assert self.clone is not None
        child = SandboxedChild(
            command,
            sandbox,
            cwd=self.clone.path,
            backend=backend,
            required=self._repo.settings.sandbox.required,
            streams=streams,
            has_terminal=has_terminal,
            tree_id=self.record.tree.id,
        )
        workspace = self.clone.workspace.id if self.clone.workspace else ""
        facts = {"tree": child.tree, "task": self.clone.task, "workspace": workspace}
        try:
            self.record = change_run(self._repo, self.record, "started", self._session, **facts)
        except StoreError as error:
            self._repo.report(f"its processes are not written down: {error}")
        return child

    def unpin(self) -> None:
        """Release the commit of a throwaway clone."""
        if self._session is not None:
            unpin(self._repo, self._session.id)

    def remove_scratch(self) -> None:
        """Remove the scratch folder and a throwaway clone in it."""
        remove_scratch(self.scratch)

    def end(self, why: str, exit_code: int | None = None, session: Session | None = None) -> None:
        """Mark the record as ended."""
        if self.record is not None:
            facts = {"state": RunState.ENDED, "exit_code": exit_code, "why": why}
            change_run(self._repo, self.record, "ended", session, **facts)


def may_use_unix_sockets(settings: Settings, role: Role) -> bool:
    """Return whether the settings open unix sockets of other programs for agents in a role."""
    return settings.sandbox.unix_sockets or role.unix_sockets


def choose_sandbox_backend(repo: Repository, role: Role, *, unix_sockets: bool = False) -> Backend:
    """Return what enforces sandboxes on this machine.

    Raises:
        NotAllowed: it cannot enforce what the settings require for this role.
    """
    backend = choose_backend()
    requested = Sandbox(  # its folders do not exist yet
        writable=(),
        scratch="/nowhere/scratch",
        hidden=("/nowhere/state",),
        unix_sockets=unix_sockets or may_use_unix_sockets(repo.settings, role),
        tcp_connect=role.connects,
        udp=role.udp,
    )
    require_guarantees(list_guarantees(backend, requested), repo.settings.sandbox.required, backend)
    return backend


def search_path() -> str:
    """Return the caller's PATH, extended so that `landlane` is found inside the sandbox."""
    here = os.path.dirname(sys.executable)
    path = os.environ.get("PATH", os.defpath)
    return path if here in path.split(os.pathsep) else f"{path}{os.pathsep}{here}"
