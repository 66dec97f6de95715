"""Parse a well-formed call from the command table alone; leave anything unusual to click."""

from __future__ import annotations

from landlane.cli.specs.table import COMMANDS, COMMON, STANDING, Command, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def read_call(words: list[str]) -> tuple[Command, dict[str, Any]] | None:
    """Return the command and its parameters, or None if click has to parse the call."""
    options: dict[str, Option] = {option.name: option for option in COMMON}
    given: dict[str, Any] = {}
    plain: list[str] = []
    command: Command | None = None
    rest = iter(words)
    for word in rest:
        if word == "--":
            _read_rest(command, rest, plain, given)
        elif _is_option(word):
            if not _read_option(word, rest, options, given):
                return None
        else:
            plain.append(word)
            found = _command_for(plain if command is None else [command.path, *plain])
            if found is not None:  # a noun may be a command itself: `number` and `number list`
                command, plain = found, []
                options.update({option.name: option for option in command.options})
    if command is None and not plain:
        command = STANDING
    if command is None or not _read_arguments(command, plain, given):
        return None
    for option in (*COMMON, *command.options):
        given.setdefault(option.key, option.start)
    return command, given


def _is_option(word: str) -> bool:
    """Return whether a word is an option; -5 is a number and - is a file."""
    return word.startswith("-") and word != "-" and not word[1:2].isdigit()


def _read_rest(command: Command | None, rest: Iterator[str], plain: list[str], given: dict[str, Any]) -> None:
    """Read the words after `--`: the command to run, or positional arguments."""
    for argument in command.arguments if command else ():
        if argument.is_rest:
            given[argument.key] = tuple(rest)
    plain += rest


def _command_for(words: list[str]) -> Command | None:
    path = " ".join(words)
    for command in COMMANDS:
        if command.path == path:
            return command
    return None


def _read_option(word: str, rest: Iterator[str], options: dict[str, Option], given: dict[str, Any]) -> bool:
    name, equals, text = word.partition("=")
    option = options.get(name)
    if equals and not word.startswith("--"):
        return False  # after a short option `=` is part of the value; click handles that
    if option is None or (option.key in given and not option.is_repeated):
        return False
    if option.is_flag:
        given[option.key] = True
        return not equals
    if not equals:
        text = next(rest, "")
    if not text or (not equals and text.startswith("--")):
        return False
    given[option.key] = (*given.get(option.key, ()), text) if option.is_repeated else text
    return True


def _read_arguments(command: Command, plain: list[str], given: dict[str, Any]) -> bool:
    for argument in command.arguments:
        if argument.is_rest:
            if not given.get(argument.key):
                return False
        elif argument.is_many:
            if not plain and not argument.is_optional:
                return False
            given[argument.key], plain = tuple(plain), []
        elif plain:
            given[argument.key] = plain.pop(0)
        elif argument.is_optional:
            given[argument.key] = ""
        else:
            return False
    return not plain
