"""The environment variables of a workspace, and the slots that are leased for it."""

from __future__ import annotations

import shlex

from landlane.errors import Held, LandlaneError
from landlane.sessions.leases import find_session
from landlane.state.slot_kinds import SlotRefused, check_slot_request, known_kinds, workspace_id
from landlane.state.slots import all_slots, free, take_slot
from landlane.values import replace
from landlane.workspaces.records import update

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.workspaces.model import Workspace


def renew_slots(repo: Repository, session: Session, workspace: Workspace) -> Workspace:
    """Lease the slots of a workspace again that ended with its former session."""
    if not workspace.slots:
        return workspace
    leased, environment = lease_slots(repo, session, workspace)
    if (leased, environment) == (workspace.slots, workspace.environment):
        return workspace
    return update(repo, workspace, "adopted", session, slots=leased, environment=environment)


def lease_slots(
    repo: Repository, session: Session, begun: Workspace
) -> tuple[dict[str, str], dict[str, str]]:
    """Lease the slots of a workspace; return their ids by variable, and all its variables."""
    leased: dict[str, str] = {}
    environment = {"LANDLANE_WORKSPACE": begun.id, "LANDLANE_TASK": begun.task}
    if not repo.settings.workspace.slots:
        return leased, environment
    place = workspace_id(repo.processes.machine, begun.path)
    for variable, kind in repo.settings.workspace.slots.items():
        request = check_slot_request(
            known_kinds(repo.settings.slots), kind, name="", amount=1, workspace=place
        )
        # Named after the variable, so that the same workspace gets the same slot when it is opened again.
        outcome = take_slot(repo, session, replace(request, name=variable))
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
    """Free the slots of a workspace, also those that were leased just before a crash."""
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
            continue  # its session has ended, and the slot with it


def shell_environment(workspace: Workspace) -> str:
    """Return the environment of a workspace as lines for a shell."""
    # A shell with these variables acts as the agent of the workspace, not as the user at the terminal.
    variables = {"LANDLANE_AGENT": workspace.agent, **workspace.environment}
    return "\n".join(f"export {name}={shlex.quote(text)}" for name, text in variables.items())
