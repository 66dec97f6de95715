"""The commands of the command line as one table, read twice.

cli/fast_parse.py parses a well-formed call with nothing but this table: frequent commands run in a fresh
process each time, and importing click alone costs more than a claim. Everything else, such as help,
completion and the explanation of a mistake, is done by click from the same table (cli/click_app.py).
"""

from __future__ import annotations

from landlane.cli.specs.claims import CLAIM_COMMANDS
from landlane.cli.specs.exec import EXEC_COMMANDS
from landlane.cli.specs.fanout import FAN_COMMANDS
from landlane.cli.specs.gate import GATE_COMMANDS
from landlane.cli.specs.handoff import HANDOFF_COMMANDS
from landlane.cli.specs.hook import HOOK_COMMANDS
from landlane.cli.specs.land import LANDING_COMMANDS
from landlane.cli.specs.mcp import MCP_COMMANDS
from landlane.cli.specs.model import Argument, Command, Option
from landlane.cli.specs.plan import PLAN_COMMANDS
from landlane.cli.specs.pool import POOL_COMMANDS
from landlane.cli.specs.review import REVIEW_COMMANDS
from landlane.cli.specs.role import ROLE_COMMANDS
from landlane.cli.specs.rules import RULES_COMMANDS
from landlane.cli.specs.run import RUN_COMMANDS
from landlane.cli.specs.sessions import SESSION_COMMANDS
from landlane.cli.specs.state import STATE_COMMANDS
from landlane.cli.specs.task import TASK_COMMANDS
from landlane.cli.specs.usage import USAGE_COMMANDS
from landlane.cli.specs.workspace import WORKSPACE_COMMANDS

__all__ = ["COMMANDS", "COMMON", "STANDING", "Argument", "Command", "Option"]

# These are understood before and behind the command's own words.
COMMON = (
    Option(name="--json", help="answer with exactly one JSON object on stdout", is_flag=True),
    Option(name="--as", help="act as this agent", metavar="NAME"),
    Option(name="--repo", help="act in the repository of this folder", metavar="DIR"),
)

# What `landlane` means without a word.
STANDING = Command(
    path="", handler="no_command:standing", summary="Where you stand, and the next sensible step."
)

COMMANDS: tuple[Command, ...] = (
    Command(
        path="init",
        handler="init:init",
        summary="Set this repository and its coding clients up; shows the plan first, safe to repeat.",
        options=(
            Option(name="--undo", help="take back what init wrote", is_flag=True),
            Option(name="--yes", help="do not ask", is_flag=True),
            Option(name="--dry-run", help="only show the plan, with what changes in each file", is_flag=True),
            Option(
                name="--client",
                help="set up this client, whether it is found here or not; may be repeated",
                metavar="NAME",
                is_repeated=True,
            ),
            Option(name="--no-clients", help="set up no coding client", is_flag=True),
            Option(name="--no-trust", help="do not ask Codex to trust its hooks", is_flag=True),
        ),
        examples=(
            "landlane init",
            "landlane init --dry-run",
            "landlane init --yes --client claude --client codex",
            "landlane init --undo",
        ),
        details=(
            "Finds the coding clients on this machine and writes their hooks, AGENTS.md, RULES.md and\n"
            "landlane.toml. In files that are there every byte that is not ours stays. All of them are put\n"
            "away first; --undo restores them byte for byte, and keeps the state with its history.\n"
            "A person at a terminal is asked before anything is written. Without a terminal it goes ahead,\n"
            "as with --yes; --dry-run only shows."
        ),
    ),
    Command(
        path="doctor",
        handler="doctor:doctor",
        summary="Prove what holds and what does not; --fix repairs what can be repaired.",
        options=(
            Option(name="--fix", help="repair: rebuild a corrupt store from its journal", is_flag=True),
        ),
        examples=("landlane doctor", "landlane doctor --fix --json"),
    ),
    *SESSION_COMMANDS,
    *CLAIM_COMMANDS,
    Command(
        path="status",
        handler="status:status",
        summary="Who is here, what is held, who waits.",
        examples=("landlane status",),
    ),
    Command(
        path="journal",
        handler="journal:journal",
        summary="What happened, entry by entry.",
        options=(
            Option(name="--follow", help="go on as entries come", is_flag=True),
            Option(name="--since", help="only entries behind this position", metavar="N"),
            Option(name="--verify", help="prove that nothing was changed or cut", is_flag=True),
            Option(name="--last", help="only the newest so many", metavar="N"),
        ),
        examples=("landlane journal --last 20", "landlane journal --follow", "landlane journal --verify"),
    ),
    Command(
        path="store info",
        handler="store:info",
        summary="Where the state lives, and how much there is.",
        examples=("landlane store info",),
    ),
    Command(
        path="store move",
        handler="store:move",
        summary="Carry everything over to another store, and use that from then on.",
        arguments=(Argument(name="url", help="a path or a postgresql:// URL"),),
        examples=("landlane store move postgresql://db.example/landlane",),
    ),
    Command(
        path="store rebuild",
        handler="store:rebuild",
        summary="Build the store anew from journal.jsonl, under a new epoch of tokens; the old one is kept.",
        examples=("landlane store rebuild",),
    ),
    Command(
        path="resident",
        handler="resident:resident",
        summary="Serve hooks and sandboxed agents at a private socket; starts and ends by itself.",
        options=(
            Option(name="--state", help="the state folder; found from here", metavar="DIR"),
            Option(name="--idle", help="end after so long without a request", metavar="D", default="5m"),
        ),
        examples=("landlane resident --idle 1h",),
    ),
    Command(
        path="completion",
        handler="completion:completion",
        summary="Print what lets a shell complete words: for bash, zsh or fish.",
        arguments=(Argument(name="shell", help="bash, zsh or fish"),),
        examples=("landlane completion bash", "landlane completion zsh", "landlane completion fish"),
        details=(
            'bash: eval "$(landlane completion bash)" in ~/.bashrc\n'
            'zsh:  eval "$(landlane completion zsh)" in ~/.zshrc, behind compinit\n'
            "fish: landlane completion fish > ~/.config/fish/completions/landlane.fish"
        ),
    ),
    Command(
        path="demo",
        handler="demo:demo",
        summary="Colliding tasks in one checkout, in worktrees and with Landlane; one table at the end.",
        options=(
            Option(
                name="--agents", help="how many, with one who deploys and a person", metavar="N", default="8"
            ),
            Option(name="--seed", help="the same story again", metavar="N", default="7"),
            Option(name="--tasks", help="only the first of the twenty", metavar="N", default="20"),
            Option(name="--way", help="only naive, worktrees or landlane", metavar="WAY"),
            Option(name="--keep", help="leave the scratch repositories there", is_flag=True),
            Option(name="--recount", help="count again what a demo with --keep has left", metavar="FOLDER"),
        ),
        examples=("landlane demo", "landlane demo --agents 5 --keep"),
    ),
    *TASK_COMMANDS,
    *HANDOFF_COMMANDS,
    *PLAN_COMMANDS,
    *FAN_COMMANDS,
    *REVIEW_COMMANDS,
    *RUN_COMMANDS,
    *POOL_COMMANDS,
    *STATE_COMMANDS,
    *WORKSPACE_COMMANDS,
    *LANDING_COMMANDS,
    *GATE_COMMANDS,
    *ROLE_COMMANDS,
    *RULES_COMMANDS,
    *HOOK_COMMANDS,
    *EXEC_COMMANDS,
    *MCP_COMMANDS,
    *USAGE_COMMANDS,
)
