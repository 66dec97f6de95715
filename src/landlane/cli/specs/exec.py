"""The command that runs others in their sandbox, as part of the table of commands."""

from __future__ import annotations

from landlane.cli.specs.model import Argument, Command, Option

EXEC_COMMANDS: tuple[Command, ...] = (
    Command(
        path="exec",
        handler="exec:execute",
        summary="Run any command as an agent in its sandbox: its own clone, its role, the kernel's rules.",
        arguments=(Argument(name="command", help="what to run", is_rest=True),),
        options=(
            Option(name="--role", help="what the agent may do", metavar="R", default="explore"),
            Option(name="--name", help="what the agent is called", metavar="NAME"),
            Option(name="--task", help="the task it works on; its workspace is a clone", metavar="T"),
        ),
        examples=(
            "landlane exec --role review -- make test",
            "landlane exec --role code --task T7 -- claude -p 'do the task'",
            "landlane exec --role code --name ann -- make format",
        ),
        details=(
            "It writes in its clone and its scratch alone, and reaches the state through the resident.\n"
            "A role that changes no files gets a clone that is thrown away. What cannot be held here is\n"
            "said; [sandbox] required in the settings refuses to start without it."
        ),
    ),
)
