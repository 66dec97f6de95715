"""Fixtures for all tests: a sealed home with its own git identity, repositories, both stores, a shell."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from landlane.app.store_location import POINTER, STORE_NAME
from landlane.testing.fake_clock import FakeClock
from landlane.testing.postgres_server import PostgresServer
from tests.support.client_programs import make_bare_path
from tests.support.committing import Crew
from tests.support.postgres import NO_POSTGRES, start_postgres
from tests.support.shell import Shell
from tests.support.sites import Site

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

pytest_plugins = ["tests.support.promise_report"]

# A shared machine can stall any single example; the test's own timeout still ends it.
settings.register_profile("landlane", deadline=None, print_blob=True)
settings.load_profile("landlane")

# What git, this product or a coding client may have set around the test run (which may itself be inside a git
# hook, or be started by an agent).
FOREIGN = ("LANDLANE_", "GIT_", "XDG_", "CLAUDE", "CODEX_", "GEMINI_", "COPILOT_", "QWEN_", "OPENCODE")
FOREIGN_NAMES = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "PAGER", "EDITOR", "VISUAL")

AUTHOR = "Ada Example"
EMAIL = "ada@example.invalid"
DATE = "2026-01-02T03:04:05+00:00"

# A run in the background or under nohup ignores these, and would hand that down to every command it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
# Else every command that a test starts would compile what was edited since the set-up.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

_numbers = itertools.count()

# Tests keep their files in memory, because waiting for a disk proves nothing; those `on_disk` do not.
MEMORY = Path("/dev/shm")
MEMORY_BYTES = 2 * 1024**3
_HAS_FAILED = pytest.StashKey[bool]()
_done: list[Path] = []  # folders in memory that nobody needs any more


def pytest_xdist_auto_num_workers() -> int:
    """Two workers for each core: about half of the time a test waits for something."""
    return 2 * len(os.sched_getaffinity(0))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the slow tests, so that no worker is left alone with one at the end.

    With `--dist loadgroup`, also write the group of a test into its id, where it is looked for: xdist 3.8
    writes it to an attribute that pytest 9.2 does not read any more, and every group was torn apart.
    """
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
    if not getattr(config.option, "loadgroup", False):
        return
    for item in items:
        groups = sorted({str(mark.args[0]) for mark in item.iter_markers("xdist_group")})
        if groups and not item.nodeid.endswith(suffix := f"@{'_'.join(groups)}"):
            item._id = type(item.id).parse(item.nodeid + suffix)  # pyright: ignore[reportPrivateUsage]


@pytest.fixture(scope="session")
def memory_folder() -> Iterator[Path | None]:
    """A folder in memory that has room, and in which programs can be started; nothing where there is none."""
    made = _make_memory()
    yield made
    if made is not None:
        _clear_done()
        (made / "program").unlink()
        with contextlib.suppress(OSError):  # what tests that failed left is for somebody to look at
            (made / "homes").rmdir()
            made.rmdir()


def _make_memory() -> Path | None:
    for left in MEMORY.glob("landlane-tests-*"):  # of earlier runs: what failed there, or all if killed
        if not Path("/proc", left.name.split("-")[2]).exists():
            shutil.rmtree(left, ignore_errors=True)
    try:
        if shutil.disk_usage(MEMORY).free < MEMORY_BYTES:
            return None
        made = Path(tempfile.mkdtemp(prefix=f"landlane-tests-{os.getpid()}-", dir=MEMORY))
        program = made / "program"
        program.write_text("#!/bin/sh\n", encoding="utf-8")
        program.chmod(0o700)
        subprocess.run([program], check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):  # not there, not ours to write, or nothing can be started
        return None
    return made


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, memory_folder: Path | None) -> Iterator[Path]:
    """A folder of the test's own, in memory unless the test is marked `on_disk`; kept on failure."""
    if memory_folder is None or _is_on_disk(request):
        yield request.getfixturevalue("tmp_path")
        return
    name = re.sub(r"\W", "_", request.node.name)[:30]
    made = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=memory_folder))
    yield made
    if not request.node.stash.get(_HAS_FAILED, False):
        _done.append(made)


def _is_on_disk(request: pytest.FixtureRequest) -> bool:
    return request.node.get_closest_marker("on_disk") is not None


def _clear_done() -> None:
    """Remove the folders of tests that passed: not as they end, since what they patched may still be so."""
    while _done:
        shutil.rmtree(_done.pop(), ignore_errors=True)


@pytest.fixture(autouse=True)
def sealed_home(
    request: pytest.FixtureRequest,
    memory_folder: Path | None,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Path]:
    """Give the test a home directory of its own, and return it."""
    _clear_done()
    base = tmp_path_factory.getbasetemp()
    # Not tmp_path: unit tests need no folder there, and others may count what is in it.
    home = (
        (base if memory_folder is None or _is_on_disk(request) else memory_folder)
        / "homes"
        / str(next(_numbers))
    )
    runtime = home / ".run"
    runtime.mkdir(parents=True, mode=0o700)
    git_settings = home / ".gitconfig"
    # Nobody cuts the power under these repositories: git need not wait for the disk.
    lines = ("[init]", "\tdefaultBranch = main", "[gc]", "\tauto = 0", "[core]", "\tfsync = none", "")
    git_settings.write_text("\n".join(lines), encoding="utf-8")

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
        "GIT_CEILING_DIRECTORIES": f"{base}:{MEMORY}",
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
    yield home
    if not request.node.stash.get(_HAS_FAILED, False):
        _done.append(home)


@pytest.fixture
def repository(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, sealed_home: Path) -> Path:
    """A real git repository on branch `main` with one commit of one file, README.md."""
    # Made once for each worker, in the sealed home of whoever comes first, and copied: git takes its time.
    template = tmp_path_factory.getbasetemp() / "repository-template"
    if not template.exists():
        folder = tmp_path_factory.mktemp("template")
        (folder / "README.md").write_text("# A repository for tests\n", encoding="utf-8")
        for arguments in (["init", "--quiet"], ["add", "README.md"], ["commit", "--quiet", "-m", "Begin"]):
            subprocess.run(["git", *arguments], cwd=folder, check=True, timeout=30)
        folder.rename(template)
    # The index remembers the files' times and inodes: git looks once more at a copy, and finds it unchanged.
    return shutil.copytree(template, tmp_path / "repository", symlinks=True)


@pytest.fixture(scope="session")
def postgres_server(memory_folder: Path | None) -> Iterator[PostgresServer]:
    """One PostgreSQL server for all tests of a worker; without one, the tests that need it are skipped."""
    temp = (
        None if memory_folder is None else MEMORY
    )  # `memory_folder` itself is closed to the user of the server
    # Nothing here lives long enough to need vacuuming, which would only disturb what is being timed.
    # Shared memory as files among the data: a server that is killed leaves nothing in /dev/shm.
    options = {"autovacuum": "off", "dynamic_shared_memory_type": "mmap"}
    with start_postgres(options, temp) as server:
        yield server


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell in one line that there is no PostgreSQL: pytest puts skips of one place and reason together."""
    report = yield
    item.stash[_HAS_FAILED] = report.failed or item.stash.get(_HAS_FAILED, False)
    if report.skipped and isinstance(report.longrepr, tuple) and NO_POSTGRES in report.longrepr[2]:
        report.longrepr = (__file__, 1, report.longrepr[2])
    return report


@pytest.fixture(scope="session")
def postgres_url(postgres_server: PostgresServer) -> str:
    """A database that all tests share; each is a repository of its own in it, as in real life."""
    return postgres_server.create_database("shared")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def store(request: pytest.FixtureRequest, repository: Path) -> str:
    """The place of the repository's store, on each kind of database: a path, then a URL.

    A test with the mark `own_database` may spoil the database: it shares it with nobody.
    """
    state = repository / ".git" / "landlane"
    state.mkdir()
    if request.param == "sqlite":
        return str(state / STORE_NAME)
    if request.node.get_closest_marker("own_database"):
        url = request.getfixturevalue("postgres_server").create_database()
    else:
        url = request.getfixturevalue("postgres_url")
    (state / POINTER).write_text(url + "\n", encoding="utf-8")
    return url


@pytest.fixture
def site(repository: Path, store: str) -> Iterator[Site]:
    """A repository on each kind of store, whose time stands still until the test moves it."""
    made = Site(repository, store, FakeClock())
    yield made
    made.close()


@pytest.fixture
def live_site(repository: Path, store: str) -> Iterator[Site]:
    """A repository on each kind of store in real time, for waiting and for processes."""
    made = Site(repository, store)
    yield made
    made.close()


@pytest.fixture
def crew(repository: Path) -> Iterator[Crew]:
    """Agents that commit in a fresh repository."""
    crew = Crew(repository)
    yield crew
    crew.site.close()


@pytest.fixture
def shell(repository: Path) -> Shell:
    """A shell in a fresh repository."""
    return Shell(repository)


@pytest.fixture
def programs(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the search path: it has no coding client, unless the test puts one there."""
    folder = make_bare_path(tmp_path_factory.mktemp("programs") / "bin")
    monkeypatch.setenv("PATH", str(folder))
    return folder
