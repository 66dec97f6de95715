"""Every command that a caller in a sandbox may send to the resident, with what it can cause outside."""

from __future__ import annotations

from enum import StrEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class OutsideEffect(StrEnum):
    """What a command of a sandboxed caller can cause outside the sandbox, at most."""

    READ = "reads the state"
    CHANGE = "changes the state"
    GIT = "changes the state; runs git with the settings of the main checkout"
    CHECK = "also runs the check that a person gave the task, in a sandbox"
    LAND = "also has the queue run the checks of the target branch on the commit, in a sandbox"


_READ, _CHANGE, _GIT, _CHECK, _LAND = OutsideEffect

# A command that is not listed is refused: decisions of a person, repairs, and everything that would run a
# given program. The operations themselves refuse to store a command, such as the check of a task
# (`Repository.refuse_guest_command`).
REQUESTS: Mapping[str, OutsideEffect] = {
    "": _READ,  # `landlane` alone
    "help": _READ,
    "status": _READ,
    "claims": _READ,
    "who": _READ,
    "check": _READ,
    "log": _READ,
    "stats": _READ,
    "usage": _READ,
    "usage list": _READ,
    "claim": _GIT,  # saves what a former holder left
    "renew": _CHANGE,
    "release": _CHANGE,
    "leave": _CHANGE,
    "next": _GIT,
    "done": _CHECK,
    "fail": _GIT,
    "land": _LAND,
    "sync": _GIT,
    "task add": _CHANGE,
    "task import": _CHANGE,
    "task split": _CHANGE,
    "task edit": _CHANGE,
    "task after": _CHANGE,
    "task block": _CHANGE,
    "task unblock": _CHANGE,
    "task retry": _CHANGE,
    "task drop": _CHANGE,
    "task list": _READ,
    "task show": _READ,
    "task log": _READ,
    "task parts": _READ,
    "queue list": _GIT,  # --conflicts merges on trial
    "queue show": _READ,
    "gate list": _READ,
    "gate show": _GIT,  # shows the commit that waits
    "gate ask": _GIT,
    "gate withdraw": _CHANGE,
    "review list": _READ,
    "review show": _GIT,
    "review give": _GIT,
    "review withdraw": _CHANGE,
    "review adopt": _GIT,
    "handoff": _GIT,  # saves the changes of the checkout
    "handoff list": _READ,
    "handoff show": _READ,
    "handoff accept": _GIT,
    "handoff decline": _CHANGE,
    "state get": _READ,
    "state set": _CHANGE,
    "state append": _CHANGE,
    "state check": _READ,
    "state list": _READ,
    "state history": _READ,
    "state watch": _READ,
    "slot take": _CHANGE,
    "slot list": _READ,
    "slot free": _CHANGE,
    "number": _CHANGE,
    "number list": _READ,
    "deploy history": _READ,
    "rules show": _READ,
    "rules ack": _CHANGE,
    "rules report": _READ,
}
