"""Where a fenced command works, the clone of its task or one to be thrown away; and the fence around it."""

from __future__ import annotations

import os
import sys

from landlane.exec.cleanup import PINS, checkout_in
from landlane.git.create_checkout import add_detached_clone, write_files
from landlane.git.discovery import HOME_POINTER
from landlane.git.hooks.scripts import FOLDER as GIT_HOOKS
from landlane.git.lock import git_lock
from landlane.git.run import ask, told
from landlane.sandbox.model import Fence
from landlane.tasks.add import Added, add_task
from landlane.tasks.change import drop_task, get_task
from landlane.tasks.model import OVER, NewTask
from landlane.values import value
from landlane.workspaces.model import CLONE
from landlane.workspaces.open import open_workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from landlane.context import Site
    from landlane.exec.start_client import Start
    from landlane.roles.model import Role
    from landlane.sessions.join import Joined
    from landlane.sessions.model import Session
    from landlane.workspaces.model import Workspace

# The caller's own, and what would lead git or us to another place.
_NOT_HANDED_DOWN = ("LANDLANE_AGENT", "LANDLANE_STORE", "LANDLANE_GIT_LOCK", "LANDLANE_OVERRIDE")


@value
class Ground:
    """Where a command works. Without a workspace nothing of it comes back."""

    path: str
    task: str = ""
    has_own_task: bool = False
    workspace: Workspace | None = None


def make_ground(
    site: Site, caller: Session, session: Session, role: Role, *, task: str, title: str, scratch: str
) -> Ground:
    """Make the clone that a role works in; without a task, who writes gets one of this title.

    Raises:
        Held: another session is at work on the task.
        RepositoryError: git refuses.
    """
    if role.is_read_only:
        head = ask(site.here, "rev-parse", "--verify", "--quiet", "HEAD")
        return Ground(path=throw_away_clone(site, session, scratch, head), task=task)
    wanted = task or _own_task(site, caller, role, title)
    try:
        opened = open_workspace(site, session, wanted, kind=CLONE)
    except BaseException:
        if not task:
            drop_own(site, caller, wanted, "it could not be begun")
        raise
    return Ground(path=opened.workspace.path, task=wanted, has_own_task=not task, workspace=opened.workspace)


def _own_task(site: Site, caller: Session, role: Role, title: str) -> str:
    outcome = add_task(site.context, caller, NewTask(title=title, role=role.name), force=True)
    assert isinstance(outcome, Added)
    return outcome.task.id


def drop_own(site: Site, caller: Session, task: str, why: str) -> None:
    """End a task that was made for one run alone."""
    if get_task(site.context, task).state not in OVER:
        drop_task(site.context, caller, task, why)


def throw_away_clone(site: Site, session: Session, scratch: str, head: str) -> str:
    """A commit in a clone that nobody will miss; a ref keeps what it borrows."""
    path = checkout_in(scratch)
    pin = PINS + session.id
    if head:
        with git_lock(site.common_dir, f"pin {session.id}"):
            if site.here.common_dir != site.common_dir:
                told(site.home, "fetch", "--quiet", "--no-tags", site.here.root, f"{head}:{pin}")
            else:
                told(site.home, "update-ref", pin, head)
    add_detached_clone(site.home, path, head, pin)
    if head:
        write_files(path)
    with open(os.path.join(path, ".git", HOME_POINTER), "w", encoding="utf-8") as file:
        file.write(site.common_dir + "\n")
    return path


def make_fence(
    site: Site, role: Role, ground: Ground, scratch: str, door: str, joined: Joined, start: Start
) -> Fence:
    """The fence around a command: what its role may do, where it works, and how it reaches the state."""
    state = os.path.join(site.common_dir, "landlane")
    slots: Mapping[str, str] = ground.workspace.environment if ground.workspace else {}
    return Fence(
        writable=(ground.path,) if ground.workspace else (),
        scratch=scratch,
        readable=(
            *(site.home.root, site.common_dir, site.here.root, os.path.join(state, GIT_HOOKS)),
            *_places_of_programs(),
        ),
        hidden=(state,),
        unix_sockets=role.unix_sockets,
        sockets_visible=(door,),
        tcp_connect=role.connects,  # a client must reach its model, whatever else its tools may not
        udp=role.udp,
        environment=(
            *slots.items(),
            ("LANDLANE_SESSION", f"{joined.session.id}:{joined.secret}"),
            ("LANDLANE_RESIDENT", door),
            ("LANDLANE_ROLE", role.name),
            ("PATH", search_path()),
            ("GIT_CONFIG_GLOBAL", os.path.join(scratch, "home", ".gitconfig")),
            *start.environment,
        ),
        without=_NOT_HANDED_DOWN,
    )


def asked_fence(role: Role) -> Fence:
    """What a role asks of a fence, before there is a place to put it around."""
    return Fence(
        writable=(),
        scratch="/nowhere/scratch",
        hidden=("/nowhere/state",),
        unix_sockets=role.unix_sockets,
        sockets_visible=("/nowhere/socket",),
        tcp_connect=role.connects,
        udp=role.udp,
    )


def _places_of_programs() -> list[str]:
    """What is on the search path stays in sight, wherever it lies; npm's programs are links beside theirs."""
    folders = [os.path.realpath(folder) for folder in search_path().split(os.pathsep) if folder]
    found = [os.path.dirname(folder) if os.path.basename(folder) == ".bin" else folder for folder in folders]
    return [folder for folder in dict.fromkeys(found) if os.path.isdir(folder) and folder != "/"]


def search_path() -> str:
    """The caller's, and behind it where our own command is: inside, too, `landlane` must be found."""
    here = os.path.dirname(sys.executable)
    path = os.environ.get("PATH", os.defpath)
    return path if here in path.split(os.pathsep) else f"{path}{os.pathsep}{here}"
