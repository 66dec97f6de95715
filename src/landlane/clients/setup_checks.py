"""What must hold for a client's hooks to fire: they are switched on, whole, and the folder is trusted."""

from __future__ import annotations

import json
import os

from landlane.clients.detect import MEND, broken_command, load, missing_hooks, our_hooks
from landlane.clients.hook_command import OURS, SECONDS, is_ours
from landlane.clients.setup_model import SetupProblem
from landlane.errors import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any


def read_settings(path: str) -> tuple[dict[str, Any], list[SetupProblem]]:
    """A settings file that may hold comments, and what is wrong with it. An absent one is empty."""
    try:
        return load(path), []
    except Malformed as problem:
        try:
            with open(path, encoding="utf-8") as file:
                found: Any = json.loads(without_comments(file.read()))
        except (OSError, ValueError):
            return {}, [SetupProblem(what=problem.message, hint=problem.hint)]
        return table(found), ([] if _is_a(dict, found) else [SetupProblem(what=problem.message, hint=MEND)])


def without_comments(text: str) -> str:
    """JSON without its comments and without commas before a closing bracket."""
    kept: list[str] = []
    at, last = 0, len(text)
    while at < last:
        start = at
        if text[at] == '"':
            at += 1
            while at < last and text[at] != '"':
                at += 2 if text[at] == "\\" else 1
            at += 1
            kept.append(text[start:at])
        elif text.startswith("//", at):
            end = text.find("\n", at)
            at = last if end < 0 else end
        elif text.startswith("/*", at):
            end = text.find("*/", at + 2)
            at = last if end < 0 else end + 2
        else:
            if text[at] in "]}":
                _drop_comma(kept)
            kept.append(text[at])
            at += 1
    return "".join(kept)


def _drop_comma(kept: list[str]) -> None:
    at = len(kept) - 1
    while at >= 0 and not kept[at].strip():
        at -= 1
    if at >= 0 and kept[at] == ",":
        del kept[at]


def at(settings: Any, *keys: str) -> Any:
    """What stands below these keys, if anything does."""
    found = settings
    for key in keys:
        found = table(found).get(key)
    return found


def table(found: Any) -> dict[str, Any]:
    """The same, if it is a table; else an empty one."""
    return found if _is_a(dict, found) else {}


def items(found: Any) -> list[Any]:
    """The same, if it is a list; else an empty one."""
    return found if _is_a(list, found) else []


def _is_a(kind: type, found: object) -> bool:
    return isinstance(found, kind)


def layout_troubles(
    title: str, path: str, guard: str, settings: Mapping[str, Any], wanted: Mapping[str, Any]
) -> list[SetupProblem]:
    """What is wrong with our hooks in a file of the layout that Claude, Gemini and Qwen share."""
    missing = missing_hooks(settings, wanted)
    commands = (str(hook["command"]) for _, _, hook in our_hooks(settings))
    return [*_missing(title, path, guard, missing), *_gone(title, commands)]


def flat_troubles(
    title: str, path: str, guard: str, settings: Mapping[str, Any], wanted: Mapping[str, Any]
) -> list[SetupProblem]:
    """What is wrong with our hooks in a file that lists them right below their events."""
    have, want = list(flat_hooks(settings)), list(flat_hooks(wanted))
    missing = {(event, at(hook, "matcher")) for event, hook, _ in want} - {
        (event, at(hook, "matcher")) for event, hook, _ in have
    }
    events = sorted({event for event, _ in missing})
    return [*_missing(title, path, guard, events), *_gone(title, (command for _, _, command in have))]


def flat_hooks(settings: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Our hooks in such a file: event, the hook itself, and its command."""
    for event, hooks in table(at(settings, "hooks")).items():
        for hook in items(hooks):
            command = str(at(hook, "bash") or at(hook, "command"))
            if is_ours(command):
                yield event, table(hook), command


def _missing(title: str, path: str, guard: str, events: Iterable[str]) -> list[SetupProblem]:
    return [
        SetupProblem(
            what=f"{title} has no hook of ours for {event} in {path}", hint=MEND, is_open=event == guard
        )
        for event in events
    ]


def _gone(title: str, commands: Iterable[str]) -> list[SetupProblem]:
    """A guard's line refuses when its program is gone: the guard holds, but nothing can be edited."""
    parts = {broken_command(command) for command in commands if command != OURS} - {""}
    return [
        SetupProblem(what=f"{title}'s hooks run {part}, which is not there", hint=MEND, is_open=False)
        for part in sorted(parts)
    ]


def late(title: str) -> SetupProblem:
    """For clients that take a hook's silence for a yes."""
    return SetupProblem(
        what=f"{title} lets an edit pass when a hook takes longer than {SECONDS} seconds",
        hint="nothing to do: our hooks give up and refuse before that, unless the machine stands still",
        is_open=False,
    )


def switched_off(
    title: str, paths: Iterable[str], is_off: Callable[[Mapping[str, Any]], str]
) -> list[SetupProblem]:
    """Settings that switch hooks off; `is_off` names the key that does."""
    found: list[SetupProblem] = []
    for path in paths:
        settings, problems = read_settings(path)
        found += [SetupProblem(what=problem.what, hint=problem.hint, is_open=False) for problem in problems]
        key = is_off(settings)
        if key:
            found.append(
                SetupProblem(what=f"{title}'s hooks are switched off", hint=f"take `{key}` out of {path}")
            )
    return found


def trust(path: str, folder: str) -> bool | None:
    """What a list of trusted folders, as Gemini and Qwen keep it, says of a folder; None when nothing."""
    longest, level = -1, ""
    for rule, found in read_settings(path)[0].items():
        covered = os.path.realpath(os.path.dirname(rule) if found == "TRUST_PARENT" else rule)
        if is_below(folder, covered) and len(rule) > longest:
            longest, level = len(rule), str(found)
    return None if not level else level != "DO_NOT_TRUST"


def is_below(path: str, folder: str) -> bool:
    """Whether a path is this folder or lies in it."""
    real, top = os.path.realpath(path), os.path.realpath(folder)
    return real == top or real.startswith(top.rstrip("/") + "/")
