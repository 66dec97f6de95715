"""The commands about handoffs, as part of the table of commands."""

from __future__ import annotations

from landlane.cli.specs.model import Argument, Command, Option

_TASK = Argument(name="task", help="the task's id, such as T7")
_WHY = Option(name="--why", help="the reason, for whoever comes next", metavar="TEXT")

HANDOFF_COMMANDS: tuple[Command, ...] = (
    Command(
        path="handoff",
        handler="handoff:send",
        summary="Hand a task of yours to another agent, with what you know and what can be seen.",
        arguments=(_TASK,),
        options=(
            Option(name="--to", help="an agent, role:NAME, or anybody", metavar="AGENT"),
            Option(name="--product", help="a file with what came of it so far, - for stdin", metavar="F"),
            Option(name="--context", help="a file with what you found out, - for stdin", metavar="F"),
            Option(
                name="--constraint", help="what must hold; may be repeated", metavar="C", is_repeated=True
            ),
            Option(name="--next", help="the next step", metavar="TEXT"),
            Option(
                name="--blocker", help="what is in the way; may be repeated", metavar="B", is_repeated=True
            ),
            Option(
                name="--assumption",
                help="what you took for granted; may be repeated",
                metavar="A",
                is_repeated=True,
            ),
            Option(
                name="--field",
                help="a field of the project's own: NAME=VALUE; may be repeated",
                metavar="F",
                is_repeated=True,
            ),
            Option(name="--max", help="fewer handoffs than the project allows", metavar="N"),
        ),
        examples=(
            "landlane handoff T7 --to bob --next 'write the test' --as ann",
            "landlane handoff T7 --to role:test --product notes.md --context - --constraint 'keep the API'",
        ),
        details=(
            "Branch, head, changed paths, a copy of what is not committed, commands, claims and what was\n"
            "tried before are taken along by themselves. The task, its claims and its workspace are kept\n"
            "for the receiver; if it does not come in time, the task is anybody's. Exit 7: it was handed on\n"
            "as often as is allowed, and a person decides now."
        ),
    ),
    Command(
        path="handoff show",
        handler="handoff:show",
        summary="Show what was handed over with a task, or what its last owner left.",
        arguments=(Argument(name="task", help="the task's id, or that of a handoff"),),
        examples=("landlane handoff show T7", "landlane handoff show H3 --json"),
    ),
    Command(
        path="handoff list",
        handler="handoff_list:list_all",
        summary="The handoffs that wait to be accepted.",
        options=(Option(name="--all", help="also those that are over", is_flag=True),),
        examples=("landlane handoff list", "landlane handoff list --all --json"),
    ),
    Command(
        path="accept",
        handler="handoff:accept",
        summary="Take over a task that was handed to you: the task, its claims and its workspace at once.",
        arguments=(_TASK,),
        options=(Option(name="--hash", help="of what you have read; refused if it is another", metavar="H"),),
        examples=("landlane accept T7 --as bob", "landlane accept T7 --hash 3fa9c1d2e8b04455"),
        details=(
            "Without --hash you are shown what was handed over, and have acknowledged that.\n"
            "`landlane next` does the same for the best task that was handed to you."
        ),
    ),
    Command(
        path="decline",
        handler="handoff:decline",
        summary="Refuse a task that was handed to you, with a reason: it is anybody's then.",
        arguments=(_TASK,),
        options=(_WHY,),
        examples=("landlane decline T7 --why 'I have no access to the database' --as bob",),
    ),
)
