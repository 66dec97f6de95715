"""A repository in which agents write and commit, shared by tests of commits."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from landlane.app.store_place import STORE_NAME
from landlane.errors import LandlaneError
from landlane.git.discovery import find_checkout
from landlane.settings.model import Settings
from landlane.testing.fake_clock import FakeClock
from landlane.values import replace
from landlane.workspaces.commit import CommitResult, commit, make_commit_request
from tests.support.project import Agent, Project


class CommitTestbed:
    """Agents that commit in one repository; `messages` are the reported texts."""

    def __init__(self, repository: Path) -> None:
        self.root = repository
        state = repository / ".git" / "landlane"
        state.mkdir()
        self.project = Project(repository, str(state / STORE_NAME), FakeClock())
        self.messages: list[str] = []

    def agent(self, name: str, *claimed: str, settings: Settings | None = None, task: str = "") -> Agent:
        agent = self.project.agent(name, settings=settings)
        for pattern in claimed:
            agent.take(pattern, task=task)
        return agent

    def commit(
        self,
        agent: Agent,
        *paths: str,
        message: str = "Work",
        at: Path | None = None,
        task: str = "",
        may_undo: bool = False,
    ) -> CommitResult:
        here = find_checkout(str(at or self.root))
        repo = replace(agent.repo, checkout=here, report=self.messages.append)
        request = make_commit_request(
            repo, paths, str(at or self.root), message=message, task=task, may_undo=may_undo
        )
        return commit(repo, agent.session, request)

    def write(self, path: str, text: str = "text\n", at: Path | None = None) -> None:
        file = (at or self.root) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def git(self, *words: str, at: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *words], cwd=at or self.root, capture_output=True, timeout=30, check=True, text=True
        )
        return done.stdout

    def land(self, path: str, text: str, message: str = "Theirs") -> str:
        """Commit a file with plain git, as another person would, and return the commit."""
        self.write(path, text)
        self.git("add", path)
        self.git("commit", "--quiet", "-m", message, "--", path)
        return self.head()

    def head(self) -> str:
        return self.git("rev-parse", "HEAD").strip()

    def paths_of(self, commit_id: str = "HEAD") -> list[str]:
        words = ("show", "--format=", "--name-only", "--no-renames", "-z", commit_id)
        return [path for path in self.git(*words).split("\0") if path]

    def status(self) -> str:
        return self.git("status", "--porcelain", "--untracked-files=all")

    def hook(self, name: str, script: str) -> None:
        file = self.root / ".git" / "hooks" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        file.chmod(0o755)

    def message(self, commit_id: str = "HEAD") -> str:
        return self.git("show", "--no-patch", "--format=%B", commit_id)


def raises_code(kind: type[LandlaneError], code: str) -> pytest.RaisesExc[LandlaneError]:
    return pytest.RaisesExc(kind, check=lambda error: error.code == code)
