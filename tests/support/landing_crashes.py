"""A landing queue whose runners are killed, and the checks of what must hold afterwards.

The check command itself records every tree that it found green, in a file outside of the repository. So the
tests know what was tested without relying on the queue.
"""

from __future__ import annotations

import os
import shutil
import signal
from typing import TYPE_CHECKING

from landlane.app.open import open_repository
from landlane.claims import take as claims
from landlane.claims.model import ClaimMode, Taken
from landlane.claims.take import list_claims
from landlane.landing.queue import drain_queue, start_runner
from landlane.landing.records import get_landing, get_queue, list_landings
from landlane.landing.submit import submit_branch
from landlane.sessions import join as sessions
from landlane.sessions.runner_lease import RunnerBusy
from landlane.tasks.add import Added, add_task
from landlane.tasks.model import NewTask
from landlane.tasks.pick import Picked, next_task
from landlane.tasks.records import list_tasks
from landlane.workspaces.open import open_workspace
from landlane.workspaces.records import list_workspaces
from tests.support.git import git_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from landlane.landing.model import Landing
    from landlane.repository import Repository
    from landlane.sessions.model import Session

LIMIT_SECONDS = 60.0


class CrashTestbed:
    """A repository whose check records the trees it tested, and the branches queued to land there."""

    def __init__(
        self, repository: Path, *, remote: Path | None = None, first: str = "true", more: str = ""
    ) -> None:
        self.repository = repository
        self.tested_file = repository.parent / "tested"
        self.tips: list[str] = []
        check = f"{first}; test ! -e red.txt && git rev-parse 'HEAD^{{tree}}' >> {self.tested_file}"
        more = f'sandbox.write = ["{self.tested_file.parent}"]\n{more}'
        settings = f'[landing]\nresident = false\nchecks = [{{ name = "test", run = "{check}" }}]\n{more}'
        (repository / "landlane.toml").write_text(settings, encoding="utf-8")
        git_line(repository, "add", "landlane.toml")
        git_line(repository, "commit", "--quiet", "-m", "Settings")
        if remote is not None:
            git_line(repository, "init", "--quiet", "--bare", str(remote))
            git_line(repository, "remote", "add", "origin", str(remote))
            git_line(repository, "push", "--quiet", "-u", "origin", "main")
        self.start = git_line(repository, "rev-parse", "main")

    def open(self) -> Repository:
        """Open the repository as a command does."""
        return open_repository(str(self.repository))

    def reload(self, landing: Landing) -> Landing:
        """Return the landing as it is stored now."""
        repo = self.open()
        try:
            return get_landing(repo, landing.id)
        finally:
            repo.close()

    def branch(self, name: str, files: dict[str, str], *, folder: str = "") -> str:
        """Create a branch with one commit, in a temporary worktree or a given checkout; return its head."""
        place = folder or str(self.repository.parent / f"scratch-{name.replace('/', '-')}")
        if not folder:
            git_line(self.repository, "worktree", "add", "--quiet", "-b", name, place, "main")
        for path, text in files.items():
            full = os.path.join(place, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as file:
                file.write(text)
        git_line(place, "add", ".")
        git_line(place, "commit", "--quiet", "-m", f"Work on {name}")
        head = git_line(place, "rev-parse", "HEAD")
        if not folder:
            git_line(self.repository, "worktree", "remove", "--force", place)
        return head

    def submit(self, repo: Repository, name: str, files: dict[str, str]) -> Landing:
        """Create a branch with these files and submit it, as an author of its own."""
        self.branch(name, files)
        session = join(repo, f"author-of-{name}")
        claim(repo, session, *files)
        return submit(repo, session, name)

    def submit_task(self, repo: Repository, title: str, files: dict[str, str]) -> Landing:
        """Submit these files as the work of a task, from its workspace."""
        session = join(repo, f"worker-on-{title}")
        added = add_task(repo, session, NewTask(title=title, paths=tuple(files)), force=True)
        assert isinstance(added, Added)
        picked = next_task(repo, session)
        assert isinstance(picked, Picked)
        workspace = open_workspace(repo.require_git(), session, picked.task.id).workspace
        self.branch(workspace.branch, files, folder=workspace.path)
        return submit(repo, session, workspace.branch, task=picked.task.id)

    @property
    def tested(self) -> set[str]:
        """The trees that passed the check."""
        try:
            return set(self.tested_file.read_text(encoding="ascii").split())
        except FileNotFoundError:
            return set()

    @property
    def tip(self) -> str:
        """The tip of the target branch."""
        return git_line(self.repository, "rev-parse", "main")

    def check_target(self) -> None:
        """Check that the target moved only forward, and only to tested trees."""
        tip = self.tip
        for before in self.tips[-1:]:
            git_line(self.repository, "merge-base", "--is-ancestor", before, tip)
        self.tips.append(tip)
        stood = git_line(self.repository, "reflog", "--format=%H", "main").splitlines()
        for commit in {tip, *stood[: stood.index(self.start)]} - {self.start}:
            tree = git_line(self.repository, "rev-parse", f"{commit}^{{tree}}")
            assert tree in self.tested, f"{commit} was never tested"

    def check_end(self, expected: dict[str, str]) -> None:
        """Check the final states, that each landing is in the history once, and that nothing is left."""
        self.check_target()
        repo = self.open()
        try:
            found = list_landings(repo, ())
            assert {one.id: one.state for one in found} == expected
            self._check_history([one for one in found if one.state == "landed"])
            self._check_nothing_left(repo, found)
        finally:
            repo.close()

    def _check_history(self, landed: list[Landing]) -> None:
        form = "--format=%H %P"
        lines = git_line(self.repository, "log", "--first-parent", form, f"{self.start}..main").splitlines()
        merged = {line.split()[0]: line.split()[2] for line in lines}
        assert merged == {one.commit: one.head for one in landed}

    def _check_nothing_left(self, repo: Repository, found: list[Landing]) -> None:
        assert leftover_refs(self.repository) == []
        assert git_line(self.repository, "status", "--porcelain") == ""
        assert git_line(self.repository, "symbolic-ref", "HEAD") == "refs/heads/main"
        assert not [one for one in list_claims(repo) if one.agent.startswith("L")]
        assert not get_queue(repo, "main").move
        tasks = {task.id: task.state for task in list_tasks(repo)}
        assert all(tasks[one.task] == "done" for one in found if one.task and one.state == "landed"), tasks
        bounced = [one for one in found if one.state == "bounced"]
        assert all(tasks[one.bounce_task] in ("ready", "reported", "active") for one in bounced), tasks
        live = {one.branch for one in list_workspaces(repo)}
        assert not live & {one.branch for one in found if one.state == "landed"}
        lines = git_line(self.repository, "worktree", "list", "--porcelain").splitlines()
        places = [line for line in lines if line.startswith("worktree ")]
        assert len([place for place in places if "/.queue-" not in place]) == 1 + len(live), places


def leftover_refs(folder: Path) -> list[str]:
    """Return the refs that exist only while a landing is running."""
    refs = git_line(folder, "for-each-ref", "--format=%(refname)", "refs/landlane").splitlines()
    return [ref for ref in refs if "/moving/" in ref or "/landing/" in ref]


def join(repo: Repository, name: str) -> Session:
    """Join under a name."""
    return sessions.join(repo, name).session


def claim(repo: Repository, session: Session, *paths: str) -> None:
    """Claim paths, which must succeed."""
    pattern_of = repo.git.pattern_of
    patterns = tuple(pattern_of(path, "literal") for path in paths)
    request = claims.make_request(repo, patterns, mode=ClaimMode.EXCLUSIVE)
    outcome = claims.take(repo, session, request)
    assert isinstance(outcome, Taken), outcome


def submit(repo: Repository, session: Session, branch: str, *, task: str = "") -> Landing:
    """Submit a branch to the queue."""
    prepared = repo.require_git()
    return submit_branch(prepared, session, branch, task).landing


class FolderBackup:
    """A copy of a folder that can be restored to the same path, since state and worktrees contain paths."""

    def __init__(self, folder: Path, copy: Path) -> None:
        self._folder = folder
        self._copy = copy
        shutil.copytree(folder, copy, symlinks=True)

    def restore(self) -> None:
        """Restore the folder."""
        shutil.rmtree(self._folder)
        shutil.copytree(self._copy, self._folder, symlinks=True)


def run_queue(
    folder: Path, on_step: Callable[[str], None] = lambda _: None, *, lease_ms: int = 60_000
) -> str:
    """Drain the queue in this process; return why it stopped early, or `busy` if another runs it."""
    repo = open_repository(str(folder))
    try:
        runner = start_runner(repo.require_git(), "runner", on_step, lease_ms=lease_ms)
        if isinstance(runner, RunnerBusy):
            return "busy"
        try:
            stop = drain_queue(runner)
        finally:
            runner.close()
        return stop.code if stop is not None else ""
    finally:
        repo.close()


def kill_at(step: str, count: int, number: int = signal.SIGKILL) -> Callable[[str], None]:
    """Return a callback that ends the process when it reaches a step for the n-th time."""
    left = count

    def on_step(name: str) -> None:
        nonlocal left
        if name == step:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), number)

    return on_step


def list_steps(folder: Path) -> Iterator[tuple[str, int]]:
    """Drain the queue and yield every step, with the number of times it was reached so far."""
    seen: list[str] = []
    run_queue(folder, seen.append)
    for index, name in enumerate(seen):
        yield name, seen[: index + 1].count(name)
