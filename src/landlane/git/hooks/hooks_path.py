"""Set `core.hooksPath` in config files and restore it, byte for byte; remember the user's own hooks.

`git config --unset` does not restore the bytes of a line that was written by hand, nor remove a section that
it added. So our line is inserted and removed here, and the line it replaced is saved beside our hooks.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import time
from enum import StrEnum

from landlane.errors import RepositoryError
from landlane.files import write_atomically
from landlane.git.hook_pass import hooks_folder
from landlane.git.hooks.scripts import own_folder
from landlane.git.run import run_git
from landlane.git.shared_config import read_core, write_setting
from landlane.values import as_dict, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from landlane.git.discovery import Checkout

_RECORD_NAME = "installed.json"  # the dot keeps git and `write_scripts` from taking it for a hook
_TRIES = 40
_SLEEP_SECONDS = 0.05
_SECTION = "[core]\n"
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\b": "\\b"})


class InsertedAs(StrEnum):
    """How our setting was written into a config file."""

    REPLACED_LINE = "line"
    IN_SECTION = "in section"
    NEW_SECTION = "new section"
    BY_GIT = "by git"


@value
class FormerSetting:
    """The former value in a config file, if any, its line, and how ours was written."""

    value: str | None
    line: str = ""
    way: InsertedAs = InsertedAs.IN_SECTION


_NO_FORMER: Mapping[str, FormerSetting] = {}


@value
class InstalledHooks:
    """The user's own hooks folder, as git would read it, and the former settings by config file."""

    own: str = ""
    formers: Mapping[str, FormerSetting] = _NO_FORMER


def _record_path(common_dir: str) -> str:
    return os.path.join(hooks_folder(common_dir), _RECORD_NAME)


def load_installed_hooks(common_dir: str) -> InstalledHooks | None:
    """Return the saved record; None when our hooks are not installed."""
    try:
        with open(_record_path(common_dir), encoding="utf-8", errors="surrogateescape") as file:
            found: Any = json.load(file)
        formers = {
            str(path): FormerSetting(
                value=former["value"], line=former["line"], way=InsertedAs(former["way"])
            )
            for path, former in found["formers"].items()
        }
        return InstalledHooks(own=str(found["own"]), formers=formers)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def save_installed_hooks(common_dir: str, record: InstalledHooks) -> None:
    """Save the record, replacing an earlier one."""
    document = {"own": record.own, "formers": {path: as_dict(one) for path, one in record.formers.items()}}
    path = _record_path(common_dir)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write_atomically(path, json.dumps(document))


def forget_installed_hooks(common_dir: str) -> None:
    """Delete the record, once our hooks are removed."""
    if os.path.exists(_record_path(common_dir)):
        os.unlink(_record_path(common_dir))


def user_hooks_folder(here: Checkout) -> str:
    """Return the folder of the user's own hooks, for git run in this checkout."""
    record = load_installed_hooks(here.home_dir)
    return own_folder(here.home_dir, record.own if record else "", here.root)


def find_user_hooks(home: Checkout, record: InstalledHooks | None) -> str:
    """Return the user's hooks folder as git would read it without us; empty for git's default."""
    common = home.common_dir
    config = os.path.join(common, "config")
    local = read_hooks_path(config)
    if local == hooks_folder(common) or is_former_folder(local, common):
        former = with_current_place(record, common, local or "").formers.get(config) if record else None
        local = former.value if former else None
    if local is not None:
        return os.path.expanduser(local)
    # Run in the root folder, only the settings of the user and of the system apply.
    result = run_git("config", "--type=path", "--get", "core.hooksPath", cwd="/")
    return result.stdout.strip("\n") if not result.exit_code else ""


def is_former_folder(path: str | None, common_dir: str) -> bool:
    """Return whether this is the folder that our hooks had before the repository was moved.

    The git directory around it no longer exists. A copy beside the original is no move.
    """
    ours = hooks_folder(common_dir)
    return (
        bool(path)
        and path != ours
        and os.path.basename(path) == os.path.basename(ours)
        and not os.path.exists(os.path.dirname(path))
    )


def with_current_place(record: InstalledHooks, common_dir: str, former_folder: str) -> InstalledHooks:
    """Return the record with the former setting of a moved config file under the name it has now."""
    place = os.path.join(os.path.dirname(former_folder), "config")
    if place not in record.formers:
        return record
    formers = dict(record.formers)
    formers[os.path.join(common_dir, "config")] = formers.pop(place)
    return replace(record, formers=formers)


def read_hooks_path(config: str) -> str | None:
    """Return the value in a config file; None when it is not set."""
    return read_core(_read(config)).get("hookspath")


def set_hooks_path(config: str, folder: str, remember: Callable[[FormerSetting], None]) -> None:
    """Set `core.hooksPath` of a config file to our folder, after passing its former setting to `remember`.

    Raises:
        RepositoryError: the file cannot be written.
    """
    with _LockedConfig(config) as file:
        text = file.text
        before = read_core(text).get("hookspath")
        lines = io.StringIO(text, newline="\n").readlines()
        entries = _find_entries(lines)
        ours = _our_line(folder)
        if before is not None and len(entries) == 1:
            former = FormerSetting(value=before, line=lines[entries[0]], way=InsertedAs.REPLACED_LINE)
            lines[entries[0]] = ours
        elif before is None and _SECTION in lines:
            former = FormerSetting(value=None)
            lines.insert(lines.index(_SECTION) + 1, ours)
        elif before is None:
            missing_end = "" if not text or text.endswith("\n") else "\n"
            former = FormerSetting(value=None, line=missing_end, way=InsertedAs.NEW_SECTION)
            lines.append(missing_end + _SECTION + ours)
        else:  # several entries, or a syntax that only git should edit
            former = FormerSetting(value=before, way=InsertedAs.BY_GIT)
            lines = []
        remember(former)
        if lines:
            file.write("".join(lines))
    if former.way == InsertedAs.BY_GIT:
        _write_by_git(config, folder)
    # git must read it as we do; from `/`, so that it finds no repository.
    seen = run_git("config", "--file", config, "-z", "--get", "core.hooksPath", cwd="/").stdout
    if seen != f"{folder}\0" or read_hooks_path(config) != folder:
        raise RepositoryError(
            f"core.hooksPath could not be set in {config}",
            code="CONFIG_REFUSED",
            hint=f"git config core.hooksPath {folder}",
        )


def restore_hooks_path(config: str, folder: str, former: FormerSetting) -> bool:
    """Restore the former setting; return False, and change nothing, when the value is no longer ours."""
    if read_hooks_path(config) != folder:
        return False
    ours = _our_line(folder)
    added = former.line + _SECTION + ours
    with _LockedConfig(config) as file:
        text = file.text
        if former.way == InsertedAs.NEW_SECTION and added in text and not _has_more_settings(text, added):
            file.write(text.replace(added, "", 1))
        elif former.way != InsertedAs.BY_GIT and text.count(ours) == 1:
            file.write(text.replace(ours, former.line if former.way == InsertedAs.REPLACED_LINE else "", 1))
    if read_hooks_path(config) == folder:
        _write_by_git(config, former.value)
    return True


def _has_more_settings(text: str, added: str) -> bool:
    """Return whether the section that we added has other settings by now."""
    rest = text[text.index(added) + len(added) :]
    return bool(rest) and not rest.lstrip().startswith("[")


def _write_by_git(config: str, wanted: str | None) -> None:
    done = write_setting(config, "core.hooksPath", wanted)
    if done.exit_code:
        raise RepositoryError(
            f"core.hooksPath could not be written in {config}: {done.stderr}",
            code="CONFIG_REFUSED",
            hint="look for a config.lock beside it, and at what this user may write",
        )


def _our_line(folder: str) -> str:
    """Return our line as git would write it."""
    is_plain = not any(letter in '#;"\\\r' for letter in folder) and folder == folder.strip()
    escaped = folder.translate(_ESCAPES)
    return f"\thooksPath = {escaped}\n" if is_plain else f'\thooksPath = "{escaped}"\n'


def _find_entries(lines: list[str]) -> list[int]:
    """Return the lines that set it; one that cannot be replaced as a single line is returned twice."""
    found: list[int] = []
    is_core = False
    for at, line in enumerate(lines):
        text = line.strip().lower()
        if text.startswith("["):
            is_core = text.startswith("[core]")
            if is_core and "hookspath" in text:
                return [at, at]
        elif is_core and text.partition("=")[0].strip() == "hookspath":
            found += [at, at] if text.endswith("\\") or not line.endswith("\n") else [at]
    return found


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            return file.read()
    except OSError:
        return ""


def remove_config_leftover(config: str) -> None:
    """Remove what a process that was killed while it wrote a config file has left beside it."""
    with contextlib.suppress(OSError):
        _LockedConfig(config).remove_leftover()


class _LockedConfig:
    """A config file under git's own lock on it.

    The lock file is a second name of a file of ours, on which this process holds a lock of the kernel. So the
    next process recognises what a killed one has left, and removes it.
    """

    def __init__(self, config: str) -> None:
        self._path = os.path.realpath(config)
        self._lock = f"{self._path}.lock"
        self._own = f"{self._path}.landlane"
        self._held = -1
        self._is_written = False
        self.text = ""

    def __enter__(self) -> _LockedConfig:
        for left in reversed(range(_TRIES)):
            try:
                self._take()
                break
            except (FileExistsError, BlockingIOError) as error:
                if not left:
                    raise RepositoryError(
                        f"{self._path} is being written by another program",
                        code="CONFIG_REFUSED",
                        hint=f"wait for it; if no process holds it, remove {self._lock}",
                    ) from error
                time.sleep(_SLEEP_SECONDS)
            except OSError as error:
                raise RepositoryError(
                    f"{self._path} cannot be written: {error.strerror}",
                    code="CONFIG_REFUSED",
                    hint="look at what this user may write",
                ) from error
        self.text = _read(self._path)
        return self

    def _take(self) -> None:
        """Create the lock file.

        Raises:
            BlockingIOError: another process of ours has it.
            FileExistsError: another program has it.
        """
        self.remove_leftover()
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        held = os.open(self._own, flags, 0o666)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.link(self._own, self._lock)
        except BaseException:
            self._unlink_if(self._own, held)
            os.close(held)
            raise
        self._held = held

    def remove_leftover(self) -> None:
        """Remove what a killed process has left: its file, and the lock file if that is the same one.

        Raises:
            BlockingIOError: the process is alive.
        """
        try:
            held = os.open(self._own, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Its process may have ended just now, and another one may have made files of these names.
            self._unlink_if(self._lock, held)
            self._unlink_if(self._own, held)
        finally:
            os.close(held)

    @staticmethod
    def _unlink_if(path: str, held: int) -> None:
        """Remove a name of the file with this descriptor; a name of another file stays."""
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.lstat(path), os.fstat(held)):
                os.unlink(path)

    def write(self, text: str) -> None:
        """Set the new content, which replaces the file on exit."""
        with open(self._lock, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(self._path):
            os.chmod(self._lock, os.stat(self._path).st_mode & 0o7777)
        self._is_written = True

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._is_written and kind is None:
            os.replace(self._lock, self._path)
        else:
            os.unlink(self._lock)
        os.unlink(self._own)
        os.close(self._held)
