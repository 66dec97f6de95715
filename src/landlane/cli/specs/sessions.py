"""Commands: join, leave."""

from __future__ import annotations

from landlane.cli.specs.model import Argument, Command, Option

SESSION_COMMANDS: tuple[Command, ...] = (
    Command(
        path="join",
        handler="sessions:join",
        summary="Begin a session under a name, or attach to the one that lives.",
        arguments=(Argument(name="name"),),
        options=(
            Option(name="--role", help="what this agent may do", metavar="R"),
            Option(
                name="--pid",
                help="the process that stands for it; its children act as this agent",
                metavar="PID",
            ),
        ),
        examples=(
            "landlane join ann",
            "landlane join ann --role code --pid $$",
            "landlane join ann --json",
        ),
        details=(
            "The answer holds the session's secret. Children act for the session with\n"
            "LANDLANE_SESSION=<id>:<secret>; on this machine and for this user --as NAME is enough."
        ),
    ),
    Command(
        path="leave",
        handler="sessions:leave",
        summary="End the session and release all it holds.",
        examples=("landlane leave --as ann",),
    ),
)
