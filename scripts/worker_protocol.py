#!/usr/bin/env python3
"""Write docs/reference/worker-protocol.json and .md from the one table of the worker protocol.

`--check` writes nothing, and fails with a diff when a page is stale.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from landlane.protocol.worker.fields import (
    CODES,
    FINDING_FIELDS,
    MOST_LINE_BYTES,
    ONE_OF,
    TABLE,
    USAGE_FIELDS,
    VERSION,
    Field,
)
from landlane.protocol.worker.messages import (
    Heartbeat,
    Progress,
    Usage,
    WorkAssignment,
    WorkComplete,
    write_line,
)

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"
NOTE = "<!-- Written by scripts/worker_protocol.py from the code. Change that, then run the script. -->"

ABOVE = f"""# The worker protocol

Version {VERSION}. A worker is a program in any language. It reads one line of JSON from its standard input
and writes lines of JSON to its standard output; each line is one message. What it writes to standard error
is kept for people. [The schema](worker-protocol.json) says the same for machines;
[Use any script as a worker](../howto/workers.md) shows how.

```text
orchestrator                                worker
    │ ── WorkAssignment ──────────────────────▶ │   one line, then standard input is closed
    │ ◀────────────── Heartbeat, Progress ───── │   as many as it likes
    │ ◀──────── WorkComplete or WorkFailed ──── │   exactly one; then it ends with exit code 0
```

Nothing else may be said. Every message has `type` and `version` and names its `assignment`. A field that is
not in the table, a missing one, a key that stands twice, `NaN`, and a line of more than
{MOST_LINE_BYTES:,} bytes end the work as `WorkFailed`. So does a worker that is silent for longer than
`heartbeat_seconds`, closes its output, or ends without a last word. Whenever work ends, everything that the
worker started is ended with it: SIGTERM first, SIGKILL after a few seconds."""

_KINDS = {
    "text": "text",
    "word": "word",
    "whole": "whole number",
    "number": "number",
    "flag": "true or false",
    "texts": "list of texts",
    "paths": "list of paths",
    "commit": "commit id",
    "usage": "[usage](#usage)",
    "findings": "list of [findings](#findings)",
}
_INTROS = {
    "WorkAssignment": "Goes to the worker, once.",
    "Heartbeat": "The worker is alive and busy. Any other message is as good a sign of life.",
    "Progress": "Something that a person may want to see.",
    "WorkComplete": "It is done.",
    "WorkFailed": "It is not done. Also what is made of a worker that went wrong.",
}


_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TYPES = {
    "text": "string",
    "word": "string",
    "whole": "integer",
    "number": "number",
    "flag": "boolean",
    "texts": "array",
    "paths": "array",
    "commit": "string",
    "usage": "object",
    "findings": "array",
}
_PATTERNS = {"word": "^[!-~]+$", "commit": "^([0-9a-f]{40}|[0-9a-f]{64})$"}


def main(arguments: list[str] | None = None) -> int:
    """Write or check both files, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file is stale")
    is_check = parser.parse_args(arguments).check
    pages = {"worker-protocol.json": schema_text(), "worker-protocol.md": page_text()}
    is_stale = False
    for name, after in pages.items():
        path = FOLDER / name
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        if before != after and is_check:
            is_stale = True
            lines = difflib.unified_diff(
                before.splitlines(), after.splitlines(), name, "as the code says", n=1
            )
            print("\n".join(lines))
        elif before != after:
            path.write_text(after, encoding="utf-8")
    if is_stale:
        print(
            "The protocol's pages are stale. `python scripts/worker_protocol.py` updates them.",
            file=sys.stderr,
        )
    return int(is_stale)


def schema_text() -> str:
    """The schema as a file."""
    return json.dumps(worker_schema(), indent=2, ensure_ascii=False) + "\n"


def worker_schema() -> dict[str, Any]:
    """Return the JSON Schema of one line, for validators in any language."""
    return {
        "$schema": _DIALECT,
        "title": "Landlane worker protocol",
        "description": "One line of JSON is one message.",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in TABLE],
        "$defs": {name: _message(name) for name in TABLE},
    }


def _message(name: str) -> dict[str, Any]:
    fields = TABLE[name]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"type": {"const": name}, "version": {"const": VERSION}, **_properties(fields)},
        "required": ["type", "version", *(key for key, field in fields.items() if not field.is_optional)],
        "additionalProperties": False,
    }
    rivals = ONE_OF.get(name, ())
    pairs = [(one, other) for at, one in enumerate(rivals) for other in rivals[at + 1 :]]
    if pairs:
        schema["not"] = {"anyOf": [_both(one, other) for one, other in pairs]}
    return schema


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


def page_text() -> str:
    """The page for people."""
    parts = [NOTE, ABOVE, example()]
    for name, fields in TABLE.items():
        parts += [f"## {name}", _INTROS[name], table(fields)]
        if name in ONE_OF:
            words = ", ".join(f"`{word}`" for word in ONE_OF[name])
            parts.append(f"Of {words} there is one at most. Without any, nothing was changed.")
    parts += ["## Usage", "What is not known is null or left out.", table(USAGE_FIELDS)]
    parts += ["## Findings", "What a reviewer found; only the text must be there.", table(FINDING_FIELDS)]
    codes = "\n".join(
        ["| code | means |", "| --- | --- |", *(f"| `{one}` | {text} |" for one, text in CODES.items())]
    )
    parts += ["## Codes of WorkFailed", codes]
    return "\n\n".join(parts) + "\n"


def table(fields: dict[str, Field]) -> str:
    """The fields of one message as a Markdown table."""
    rows = ["| field | kind | at most | means |", "| --- | --- | --- | --- |"]
    for name, field in fields.items():
        optional = ", optional" if field.is_optional else ""
        most = f"{field.most:,}" if field.most else ""
        rows.append(f"| `{name}` | {_KINDS[field.kind]}{optional} | {most} | {field.help} |")
    return "\n".join(rows)


def example() -> str:
    """A short conversation, as it goes over the pipe."""
    asked = WorkAssignment(
        assignment="T7-1",
        task="T7",
        attempt=1,
        title="Parse dates",
        folder="/srv/checkouts/T7",
        scratch="/srv/scratch/T7",
        paths=("src/dates/**",),
        heartbeat_seconds=60,
    )
    patch = "--- a/src/dates/parse.py\n+++ b/src/dates/parse.py\n@@ -1 +1 @@\n-pass\n+import datetime\n"
    said = [
        Heartbeat(assignment="T7-1"),
        Progress(assignment="T7-1", text="the tests fail as they should", done=0.3),
        WorkComplete(
            assignment="T7-1",
            summary="dates are parsed",
            patch=patch,
            usage=Usage(input_tokens=48_210, output_tokens=2_107),
        ),
    ]
    lines = "".join(write_line(one).decode() for one in said)
    return (
        "An assignment, and what a worker may say to it:\n\n"
        f"```json\n{write_line(asked).decode()}```\n\n```json\n{lines}```"
    )


if __name__ == "__main__":
    raise SystemExit(main())
