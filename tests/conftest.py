"""A sealed home for every test: its own HOME, git identity, dates and settings."""

from __future__ import annotations

import itertools
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import settings

# A shared machine can stall any single example; the test's own timeout still ends it.
settings.register_profile("interlock", deadline=None, print_blob=True)
settings.load_profile("interlock")

# What git, this product or a coding client may have set around the test run (which may itself be inside a git
# hook, or be started by an agent).
FOREIGN = ("INTERLOCK_", "GIT_", "XDG_", "CLAUDE", "CODEX_", "GEMINI_", "COPILOT_", "QWEN_", "OPENCODE")
FOREIGN_NAMES = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "PAGER", "EDITOR", "VISUAL")

AUTHOR = "Ada Example"
EMAIL = "ada@example.invalid"
DATE = "2026-01-02T03:04:05+00:00"

_numbers = itertools.count()


@pytest.fixture(autouse=True)
def sealed_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test a home directory of its own, and return it."""
    base = tmp_path_factory.getbasetemp()
    # Not tmp_path: unit tests need no folder there, and others may count what is in it.
    home = base / "homes" / str(next(_numbers))
    runtime = home / ".run"
    runtime.mkdir(parents=True, mode=0o700)
    git_settings = home / ".gitconfig"
    git_settings.write_text("[init]\n\tdefaultBranch = main\n[gc]\n\tauto = 0\n", encoding="utf-8")

    for name in list(os.environ):
        if name.startswith(FOREIGN) or name in FOREIGN_NAMES:
            monkeypatch.delenv(name)
    sealed = {
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / ".local/share"),
        "XDG_RUNTIME_DIR": str(runtime),
        "XDG_STATE_HOME": str(home / ".local/state"),
        "GIT_AUTHOR_DATE": DATE,
        "GIT_AUTHOR_EMAIL": EMAIL,
        "GIT_AUTHOR_NAME": AUTHOR,
        "GIT_COMMITTER_DATE": DATE,
        "GIT_COMMITTER_EMAIL": EMAIL,
        "GIT_COMMITTER_NAME": AUTHOR,
        # A test outside its repository must not find the one this project lies in.
        "GIT_CEILING_DIRECTORIES": str(base),
        "GIT_CONFIG_GLOBAL": str(git_settings),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "COLUMNS": "100",
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
        "TZ": "UTC",
    }
    for name, value in sealed.items():
        monkeypatch.setenv(name, value)
    return home


@pytest.fixture
def repository(tmp_path: Path, sealed_home: Path) -> Path:
    """A real git repository on branch `main` with one commit of one file, README.md."""
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "README.md").write_text("# A repository for tests\n", encoding="utf-8")
    for arguments in (["init", "--quiet"], ["add", "README.md"], ["commit", "--quiet", "-m", "Begin"]):
        subprocess.run(["git", *arguments], cwd=folder, check=True, timeout=30)
    return folder
