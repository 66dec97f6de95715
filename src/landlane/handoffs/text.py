"""Handoffs in words: what the next owner reads first, and what a person is shown."""

from __future__ import annotations

from landlane.handoffs.model import ACCEPTED, REFUSED, SENT, Handoff, is_whole
from landlane.tasks.model import ANYBODY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


_MOST_PATHS = 20
_MOST_COMMANDS = 12
_MOST_FAILED = 5
_LONGEST_WHY = 500


def tell_said(handoff: Handoff, longest: int = 2500) -> list[str]:
    """What the sender says, line by line; a text that is longer than this is cut."""
    lines: list[str] = []
    for name, text in (
        ("Next step", handoff.next),
        ("Context", handoff.context),
        ("Product", handoff.product),
    ):
        if text:
            lines += _block(name, cut(text, longest, f"landlane handoff show {handoff.id}"))
    lists = (
        ("Constraints", handoff.constraints),
        ("Blockers", handoff.blockers),
        ("Assumptions", handoff.assumptions),
    )
    for name, items in lists:
        if items:
            lines += [f"{name}:", *(f"- {_in_lines(item)}" for item in items)]
    for name, item in handoff.fields.items():
        shown = "; ".join(map(str, item)) if isinstance(item, (list, tuple)) else str(item)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        lines += _block(name, shown)
    return lines


def tell_taken(taken: Mapping[str, Any]) -> list[str]:
    """What was found mechanically, line by line."""
    lines: list[str] = []
    if taken.get("branch"):
        head = str(taken.get("head", ""))[:12]
        lines.append(f"Branch: {taken['branch']}{f' at {head}' if head else ', with no commit yet'}")
    if taken.get("workspace"):
        lines.append(f"Workspace: {taken['workspace']} in {taken.get('path', '')}")
    if taken.get("changed"):
        lines.append(f"Committed changes: {_some(taken['changed'])}")
    if taken.get("dirty"):
        lines.append(f"Not committed: {_some(taken['dirty'])}")
    if taken.get("rescue"):
        lines.append(f"A copy of what is not committed: landlane rescue restore {taken['rescue']}")
    if taken.get("claims"):
        lines.append(f"Claims: {_some([one['pattern'] for one in taken['claims']])}")
    lines += tell_commands(taken.get("commands", ()))
    lines += tell_failed(taken.get("failed", ()))
    lines += [f"Not known: {text}" for text in taken.get("unknown", ())]
    return lines


def tell_commands(commands: Sequence[Mapping[str, Any]]) -> list[str]:
    """The commands that were run, with their exit codes."""
    if not commands:
        return []
    more = f" (the last {_MOST_COMMANDS} of {len(commands)})" if len(commands) > _MOST_COMMANDS else ""
    return [
        f"Commands that were run{more}:",
        *(f"- exit {_exit(one)}: {one['command']}" for one in commands[-_MOST_COMMANDS:]),
    ]


def _exit(command: Mapping[str, Any]) -> str:
    return "?" if command.get("exit") is None else str(command["exit"])


def tell_failed(failed: Sequence[Mapping[str, Any]]) -> list[str]:
    """What was tried before and did not do, the newest last."""
    return [
        f"Attempt {one['attempt']} of {one['agent'] or 'somebody'} left: "
        f"{_in_lines(cut(str(one['why']), _LONGEST_WHY))}"
        for one in failed[-_MOST_FAILED:]
    ]


def tell_standing(handoff: Handoff, until: str, now: int) -> str:
    """For whom it is, and how it stands; `until` is its time in words."""
    count = f"handoff {handoff.attempt} of at most {handoff.maximum}"
    if handoff.state == ACCEPTED:
        return f"accepted by {handoff.accepted_by}, {count}"
    if handoff.state == REFUSED:
        return f"refused: {handoff.why}"
    if handoff.state != SENT:
        return f"{handoff.state}: {handoff.why}"
    if handoff.to == ANYBODY or now >= handoff.until:
        told = (
            f" ({handoff.why})"
            if handoff.why
            else ""
            if handoff.to == ANYBODY
            else f" ({handoff.to} did not come)"
        )
        return f"waits for anybody{told}, {count}"
    return f"waits for {handoff.to} until {until}, {count}"


def tell_handoff(handoff: Handoff, longest: int = 2500) -> list[str]:
    """All of a handoff for its next owner."""
    head = f"{handoff.sender} handed you {handoff.task} ({handoff.id}, hash {handoff.digest[:12]})."
    lines = [head, *tell_said(handoff, longest), *tell_taken(handoff.taken)]
    if not is_whole(handoff):
        lines.insert(1, "Take care: it was changed after it was sealed; its hash does not fit.")
    return lines


def _block(name: str, text: str) -> list[str]:
    if "\n" not in text and len(text) < 200:
        return [f"{name}: {text}"]
    return [f"{name}:", *(f"  {line}".rstrip() for line in text.split("\n"))]


def _in_lines(text: str) -> str:
    return text.replace("\n", "\n  ")


def _some(names: Sequence[str]) -> str:
    shown = [name.encode("utf-8", "backslashreplace").decode() for name in names[:_MOST_PATHS]]
    more = f" and {len(names) - _MOST_PATHS} more" if len(names) > _MOST_PATHS else ""
    return ", ".join(shown) + more


def plain(text: str) -> str:
    """A text that only shows: what would move a cursor, ring a bell or turn the writing is spelled out."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter in "\n\t" or letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


def cut(text: str, most: int, rest: str = "") -> str:
    """The text, or its beginning and where the rest is."""
    return text if len(text) <= most else f"{text[:most].rstrip()} … ({rest or 'cut'})"
