"""The test checkout of the queue: exactly one commit, and no trace of a branch that did not land.

Git's files of the checkout are restored before each use. Ignored files, such as caches, stay while the
commits checked there land, and for the checks of one commit. After any other commit they are replaced by a
copy of those that preparing the checkout on the target made. A broken checkout is created again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil

from landlane.errors import LandlaneError, RepositoryError
from landlane.files import read_first_line
from landlane.git.create_checkout import add_detached_worktree, fill_submodules
from landlane.git.remove_checkout import list_worktrees, remove_checkout, remove_tree, worktree_git_dir
from landlane.git.run import run_git
from landlane.git.target import commit_at, find_target, is_ancestor
from landlane.processes.tree import CHECK_MARK, kill_marked
from landlane.sandbox.sandboxed_check import CheckPlaces
from landlane.workspaces.locate import workspaces_folder
from landlane.workspaces.prepare import prepare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.git.discovery import Checkout
    from landlane.git.run import GitResult
    from landlane.repository import Repository
    from landlane.settings.model import Settings

_NAME_PREFIX = ".queue-"  # of the folder of a test checkout
_LOCK_SUFFIX = ".lock"  # of the file that a runner locks while it uses the test checkout
_INDEX_SUFFIX = ".index"  # git's index as we left it: a check may have hidden changes in its own
_IGNORED_SUFFIX = ".ignored"  # a copy of the ignored files after the preparation
_PREPARED = "prepared 2"
_LONGEST_NOTE = 200
_CHECKOUT_SECONDS = 1800.0
# Of a linked worktree's git directory; everything else in it is removed, for instance its sparse patterns.
_GIT_FILES = frozenset({"HEAD", "commondir", "gitdir", "locked", "logs", "modules", "refs"})
# Whatever the user has set: the whole tree is written, no hook runs, and every change is seen.
_OWN_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.sparseCheckout": "false",
    "core.sparseCheckoutCone": "false",
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.splitIndex": "false",
    "core.ignoreStat": "false",
    "core.trustctime": "true",
    "index.sparse": "false",
}


class CleanCheckout:
    """A test checkout that no other process uses meanwhile."""

    def __init__(
        self, repo: Repository, settings: Settings, target: str, on_tick: Callable[[], None]
    ) -> None:
        self._repo = repo
        self._settings = settings
        self._target = target
        self._on_tick = on_tick
        self._lock = -1
        self.path = ""

    @property
    def environment(self) -> dict[str, str]:
        """What marks the processes of checks here."""
        return {CHECK_MARK: self.path}

    def close(self) -> None:
        """Unlock the checkout; it stays for the next run."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def go_to(self, commit: str) -> None:
        """Check out exactly this commit.

        Raises:
            RepositoryError: git fails.
        """
        if self._lock < 0:
            self._take()
        if self.is_usable():
            self._note_use(self._last_commit(), commit)
            if self._try_to_go(commit):
                return
        self._create(commit)
        trouble = self._check_out(commit) or self._find_difference(commit)
        if trouble:
            raise self._error(commit, trouble)

    def run_git(self, *words: str) -> GitResult:
        """Run git here by our own settings, whatever `.git` leads to."""
        settings = (word for name, text in _OWN_SETTINGS.items() for word in ("-c", f"{name}={text}"))
        return run_git(
            *settings,
            *words,
            cwd=self.path,
            git_dir=self._git_dir,
            limit_seconds=_CHECKOUT_SECONDS,
            variables=self.environment,
            on_tick=self._on_tick,
        )

    @property
    def _git_dir(self) -> str:
        return worktree_git_dir(self._repo.home, self.path)

    @property
    def _tip(self) -> str:
        target = find_target(self._repo.home, self._repo.settings)
        return commit_at(self._repo.home, target.remote_ref or target.ref)

    def _take(self) -> None:
        """Lock a test checkout that no other runner uses."""
        folder = workspaces_folder(self._repo)
        os.makedirs(folder, exist_ok=True)
        number = 0
        while self._lock < 0:
            number += 1
            name = f"{_NAME_PREFIX}{self._target.replace('/', '%')}" + (f"-{number}" if number > 1 else "")
            self.path = os.path.join(folder, name)
            self._lock = _lock_file(self.path + _LOCK_SUFFIX)
        # Processes that a killed runner started there may still be running and write to our files.
        kill_marked(CHECK_MARK, self.path)

    def is_usable(self) -> bool:
        """Return whether it is prepared, and is still the worktree that the repository knows."""
        git_dir = self._git_dir
        link = os.path.join(self.path, ".git")
        if not git_dir or os.path.islink(link) or not os.path.isfile(link) or os.path.islink(self.path):
            return False
        named = read_first_line(link).removeprefix("gitdir: ")
        common = read_first_line(os.path.join(git_dir, "commondir"))
        return (
            self._read_note()[0] == _PREPARED
            and os.path.realpath(os.path.join(self.path, named)) == os.path.realpath(git_dir)
            and os.path.realpath(os.path.join(git_dir, common)) == os.path.realpath(self._repo.common_dir)
        )

    def _read_note(self) -> list[str]:
        return os.pread(self._lock, _LONGEST_NOTE, 0).decode("ascii", "replace").split("\n")

    def _last_commit(self) -> str:
        return self._read_note()[1]

    def _note_use(self, *commits: str) -> None:
        """Note which commit is checked here; both while one replaces the other."""
        text = " ".join(dict.fromkeys(commit for commit in commits if commit))
        os.pwrite(self._lock, f"{_PREPARED}\n{text}\n".ljust(_LONGEST_NOTE).encode(), 0)

    def _try_to_go(self, commit: str) -> bool:
        """Restore the checkout and go to a commit; return whether that worked."""
        try:
            self._restore_git_dir()
            before = [used for used in self._last_commit().split() if used != commit]
            tip = self._tip
            has_foreign = any(not is_ancestor(self._repo.home, used, tip) for used in before)
            if has_foreign and not self._restore_ignored():
                return False
            self._note_use(commit)
            return not (self._check_out(commit) or self._find_difference(commit))
        except (OSError, RepositoryError):
            return False

    def _restore_git_dir(self) -> None:
        git_dir = self._git_dir
        for name in os.listdir(git_dir):
            path = os.path.join(git_dir, name)
            if name in _GIT_FILES:
                continue
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)
        saved = self.path + _INDEX_SUFFIX
        if os.path.exists(saved):
            shutil.copy2(saved, os.path.join(git_dir, "index"))

    def _restore_ignored(self) -> bool:
        """Replace the ignored files by those of the preparation; False if only a new checkout has them."""
        saved = self.path + _IGNORED_SUFFIX
        if os.path.isdir(os.path.join(self._git_dir, "modules")) or not os.path.isdir(saved):
            return False  # what is in submodules is not cleaned
        if self.run_git("clean", "-ffdxq").exit_code or _has_link_in_place_of(saved, self.path):
            return False
        shutil.copytree(saved, self.path, symlinks=True, dirs_exist_ok=True)
        return True

    def _check_out(self, commit: str) -> str:
        """Write the files of a commit and remove all others that are not ignored; return git's error."""
        for words in (("checkout", "--quiet", "--force", "--detach", commit), ("clean", "-ffdq")):
            done = self.run_git(*words)
            if done.exit_code:
                return done.stderr[-300:] or f"git {words[0]} failed"
        shutil.copy2(os.path.join(self._git_dir, "index"), self.path + _INDEX_SUFFIX)
        fill_submodules(self._repo.home, self.path, is_clone=False)
        return ""

    def _find_difference(self, commit: str) -> str:
        """Return how the checkout differs from a commit; files with other line ends are as git wrote them."""
        if self.run_git("diff-index", "--cached", "--quiet", commit).exit_code:
            return "the index is not that of the commit"
        listed = self.run_git("ls-files", "-v", "-z").stdout.split("\0")
        hidden = [line[2:] for line in listed if line and not line.startswith("H ")]
        missing = [path for path in self.run_git("ls-files", "--deleted", "-z").stdout.split("\0") if path]
        wrong = hidden or missing
        return f"{wrong[0]} is missing" if wrong else ""

    def _error(self, commit: str, trouble: str) -> RepositoryError:
        folder = os.path.dirname(self.path)
        free = shutil.disk_usage(folder).free >> 20
        return RepositoryError(
            f"the queue cannot check out {commit[:8]}: {trouble}",
            code="CHECKOUT_FAILED",
            hint=f"nothing is lost; free some space if that is the cause ({free} MB are free in {folder}),"
            " then: landlane queue run --drain",
        )

    def _create(self, commit: str) -> None:
        """Create the checkout, and prepare it on the target: a branch must not prepare it for others."""
        os.ftruncate(self._lock, 0)
        self._remove()
        base = self._tip or commit
        try:
            add_detached_worktree(self._repo.home, self.path, base)
            self._restore_git_dir()
            trouble = self._check_out(base)
            if trouble:
                raise self._error(commit, trouble)
            prepare(
                self._settings,
                CheckPlaces(
                    root=self._repo.home.root,
                    common_dir=self._repo.common_dir,
                    state_folder=self._repo.state_folder,
                ),
                self.path,
                self.environment,
                self._repo.report,
                self._on_tick,
            )
            self._save_ignored()
        except LandlaneError as error:
            self._remove()
            if error.code != "GIT_FAILED":
                raise
            raise self._error(commit, error.message) from error
        # Only now: in a half prepared checkout every check would fail.
        self._note_use(commit)

    def _remove(self) -> None:
        remove_checkout(self._repo.home, self.path)
        _remove_copies(self.path)

    def _save_ignored(self) -> None:
        """Copy the ignored files; without a copy, the checkout is created again after a foreign commit."""
        self.run_git("clean", "-ffdq")
        listed = self.run_git("ls-files", "--others", "--directory", "-z").stdout.split("\0")
        folder = self.path + _IGNORED_SUFFIX
        try:
            os.makedirs(folder)
            for name in (name.rstrip("/") for name in listed if name):
                _copy(os.path.join(self.path, name), os.path.join(folder, name))
        except OSError:  # a socket or a file that cannot be read is among them, or the disk is full
            remove_tree(folder)


def _has_link_in_place_of(saved: str, path: str) -> bool:
    """Return whether a link of the last commit would lead the saved files out of the checkout."""
    with os.scandir(saved) as entries:
        places = [(entry, os.path.join(path, entry.name)) for entry in entries]
    if any(os.path.islink(place) for _, place in places):
        return True
    folders = [(entry.path, place) for entry, place in places if entry.is_dir(follow_symlinks=False)]
    return any(os.path.isdir(place) and _has_link_in_place_of(folder, place) for folder, place in folders)


def _copy(source: str, saved: str) -> None:
    os.makedirs(os.path.dirname(saved), exist_ok=True)
    if os.path.isdir(source) and not os.path.islink(source):
        shutil.copytree(source, saved, symlinks=True)
    else:
        shutil.copy2(source, saved, follow_symlinks=False)


def _remove_copies(path: str) -> None:
    if os.path.isdir(path + _IGNORED_SUFFIX):
        remove_tree(path + _IGNORED_SUFFIX)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path + _INDEX_SUFFIX)


def _lock_file(path: str) -> int:
    """Return the descriptor of a file that is now locked by this process; -1 if another has it locked."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return -1
    return file


def find_test_checkouts(home: Checkout) -> list[str]:
    """Return the test checkouts of the queue; they contain no work of users."""
    if not home.common_dir:
        return []
    paths = (path for _, path in list_worktrees(home) if os.path.basename(path).startswith(_NAME_PREFIX))
    return [path for path in paths if os.path.isfile(path + _LOCK_SUFFIX)]


def remove_test_checkouts(home: Checkout) -> list[str]:
    """Remove the test checkouts that are not in use, and return their paths."""
    removed: list[str] = []
    for path in find_test_checkouts(home):
        lock = _lock_file(path + _LOCK_SUFFIX)
        if lock < 0:
            continue
        try:
            remove_checkout(home, path)
            _remove_copies(path)
            os.unlink(path + _LOCK_SUFFIX)
        finally:
            os.close(lock)
        removed.append(path)
        with contextlib.suppress(OSError):  # other checkouts are in it
            os.rmdir(os.path.dirname(path))
    return removed
