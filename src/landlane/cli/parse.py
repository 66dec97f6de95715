"""Read the words of a call: find the command, its arguments and its options, or say what is wrong."""

from __future__ import annotations

from landlane.cli.specs.table import COMMON, HEADINGS, LISTED_ALONE, NO_COMMAND, SHORT, commands_of
from landlane.clock import is_bare_number, needs_unit, parse_duration
from landlane.errors import Malformed
from landlane.text import nearest_word, shell_quote
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from landlane.cli.specs.model import Argument, Command, Option


# An empty value here would act as another agent, check nothing or mean something else than what was typed.
_NEVER_EMPTY = {"--as", "--repo", "--token", "--pid", "--commit", "--ttl", "--since", "--last", "--wait"}
_IDS = ("gate", "landing", "rescue", "review", "task", "workspace")  # arguments and options that name one
_INSTANTS = ("--since", "--until", "--at")  # take a date or a time of day
# Words that people try, and former names, with the command that they mean.
_SYNONYMS = {
    "accept": "handoff accept",
    "add": "task add",
    "approve": "gate approve",
    "decline": "handoff decline",
    "fan": "task split",
    "fanout": "task split",
    "free": "release",
    "history": "log",
    "install": "init",
    "journal": "log",
    "list": "task list",
    "lock": "claim",
    "logs": "log",
    "ls": "task list",
    "merge": "land",
    "pause": "run pause",
    "pool": "run",
    "ps": "status",
    "push": "land",
    "reject": "gate reject",
    "restore": "rescue restore",
    "resume": "run resume",
    "retry": "task retry",
    "settings": "config list",
    "setup": "init",
    "show": "task show",
    "split": "task split",
    "start": "run",
    "stray": "misplaced",
    "submit": "land",
    "tasks": "task list",
    "unclaim": "release",
    "unlock": "release",
    "version": "--version",
    "watch": "status --watch",
    "work": "next",
    "worker": "run --forever",
    "workspaces": "workspace list",
    "worktree": "workspace",
}


# Verbs that people try, with those that they may mean; the first that a noun has is suggested.
_VERBS = {
    "cancel": ("drop", "withdraw", "eject"),
    "create": ("add", "open", "take", "ask"),
    "delete": ("drop", "free", "close"),
    "get": ("show",),
    "info": ("show",),
    "ls": ("list",),
    "new": ("add", "open", "take", "ask"),
    "remove": ("drop", "free", "close", "eject"),
    "reopen": ("retry", "unblock"),
    "rm": ("drop", "free", "close", "eject"),
    "set": ("edit",),
    "status": ("show", "list"),
    "update": ("edit",),
    "view": ("show",),
}
_TASK_VERBS = {
    "claim": "next", "close": "done", "complete": "done", "finish": "done", "pick": "next",
    "start": "next", "take": "next", "done": "done", "fail": "fail", "next": "next",
}  # fmt: skip
# Options that people try, with those that they may mean.
_OPTIONS = {
    "--agent": ("--as",),
    "--depends-on": ("--after",),
    "--description": ("--body", "--note", "--summary"),
    "--comment": ("--why", "--note", "--summary"),
    "--message": ("--why", "--note", "--summary", "-m"),
    "-m": ("--why", "--note", "--summary", "--title"),
    "-f": ("--follow", "--force"),
    "-n": ("--last",),
    "--for": ("--ttl", "--wait"),
    "--limit": ("--last",),
    "--lines": ("--last",),
    "--name": ("--as",),
    "--reason": ("--why", "--note"),
    "--tail": ("--last", "--follow"),
    "--timeout": ("--wait", "--ttl"),
    "--user": ("--as",),
    "-V": ("--version",),
    "--watch": ("--follow",),
}
_SHOWN_BY = {
    "T": "task show",
    "L": "queue show",
    "G": "inbox",
    "V": "review show",
    "H": "handoff show",
    "R": "rescue show",
}
_LETTERS = {"task": "T", "queue": "L", "gate": "G", "review": "V", "handoff": "H", "rescue": "R"}
_FREE_TEXTS = ("title",)  # arguments of several words, which need quotes


@value
class ParsedCall:
    """A command and the values for its handler."""

    command: Command
    given: dict[str, Any]


def parse(words: Sequence[str]) -> ParsedCall:
    """Return the command that the words name, with the values for its handler.

    Raises:
        Malformed: the words are not a valid call; the hint is a call that works.
    """
    reader = _CommandLineReader(words)
    while (word := reader.take()) is not None:
        if word == "--":
            reader.read_rest()
        elif word.startswith("-") and word != "-" and not word[1:2].isdigit():  # -5 is a number, - is stdin
            reader.read_option(word)
        else:
            reader.read_word(word)
    return reader.finish()


class _CommandLineReader:
    """Reads one call from left to right; options may stand before and after the arguments."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = list(words)
        self._position = 0
        self._noun = ""
        self._has_verb = False
        self._command = NO_COMMAND  # until the words name another
        self._plain: list[str] = []
        self._given: dict[str, Any] = {}
        self._after_wait = ""  # the word after an option whose value was left out

    def take(self) -> str | None:
        """Return the next word, or None at the end."""
        if self._position >= len(self._words):
            return None
        self._position += 1
        return self._words[self._position - 1]

    def read_rest(self) -> None:
        """Read everything after `--`: the command to run, or arguments that look like options."""
        rest = self._words[self._position :]
        self._position = len(self._words)
        for argument in self._command.arguments:
            if argument.is_rest:
                self._given[argument.key] = tuple(rest)
                return
        self._plain += rest

    def read_word(self, word: str) -> None:
        """Read a word that is not an option: part of the command's name, or an argument."""
        if not self._noun:
            self._read_noun(word)
            return
        if not self._plain and not self._has_verb:
            found = find_command(f"{self._noun} {word}")
            if found is not None:
                self._command, self._has_verb = found, True
                return
            if self._command.path != self._noun:
                raise self._unknown_verb(word)
        self._plain.append(word)

    def _read_noun(self, word: str) -> None:
        commands = {command.path: command for command in commands_of(word)}
        if not commands:
            raise self._unknown_command(word)
        self._noun = word
        self._command = commands.get(word) or commands.get(LISTED_ALONE.get(word, "")) or NO_COMMAND

    def read_option(self, word: str) -> None:
        """Read an option and its value, if it takes one."""
        options = {option.name: option for option in (*COMMON, *self._coming_command().options)}
        name, equals, text = word.partition("=")
        if not word.startswith("--") and word[:2] in options:
            name, equals, text = word[:2], word[2:3], word[2:]  # -mTEXT
        option = options.get(SHORT.get(name, name))
        if option is None:
            self._command = self._coming_command()
            raise self._unknown_option(name, options)
        if option.key in self._given and not option.is_repeated:
            raise self._malformed(f"{name} is given twice", self._help())
        if option.is_flag:
            if equals:
                raise self._malformed(f"{name} takes no value", self._corrected(name))
            self._given[option.key] = True
            return
        if not equals:
            text = self._take_value(option, options)
        if not text and name in _NEVER_EMPTY:
            raise self._malformed(f"{name} needs a value", self._help())
        if option.metavar == "TIME":
            self._check_time(option, text, f"{name}=" if equals and word.startswith("--") else "")
        text = as_id(text) if option.completes in _IDS else text
        self._given[option.key] = (*self._given.get(option.key, ()), text) if option.is_repeated else text

    def _check_time(self, option: Option, text: str, before: str) -> None:
        """Refuse a number without a unit, and a start of a period that is not one; hint at the right call."""
        name = option.name
        if name == "--since" and not _is_start(text):
            hint = f'use 2h, 3d, 14:30, a date or "all": {self._corrected(f"{before}1d")}'
            raise Malformed(f"{name} {text[:40]} is not a time", code="BAD_PERIOD", hint=hint)
        if name not in _INSTANTS and text != option.alone and not is_bare_number(text):
            self._check_duration(name, text, before)
        elif name not in _INSTANTS and is_bare_number(text):
            units = (("minutes", "m"), ("seconds", "s"))
            number = text.strip()
            hints = [f"{number} {unit}: {self._corrected(f'{before}{number}{sign}')}" for unit, sign in units]
            raise needs_unit(text, name, "\n".join(hints))

    def _check_duration(self, name: str, text: str, before: str) -> None:
        try:
            parse_duration(text, what=name)
        except Malformed as error:
            error.hint = f"use 45s, 30m, 1h30m or 2d: {self._corrected(f'{before}30m')}"
            raise

    def _coming_command(self) -> Command:
        """Return the command whose options may stand here: options of a verb may come before it."""
        if not self._has_verb and self._noun:
            for word in self._words[self._position :]:
                found = find_command(f"{self._noun} {word}")
                if found is not None or word == "--":
                    return found or self._command
        return self._command

    def _take_value(self, option: Option, options: Iterable[str]) -> str:
        following = self._words[self._position] if self._position < len(self._words) else None
        if option.alone and (following is None or not self._is_time(following)):
            self._after_wait = following or ""
            return option.alone
        if following is None or following in options or following in ("--", "-h"):  # `--note=--json` is meant
            example = f"{option.name} 30m" if option.metavar == "TIME" else option.label
            hint = self._working(self._corrected(example))
            raise self._malformed(f"{option.name} needs a value", hint)
        self._position += 1
        return following

    def _is_time(self, word: str) -> bool:
        """Return whether a word after `--wait` is its value; a command without arguments takes any word."""
        return word[:1].isdigit() or not (word.startswith("-") or self._command.arguments)

    def finish(self) -> ParsedCall:
        """Return the call, with every argument and option that its handler expects."""
        if self._given.pop("help", False):
            path = self._command.path if self._has_verb else self._noun
            self._command, self._plain = find_command("help") or NO_COMMAND, path.split()
            self._given = {key: self._given[key] for key in ("json", "as", "repo") if key in self._given}
        elif self._noun in LISTED_ALONE and self._command.path == self._noun and not self._plain:
            self._command = find_command(LISTED_ALONE[self._noun]) or self._command
        elif self._noun and self._command is NO_COMMAND:
            verbs = [command.path.removeprefix(f"{self._noun} ") for command in commands_of(self._noun)]
            raise self._malformed(f"{self._noun} needs a command: {', '.join(verbs)}", self._help())
        command, given = self._command, self._given
        options = {option.key: option for option in (*COMMON, *command.options) if option.key != "help"}
        for key in given:
            if key not in options and not any(argument.is_rest for argument in command.arguments):
                raise self._unknown_option("--" + key.replace("_", "-"), ())
        self._read_arguments()
        return ParsedCall(
            command=command, given={key: option.value_if_absent for key, option in options.items()} | given
        )

    def _read_arguments(self) -> None:
        for argument in self._command.arguments:
            if argument.is_rest:
                given = self._given.setdefault(argument.key, ())
                self._read_missing(argument, bool(given) or argument.is_optional)
            elif argument.is_many:
                self._read_missing(argument, bool(self._plain) or argument.is_optional)
                self._given[argument.key], self._plain = tuple(self._plain), []
            else:
                self._read_missing(argument, bool(self._plain) or argument.is_optional)
                word = self._plain.pop(0) if self._plain else ""
                self._given[argument.key] = as_id(word) if argument.completes in _IDS else word
        if self._plain:
            if self._after_wait and self._after_wait in self._plain:
                parse_duration(self._after_wait, what="--wait")
            raise self._too_many_words()

    def _too_many_words(self) -> Malformed:
        """Return the error for words that the command has no place for; a title may lack its quotes."""
        extra = ", ".join(self._plain)
        hint = show_call(self._plain[0]) or self._help()
        if self._command.path == "inbox" and show_call(self._plain[0]):
            hint = f"landlane inbox {as_id(self._plain[0])}"
        if self._command.arguments and self._command.arguments[-1].key in _FREE_TEXTS:
            start = self._words.index(self._plain[0]) - 1
            joined = " ".join([self._words[start], *self._plain])
            rest = [word for word in self._words[start + 1 :] if word not in self._plain]
            hint = call_text([*self._words[:start], joined, *rest])
            return self._malformed(f"{self._path()} takes one title; put it in quotes", hint)
        takes = " and ".join(argument.name for argument in self._command.arguments) or "no arguments"
        verb = "is" if len(self._plain) == 1 else "are"
        return self._malformed(f"{self._path()} takes {takes}; {extra} {verb} too much", hint)

    def _read_missing(self, argument: Argument, is_there: bool) -> None:
        if not is_there:
            example = next(iter(self._command.examples), "")
            raise self._malformed(f"{self._path()} needs {argument.missing}", f"for example: {example}")

    def _path(self) -> str:
        return self._noun if self._command is NO_COMMAND else self._command.path

    def _help(self) -> str:
        return f"landlane help {self._path()}".rstrip()

    def _corrected(self, right: str) -> str:
        """Return the call with the word that was read last replaced."""
        return call_text([*self._words[: self._position - 1], *right.split(), *self._words[self._position :]])

    def _working(self, call: str) -> str:
        """Return a call if it can be read, else an example of the command."""
        words = split_call(call)
        try:
            if words != ["--version"]:
                parse(words)
        except Malformed:
            example = next(iter(self._command.examples), "")
            return f"for example: {example}" if example else self._help()
        return call

    def _malformed(self, message: str, hint: str) -> Malformed:
        return Malformed(message, code="BAD_CALL", hint=hint)

    def _unknown_command(self, word: str) -> Malformed:
        known = [name for heading in HEADINGS for name in heading.lines]
        meant = _SYNONYMS.get(word) or _nearest(word, (*known, *_SYNONYMS))
        meant = _SYNONYMS.get(meant, meant)
        hint = show_call(word) or (self._corrected(meant) if meant else "landlane help --all")
        if word == "landlane":  # the name of the program twice
            hint = call_text(self._words[self._position :])
        return self._malformed(f"unknown command {word}", hint)

    def _unknown_verb(self, word: str) -> Malformed:
        verbs = [command.path.removeprefix(f"{self._noun} ") for command in commands_of(self._noun)]
        synonym = next((verb for verb in _VERBS.get(word.lower(), ()) if verb in verbs), "")
        meant = synonym or _nearest(word, verbs)
        hint = self._corrected(meant) if meant else f"landlane help {self._noun}"
        if self._noun == "task" and word.lower() in _TASK_VERBS:
            verb = _TASK_VERBS[word.lower()]
            hint = call_text([verb] if verb == "next" else [verb, *self._words[self._position :]])
        letter = _LETTERS.get(self._noun, "") if word.isdecimal() else ""
        hint = show_call(f"{letter}{word}") or hint
        return self._malformed(f"{self._noun} has no command {word}", hint)

    def _unknown_option(self, name: str, known: Iterable[str]) -> Malformed:
        known = [*known, *(() if self._noun else ("--version",))]
        synonym = next((option for option in _OPTIONS.get(name, ()) if option in known), "")
        # Another agent's name is a wrong guess for anything longer, such as --task.
        meant = synonym or _nearest(
            name, [one for one in known if one != "--as" or len(name) <= len("--ass")]
        )
        path = self._path() or "landlane"
        hint = self._working(self._corrected(meant)) if meant else self._with_verb(name) or self._help()
        return self._malformed(f"{path} has no option {name}", hint)

    def _with_verb(self, name: str) -> str:
        """Return the call with the verb whose option this is, where a noun was given alone."""
        alone = LISTED_ALONE.get(self._noun, "")
        is_alone = self._command is NO_COMMAND or self._command.path == self._noun
        command = find_command(alone) if is_alone and not self._plain else None
        if command is None or all(option.name != name for option in command.options):
            return ""
        rest = list(self._words)
        rest.remove(self._noun)
        return call_text([*alone.split(), *rest])


def find_command(path: str) -> Command | None:
    """Return the command with exactly this name."""
    for command in commands_of(path.partition(" ")[0]):
        if command.path == path:
            return command
    return None


def show_call(word: str) -> str:
    """Return the call that shows what an id names; empty for other words."""
    word = as_id(word)
    command = _SHOWN_BY.get(word[:1], "") if word[1:].isdecimal() and word.isascii() else ""
    return f"landlane {command} {word}" if command else ""


def as_id(word: str) -> str:
    """Return an id in its usual form: `t12` means T12."""
    return word.upper() if word[:1].isascii() and word[:1].islower() and word[1:].isdecimal() else word


def split_call(text: str) -> list[str]:
    """Return the words of a call behind the name of the program, as a shell splits them.

    Raises:
        ValueError: a quote is not closed.
    """
    from shlex import split  # noqa: PLC0415 - only a mistake or a hint needs it

    return split(text)[1:]


def call_text(words: Iterable[str]) -> str:
    """Return a call as a shell accepts it."""
    return " ".join(["landlane", *(word if word[:1] == "[" else shell_quote(word) for word in words)])


def _is_start(text: str) -> bool:
    """Return whether a text looks like the start of a period: 2h, 14:30, a date or "all"."""
    if text == "all" or text[:4].isdigit() or (text[:1].isdigit() and ":" in text):
        return not is_bare_number(text)
    try:
        parse_duration(text)
    except Malformed:
        return False
    return True


def _nearest(word: str, known: Iterable[str]) -> str:
    return nearest_word(word.lower(), known, cutoff=0.7 if word.startswith("-") else 0.6)
