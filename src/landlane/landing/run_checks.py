"""Run the declared checks on a tree, sandboxed in the test checkout of the queue, and save their results."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import stat
import time

from landlane.files import open_regular, read_regular
from landlane.git.run import LOCATION_VARIABLES
from landlane.git.trial_merge import create_commit
from landlane.ids import digest
from landlane.landing.clean_checkout import CleanCheckout
from landlane.landing.failing_lines import failing_lines
from landlane.landing.model import MAX_OUTPUT_CHARS, CheckRun
from landlane.landing.records import find_check_result, get_queue, save_check_result
from landlane.processes.tree import CHECK_MARK, kill_marked
from landlane.sandbox.sandboxed_check import (
    CheckCommand,
    CheckPlaces,
    describe_confinement,
    run_sandboxed_check,
)
from landlane.settings.model import LandingCheck
from landlane.units import exact_duration
from landlane.values import as_dict, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from landlane.processes.child import ChildResult
    from landlane.repository import Repository
    from landlane.settings.model import Settings

VALIDATOR = "validate "  # before the path, in the name of the check of one file
_REMOVED_VARIABLES = (*LOCATION_VARIABLES, "LANDLANE_SESSION", "LANDLANE_AGENT", "LANDLANE_STORE")
_NOT_FOUND = (126, 127)
_FAILURE_TTL_MS = 10 * 60_000  # a saved failure expires: the machine may have caused it


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
        self._recheck_before = get_queue(repo, target).recheck_before
        self._checkout = CleanCheckout(repo, settings, target, on_tick)
        self._results: dict[tuple[str, str], CheckResult] = {}  # of this runner, by tree and check
        self._confined_by = settings  # a branch never opens the sandbox that it is checked in
        self.confinement = describe_confinement(settings)  # for the record of a landing

    def use(self, settings: Settings) -> None:
        """Judge by the checks of these settings from now on."""
        self._settings = settings

    def close(self) -> None:
        """Unlock the checkout; it stays for the next run."""
        self._checkout.close()

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
            LandingCheck(name=f"{VALIDATOR}{path}", run=f"{command} {shlex.quote(path)}")
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
        opened = as_dict(self._confined_by.landing.sandbox)  # what fails in one sandbox may pass in another
        key = digest(f"{check.run}\0{check.retries}\0{json.dumps(opened, sort_keys=True)}")[:32]
        if rerun_failed and (tree, key) in self._results:
            return self._results[tree, key]
        saved, saved_at = _parse_result(find_check_result(self._repo, tree, key))
        is_old = saved_at <= max(self._repo.wall_ms() - _FAILURE_TTL_MS, self._recheck_before)
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
        self._checkout.go_to(commit)
        started = time.monotonic()
        repo = self._repo
        run = CheckCommand(
            words=("/bin/sh", "-c", command),
            path=self._checkout.path,
            environment=self._checkout.environment,
            limit_seconds=limit_ms / 1000,
            without=_REMOVED_VARIABLES,
        )
        places = CheckPlaces(root=repo.home.root, common_dir=repo.common_dir, state_folder=repo.state_folder)
        try:
            ended = run_sandboxed_check(self._confined_by, places, run, self._on_tick)
            return ended, round((time.monotonic() - started) * 1000)
        finally:
            kill_marked(CHECK_MARK, self._checkout.path)  # in case that it has killed its reaper

    def _files_changed_by_check(self, commit: str) -> list[str] | None:
        """Return the tracked files that a check changed, with HEAD if it moved; None if git fails."""
        changed = self._tracked_changes(commit)
        if not changed or changed == ["HEAD"]:
            return changed
        # git reports a file whose line ends differ from its attributes as changed once it is touched.
        before = [_fingerprint(os.path.join(self._checkout.path, path)) for path in changed]
        self._checkout.go_to(commit)
        after = [_fingerprint(os.path.join(self._checkout.path, path)) for path in changed]
        return [path for path, was, now in zip(changed, before, after, strict=True) if was != now]

    def _tracked_changes(self, commit: str) -> list[str] | None:
        """Return the tracked files that git reports as changed, or HEAD if it moved; None if git fails."""
        if not self._checkout.is_usable():
            return None
        words = ("status", "--porcelain", "-z", "--untracked-files=no", "--no-renames")
        result = self._checkout.run_git(*words)
        if result.exit_code:
            return None
        head = self._checkout.run_git("rev-parse", "HEAD").stdout.strip()
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
        top = os.path.realpath(self._checkout.path)
        full = os.path.join(top, path)
        if os.path.realpath(full) != full:  # a link leads to files that the command itself may not read
            return f"{command} did not write it: there is a link in its place"
        try:
            return read_regular(full)
        except OSError as error:
            return f"{command} did not write it: {error.strerror}"


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
        with open(path, "rb", opener=open_regular) as file:
            return mode & 0o100, hashlib.file_digest(file, "sha256").digest()
    except OSError:
        return None
