"""The commands about landing, sync and deploy, as part of the table of commands."""

from __future__ import annotations

from landlane.cli.specs.model import Argument, Command, Option

_LANDING = Argument(name="landing", help="the entry's id, such as L3")

LANDING_COMMANDS: tuple[Command, ...] = (
    Command(
        path="land",
        handler="land:land",
        summary="Submit a branch to the landing queue; it holds your claims until it has landed or bounced.",
        arguments=(Argument(name="branch", help="the current branch when left out", is_optional=True),),
        options=(
            Option(name="--task", help="the task it is for; found by the branch", metavar="T"),
            Option(name="--wait", help="run the queue and show each stage until it has ended", is_flag=True),
        ),
        examples=("landlane land --wait", "landlane land landlane/T7-1/work --task T7"),
    ),
    Command(
        path="queue list",
        handler="queue_list:list_all",
        summary="What is on its way to the target branch.",
        options=(
            Option(name="--all", help="also what has ended", is_flag=True),
            Option(
                name="--conflicts",
                help="which open branches conflict, which files are hot, which order is best",
                is_flag=True,
            ),
        ),
        examples=("landlane queue list", "landlane queue list --conflicts"),
    ),
    Command(
        path="queue run",
        handler="queue:run_queue",
        summary="Run the queue: merge, test exactly the merged tree, move the target.",
        options=(
            Option(name="--drain", help="end when nothing is left to do", is_flag=True),
            Option(name="--wait", help="how long to wait for another runner", metavar="D"),
        ),
        examples=("landlane queue run --drain", "landlane queue run"),
    ),
    Command(
        path="queue show",
        handler="queue_list:show",
        summary="One entry whole, with what its checks said.",
        arguments=(_LANDING,),
        examples=("landlane queue show L3",),
    ),
    Command(
        path="queue eject",
        handler="queue:eject",
        summary="Take an entry out of the queue; its branch and its claims go back to the author.",
        arguments=(_LANDING,),
        options=(Option(name="--why", help="the reason", metavar="TEXT"),),
        examples=("landlane queue eject L3 --why 'wrong branch'",),
    ),
    Command(
        path="queue resume",
        handler="queue:resume",
        summary="Go on after the queue paused, from where the target stands now.",
        options=(Option(name="--why", help="the reason", metavar="TEXT"),),
        examples=("landlane queue resume --why 'the rewind was meant'",),
    ),
    Command(
        path="sync",
        handler="sync:sync",
        summary="Fetch, and tell how far this branch is behind and ahead; exit 4 when behind.",
        options=(
            Option(name="--update", help="bring it up to date by merge or rebase", metavar="HOW"),
            Option(name="--no-check", help="do not run the checks after an update", is_flag=True),
        ),
        examples=("landlane sync", "landlane sync --update rebase"),
    ),
    Command(
        path="deploy",
        handler="deploy:deploy",
        summary="Run a command as the only deploy to a target, unless it would ship something old.",
        arguments=(
            Argument(name="target", help="as under [deploy.…] in landlane.toml, or any name"),
            Argument(name="command", help="the command and its words", is_rest=True),
        ),
        options=(
            Option(name="--wait", help="how long to wait for another deploy", metavar="D", default="30m"),
        ),
        examples=("landlane deploy prod -- make deploy",),
    ),
    Command(
        path="deploy history",
        handler="deploy:history",
        summary="Who deployed what, and what is live.",
        options=(Option(name="--target", help="only this one", metavar="NAME"),),
        examples=("landlane deploy history", "landlane deploy history --target prod"),
    ),
)
