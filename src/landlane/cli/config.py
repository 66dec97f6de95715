"""The commands for settings: config get, set, list."""

from __future__ import annotations

import json
import os
import shlex

from landlane.cli.person import person_at
from landlane.errors import LandlaneError, SettingsError
from landlane.files import write_atomically
from landlane.git.discovery import find_checkout
from landlane.git.run import try_git_output
from landlane.git.target import find_target
from landlane.git.target_settings import committed_document
from landlane.settings.edit import all_keys, default_text, find_key, find_value, value_text, with_value
from landlane.settings.load import read_local
from landlane.settings.model import FILE_NAME, LOCAL_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.cli.command import CommandCall
    from landlane.settings.edit import SettingKey


_THIS_CLONE = "this clone"
_DEFAULT = "default"


def get(call: CommandCall, key: str) -> int:
    """Print the value of a setting."""
    setting = _find(call, f"config get {key}", key)
    item = _describe(setting, _files(call))
    return call.terminal.answer_value({"ok": True, **item}, item["value"])


def set_value(call: CommandCall, key: str, value: str, local: bool) -> int:
    """Change a setting in landlane.toml, or with --local in this clone only."""
    typed = f"config set {key} {shlex.quote(value)}" + (" --local" if local else "")
    setting = _find(call, typed, key)
    if local:
        person_at(call)
    path = _local_file(call) if local else _file(call)
    source, is_new = "", not os.path.exists(path)
    if not is_new:
        with open(path, encoding="utf-8") as file:
            source = file.read()
    write_atomically(path, _changed(source, setting, value, local=local).encode())
    answer = {"ok": True, "key": setting.name, "value": value, "file": path}
    if local:
        return call.terminal.answer(answer, f"✓ {setting.name} = {value} in this clone, from now on")
    return call.terminal.answer(answer, _confirmation(call, f"{setting.name} = {value}", is_new=is_new))


def _changed(source: str, setting: SettingKey, value: str, *, local: bool) -> str:
    """Return the text of a settings file with a new value; a wrong one is answered with one that fits."""
    try:
        return with_value(source, setting, value)
    except SettingsError as error:
        if error.code != "SETTINGS_WRONG_TYPE" or error.facts.get("setting") != setting.name:
            raise
        where = " --local" if local else ""
        error.message = error.message.removeprefix(f"{FILE_NAME}: ")
        if error.message.startswith(f"{setting.path[-1]} "):
            error.message = f"{setting.name} {error.message.partition(' ')[2]}"
        if error.hint.startswith("landlane config set "):  # as for a duration without a unit
            error.hint += where
            raise
        for example in (json.dumps([value]), default_text(setting.key), "1", "1.50", "30m", "true"):
            if example and _fits(source, setting, example):
                call = f"landlane config set {setting.name} {shlex.quote(example)}{where}"
                error.hint = call if example.startswith("[") else f"for example: {call}"
                break
        raise


def _fits(source: str, setting: SettingKey, value: str) -> bool:
    try:
        with_value(source, setting, value)
    except SettingsError:
        return False
    return True


def _confirmation(call: CommandCall, assignment: str, *, is_new: bool) -> str:
    """Return that a setting was written, and the command that brings it onto the target branch."""
    written = f"✓ {assignment} in {FILE_NAME}"
    try:
        repo = call.repo.require_git()
        target = find_target(repo.home, repo.settings).branch
    except LandlaneError:  # no git, no commit yet, or another mistake in the settings
        return written
    steps = [call.terminal.as_typed(f"landlane claim {FILE_NAME}")]
    if try_git_output(repo.checkout, "branch", "--show-current") == target:
        steps.append("git switch -c settings")
    steps += [f"git add {FILE_NAME}"] if is_new else []
    message = shlex.quote(f"Set {assignment}")
    steps += [f"git commit -m {message} {FILE_NAME}", call.terminal.as_typed("landlane land")]
    effect = f"it holds once it is on {target}" + ("; for you, until then" if repo.held.is_own else "")
    return f"{written}\n  {effect}\nnext: {' && '.join(steps)}"


def list_all(call: CommandCall, all: bool) -> int:
    """List the settings that differ from their defaults, or all of them."""
    files = _files(call)
    items = [_describe(setting, files) for setting in all_keys()]
    items = [item for item in items if all or item["from"] != _DEFAULT]
    rows = [[item["key"], item["value"], _origin(item)] for item in items]
    text = call.terminal.table("", ("key", "value", "from"), rows, cut="VALUE")
    return call.terminal.answer({"ok": True, "settings": items}, text or "All settings have their defaults.")


def _find(call: CommandCall, typed: str, key: str) -> SettingKey:
    """Return a setting; the hint for an unknown one is the call as it was meant."""
    try:
        return find_key(key)
    except SettingsError as error:
        meant = error.facts.pop("meant", "")
        if meant:
            error.hint = f"landlane {typed.replace(key, meant, 1)}"
        raise


def _files(call: CommandCall) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parsed landlane.toml that holds and the settings of this clone."""
    committed = committed_document(find_checkout(call.cwd))
    return read_local(_file(call)) if committed is None else committed, read_local(_local_file(call))


def _file(call: CommandCall) -> str:
    # Not by opening the repository: a mistake in the settings must not keep people from correcting it.
    return os.path.join(find_checkout(call.cwd).root, FILE_NAME)


def _local_file(call: CommandCall) -> str:
    return os.path.join(find_checkout(call.cwd).state_folder, LOCAL_NAME)


def _describe(setting: SettingKey, files: tuple[dict[str, Any], dict[str, Any]]) -> dict[str, Any]:
    shared, local = (find_value(document, setting.path) for document in files)
    item: dict[str, Any] = {"key": setting.name, "value": default_text(setting.key), "from": _DEFAULT}
    if shared is not None:
        item |= {"value": value_text(shared), "from": FILE_NAME}
    if local is not None:
        below = {"below": item["value"]} if shared is not None else {}
        item |= {"value": value_text(local), "from": _THIS_CLONE, **below}
    return item


def _origin(item: dict[str, Any]) -> str:
    return f"{item['from']} ({FILE_NAME}: {item['below']})" if "below" in item else item["from"]
