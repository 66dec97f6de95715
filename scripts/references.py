#!/usr/bin/env python3
"""Write docs/reference/ from the code: commands, settings, errors and the library.

`--check` writes nothing, and fails with a diff when a page is out of date. Commands come from cli/specs/,
settings from settings/, the library from the docstrings of api/. Errors are collected from the syntax trees
of all modules: wherever one is made, listed in a table, or put into an answer.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import inspect
import re
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from landlane import api, errors
from landlane.claims.check import PathCheck
from landlane.cli.specs.table import COMMANDS, COMMON, Command, Option
from landlane.clock import duration_text
from landlane.settings.model import Settings
from landlane.settings.section import LISTED, NAMED, keys_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from landlane.settings.section import Key

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "landlane"
FOLDER = ROOT / "docs" / "reference"
NOTE = "<!-- Written by scripts/references.py from the code. Change that, then run the script. -->"
GAP = "…"  # what is filled in only when it happens

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
from landlane import Landlane
from landlane.api import ClaimRefused, Refused, Taken
```

Instants in values (`granted_at`, `until`, `seen_at`) are milliseconds of the store's own clock: fit to be
compared with each other, not with a calendar. `Entry.at` is milliseconds since 1970."""

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
        print("The reference is stale. `python scripts/references.py` mends it.", file=sys.stderr)
    return int(is_stale)


def report_difference(name: str, before: str, after: str) -> bool:
    """Print how a page would change, and return whether it would."""
    if before == after:
        return False
    old, new = before.splitlines(), after.splitlines()
    print("\n".join(difflib.unified_diff(old, new, name, "as the code says", lineterm="", n=1)))
    return True


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table."""
    safe = [tuple(cell.replace("|", "\\|") for cell in row) for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, tuple("---" for _ in head), *safe])


# ---------------------------------------------------------------------------------------------- commands


def commands_page() -> str:
    """Every command with its arguments, options and examples."""
    common = table(("option", "means"), (_option_row(option) for option in COMMON))
    links = ((f"[`{one.path}`](#{one.path.replace(' ', '-')})", one.summary) for one in COMMANDS)
    sections = [_command_section(command) for command in COMMANDS]
    return "\n\n".join([ABOVE_COMMANDS, common, table(("command", "does"), links), *sections])


def _command_section(command: Command) -> str:
    words = [f"landlane {command.path}"]
    for argument in command.arguments:
        word = argument.shown
        if not argument.is_rest:
            words.append(f"[{word}]" if argument.is_optional else word)
    words += [f"[{_shown(option)}]" for option in command.options]
    words += [argument.shown for argument in command.arguments if argument.is_rest]
    parts = [f"## {command.path}", f"```text\n{' '.join(words)}\n```", command.summary]
    parts.append(command.details.replace("<", "\\<"))
    rows = [(f"`{one.name.upper().rstrip('S')}`", one.help) for one in command.arguments if one.help]
    rows += [_option_row(option) for option in command.options]
    parts += [table(("word", "means"), rows)] if rows else []
    parts += ["```sh\n" + "\n".join(command.examples) + "\n```"] if command.examples else []
    return "\n\n".join(part for part in parts if part)


def _option_row(option: Option) -> tuple[str, str]:
    ending = f" (without it: {option.default})" if option.default else ""
    return f"`{_shown(option)}`", option.help + (" (may be repeated)" if option.is_repeated else ending)


def _shown(option: Option) -> str:
    return f"{option.name} {option.metavar}".strip()


# ---------------------------------------------------------------------------------------------- settings

_VARIABLES = {
    "LANDLANE_AGENT": "the agent to act as, where `--as` is not given",
    "LANDLANE_SESSION": "the session to act for, as `id:secret`; what `join` shows for its children",
    "LANDLANE_TASK": "in the environment of a workspace: its task",
    "LANDLANE_WORKSPACE": "in the environment of a workspace: its id",
    "LANDLANE_BENCH": "set for checks; what still bears it afterwards is ended",
    "LANDLANE_STORE": "where the store is, a path or a `postgresql://` URL; stands above the settings",
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
    """Every key of landlane.toml, and every variable of the environment."""
    parts = [ABOVE_SETTINGS]
    for name, described in keys_of(Settings).items():
        parts += _section_parts(name, described)
    return "\n\n".join([*parts, "## Environment", table(("variable", "means"), _variable_rows())])


def _section_parts(name: str, found: Key) -> list[str]:
    """A heading, a sentence and a table for a section, then the same for the sections inside it."""
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
    """The variables that the code reads; one that nobody has explained above is a failure."""
    found: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        found |= set(re.findall(r'"(LANDLANE_[A-Z]+)"', path.read_text(encoding="utf-8")))
    if found != _VARIABLES.keys():
        raise SystemExit(f"explain in scripts/references.py: {sorted(found ^ _VARIABLES.keys())}")
    return [(f"`{name}`", purpose) for name, purpose in sorted(_VARIABLES.items())]


# ----------------------------------------------------------------------------------------------- library


def library_page() -> str:
    """The class Landlane and the values it gives and takes."""
    members = [(name, one) for name, one in vars(api.Landlane).items() if not name.startswith("_")]
    others: list[type[Any]] = [vars(api)[name] for name in api.__all__ if name != "Landlane"]
    values: set[type[Any]] = {one for one in others if not issubclass(one, Exception)} | {PathCheck}
    raised = [one for one in others if issubclass(one, Exception)]
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
    parts += ["## Values", *(_value_section(one) for one in sorted(values, key=lambda one: one.__name__))]
    parts += ["## Errors", *(f"### {one.__name__}\n\n{_text(one)}" for one in raised)]
    return "\n\n".join([*parts, "All that can be raised, with codes and hints: [errors](errors.md)."])


def _noun_section(name: str, member: Any) -> list[str]:
    """The verbs of a noun such as `Landlane.state`; nothing for any other member."""
    if not isinstance(member, property) or member.fget is None:
        return []
    noun = vars(api).get(str(inspect.signature(member.fget).return_annotation))
    if not inspect.isclass(noun) or noun in {vars(api)[one] for one in api.__all__}:
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
    return f"### {kind.__name__}\n\n{_text(kind)}\n\n```python\n{fields}\n```"


def _text(thing: object) -> str:
    """A docstring as Markdown: what it raises becomes a list."""
    above, _, raises = (inspect.getdoc(thing) or "").partition("\nRaises:\n")
    lines = [re.sub(r"^\s*(\w+): ", r"- `\1`: ", line) for line in raises.splitlines() if line.strip()]
    return above.strip() + ("\n\nRaises:\n\n" + "\n".join(lines) if lines else "")


# ------------------------------------------------------------------------------------------------ errors

CODE = re.compile(r"[A-Z][A-Z0-9]+(_[A-Z0-9]+)*")
STOPPED = 130  # the one exit code that is worked out; shown as for Ctrl-C


class Told(NamedTuple):
    """One way in which a code is told."""

    code: str
    exit: int
    message: str
    hint: str


def errors_page() -> str:
    """Every code, by the exit code it ends with."""
    by_exit: dict[int, dict[str, list[Told]]] = defaultdict(lambda: defaultdict(list))
    for one in sorted(set(collect_codes(PACKAGE))):
        by_exit[one.exit][one.code].append(one)
    meanings = _exit_meanings()
    exits = table(("exit", "means"), ((f"`{number}`", meaning) for number, meaning in meanings.items()))
    parts = ["# Exit codes and errors", exits, ABOVE_ERRORS]
    for number, codes in sorted(by_exit.items()):
        parts.append(f"## Exit {number}: {meanings[number]}")
        for code, ways in sorted(codes.items()):
            parts.append(f"### {code}")
            parts += [f"> {way.message}" + (f"\n\nHint: {way.hint}" if way.hint else "") for way in ways]
    return "\n\n".join(parts)


def _exit_meanings() -> dict[int, str]:
    told = {0: "done", 1: "failed"}
    for one in vars(errors).values():
        if isinstance(one, type) and issubclass(one, errors.LandlaneError) and one.exit_code not in told:
            words = (one.__doc__ or "").rstrip(".")
            told[one.exit_code] = words[0].lower() + words[1:]
    return {**told, STOPPED: "stopped by a signal: 128 and its number, as shells do"}


@cache
def collect_codes(package: Path) -> tuple[Told, ...]:
    """Return every code that a package can report, once for each message and hint."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in sorted(package.rglob("*.py"))]
    nodes = {tree: list(ast.walk(tree)) for tree in trees}
    known = _Known([node for tree in trees for node in nodes[tree]])
    found: list[Told] = []
    for tree in trees:
        functions = [node for node in nodes[tree] if isinstance(node, ast.FunctionDef)]
        for scope in [tree, *functions]:
            place = _Place(tree, scope, known)
            for node in place.nodes:
                found += _told_by(node, place)
    return tuple(found)


class _Known:
    """What all modules know: error classes, makers of errors, who calls what, and the exits of answers."""

    def __init__(self, nodes: list[ast.AST]) -> None:
        classes = {**vars(errors), **vars(api)}.items()
        self.exits: dict[str, int] = {
            name: one.exit_code
            for name, one in classes
            if isinstance(one, type) and issubclass(one, errors.LandlaneError)
        }
        self.calls = [node for node in nodes if isinstance(node, ast.Call)]
        self.makers: dict[str, int] = {}
        self.answer_exits: dict[str, int] = {}
        for node in nodes:
            if isinstance(node, ast.FunctionDef) and node.returns and ast.unparse(node.returns) in self.exits:
                self.makers[node.name] = self.exits[ast.unparse(node.returns)]
            if isinstance(node, ast.Dict):
                pairs = zip(map(_constant, node.keys), map(_constant, node.values), strict=True)
                self.answer_exits |= {
                    key: number
                    for key, number in pairs
                    if isinstance(key, str) and CODE.fullmatch(key) and isinstance(number, int)
                }


class _Place:
    """A function, or what stands outside of all: its nodes, what its names hold, the exit codes it gives."""

    def __init__(self, module: ast.Module, scope: ast.Module | ast.FunctionDef, known: _Known) -> None:
        self.known = known
        self.nodes = list(_inside(scope))
        self._scope = scope
        self._constants = [node for node in module.body if isinstance(node, ast.Assign)]
        self._assigned = [node for node in self.nodes if isinstance(node, ast.Assign)]

    def text(self, node: ast.AST | None) -> str:
        """A sentence, with a gap for whatever is not fixed."""
        return re.sub(f"{GAP}+", GAP, self._text(node))

    def _text(self, node: ast.AST | None) -> str:
        match node:
            case None:
                return ""
            case ast.Constant(value=str() | int()):
                return str(node.value)
            case ast.JoinedStr(values=values):
                return "".join(self._text(one) for one in values)
            case ast.FormattedValue(value=ast.Name() as name):
                return self._text(name)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._text(left) + self._text(right)
            case ast.Name(id=name):
                return self._text(self._held_by(name, node.lineno))
            case _:
                return GAP

    def _held_by(self, name: str, line: int) -> ast.AST:
        """What was last given to a name above this line."""
        found: ast.AST = ast.Pass()
        for node in [*self._constants, *(one for one in self._assigned if one.lineno < line)]:
            if [_name_of(target) for target in node.targets] == [name]:
                found = node.value
        return found

    def exit_of(self, call: ast.Call, usual: int) -> int:
        """The exit code of an error, unless a line such as `error.exit_code = 5` says another."""
        names = [_name_of(node.targets[0]) for node in self._assigned if node.value is call]
        for node in self._assigned:
            match node.targets:
                case [ast.Attribute(value=ast.Name(id=name), attr="exit_code")] if name in names:
                    number = _constant(node.value)
                    return number if isinstance(number, int) else STOPPED
                case _:
                    pass
        return usual

    def exit_of_answer(self) -> int:
        """The one exit code above zero that a handler returns."""
        returned = [node for node in self.nodes if isinstance(node, ast.Return)]
        numbers = {_constant(one) for node in returned for one in ast.walk(node)}
        above = [number for number in numbers if type(number) is int and number > 0]
        return above[0] if len(above) == 1 else 1

    def codes(self, node: ast.AST | None) -> list[str]:
        """The codes that an expression can be."""
        match node:
            case ast.Constant(value=str(code)) if CODE.fullmatch(code):
                return [code]
            case ast.IfExp(body=one, orelse=other):
                return [*self.codes(one), *self.codes(other)]
            case ast.JoinedStr() if isinstance(self._scope, ast.FunctionDef):
                return self._made_codes(node, self._scope)
            case _:
                return []

    def _made_codes(self, template: ast.JoinedStr, function: ast.FunctionDef) -> list[str]:
        """Codes made out of a parameter, one for each text that some call gives."""
        parameters = [one.arg for one in function.args.args]
        names = {node.id for node in ast.walk(template) if isinstance(node, ast.Name)}
        expression = compile(ast.fix_missing_locations(ast.Expression(template)), "code", "eval")
        made: list[str] = []
        for call in self.known.calls:
            if _name_of(call.func) != function.name:
                continue
            given = dict(zip(parameters, map(_constant, call.args), strict=False))
            if all(isinstance(given.get(one), str) for one in names):
                made.append(eval(expression, {name: given[name] for name in names}))
        return made


def _inside(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope without those of the functions in it."""
    waiting = [*ast.iter_child_nodes(scope)][::-1]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, ast.FunctionDef):
            yield node
            waiting += [*ast.iter_child_nodes(node)][::-1]


def _told_by(node: ast.AST, place: _Place) -> Iterator[Told]:
    """What a node tells: an error that is made, a row of a table, or an answer."""
    known = place.known
    match node:
        case ast.Call(args=[message, *_]) if _name_of(node.func) in known.exits:
            given = {one.arg: one.value for one in node.keywords}
            exit_code = place.exit_of(node, known.exits[_name_of(node.func)])
            for code in place.codes(given.get("code")):
                yield Told(code, exit_code, place.text(message), place.text(given.get("hint")))
        case ast.Call(args=[_, why, code, hint]) if _name_of(node.func) in known.makers:
            for one in place.codes(code):
                message = f"{GAP} {place.text(why)}"
                yield Told(one, known.makers[_name_of(node.func)], message, place.text(hint))
        case ast.Call() if {"reason", "code"} <= {one.arg for one in node.keywords}:
            given = {one.arg: one.value for one in node.keywords}  # what an entry of the queue went back for
            for code in place.codes(given["code"]):
                yield Told(code, 1, place.text(given["reason"]), place.text(given.get("hint")))
        case ast.Tuple(elts=[code, words, hint]) if place.codes(code) and not place.codes(words):
            message = f"the store {GAP} {place.text(words)}"
            yield Told(place.codes(code)[0], errors.StoreError.exit_code, message, place.text(hint))
        case ast.Tuple(elts=[ast.Constant(value=int(number)), code, words]):
            yield from (Told(one, number, f"{GAP} {place.text(words)}", "") for one in place.codes(code))
        case ast.Dict():
            yield from _told_by_answer(node, place)
        case _:
            pass


def _told_by_answer(node: ast.Dict, place: _Place) -> Iterator[Told]:
    given = {_constant(key): value for key, value in zip(node.keys, node.values, strict=True)}
    if "message" in given:
        for code in place.codes(given.get("code")):
            message, hint = place.text(given["message"]), place.text(given.get("hint"))
            yield Told(code, place.exit_of_answer(), message, hint)
    for key, words in given.items():
        if isinstance(key, str) and key in place.known.answer_exits and isinstance(_constant(words), str):
            yield Told(key, place.known.answer_exits[key], f"{GAP}: {_constant(words)}", "")


def _name_of(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _constant(node: ast.AST | None) -> object:
    return node.value if isinstance(node, ast.Constant) else None


PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands_page,
    "settings.md": settings_page,
    "errors.md": errors_page,
    "library.md": library_page,
}

if __name__ == "__main__":
    raise SystemExit(main())
