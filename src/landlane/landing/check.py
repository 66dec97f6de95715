"""Run the declared checks on one tree, in a checkout of the queue that keeps its caches between runs."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shlex
import shutil
import stat

from landlane.clock import duration_text
from landlane.errors import LandlaneError, RepositoryError
from landlane.git import create_checkout as checkouts
from landlane.git.remove_checkout import find_git_dir, list_worktrees, remove_checkout
from landlane.git.run import LOCATION_VARIABLES, run_git
from landlane.git.submodules import fill_submodules
from landlane.git.trial_merge import create_commit
from landlane.ids import digest
from landlane.landing.model import MOST_OUTPUT
from landlane.landing.records import known_verdict, remember_verdict
from landlane.processes.child import Child
from landlane.processes.tree import CHECK_MARK, kill_marked
from landlane.settings.model import LandingCheck
from landlane.values import as_dict, value
from landlane.workspaces.locate import workspaces_folder
from landlane.workspaces.prepare import prepare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from landlane.git.discovery import Checkout
    from landlane.processes.child import ChildResult
    from landlane.repository import Repository
    from landlane.settings.model import Settings

_NOBODY = (*LOCATION_VARIABLES, "LANDLANE_SESSION", "LANDLANE_AGENT", "LANDLANE_STORE")
_NOT_FOUND = (126, 127)
_RED_MS = 10 * 60_000  # so long a red tree is believed to be red: the machine may have been to blame
PLACES_BEGIN = ".queue-"  # how the name of the queue's own checkouts begins
LOCK = ".lock"  # behind the name of one: whoever has it locked tests there
_PREPARED = b"prepared\n"


@value
class Verdict:
    """What all checks say of a tree; the first that fails is named."""

    is_green: bool
    check: str = ""
    exit: int = 0
    output: str = ""
    reason: str = ""
    flaky: tuple[str, ...] = ()


class Bench:
    """Where trees are tested: one checkout that nobody else uses meanwhile."""

    def __init__(
        self, repo: Repository, settings: Settings, target: str, on_tick: Callable[[], None]
    ) -> None:
        self._repo = repo
        self._settings = settings
        self._target = target
        self._on_tick = on_tick
        self._lock = -1
        self._said: dict[tuple[str, str], Verdict] = {}  # what was run here, by tree and check
        self.path = ""
        self.runs = 0

    @property
    def _mark(self) -> dict[str, str]:
        return {CHECK_MARK: self.path}

    def close(self) -> None:
        """Let others use the checkout; it stays for the next time."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def test(
        self,
        commit: str,
        tree: str,
        paths: Mapping[str, str],
        on_check: Callable[[str], None],
        *,
        anew: bool = False,
    ) -> Verdict:
        """Ask all checks about a tree, and remember what they say; `paths` are files with a validator.

        With `anew`, a check that was red before this bench was set up is run once more: what was to blame,
        such as an outage, may be over.

        Raises:
            RepositoryError: the tree cannot be checked out.
        """
        checks = [*self._validators(paths), *(self._settings.landing.checks or ())]
        flaky: list[str] = []
        for check in checks:
            verdict = self._ask(check, commit, tree, on_check, anew=anew)
            flaky += verdict.flaky
            if not verdict.is_green:
                return verdict
        return Verdict(is_green=True, flaky=tuple(flaky))

    def _validators(self, paths: Mapping[str, str]) -> list[LandingCheck]:
        return [
            LandingCheck(name=f"validate {path}", run=f"{command} {shlex.quote(path)}")
            for path, command in paths.items()
        ]

    def _ask(
        self,
        check: LandingCheck,
        commit: str,
        tree: str,
        on_check: Callable[[str], None],
        *,
        anew: bool,
    ) -> Verdict:
        key = digest(f"{check.run}\0{check.retries}")[:32]
        said = self._said.get((tree, key)) if anew else None
        if said is not None:
            return said
        known, at = _remembered(known_verdict(self._repo, tree, key))
        is_old = self._repo.wall_ms() - at > _RED_MS
        if known is not None and (known.is_green or not (anew or is_old)):
            return known
        on_check(check.name)
        verdict, is_lasting = self._run_with_retries(check, commit)
        self._said[tree, key] = verdict
        told = {**as_dict(verdict), "flaky": list(verdict.flaky), "at": self._repo.wall_ms()}
        data = json.dumps(told) if is_lasting else ""
        remember_verdict(self._repo, self._target, tree, key, data)
        return verdict

    def _run_with_retries(self, check: LandingCheck, commit: str) -> tuple[Verdict, bool]:
        first, is_lasting = self._run(check, commit)
        verdict = first
        for _ in range(check.retries):
            if verdict.is_green:
                break
            verdict, is_lasting = self._run(check, commit)
        if verdict.is_green and not first.is_green:
            return Verdict(is_green=True, flaky=(check.name,), output=first.output), True
        return verdict, is_lasting

    def _run(self, check: LandingCheck, commit: str) -> tuple[Verdict, bool]:
        """Run one check; and whether what it says is worth remembering, or came from a broken machine."""
        name, limit_ms = check.name, check.limit_ms or self._settings.landing.check_limit_ms
        ended = self._start(check.run, commit, limit_ms)
        self.runs += 1
        output = (ended.stdout + ended.stderr)[-MOST_OUTPUT:]

        def failed(reason: str) -> Verdict:
            return Verdict(is_green=False, check=name, exit=ended.exit_code, output=output, reason=reason)

        if ended.has_timed_out:
            return failed(f"`{name}` took longer than {duration_text(limit_ms)} and was ended"), False
        dirtied = self._dirtied(commit)
        if dirtied:
            more = f" and {len(dirtied) - 5} more" if len(dirtied) > 5 else ""
            return failed(f"`{name}` changed tracked files: {', '.join(dirtied[:5])}{more}"), True
        if ended.exit_code < 0:
            return failed(f"`{name}` was ended by signal {-ended.exit_code}"), False
        if ended.exit_code:
            return failed(f"`{name}` ended with {ended.exit_code}"), ended.exit_code not in _NOT_FOUND
        return Verdict(is_green=True), True

    def _start(self, command: str, commit: str, limit_ms: int) -> ChildResult:
        """Run a command on exactly this commit, and let nothing of it live on."""
        self.go_to(commit)
        child = Child(["/bin/sh", "-c", command], cwd=self.path, environment=self._mark, without=_NOBODY)
        try:
            return child.wait(limit_ms / 1000, self._on_tick)
        finally:
            kill_marked(CHECK_MARK, self.path)  # also what left the process group

    def _dirtied(self, commit: str) -> list[str]:
        """What a check changed of what it was given."""
        changed = self._changed(commit)
        if not changed or not changed[0]:
            return ["HEAD"] if changed else []
        # A file whose line ends are not what its attributes say counts as changed as soon as it is touched.
        before = [_content(os.path.join(self.path, path)) for path in changed]
        self.go_to(commit)
        after = [_content(os.path.join(self.path, path)) for path in changed]
        return [path for path, one, other in zip(changed, before, after, strict=True) if one != other]

    def _changed(self, commit: str) -> list[str]:
        """The tracked files that git calls changed; an empty name when it stands on another commit."""
        found = run_git("status", "--porcelain", "-z", "--untracked-files=no", "--no-renames", cwd=self.path)
        if found.exit_code:
            return [""]
        head = run_git("rev-parse", "HEAD", cwd=self.path).stdout.strip()
        changed = [item[3:] for item in found.stdout.split("\0") if item]
        return changed or ([""] if head != commit else [])

    def regenerate(self, tree: str, path: str, command: str) -> bytes | str:
        """What a command makes of a file on a tree; or what went wrong, as text."""
        commit = create_commit(self._repo.home, tree, [], "to generate from")
        limit_ms = self._settings.landing.check_limit_ms
        ended = self._start(command, commit, limit_ms)
        if ended.has_timed_out or ended.exit_code:
            said = (ended.stdout + ended.stderr)[-1000:].strip()
            ending = (
                f"took longer than {duration_text(limit_ms)}"
                if ended.has_timed_out
                else f"ended with {ended.exit_code}"
            )
            return f"`{command}` {ending}: {said}"
        try:
            with open(os.path.join(self.path, path), "rb") as file:
                return file.read()
        except OSError as error:
            return f"`{command}` did not write it: {error.strerror}"

    def go_to(self, commit: str) -> None:
        """Stand on exactly this commit; what is ignored, such as caches, stays.

        Raises:
            RepositoryError: git cannot.
        """
        if self._lock < 0:
            self._settle_down(commit)
        self._unlock()
        for words in (("checkout", "--quiet", "--force", "--detach", commit), ("clean", "-ffdq")):
            # The user's hooks are for the user's checkouts: none of them may make this one fail.
            found = run_git(
                *("-c", "core.hooksPath=/dev/null", *words),
                cwd=self.path,
                limit_seconds=1800,
                variables=self._mark,
                on_tick=self._on_tick,
            )
            if found.exit_code:
                raise self._not_checked_out(commit, found.stderr[-300:])
        fill_submodules(self._repo.home, self.path, is_clone=False)

    def _not_checked_out(self, commit: str, trouble: str) -> RepositoryError:
        folder = os.path.dirname(self.path)
        free = shutil.disk_usage(folder).free >> 20
        return RepositoryError(
            f"the queue cannot check {commit[:12]} out: {trouble}",
            code="CHECKOUT_FAILED",
            hint=f"nothing is lost: mend that ({free} MB are free in {folder}), then `landlane queue run`",
        )

    def _settle_down(self, commit: str) -> None:
        """Find a checkout of the queue that nobody uses, or make one and prepare it."""
        folder = workspaces_folder(self._repo)
        os.makedirs(folder, exist_ok=True)
        number = 0
        while self._lock < 0:
            number += 1
            name = f"{PLACES_BEGIN}{self._target.replace('/', '%')}" + (f"-{number}" if number > 1 else "")
            self.path = os.path.join(folder, name)
            self._lock = lock_alone(self.path + LOCK)
        # What a runner that was killed had started there may still be at it, and would write among our files.
        kill_marked(CHECK_MARK, self.path)
        git_dir = find_git_dir(self._repo.home, self.path)
        if not git_dir or not os.path.isdir(self.path) or os.pread(self._lock, 100, 0) != _PREPARED:
            self._make(commit)

    def _unlock(self) -> None:
        """Take away locks, of the index or HEAD, that a killed git left: nobody else works here."""
        git_dir = find_git_dir(self._repo.home, self.path)
        for name in os.listdir(git_dir) if git_dir else ():
            if name.endswith(".lock"):
                os.unlink(os.path.join(git_dir, name))

    def _make(self, commit: str) -> None:
        os.ftruncate(self._lock, 0)
        remove_checkout(self._repo.home, self.path)
        checkouts.add_detached_worktree(self._repo.home, self.path, commit)
        try:
            checkouts.write_files(self.path)
            prepare(
                self._settings, self._repo.home.root, self.path, self._mark, self._repo.report, self._on_tick
            )
        except LandlaneError as error:
            remove_checkout(self._repo.home, self.path)
            if error.code != "GIT_FAILED":
                raise
            raise self._not_checked_out(commit, error.message) from error
        # Only now: one that was cut off half way would make every check red.
        os.pwrite(self._lock, _PREPARED, 0)


def _remembered(data: str) -> tuple[Verdict | None, int]:
    """A verdict as it was written down, if there is one, and when that was."""
    if not data:
        return None, 0
    fields: dict[str, Any] = json.loads(data)
    at = int(fields.pop("at", 0))
    return Verdict(**{**fields, "flaky": tuple(fields["flaky"])}), at  # type: ignore[arg-type]


def _content(path: str) -> object:
    """What tells a file from a changed one."""
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            return os.readlink(path)
        with open(path, "rb") as file:
            return mode & 0o100, hashlib.file_digest(file, "sha256").digest()
    except OSError:
        return None


def lock_alone(path: str) -> int:
    """An open file that is locked for this process, or -1: somebody else works there."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return -1
    return file


def find_benches(home: Checkout) -> list[str]:
    """The checkouts that the queue made for itself; what is in them is nobody's work."""
    if not home.common_dir:
        return []
    named = (path for _, path in list_worktrees(home) if os.path.basename(path).startswith(PLACES_BEGIN))
    return [path for path in named if os.path.isfile(path + LOCK)]


def remove_benches(home: Checkout) -> list[str]:
    """Remove those that nobody tests in just now; tells which."""
    done: list[str] = []
    for path in find_benches(home):
        lock = lock_alone(path + LOCK)
        if lock < 0:
            continue
        try:
            remove_checkout(home, path)
            os.unlink(path + LOCK)
        finally:
            os.close(lock)
        done.append(path)
        with contextlib.suppress(OSError):  # others lie there, too
            os.rmdir(os.path.dirname(path))
    return done
