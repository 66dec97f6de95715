"""The commands about the pool of workers, as part of the table of commands."""

from __future__ import annotations

from landlane.cli.specs.model import Command, Option

POOL_COMMANDS: tuple[Command, ...] = (
    Command(
        path="pool show",
        handler="pool:show",
        summary="Whether workers are started, what keeps them from it, and how many of each kind.",
        examples=("landlane pool show", "landlane pool show --json"),
        details=(
            "The same failure of the environment on three tasks pauses the pool: no task is charged for it,\n"
            "and nothing is started before somebody has mended it and says `pool resume`."
        ),
    ),
    Command(
        path="pool pause",
        handler="pool:pause",
        summary="Start no further work, with a reason; what runs goes on.",
        options=(Option(name="--why", help="the reason, for whoever looks", metavar="TEXT"),),
        examples=("landlane pool pause --why 'the registry is down'",),
    ),
    Command(
        path="pool resume",
        handler="pool:resume",
        summary="Start work again, once what paused the pool is mended.",
        examples=("landlane pool resume",),
    ),
)
