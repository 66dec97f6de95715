"""Commands under Checkouts: workspace, rescue, exec."""

from __future__ import annotations

from landlane.cli.specs.model import argument, command, flag, option

COMMANDS = (
    command(
        "workspace open",
        "Create or find the checkout of a task; print its folder.",
        argument("task", completes="task"),
        option("--kind", "worktree or clone", "KIND", choices=("worktree", "clone")),
        flag("--offline", "Start from what was fetched last"),
        handler="workspace:open_one",
        details=("It starts at the freshly fetched target, on its own branch, prepared as [workspace] says."),
        examples=('cd "$(landlane workspace open T7)"',),
    ),
    command(
        "workspace list",
        "List workspaces.",
        flag("--all", "Include closed ones"),
        examples=("landlane workspace list",),
    ),
    command(
        "workspace close",
        "Save what exists nowhere else, then remove a workspace.",
        argument("workspace", completes="workspace"),
        flag("--force", "Even if another session or process uses it"),
        examples=("landlane workspace close W3",),
    ),
    command(
        "workspace prune",
        "Close finished and abandoned workspaces.",
        flag("--dry-run", "Show what would be closed"),
        details="Unlanded work is saved first; `landlane rescue list` shows it.",
        examples=(
            "landlane workspace prune --dry-run",
            "landlane workspace prune",
        ),
    ),
    command(
        "workspace env",
        "Print a workspace's environment for a shell.",
        argument("workspace", is_optional=True, completes="workspace"),
        examples=('eval "$(landlane workspace env W3)"',),
    ),
    command(
        "rescue list",
        "List saved work.",
        examples=("landlane rescue list",),
    ),
    command(
        "rescue show",
        "Show the files of saved work.",
        argument("id", completes="rescue"),
        examples=("landlane rescue show R9",),
    ),
    command(
        "rescue restore",
        "Restore saved work byte for byte.",
        argument("id", completes="rescue"),
        option("--into", "Clean workspace, or a new folder", "DIR", completes="file"),
        examples=(
            "landlane rescue restore R9",
            "landlane rescue restore R9 --into ../look",
        ),
    ),
    command(
        "rescue take",
        "Save this checkout's uncommitted work and leave it as it is.",
        option("--why", "Reason, shown in the list", "TEXT"),
        examples=("landlane rescue take --why 'before the rebase'",),
    ),
    command(
        "rescue drop",
        "Delete saved work for good.",
        argument("id", completes="rescue"),
        examples=("landlane rescue drop R9",),
    ),
    command(
        "exec",
        "Run a command as an agent in the sandbox.",
        argument("command", is_rest=True, completes="command"),
        option("--role", "Role of the agent", "ROLE", default="explore", completes="role"),
        option("--name", "Name of the agent", "NAME"),
        option("--task", "Task it works on", "ID", completes="task"),
        handler="exec:execute",
        examples=("landlane exec --role code --task T12 -- claude",),
    ),
)
