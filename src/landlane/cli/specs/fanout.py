"""The commands about split tasks, as part of the table of commands."""

from __future__ import annotations

from landlane.cli.specs.model import Argument, Command, Option
from landlane.values import replace

_OPTIONS = (
    Option(
        name="--policy",
        help="all, any, collect, or at least how many branches must be done",
        metavar="all|any|N|collect",
        default="all",
    ),
    Option(name="--deadline", help="join with what is there after so long", metavar="D"),
    Option(
        name="--rest",
        help="branches that nobody has begun when it is joined: drop them, or keep them in the queue",
        metavar="drop|keep",
        default="drop",
    ),
)
_DETAILS = (
    "The task waits for its branches, and whoever has it in hand lets go of it in the same step.\n"
    "It is joined exactly once: when enough branches are done, when none is left, or at the deadline.\n"
    "Then it is ready again, with all results and failures in order; or failed, when that is not enough.\n"
    "One failing branch stops no other. The same plan again, while it waits, changes nothing."
)

_SPLIT = Command(
    path="fanout",
    handler="fanout:fan_out",
    summary="Split a task into the branches of a plan, and join them once.",
    arguments=(
        Argument(name="task", help="the task's id, such as T7"),
        Argument(name="plan", help="a TOML file or a Markdown checklist, - for standard input"),
    ),
    options=_OPTIONS,
    examples=(
        "landlane fanout T7 parts.md --as ann",
        "landlane fanout T7 drafts.toml --policy any --deadline 30m",
        "landlane fanout T7 parts.md --policy 2 --rest keep",
    ),
    details=_DETAILS,
)

FAN_COMMANDS: tuple[Command, ...] = (
    _SPLIT,
    replace(_SPLIT, path="fan out", examples=("landlane fan out T7 parts.md --as ann",)),
    Command(
        path="fan list",
        handler="fanout:list_all",
        summary="Tasks that wait for their branches.",
        options=(Option(name="--all", help="also those that were joined", is_flag=True),),
        examples=("landlane fan list", "landlane fan list --all --json"),
    ),
    Command(
        path="fan show",
        handler="fanout:show",
        summary="How far the branches of a task are; after the join, what each of them brought.",
        arguments=(Argument(name="id", help="the fan, such as F1, or its task"),),
        examples=("landlane fan show F1", "landlane fan show T7 --json"),
    ),
)
