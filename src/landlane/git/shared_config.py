"""Settings that all worktrees of a repository share: detect damage, repair it, and set time limits.

`core.bare`, `core.worktree` and `core.hooksPath` in the common `config` apply to every worktree. One careless
`git init` with GIT_DIR in its environment makes the repository bare and unusable. The file is read here
without git, in less than a tenth of a millisecond.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from contextlib import contextmanager, suppress

from landlane.files import open_beside, write_atomically
from landlane.git.discovery import Checkout, git_dir_of, is_git_dir
from landlane.git.hook_pass import FOLDER, hooks_folder
from landlane.git.run import run_git
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from typing import Any

    from landlane.git.run import GitResult


_REMEMBERED = "git-shape.json"
_LIMITS = "git-limits.json"
_LOCK = "settings.lock"
# Of 640 updates of one ref by 32 writers, 2 were refused with git's own time-out of 100 ms and none with 2 s.
# Automatic garbage collection may remove objects that clones borrow.
GIT_LIMITS = {
    "core.filesRefLockTimeout": "2000",
    "core.packedRefsTimeout": "10000",
    "gc.auto": "0",
    "maintenance.auto": "false",
}
_WATCHED = ("bare", "worktree", "hookspath")
_SHOWN = {"bare": "core.bare", "worktree": "core.worktree", "hookspath": "core.hooksPath"}
_ESCAPED = {"n": "\n", "t": "\t", "b": "\b"}
_TRUE = ("", "true", "yes", "on", "1")
_TRIES = 20
_SLEEP_SECONDS = 0.05


@value
class ConfigDamage:
    """A setting that cannot be intended; `wanted` is its right value, None if it must not be set."""

    key: str
    found: str
    wanted: str | None
    why: str
    is_certain: bool = True

    def describe(self) -> str:
        """Return the problem as text."""
        return f"{_SHOWN[self.key]} is {self.found or 'on'}: {self.why}"


def read_core(config: str) -> dict[str, str]:
    """Return the watched settings of `[core]` from the text of a config file; the last value counts."""
    found: dict[str, str] = {}
    if not any(name in config.lower() for name in _WATCHED):
        return found
    is_core = False
    for line in config.replace("\\\n", "").split("\n"):  # only here does a line end for git
        text = line.strip()
        if text.startswith("["):
            section, _, text = text[1:].partition("]")
            is_core = section.strip().lower() == "core"
            text = text.strip()
        if is_core and text and text[0] not in "#;":
            name, equals, rest = text.partition("=")
            if (key := name.strip().lower()) in _WATCHED:
                found[key] = _unquote(rest) if equals else ""
    return found


def _unquote(text: str) -> str:
    """Return a value without quotes and without the comment after it."""
    out: list[str] = []
    is_quoted = False
    letters = iter(text.strip())
    for letter in letters:
        if letter == '"':
            is_quoted = not is_quoted
        elif letter == "\\":
            escaped = next(letters, "")
            out.append(_ESCAPED.get(escaped, escaped))
        elif letter in "#;" and not is_quoted:
            break
        else:
            out.append(letter)
    return "".join(out).strip()


def _config_of(home: Checkout) -> str:
    return os.path.join(home.common_dir, "config")


def _read_core_of(home: Checkout) -> dict[str, str]:
    try:
        with open(_config_of(home), encoding="utf-8", errors="surrogateescape") as file:
            return read_core(file.read())
    except OSError:
        return {}


def find_config_damage(home: Checkout) -> list[ConfigDamage]:
    """Return the shared settings that cannot be intended, judged by their effect and their former values."""
    core = _read_core_of(home)
    known = read_remembered_config(home)
    found: list[ConfigDamage] = []
    if "bare" in core and core["bare"].lower() in _TRUE and not _may_be_bare(home, known):
        why = "git refuses to work in the main checkout"
        found.append(ConfigDamage(key="bare", found=core["bare"], wanted="false", why=why))
    tree = core.get("worktree")
    if tree and not _leads_back(home, tree):
        before = known.get("worktree")
        wanted = before if before and _leads_back(home, before) else None
        why = "the repository's files are not there"
        found.append(ConfigDamage(key="worktree", found=tree, wanted=wanted, why=why))
    hooks = core.get("hookspath")
    ours = hooks_folder(home.common_dir)
    if hooks and hooks != ours and _is_own_folder_elsewhere(hooks) and os.path.isdir(ours):
        why = "the repository was moved, so none of its hooks runs"
        found.append(ConfigDamage(key="hookspath", found=hooks, wanted=ours, why=why))
    elif hooks and known and hooks not in (ours, known.get("hookspath")):
        found += _judge_hooks(home, hooks, known.get("hookspath"))
    return found


def _is_own_folder_elsewhere(hooks: str) -> bool:
    """Return whether it is our folder of hooks at a path where the repository no longer is."""
    return hooks.endswith(f"/{FOLDER}") and not os.path.isdir(hooks)


def _may_be_bare(home: Checkout, known: Mapping[str, str | None]) -> bool:
    """Return whether the repository is bare on purpose: it was before, or has no checkout or no index."""
    if known:
        return known.get("bare") == "true"
    is_beside = os.path.basename(home.common_dir) == ".git"
    return not is_beside or not os.path.exists(os.path.join(home.common_dir, "index"))


def _leads_back(home: Checkout, tree: str) -> bool:
    """Return whether the `.git` of a working tree is this repository, as for a submodule."""
    return git_dir_of(os.path.join(home.common_dir, tree, ".git")) == home.common_dir


def _judge_hooks(home: Checkout, hooks: str, before: str | None) -> list[ConfigDamage]:
    """Return why another folder of hooks is wrong: it is missing, or belongs to one worktree."""
    path = os.path.realpath(os.path.join(home.root, os.path.expanduser(hooks)))
    inside = path.startswith(home.root.rstrip("/") + "/")
    owner = _owner_of(path)
    if not os.path.isdir(path):
        is_certain = hooks != os.devnull  # people use it to switch hooks off
        why = "there is no such folder, so no hook runs"
        return [ConfigDamage(key="hookspath", found=hooks, wanted=before, why=why, is_certain=is_certain)]
    if owner and owner != home.root:
        why = f"the hooks of all worktrees come from one of them, {owner}"
        return [ConfigDamage(key="hookspath", found=hooks, wanted=before, why=why)]
    if not inside:
        why = f"hooks come from outside of the repository, and before from {before or 'its own folder'}"
        return [ConfigDamage(key="hookspath", found=hooks, wanted=before, why=why, is_certain=False)]
    return []


def _owner_of(path: str) -> str:
    """Return the root of the checkout that contains a folder; empty if there is none."""
    while path != os.path.dirname(path):
        if os.path.lexists(os.path.join(path, ".git")):
            return path
        path = os.path.dirname(path)
    return ""


def read_remembered_config(home: Checkout) -> dict[str, str | None]:
    """Return the shared settings when they were last found correct; empty before the first check."""
    found = _read_json(os.path.join(home.common_dir, "landlane", _REMEMBERED))
    return {key: found.get(key) for key in _WATCHED} if found else {}


def remember_config(home: Checkout) -> bool:
    """Remember the shared settings, unless they are damaged; return whether they are correct."""
    if find_config_damage(home):
        return False
    core = _read_core_of(home)
    is_bare = core.get("bare", "false").lower() in _TRUE
    settings = {key: core.get(key) for key in _WATCHED} | {"bare": "true" if is_bare else "false"}
    if settings != read_remembered_config(home):
        _write_json(os.path.join(home.common_dir, "landlane", _REMEMBERED), settings)
    return True


def _read_json(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            found: Any = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _write_json(path: str, document: Mapping[str, object]) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write_atomically(path, json.dumps(document))


def repair_config(home: Checkout, *, is_thorough: bool = False) -> list[str]:
    """Repair damaged settings and return a line about each; without `is_thorough`, only certain ones.

    git is run only if something is damaged.
    """
    if not home.common_dir or not is_git_dir(home.common_dir):
        return []
    if not find_config_damage(home):
        return []
    with _config_lock(home):  # then check again: another process may have repaired it meanwhile
        damages = [damage for damage in find_config_damage(home) if damage.is_certain or is_thorough]
        return [_repair(home, damage) for damage in damages]


def _repair(home: Checkout, damage: ConfigDamage) -> str:
    done = write_setting(_config_of(home), _SHOWN[damage.key], damage.wanted)
    if done.exit_code:
        return f"{damage.describe()}; it could not be repaired: {done.stderr or f'exit {done.exit_code}'}"
    return f"{damage.describe()}; it is {damage.wanted if damage.wanted is not None else 'unset'} again"


def write_setting(config: str, name: str, text: str | None) -> GitResult:
    """Set or unset a setting of a config file; wait while another writer holds git's lock on it."""
    words = ("--unset-all", name) if text is None else ("--replace-all", name, text)
    for left in reversed(range(_TRIES)):
        # From `/`, so that git finds no repository with broken settings.
        done = run_git("config", "--file", config, *words, cwd="/")
        if not done.exit_code or not left or not os.path.exists(f"{config}.lock"):
            return done
        time.sleep(_SLEEP_SECONDS)
    raise AssertionError("the last try returns")


@contextmanager
def _config_lock(home: Checkout) -> Generator[None]:
    """Let one process of ours write the config at a time, since git does not wait for its own lock."""
    folder = os.path.join(home.common_dir, "landlane")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    file = open_beside(os.path.join(folder, _LOCK), os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def set_git_limits(home: Checkout) -> list[str]:
    """Set our limits, except those that the user has set, and return the new ones; cheap once it is done.

    The shared settings are remembered at the same time.
    """
    remember_config(home)
    path = os.path.join(home.common_dir, "landlane", _LIMITS)
    if _read_json(path).get("wanted") == _wanted():
        return []
    with _config_lock(home):
        known = _read_json(path)
        if known.get("wanted") == _wanted():
            return []
        current = _effective(home)
        ours: list[str] = known.get("set") or []
        names = [name for name in GIT_LIMITS if name.lower() not in current or name in ours]
        failed = [name for name in names if write_setting(_config_of(home), name, GIT_LIMITS[name]).exit_code]
        if not failed:
            _write_json(path, {"wanted": _wanted(), "set": names})
    return [f"{name}={GIT_LIMITS[name]}" for name in names if name not in failed]


def list_own_limits(home: Checkout) -> list[str]:
    """Return the limits that we set and that still have our value."""
    names: list[str] = _read_json(os.path.join(home.common_dir, "landlane", _LIMITS)).get("set") or []
    current = _effective(home) if names else {}
    return [name for name in names if current.get(name.lower()) == GIT_LIMITS.get(name, "")]


def remove_own_limits(home: Checkout) -> list[str]:
    """Unset the limits that we set, except those that the user has changed since; return their names."""
    with _config_lock(home):
        dropped = [
            name
            for name in list_own_limits(home)
            if not write_setting(_config_of(home), name, None).exit_code
        ]
        if not list_own_limits(home):
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(home.common_dir, "landlane", _LIMITS))
    return dropped


def _wanted() -> str:
    return " ".join(f"{name}={text}" for name, text in GIT_LIMITS.items())


def _effective(home: Checkout) -> dict[str, str]:
    """Return the values of those limits that are set, at any level."""
    names = "|".join(name.lower().replace(".", r"\.") for name in GIT_LIMITS)
    result = run_git("config", "--get-regexp", f"^({names})$", cwd=home.root, git_dir=home.common_dir)
    return {name: text for name, _, text in (line.partition(" ") for line in result.stdout.splitlines())}


def missing_limits(home: Checkout) -> list[str]:
    """Return the limits that neither the user nor we have set."""
    current = _effective(home)
    return [name for name in GIT_LIMITS if name.lower() not in current]
