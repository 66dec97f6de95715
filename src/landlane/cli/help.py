"""`landlane help`: print the command overview, one noun or one command, from the table of commands."""

from __future__ import annotations

import textwrap

from landlane.cli.parse import find_command
from landlane.cli.specs.table import HEADINGS, LISTED_ALONE, commands_of
from landlane.errors import Malformed
from landlane.text import nearest_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from landlane.cli.command import CommandCall
    from landlane.cli.specs.model import Command


_WIDTH = 100
_BRIEF = HEADINGS[:-2]  # the commands of the first month
_SHARED = HEADINGS[-2]


def show(call: CommandCall, words: tuple[str, ...], all: bool) -> int:
    """Print help for a command or a noun, or the overview."""
    call.terminal.answer({"ok": True, "help": help_text(words, is_full=all)}, help_text(words, is_full=all))
    return 0


def help_text(words: Sequence[str], *, is_full: bool = False) -> str:
    """Return the help for these words.

    Raises:
        Malformed: there is no such command.
    """
    path = " ".join(words)
    if not path:
        return _overview(is_full=is_full)
    commands = commands_of(words[0])
    command = find_command(path)
    if command is not None and len(commands) == 1:
        return command_help(command)
    if commands and len(words) == 1:
        return _noun_help(path, commands)
    if command is not None:
        return command_help(command)
    known = [name for heading in HEADINGS for name in heading.lines] + [one.path for one in commands]
    meant = nearest_word(path, known)
    raise Malformed(
        f"unknown command {path}",
        code="BAD_CALL",
        hint=f"landlane help {meant}" if meant else "landlane help --all",
    )


def _overview(*, is_full: bool) -> str:
    parts = ["Many coding agents, one repository, nothing lost.", "Usage: landlane [COMMAND] [OPTIONS]"]
    shown = HEADINGS if is_full else _BRIEF
    width = max(len(name) for heading in shown for name in heading.lines) + 2
    parts += ["\n".join([heading.title, *_columns(heading.lines.items(), width)]) for heading in shown]
    common = "--as NAME, --repo DIR, --json, -v, -q, -h"
    if is_full:
        parts.append(f"Any command     {common}")
    else:
        names = ", ".join(_SHARED.lines)
        parts.append(
            f"{_SHARED.title:<16}{names}\n{'Everything':<16}landlane help --all\n{'Any command':<16}{common}"
        )
    return "\n\n".join(parts)


def _noun_help(noun: str, commands: Sequence[Command]) -> str:
    own, alone = find_command(noun), find_command(LISTED_ALONE.get(noun, ""))
    if own is not None:
        parts, title = [command_help(own)], ["Commands"]
    else:
        summary = next(heading.lines[noun] for heading in HEADINGS if noun in heading.lines)
        verb = "[COMMAND]" if alone else "COMMAND"
        parts = [f"{summary}." + (f" Alone: {_lower(alone.summary)}" if alone else "")]
        parts.append(f"Usage: landlane {noun} {verb} [OPTIONS]")
        title = []
    verbs = [
        (one.path.removeprefix(f"{noun} "), one.summary.rstrip(".")) for one in commands if one is not own
    ]
    parts.append("\n".join([*title, *_columns(verbs)]))
    parts.append(f"Options and examples: landlane help {noun} {verbs[0][0]}")
    return "\n\n".join(parts)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def command_help(command: Command) -> str:
    """Return the help of one command."""
    arguments = " ".join(argument.label for argument in command.arguments)
    parts = [command.summary, f"Usage: landlane {command.path} {arguments}".rstrip() + " [OPTIONS]"]
    if command.details:
        parts.append("\n".join(textwrap.fill(line, _WIDTH) for line in command.details.split("\n")))
    if command.options:
        options = ((option.label, _option_help(option.help, option.default)) for option in command.options)
        parts.append("\n".join(["Options", *_columns(options)]))
    if command.examples:
        parts.append("\n".join(["Examples", *(f"  {line}" for line in command.examples)]))
    if command.exits:
        parts.append(f"Exit codes: {command.exits}")
    return "\n\n".join(parts)


def _option_help(text: str, default: str) -> str:
    return f"{text} (default: {default})" if default else text


def _columns(rows: Iterable[tuple[str, str]], width: int = 0) -> list[str]:
    listed = list(rows)
    width = width or max(len(name) for name, _ in listed) + 2
    return [f"  {name:<{width}}{text}" for name, text in listed]
