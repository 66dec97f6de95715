"""What the setup of a client finds on a machine: programs, settings, and our own hooks in them."""

from __future__ import annotations

import json
import os
import shlex
import shutil

from landlane.clients.hook_command import MARK, is_ours
from landlane.errors import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from landlane.clients.setup_model import ClientEnvironment

MEND = "run `landlane init` again"


def program(place: ClientEnvironment, name: str) -> str:
    """Where a program lies on the search path; empty when it is not there."""
    return shutil.which(name, path=place.search_path) or ""


def is_there(place: ClientEnvironment, name: str, *paths: str) -> bool:
    """Whether a client is on this machine: its program, or a folder or file that it makes."""
    return bool(program(place, name)) or any(os.path.exists(located(place, path)) for path in paths)


def located(place: ClientEnvironment, path: str) -> str:
    """A path from the root of the checkout, or with `~/` from the home, in full."""
    return os.path.join(place.home, path[2:]) if path.startswith("~/") else os.path.join(place.root, path)


def files_in(folder: str, ending: str) -> list[str]:
    """Return the files of a folder with an ending, sorted; none if it does not exist."""
    try:
        return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(ending)]
    except OSError:
        return []


def main_checkout(root: str) -> str:
    """The checkout that a linked worktree belongs to; any other checkout itself.

    Read from git's files, since this is asked of every worktree and git takes longer to start.
    """
    try:
        with open(os.path.join(root, ".git"), encoding="utf-8") as file:
            private = os.path.join(root, file.read().removeprefix("gitdir:").strip())
        with open(os.path.join(private, "commondir"), encoding="utf-8") as file:
            common = os.path.realpath(os.path.join(private, file.read().strip()))
    except (OSError, ValueError):
        return root
    return os.path.dirname(common) if os.path.basename(common) == ".git" else root


def load(path: str) -> dict[str, Any]:
    """A JSON file; an absent one is empty.

    Raises:
        Malformed: it cannot be read, or is no table.
    """
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        found: Any = json.loads(text) if text.strip() else {}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as problem:
        raise _unreadable(path, str(problem)) from problem
    if not _is_a(dict, found):
        raise _unreadable(path, "it is no table")
    return found


def _unreadable(path: str, why: str) -> Malformed:
    return Malformed(
        f"{path} cannot be read: {why}", code="CLIENT_SETTINGS", hint=f"mend that file, then {MEND}"
    )


def our_hooks(settings: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Our hooks in the shared layout, wherever they stand: event, matcher, and the hook itself."""
    for event, groups in _table(settings.get("hooks")).items():
        for group in _list(groups):
            for hook in _list(_table(group).get("hooks")):
                if is_ours(str(_table(hook).get("command", ""))):
                    yield event, str(_table(group).get("matcher") or ""), _table(hook)


def _table(found: Any) -> Mapping[str, Any]:
    return found if _is_a(dict, found) else {}


def _list(found: Any) -> list[Any]:
    return found if _is_a(list, found) else []


def _is_a(kind: type, found: object) -> bool:
    return isinstance(found, kind)


def missing_hooks(settings: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """The events that we want a hook for and that have none, or one for fewer tools."""
    have = {(event, matcher) for event, matcher, _ in our_hooks(settings)}
    want = {(event, matcher) for event, matcher, _ in our_hooks(wanted)}
    return sorted({event for event, _ in want - have})


def broken_command(command: str) -> str:
    """What a hook's command names that is gone; empty when all of it is there."""
    try:
        words = shlex.split(command)
        if words[1:2] == ["-c"]:
            words = shlex.split(words[2])
    except (ValueError, IndexError):
        return command
    if not words or not os.access(words[0], os.X_OK):
        return words[0] if words else command
    return next((word for word in words if word.endswith(MARK) and not os.path.isfile(word)), "")


def release(text: str) -> str:
    """The version in what a program answers to `--version`; empty when there is none."""
    return next((word for word in text.split() if word[:1].isdigit() and "." in word), "")


def is_older(version: str, least: tuple[int, ...]) -> bool:
    """Whether a version is known to be older than another."""
    numbers = [part for part in version.split("-", maxsplit=1)[0].split(".") if part.isdigit()]
    return bool(numbers) and tuple(map(int, numbers)) < least
