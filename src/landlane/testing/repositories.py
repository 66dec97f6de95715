"""Temporary git repositories, and repositories opened on a given store to call operations directly."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from landlane.app.open import assemble_repository, open_store
from landlane.app.repository_record import begin_repository
from landlane.app.store_place import POINTER, STORE_NAME, is_used
from landlane.app.store_place import repository_id as known_repository_id
from landlane.git.discovery import find_checkout
from landlane.git.repository import GitRepository
from landlane.git.target_settings import settings_in_force
from landlane.platform.process import MachineProcesses
from landlane.sessions.secrets import SecretFiles
from landlane.testing.fake_clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from landlane.clock import Clock
    from landlane.repository import Repository
    from landlane.settings.model import Settings


_IDENTITY = ("-c", "user.name=Landlane Tests", "-c", "user.email=tests@example.invalid")
_GIT_SECONDS = 60.0


def make_repository(
    folder: Path, *, files: Mapping[str, str] | None = None, settings: str = "", store: str = ""
) -> Path:
    """Make a git repository on branch `main` with one commit, and return its path.

    `settings` is the text of its landlane.toml; `store` is where it keeps its state, as after `store move`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    content = dict(files) if files is not None else {"README.md": "# A repository for tests\n"}
    if settings:
        content["landlane.toml"] = settings
    for name, text in content.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "Begin")
    if store:
        state = folder / ".git" / "landlane"
        state.mkdir()
        (state / POINTER).write_text(store + "\n", encoding="utf-8")
    return folder


@contextmanager
def throwaway_repository(
    *, files: Mapping[str, str] | None = None, settings: str = "", store: str = ""
) -> Generator[Path]:
    """Yield a repository in a temp folder that is removed after the `with` block."""
    base = Path(tempfile.mkdtemp(prefix="landlane-repository-")).resolve()
    try:
        yield make_repository(base / "repository", files=files, settings=settings, store=store)
    finally:
        shutil.rmtree(base, ignore_errors=True)


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder, under an identity for tests, and return its output.

    Raises:
        subprocess.CalledProcessError: git failed.
    """
    done = subprocess.run(
        ["git", *_IDENTITY, *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
        timeout=_GIT_SECONDS,
    )
    return done.stdout


def open_test_repository(
    repository: Path,
    place: str = "",
    *,
    clock: Clock | None = None,
    settings: Settings | None = None,
    ignore_case: bool = False,
    repository_id: str = "",
    secrets: Path | None = None,
) -> Repository:
    """Open a repository with its store at a path or a PostgreSQL URL; `repo.store.close()` closes it.

    `secrets` is the folder of another user's secrets, without which no session of this user can be proved.
    Without `repository_id` the repository keeps the id that it has, or gets one.
    """
    checkout = find_checkout(str(repository))
    state = checkout.state_folder
    os.makedirs(state, exist_ok=True)
    settings = settings or settings_in_force(checkout, is_person=True).settings
    known_id = known_repository_id(state, settings)
    if "://" in place and isinstance(clock, FakeClock):
        clock = clock.server
    store = open_store(
        place or os.path.join(state, STORE_NAME),
        state,
        repository_id or known_id,
        settings,
        clock=clock,
        may_create=not is_used(state),
    )
    try:
        begin_repository(store, ignore_case=ignore_case)
    except BaseException:
        store.close()
        raise
    return assemble_repository(
        settings=settings,
        store=store,
        git=GitRepository(checkout, checkout.root, ignore_case=ignore_case),
        processes=MachineProcesses(),
        secrets=SecretFiles(str(secrets) if secrets is not None else state),
    )
