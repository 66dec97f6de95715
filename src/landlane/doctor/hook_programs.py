"""Find hooks of clients and of git that call a program which does not exist, whatever tool they belong to.

Nothing is changed: a hook of another tool is its user's to remove. Landlane's own hooks are left out, because
other checks try them.
"""

from __future__ import annotations

import os
import shlex
import shutil
import tomllib

from landlane.clients.model import HOOK_CLIENTS
from landlane.clients.opencode.setup import command_in_plugin
from landlane.clients.registry import setup_of
from landlane.clients.setup_files import environment_at, is_ours
from landlane.doctor.called_programs import (
    is_shell_script,
    programs_called,
    programs_in_shebang,
    programs_in_words,
)
from landlane.doctor.check import Check, failed, passed
from landlane.git.hook_pass import hooks_folder
from landlane.git.hooks.hooks_path import user_hooks_folder
from landlane.git.run import run_git
from landlane.managed_files.json_entries import MISSING, values_of
from landlane.merge.json_source import NotJson
from landlane.merge.value_tree import is_list, is_table
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from landlane.clients.setup_files import ClientEnvironment
    from landlane.git.discovery import Checkout


_MOST_BYTES = 1_000_000
_MOST_SHOWN = 5
_MOST_COMMAND = 100
_COMMAND_KEYS = ("command", "bash")


@value
class Hook:
    """A hook: the file it is in, its command, and the programs that it calls for certain."""

    file: str
    command: str
    programs: tuple[str, ...]


def check_hook_programs(checkout: Checkout) -> Check:
    """Name the hooks whose program is missing, with their file and what to do."""
    env = environment_at(checkout.root)
    hooks = [*client_hooks(env), *git_hooks(checkout)]
    missing: dict[tuple[str, str], list[Hook]] = {}
    for hook in hooks:
        for program in hook.programs:
            if is_missing(program, env):
                missing.setdefault((hook.file, program), []).append(hook)
                break
    if not missing:
        return passed("no hook calls a missing program")
    lines = [_describe(file, program, hooks, env) for (file, program), hooks in missing.items()]
    more = f"; and {len(lines) - _MOST_SHOWN} more" if len(lines) > _MOST_SHOWN else ""
    hint = "install the program again, or remove the hook from its file; Landlane removes only its own hooks"
    return failed("; ".join(lines[:_MOST_SHOWN]) + more, hint)


def _describe(file: str, program: str, hooks: list[Hook], env: ClientEnvironment) -> str:
    command = hooks[0].command
    if len(command) > _MOST_COMMAND:
        command = command[:_MOST_COMMAND] + "…"
    shown = os.path.relpath(file, env.root) if file.startswith(env.root + "/") else file
    which = f"{len(hooks)} hooks in {shown} call" if len(hooks) > 1 else f"the hook in {shown} calls"
    why = "does not exist" if "/" in program else "is not on PATH"
    return f"{which} {program}, which {why}: `{command}`"


def is_missing(program: str, env: ClientEnvironment) -> bool:
    """Return whether a program is certainly not there: a full path, or a name to look up on PATH."""
    if program.startswith("~/"):
        program = os.path.join(env.home, program[2:])
    if "/" not in program:
        return shutil.which(program, path=env.search_path) is None
    if not os.path.isabs(program):
        return False  # relative to a folder that only the client knows
    try:
        os.stat(program)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def client_hooks(env: ClientEnvironment) -> Iterator[Hook]:
    """Yield the hooks in the settings of all clients that Landlane supports."""
    for file in dict.fromkeys(path for name in HOOK_CLIENTS for path in setup_of(name).hook_files(env)):
        text = _text_of(file)
        if text is None:
            continue
        if file.endswith(".js"):
            words = command_in_plugin(text)
            if words and not is_ours(shlex.join(words)):
                yield Hook(file=file, command=shlex.join(words), programs=tuple(programs_in_words(words)))
            continue
        for entry in _entries(_hooks_in(file, text)):
            yield from _hook_of_entry(file, entry)


def _hooks_in(file: str, text: str) -> Any:
    """Return the part of a settings file that holds the hooks; None if it cannot be read or has none."""
    if file.endswith(".toml"):
        try:
            return tomllib.loads(text).get("hooks")
        except tomllib.TOMLDecodeError:
            return None
    try:
        found = values_of(text)
    except NotJson:
        return None
    return None if found is MISSING or not is_table(found) else found.get("hooks")


def _entries(part: Any) -> Iterator[dict[str, Any]]:
    """Yield the tables in which a command is named, however deep."""
    if is_table(part):
        if any(isinstance(part.get(key), str) for key in _COMMAND_KEYS):
            yield part
        for inner in part.values():
            yield from _entries(inner)
    elif is_list(part):
        for inner in part:
            yield from _entries(inner)


def _hook_of_entry(file: str, entry: dict[str, Any]) -> Iterator[Hook]:
    command = next(str(entry[key]) for key in _COMMAND_KEYS if isinstance(entry.get(key), str))
    if is_ours(command) or entry.get("type", "command") != "command":
        return
    words = entry.get("args")
    if is_list(words):  # started without a shell
        command = shlex.join([command, *map(str, words)])
        programs = programs_in_words([str(entry["command"]), *map(str, words)]) if "command" in entry else []
    else:
        programs = programs_called(command)
    if "env" in entry:  # which may set another PATH
        programs = [program for program in programs if "/" in program]
    yield Hook(file=file, command=command, programs=tuple(programs))


def git_hooks(checkout: Checkout) -> Iterator[Hook]:
    """Yield the hooks that git would run in a checkout, other than ours."""
    if not checkout.common_dir:
        return
    found = run_git("config", "--type=path", "--get", "core.hooksPath", cwd=checkout.root)
    folders = [user_hooks_folder(checkout)]
    if not found.exit_code and found.stdout.strip("\n"):
        folders.append(os.path.join(checkout.root, found.stdout.strip("\n")))
    for folder in dict.fromkeys(os.path.normpath(folder) for folder in folders):
        if folder != os.path.normpath(hooks_folder(checkout.common_dir)):
            yield from _hooks_of_folder(folder)


def _hooks_of_folder(folder: str) -> Iterator[Hook]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in names:
        file = os.path.join(folder, name)
        if "." in name or not os.path.isfile(file) or not os.access(file, os.X_OK):
            continue
        text = _text_of(file)
        first = (text or "").partition("\n")[0]
        if text is None or not first.startswith("#!"):
            continue
        yield Hook(file=file, command=first, programs=tuple(programs_in_shebang(first)))
        if is_shell_script(first):
            for program in programs_called(text):
                lines = [line.strip() for line in text.splitlines() if program in line]
                line = min(lines, key=lambda line: line.find(program), default=program)
                if "/" in program:  # names are left out: the hook may get another PATH from a file it reads
                    yield Hook(file=file, command=line, programs=(program,))


def _text_of(path: str) -> str | None:
    try:
        if os.path.getsize(path) > _MOST_BYTES:
            return None
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError):
        return None
