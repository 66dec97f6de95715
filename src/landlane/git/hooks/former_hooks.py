"""What is remembered of our git hooks: whose place they took, in the repository and in its clones."""

from __future__ import annotations

import json
import os

from landlane.files import write_whole
from landlane.git.hook_pass import hooks_folder
from landlane.git.hooks.hooks_path import FormerSetting, read_hooks_path
from landlane.git.hooks.scripts import own_folder
from landlane.git.run import run_git
from landlane.values import as_dict, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from landlane.git.discovery import Checkout


_NAME = "git-hooks.json"
_NO_FORMER: Mapping[str, FormerSetting] = {}


@value
class InstalledHooks:
    """`own` is the user's folder of hooks as git would read it; `formers` what each config file said."""

    own: str = ""
    formers: Mapping[str, FormerSetting] = _NO_FORMER


def _path(common_dir: str) -> str:
    return os.path.join(common_dir, "landlane", _NAME)


def load_installed_hooks(common_dir: str) -> InstalledHooks | None:
    """What was written down; nothing where our hooks were never put in, or were taken out."""
    try:
        with open(_path(common_dir), encoding="utf-8", errors="surrogateescape") as file:
            found: Any = json.load(file)
        formers = {str(path): FormerSetting(**facts) for path, facts in found["formers"].items()}
        return InstalledHooks(own=str(found["own"]), formers=formers)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def save_installed_hooks(common_dir: str, record: InstalledHooks) -> None:
    """Write it down, whole."""
    path = _path(common_dir)
    document = {"own": record.own, "formers": {path: as_dict(one) for path, one in record.formers.items()}}
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write_whole(path, json.dumps(document))


def forget_installed_hooks(common_dir: str) -> None:
    """Nothing of ours is there any more."""
    if os.path.exists(_path(common_dir)):
        os.unlink(_path(common_dir))


def user_hooks_folder(here: Checkout) -> str:
    """The folder of the hooks that are the user's own, seen from a checkout."""
    record = load_installed_hooks(here.home_dir)
    return own_folder(here.home_dir, record.own if record else "", here.root)


def find_user_hooks(home: Checkout, record: InstalledHooks | None) -> str:
    """The user's folder of hooks as git would read it without us; empty for git's usual one."""
    ours = hooks_folder(home.common_dir)
    config = os.path.join(home.common_dir, "config")
    local = read_hooks_path(config)
    if local == ours:
        former = record.formers.get(config) if record else None
        local = former.value if former else None
    if local is not None:
        return os.path.expanduser(local)
    # From the root of all, where only the settings of the user and of the system hold.
    found = run_git("config", "--type=path", "--get", "core.hooksPath", cwd="/")
    return found.stdout.strip("\n") if not found.exit_code else ""
