"""The call that was typed, as text for hints that repeat it with a change."""

from __future__ import annotations

from landlane.cli.parse import call_text
from landlane.cli.specs.model import FOREVER, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from landlane.cli.specs.model import Argument, Command


class TypedCall:
    """A command with the values that were given, and who acts."""

    def __init__(self, command: Command, given: Mapping[str, Any], common: tuple[str, ...]) -> None:
        self._command = command
        self._given = {**given}
        self._common = common  # --as and --repo as they were typed

    @property
    def path(self) -> str:
        """The name of the command."""
        return self._command.path

    def has_option(self, name: str) -> bool:
        """Return whether the command has this option."""
        return any(option.name == name for option in self._command.options)

    def with_words(self, *more: str) -> str:
        """Return the same call with more words at its end."""
        return call_text([*self._words({}), *more, *self._common, *self._rest({})])

    def with_value(self, old: str, new: str) -> str:
        """Return the same call with one value replaced by another."""
        return call_text([*self._words({old: new}), *self._common, *self._rest({old: new})])

    def with_name(self, name: str = "") -> str:
        """Return the same call with another name after --as, or without --as."""
        common = self._common[2:] if self._common[:1] == ("--as",) else self._common
        named = ["--as", name] if name else []
        return call_text([*self._words({}), *common, *named, *self._rest({})])

    def _words(self, changes: Mapping[str, str]) -> Iterator[str]:
        yield from self._command.path.split()
        for argument in self._command.arguments:
            yield from [] if argument.is_rest else self._values(argument, changes)
        for option in self._command.options:
            given = self._given.get(option.key, option.value_if_absent)
            if option.is_flag and given:
                yield option.name
            elif given != option.value_if_absent:
                for one in self._values(option, changes):
                    yield option.name
                    yield from [] if one == FOREVER else [one]

    def _rest(self, changes: Mapping[str, str]) -> list[str]:
        """Return the command after `--`, which must come after all options; empty if there is none."""
        rest = [argument for argument in self._command.arguments if argument.is_rest]
        values = [one for argument in rest for one in self._values(argument, changes)]
        return ["--", *values] if values else []

    def _values(self, parameter: Argument | Option, changes: Mapping[str, str]) -> list[str]:
        given = self._given.get(parameter.key) or ()
        values = [given] if isinstance(given, str) else list(given)
        return [changes.get(str(one), str(one)) for one in values]
