"""Handoffs as lines of text, for their next owner and for people."""

from __future__ import annotations

from landlane.handoffs.model import ACCEPTED, SENT, is_unchanged
from landlane.tasks.model import ANYBODY
from landlane.text import list_some
from landlane.units import count, join_words, time_ago, time_left

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from landlane.handoffs.model import Handoff

_COMMIT = 8  # digits of a commit that people see
_MOST_PATHS = 20
_MOST_COMMANDS = 12
_MOST_FAILURES = 5
_LONGEST_WHY = 500


def format_sender_fields(handoff: Handoff, longest: int = 2500) -> list[str]:
    """Return the sender's fields as lines; a longer text is shortened."""
    lines: list[str] = []
    for name, text in (
        ("Next step", handoff.next),
        ("Context", handoff.context),
        ("Product", handoff.product),
    ):
        if text:
            lines += _block(name, shorten(text, longest, f"landlane handoff show {handoff.id}"))
    lists = (
        ("Constraints", handoff.constraints),
        ("Blockers", handoff.blockers),
        ("Assumptions", handoff.assumptions),
    )
    for name, items in lists:
        if items:
            lines += [f"{name}:", *(f"- {_indent(item)}" for item in items)]
    for name, item in handoff.fields.items():
        lines += _block(name, _field_text(item))
    return lines


def format_collected_state(taken: Mapping[str, Any]) -> list[str]:
    """Return the mechanically collected state as lines."""
    lines: list[str] = []
    if taken.get("branch"):
        head = str(taken.get("head", ""))[:12]
        lines.append(f"Branch: {taken['branch']}{f' at {head}' if head else ', with no commit yet'}")
    if taken.get("workspace"):
        lines.append(f"Workspace: {taken['workspace']} in {taken.get('path', '')}")
    if taken.get("changed"):
        lines.append(f"Committed changes: {_join_paths(taken['changed'])}")
    if taken.get("dirty"):
        lines.append(f"Not committed: {_join_paths(taken['dirty'])}")
    if taken.get("rescue"):
        lines.append(f"A copy of what is not committed: landlane rescue restore {taken['rescue']}")
    if taken.get("claims"):
        lines.append(f"Claims: {_join_paths([one['pattern'] for one in taken['claims']])}")
    lines += format_commands(taken.get("commands", ()))
    lines += format_failures(taken.get("failed", ()))
    lines += [f"Not known: {text}" for text in taken.get("unknown", ())]
    return lines


def format_commands(commands: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the commands that were run, with their exit codes, as lines."""
    if not commands:
        return []
    more = f" (the last {_MOST_COMMANDS} of {len(commands)})" if len(commands) > _MOST_COMMANDS else ""
    return [
        f"Commands that were run{more}:",
        *(f"- exit {_exit(one)}: {one['command']}" for one in commands[-_MOST_COMMANDS:]),
    ]


def _exit(command: Mapping[str, Any]) -> str:
    return "?" if command.get("exit") is None else str(command["exit"])


def format_failures(failures: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return why earlier attempts failed as lines, newest last."""
    return [
        f"Attempt {one['attempt']} of {one['agent'] or 'landlane'} left: "
        f"{_indent(shorten(str(one['why']), _LONGEST_WHY))}"
        for one in failures[-_MOST_FAILURES:]
    ]


def state_text(handoff: Handoff, now: int) -> str:
    """Return the state of a handoff in one line; `now` is wall-clock time."""
    if handoff.state == ACCEPTED:
        return f"accepted by {handoff.accepted_by} {time_ago(handoff.accepted_at, now)}"
    if handoff.state != SENT:
        return f"{handoff.state}: {handoff.why}"
    if handoff.to == ANYBODY or now >= handoff.until:
        late = "" if handoff.to == ANYBODY else f"{handoff.to} has not accepted it"
        why = handoff.why or late
        return f"open to anyone{f' ({why})' if why else ''}"
    return f"waits for {handoff.to}, open to anyone {time_left(handoff.until - now)}"


def sent_text(handoff: Handoff, title: str) -> str:
    """Return what was handed over to whom: `handed T12 List users to bob as H3, with 1 commit`."""
    taken = handoff.taken
    dirty = len(taken.get("dirty", ())) if taken.get("rescue") else 0
    parts = ["branch"] if taken.get("workspace") or taken.get("commits") else []
    parts += [count(taken["commits"], "commit")] if taken.get("commits") else []
    parts += [count(dirty, "uncommitted file")] if dirty else []
    parts += [count(len(taken["claims"]), "claim")] if taken.get("claims") and not parts else []
    goods = f", with {join_words(parts)}" if parts else ""
    to = "anyone" if handoff.to == ANYBODY else handoff.to
    return f"handed {handoff.task} {title} to {to} as {handoff.id}{goods}"


def field_rows(handoff: Handoff, *, is_accepted: bool = False) -> list[tuple[str, str]]:
    """Return the names and texts of what a handoff says: the sender's words, then what was collected."""
    taken = handoff.taken
    rows = [
        ("next step", handoff.next),
        ("context", handoff.context),
        ("product", handoff.product),
        *(("must hold", text) for text in handoff.constraints),
        *(("blocker", text) for text in handoff.blockers),
        *(("assumption", text) for text in handoff.assumptions),
        *((name, _field_text(given)) for name, given in handoff.fields.items()),
        ("branch", _branch_text(handoff, is_accepted=is_accepted)),
        ("changed", _join_paths(taken.get("changed", ()))),
        ("claimed", _join_paths([one["pattern"] for one in taken.get("claims", ())])),
    ]
    rows += [
        ("ran", f"{one['command']}: exit {_exit(one)}") for one in taken.get("commands", ())[-_MOST_COMMANDS:]
    ]
    tried = [one for one in taken.get("failed", ()) if not str(one["why"]).startswith("handed to ")]
    rows += [("tried", _failure_text(one)) for one in tried[-_MOST_FAILURES:]]
    rows += [("unknown", text) for text in taken.get("unknown", ())]
    return [(name, text) for name, text in rows if text]


def _failure_text(failure: Mapping[str, Any]) -> str:
    why = shorten(" ".join(str(failure["why"]).split()), _LONGEST_WHY)
    return f"{why} (attempt {failure['attempt']}, {failure['agent'] or 'landlane'})"


def _field_text(given: object) -> str:
    return "; ".join(map(str, given)) if isinstance(given, (list, tuple)) else str(given)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _branch_text(handoff: Handoff, *, is_accepted: bool) -> str:
    taken = handoff.taken
    if not taken.get("branch"):
        return ""
    head = str(taken.get("head", ""))[:_COMMIT]
    text = f"{taken['branch']}{f' at {head}' if head else ', no commit yet'}"
    if taken.get("rescue"):
        files = count(len(taken.get("dirty", ())), "uncommitted file")
        kept = (
            "kept in its workspace"
            if taken.get("workspace") and is_accepted
            else f"saved as {taken['rescue']}"
        )
        text += f", {files} {kept}"
    return text


def format_handoff(handoff: Handoff) -> list[str]:
    """Return a handoff as lines for its next owner."""
    head = f"{handoff.sender} handed you {handoff.task} ({handoff.id}, hash {handoff.digest[:12]})."
    lines = [head, *format_sender_fields(handoff), *format_collected_state(handoff.taken)]
    if not is_unchanged(handoff):
        lines.insert(1, "Careful: it was changed after it was sent; its hash does not match.")
    return lines


def _block(name: str, text: str) -> list[str]:
    if "\n" not in text and len(text) < 200:
        return [f"{name}: {text}"]
    return [f"{name}:", *(f"  {line}".rstrip() for line in text.split("\n"))]


def _indent(text: str) -> str:
    return text.replace("\n", "\n  ")


def _join_paths(names: Sequence[str]) -> str:
    return list_some([name.encode("utf-8", "backslashreplace").decode() for name in names], _MOST_PATHS)


def shorten(text: str, most: int, rest: str = "") -> str:
    """Return the text, or its beginning and `rest`, which names where to find the remainder."""
    return text if len(text) <= most else f"{text[:most].rstrip()} … ({rest or 'cut'})"
