#!/usr/bin/env python3
"""Write the JSON Schema of `--json` answers, and the page about it, from the types in cli/answers/.

`--check` writes nothing, and fails with a diff when a file is out of date.
"""

from __future__ import annotations

import argparse
import difflib
import inspect
import json
import pkgutil
import sys
import types
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from landlane.cli import answers
from landlane.cli.answers.base import Answer
from landlane.cli.answers.failures import Failure
from landlane.cli.specs.table import HEADINGS, all_commands

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "src" / "landlane" / "cli" / "answers" / "schema.json"
PAGE = ROOT / "docs" / "reference" / "json.md"
NOTE = "<!-- Written by scripts/json_schemas.py from the code. Change that, then run the script. -->"
# Commands that answer another program in its own format, and never with one JSON object of ours.
WITHOUT = ("hook", "mcp", "resident")
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}

ABOVE = """# JSON answers

With `--json` a command prints one JSON object. On success `ok` is true, and the object has one of the forms
under the name of its command. Otherwise `ok` is false, and the object has a stable `code`, a `message` and a
`hint`: it is a [`Failure`](#failure), or one of the other failures under the name of its command. Times are
RFC 3339 in UTC. Later versions may add fields and values; those on this page stay.

This page is not about `log --follow`, `task log --follow` and `notify` without `--once` or `--past`, which
print one object a line as things happen, nor about `hook`, `mcp` and `resident`, which answer other programs.

The package contains the same as a JSON Schema, in `landlane/cli/answers/schema.json`: `commands` has a schema
for each command by its name, with that of `landlane` alone under the empty name; `$defs` has the types.

```python
import json
from importlib.resources import files

schema = json.loads(files("landlane.cli.answers").joinpath("schema.json").read_text())
claim = {**schema["commands"]["claim"], "$defs": schema["$defs"]}  # for a validator such as jsonschema
```

The tests validate the answers of the commands that they run with `--json`, and fail on a field that is not in
the schema. The type checker compares most values inside of answers, such as a claim or a task, with the code
that returns them; which values a whole answer has is only checked by the tests that run its command.

The tables leave out `ok` and, under the commands, the `code`, `message` and `hint` of failures. A field
marked `?` may be absent."""


def main(arguments: list[str] | None = None) -> int:
    """Write or check the files, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file is out of date")
    is_check = parser.parse_args(arguments).check
    is_stale = False
    document = make_schema()
    for path, text in {SCHEMA: to_text(document), PAGE: make_page(document)}.items():
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        if before == text:
            continue
        if not is_check:
            path.write_text(text, encoding="utf-8")
            continue
        is_stale = True
        lines = difflib.unified_diff(
            before.splitlines(), text.splitlines(), path.name, "from the code", lineterm=""
        )
        print("\n".join(lines))
    if is_stale:
        print("The JSON Schema is out of date. Run `python -m scripts.json_schemas`.", file=sys.stderr)
    return int(is_stale)


def make_schema() -> dict[str, Any]:
    """Return the schemas of all commands, and the types that they share."""
    names, kinds = _find_types()
    commands: dict[str, Any] = {}
    for path in ["", *(command.path for command in all_commands())]:
        if path in WITHOUT:
            continue
        name = answer_name(path)
        if name not in names:
            raise SystemExit(f"declare {name} in src/landlane/cli/answers/, for `landlane {path}`")
        failure = name.removesuffix("Answer") + "Failure"
        forms = [*_forms(names[name]), *_forms(names.get(failure)), Failure]
        commands[path] = {"anyOf": [_reference(one) for one in dict.fromkeys(forms)]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Answers of landlane with --json",
        "commands": commands,
        "$defs": {type_name(kind): _object_schema(kind) for kind in kinds},
    }


def to_text(document: dict[str, Any]) -> str:
    """Return the schema as JSON, with a line for each command and each type."""
    parts = [f" {json.dumps(name)}: {_part_text(part)}" for name, part in document.items()]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _part_text(part: str | dict[str, Any]) -> str:
    if isinstance(part, str):
        return json.dumps(part)
    lines = [f"  {json.dumps(name)}: {json.dumps(schema)}" for name, schema in part.items()]
    return "{\n" + ",\n".join(lines) + "\n }"


def answer_name(path: str) -> str:
    """Return the name of the type of a command's answer: `TaskAddAnswer` for `task add`."""
    return ("".join(word.capitalize() for word in path.split()) or "Overview") + "Answer"


def type_name(kind: Any) -> str:
    """Return the name of a type in the schema: `Claim` for `ClaimJson`."""
    return kind.__name__.removesuffix("Json")


def _find_types() -> tuple[dict[str, Any], list[Any]]:
    """Return the types of answers and failures by name, and all types in the order of their names."""
    names = {
        name: kind
        for module in pkgutil.iter_modules(answers.__path__)
        for name, kind in vars(import_module(f"{answers.__name__}.{module.name}")).items()
        if name.endswith(("Answer", "Failure"))
    }
    found = {form for kind in names.values() for form in _forms(kind)}
    waiting = list(found)
    while waiting:
        inner = {part for hint in get_type_hints(waiting.pop()).values() for part in _parts(hint)} - found
        found |= inner
        waiting += inner
    shown = {type_name(kind): kind for kind in found if _is_shown(kind)}
    if len(shown) < sum(map(_is_shown, found)):
        raise SystemExit("two types of answers have the same name")
    return names, [shown[name] for name in sorted(shown)]


def _is_shown(kind: Any) -> bool:
    return kind is not Answer and not kind.__name__.startswith("_")


def _forms(kind: Any) -> list[Any]:
    """Return the forms of an answer: one, or those of a union."""
    return [] if kind is None else [kind] if is_typeddict(kind) else list(get_args(kind))


def _parts(hint: Any) -> list[Any]:
    """Return the object types in a type."""
    return [hint] if is_typeddict(hint) else [part for one in get_args(hint) for part in _parts(one)]


def _object_schema(kind: Any) -> dict[str, Any]:
    fields = get_type_hints(kind, include_extras=True)
    required = [name for name, hint in fields.items() if get_origin(hint) is not NotRequired]
    return {
        "description": inspect.getdoc(kind),
        "type": "object",
        "properties": {name: _schema_of(hint) for name, hint in fields.items()},
        "required": required,
    }


def _schema_of(hint: Any) -> dict[str, Any]:
    origin: Any = get_origin(hint)
    arguments: tuple[Any, ...] = get_args(hint)
    if origin is NotRequired:
        return _schema_of(arguments[0])
    if origin is Annotated:
        return {**_schema_of(arguments[0]), "format": arguments[1]}
    if origin is Literal:
        return {"enum": [*arguments]} if len(arguments) > 1 else {"const": next(iter(arguments))}
    if origin in (Union, types.UnionType):
        return _union_schema([_schema_of(one) for one in arguments])
    if origin is list:
        return {"type": "array", "items": _schema_of(arguments[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema_of(arguments[1])}
    if hint is Any:
        return {}
    if is_typeddict(hint):
        return _reference(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"enum": [one.value for one in hint]}
    return {"type": _PLAIN[hint]}


def _union_schema(parts: list[dict[str, Any]]) -> dict[str, Any]:
    # Python keeps equal unions once, in the order of the one that was seen first.
    parts = sorted(parts, key=lambda part: (part == {"type": "null"}, json.dumps(part)))
    if all(part.keys() == {"type"} for part in parts):
        return {"type": [part["type"] for part in parts]}
    return {"anyOf": parts}


def _reference(kind: Any) -> dict[str, str]:
    return {"$ref": f"#/$defs/{type_name(kind)}"}


def make_page(document: dict[str, Any]) -> str:
    """Return the page: the answers of every command under the headings of the help, then the other types."""
    definitions: dict[str, Any] = document["$defs"]
    parts, shown = [NOTE, ABOVE], {Failure.__name__}
    for heading in HEADINGS:
        paths = [one for one in document["commands"] if (one.partition(" ")[0] or "status") in heading.lines]
        parts.append(f"## {heading.title}")
        for path in paths:
            names = [form["$ref"].rpartition("/")[2] for form in document["commands"][path]["anyOf"]][:-1]
            parts.append(f"### {f'landlane {path}'.rstrip()}")
            parts += [_form_text(name, definitions[name], is_new=name not in shown) for name in names]
            shown.update(names)
    parts += ["## Failures", f"### Failure\n\n{_described(definitions[Failure.__name__])}", "## Types"]
    parts += [f"### {name}\n\n{_described(one)}" for name, one in definitions.items() if name not in shown]
    return "\n\n".join(parts) + "\n"


def _form_text(name: str, definition: dict[str, Any], *, is_new: bool) -> str:
    """Return one form of an answer; those that another command has, too, are shown once."""
    if not is_new:
        return f"Also [{name}](#{name.lower()})."
    common = ("code", "message", "hint") if name.endswith("Failure") else ()
    return f"#### {name}\n\n{_described(definition, common)}"


def _described(definition: dict[str, Any], hidden: Sequence[str] = ()) -> str:
    return f"{definition['description']}\n\n{_table(definition, hidden)}"


def _table(definition: dict[str, Any], hidden: Sequence[str]) -> str:
    rows = ["| field | type |", "| --- | --- |"]
    for name, schema in definition["properties"].items():
        if name in ("ok", *hidden):
            continue
        mark = "" if name in definition["required"] else "?"
        rows.append(f"| `{name}`{mark} | {_type_text(schema)} |")
    return "\n".join(rows) if len(rows) > 2 else "It has no other fields."


def _type_text(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type_text(part) for part in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{one}`" for one in schema["enum"])
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if schema.get("format") == "date-time":
        return "time"
    kind: str | list[str] = schema.get("type", "any value")
    if kind == "array":
        return f"list of {_type_text(schema['items'])}"
    if kind == "object":
        return f"map of {_type_text(schema['additionalProperties'])}"
    return " or ".join(kind) if not isinstance(kind, str) else kind


if __name__ == "__main__":
    raise SystemExit(main())
