"""`core.hooksPath` in a config file: ours put in and taken out by its own line, so that nothing else moves.

`git config` would write the value as well, but to unset it does not bring back the bytes that were there: a
line that somebody had written by hand, or a section that was not there. The line that ours took the place of
is remembered.
"""

from __future__ import annotations

import os
import time

from landlane.errors import RepositoryError
from landlane.git.run import run_git
from landlane.git.shared_config import read_core
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_TRIES = 40
_SLEEP_SECONDS = 0.05
_SECTION = "[core]\n"
_LINE, _IN_SECTION, _NEW_SECTION, _BY_GIT = "line", "in section", "new section", "by git"


@value
class FormerSetting:
    """What stood in a config file before ours: its value, if any, its line, and how ours was put in."""

    value: str | None
    line: str = ""
    way: str = _IN_SECTION


def read_hooks_path(config: str) -> str | None:
    """The value in a config file; nothing when there is none."""
    return read_core(_read(config)).get("hookspath")


def set_hooks_path(config: str, folder: str, remember: Callable[[FormerSetting], None]) -> None:
    """Let `core.hooksPath` of a config file be our folder; what it was is remembered before that is so.

    Raises:
        RepositoryError: the file cannot be written.
    """
    with _Locked(config) as file:
        text = file.text
        before = read_core(text).get("hookspath")
        lines = text.splitlines(keepends=True)
        found = _entries(lines)
        ours = _our_line(folder)
        if before is not None and len(found) == 1:
            at = found[0]
            former = FormerSetting(value=before, line=lines[at], way=_LINE)
            lines[at] = ours
        elif before is None and (header := _header(lines)) >= 0:
            former = FormerSetting(value=None)
            lines.insert(header + 1, ours)
        elif before is None:
            is_whole = not text or text.endswith("\n")
            former = FormerSetting(value=None, line="" if is_whole else "\n", way=_NEW_SECTION)
            lines.append(("" if is_whole else "\n") + _SECTION + ours)
        else:  # several, or in a form that only git should touch
            former = FormerSetting(value=before, way=_BY_GIT)
            lines = []
        remember(former)
        if lines:
            file.write("".join(lines))
    if former.way == _BY_GIT:
        _by_git(config, folder)
    if read_hooks_path(config) != folder:
        raise RepositoryError(
            f"core.hooksPath could not be set in {config}",
            code="CONFIG_REFUSED",
            hint=f"git config core.hooksPath {folder}",
        )


def restore_hooks_path(config: str, folder: str, former: FormerSetting) -> bool:
    """Bring back what stood there before ours; nothing happens where another value stands by now."""
    if read_hooks_path(config) != folder:
        return False
    ours = _our_line(folder)
    added = former.line + _SECTION + ours
    with _Locked(config) as file:
        text = file.text
        if former.way == _NEW_SECTION and added in text and not _goes_on(text, added):
            file.write(text.replace(added, "", 1))
        elif former.way in (_LINE, _IN_SECTION, _NEW_SECTION) and text.count(ours) == 1:
            file.write(text.replace(ours, former.line if former.way == _LINE else "", 1))
    if read_hooks_path(config) == folder:
        _by_git(config, former.value)
    return True


def _goes_on(text: str, added: str) -> bool:
    """Whether somebody has added to the section that we began."""
    rest = text[text.index(added) + len(added) :]
    return bool(rest) and not rest.lstrip().startswith("[")


def _by_git(config: str, wanted: str | None) -> None:
    words = (
        ("--unset-all", "core.hooksPath") if wanted is None else ("--replace-all", "core.hooksPath", wanted)
    )
    done = run_git("config", "--file", config, *words, cwd="/")
    if done.exit_code:
        raise RepositoryError(
            f"core.hooksPath could not be written in {config}: {done.stderr}",
            code="CONFIG_REFUSED",
            hint="look for a config.lock beside it, and at what this user may write",
        )


def _our_line(folder: str) -> str:
    """The line as git itself writes it."""
    is_plain = not any(letter in '#;"\\' for letter in folder) and folder == folder.strip()
    quoted = folder.replace("\\", "\\\\").replace('"', '\\"')
    return f"\thooksPath = {folder}\n" if is_plain else f'\thooksPath = "{quoted}"\n'


def _header(lines: list[str]) -> int:
    """Where `[core]` begins, on a line of its own."""
    return next((at for at, line in enumerate(lines) if line == _SECTION), -1)


def _entries(lines: list[str]) -> list[int]:
    """The lines that set it, each whole on one line; more than can be told apart counts as several."""
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


class _Locked:
    """A config file under git's own lock on it."""

    def __init__(self, config: str) -> None:
        self._path = os.path.realpath(config)
        self._lock = f"{self._path}.lock"
        self._is_written = False
        self.text = ""

    def __enter__(self) -> _Locked:
        for left in reversed(range(_TRIES)):
            try:
                os.close(os.open(self._lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
                break
            except FileExistsError as error:
                if not left:
                    raise RepositoryError(
                        f"{self._path} is being written by another program",
                        code="CONFIG_REFUSED",
                        hint=f"wait for it; if nobody does, remove {self._lock}",
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

    def write(self, text: str) -> None:
        """What shall stand in it."""
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
