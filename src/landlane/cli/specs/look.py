"""Commands under Look: claims, who, log, stats, usage."""

from __future__ import annotations

from landlane.cli.specs.model import argument, command, flag, option

COMMANDS = (
    command(
        "claims",
        "List claims.",
        argument("paths", is_many=True, is_optional=True, completes="path"),
        handler="claims_read:claims",
        examples=(
            "landlane claims",
            "landlane claims src",
        ),
    ),
    command(
        "who",
        "Show who holds a path and who changed it last.",
        argument("path", completes="path"),
        handler="claims_read:who",
        examples=("landlane who src/api.py",),
    ),
    command(
        "log",
        "Show the journal.",
        argument("about", is_optional=True, completes="task"),
        flag("--follow", "Print entries as they come"),
        option("--since", "Start: 2h, 3d, 14:30, a date or all", "TIME"),
        option("--after", "Only entries after this position", "N"),
        option("--last", "Only the newest N entries", "N"),
        flag("--verify", "Verify that no entry was changed or removed"),
        examples=(
            "landlane log",
            "landlane log T12",
            "landlane log src/api.py --since 2d",
            "landlane log --follow",
            "landlane log --verify",
        ),
    ),
    command(
        "stats",
        "Show throughput, conflicts, waits and cost.",
        option("--since", "Start: 2h, 3d, 14:30, a date or all", "TIME"),
        option("--until", "End: a date (that day included) or a time", "TIME"),
        flag("--define", "Explain each number"),
        handler="stats:show",
        examples=(
            "landlane stats",
            "landlane stats --since 30d",
        ),
    ),
    command(
        "usage",
        "Show spending.",
        option("--since", "Start: 2h, 3d, 14:30, a date or all", "TIME"),
        option("--until", "End: a date (that day included) or a time", "TIME"),
        option(
            "--by",
            "Group by task, lineage, agent, client, model or day",
            "WHAT",
            choices=("task", "lineage", "agent", "client", "model", "day"),
        ),
        handler="usage:show",
        details=(
            "Shows today (UTC) unless you give --since or --until. Unknown cost is counted separately, never "
            "as zero."
        ),
        examples=(
            "landlane usage",
            "landlane usage --since 7d --by agent",
        ),
    ),
    command(
        "usage add",
        "Record spending, once per key.",
        option("--task", "Task it was for", "ID", completes="task"),
        option("--cost", "US dollars (default: unknown, or by [prices])", "AMOUNT"),
        option("--key", "Recording the same key again changes nothing", "KEY"),
        option("--input-tokens", "Tokens in", "N"),
        option("--output-tokens", "Tokens out", "N"),
        option("--model", "Model", "NAME"),
        option("--client", "Coding client", "NAME"),
        option("--agent", "Agent (default: you)", "NAME", completes="agent"),
        option("--attempt", "Attempt at the task", "N"),
        option("--at", "Time (default: now)", "TIME"),
        examples=("landlane usage add --task T12 --cost 0.42 --key run-17",),
    ),
    command(
        "usage import",
        "Record spending from another tool's JSON lines.",
        argument("file", completes="file"),
        handler="usage:read_in",
        details=(
            'A line: {"key": "run-17", "task": "T1", "agent": "ann", "client": "claude", "model": '
            '"...",\n'
            '"input_tokens": 48210, "output_tokens": 2107, "cost_usd": 0.42, "at": '
            '"2026-01-31T09:30:00Z"}.\n'
            'All fields are optional. With "tasks": ["T1", "T2"] it counts for the first known task '
            "and is linked to the others. A line without a key is recorded once, too."
        ),
        examples=("landlane usage import costs.jsonl",),
    ),
    command(
        "usage list",
        "List recorded spending.",
        option("--task", "Only of this task", "ID", completes="task"),
        option("--since", "Start: 2h, 3d, 14:30, a date or all", "TIME"),
        option("--until", "End: a date (that day included) or a time", "TIME"),
        examples=("landlane usage list --task T12",),
    ),
)
