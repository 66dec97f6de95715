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

from landlane.app.store_place import POINTER, STORE_NAME
from landlane.testing.fake_clock import FakeClock
from landlane.testing.postgres_server import PostgresServer
from tests.support.client_programs import make_minimal_path
from tests.support.commits import CommitTestbed
from tests.support.postgres import NO_POSTGRES, start_postgres
from tests.support.project import Project
from tests.support.shell import Shell

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

pytest_plugins = ["tests.support.promise_report"]

# A shared machine can stall any single example; the test's own timeout still ends it.
settings.register_profile("landlane", deadline=None, print_blob=True)
settings.load_profile("landlane")

# Variables that git, Landlane or a coding client may have set for the test run (which may itself be inside a
# git hook, or be started by an agent).
FOREIGN = ("LANDLANE_", "GIT_", "XDG_", "CLAUDE", "CODEX_", "GEMINI_", "COPILOT_", "QWEN_", "OPENCODE")
FOREIGN_NAMES = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "PAGER", "EDITOR", "VISUAL")

AUTHOR = "Ada Example"
EMAIL = "ada@example.invalid"
DATE = "2026-01-02T03:04:05+00:00"

# A run in the background or under nohup ignores these signals, and its children would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
# Otherwise every command that a test starts would compile the modules edited since the set-up.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

_numbers = itertools.count()

# Tests keep their files in memory, because a disk only makes them slower; those marked `on_disk` do not.
MEMORY = Path("/dev/shm")
MEMORY_BYTES = 2 * 1024**3
_HAS_FAILED = pytest.StashKey[bool]()
_done: list[Path] = []  # folders of tests that have passed


def pytest_xdist_auto_num_workers() -> int:
    """Return two workers per core: tests spend about half of their time waiting."""
    return 2 * len(os.sched_getaffinity(0))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the slow tests first, so that no worker runs one alone at the end.

    With `--dist loadgroup`, also write the group of a test into its id, where xdist looks for it: xdist 3.8
    writes it to an attribute that pytest 9.2 does not read any more, so groups were split.
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
    """A folder in memory with enough space, in which programs can be started; None if there is none."""
    made = _make_memory()
    yield made
    if made is not None:
        _clear_done()
        (made / "program").unlink()
        with contextlib.suppress(OSError):  # files of failed tests stay for inspection
            (made / "homes").rmdir()
            made.rmdir()


def _make_memory() -> Path | None:
    for folder in MEMORY.glob("landlane-tests-*"):  # of earlier runs that failed or were killed
        if not Path("/proc", folder.name.split("-")[2]).exists():
            shutil.rmtree(folder, ignore_errors=True)
    try:
        if shutil.disk_usage(MEMORY).free < MEMORY_BYTES:
            return None
        made = Path(tempfile.mkdtemp(prefix=f"landlane-tests-{os.getpid()}-", dir=MEMORY))
        program = made / "program"
        program.write_text("#!/bin/sh\n", encoding="utf-8")
        program.chmod(0o700)
        subprocess.run([program], check=True, timeout=30)
    except (
        OSError,
        subprocess.SubprocessError,
    ):  # missing, not writable, or programs cannot be started there
        return None
    return made


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, memory_folder: Path | None) -> Iterator[Path]:
    """A private folder of the test, in memory unless the test is marked `on_disk`; kept on failure."""
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
    """Remove the folders of tests that passed, after their monkeypatches were undone."""
    while _done:
        shutil.rmtree(_done.pop(), ignore_errors=True)


@pytest.fixture(autouse=True)
def sealed_home(
    request: pytest.FixtureRequest,
    memory_folder: Path | None,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Path]:
    """A private home directory of the test."""
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
    # These repositories need not survive a power failure, so git does not wait for the disk.
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
        # A test outside its repository must not find the repository of this project.
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
    # Created once per worker, in the sealed home of its first test, and copied, because git is slow.
    template = tmp_path_factory.getbasetemp() / "repository-template"
    if not template.exists():
        folder = tmp_path_factory.mktemp("template")
        (folder / "README.md").write_text("# A repository for tests\n", encoding="utf-8")
        for arguments in (["init", "--quiet"], ["add", "README.md"], ["commit", "--quiet", "-m", "Begin"]):
            subprocess.run(["git", *arguments], cwd=folder, check=True, timeout=30)
        folder.rename(template)
    # The index has the times and inodes of the files: git reads a copy once more, and finds it unchanged.
    return shutil.copytree(template, tmp_path / "repository", symlinks=True)


@pytest.fixture(scope="session")
def postgres_server(memory_folder: Path | None) -> Iterator[PostgresServer]:
    """One PostgreSQL server for all tests of a worker; without one, the tests that need it are skipped."""
    temp = (
        None if memory_folder is None else MEMORY
    )  # `memory_folder` itself is closed to the user of the server
    # No table lives long enough to need vacuuming, which would disturb measurements.
    # Shared memory is in files among the data, so that a killed server leaves nothing in /dev/shm.
    options = {"autovacuum": "off", "dynamic_shared_memory_type": "mmap"}
    with start_postgres(options, temp) as server:
        yield server


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report skips without PostgreSQL as one line: pytest groups skips with the same place and reason."""
    report = yield
    item.stash[_HAS_FAILED] = report.failed or item.stash.get(_HAS_FAILED, False)
    if report.skipped and isinstance(report.longrepr, tuple) and NO_POSTGRES in report.longrepr[2]:
        report.longrepr = (__file__, 1, report.longrepr[2])
    return report


@pytest.fixture(scope="session")
def postgres_url(postgres_server: PostgresServer) -> str:
    """A database that all tests share; each test is a separate repository in it."""
    return postgres_server.create_database("shared")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def store(request: pytest.FixtureRequest, repository: Path) -> str:
    """The location of the repository's store, on each kind of database: a path, then a URL.

    A test marked `own_database` gets a database of its own, which it may damage.
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
def project(repository: Path, store: str) -> Iterator[Project]:
    """A repository on each kind of store, with a fake clock."""
    made = Project(repository, store, FakeClock())
    yield made
    made.close()


@pytest.fixture
def live_project(repository: Path, store: str) -> Iterator[Project]:
    """A repository on each kind of store with the real clock, for waiting and for processes."""
    made = Project(repository, store)
    yield made
    made.close()


@pytest.fixture
def commit_testbed(repository: Path) -> Iterator[CommitTestbed]:
    """Agents that commit in a fresh repository."""
    commit_testbed = CommitTestbed(repository)
    yield commit_testbed
    commit_testbed.project.close()


@pytest.fixture
def shell(repository: Path) -> Shell:
    """A shell in a fresh repository."""
    return Shell(repository)


@pytest.fixture
def programs(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH; it has no coding client unless the test puts one there."""
    folder = make_minimal_path(tmp_path_factory.mktemp("programs") / "bin")
    monkeypatch.setenv("PATH", str(folder))
    return folder
