"""Settings that all worktrees of a repository share: noticed when they flip, mended, and set as was measured.

`core.bare`, `core.worktree` and `core.hooksPath` in the common `config` hold for every worktree at once. One
careless `git init` with GIT_DIR in its environment makes the repository bare, and unusable. The file is read
here without git: a look at it costs less than a tenth of a millisecond.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from contextlib import contextmanager, suppress

from landlane.files import write_whole
from landlane.git.discovery import Checkout, is_git_dir
from landlane.git.hook_pass import FOLDER, hooks_folder
from landlane.git.run import run_git
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from typing import Any

    from landlane.git.run import GitResult


_SHAPE = "git-shape.json"
_LIMITS = "git-limits.json"
_LOCK = "settings.lock"
# Of 640 updates of one ref by 32 writers, 2 were refused with git's own time-out of 100 ms and none with 2 s.
# A collection of garbage that git starts by itself may remove objects that clones borrow.
GIT_LIMITS = {
    "core.filesRefLockTimeout": "2000",
    "core.packedRefsTimeout": "10000",
    "gc.auto": "0",
    "maintenance.auto": "false",
}
_WATCHED = ("bare", "worktree", "hookspath")
_SHOWN = {"bare": "core.bare", "worktree": "core.worktree", "hookspath": "core.hooksPath"}
_TRUE = ("", "true", "yes", "on", "1")
_TRIES = 20
_SLEEP_SECONDS = 0.05


@value
class ConfigDamage:
    """A setting that cannot be meant: what it is, what it should be (nothing: not set), and why."""

    key: str
    found: str
    wanted: str | None
    why: str
    is_certain: bool = True

    def describe(self) -> str:
        """The finding in words."""
        return f"{_SHOWN[self.key]} is {self.found or 'on'}: {self.why}"


# ------------------------------------------------------------------------------------------ reading


def read_core(config: str) -> dict[str, str]:
    """The settings of `[core]` that are watched, from the text of a config file; the last one counts."""
    found: dict[str, str] = {}
    if not any(name in config.lower() for name in _WATCHED):
        return found
    is_core = False
    for line in config.replace("\\\n", "").splitlines():
        text = line.strip()
        if text.startswith("["):
            section, _, text = text[1:].partition("]")
            is_core = section.strip().lower() == "core"
            text = text.strip()
        if is_core and text and text[0] not in "#;":
            name, equals, rest = text.partition("=")
            if (key := name.strip().lower()) in _WATCHED:
                found[key] = _unquoted(rest) if equals else ""
    return found


def _unquoted(text: str) -> str:
    """A value without its quotes and the comment behind it."""
    out: list[str] = []
    is_quoted = False
    letters = iter(text.strip())
    for letter in letters:
        if letter == '"':
            is_quoted = not is_quoted
        elif letter == "\\":
            out.append(next(letters, ""))
        elif letter in "#;" and not is_quoted:
            break
        else:
            out.append(letter)
    return "".join(out).strip()


def _core_of(home: Checkout) -> dict[str, str]:
    path = os.path.join(home.common_dir, "config")
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return read_core(file.read())
    except OSError:
        return {}


def find_config_damage(home: Checkout) -> list[ConfigDamage]:
    """The shared settings that cannot be meant, by what they lead to and by what they were before."""
    core = _core_of(home)
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
    if hooks and hooks != ours and _was_ours(hooks) and os.path.isdir(ours):
        why = "the repository was moved, so none of its hooks runs"
        found.append(ConfigDamage(key="hookspath", found=hooks, wanted=ours, why=why))
    elif hooks and known and hooks not in (ours, known.get("hookspath")):
        found += _judge_hooks(home, hooks, known.get("hookspath"))
    return found


def _was_ours(hooks: str) -> bool:
    """Whether it is our own folder of hooks, in a repository that is no longer there."""
    return hooks.endswith(f"/landlane/{FOLDER}") and not os.path.isdir(hooks)


def _may_be_bare(home: Checkout, known: Mapping[str, str | None]) -> bool:
    """Whether the repository was made bare: it was before, or has neither a folder around it nor an index."""
    if known:
        return known.get("bare") == "true"
    is_beside = os.path.basename(home.common_dir) == ".git"
    return not is_beside or not os.path.exists(os.path.join(home.common_dir, "index"))


def _leads_back(home: Checkout, tree: str) -> bool:
    """Whether the `.git` of a working tree is this repository, as for a submodule."""
    marker = os.path.join(home.common_dir, tree, ".git")
    if os.path.isdir(marker):
        return os.path.realpath(marker) == home.common_dir
    try:
        with open(marker, encoding="utf-8", errors="surrogateescape") as file:
            named = file.readline().rstrip("\n").removeprefix("gitdir: ")
    except OSError:
        return False
    return os.path.realpath(os.path.join(os.path.dirname(marker), named)) == home.common_dir


def _judge_hooks(home: Checkout, hooks: str, before: str | None) -> list[ConfigDamage]:
    """What is wrong with another folder of hooks: one that is not there or a worker's own cannot be meant."""
    path = os.path.realpath(os.path.join(home.root, os.path.expanduser(hooks)))
    inside = path.startswith(home.root.rstrip("/") + "/")
    owner = _owner_of(path)
    if not os.path.isdir(path):
        is_certain = hooks != os.devnull  # that is how people switch hooks off
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
    """The root of the linked worktree or checkout that a folder lies in."""
    while path != os.path.dirname(path):
        if os.path.lexists(os.path.join(path, ".git")):
            return path
        path = os.path.dirname(path)
    return ""


# --------------------------------------------------------------------------------------- remembering


def read_remembered_config(home: Checkout) -> dict[str, str | None]:
    """The shared settings as they were when all was well; empty when nobody has looked yet."""
    found = _read_json(os.path.join(home.common_dir, "landlane", _SHAPE))
    return {key: found.get(key) for key in _WATCHED} if found else {}


def remember_config(home: Checkout) -> bool:
    """Remember the shared settings as they are; tells whether they are as they should be."""
    if find_config_damage(home):
        return False
    core = _core_of(home)
    is_bare = core.get("bare", "false").lower() in _TRUE
    shape = {key: core.get(key) for key in _WATCHED} | {"bare": "true" if is_bare else "false"}
    if shape != read_remembered_config(home):
        _write_json(os.path.join(home.common_dir, "landlane", _SHAPE), shape)
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
    write_whole(path, json.dumps(document))


# ------------------------------------------------------------------------------------------- mending


def repair_config(home: Checkout, *, is_thorough: bool = False) -> list[str]:
    """Put right what cannot be meant, and tell what; without `is_thorough`, only what is beyond doubt.

    Nothing is started unless something is wrong.
    """
    if not home.common_dir or not is_git_dir(home.common_dir):
        return []
    if not find_config_damage(home):
        return []
    with _alone(home):  # and looked at once more: somebody may have mended it meanwhile
        flips = [flip for flip in find_config_damage(home) if flip.is_certain or is_thorough]
        return [_mend(home, flip) for flip in flips]


def _mend(home: Checkout, flip: ConfigDamage) -> str:
    name = _SHOWN[flip.key]
    done = _write(home, name, flip.wanted)
    if done.exit_code:
        return f"{flip.describe()}; it could not be mended: {done.stderr or f'exit {done.exit_code}'}"
    return f"{flip.describe()}; it is {flip.wanted if flip.wanted is not None else 'unset'} again"


def _write(home: Checkout, name: str, text: str | None) -> GitResult:
    """Set or unset one setting of the common config. Another writer holds its lock only for a moment."""
    words = ("--unset-all", name) if text is None else ("--replace-all", name, text)
    path = os.path.join(home.common_dir, "config")
    for left in reversed(range(_TRIES)):
        # From the root of all, where no repository with broken settings is found on the way.
        done = run_git("config", "--file", path, *words, cwd="/")
        if not done.exit_code or not left or not os.path.exists(f"{path}.lock"):
            return done
        time.sleep(_SLEEP_SECONDS)
    raise AssertionError("the last try returns")


@contextmanager
def _alone(home: Checkout) -> Generator[None]:
    """One of us at a time: git does not wait for the lock on its config."""
    folder = os.path.join(home.common_dir, "landlane")
    os.makedirs(folder, exist_ok=True)
    file = os.open(os.path.join(folder, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


# -------------------------------------------------------------------------------------------- limits


def set_git_limits(home: Checkout) -> list[str]:
    """Set the limits that were measured, except those the user has set; tells which. Cheap once it is done.

    The shared settings are remembered with it, to know later what they were.
    """
    remember_config(home)
    path = os.path.join(home.common_dir, "landlane", _LIMITS)
    if _read_json(path).get("wanted") == _wanted():
        return []
    with _alone(home):
        known = _read_json(path)
        if known.get("wanted") == _wanted():
            return []
        chosen = _effective(home)
        ours: list[str] = known.get("set") or []
        made = [name for name in GIT_LIMITS if name.lower() not in chosen or name in ours]
        failed = [name for name in made if _write(home, name, GIT_LIMITS[name]).exit_code]
        if not failed:
            _write_json(path, {"wanted": _wanted(), "set": made})
    return [f"{name}={GIT_LIMITS[name]}" for name in made if name not in failed]


def list_own_limits(home: Checkout) -> list[str]:
    """The limits that we set, and that still stand as we set them."""
    made: list[str] = _read_json(os.path.join(home.common_dir, "landlane", _LIMITS)).get("set") or []
    now = _effective(home) if made else {}
    return [name for name in made if now.get(name.lower()) == GIT_LIMITS.get(name, "")]


def remove_own_limits(home: Checkout) -> list[str]:
    """Take the limits back that we set; what the user changed since stays. Tells which."""
    with _alone(home):
        dropped = [name for name in list_own_limits(home) if not _write(home, name, None).exit_code]
        if not list_own_limits(home):
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(home.common_dir, "landlane", _LIMITS))
    return dropped


def _wanted() -> str:
    return " ".join(f"{name}={text}" for name, text in GIT_LIMITS.items())


def _effective(home: Checkout) -> dict[str, str]:
    """Which of the limits have a value, wherever it was set."""
    names = "|".join(name.lower().replace(".", r"\.") for name in GIT_LIMITS)
    found = run_git("config", "--get-regexp", f"^({names})$", cwd=home.root, git_dir=home.common_dir)
    return {name: text for name, _, text in (line.partition(" ") for line in found.stdout.splitlines())}


def missing_limits(home: Checkout) -> list[str]:
    """The limits that nobody has set yet, neither the user nor we."""
    chosen = _effective(home)
    return [name for name in GIT_LIMITS if name.lower() not in chosen]
