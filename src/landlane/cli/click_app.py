"""The full command line, built on click: help, completion, and errors for malformed calls."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from landlane.cli.dispatch import run_command
from landlane.cli.fast_parse import read_call
from landlane.cli.specs.table import COMMANDS, COMMON, STANDING, Command
from landlane.cli.terminal import Terminal
from landlane.errors import Malformed
from landlane.version import __version__

if TYPE_CHECKING:
    from landlane.cli.specs.table import Option


_NOUNS = {
    "deploy": "One deploy at a time to a target, and never an old one: deploy TARGET -- CMD; deploy history.",
    "fan": "Tasks that were split, and what their branches brought.",
    "gate": "What waits for a person.",
    "handoff": "From one agent to the next: handoff TASK --to AGENT; handoff show TASK; handoff list.",
    "plan": "What is to be done, written down in a file.",
    "pool": "Whether workers are started: paused when their environment is broken.",
    "queue": "The way onto the target branch.",
    "review": "What others say of a commit before it lands.",
    "role": "What an agent may do: tools, paths and verbs, and which guards enforce it.",
    "rules": "What every session works by: rules shows them; rules ack says that you read them.",
    "rescue": "Work that was saved before something was removed.",
    "stash": "Changes put aside, for each checkout its own.",
    "stray": "Changes that lie in the wrong checkout.",
    "workspace": "A checkout and a branch of its own for each task.",
    "number": "Distinct numbers, as for migrations: number KIND gives one, number list KIND shows all.",
    "slot": "Ports, names and amounts that one session holds at a time.",
    "state": "Shared values under keys, each with a version.",
    "store": "Where the state lives.",
    "task": "The work queue.",
    "usage": "What was spent: usage shows totals; usage add and usage import book.",
}


# Without its value each of these would act as another agent or check nothing.
_NEVER_EMPTY = {"--as", "--repo", "--token", "--pid", "--commit", "--ttl", "--since", "--last"}
_OPTION_NAMES = {option.name for command in COMMANDS for option in (*command.options, *COMMON)}


def run_with_click(words: list[str]) -> int:
    """Run a call through click and return the exit code."""
    call = read_call(words) if "_LANDLANE_COMPLETE" not in os.environ else None
    if call is not None and call[0] is STANDING:  # click would report a missing command
        return run_command(*call) or 0
    try:
        # With _LANDLANE_COMPLETE set, click answers a shell's completion request.
        code = build().main(args=words, prog_name="landlane", standalone_mode=False)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        return _explain_all(error, words)
    except click.ClickException as error:
        return _explain(error, words)
    except click.Abort:
        return 130
    return code if isinstance(code, int) else 0


def _explain_all(error: click.exceptions.NoArgsIsHelpError, words: list[str]) -> int:
    """Show the help when no command was given."""
    terminal = Terminal(is_json=_wants_json(words))
    if terminal.is_json:
        return _explain(click.UsageError("no command was given", error.ctx), words)
    terminal.note(error.format_message())
    return 2


def _explain(error: click.ClickException, words: list[str]) -> int:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "landlane"
    message = error.format_message()
    ours = Malformed(message, code="BAD_CALL", hint=f"`{path} --help` shows how, with examples")
    return Terminal(is_json=_wants_json(words)).fail(ours)


def _wants_json(words: list[str]) -> bool:
    """Return whether --json was given before `--`; after it, the option belongs to the command to run."""
    return "--json" in (words[: words.index("--")] if "--" in words else words)


def build() -> click.Group:
    """Return all commands as click commands."""
    root = click.Group(
        "landlane",
        help="Many coding agents, one repository, nothing lost.",
        epilog="Every command takes --json, --as NAME and --repo DIR. Where you stand: landlane",
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        params=[
            click.Option(
                ["--version"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_show_version,
                help="Show the version.",
            ),
            *_common_options(),
        ],
        no_args_is_help=True,
    )
    for command in COMMANDS:
        noun, _, verb = command.path.partition(" ")
        if verb:
            group = root.commands.get(noun)
            if not isinstance(group, click.Group):
                alone = group  # the noun is also a command
                group = _Noun(noun, help=_NOUNS[noun], params=_common_options(), no_args_is_help=True)
                group.alone = alone
                root.add_command(group)
            group.add_command(_build_command(command, verb))
        else:
            root.add_command(_build_command(command, noun))
    return root


class _Noun(click.Group):
    """A group of verbs that may also be a command by itself: `number list KIND` and `number KIND`."""

    alone: click.Command | None = None

    def get_help(self, ctx: click.Context) -> str:
        shown = super().get_help(ctx)
        if self.alone is None:
            return shown
        by_itself = click.Context(self.alone, info_name=self.name, parent=ctx.parent)
        return f"{self.alone.get_help(by_itself)}\n\n{shown}"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.ignore_unknown_options = self.alone is not None  # the noun's own options
        if self.alone is not None and not any(parameter.required for parameter in self.alone.params):
            self.no_args_is_help, self.invoke_without_command = False, True
            self.callback = self._run_alone
        return super().parse_args(ctx, args)

    def _run_alone(self, **_: object) -> Any:
        """Run the noun's own command when no verb was given; click calls this before a verb, too."""
        ctx = click.get_current_context()
        if self.alone is None or ctx.invoked_subcommand is not None:
            return None
        with self.alone.make_context(self.alone.name, [], parent=ctx) as by_itself:
            return self.alone.invoke(by_itself)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.alone is not None and args and args[0] not in self.commands:
            return self.alone.name, self.alone, args
        return super().resolve_command(ctx, args)


def _show_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"landlane {__version__}")
        context.exit()


def _common_options() -> list[click.Parameter]:
    return [_click_option(option) for option in COMMON]


def _click_option(option: Option) -> click.Option:
    return click.Option(
        [option.name, option.key],
        help=option.help,
        is_flag=option.is_flag,
        default=option.start,
        multiple=option.is_repeated,
        metavar=option.metavar or None,
        show_default=bool(option.default) and not option.is_flag,
        callback=_refuse_forgotten,
    )


def _refuse_forgotten(context: click.Context, option: Any, given: Any) -> Any:
    """Refuse an option without its value: the next option was taken for it, or a variable was empty.

    `--note=--json` passes such a value on purpose.
    """
    name = option.opts[0]
    values: tuple[object, ...] = tuple(given) if option.multiple else (given,)
    is_said = context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
    if not _OPTION_NAMES.isdisjoint(values) or (is_said and given == "" and name in _NEVER_EMPTY):
        raise click.BadOptionUsage(name, f"Option '{name}' requires an argument.", context)
    return given


def _build_command(command: Command, name: str) -> click.Command:
    params: list[click.Parameter] = [
        click.Argument(
            [argument.key],
            nargs=-1 if argument.is_many or argument.is_rest else 1,
            required=not argument.is_optional,
            # Only if set: click accepts a default of None as the value of a required argument.
            **({"default": ""} if argument.is_optional and not argument.is_many else {}),
            metavar=f"[{argument.shown}]" if argument.is_optional else argument.shown,
            type=click.UNPROCESSED if argument.is_rest else None,
        )
        for argument in command.arguments
    ]
    params += [_click_option(option) for option in command.options]
    params += _common_options()
    details = f"\n\n\b\n{command.details}" if command.details else ""
    examples = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in command.examples)
    return click.Command(
        name,
        params=params,
        callback=_callback(command),
        help=command.summary + details,
        short_help=command.summary,
        epilog=examples if command.examples else None,
    )


def _callback(command: Command) -> Any:
    def call(**given: Any) -> int:
        around = click.get_current_context().parent
        while around is not None:  # given before the command, or between the noun and the verb
            for option in COMMON:
                given[option.key] = given[option.key] or around.params.get(option.key)
            around = around.parent
        return run_command(command, given)

    return call
