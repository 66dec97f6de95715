"""Validate the `--json` answers that tests get against the shipped JSON Schema, more strictly than it asks.

The schema allows other fields, because a later version may add some. Here an unknown field fails, so
that every field is declared in `cli/answers/` or in `json_types.py` of its noun.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator

from landlane.cli.parse import parse
from landlane.errors import LandlaneError
from scripts.json_schemas import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Sequence


def check_answer(words: Sequence[str], answer: dict[str, Any]) -> None:
    """Fail if the answer to these words of `landlane` has none of the forms that its schema allows."""
    forms = _forms(_command(words), is_ok=answer["ok"])
    wrong = {name: [f"{one.json_path}: {one.message}" for one in _errors(name, answer)] for name in forms}
    if all(wrong.values()):
        lines = [f"  {name}: {line}" for name, errors in wrong.items() for line in errors]
        raise AssertionError("\n".join([f"no form of the answer to landlane {' '.join(words)}", *lines]))


def _command(words: Sequence[str]) -> str:
    try:
        return parse(words).command.path
    except LandlaneError:
        return ""  # there is no such command: its answer is a failure like that of any other


@cache
def _forms(path: str, *, is_ok: bool) -> tuple[str, ...]:
    document = _strict_schema()
    names = [form["$ref"].rpartition("/")[2] for form in document["commands"][path]["anyOf"]]
    return tuple(name for name in names if document["$defs"][name]["properties"]["ok"]["const"] is is_ok)


def _errors(name: str, answer: dict[str, Any]) -> list[Any]:
    return list(_validator(name).iter_errors(answer))


@cache
def _validator(name: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": _strict_schema()["$defs"]})


@cache
def _strict_schema() -> dict[str, Any]:
    document = json.loads(SCHEMA.read_text(encoding="utf-8"))
    for definition in document["$defs"].values():
        definition["additionalProperties"] = False
    return document
