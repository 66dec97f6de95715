"""Commands that are killed at a system call: each can be repeated, and nothing is lost or done twice."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.kills import Call, KillTestbed, Scenario
from tests.support.tools import find_tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from landlane.testing.postgres_server import PostgresServer
    from tests.support.shell import Shell

KILLS = int(os.environ.get("LANDLANE_SYSTEM_CALL_KILLS", "0"))  # of each command; `make soak` sets it
pytestmark = [
    pytest.mark.simulation,
    pytest.mark.soak,
    pytest.mark.slow,
    pytest.mark.timeout(120 + 60 * KILLS),
    pytest.mark.skipif(not find_tool("strace"), reason="strace is not available"),
]

SETTINGS = """
[landing]
resident = false
remote = "none"
checks = ["true"]

[deploy.prod]
"""
WORK, DRAFT = b"the work of a day\r\n", b"a draft\n"


def start(shell: Shell) -> Path:
    folder = shell.folder
    folder.joinpath("landlane.toml").write_text(SETTINGS)
    folder.joinpath(".gitignore").write_text("*.cache\n")
    folder.joinpath("src").mkdir()
    folder.joinpath("src/a.py").write_text("a = 1\n")
    shell.git("add", "-A")
    shell.git("commit", "--quiet", "-m", "Settings")
    return folder


def claimed(shell: Shell) -> Path:
    folder = start(shell)
    shell.run_json("claim", "src/a.py", "docs/**", "--as", "ann")
    return folder


def with_task(shell: Shell) -> Path:
    folder = start(shell)
    shell.run_json("task", "add", "Sweep", "--path", "src/a.py", "--kind", "chore")
    return folder


def taken(shell: Shell) -> Path:
    folder = with_task(shell)
    shell.run_json("next", "--as", "ann")
    return folder


def opened(shell: Shell) -> Path:
    """A workspace of ann's task, with a commit and work that is in no commit."""
    start(shell)
    shell.run_json("task", "add", "Write it", "--path", "src/a.py", "--path", "notes/**")
    workspace = Path(shell.run_json("workspace", "open", "T1", "--as", "ann")["workspace"]["path"])
    workspace.joinpath("src/a.py").write_text("a = 2\n")
    shell.at(workspace).run_json("commit", "-m", "Two", "src/a.py", "--as", "ann")
    return workspace


def dirty(shell: Shell) -> Path:
    workspace = opened(shell)
    workspace.joinpath("notes").mkdir()
    workspace.joinpath("src/a.py").write_bytes(WORK)
    workspace.joinpath("notes/draft.txt").write_bytes(DRAFT)
    workspace.joinpath("left.cache").write_bytes(DRAFT)  # ignored files are not saved
    return workspace


def dirty_from_outside(shell: Shell) -> Path:
    dirty(shell)
    return shell.folder


def rescued(shell: Shell) -> Path:
    """A rescue of a workspace that is closed, and a clean one to restore into."""
    dirty(shell)
    shell.run_json("workspace", "close", "W1", "--as", "ann")
    return shell.folder


def branch(shell: Shell) -> Path:
    """A worktree with a branch to land."""
    folder = start(shell)
    place = folder.parent / "worktree"
    shell.git("worktree", "add", "--quiet", "-b", "feature", str(place))
    place.joinpath("src/a.py").write_text("a = 2\n")
    shell.at(place).git("commit", "--quiet", "-am", "Two")
    shell.at(place).run_json("claim", "src/a.py", "--as", "ann")
    folder.joinpath("mine.txt").write_bytes(DRAFT)
    return place


def queued(shell: Shell) -> Path:
    shell.at(branch(shell)).run_json("land", "--as", "ann")
    return shell.folder


def set_up(shell: Shell) -> Path:
    folder = start(shell)
    folder.joinpath("AGENTS.md").write_bytes(WORK)
    shell.run_json("init", "--yes", "--client", "claude")
    return folder


def with_rules(shell: Shell) -> Path:
    folder = start(shell)
    folder.joinpath("AGENTS.md").write_bytes(WORK)
    return folder


def changed(shell: Shell) -> Path:
    folder = claimed(shell)
    folder.joinpath("src/a.py").write_bytes(WORK)
    folder.joinpath("other.txt").write_bytes(DRAFT)
    return folder


SCENARIOS = [
    Scenario(name="claim", prepare=start, words=("claim", "src/a.py", "docs/**", "--as", "ann")),
    Scenario(name="release", prepare=claimed, words=("release", "--all", "--as", "ann")),
    Scenario(name="next", prepare=with_task, words=("next", "--as", "ann")),
    Scenario(
        name="task-add", prepare=start, words=("task", "add", "New", "--key", "k1", "--path", "src/a.py")
    ),
    Scenario(name="done", prepare=taken, words=("done", "T1", "--as", "ann")),
    Scenario(
        name="commit",
        prepare=changed,
        words=("commit", "-m", "Work", "src/a.py", "--as", "ann"),
        precious=(WORK, DRAFT),
    ),
    Scenario(name="land", prepare=branch, words=("land", "--wait", "--as", "ann"), precious=(DRAFT,)),
    Scenario(name="queue-run", prepare=queued, words=("queue", "run", "--drain"), precious=(DRAFT,)),
    Scenario(name="workspace-open", prepare=with_task, words=("workspace", "open", "T1", "--as", "ann")),
    Scenario(
        name="workspace-close",
        prepare=dirty_from_outside,
        words=("workspace", "close", "W1", "--as", "ann"),
        precious=(WORK, DRAFT),
    ),
    Scenario(
        name="rescue-take",
        prepare=dirty,
        words=("rescue", "take", "--why", "a copy", "--as", "ann"),
        precious=(WORK, DRAFT),
    ),
    Scenario(
        name="rescue-restore",
        prepare=rescued,
        words=("rescue", "restore", "R1", "--into", "../restored", "--as", "ann"),
        precious=(WORK, DRAFT),
    ),
    Scenario(name="store-move", prepare=taken, words=("store", "move", "../moved.db")),
    Scenario(
        name="init", prepare=with_rules, words=("init", "--yes", "--client", "claude"), precious=(WORK,)
    ),
    Scenario(name="init-undo", prepare=set_up, words=("init", "--undo"), precious=(WORK,)),
    Scenario(
        name="handoff",
        prepare=dirty,
        words=("handoff", "T1", "--to", "bob", "--next", "write the test", "--as", "ann"),
        precious=(WORK, DRAFT),
    ),
    Scenario(name="deploy", prepare=start, words=("deploy", "prod", "--as", "ann", "--", "true")),
    Scenario(
        name="state-set", prepare=start, words=("state", "set", "phase", "ship", "--any", "--as", "ann")
    ),
    Scenario(
        name="stash-save",
        prepare=changed,
        words=("stash", "save", "--message", "later", "--as", "ann"),
        precious=(WORK, DRAFT),
    ),
]
QUICK = ("commit", "workspace-close")
ON_SERVER = ("claim", "release", "next", "done", "commit", "land", "state-set", "handoff")


def cases() -> Iterator[Any]:
    """Yield each command with the kinds of store to kill it on; two of them in `make test`."""
    for scenario in SCENARIOS:
        if KILLS or scenario.name in QUICK:
            yield pytest.param(scenario, "sqlite", id=f"{scenario.name}-sqlite")
        if KILLS and scenario.name in ON_SERVER:  # the others do the same on both
            yield pytest.param(
                scenario, "postgres", id=f"{scenario.name}-postgres", marks=pytest.mark.postgres
            )


def choose(testbed: KillTestbed) -> list[Call]:
    """Return where to kill: spread over the command's own calls, and over those of its git commands."""
    own, others = testbed.list_calls()
    if not KILLS:
        return [own[len(own) * 2 // 3]]
    of_git = spread(others, KILLS // 3)
    return spread(own, KILLS - len(of_git)) + of_git


def spread(calls: list[Call], count: int) -> list[Call]:
    """Return so many of them, spread evenly."""
    count = min(count, len(calls))
    return [calls[index * len(calls) // count] for index in range(count)]


@pytest.mark.promise(
    "kills.can-be-repeated",
    "A command that is killed at any system call can be repeated; nothing is lost, granted or done twice.",
)
@pytest.mark.parametrize(("scenario", "kind"), list(cases()))
def test_a_command_that_was_killed_can_be_repeated(
    scenario: Scenario,
    kind: str,
    repository: Path,
    sealed_home: Path,
    request: pytest.FixtureRequest,
    record_property: Callable[[str, object], None],
) -> None:
    server: PostgresServer | None = None
    if kind == "postgres":
        server = request.getfixturevalue("postgres_server")
    root = repository.parent / "all"
    root.mkdir()
    repository.rename(root / "repository")
    testbed = KillTestbed(root, sealed_home, scenario, server)
    wrong: list[str] = []
    kills = 0
    for call in choose(testbed):
        kills += testbed.kill_at(call)
        try:
            found = testbed.check()
        except AssertionError as error:
            found = [str(error)]
        wrong += [f"killed at {call}: {one}" for one in found]
        testbed.restore()
    record_property("kills", kills)
    print(f"{scenario.name} on {kind}: {kills} kills")
    assert not wrong, "\n".join(wrong)
    assert kills
