"""The commands about gates and about watching, as part of the table of commands."""

from __future__ import annotations

from landlane.cli.specs.model import Argument, Command, Option

_ID = Argument(name="id", help="as `gate list` shows it: L3 or G4")

GATE_COMMANDS: tuple[Command, ...] = (
    Command(
        path="gate list",
        handler="gate_list:list_all",
        summary="What waits for a person, of all agents, the riskiest first.",
        options=(Option(name="--all", help="also what was answered or withdrawn", is_flag=True),),
        examples=("landlane gate list",),
    ),
    Command(
        path="gate show",
        handler="gate:show",
        summary="All there is to know before deciding: the question, what it is about, the change, the cost.",
        arguments=(_ID,),
        examples=("landlane gate show G4",),
    ),
    Command(
        path="gate ask",
        handler="gate:ask",
        summary="Ask a person. The task rests and keeps its paths; exit 7 while there is no answer.",
        arguments=(Argument(name="task", help="your task, such as T7"),),
        options=(
            Option(
                name="--kind",
                help="approval, credentials, legal, financial, deploy or taste",
                metavar="K",
                default="approval",
            ),
            Option(name="--why", help="what to decide, and why", metavar="TEXT"),
            Option(
                name="--about",
                help="what exactly: a commit, a file or command='…'; else the head of the task's branch",
                metavar="WHAT",
            ),
            Option(name="--wait", help="how long to wait for the answer", metavar="D"),
        ),
        examples=(
            "landlane gate ask T7 --why 'This deletes the old table. May I?' --wait 10m",
            "landlane gate ask T7 --kind financial --why 'Buy the licence?' --about amount='120 USD'",
        ),
    ),
    Command(
        path="gate approve",
        handler="gate:approve",
        summary="Say yes to exactly what waits: an entry lands, a task goes on. Only a person can.",
        arguments=(_ID,),
        options=(
            Option(name="--head", help="only if this is the commit or hash that waits", metavar="SHA"),
            Option(name="--why", help="something to say with it", metavar="TEXT"),
        ),
        examples=("landlane gate approve L3", "landlane gate approve G4 --why 'but keep a copy'"),
    ),
    Command(
        path="gate reject",
        handler="gate:reject",
        summary="Say no, with a reason for whoever asked. Only a person can.",
        arguments=(_ID,),
        options=(Option(name="--why", help="the reason, for whoever asked", metavar="TEXT"),),
        examples=("landlane gate reject L3 --why 'the price must not change'",),
    ),
    Command(
        path="gate withdraw",
        handler="gate:withdraw",
        summary="Take a question of yours back, and go on with the task.",
        arguments=(_ID,),
        options=(Option(name="--why", help="the reason", metavar="TEXT"),),
        examples=("landlane gate withdraw G4",),
    ),
    Command(
        path="watch",
        handler="watch:watch",
        summary="Look for what somebody should hear of, write each of it down once, and send it on.",
        details=(
            "New commits and changed dependencies on the target, red checks, a stalled or paused queue,\n"
            "a paused pool, stale claims, dead sessions, and what waits for a person. Nothing else changes.\n"
            "[notify] in landlane.toml names a command or a webhook that gets each event once."
        ),
        options=(
            Option(name="--once", help="look once and end", is_flag=True),
            Option(name="--interval", help="how long to rest between two looks", metavar="D"),
            Option(name="--past", help="show what was seen so far, and look at nothing", is_flag=True),
        ),
        examples=("landlane watch", "landlane watch --once --json", "landlane watch --interval 10s"),
    ),
)
