"""Commands under Plumbing: what hooks, scripts and other programs call."""

from __future__ import annotations

from landlane.cli.specs.model import argument, command, flag, option

COMMANDS = (
    command(
        "join",
        "Start a session, or attach to a live one.",
        argument("name"),
        option("--role", "Role of the agent", "ROLE", completes="role"),
        option("--pid", "Process whose children act as this agent", "PID"),
        handler="sessions:join",
        examples=(
            "landlane join ann",
            "landlane join ann --role test --pid $$",
        ),
    ),
    command(
        "leave",
        "End your session and release its claims.",
        handler="sessions:leave",
        examples=("landlane leave --as ann",),
    ),
    command(
        "renew",
        "Renew your leases.",
        argument("patterns", is_many=True, is_optional=True, completes="path"),
        flag("--literal", "Take *, ? and [ as ordinary characters"),
        handler="claims:renew",
        examples=(
            "landlane renew",
            "landlane renew src/api.py",
        ),
    ),
    command(
        "git",
        "Run git unless it would hit other sessions' work.",
        argument("words", is_rest=True, needs="a git command after --"),
        details="While other sessions use this checkout, commands on the full tree are refused.",
        examples=("landlane git -- switch topic",),
    ),
    command(
        "stash save",
        "Save the changes of this checkout.",
        option("--message", "Description", "TEXT"),
        examples=("landlane stash save --message 'half a parser'",),
    ),
    command(
        "stash restore",
        "Restore the last saved changes of this checkout.",
        argument("id", is_optional=True),
        examples=("landlane stash restore",),
    ),
    command(
        "stash list",
        "List the saved changes of this checkout.",
        examples=("landlane stash list",),
    ),
    command(
        "misplaced list",
        "List changes made in the wrong checkout or without a claim.",
        examples=("landlane misplaced list",),
    ),
    command(
        "misplaced move",
        "Move changes to the workspace where they belong.",
        argument("paths", is_many=True, is_optional=True, completes="path"),
        option("--to", "Workspace: its id, task or folder", "WORKSPACE", completes="workspace"),
        examples=(
            "landlane misplaced move",
            "landlane misplaced move src/api.py --to W3",
        ),
    ),
    command(
        "misplaced undo",
        "Undo a shell's write to another session's path.",
        argument("id"),
        examples=("landlane misplaced undo B4",),
    ),
    command(
        "misplaced accept",
        "Accept a shell's write to a path you hold.",
        argument("id"),
        examples=("landlane misplaced accept B4",),
    ),
    command(
        "notify",
        "Watch for events and send notifications.",
        flag("--once", "Look once and end"),
        option("--interval", "Time between two looks", "TIME"),
        flag("--past", "List past events and end"),
        details=(
            "Events: new commits and changed dependencies on the target, failing checks, a stalled "
            "or paused queue, paused workers, stale claims, dead sessions, and what waits for a "
            "person. [notify] in landlane.toml names a command or a webhook that gets each event "
            "once."
        ),
        examples=(
            "landlane notify",
            "landlane notify --once --json",
        ),
    ),
    command(
        "config get",
        "Print a setting.",
        argument("key", completes="setting"),
        examples=("landlane config get claims.ttl",),
    ),
    command(
        "config set",
        "Change a setting.",
        argument("key", completes="setting"),
        argument("value"),
        flag("--local", "Only in this clone, from now on; people only"),
        handler="config:set_value",
        details=(
            "Writes landlane.toml of this checkout. Landings and other checkouts use it once it is on the "
            "target branch."
        ),
        examples=(
            "landlane config set run.workers 4",
            "landlane config set run.workers 4 --local",
        ),
    ),
    command(
        "config list",
        "List settings that differ from their defaults.",
        flag("--all", "Include defaults"),
        examples=(
            "landlane config list",
            "landlane config list --all",
        ),
    ),
    command(
        "store info",
        "Show where the state is, and its size.",
        examples=("landlane store info",),
    ),
    command(
        "store move",
        "Move the state to another store.",
        argument("url"),
        examples=("landlane store move postgresql://db.example/landlane",),
    ),
    command(
        "store adopt",
        "Use the store and the repository id that the settings name.",
        details=(
            "Needed after landlane.toml or LANDLANE_STORE was changed on purpose, or to join the state of "
            "other clones. Claims and tasks that this clone had before stay in its former store."
        ),
        examples=("landlane store adopt",),
    ),
    command(
        "store rebuild",
        "Rebuild the store from the journal; the old one is kept.",
        examples=("landlane store rebuild",),
    ),
    command(
        "hook",
        "Answer a coding client's hook (JSON on stdin).",
        argument("client"),
        argument("word", is_optional=True),
        details="CLIENT is one of: claude, codex, gemini, qwen, copilot, opencode or cursor.",
        examples=("landlane hook claude < event.json",),
    ),
    command(
        "mcp",
        "Serve MCP tools on stdin and stdout.",
        option("--session", "Act for this session", "ID:SECRET"),
        flag("--http", "Serve streamable HTTP instead"),
        option("--host", "Address to listen on", "ADDRESS", default="127.0.0.1"),
        option("--port", "Port; 0 for any free one", "N", default="8765"),
        examples=(
            "landlane mcp",
            "landlane mcp --http --port 0",
        ),
    ),
    command(
        "resident",
        "Run the background process in the foreground.",
        option("--state", "State folder", "DIR", completes="file"),
        option("--idle", "End after TIME without a request", "TIME", default="5m"),
        examples=("landlane resident --idle 1h",),
    ),
    command(
        "completion",
        "Print a completion script for bash, zsh or fish.",
        argument("shell"),
        argument("words", is_rest=True, is_optional=True),
        details=(
            'bash: eval "$(landlane completion bash)" in ~/.bashrc\n'
            'zsh:  eval "$(landlane completion zsh)" in ~/.zshrc, after compinit\n'
            "fish: landlane completion fish > ~/.config/fish/completions/landlane.fish"
        ),
        examples=(
            "landlane completion bash",
            "landlane completion zsh",
            "landlane completion fish",
        ),
    ),
    command(
        "help",
        "Show help for a command.",
        argument("words", is_many=True, is_optional=True, completes="command"),
        flag("--all", "List every command"),
        handler="help:show",
        examples=(
            "landlane help claim",
            "landlane help task add",
            "landlane help --all",
        ),
    ),
)
