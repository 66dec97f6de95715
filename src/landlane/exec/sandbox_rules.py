"""Build the sandbox of a command from its role and places."""

from __future__ import annotations

import os
import sys

from landlane.git.hook_pass import FOLDER as GIT_HOOKS
from landlane.sandbox.model import Sandbox

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from landlane.exec.clone import Ground
    from landlane.exec.start_client import Start
    from landlane.repository import Repository
    from landlane.roles.model import Role
    from landlane.sessions.join import Joined


# The caller's own, and what would lead git or us to another place.
_NOT_HANDED_DOWN = ("LANDLANE_AGENT", "LANDLANE_STORE", "LANDLANE_GIT_LOCK", "LANDLANE_OVERRIDE")


def make_sandbox(
    repo: Repository, role: Role, ground: Ground, scratch: str, door: str, joined: Joined, start: Start
) -> Sandbox:
    """The sandbox around a command: what its role may do, where it works, and how it reaches the state."""
    state = os.path.join(repo.common_dir, "landlane")
    slots: Mapping[str, str] = ground.workspace.environment if ground.workspace else {}
    return Sandbox(
        writable=(ground.path,) if ground.workspace else (),
        scratch=scratch,
        readable=(
            *(repo.home.root, repo.common_dir, repo.checkout.root, os.path.join(state, GIT_HOOKS)),
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


def requested_sandbox(role: Role) -> Sandbox:
    """The sandbox that a role asks for, before its folders exist."""
    return Sandbox(
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
