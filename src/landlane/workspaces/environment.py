"""Environment variables of a workspace, with the slots leased for it."""

from __future__ import annotations

import shlex

from landlane.errors import Held, LandlaneError
from landlane.sessions.read import find_session
from landlane.state.slot_kinds import SlotRefused, check_slot_request, known_kinds, workspace_id
from landlane.state.slots import all_slots, free, take_slot
from landlane.values import replace
from landlane.workspaces import records as operations
from landlane.workspaces.model import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.repository import Repository
    from landlane.sessions.model import Session

    Step = Callable[[str], None]
    from landlane.workspaces.model import Workspace


def renew_slots(repo: Repository, session: Session, workspace: Workspace) -> Workspace:
    """Lease anew what ended with the session that had the workspace before."""
    if not workspace.slots:
        return workspace
    leased, environment = lease_slots(repo, session, workspace)
    if (leased, environment) == (workspace.slots, workspace.environment):
        return workspace
    return operations.change_state(repo, workspace, "adopted", session, slots=leased, environment=environment)


def lease_slots(
    repo: Repository, session: Session, begun: Workspace
) -> tuple[dict[str, str], dict[str, str]]:
    """Lease what the workspace needs beside files; the variables that tell of it."""
    leased: dict[str, str] = {}
    environment = {"LANDLANE_WORKSPACE": begun.id, "LANDLANE_TASK": begun.task}
    if not repo.settings.workspace.slots:
        return leased, environment
    place = workspace_id(repo.processes.machine, begun.path)
    for variable, kind in repo.settings.workspace.slots.items():
        wish = check_slot_request(known_kinds(repo.settings.slots), kind, name="", amount=1, workspace=place)
        # Remembered under the variable: whoever opens the same workspace again gets the same place.
        outcome = take_slot(repo, session, replace(wish, name=variable))
        if isinstance(outcome, SlotRefused):
            holder = outcome.holders[0].agent if outcome.holders else ""
            raise Held(
                f"no {kind} is left for {variable}: all {outcome.size} are held",
                code="SLOT_TAKEN",
                hint=outcome.hint,
                holder=holder,
            )
        leased[variable] = outcome.slot.id
        environment[variable] = outcome.slot.place or str(outcome.slot.amount)
    return leased, environment


def free_slots(repo: Repository, workspace: Workspace) -> None:
    """Give back what was leased with a workspace, also what was leased just before a crash."""
    named = set(repo.settings.workspace.slots) | set(workspace.slots)
    if not named:
        return
    place = workspace_id(repo.processes.machine, workspace.path)
    for slot in repo.store.view(all_slots):
        if slot.workspace != place or slot.name not in named:
            continue
        holder = repo.store.view(lambda snapshot, id=slot.session: find_session(snapshot, id))
        try:
            if holder is not None:
                free(repo, holder, slot.id)
        except LandlaneError:
            continue  # its session has ended, and it with that


def shell_environment(workspace: Workspace) -> str:
    """The environment of a workspace as lines for a shell."""
    # Whoever takes it in acts as the one whose workspace it is, not as the user at the terminal.
    variables = {"LANDLANE_AGENT": workspace.agent, **workspace.environment}
    return "\n".join(f"export {name}={shlex.quote(text)}" for name, text in variables.items())
