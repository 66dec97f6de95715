"""Find out whether a client is in use, and what keeps our hooks from being called in it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Callable

from landlane.clients.model import CLIENTS
from landlane.clients.setup_files import MARK, SetupProblem
from landlane.errors import Malformed
from landlane.merge.json_source import NotJson, read_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.clients.setup_files import ClientEnvironment

RUN_INIT = "run `landlane init` again"


def find_client_program(env: ClientEnvironment, name: str) -> str:
    """Return the path of a client's program on the search path; empty when it is not there."""
    names = CLIENTS[name].programs or (name,)
    return next(filter(None, (shutil.which(one, path=env.search_path) for one in names)), "")


def is_used(env: ClientEnvironment, name: str) -> bool:
    """Return whether a client is installed on this machine, or has settings in this checkout."""
    is_traced = any(os.path.exists(env.path(path)) for path in CLIENTS[name].traces)
    return is_traced or bool(find_client_program(env, name))


def installed_version(env: ClientEnvironment, name: str, run: Callable[[list[str]], str]) -> str:
    """Return the version of a client that would run here; empty when there is none."""
    program = find_client_program(env, name)
    words = run([program, "--version"]).split() if program else []
    return next((word.rstrip(".") for word in words if word[:1].isdigit() and "." in word), "")


def is_older(version: str, least: tuple[int, ...]) -> bool:
    """Return whether a version is known to be older than another."""
    numbers = [part for part in version.split("-", maxsplit=1)[0].split(".") if part.isdigit()]
    return bool(numbers) and tuple(map(int, numbers)) < least


def main_checkout(root: str) -> str:
    """Return the checkout that a linked worktree belongs to; for any other checkout, itself.

    This reads git's files, since it is asked of every worktree and git takes longer to start.
    """
    try:
        with open(os.path.join(root, ".git"), encoding="utf-8") as file:
            private = os.path.join(root, file.read().removeprefix("gitdir:").strip())
        with open(os.path.join(private, "commondir"), encoding="utf-8") as file:
            common = os.path.realpath(os.path.join(private, file.read().strip()))
    except (OSError, ValueError):
        return root
    return os.path.dirname(common) if os.path.basename(common) == ".git" else root


def files_in(folder: str, ending: str) -> list[str]:
    """Return the files of a folder with an ending, sorted; none if it does not exist."""
    try:
        return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(ending)]
    except OSError:
        return []


def load_json(path: str) -> dict[str, Any]:
    """Read a JSON file; an absent one is empty.

    Raises:
        Malformed: it cannot be read, or holds something other than a table.
    """
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        content: Any = json.loads(text) if text.strip() else {}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as problem:
        raise _unreadable(path, str(problem)) from problem
    if not _is_a(dict, content):
        raise _unreadable(path, "it is not a table")
    return content


def _unreadable(path: str, why: str) -> Malformed:
    return Malformed(
        f"{path} cannot be read: {why}", code="CLIENT_SETTINGS", hint=f"fix that file, then {RUN_INIT}"
    )


def read_settings(path: str) -> tuple[dict[str, Any], list[SetupProblem]]:
    """Read a settings file that may hold comments, and say what is wrong with it; an absent one is empty."""
    try:
        return load_json(path), []
    except Malformed as problem:
        try:
            with open(path, encoding="utf-8") as file:
                content: Any = read_json(file.read(), has_comments=True).root.value
        except (OSError, ValueError, NotJson):
            return {}, [SetupProblem(what=problem.message, hint=problem.hint)]
        is_table = _is_a(dict, content)
        return table(content), [] if is_table else [SetupProblem(what=problem.message, hint=RUN_INIT)]


def get(settings: Any, *keys: str) -> Any:
    """Return what is below these keys, or None."""
    for key in keys:
        settings = table(settings).get(key)
    return settings


def table(item: Any) -> dict[str, Any]:
    """Return the item if it is a table, else an empty one."""
    return item if _is_a(dict, item) else {}


def items(item: Any) -> list[Any]:
    """Return the item if it is a list, else an empty one."""
    return item if _is_a(list, item) else []


def _is_a(kind: type, item: object) -> bool:
    return isinstance(item, kind)


def broken_command(command: str) -> str:
    """Return the program or file that a hook's command names and that is gone; empty when there is none."""
    try:
        words = shlex.split(command)
        if words[1:2] == ["-c"]:
            words = shlex.split(words[2])
    except (ValueError, IndexError):
        return command
    if not words or not os.access(words[0], os.X_OK):
        return words[0] if words else command
    return next((word for word in words if word.endswith(MARK) and not os.path.isfile(word)), "")


def folder_trust(path: str, folder: str) -> bool | None:
    """Return what a list of trusted folders of Gemini or Qwen says about a folder; None when nothing."""
    longest, level = -1, ""
    for rule, found in read_settings(path)[0].items():
        covered = os.path.realpath(os.path.dirname(rule) if found == "TRUST_PARENT" else rule)
        if is_below(folder, covered) and len(rule) > longest:
            longest, level = len(rule), str(found)
    return None if not level else level != "DO_NOT_TRUST"


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is this folder or lies in it."""
    real, top = os.path.realpath(path), os.path.realpath(folder)
    return real == top or real.startswith(top.rstrip("/") + "/")
