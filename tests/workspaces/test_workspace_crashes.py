"""kill -9 between any two steps of opening and closing: the next look goes on, and nothing is lost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landlane.errors import Held, NotAllowed
from landlane.git import remove_checkout as removing
from landlane.git.remove_checkout import removal_path
from landlane.rescue.refs import list_rescues
from landlane.rescue.restore import restore
from landlane.workspaces import clean_up
from landlane.workspaces import close as closing
from tests.support.git import git
from tests.support.processes import kill_after
from tests.support.shell import Shell
from tests.support.workspaces import KINDS, ProcessInFolder, WorkspaceTestbed, commit_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from landlane.workspaces.model import Workspace

pytestmark = pytest.mark.simulation

SETTINGS = """
[workspace]
copy = [".env"]
check = "test -f .env"
[workspace.slots]
PORT = "port"
"""
OPENING = ("begun", "pinned", "entered", "written", "leased", "prepared", "opened")
CLOSING = {
    "worktree": (
        "closing",
        "saved",
        "rescued",
        "renamed",
        "forgotten",
        "removed",
        "unpinned",
        "freed",
        "closed",
    ),
    "clone": ("closing", "brought", "saved", "rescued", "renamed", "removed", "unpinned", "freed", "closed"),
}
KILLED_OPENING = [(kind, step) for kind in KINDS for step in OPENING]
KILLED_CLOSING = [(kind, step) for kind in KINDS for step in CLOSING[kind]]


@pytest.fixture
def testbed(repository: Path) -> Iterator[WorkspaceTestbed]:
    (repository / ".gitignore").write_text(".env\n")
    (repository / ".env").write_text("SECRET=1\n")
    git(repository, "add", ".gitignore")
    testbed = WorkspaceTestbed(repository)
    testbed.write_settings(SETTINGS)
    yield testbed
    testbed.end()


def open_in_child(repository: Path, task: str, kind: str) -> Callable[[Callable[[str], None]], object]:
    return lambda on_step: WorkspaceTestbed(repository).open(task, kind=kind, on_step=on_step)


def spoil(workspace: Workspace) -> str:
    """Work that exists nowhere else: a commit on no branch, something staged, something loose."""
    path = Path(workspace.path)
    commit_file(path, "kept.txt", "on the branch\n")
    git(path, "checkout", "--quiet", "--detach")
    lone = commit_file(path, "lone.txt", "on no branch\n")
    (path / "staged.txt").write_text("staged\n")
    git(path, "add", "staged.txt")
    (path / "loose.txt").write_text("loose\n")
    return lone


@pytest.mark.parametrize("step", ["closing", "rescued", "removed"])
def test_closing_again_ends_what_was_interrupted(testbed: WorkspaceTestbed, step: str) -> None:
    workspace = testbed.open().workspace
    spoil(workspace)

    def close(on_step: Callable[[str], None]) -> object:
        return WorkspaceTestbed(testbed.repository).close(workspace, on_step=on_step)

    kill_after(step, close)
    words = ("workspace", "close", workspace.task, "--as", workspace.agent)
    answer = Shell(testbed.repository).run_json(*words)

    (rescue,) = list_rescues(testbed.prepared_repo().common_dir)
    assert (answer["workspace"]["id"], answer["rescue"]) == (workspace.id, rescue.id)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_opening_and_closing_have_these_steps(testbed: WorkspaceTestbed, kind: str) -> None:
    opening: list[str] = []
    workspace = testbed.open(kind=kind, on_step=opening.append).workspace
    spoil(workspace)
    closing_steps: list[str] = []
    testbed.close(workspace, on_step=closing_steps.append)

    assert tuple(opening) == OPENING
    assert tuple(closing_steps) == CLOSING[kind]


@pytest.mark.promise(
    "workspaces.crash-anywhere",
    "A process killed while opening a workspace leaves either nothing or a complete workspace.",
)
@pytest.mark.slow
@pytest.mark.parametrize(("kind", "step"), KILLED_OPENING)
def test_a_killed_open_leaves_nothing_or_a_complete_workspace(
    testbed: WorkspaceTestbed, kind: str, step: str
) -> None:
    task = testbed.task()
    testbed.session()
    kill_after(step, open_in_child(testbed.repository, task, kind))

    shown = clean_up.finish_interrupted(testbed.prepared_repo(), testbed.session())

    if step == "opened":
        (known,) = testbed.workspaces()
        assert shown == []
        assert git(known.path, "status", "--porcelain") == ""
    else:
        assert shown == ["removed W1, whose opening had been interrupted"]
        assert testbed.leftovers() == []
        assert testbed.workspaces() == []
    opened = testbed.open(task, kind=kind)
    assert opened.is_new == (step != "opened")
    testbed.close(opened.workspace)
    assert testbed.leftovers() == []


@pytest.mark.parametrize("kind", KINDS)
def test_opening_again_needs_no_other_command_first(testbed: WorkspaceTestbed, kind: str) -> None:
    task = testbed.task()
    testbed.session()
    kill_after("entered", open_in_child(testbed.repository, task, kind))

    assert testbed.open(task, kind=kind).is_new
    assert [one.state for one in testbed.workspaces(with_closed=True)] == ["failed", "open"]


@pytest.mark.promise(
    "workspaces.close-loses-nothing",
    "Closing a workspace loses nothing, whoever closes it and however often the closing process is killed.",
)
@pytest.mark.slow
@pytest.mark.parametrize(("kind", "step"), KILLED_CLOSING)
def test_killing_a_close_loses_nothing(testbed: WorkspaceTestbed, kind: str, step: str) -> None:
    workspace = testbed.open(kind=kind).workspace
    lone = spoil(workspace)

    def close(on_step: Callable[[str], None]) -> object:
        return WorkspaceTestbed(testbed.repository).close(workspace, on_step=on_step)

    kill_after(step, close)
    shown = clean_up.finish_interrupted(testbed.prepared_repo(), testbed.session())

    assert shown == ([] if step == "closed" else ["finished removing W1, which had been interrupted"])
    assert testbed.workspaces() == []
    (rescue,) = list_rescues(testbed.prepared_repo().common_dir)
    assert testbed.leftovers() == [f"refs/heads/{workspace.branch}", rescue.ref]
    testbed.gc()
    again = restore(
        testbed.prepared_repo(), testbed.session(), rescue.id, "", str(testbed.repository.with_name("again"))
    )
    path = Path(again.path)
    assert git(path, "rev-parse", "HEAD").strip() == lone
    assert git(path, "show", ":staged.txt") == "staged\n"
    assert (path / "loose.txt").read_text() == "loose\n"
    assert git(testbed.repository, "show", f"{workspace.branch}:kept.txt") == "on the branch\n"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_clean", [True, False])
def test_files_written_before_a_close_was_killed_at_the_rename_are_saved(
    testbed: WorkspaceTestbed, kind: str, is_clean: bool
) -> None:
    workspace = testbed.open(kind=kind).workspace
    if not is_clean:
        spoil(workspace)

    def write_late(step: str) -> None:
        if step == "saved":
            Path(workspace.path, "late.txt").write_text("late\n")

    def close(die: Callable[[str], None]) -> object:
        # In the child alone: it dies where the second look would begin.
        closing._Closing._save_late = lambda *_: die("renamed")  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
        return WorkspaceTestbed(testbed.repository).close(workspace, on_step=write_late)

    kill_after("renamed", close)
    clean_up.finish_interrupted(testbed.prepared_repo(), testbed.session())

    assert testbed.workspaces() == []
    late = list_rescues(testbed.prepared_repo().common_dir)[-1]
    again = restore(
        testbed.prepared_repo(), testbed.session(), late.id, "", str(testbed.repository.with_name("again"))
    )
    assert Path(again.path, "late.txt").read_text() == "late\n"


@pytest.mark.parametrize("kind", KINDS)
def test_a_half_deleted_workspace_is_not_taken_for_deletions(testbed: WorkspaceTestbed, kind: str) -> None:
    workspace = testbed.open(kind=kind).workspace
    renamed = Path(removal_path(workspace.path, workspace.id))

    def close(on_step: Callable[[str], None]) -> object:
        def half(path: str) -> None:
            if path == str(renamed) and renamed.exists():
                (renamed / "README.md").unlink()
                on_step("half")

        removing.remove_tree = half
        return WorkspaceTestbed(testbed.repository).close(workspace)

    if kind == "worktree":
        kill_after(
            "forgotten", lambda die: WorkspaceTestbed(testbed.repository).close(workspace, on_step=die)
        )
        (renamed / "README.md").unlink()
    else:
        kill_after("half", close)
    assert renamed.exists()
    clean_up.finish_interrupted(testbed.prepared_repo(), testbed.session())

    assert list_rescues(testbed.prepared_repo().common_dir) == []
    assert not renamed.exists()
    assert testbed.workspaces() == []


def test_a_process_in_a_renamed_workspace_blocks_its_removal(testbed: WorkspaceTestbed) -> None:
    workspace = testbed.open().workspace
    kill_after("renamed", lambda die: WorkspaceTestbed(testbed.repository).close(workspace, on_step=die))
    (half,) = testbed.workspaces()

    with ProcessInFolder(removal_path(workspace.path, workspace.id)) as squatter:
        with pytest.raises(Held) as raised:
            testbed.close(half)
        assert raised.value.facts["processes"] == [squatter.process.pid]

    assert testbed.close(half).workspace.state == "closed"


def test_files_put_at_the_path_after_a_crash_are_not_touched(testbed: WorkspaceTestbed) -> None:
    workspace = testbed.open().workspace
    spoil(workspace)

    def close(on_step: Callable[[str], None]) -> object:
        return WorkspaceTestbed(testbed.repository).close(workspace, on_step=on_step)

    kill_after("renamed", close)
    Path(workspace.path).mkdir()
    Path(workspace.path, "mine.txt").write_text("mine\n")
    clean_up.finish_interrupted(testbed.prepared_repo(), testbed.session())

    assert Path(workspace.path, "mine.txt").read_text() == "mine\n"
    assert len(list_rescues(testbed.prepared_repo().common_dir)) == 1
    assert testbed.workspaces() == []


def test_a_half_opened_workspace_in_which_an_installer_still_runs_is_left_for_later(
    testbed: WorkspaceTestbed,
) -> None:
    task = testbed.task()
    testbed.session()
    kill_after("written", open_in_child(testbed.repository, task, "worktree"))
    (half,) = testbed.workspaces()

    with ProcessInFolder(half.path) as squatter:
        assert clean_up.finish_interrupted(testbed.prepared_repo(), testbed.session()) == []
        assert Path(half.path).exists()
        with pytest.raises(NotAllowed, match=f"process {squatter.process.pid} "):
            testbed.open(task)

    assert clean_up.finish_interrupted(testbed.prepared_repo(), testbed.session()) == [
        "removed W1, whose opening had been interrupted"
    ]
