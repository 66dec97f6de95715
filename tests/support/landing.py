"""A repository with branches, agents and a landing queue, shared by tests of landing."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

from landlane.app.open import open_repository
from landlane.app.repair_config import prepare_git
from landlane.claims import take as claims
from landlane.claims.model import ClaimMode, Refused
from landlane.landing.model import Landing
from landlane.landing.queue import QueueRunner, drain_queue, start_runner
from landlane.landing.records import get_landing, get_queue, list_landings
from landlane.landing.submit import submit_branch
from landlane.sessions import join as sessions
from landlane.testing.repositories import git

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from landlane.clock import Clock
    from landlane.errors import LandlaneError
    from landlane.repository import Repository
    from landlane.sessions.model import Session

# Checks may write beside the repository, where tests look for what they noted.
SETTINGS = '[landing]\nchecks = {checks}\nresident = false\nsandbox.write = [".."]\n{more}\n'


class LandingTestbed:
    """A repository with a target branch `main`, agents, and a queue runner."""

    def __init__(self, folder: Path, clock: Clock | None = None) -> None:
        self.folder = folder
        self.notes: list[str] = []
        self._clock = clock
        self._opened: list[Repository] = []
        self._repo: Repository | None = None

    @property
    def repo(self) -> Repository:
        if self._repo is None:
            self._repo = open_repository(str(self.folder), clock=self._clock)
            self._opened.append(self._repo)
        return self._repo

    @property
    def prepared_repo(self) -> Repository:
        return prepare_git(self.repo, self.notes.append)

    def close(self) -> None:
        for repo in self._opened:
            repo.close()

    def configure(self, checks: str = "[]", more: str = "", files: Mapping[str, str] | None = None) -> None:
        """Commit settings and files on the target, as a person does."""
        self.commit({"landlane.toml": SETTINGS.format(checks=checks, more=more), **(files or {})})
        self._repo = None

    def commit(self, files: Mapping[str, str | bytes | None], message: str = "Set up") -> str:
        """Commit on the target, in the main checkout."""
        _write(self.folder, files)
        git(self.folder, "add", "--all")
        git(self.folder, "commit", "--quiet", "--allow-empty", "-m", message)
        return self.tip

    def branch(
        self, name: str, files: Mapping[str, str | bytes | None], message: str = "", start: str = "main"
    ) -> str:
        """Create a branch with one more commit, in its own worktree; return its head."""
        worktree = self.folder.parent / "branches"
        if not worktree.exists():
            git(self.folder, "worktree", "add", "--quiet", "--detach", str(worktree))
        git(worktree, "checkout", "--quiet", "--force", "-B", name, start)
        _write(worktree, files)
        git(worktree, "add", "--all", "--force")
        git(worktree, "commit", "--quiet", "--allow-empty", "-m", message or f"Change {', '.join(files)}")
        head = git(worktree, "rev-parse", "HEAD").strip()
        git(worktree, "checkout", "--quiet", "--detach")
        return head

    def agent(self, name: str, **more: Any) -> Session:
        return sessions.join(self.repo, name, **more).session

    def claim(self, agent: str, *paths: str, is_shared: bool = False) -> Any:
        repo = self.repo
        patterns = tuple(repo.git.pattern_of(path, "literal") for path in paths)
        request = claims.make_request(
            repo, patterns, mode=ClaimMode.SHARED if is_shared else ClaimMode.EXCLUSIVE
        )
        return claims.take(repo, self.agent(agent), request)

    def submit(
        self, branch: str, agent: str = "ann", *paths: str, is_shared: bool = False, task: str = ""
    ) -> Landing:
        """Claim the paths that a branch changes, and submit it."""
        changed = paths or tuple(self.changed_paths(branch))
        if changed:
            outcome = self.claim(agent, *changed, is_shared=is_shared)
            assert not isinstance(outcome, Refused), outcome
        return self.submit_with_held_claims(branch, agent, task)

    def submit_with_held_claims(self, branch: str, agent: str = "ann", task: str = "") -> Landing:
        """Submit a branch with the claims that its author holds already."""
        session = self.agent(agent)
        return submit_branch(self.prepared_repo, session, branch, task).landing

    def changed_paths(self, branch: str) -> list[str]:
        done = subprocess.run(
            ["git", "diff", "--name-only", "-z", "--no-renames", f"main...{branch}"],
            cwd=self.folder,
            check=True,
            capture_output=True,
        )
        return [path for path in done.stdout.decode("utf-8", "surrogateescape").split("\0") if path]

    def run(self, on_step: Callable[[str], None] = lambda _: None) -> LandlaneError | None:
        """Run the queue until it is empty; return why it stopped early, if it did."""
        runner = start_runner(self.prepared_repo, "runner", on_step)
        assert isinstance(runner, QueueRunner), runner
        try:
            return drain_queue(runner)
        finally:
            runner.close()

    def land(self, branch: str, agent: str = "ann", **more: Any) -> Landing:
        """Submit one branch, run the queue, and return the landing."""
        entry = self.submit(branch, agent, **more)
        stop = self.run()
        assert stop is None, stop
        return self.reload(entry)

    def reload(self, entry: Landing | str) -> Landing:
        return get_landing(self.repo, entry if isinstance(entry, str) else entry.id)

    def states(self) -> dict[str, str]:
        """Return the state of every landing, by its branch."""
        return {one.branch: one.state for one in list_landings(self.repo, ())}

    @property
    def tests(self) -> int:
        return get_queue(self.repo, "main").tests

    @property
    def tip(self) -> str:
        return git(self.folder, "rev-parse", "main").strip()

    def read_file(self, path: str, commit: str = "main") -> str:
        """Return a file as it is on the target."""
        return git(self.folder, "show", f"{commit}:{path}")

    def holders(self) -> dict[str, str]:
        from landlane.claims.take import list_claims

        return {claim.pattern: claim.agent for claim in list_claims(self.repo)}


def _write(folder: Path, files: Mapping[str, str | bytes | None]) -> None:
    for name, content in files.items():
        path = folder / name
        if content is None:
            path.unlink()
            if path.parent != folder and not any(path.parent.iterdir()):
                path.parent.rmdir()  # as git does
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
