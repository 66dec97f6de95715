"""Running the declared checks on exactly one tree, in a workspace of the queue that keeps its caches."""

from __future__ import annotations

import fcntl
import json
import os
import shlex

from interlock.clock import duration_text
from interlock.domain.landings import MOST_OUTPUT
from interlock.errors import InterlockError, RepositoryError
from interlock.flows.preparing import prepare
from interlock.flows.workspaces import workspaces_folder
from interlock.git import checkouts
from interlock.git.run import PLACES, run_git
from interlock.ids import digest
from interlock.operations.landings import known_verdict, remember_verdict
from interlock.runners.process import Child
from interlock.values import as_dict, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from interlock.config import Settings
    from interlock.flows.site import Site

_NOBODY = (*PLACES, "INTERLOCK_SESSION", "INTERLOCK_AGENT", "INTERLOCK_STORE")
_NOT_FOUND = (126, 127)


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

    def __init__(self, site: Site, settings: Settings, target: str, on_tick: Callable[[], None]) -> None:
        self._site = site
        self._settings = settings
        self._target = target
        self._on_tick = on_tick
        self._lock = -1
        self.path = ""
        self.runs = 0

    def close(self) -> None:
        """Let others use the checkout; it stays for the next time."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def test(
        self, commit: str, tree: str, paths: Mapping[str, str], on_check: Callable[[str], None]
    ) -> Verdict:
        """Ask all checks about a tree, and remember what they say; `paths` are hot files with a validator.

        Raises:
            RepositoryError: the tree cannot be checked out.
        """
        checks = [*self._validators(paths), *(self._settings.landing_checks or ())]
        flaky: list[str] = []
        for check in checks:
            verdict = self._ask(check, commit, tree, on_check)
            flaky += verdict.flaky
            if not verdict.is_green:
                return verdict
        return Verdict(is_green=True, flaky=tuple(flaky))

    def _validators(self, paths: Mapping[str, str]) -> list[dict[str, Any]]:
        return [
            {"name": f"validate {path}", "run": f"{command} {shlex.quote(path)}"}
            for path, command in paths.items()
        ]

    def _ask(
        self, check: Mapping[str, Any], commit: str, tree: str, on_check: Callable[[str], None]
    ) -> Verdict:
        key = digest(f"{check['run']}\0{check.get('retries', 0)}")[:32]
        known = known_verdict(self._site.context, tree, key)
        if known:
            fields: dict[str, Any] = json.loads(known)
            fields["flaky"] = tuple(fields["flaky"])
            return Verdict(**fields)
        on_check(check["name"])
        verdict, is_lasting = self._run_with_retries(check, commit)
        data = json.dumps({**as_dict(verdict), "flaky": list(verdict.flaky)}) if is_lasting else ""
        if data:
            remember_verdict(self._site.context, self._target, tree, key, data, has_run=True)
        return verdict

    def _run_with_retries(self, check: Mapping[str, Any], commit: str) -> tuple[Verdict, bool]:
        retries = int(check.get("retries", 0))
        first, is_lasting = self._run(check, commit)
        verdict = first
        for _ in range(retries):
            if verdict.is_green:
                break
            verdict, is_lasting = self._run(check, commit)
        if verdict.is_green and not first.is_green:
            return Verdict(is_green=True, flaky=(str(check["name"]),), output=first.output), True
        return verdict, is_lasting

    def _run(self, check: Mapping[str, Any], commit: str) -> tuple[Verdict, bool]:
        """Run one check; and whether what it says is worth remembering, or came from a broken machine."""
        self.go_to(commit)
        self.runs += 1
        limit_ms = int(check.get("limit", self._settings.landing_check_limit_ms))
        name = str(check["name"])
        child = Child(["/bin/sh", "-c", str(check["run"])], cwd=self.path, without=_NOBODY)
        ended = child.wait(limit_ms / 1000, self._on_tick)
        output = (ended.output + ended.trouble)[-MOST_OUTPUT:]

        def failed(reason: str) -> Verdict:
            return Verdict(is_green=False, check=name, exit=ended.exit_code, output=output, reason=reason)

        if ended.is_late:
            return failed(f"`{name}` took longer than {duration_text(limit_ms)}"), False
        dirtied = self._dirtied(commit)
        if dirtied:
            return failed(f"`{name}` changed tracked files: {', '.join(dirtied[:5])}"), True
        if ended.exit_code:
            is_lasting = ended.exit_code > 0 and ended.exit_code not in _NOT_FOUND
            return failed(f"`{name}` ended with {ended.exit_code}"), is_lasting
        return Verdict(is_green=True), True

    def _dirtied(self, commit: str) -> list[str]:
        found = run_git("status", "--porcelain", "-z", "--untracked-files=no", cwd=self.path)
        head = run_git("rev-parse", "HEAD", cwd=self.path).text.strip()
        changed = [item[3:] for item in found.text.split("\0") if item]
        return changed or (["HEAD"] if head != commit else [])

    def regenerate(self, tree: str, path: str, command: str) -> bytes | str:
        """What a command makes of a file on a tree; or what went wrong, as text."""
        from interlock.git.trials import commit_of

        commit = commit_of(self._site.home, tree, [], "to generate from")
        self.go_to(commit)
        limit_ms = self._settings.landing_check_limit_ms
        child = Child(["/bin/sh", "-c", command], cwd=self.path, without=_NOBODY)
        ended = child.wait(limit_ms / 1000, self._on_tick)
        if ended.is_late or ended.exit_code:
            said = (ended.output + ended.trouble)[-1000:].strip()
            ending = (
                f"took longer than {duration_text(limit_ms)}"
                if ended.is_late
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
        if not self.path:
            self._settle_down(commit)
        for words in (
            ("checkout", "--quiet", "--force", "--detach", commit),
            ("reset", "--quiet", "--hard", commit),
            ("clean", "-ffdq"),
        ):
            found = run_git(*words, cwd=self.path, limit_seconds=1800)
            if found.exit_code:
                raise RepositoryError(
                    f"the queue cannot check {commit[:12]} out: {found.trouble[-300:]}",
                    code="CHECKOUT_FAILED",
                    hint="look at the disk; `interlock doctor` tells more",
                )

    def _settle_down(self, commit: str) -> None:
        """Find a checkout of the queue that nobody uses, or make one and prepare it."""
        folder = workspaces_folder(self._site)
        os.makedirs(folder, exist_ok=True)
        number = 0
        while self._lock < 0:
            number += 1
            name = f".queue-{self._target.replace('/', '%')}" + (f"-{number}" if number > 1 else "")
            self.path = os.path.join(folder, name)
            self._lock = _lock_alone(self.path + ".lock")
        if not checkouts.private_git_dir(self._site.home, self.path) or not os.path.isdir(self.path):
            self._make(commit)

    def _make(self, commit: str) -> None:
        checkouts.remove_checkout(self._site.home, self.path)
        checkouts.add_detached_worktree(self._site.home, self.path, commit)
        checkouts.write_files(self.path)
        try:
            prepare(self._settings, self._site.home.root, self.path, {}, self._site.tell, self._on_tick)
        except InterlockError:
            checkouts.remove_checkout(self._site.home, self.path)
            raise


def _lock_alone(path: str) -> int:
    """An open file that is locked for this process, or -1: somebody else works there."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return -1
    return file
