"""A repository in which agents open and close workspaces, shared by tests of workspaces."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from landlane.app.open import open_repository
from landlane.app.repair_config import prepare_git
from landlane.sessions import join as sessions
from landlane.state.slots import list_slots
from landlane.tasks.add import Added, add_task
from landlane.tasks.model import NewTask
from landlane.workspaces import close as closing
from landlane.workspaces import open as workspaces
from landlane.workspaces import records
from landlane.workspaces.model import ON_DISK
from tests.support.git import git

if TYPE_CHECKING:
    from landlane.platform.process import Process
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.workspaces.model import Workspace

KINDS = ("worktree", "clone")


class WorkspaceTestbed:
    """A repository in which agents open and close workspaces; each has its own connection to the store."""

    def __init__(self, repository: Path) -> None:
        self.repository = repository
        self.messages: list[str] = []
        self._opened: dict[str, Repository] = {}
        self._sessions: dict[str, Session] = {}

    @property
    def folder(self) -> Path:
        return self.repository.with_name(f"{self.repository.name}.workspaces")

    def write_settings(self, text: str) -> None:
        """Write the settings, and commit them."""
        (self.repository / "landlane.toml").write_text(text, encoding="utf-8")
        git(self.repository, "add", "landlane.toml")
        git(self.repository, "commit", "--quiet", "-m", "Settings")

    def repo(self, agent: str = "ann", at: Path | None = None) -> Repository:
        key = f"{agent}@{at or ''}"
        if key not in self._opened:
            self._opened[key] = open_repository(str(at or self.repository))
        return self._opened[key]

    def prepared_repo(self, agent: str = "ann", at: Path | str | None = None) -> Repository:
        return prepare_git(self.repo(agent, Path(at) if at else None), self.messages.append)

    def session(self, agent: str = "ann", process: Process | None = None) -> Session:
        if agent not in self._sessions:
            repo = self.repo(agent)
            self._sessions[agent] = sessions.join(repo, agent, process=process).session
        return self._sessions[agent]

    def task(self, title: str = "work", **fields: Any) -> str:
        added = add_task(self.repo(), None, NewTask(title=title, **fields), force=True)
        assert isinstance(added, Added)
        return added.task.id

    def open(
        self, task: str = "", *, agent: str = "ann", kind: str = "worktree", **more: Any
    ) -> workspaces.Opened:
        repo, session = self.prepared_repo(agent), self.session(agent)
        return workspaces.open_workspace(repo, session, task or self.task(), kind=kind, **more)

    def close(self, workspace: Workspace, *, agent: str = "ann", **more: Any) -> closing.Closed:
        return closing.close_workspace(self.prepared_repo(agent), self.session(agent), workspace, **more)

    def workspaces(self, *, with_closed: bool = False) -> list[Workspace]:
        return records.list_workspaces(self.repo(), () if with_closed else ON_DISK)

    def leave(self, agent: str) -> None:
        sessions.leave(self.repo(agent), self._sessions.pop(agent))

    def refs(self) -> list[str]:
        """Return every ref of the repository."""
        return git(self.repository, "for-each-ref", "--format=%(refname)").split()

    def leftovers(self) -> list[str]:
        """Return the files, refs and slots that a repository without workspaces would not have."""
        found = [str(path) for path in self.folder.iterdir()] if self.folder.exists() else []
        found += [ref for ref in self.refs() if ref.startswith(("refs/heads/landlane/", "refs/landlane/"))]
        entries = self.repository / ".git" / "worktrees"
        found += [str(path) for path in entries.iterdir()] if entries.exists() else []
        found += [slot.id for slot in list_slots(self.repo())]
        return found

    def gc(self) -> None:
        """Delete every unreachable object of the main repository."""
        git(self.repository, "reflog", "expire", "--expire=now", "--all")
        git(self.repository, "gc", "--quiet", "--prune=now")
        git(self.repository, "prune", "--expire=now")
        git(self.repository, "worktree", "prune", "--expire=now")

    def end(self) -> None:
        for repo in self._opened.values():
            repo.close()


def commit_file(folder: Path | str, name: str, text: str, message: str = "") -> str:
    """Commit one file and return the commit."""
    path = Path(folder) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    git(folder, "add", "--", name)
    git(folder, "commit", "--quiet", "-m", message or f"Write {name}")
    return git(folder, "rev-parse", "HEAD").strip()


def add_remote(repository: Path) -> Path:
    """Add a bare remote `origin` beside the repository, with its main branch; return its path."""
    remote = repository.with_name("remote.git")
    git(repository.parent, "clone", "--quiet", "--bare", str(repository), str(remote))
    git(repository, "remote", "add", "origin", str(remote))
    git(repository, "fetch", "--quiet", "origin")
    git(repository, "branch", "--quiet", "--set-upstream-to=origin/main", "main")
    return remote


def advance(remote: Path, name: str = "landed.txt", text: str = "landed\n") -> str:
    """Push a commit to the remote's main branch from another clone, and return it."""
    clone = remote.with_name(f"colleague-{name.replace('/', '-')}")
    git(remote.parent, "clone", "--quiet", str(remote), str(clone))
    commit = commit_file(clone, name, text)
    git(clone, "push", "--quiet", "origin", "main")
    return commit


def has_all_objects(folder: Path | str) -> bool:
    """Return whether git finds every object that the refs and the index of a checkout need."""
    done = subprocess.run(
        ["git", "fsck", "--connectivity-only", "--no-dangling"], cwd=folder, capture_output=True, text=True
    )
    return done.returncode == 0 and not done.stderr.strip()


class ProcessInFolder:
    """A process whose working directory is a folder."""

    def __init__(
        self, folder: str, script: str = "import sys; print('here', flush=True); sys.stdin.read()"
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", script], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self.process.stdout is not None
        self.process.stdout.readline()

    def __enter__(self) -> ProcessInFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()
