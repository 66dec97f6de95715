"""The forms that the table of commands is made of: options, arguments, commands."""

from __future__ import annotations

from landlane.values import value


@value
class Option:
    """`--name VALUE`, or a switch when it `is_flag`."""

    name: str
    help: str
    metavar: str = ""
    is_flag: bool = False
    default: str = ""
    is_repeated: bool = False

    @property
    def key(self) -> str:
        """The name of the parameter that the handler gets."""
        return self.name.lstrip("-").replace("-", "_")

    @property
    def start(self) -> object:
        """What the handler gets when the option is not given."""
        if self.is_flag:
            return False
        return () if self.is_repeated else self.default


@value
class Argument:
    """A positional word, or several; with `is_rest`, everything behind `--`."""

    name: str
    help: str = ""
    is_many: bool = False
    is_optional: bool = False
    is_rest: bool = False

    @property
    def key(self) -> str:
        """The name of the parameter that the handler gets."""
        return self.name

    @property
    def shown(self) -> str:
        """How it reads in a line of help."""
        if self.is_rest:
            return f"-- {self.name.upper()}…"
        return self.name.upper().rstrip("S") + ("…" if self.is_many else "")


@value
class Command:
    """One command: where its handler is, what it takes, and how its help reads."""

    path: str
    handler: str
    summary: str
    arguments: tuple[Argument, ...] = ()
    options: tuple[Option, ...] = ()
    examples: tuple[str, ...] = ()
    details: str = ""
