"""The tools as clients see them: names, short descriptions and schemas, kept under 2,500 tokens."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "landlane"

# A client that hides tools behind a search shows the model only this.
INSTRUCTIONS = (
    "Several agents work on this repository at once. The one rule: claim a path before you change it, and "
    "when you are refused do not touch it: take other work (next), wait (claim with wait), or ask. "
    "status shows who is here, what is held and what needs you. Paths count from the root of the checkout."
)

# No call waits longer: some clients give up after a minute and would miss the answer.
LONGEST_WAIT_SECONDS = 50

_TEXT: dict[str, Any] = {"type": "string"}
_FLAG: dict[str, Any] = {"type": "boolean"}
_NUMBER: dict[str, Any] = {"type": "integer"}
_OBJECT: dict[str, Any] = {"type": "object"}
_LIST: dict[str, Any] = {"type": "array"}
_PATHS: dict[str, Any] = {"type": "array", "items": _TEXT}
_WAIT: dict[str, Any] = {"type": "integer", "description": f"seconds to wait, at most {LONGEST_WAIT_SECONDS}"}


def _described(schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {**schema, "description": description}


def _tool(
    name: str,
    description: str,
    given: dict[str, dict[str, Any]],
    answered: dict[str, dict[str, Any]],
    *,
    needs: tuple[str, ...] = (),
    is_reading: bool = False,
    is_repeatable: bool = False,
) -> dict[str, Any]:
    """Return one tool. No tool is destructive or reaches beyond this repository."""
    inputs: dict[str, Any] = {"type": "object", "properties": given, "additionalProperties": False}
    if needs:
        inputs["required"] = list(needs)
    outputs = {"type": "object", "properties": {"ok": _FLAG, **answered}, "required": ["ok"]}
    hints: dict[str, Any] = {"readOnlyHint": is_reading, "openWorldHint": False}
    if not is_reading:
        hints |= {"destructiveHint": False, "idempotentHint": is_repeatable}
    return {
        "name": name,
        "description": description,
        "inputSchema": inputs,
        "outputSchema": outputs,
        "annotations": hints,
    }


TOOLS: tuple[dict[str, Any], ...] = (
    _tool(
        "status",
        "Who is here, what is held, what is on its way, and what needs you.",
        {},
        {"you": {}, "rules": {}, "sessions": _LIST, "claims": _LIST, "tasks": _OBJECT, "needs_you": _LIST},
        is_reading=True,
    ),
    _tool(
        "claim",
        "Take the right to change paths or globs: all, or none. A refusal says who holds them, until when, "
        "and what to do instead.",
        {
            "paths": _PATHS,
            "wait": _WAIT,
            "task": _TEXT,
            "note": _described(_TEXT, "why, for agents that are refused"),
            "shared": _described(_FLAG, "with others who share it too"),
            "literal": _described(_FLAG, "no globs: app/[id].tsx is a file"),
        },
        {"granted": _LIST, "refused": _LIST},
        needs=("paths",),
        is_repeatable=True,
    ),
    _tool(
        "release",
        "Give claims back; without paths, all of them.",
        {"paths": _PATHS, "commit": _described(_TEXT, "that the work ended in")},
        {"released": _LIST},
    ),
    _tool(
        "next",
        "Take the best ready task whose paths are free, and its paths with it; or go on with yours.",
        {"wait": _WAIT, "role": _TEXT},
        {"task": {}, "claims": _LIST, "feedback": _LIST, "context": _TEXT, "rules": {}},
    ),
    _tool(
        "done",
        "Say that a task is done. It is believed on evidence: commits, and its check run by us. task.state "
        "shows how far it is.",
        {"task": _TEXT, "result": _described(_TEXT, "what came of it")},
        {"task": _OBJECT, "evidence": _LIST},
        needs=("task",),
        is_repeatable=True,
    ),
    _tool(
        "handoff",
        "Hand your task to another agent, with what you found out and the next step; branch, changes and "
        "claims go along. It finds them by next.",
        {
            "task": _TEXT,
            "to": _described(_TEXT, "an agent, role:NAME; else anybody"),
            "context": _described(_TEXT, "what you found out, what holds"),
            "next": _TEXT,
            "product": _TEXT,
            "constraints": _PATHS,
            "blockers": _PATHS,
            "assumptions": _PATHS,
            "fields": _OBJECT,
        },
        {"task": _OBJECT, "handoff": _OBJECT},
        needs=("task", "context"),
    ),
    _tool(
        "state",
        "Shared values under keys. get, list (key is a prefix), set (expect is the version you read; none "
        "for a new key), append.",
        {
            "do": {"enum": ["get", "list", "set", "append"]},
            "key": _TEXT,
            "value": {},
            "expect": _NUMBER,
        },
        {"key": _TEXT, "value": {}, "version": _NUMBER, "states": _LIST},
        needs=("do",),
    ),
    _tool(
        "land",
        "Bring your branch onto the target branch: it is tested as merged. Call again to hear how it went.",
        {"branch": _TEXT, "task": _TEXT, "wait": _WAIT},
        {"landing": _OBJECT},
        is_repeatable=True,
    ),
    _tool(
        "ask",
        "Ask a person. Your task rests and keeps its paths. Call again with the same words for the answer.",
        {
            "task": _TEXT,
            "question": _TEXT,
            "kind": {"enum": ["approval", "credentials", "legal", "financial", "deploy", "taste"]},
        },
        {"gate": _OBJECT, "task": _OBJECT},
        needs=("task", "question"),
        is_repeatable=True,
    ),
    _tool(
        "journal",
        "What happened, entry by entry: the newest, or those behind a position.",
        {"last": _described(_NUMBER, "how many, 20 by default"), "since": _NUMBER},
        {"entries": _LIST},
        is_reading=True,
    ),
)

BY_NAME = {str(tool["name"]): tool for tool in TOOLS}

RESOURCES: tuple[dict[str, Any], ...] = tuple(
    {"uri": f"landlane://{name}", "name": name, "description": description, "mimeType": kind}
    for name, description, kind in (
        ("rules", "The rules that every session reads.", "text/markdown"),
        ("tasks", "The open tasks.", "application/json"),
        ("claims", "Who holds what.", "application/json"),
        ("journal", "The newest entries of the journal.", "application/json"),
    )
)
