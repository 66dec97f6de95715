"""What follows a landing: its workspace is closed, its pin taken away, and perhaps a task for the whole opened."""

from __future__ import annotations

import os

from interlock.domain.landings import LANDED, OPEN
from interlock.domain.workspaces import OPEN as WORKSPACE_OPEN
from interlock.errors import InterlockError
from interlock.flows.workspaces import close_workspace
from interlock.git import advancing
from interlock.operations import landings as operations
from interlock.operations import workspaces as workspace_operations
from interlock.runners.inhabitants import processes_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from interlock.domain.landings import Landing
    from interlock.flows.site import Site
    from interlock.git.target import Target


def settle_landed(site: Site, target: Target) -> None:
    """Do what follows for everything that has landed and was submitted here; all of it can be done again."""
    landed = [
        one
        for one in operations.list_landings(site.context, (LANDED,))
        if not one.is_settled and one.target == target.branch
    ]
    for landing in landed:
        notes = _close_workspaces(site, landing)
        is_shared = bool(getattr(site.context.store, "url", ""))
        advancing.unpin(site.home, target, landing.head, is_shared=is_shared)
        operations.settle(site.context, landing.id, notes)
    if landed:
        _integrate(site, target, landed)


def _close_workspaces(site: Site, landing: Landing) -> list[str]:
    """Close the workspace that the work was done in, unless somebody is still in it."""
    notes: list[str] = []
    for one in workspace_operations.list_workspaces(site.context):
        is_ours = one.branch == landing.branch and one.state == WORKSPACE_OPEN
        if not is_ours or not workspace_operations.is_here(site.context, one, site.common_dir):
            continue
        inside = [pid for pid, _ in processes_in(one.path, with_own_line=True) if pid != os.getpid()]
        if inside:
            notes.append(f"{one.id} stays open: process {inside[0]} is in it")
            continue
        try:
            closed = close_workspace(site, None, one, force=True)
            notes.append(
                f"{one.id} is closed"
                + (f", the rest of it saved as {closed.rescue}" if closed.rescue else "")
            )
        except (InterlockError, OSError) as error:
            notes.append(f"{one.id} stays: {error}")
    return notes


def _integrate(site: Site, target: Target, landed: list[Landing]) -> None:
    """Open a task for what only shows when everything is together."""
    from interlock.domain.tasks import NewTask
    from interlock.operations.task_adding import add_task

    wanted = site.settings.landing_integrate
    if wanted is None:
        return
    is_wave_over = not operations.list_landings(site.context, OPEN)
    if wanted["after"] == "wave" and not is_wave_over:
        return
    tip = operations.get_queue(site.context, target.branch).tip
    named = "\n".join(f"- {one.id} {one.branch}: {one.subject}" for one in landed)
    new = NewTask(
        title=f"{wanted['title']} ({tip[:12]})",
        body=f"What landed on {target.branch}:\n{named}\n",
        role=str(wanted.get("role", "")),
        check=str(wanted.get("check", "")),
        key=f"integrate/{tip}",
        labels=("integration",),
    )
    add_task(site.context, None, new, force=True)
