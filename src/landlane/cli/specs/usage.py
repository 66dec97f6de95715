"""The commands about money and metrics, as part of the table of commands."""

from __future__ import annotations

from landlane.cli.specs.model import Argument, Command, Option

_SINCE = Option(
    name="--since", help="from then on: a length such as 7d, a date, an instant, or all", metavar="WHEN"
)
_UNTIL = Option(name="--until", help="before then: a date (all of that day) or an instant", metavar="DATE")

USAGE_COMMANDS: tuple[Command, ...] = (
    Command(
        path="usage",
        handler="usage:show",
        summary="What was spent: by task, by nobody that is known, and in all.",
        options=(
            _SINCE,
            _UNTIL,
            Option(name="--by", help="task, lineage, agent, client, model or day", metavar="WHAT"),
        ),
        examples=("landlane usage", "landlane usage --since 7d --by agent", "landlane usage --json"),
        details=(
            "Each booking belongs to one task, so that tasks and what is unattributed add up to the total.\n"
            "What nobody knows the cost of is counted apart, never as zero. Without --since: everything."
        ),
    ),
    Command(
        path="usage add",
        handler="usage:add",
        summary="Book what was used, once by its key.",
        options=(
            Option(name="--task", help="the task it was for; without one it is unattributed", metavar="T"),
            Option(name="--key", help="what makes it the same booking when it comes again", metavar="KEY"),
            Option(name="--cost", help="US dollars; without it the cost is unknown", metavar="1.50"),
            Option(name="--input-tokens", help="tokens that went in", metavar="N"),
            Option(name="--output-tokens", help="tokens that came out", metavar="N"),
            Option(name="--model", help="[prices.MODEL] tells what its tokens cost", metavar="MODEL"),
            Option(name="--client", help="the coding client", metavar="NAME"),
            Option(name="--agent", help="who used it; without it, who books it", metavar="NAME"),
            Option(name="--attempt", help="which attempt at the task", metavar="N"),
            Option(name="--at", help="when; without it, now", metavar="WHEN"),
        ),
        examples=(
            "landlane usage add --task T1 --cost 0.42 --key run-17",
            "landlane usage add --task T1 --model gpt-5 --input-tokens 48210 --output-tokens 2107",
        ),
    ),
    Command(
        path="usage import",
        handler="usage:read_in",
        summary="Book the records of another tool from JSON lines; what was booked before is passed over.",
        arguments=(Argument(name="file", help="a file, or - for standard input"),),
        examples=("landlane usage import usage.jsonl", "landlane usage import - --json"),
        details=(
            'A line: {"key": "run-17", "task": "T1", "agent": "ann", "client": "claude", "model": "…",\n'
            '"input_tokens": 48210, "output_tokens": 2107, "cost_usd": 0.42, "at": "2026-01-31T09:30:00Z"}\n'
            'Everything may be left out. With "tasks": ["T1", "T2"] it is booked to the first that is known\n'
            'here, or to "task", and the others refer to it. Tasks go by their id or their key. Without a\n'
            "task it is unattributed; without a key, the same line is the same record."
        ),
    ),
    Command(
        path="usage list",
        handler="usage:list_all",
        summary="The bookings, and what they add up to.",
        options=(
            Option(name="--task", help="those of this task, and those that refer to it", metavar="T"),
            _SINCE,
            _UNTIL,
        ),
        examples=("landlane usage list --task T1", "landlane usage list --since 2026-01-01 --json"),
    ),
    Command(
        path="stats",
        handler="stats:show",
        summary="How the work goes: landed, conflicts, duplicates, waiting, red time, retries, cost.",
        options=(_SINCE, _UNTIL, Option(name="--define", help="say what each number means", is_flag=True)),
        examples=(
            "landlane stats",
            "landlane stats --since 30d",
            "landlane stats --since 2026-01-01 --until 2026-01-31 --json",
            "landlane stats --define",
        ),
        details="Without --since: the last 7 days. Days begin at midnight UTC. What cannot be known says so.",
    ),
)
