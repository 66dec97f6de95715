"""The values that describe the command line: headings, commands, arguments and options."""

from __future__ import annotations

from landlane.values import value

# Parameters that name a file, or `-` for standard input. A sandboxed caller reads such a file itself, because
# its path is valid only in the sandbox.
FILE_KEYS = ("body", "result", "file", "product", "context", "plan", "findings")
FOREVER = "forever"  # the value of --wait without a time


@value
class Option:
    """`--name VALUE`, or a switch if it has no `metavar`."""

    name: str
    help: str
    metavar: str = ""
    default: str = ""
    alone: str = ""  # the value if none is given; only for options whose value may be left out
    is_repeated: bool = False
    completes: str = ""  # what a shell offers: task, agent, path, file, setting …
    choices: tuple[str, ...] = ()

    @property
    def is_flag(self) -> bool:
        """Return whether the option is a switch."""
        return not self.metavar

    @property
    def key(self) -> str:
        """Return the name of the handler's parameter."""
        key = self.name.lstrip("-").replace("-", "_")
        return f"{key}_" if key in ("for", "with") else key  # Python's own words

    @property
    def value_if_absent(self) -> object:
        """Return what the handler gets when the option is not given."""
        if self.is_flag:
            return False
        return () if self.is_repeated else self.default

    @property
    def label(self) -> str:
        """Return the option as help shows it: `--wait [TIME]`."""
        if self.is_flag:
            return self.name
        return f"{self.name} [{self.metavar}]" if self.alone else f"{self.name} {self.metavar}"


@value
class Argument:
    """A positional word, or several; with `is_rest`, everything after `--`."""

    name: str
    is_many: bool = False
    is_optional: bool = False
    is_rest: bool = False
    completes: str = ""
    needs: str = ""  # how an error names what is missing: "at least one path"

    @property
    def key(self) -> str:
        """Return the name of the handler's parameter."""
        return self.name

    @property
    def label(self) -> str:
        """Return the argument as help shows it: `PATTERN...`, `[PLAN]`, `-- COMMAND...`."""
        if self.is_rest:
            rest = f"-- {self.name.upper()}..."
            return f"[{rest}]" if self.is_optional else rest
        word = self.name.upper().removesuffix("S" if self.is_many else "") + ("..." if self.is_many else "")
        return f"[{word}]" if self.is_optional else word

    @property
    def missing(self) -> str:
        """Return what to write for this argument, for an error about a missing one."""
        if self.needs:
            return self.needs
        if self.is_rest:
            return f"a {self.name} after --"
        return f"{'an' if self.name[0] in 'aeio' else 'a'} {self.name}"


@value
class Command:
    """One command: its handler, what it takes, and its help."""

    path: str
    handler: str
    summary: str
    arguments: tuple[Argument, ...] = ()
    options: tuple[Option, ...] = ()
    details: str = ""
    examples: tuple[str, ...] = ()
    exits: str = ""

    @property
    def parameters(self) -> tuple[Argument | Option, ...]:
        """Return all that the command takes."""
        return (*self.arguments, *self.options)


@value
class Heading:
    """A part of the command line: its title in the help, its module, and its commands or nouns."""

    title: str
    module: str
    lines: dict[str, str]


def flag(name: str, help: str) -> Option:
    """Return a switch."""
    return Option(name=name, help=help)


def option(
    name: str,
    help: str,
    metavar: str,
    *,
    default: str = "",
    alone: str = "",
    is_repeated: bool = False,
    completes: str = "",
    choices: tuple[str, ...] = (),
) -> Option:
    """Return an option with a value."""
    return Option(
        name=name,
        help=help,
        metavar=metavar,
        default=default,
        alone=alone,
        is_repeated=is_repeated,
        completes=completes,
        choices=choices,
    )


def argument(
    name: str,
    *,
    is_many: bool = False,
    is_optional: bool = False,
    is_rest: bool = False,
    completes: str = "",
    needs: str = "",
) -> Argument:
    """Return a positional argument."""
    return Argument(
        name=name,
        is_many=is_many,
        is_optional=is_optional,
        is_rest=is_rest,
        completes=completes,
        needs=needs,
    )


def command(
    path: str,
    summary: str,
    *parameters: Argument | Option,
    handler: str = "",
    details: str = "",
    examples: tuple[str, ...] = (),
    exits: str = "",
) -> Command:
    """Return a command.

    By default its handler is named like it: `task:add` for `task add`, `land:land` for `land`, and
    `task:list_all` for `task list`.
    """
    noun, _, verb = path.partition(" ")
    verb = "list_all" if verb == "list" else verb or noun
    return Command(
        path=path,
        handler=handler or f"{noun}:{verb}",
        summary=summary,
        arguments=tuple([one for one in parameters if isinstance(one, Argument)]),
        options=tuple([one for one in parameters if isinstance(one, Option)]),
        details=details,
        examples=examples,
        exits=exits,
    )
