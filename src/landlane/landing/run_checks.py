"""Run the declared checks on a tree, in a test checkout of the queue that keeps its caches between runs."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shlex
import shutil
import stat
import time

from landlane.errors import LandlaneError, RepositoryError
from landlane.git import create_checkout as checkouts
from landlane.git.create_checkout import fill_submodules
from landlane.git.remove_checkout import find_git_dir, list_worktrees, remove_checkout
from landlane.git.run import LOCATION_VARIABLES, run_git
from landlane.git.trial_merge import create_commit
from landlane.ids import digest
from landlane.landing.failing_lines import failing_lines
from landlane.landing.model import MAX_OUTPUT_CHARS, CheckRun
from landlane.landing.records import find_check_result, save_check_result
from landlane.processes.child import Child
from landlane.processes.tree import CHECK_MARK, kill_marked
from landlane.settings.model import LandingCheck
from landlane.units import exact_duration
from landlane.values import as_dict, replace, value
from landlane.workspaces.locate import workspaces_folder
from landlane.workspaces.prepare import prepare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from landlane.git.discovery import Checkout
    from landlane.processes.child import ChildResult
    from landlane.repository import Repository
    from landlane.settings.model import Settings

_REMOVED_VARIABLES = (*LOCATION_VARIABLES, "LANDLANE_SESSION", "LANDLANE_AGENT", "LANDLANE_STORE")
_NOT_FOUND = (126, 127)
_FAILURE_TTL_MS = 10 * 60_000  # a saved failure expires: the machine may have caused it
_NAME_PREFIX = ".queue-"  # of the folder of a test checkout
_LOCK_SUFFIX = ".lock"  # of the file that a runner locks while it uses the test checkout
_PREPARED = b"prepared\n"


@value
class CheckResult:
    """The result of all checks on a tree; `check` is the first that failed."""

    is_green: bool
    check: str = ""
    exit: int = 0
    output: str = ""
    reason: str = ""
    flaky: tuple[str, ...] = ()
    ms: int = 0  # of the last check
    runs: tuple[CheckRun, ...] = ()  # every check that ended


class CheckRunner:
    """Runs checks in a test checkout that no other process uses meanwhile."""

    def __init__(
        self, repo: Repository, settings: Settings, target: str, on_tick: Callable[[], None]
    ) -> None:
        self._repo = repo
        self._settings = settings
        self._target = target
        self._on_tick = on_tick
        self._lock = -1
        self._results: dict[tuple[str, str], CheckResult] = {}  # of this runner, by tree and check
        self._path = ""

    @property
    def _environment(self) -> dict[str, str]:
        return {CHECK_MARK: self._path}

    def close(self) -> None:
        """Unlock the checkout; it stays for the next run."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def check(
        self,
        commit: str,
        tree: str,
        validators: Mapping[str, str],
        on_check: Callable[[str, Sequence[CheckRun]], None],
        *,
        rerun_failed: bool = False,
    ) -> CheckResult:
        """Run all checks on a tree unless their results are saved; `validators` maps files to commands.

        `on_check` gets the name of each check before it starts, and those that ended.
        With `rerun_failed`, a check whose saved result is a failure is run once more by this runner.

        Raises:
            RepositoryError: the tree cannot be checked out.
        """
        checks = [
            LandingCheck(name=f"validate {path}", run=f"{command} {shlex.quote(path)}")
            for path, command in validators.items()
        ]
        checks += self._settings.landing.checks or ()
        flaky: list[str] = []
        runs: list[CheckRun] = []
        for check in checks:
            result = self._find_or_run(
                check, commit, tree, lambda name: on_check(name, runs), rerun_failed=rerun_failed
            )
            flaky += result.flaky
            runs.append(_describe_run(check.name, result))
            if not result.is_green:
                return replace(result, runs=tuple(runs))
        return CheckResult(is_green=True, flaky=tuple(flaky), runs=tuple(runs))

    def _find_or_run(
        self,
        check: LandingCheck,
        commit: str,
        tree: str,
        on_check: Callable[[str], None],
        *,
        rerun_failed: bool,
    ) -> CheckResult:
        key = digest(f"{check.run}\0{check.retries}")[:32]
        if rerun_failed and (tree, key) in self._results:
            return self._results[tree, key]
        saved, saved_at = _parse_result(find_check_result(self._repo, tree, key))
        is_old = self._repo.wall_ms() - saved_at > _FAILURE_TTL_MS
        if saved is not None and (saved.is_green or not (rerun_failed or is_old)):
            return saved
        on_check(check.name)
        result, is_lasting = self._run_with_retries(check, commit)
        self._results[tree, key] = result
        document = {**as_dict(result), "flaky": list(result.flaky), "at": self._repo.wall_ms()}
        del document["runs"]
        data = json.dumps(document) if is_lasting else ""
        sample = (check.name, result.ms) if result.is_green else None
        save_check_result(self._repo, self._target, tree, key, data, sample)
        return result

    def _run_with_retries(self, check: LandingCheck, commit: str) -> tuple[CheckResult, bool]:
        first, is_lasting = self._run_check(check, commit)
        result = first
        for _ in range(check.retries):
            if result.is_green:
                break
            result, is_lasting = self._run_check(check, commit)
        if result.is_green and not first.is_green:
            return replace(result, flaky=(check.name,), output=first.output), True
        return result, is_lasting

    def _run_check(self, check: LandingCheck, commit: str) -> tuple[CheckResult, bool]:
        """Run one check; also return whether to save the result, since the machine may have caused it."""
        name, limit_ms = check.name, check.limit_ms or self._settings.landing.check_limit_ms
        ended, ms = self._run_command(check.run, commit, limit_ms)
        output = (ended.stdout + ended.stderr)[-MAX_OUTPUT_CHARS:]

        def failed(reason: str) -> CheckResult:
            return CheckResult(
                is_green=False, check=name, exit=ended.exit_code, output=output, reason=reason, ms=ms
            )

        if ended.has_timed_out:
            return failed(f"{name} was stopped after {exact_duration(limit_ms)}"), False
        dirtied = self._files_changed_by_check(commit)
        if dirtied is None:
            return failed(f"{name} left a checkout that git cannot read"), False
        if dirtied:
            more = f" and {len(dirtied) - 5} more" if len(dirtied) > 5 else ""
            return failed(f"{name} changed tracked files: {', '.join(dirtied[:5])}{more}"), True
        if ended.exit_code < 0:
            return failed(f"{name} was killed by signal {-ended.exit_code}"), False
        if ended.exit_code:
            return failed(f"{name} fails (exit {ended.exit_code})"), ended.exit_code not in _NOT_FOUND
        return CheckResult(is_green=True, ms=ms), True

    def _run_command(self, command: str, commit: str, limit_ms: int) -> tuple[ChildResult, int]:
        """Run a command on exactly this commit, and kill all processes that it leaves.

        Also return how many milliseconds it took.
        """
        self._check_out(commit)
        started = time.monotonic()
        child = Child(
            ["/bin/sh", "-c", command],
            cwd=self._path,
            environment=self._environment,
            without=_REMOVED_VARIABLES,
        )
        try:
            ended = child.wait(limit_ms / 1000, self._on_tick)
            return ended, round((time.monotonic() - started) * 1000)
        finally:
            kill_marked(CHECK_MARK, self._path)  # also those that left its process group

    def _files_changed_by_check(self, commit: str) -> list[str] | None:
        """Return the tracked files that a check changed, with HEAD if it moved; None if git fails."""
        changed = self._tracked_changes(commit)
        if not changed or changed == ["HEAD"]:
            return changed
        # git reports a file whose line ends differ from its attributes as changed once it is touched.
        before = [_fingerprint(os.path.join(self._path, path)) for path in changed]
        self._check_out(commit)
        after = [_fingerprint(os.path.join(self._path, path)) for path in changed]
        return [path for path, was, now in zip(changed, before, after, strict=True) if was != now]

    def _tracked_changes(self, commit: str) -> list[str] | None:
        """Return the tracked files that git reports as changed, or HEAD if it moved; None if git fails."""
        result = run_git(
            "status", "--porcelain", "-z", "--untracked-files=no", "--no-renames", cwd=self._path
        )
        if result.exit_code:
            return None
        head = run_git("rev-parse", "HEAD", cwd=self._path).stdout.strip()
        changed = [item[3:] for item in result.stdout.split("\0") if item]
        return changed or (["HEAD"] if head != commit else [])

    def regenerate(self, tree: str, path: str, command: str) -> bytes | str:
        """Return the content that a command generates for a file on a tree, or an error text."""
        commit = create_commit(self._repo.home, tree, [], "to generate from")
        limit_ms = self._settings.landing.check_limit_ms
        ended, _ = self._run_command(command, commit, limit_ms)
        if ended.has_timed_out or ended.exit_code:
            output = (ended.stdout + ended.stderr)[-1000:].strip()
            ending = (
                f"was stopped after {exact_duration(limit_ms)}"
                if ended.has_timed_out
                else f"failed (exit {ended.exit_code})"
            )
            return f"{command} {ending}: {output}"
        try:
            with open(os.path.join(self._path, path), "rb") as file:
                return file.read()
        except OSError as error:
            return f"{command} did not write it: {error.strerror}"

    def _check_out(self, commit: str) -> None:
        """Check out exactly this commit; ignored files, such as caches, stay.

        Raises:
            RepositoryError: git fails.
        """
        if self._lock < 0:
            self._take_checkout(commit)
        self._remove_git_locks()
        for words in (("checkout", "--quiet", "--force", "--detach", commit), ("clean", "-ffdq")):
            # The user's hooks must not make this checkout fail.
            done = run_git(
                *("-c", "core.hooksPath=/dev/null", *words),
                cwd=self._path,
                limit_seconds=1800,
                variables=self._environment,
                on_tick=self._on_tick,
            )
            if done.exit_code:
                raise self._checkout_error(commit, done.stderr[-300:])
        fill_submodules(self._repo.home, self._path, is_clone=False)

    def _checkout_error(self, commit: str, trouble: str) -> RepositoryError:
        folder = os.path.dirname(self._path)
        free = shutil.disk_usage(folder).free >> 20
        return RepositoryError(
            f"the queue cannot check out {commit[:8]}: {trouble}",
            code="CHECKOUT_FAILED",
            hint=f"nothing is lost; free some space if that is the cause ({free} MB are free in {folder}),"
            " then: landlane queue run --drain",
        )

    def _take_checkout(self, commit: str) -> None:
        """Lock a test checkout that no other runner uses; create and prepare one if there is none."""
        folder = workspaces_folder(self._repo)
        os.makedirs(folder, exist_ok=True)
        number = 0
        while self._lock < 0:
            number += 1
            name = f"{_NAME_PREFIX}{self._target.replace('/', '%')}" + (f"-{number}" if number > 1 else "")
            self._path = os.path.join(folder, name)
            self._lock = _lock_file(self._path + _LOCK_SUFFIX)
        # Processes that a killed runner started there may still be running and write to our files.
        kill_marked(CHECK_MARK, self._path)
        git_dir = find_git_dir(self._repo.home, self._path)
        if not git_dir or not os.path.isdir(self._path) or os.pread(self._lock, 100, 0) != _PREPARED:
            self._create(commit)

    def _remove_git_locks(self) -> None:
        """Remove locks of the index or HEAD that a killed git left: no other process uses this checkout."""
        git_dir = find_git_dir(self._repo.home, self._path)
        for name in os.listdir(git_dir) if git_dir else ():
            if name.endswith(".lock"):
                os.unlink(os.path.join(git_dir, name))

    def _create(self, commit: str) -> None:
        os.ftruncate(self._lock, 0)
        remove_checkout(self._repo.home, self._path)
        checkouts.add_detached_worktree(self._repo.home, self._path, commit)
        try:
            checkouts.write_files(self._path)
            prepare(
                self._settings,
                self._repo.home.root,
                self._path,
                self._environment,
                self._repo.report,
                self._on_tick,
            )
        except LandlaneError as error:
            remove_checkout(self._repo.home, self._path)
            if error.code != "GIT_FAILED":
                raise
            raise self._checkout_error(commit, error.message) from error
        # Only now: in a half prepared checkout every check would fail.
        os.pwrite(self._lock, _PREPARED, 0)


def _describe_run(name: str, result: CheckResult) -> CheckRun:
    lines = [] if result.is_green else failing_lines(result.output)
    return CheckRun(name=name, is_green=result.is_green, exit=result.exit, ms=result.ms, lines=lines)


def _parse_result(data: str) -> tuple[CheckResult | None, int]:
    """Return a saved result and when it was saved; (None, 0) if there is none."""
    if not data:
        return None, 0
    fields: dict[str, Any] = json.loads(data)
    at = int(fields.pop("at", 0))
    return CheckResult(**{**fields, "flaky": tuple(fields["flaky"])}), at  # type: ignore[arg-type]


def _fingerprint(path: str) -> object:
    """Return a value that differs when the file was changed."""
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            return os.readlink(path)
        with open(path, "rb") as file:
            return mode & 0o100, hashlib.file_digest(file, "sha256").digest()
    except OSError:
        return None


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
            os.unlink(path + _LOCK_SUFFIX)
        finally:
            os.close(lock)
        removed.append(path)
        with contextlib.suppress(OSError):  # other checkouts are in it
            os.rmdir(os.path.dirname(path))
    return removed
