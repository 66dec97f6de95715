#!/usr/bin/env python3
"""Write docs/reference/ from the code: commands, settings, errors and the library.

`--check` writes nothing, and fails with a diff when a page is out of date. Commands come from cli/specs/,
settings from settings/, the library from the docstrings of api/, and errors from `scripts/error_codes.py`.
"""

from __future__ import annotations

import argparse
import difflib
import inspect
import re
import sys
from collections import defaultdict
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from landlane import api, errors
from landlane.api.results import Failure
from landlane.api.session_view import SessionView
from landlane.cli.specs.model import Command, Option
from landlane.cli.specs.table import COMMON, HEADINGS, all_commands
from landlane.clock import duration_text
from landlane.settings.model import Settings
from landlane.settings.section import LISTED, NAMED, keys_of
from scripts.error_codes import GAP, STOPPED, ReportedError, collect_codes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from landlane.settings.section import Key

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "landlane"
FOLDER = ROOT / "docs" / "reference"
NOTE = "<!-- Written by scripts/references.py from the code. Change that, then run the script. -->"

ABOVE_COMMANDS = """# Commands

`landlane COMMAND --help` shows the same in the terminal. What a command can end with stands under
[exit codes](errors.md). These options stand before or behind any command:"""

ABOVE_SETTINGS = """# Settings

`landlane.toml` at the root of the repository. Commit it, so that every clone reads the same.
`landlane init` writes a first one. Every key may be left out, and so may the file. An unknown key is an
error, so that a slip of the pen is found.

A duration is a number and a unit, such as `45s`, `30m`, `1h30m` or `2d`; a lease is one of at least `1s`. A
size is a number of bytes, or one such as `500M` or `2G`. Patterns count from the root of the repository."""

ABOVE_LIBRARY = """# The library

```python
from landlane import ClaimRefused, Landlane, Refused, Taken
```

All names on this page can be imported from `landlane`.

An answer that can be a no is false then: `if landlane.claim("src/api.py"): …`. Its `unwrap()` raises the
error with the same code, message and hint; the `unwrap()` of a yes returns the answer itself.

Times in values are `datetime`s in UTC, lengths of time are `timedelta`s. A `Duration` is a text such as
`"10m"`, a number of seconds, or a `timedelta`. `Since` is a text such as `"7d"` or `"2026-01-31"`, a
`datetime`, or a `timedelta` before now."""

ABOVE_ERRORS = """With `--json`, an answer that is not a success holds `ok: false`, `code`, `message` and
`hint`, and what else is known, such as `holder` and `until`. Codes are stable; sentences may become better.
`…` stands for what is filled in."""


def main(arguments: list[str] | None = None) -> int:
    """Write or check the pages, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a page is stale")
    is_check = parser.parse_args(arguments).check
    is_stale = False
    for name, make in PAGES.items():
        path = FOLDER / name
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        after = f"{NOTE}\n\n{make().strip()}\n"
        if is_check:
            is_stale |= report_difference(name, before, after)
        elif before != after:
            path.write_text(after, encoding="utf-8")
    if is_stale:
        print("The reference is out of date. Run `python -m scripts.references`.", file=sys.stderr)
    return int(is_stale)


def report_difference(name: str, before: str, after: str) -> bool:
    """Print how a page would change, and return whether it would."""
    if before == after:
        return False
    old, new = before.splitlines(), after.splitlines()
    print("\n".join(difflib.unified_diff(old, new, name, "as the code says", lineterm="", n=1)))
    return True


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    safe = [tuple(cell.replace("|", "\\|") for cell in row) for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, tuple("---" for _ in head), *safe])


def commands_page() -> str:
    """Return every command with its arguments, options and examples."""
    common = table(("option", "meaning"), (_option_row(option) for option in COMMON))
    parts = [ABOVE_COMMANDS, common]
    for heading in HEADINGS:
        named = [one for one in all_commands() if one.path.partition(" ")[0] in heading.lines]
        links = ((f"[`{one.path}`](#{one.path.replace(' ', '-')})", one.summary) for one in named)
        parts += [f"## {heading.title}", table(("command", "purpose"), links)]
        parts += [_command_section(command) for command in named]
    return "\n\n".join(parts)


def _command_section(command: Command) -> str:
    words = [f"landlane {command.path}", *(one.label for one in command.arguments if not one.is_rest)]
    words += [f"[{option.label}]" for option in command.options]
    words += [argument.label for argument in command.arguments if argument.is_rest]
    parts = [f"### {command.path}", f"```text\n{' '.join(words)}\n```", command.summary]
    parts.append(command.details.replace("<", "\\<"))
    rows = [_option_row(option) for option in command.options]
    parts += [table(("option", "meaning"), rows)] if rows else []
    parts += ["```sh\n" + "\n".join(command.examples) + "\n```"] if command.examples else []
    parts += [f"Exit codes: {command.exits}."] if command.exits else []
    return "\n\n".join(part for part in parts if part)


def _option_row(option: Option) -> tuple[str, str]:
    return f"`{option.label}`", option.help + (f" (default: {option.default})" if option.default else "")


_VARIABLES = {
    "LANDLANE_AGENT": "the agent to act as, where `--as` is not given",
    "LANDLANE_SESSION": "the session to act for, as `id:secret`; what `join` shows for its children",
    "LANDLANE_TASK": "in the environment of a workspace or a worker: its task",
    "LANDLANE_TITLE": "for a script that works on a task: its title",
    "LANDLANE_BODY": "for a script that works on a task: its description",
    "LANDLANE_PATHS": "for a script that works on a task: the paths it may change, one on each line",
    "LANDLANE_CHECK": "for a script that works on a task: the command that must pass",
    "LANDLANE_ATTEMPT": "for a script that works on a task: the number of the attempt",
    "LANDLANE_BASE": "for a script that works on a task: the commit that it starts from",
    "LANDLANE_OUTPUT": "for a script that works on a task: the file or folder that it must leave",
    "LANDLANE_RESULTS": "for a script that works on a task: the results of its parts, one on each line",
    "LANDLANE_FEEDBACK": "for a script that works on a task: why earlier attempts failed, one on each line",
    "LANDLANE_WORKSPACE": "in the environment of a workspace: its id",
    "LANDLANE_BENCH": "set for checks; what still bears it afterwards is ended",
    "LANDLANE_STORE": "where the store is, a path or a `postgresql://` URL; must agree with the state folder",
    "LANDLANE_RESIDENT": "in a sandbox: the socket at which the resident answers",
    "LANDLANE_ROLE": "in a sandbox: the role of the agent; for it to read, not to choose",
    "LANDLANE_OVERRIDE": "a person's reason to bypass the git hooks this once; it is journaled",
    "LANDLANE_BWRAP": "where bubblewrap's program `bwrap` is, if not on the path",
    "LANDLANE_TREE": "ours: marks what a sandboxed command starts, so that all of it can be ended",
    "LANDLANE_PASS": "ours: marks git calls that our own guard has judged already",
    "LANDLANE_CANARY": "ours: set while `doctor` tries the git hooks",
    "LANDLANE_EYES": "ours: which streams of a caller in a sandbox are a terminal",
}


def settings_page() -> str:
    """Return every key of landlane.toml, and every environment variable."""
    parts = [ABOVE_SETTINGS]
    for name, described in keys_of(Settings).items():
        parts += _section_parts(name, described)
    return "\n\n".join([*parts, "## Environment", table(("variable", "means"), _variable_rows())])


def _section_parts(name: str, found: Key) -> list[str]:
    """Return heading, sentence and table of a section, then those of the sections inside it."""
    assert found.nested is not None
    path = f"{name}.NAME" if found.shape == NAMED else name
    keys = keys_of(found.nested)
    text = inspect.cleandoc(found.nested.__doc__ or "")
    if found.nested.short:
        text += f" A plain text stands for `{found.nested.short}`."
    rows = [(f"`{key.name}`", *_setting_row(key)) for key in keys.values() if key.text]
    head = f"## [[{path}]]" if found.shape == LISTED else f"## [{path}]"
    parts = [head, text, table(("key", "kind", "default", "means"), rows)] if rows else []
    for inner in keys.values():
        if inner.nested is not None:
            parts += _section_parts(f"{path}.{inner.name}", inner)
    return parts


def _setting_row(key: Key) -> tuple[str, str, str]:
    kind = f"{key.reader}: {', '.join(f'`{word}`' for word in key.choices)}" if key.choices else key.reader
    return kind, _default_text(key), key.text


def _default_text(key: Key) -> str:
    if key.is_required:
        return "required"
    if not key.default and key.default is not False:
        return ""
    if key.field.endswith("_ms"):
        return f"`{duration_text(key.default)}`"
    return f"`{str(key.default).lower() if isinstance(key.default, bool) else key.default}`"


def _variable_rows() -> list[tuple[str, str]]:
    """Return the variables that the code reads; exit if `_VARIABLES` does not explain one."""
    found: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        found |= set(re.findall(r'"(LANDLANE_[A-Z]+)"', path.read_text(encoding="utf-8")))
    if found != _VARIABLES.keys():
        raise SystemExit(f"explain in scripts/references.py: {sorted(found ^ _VARIABLES.keys())}")
    return [(f"`{name}`", purpose) for name, purpose in sorted(_VARIABLES.items())]


def library_page() -> str:
    """Return the class Landlane, and the values that it returns and accepts."""
    members = [(name, one) for name, one in vars(api.Landlane).items() if not name.startswith("_")]
    others = [vars(api)[name] for name in api.__all__ if name != "Landlane"]
    kinds: list[type[Any]] = [one for one in others if isinstance(one, type)]
    values = [one for one in kinds if hasattr(one, "_fields")]
    states: list[type[Enum]] = [one for one in kinds if issubclass(one, Enum)]
    raised = [one for one in kinds if issubclass(one, Exception)]
    parts = [
        ABOVE_LIBRARY,
        "## Landlane",
        _signature("Landlane", api.Landlane.__init__),
        _text(api.Landlane),
    ]
    for name, member in members:
        parts += [f"### {name}", _member(name, member), _text(member)]
    for name, member in members:
        parts += _noun_section(name, member)
    parts += ["## Values", *map(_value_section, values)]
    parts += ["## States", *map(_states_section, states)]
    parts += ["## Errors", *(f"### {one.__name__}\n\n{_text(one)}" for one in raised)]
    return "\n\n".join([*parts, "All that can be raised, with codes and hints: [errors](errors.md)."])


def _noun_section(name: str, member: Any) -> list[str]:
    """Return the methods of a noun such as `Landlane.state`; nothing for any other member."""
    if not isinstance(member, property) or member.fget is None:
        return []
    noun = member.fget.__globals__.get(str(inspect.signature(member.fget).return_annotation))
    if not inspect.isclass(noun) or not issubclass(noun, SessionView):
        return []
    parts = [f"## Landlane.{name}", _text(noun)]
    for verb, function in vars(noun).items():
        if not verb.startswith("_"):
            parts += [f"### {name}.{verb}", _signature(f"{name}.{verb}", function), _text(function)]
    return parts


def _member(name: str, member: Any) -> str:
    if isinstance(member, property):
        assert member.fget is not None
        return f"```python\n{name}: {inspect.signature(member.fget).return_annotation}\n```"
    return _signature(name, member)


def _signature(name: str, function: Callable[..., Any]) -> str:
    signature = inspect.signature(function)
    words: list[str] = []
    for one in list(signature.parameters.values())[1:]:
        if one.kind is one.KEYWORD_ONLY and not any(word.startswith("*") for word in words):
            words.append("*")
        default = GAP if callable(one.default) else repr(one.default)
        ending = "" if one.default is one.empty else f" = {default}"
        words.append(f"{'*' if one.kind is one.VAR_POSITIONAL else ''}{one.name}: {one.annotation}{ending}")
    end = "" if name == "Landlane" else f" -> {signature.return_annotation}"
    line = f"{name}({', '.join(words)}){end}"
    if len(line) > 100:
        line = f"{name}(\n" + "".join(f"    {word},\n" for word in words) + f"){end}"
    return f"```python\n{line}\n```"


def _value_section(kind: Any) -> str:
    fields = "\n".join(f"{name}: {kind.__annotations__[name]}" for name in kind._fields)
    answer = "A refusal: always false. " if issubclass(kind, Failure) else ""
    return f"### {kind.__name__}\n\n{answer}{_text(kind)}\n\n```python\n{fields}\n```"


def _states_section(kind: type[Enum]) -> str:
    return f"### {kind.__name__}\n\n{_text(kind)} One of {', '.join(f'`{one.value}`' for one in kind)}."


def _text(thing: object) -> str:
    """Return a docstring as Markdown; the errors that it names become a list."""
    above, _, raises = (inspect.getdoc(thing) or "").partition("\nRaises:\n")
    lines = [re.sub(r"^\s*(\w+): ", r"- `\1`: ", line) for line in raises.splitlines() if line.strip()]
    return above.strip() + ("\n\nRaises:\n\n" + "\n".join(lines) if lines else "")


def errors_page() -> str:
    """Return every error code, grouped by exit code."""
    by_exit: dict[int, dict[str, list[ReportedError]]] = defaultdict(lambda: defaultdict(list))
    for one in sorted(set(collect_codes(PACKAGE))):
        by_exit[one.exit][one.code].append(one)
    meanings = _exit_meanings()
    exits = table(("exit", "means"), ((f"`{number}`", meaning) for number, meaning in meanings.items()))
    parts = ["# Exit codes and errors", exits, ABOVE_ERRORS]
    for number, codes in sorted(by_exit.items()):
        parts.append(f"## Exit {number}: {meanings[number]}")
        for code, reports in sorted(codes.items()):
            parts.append(f"### {code}")
            parts += [f"> {one.message}" + (f"\n\nHint: {one.hint}" if one.hint else "") for one in reports]
    return "\n\n".join(parts)


def _exit_meanings() -> dict[int, str]:
    meanings = {0: "done", 1: "failed"}
    for one in vars(errors).values():
        if isinstance(one, type) and issubclass(one, errors.LandlaneError) and one.exit_code not in meanings:
            words = (one.__doc__ or "").rstrip(".")
            meanings[one.exit_code] = words[0].lower() + words[1:]
    return {**meanings, STOPPED: "stopped by a signal: 128 and its number, as shells do"}


PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands_page,
    "settings.md": settings_page,
    "errors.md": errors_page,
    "library.md": library_page,
}

if __name__ == "__main__":
    raise SystemExit(main())
