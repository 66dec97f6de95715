"""The commands about tasks, as part of the table of commands."""

from __future__ import annotations

from landlane.cli.specs.model import Argument, Command, Option

_TASK = Argument(name="task", help="the task's id, such as T7")
_WHY = Option(name="--why", help="the reason, for whoever comes next", metavar="TEXT")

TASK_COMMANDS: tuple[Command, ...] = (
    Command(
        path="task add",
        handler="task_add:add",
        summary="Add a task, or point out the one that looks like the same work.",
        arguments=(Argument(name="title"),),
        options=(
            Option(name="--body", help="a file with the description, - for standard input", metavar="F"),
            Option(
                name="--path", help="what it will change; may be given again", metavar="P", is_repeated=True
            ),
            Option(
                name="--after",
                help="a task that must be done first; again for more",
                metavar="T",
                is_repeated=True,
            ),
            Option(name="--role", help="only for agents in this role", metavar="R"),
            Option(
                name="--kind", help="what counts as evidence: code, output, chore or your own", metavar="K"
            ),
            Option(name="--output", help="the file that a task without git makes", metavar="P"),
            Option(name="--priority", help="each step is worth an hour of waiting", metavar="N"),
            Option(name="--max-attempts", help="how often it may fail", metavar="N"),
            Option(name="--check", help="the command that proves it, run by us", metavar="CMD"),
            Option(name="--key", help="adding the same key again changes nothing", metavar="K"),
            Option(
                name="--label", help="a word to find it by; may be given again", metavar="L", is_repeated=True
            ),
            Option(name="--parent", help="the task it was split from", metavar="T"),
            Option(name="--review", help="so many reviewers must approve it before it lands", metavar="N"),
            Option(
                name="--reviewer", help="who reviews it; may be given again", metavar="A", is_repeated=True
            ),
            Option(name="--decider", help="who decides if they disagree: an agent, or person", metavar="D"),
            Option(name="--next", help="what its owner should do first", metavar="TEXT"),
            Option(
                name="--force", help="add it though another looks like it; the link is kept", is_flag=True
            ),
        ),
        examples=(
            "landlane task add 'Parse dates' --path src/dates.py --check 'pytest tests/test_dates.py'",
            "landlane task add 'Release notes' --after T1 --after T2 --priority 2",
            "landlane task add 'Record the intro' --output intro.wav --check 'test -s intro.wav'",
        ),
    ),
    Command(
        path="task list",
        handler="task:list_all",
        summary="All tasks, as a table, as JSON, or as a checklist.",
        options=(
            Option(
                name="--state", help="only in this state; may be given again", metavar="S", is_repeated=True
            ),
            Option(name="--label", help="only with this label", metavar="L"),
            Option(name="--markdown", help="as a TASKS.md checklist", is_flag=True),
        ),
        examples=(
            "landlane task list",
            "landlane task list --state dead",
            "landlane task list --markdown > TASKS.md",
        ),
    ),
    Command(
        path="task import",
        handler="task:import_list",
        summary="Read a Markdown checklist in as tasks; reading it again adds nothing.",
        arguments=(Argument(name="file", help="a checklist such as TASKS.md"),),
        options=(Option(name="--force", help="also add what looks like another task", is_flag=True),),
        examples=("landlane task import TASKS.md",),
    ),
    Command(
        path="task show",
        handler="task:show",
        summary="One task, with everything known about it.",
        arguments=(_TASK,),
        examples=("landlane task show T7",),
    ),
    Command(
        path="task log",
        handler="task_log:log",
        summary="What happened to a task, attempt by attempt, and what its worker said.",
        arguments=(_TASK,),
        options=(
            Option(name="--attempt", help="the log of this attempt, not of the newest", metavar="N"),
            Option(name="--follow", help="go on as the worker speaks, until it ends", is_flag=True),
        ),
        examples=(
            "landlane task log T7",
            "landlane task log T7 --attempt 1",
            "landlane task log T7 --follow",
        ),
    ),
    Command(
        path="task after",
        handler="task:after",
        summary="Let a task wait for another; a ring is refused and shown.",
        arguments=(_TASK, Argument(name="before", help="the task that must be done first")),
        examples=("landlane task after T7 T3",),
    ),
    Command(
        path="task plan",
        handler="task_add:plan",
        summary="Say what a task will change; others that look like the same work are pointed out.",
        arguments=(_TASK, Argument(name="paths", help="what it will change", is_many=True)),
        options=(Option(name="--force", help="go on though another looks like it", is_flag=True),),
        examples=("landlane task plan T7 src/dates.py 'tests/dates/**'",),
    ),
    Command(
        path="task block",
        handler="task:block",
        summary="Keep a task from being offered, with a reason.",
        arguments=(_TASK,),
        options=(_WHY,),
        examples=("landlane task block T7 --why 'waits for the vendor'",),
    ),
    Command(
        path="task unblock",
        handler="task:unblock",
        summary="Offer a blocked task again; dependencies that were dropped are forgotten.",
        arguments=(_TASK,),
        examples=("landlane task unblock T7",),
    ),
    Command(
        path="task retry",
        handler="task_retry:retry",
        summary="Give a task that failed, died or was stopped another round of attempts.",
        arguments=(_TASK,),
        options=(Option(name="--why", help="what was mended, for whoever comes next", metavar="TEXT"),),
        examples=("landlane task retry T7", "landlane task retry T7 --why 'the token was renewed'"),
        details=(
            "Its history stays. From a person, all that belongs to it (retries, children, follow-ups) gets\n"
            "a fresh budget; and it answers for what was stopped: the question in `gate list` is withdrawn."
        ),
    ),
    Command(
        path="task drop",
        handler="task:drop",
        summary="Give a task up for good, with a reason.",
        arguments=(_TASK,),
        options=(_WHY,),
        examples=("landlane task drop T7 --why 'the feature was cancelled'",),
    ),
    Command(
        path="next",
        handler="task_next:next_one",
        summary="Take the best ready task whose paths are free, and its paths with it.",
        options=(
            Option(name="--role", help="as an agent in this role", metavar="R"),
            Option(name="--wait", help="wait for one at most so long", metavar="0s", default="0s"),
            Option(name="--resume", help="go on with the task in hand, if there is one", is_flag=True),
        ),
        examples=("landlane next --as ann", "landlane next --role test --wait 10m --json"),
        details=(
            "Exit 0 with a task; exit 5 when there was none in time: the answer says what is in the way.\n"
            "With a task that others had before come their feedback and their branches.\n"
            "An agent that was started anew under its name says --resume: its session may still have a task."
        ),
    ),
    Command(
        path="done",
        handler="task_done:done",
        summary="Say that a task is done; it is believed on evidence.",
        arguments=(_TASK,),
        options=(Option(name="--result", help="a file with the result, - for standard input", metavar="F"),),
        examples=("landlane done T7 --as ann", "landlane done T7 --result summary.md"),
        details=(
            "The answer tells how far it is (task.state) and each piece of evidence.\n"
            "Ask again when what was missing is there; until then those behind it stay blocked."
        ),
    ),
    Command(
        path="fail",
        handler="task_done:fail",
        summary="Give a task back with what was learned; after the last attempt it is dead.",
        arguments=(_TASK,),
        options=(_WHY, Option(name="--final", help="no further attempt will help", is_flag=True)),
        examples=("landlane fail T7 --why 'the API has no such endpoint'",),
    ),
)
