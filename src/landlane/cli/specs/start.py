"""Commands under Start: init, doctor, demo, status, ui."""

from __future__ import annotations

from landlane.cli.specs.model import command, flag, option

COMMANDS = (
    command(
        "init",
        "Set up this repository and its coding clients.",
        flag("--dry-run", "Show the plan and every change, then stop"),
        flag("--yes", "Apply the plan without asking"),
        option("--client", "Set up this client, even if it is not found", "NAME", is_repeated=True),
        flag("--no-clients", "Set up no coding client"),
        flag("--no-trust", "Do not ask Codex to trust its hooks"),
        flag("--undo", "Remove what init wrote and restore what it changed"),
        flag("--purge", "With --undo: also remove the state and what holds no work"),
        details=(
            "Finds the coding clients on this machine and writes their hooks, AGENTS.md, RULES.md "
            "and landlane.toml. Shows a plan first and asks; safe to repeat. Every file it changes "
            "is saved first, and --undo restores it byte for byte. The state with its history, "
            "workspaces and branches stay unless you add --purge, which keeps unmerged branches and saves "
            "uncommitted work first. Agents may not use --purge."
        ),
        examples=(
            "landlane init",
            "landlane init --dry-run",
            "landlane init --yes --client claude --client codex",
            "landlane init --undo",
            "landlane init --undo --purge",
        ),
    ),
    command(
        "doctor",
        "Find problems and fix them.",
        flag("--fix", "Fix what can be fixed; rebuild a damaged store from the journal"),
        option("--report", "Write all findings to a new file, without secrets", "FILE", completes="file"),
        details=(
            "Tries to get past each guard and reports what holds on this machine: client hooks, git "
            "hooks, sandbox, store. Changes nothing unless you add --fix."
        ),
        examples=(
            "landlane doctor",
            "landlane doctor --fix",
            "landlane doctor --report report.txt",
        ),
        exits="0 no problems, 1 problems found",
    ),
    command(
        "demo",
        "Watch agents collide, with and without Landlane.",
        option("--agents", "Number of agents", "N", default="8"),
        option("--tasks", "Number of tasks, at most 20", "N", default="20"),
        option("--seed", "Seed of the schedule", "N", default="7"),
        option("--way", "Run only one way", "WAY", choices=("naive", "worktrees", "landlane")),
        flag("--keep", "Keep the scratch repositories"),
        option("--recount", "Count again in a kept demo", "DIR", completes="file"),
        details="Runs in scratch repositories, without network or API keys, in under a minute.",
        examples=(
            "landlane demo",
            "landlane demo --agents 5 --keep",
        ),
    ),
    command(
        "status",
        "Show who works on what (--watch to follow).",
        flag("--watch", "Redraw it in place; q quits"),
        details=(
            "What needs you, who works on what, what lands, who waits for whom, and the money. With --watch: "
            "p pauses everything, arrows and Enter open an item."
        ),
        examples=(
            "landlane status",
            "landlane status --watch",
        ),
    ),
    command(
        "ui",
        "Open the web page.",
        flag("--no-open", "Only print the link"),
        option("--port", "Port to listen on; 0 for a free one (default: the last one)", "N"),
        option("--host", "Address to listen on", "ADDRESS", default="127.0.0.1"),
        option("--tls-cert", "Certificate to serve https:// with", "FILE", completes="file"),
        option("--tls-key", "Key of the certificate", "FILE", completes="file"),
        flag("--read-only", "Show everything, change nothing"),
        flag("--link", "Print a code that signs in another browser"),
        flag("--stop", "End the page"),
        details=(
            "What needs you, who works on what, what lands, claims, timeline, money; buttons to answer. "
            "Prints a link that signs one browser in, once, and opens it. The page runs in the background on "
            "this machine and ends when no browser has used it for 12 hours. Only for people, at a terminal."
        ),
        examples=(
            "landlane ui",
            "landlane ui --no-open",
            "landlane ui --read-only --port 8080",
            "landlane ui --stop",
        ),
        exits="0 the page runs, or has ended with --stop, 6 not a person at a terminal",
    ),
)
