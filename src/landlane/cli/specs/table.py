"""All commands by heading, and where each is described.

Only the descriptions of the part that a call needs are loaded: most commands run in a fresh process.
"""

from __future__ import annotations

from landlane.cli.specs.model import Argument, Command, Heading, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "COMMON",
    "HEADINGS",
    "LISTED_ALONE",
    "NO_COMMAND",
    "Argument",
    "Command",
    "Option",
    "all_commands",
    "commands_of",
]

COMMON = (
    Option(name="--as", help="Act as this agent", metavar="NAME", completes="agent"),
    Option(name="--repo", help="Act in the repository of this folder", metavar="DIR", completes="file"),
    Option(name="--json", help="Print one JSON object"),
    Option(name="--verbose", help="Add tokens, session ids and full times (-v)"),
    Option(name="--quiet", help="Print only the value a script needs (-q)"),
    Option(name="--help", help="Show this help (-h)"),
)
SHORT = {"-v": "--verbose", "-q": "--quiet", "-h": "--help"}

NO_COMMAND = Command(path="", handler="no_command:show", summary="Show where you are and what needs you")

HEADINGS = (
    Heading(
        title="Start",
        module="start",
        lines={
            "init": "Set up this repository and its coding clients",
            "doctor": "Find problems and fix them",
            "demo": "Watch agents collide, with and without Landlane",
            "status": "Show who works on what",
            "ui": "Open the web page",
        },
    ),
    Heading(
        title="Work",
        module="work",
        lines={
            "claim": "Claim paths before editing them",
            "release": "Release claims",
            "check": "Check whether you may change a path",
            "next": "Take the next ready task and its paths",
            "done": "Mark a task done; Landlane verifies the evidence",
            "fail": "Give a task back with a reason",
            "commit": "Commit only paths you have claimed",
            "sync": "Fetch and compare your branch with the target",
            "land": "Merge, test and land a branch",
        },
    ),
    Heading(
        title="Plan and run",
        module="run",
        lines={
            "task": "Add, list, edit and split tasks",
            "plan": "Check a plan before running it",
            "run": "Start workers on ready tasks and land their work",
            "queue": "Inspect and control the landing queue",
        },
    ),
    Heading(
        title="Decide",
        module="decide",
        lines={
            "inbox": "Show and answer what waits for you",
            "gate": "Ask a person; approve or reject",
            "review": "Review a commit before it lands",
            "handoff": "Hand a task to another agent",
        },
    ),
    Heading(
        title="Look",
        module="look",
        lines={
            "claims": "List claims",
            "who": "Show who holds a path and who changed it last",
            "log": "Show the journal",
            "stats": "Show throughput, conflicts, waits and cost",
            "usage": "Show and record spending",
        },
    ),
    Heading(
        title="Checkouts",
        module="checkouts",
        lines={
            "workspace": "Manage one checkout per task",
            "rescue": "Restore work saved before it was removed",
            "exec": "Run a command as an agent in the sandbox",
        },
    ),
    Heading(
        title="Shared things",
        module="shared",
        lines={
            "state": "Read and write versioned values",
            "slot": "Lease ports, names and amounts",
            "number": "Allocate the next number of a kind",
            "once": "Run a command once per key; concurrent callers wait",
            "deploy": "Deploy one at a time, never a stale commit",
            "role": "Show what each role may do",
            "rules": "Show and acknowledge the operating rules",
        },
    ),
    Heading(
        title="Plumbing",
        module="plumbing",
        lines={
            "join": "Start a session, or attach to a live one",
            "leave": "End your session and release its claims",
            "renew": "Renew your leases",
            "git": "Run git unless it would hit other sessions' work",
            "stash": "Save and restore changes of this checkout only",
            "misplaced": "Find and move changes made in the wrong checkout",
            "notify": "Watch for events and send notifications",
            "config": "Read and change settings",
            "store": "Inspect, move or rebuild the store",
            "hook": "Answer a coding client's hook (JSON on stdin)",
            "mcp": "Serve MCP tools on stdin and stdout",
            "resident": "Run the background process in the foreground",
            "completion": "Print a completion script for bash, zsh or fish",
            "help": "Show help for a command",
        },
    ),
)

# A noun alone is a command of its own: `landlane task` is `landlane task list`.
LISTED_ALONE = {
    "config": "config list",
    "gate": "gate list",
    "handoff": "handoff list",
    "queue": "queue list",
    "rescue": "rescue list",
    "review": "review list",
    "role": "role list",
    "rules": "rules show",
    "slot": "slot list",
    "state": "state list",
    "task": "task list",
    "workspace": "workspace list",
}


def commands_of(word: str) -> tuple[Command, ...]:
    """Return the commands that begin with a word; none for an unknown one."""
    for heading in HEADINGS:
        if word in heading.lines:
            loaded: tuple[Command, ...] = _load(heading.module)
            return tuple(command for command in loaded if command.path.partition(" ")[0] == word)
    return ()


def all_commands() -> Iterator[Command]:
    """Yield every command, in the order of the help."""
    for heading in HEADINGS:
        yield from _load(heading.module)


def _load(module: str) -> tuple[Command, ...]:
    return __import__(f"landlane.cli.specs.{module}", fromlist=["COMMANDS"]).COMMANDS
