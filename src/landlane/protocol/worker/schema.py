"""The JSON Schema of the worker protocol, made from its one table of fields."""

from __future__ import annotations

from landlane.protocol.worker.fields import (
    COMMIT,
    FINDING_FIELDS,
    FINDINGS,
    FLAG,
    NUMBER,
    ONE_OF,
    PATHS,
    TABLE,
    TEXT,
    TEXTS,
    USAGE,
    USAGE_FIELDS,
    VERSION,
    WHOLE,
    WORD,
    Field,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def worker_schema() -> dict[str, Any]:
    """What one line may be, for validators in any language."""
    return {
        "$schema": _DIALECT,
        "title": "Landlane worker protocol",
        "description": "One line of JSON is one message.",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in TABLE],
        "$defs": {name: _message(name) for name in TABLE},
    }


def _message(name: str) -> dict[str, Any]:
    fields = TABLE[name]
    made: dict[str, Any] = {
        "type": "object",
        "properties": {"type": {"const": name}, "version": {"const": VERSION}, **_properties(fields)},
        "required": ["type", "version", *(key for key, field in fields.items() if not field.is_optional)],
        "additionalProperties": False,
    }
    rivals = ONE_OF.get(name, ())
    pairs = [(one, other) for at, one in enumerate(rivals) for other in rivals[at + 1 :]]
    if pairs:
        made["not"] = {"anyOf": [_both(one, other) for one, other in pairs]}
    return made


def _both(one: str, other: str) -> dict[str, Any]:
    said = {"not": {"type": "null"}}
    return {"required": [one, other], "properties": {one: said, other: said}}


def _properties(fields: Mapping[str, Field]) -> dict[str, Any]:
    return {key: _property(field) for key, field in fields.items()}


def _property(field: Field) -> dict[str, Any]:
    made = _form(field)
    if field.is_optional:
        made["type"] = [made["type"], "null"]
    return {"description": field.help, **made}


def _form(field: Field) -> dict[str, Any]:
    form: dict[str, Any] = {"type": _TYPES[field.kind]}
    match field.kind:
        case "text" | "word":
            form["maxLength"] = field.most
        case "whole" | "number":
            form |= {"minimum": 0, "maximum": field.most}
        case "texts" | "paths":
            form |= {"maxItems": field.most, "items": {"type": "string"}}
        case "findings":
            item = {"type": "object", "properties": _properties(FINDING_FIELDS)}
            item |= {"required": ["text"], "additionalProperties": False}
            form |= {"maxItems": field.most, "items": item}
        case "usage":
            form |= {"properties": _properties(USAGE_FIELDS), "additionalProperties": False}
        case _:
            pass
    if field.kind in _PATTERNS:
        form["pattern"] = _PATTERNS[field.kind]
    return form


_TYPES = {
    TEXT: "string",
    WORD: "string",
    WHOLE: "integer",
    NUMBER: "number",
    FLAG: "boolean",
    TEXTS: "array",
    PATHS: "array",
    COMMIT: "string",
    USAGE: "object",
    FINDINGS: "array",
}
_PATTERNS = {WORD: "^[!-~]+$", COMMIT: "^([0-9a-f]{40}|[0-9a-f]{64})$"}
