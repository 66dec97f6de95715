"""The commands that run tasks by workers, as part of the table of commands."""

from __future__ import annotations

from landlane.cli.specs.model import Argument, Command, Option

_WORKERS = Option(name="--workers", help="how many at once; else [run] workers", metavar="N")
_AGENT = Option(name="--agent", help="who does tasks that name nobody, such as claude", metavar="A")
_OFFLINE = Option(name="--offline", help="begin from what was fetched last", is_flag=True)

RUN_COMMANDS: tuple[Command, ...] = (
    Command(
        path="run",
        handler="run:run",
        summary="Let workers do the tasks of a plan, or all that are ready, and land what they make.",
        arguments=(Argument(name="plan", help="a plan as TOML or Markdown", is_optional=True),),
        options=(
            _WORKERS,
            _AGENT,
            Option(name="--until-empty", help="also wait for what others have in hand", is_flag=True),
            Option(name="--force", help="also add tasks that look like others", is_flag=True),
            _OFFLINE,
        ),
        examples=(
            "landlane run plan.toml",
            "landlane run --agent claude --workers 3",
            "landlane run PLAN.md --until-empty --json",
        ),
        details=(
            "Each worker has its own session, checkout and sandbox. Ctrl-C once begins nothing more\n"
            "and waits for what runs; twice ends it: the tasks go back into the queue, and nothing is lost.\n"
            "Exit code 0: all is done; 1: some task failed or is left; 7: the rest waits for a person."
        ),
    ),
    Command(
        path="worker",
        handler="run:work",
        summary="Lend this machine to the queue: take tasks as they become ready, until it is told to stop.",
        options=(
            _WORKERS,
            _AGENT,
            Option(name="--until-empty", help="end when no task is open any more", is_flag=True),
            _OFFLINE,
        ),
        examples=("landlane worker --workers 2", "landlane worker --agent codex --until-empty"),
        details="Several may run, also on several machines with one PostgreSQL: a task is taken once.",
    ),
)
