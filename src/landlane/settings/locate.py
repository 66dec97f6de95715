"""Find the line of a mistake in a settings file, and show it with a caret."""

from __future__ import annotations

import re

from landlane.errors import SettingsError
from landlane.values import value

_HEADER = re.compile(r"\s*\[+\s*(?P<name>[^\]]+?)\s*\]+\s*(#.*)?$")
_ASSIGNMENT = re.compile(r"\s*(?P<key>[^=#\s][^=#]*?)\s*=\s*(?P<value>.*?)\s*$")
_TOML_PLACE = re.compile(r" ?\(at (line (?P<line>\d+), column (?P<column>\d+)|end of document)\)$")
_WIDEST = 160  # characters of a line
# What the parser calls a mistake, as a person would.
_TOML_WORDS = {"Unclosed array": "the list is not closed", "Unterminated string": "the text is not closed"}


@value
class LineSpan:
    """A part of one line; the line and the column count from 1."""

    line: int
    column: int
    length: int


def locate_error(error: SettingsError, file: str, source: str) -> SettingsError | None:
    """Return the error with its file, line and an excerpt; None if the setting is not in this file."""
    setting = str(error.facts.get("setting", ""))
    is_unknown = error.code == "SETTINGS_UNKNOWN_KEY"
    place = find_setting(source, setting.strip("[]").partition(":")[0], is_value=not is_unknown)
    if place is None:
        return None
    remark = str(error.facts.get("remark", ""))
    error.message = f"{file}:{place.line}: {error.message.partition(': ')[2]}"
    error.facts |= {"file": file, "line": place.line, "excerpt": excerpt(source, place, remark)}
    error.hint = error.hint.removeprefix(f"{remark} ").replace("All settings", "all settings")
    error.args = (error.message,)
    return error


def not_toml(file: str, source: str, error: Exception) -> SettingsError:
    """Return the error for a file that is not TOML, with the line where reading failed."""
    text = str(error)
    found = _TOML_PLACE.search(text)
    words = text[: found.start()] if found else text
    facts: dict[str, object] = {"file": file}
    where = file
    if found:
        place = _place_of(source, found)
        where = f"{file}:{place.line}"
        facts |= {"line": place.line, "excerpt": excerpt(source, place, "")}
    return SettingsError(
        f"{where}: not valid TOML: {_TOML_WORDS.get(words, words)}",
        code="SETTINGS_NOT_TOML",
        hint=f"see your change: git diff -- {file}",
        **facts,
    )


def _place_of(source: str, found: re.Match[str]) -> LineSpan:
    """Return where the parser failed.

    At the end of the document the mistake is in the last value; at the beginning of a line it is before it.
    """
    lines = source.splitlines() or [""]
    if not found["line"]:
        assigned = [(number, _ASSIGNMENT.match(line)) for number, line in enumerate(lines, 1)]
        last = [(number, match) for number, match in assigned if match]
        if last:
            return LineSpan(line=last[-1][0], column=last[-1][1].start("value") + 1, length=1)
        return LineSpan(line=len(lines), column=1, length=1)
    line, column = int(found["line"]), int(found["column"])
    if column == 1 and line > 1 and (line > len(lines) or not lines[line - 1].strip()):
        line -= 1
        column = len(lines[line - 1].rstrip())
    return LineSpan(line=min(line, len(lines)), column=max(column, 1), length=1)


def find_setting(source: str, name: str, *, is_value: bool) -> LineSpan | None:
    """Return where a setting with a dotted name is, or the section that it names."""
    section = ""
    for number, line in enumerate(source.splitlines(), 1):
        header = _HEADER.match(line)
        if header and "=" not in header["name"]:
            section = _plain(header["name"])
            if section == name:
                return LineSpan(line=number, column=header.start("name") + 1, length=len(header["name"]))
            continue
        found = _ASSIGNMENT.match(line)
        if found and ".".join(filter(None, (section, _plain(found["key"])))) == name:
            part = "value" if is_value else "key"
            length = max(len(found[part].partition(" #")[0].rstrip()), 1)
            return LineSpan(line=number, column=found.start(part) + 1, length=length)
    return None


def _plain(name: str) -> str:
    return re.sub(r"\s*\.\s*", ".", name).replace('"', "").replace("'", "")


def excerpt(source: str, place: LineSpan, remark: str) -> list[str]:
    """Return the line of a mistake, and a line with carets below it."""
    line = source.splitlines()[place.line - 1][:_WIDEST]
    number = str(place.line)
    carets = "^" * min(place.length, max(len(line) - place.column + 1, 1))
    below = f"  {' ' * len(number)} │ {' ' * (place.column - 1)}{carets} {remark}"
    return [f"  {number} │ {line}", below.rstrip()]
