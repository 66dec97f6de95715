"""kill -9 between any two steps of opening and closing: the next look goes on, and nothing is lost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landlane.errors import Held, NotAllowed
from landlane.git import remove_checkout as removing
from landlane.git.remove_checkout import removal_path
from landlane.rescue.restore import restore
from landlane.rescue.save import saved_work
from landlane.workspaces import close as closing
from landlane.workspaces import recover
from tests.support.git import git
from tests.support.killing import killed_after
from tests.support.workspaces import KINDS, Squatter, Yard, commit_file

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
def yard(repository: Path) -> Iterator[Yard]:
    (repository / ".gitignore").write_text(".env\n")
    (repository / ".env").write_text("SECRET=1\n")
    git(repository, "add", ".gitignore")
    yard = Yard(repository)
    yard.settings(SETTINGS)
    yield yard
    yard.end()


def open_in_child(repository: Path, task: str, kind: str) -> Callable[[Callable[[str], None]], object]:
    return lambda on_step: Yard(repository).open(task, kind=kind, on_step=on_step)


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


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_these_are_the_steps(yard: Yard, kind: str) -> None:
    opening: list[str] = []
    workspace = yard.open(kind=kind, on_step=opening.append).workspace
    spoil(workspace)
    closing_steps: list[str] = []
    yard.close(workspace, on_step=closing_steps.append)

    assert tuple(opening) == OPENING
    assert tuple(closing_steps) == CLOSING[kind]


@pytest.mark.promise(
    "workspaces.crash-anywhere",
    "A process killed while opening a workspace leaves either nothing or a complete workspace.",
)
@pytest.mark.slow
@pytest.mark.parametrize(("kind", "step"), KILLED_OPENING)
def test_an_opener_that_is_killed_leaves_nothing_or_a_whole_workspace(
    yard: Yard, kind: str, step: str
) -> None:
    task = yard.task()
    yard.session()
    killed_after(step, open_in_child(yard.repository, task, kind))

    told = recover.mend(yard.site(), yard.session())

    if step == "opened":
        (known,) = yard.known()
        assert told == []
        assert git(known.path, "status", "--porcelain") == ""
    else:
        assert told == ["W1 was half opened, and is taken back"]
        assert yard.leftovers() == []
        assert yard.known() == []
    opened = yard.open(task, kind=kind)
    assert opened.is_new == (step != "opened")
    yard.close(opened.workspace)
    assert yard.leftovers() == []


@pytest.mark.parametrize("kind", KINDS)
def test_opening_again_needs_no_other_command_first(yard: Yard, kind: str) -> None:
    task = yard.task()
    yard.session()
    killed_after("entered", open_in_child(yard.repository, task, kind))

    assert yard.open(task, kind=kind).is_new
    assert [one.state for one in yard.known(with_closed=True)] == ["failed", "open"]


@pytest.mark.promise(
    "workspaces.close-loses-nothing",
    "Closing a workspace loses nothing, whoever closes it and however often the closing process is killed.",
)
@pytest.mark.slow
@pytest.mark.parametrize(("kind", "step"), KILLED_CLOSING)
def test_a_closer_that_is_killed_loses_nothing(yard: Yard, kind: str, step: str) -> None:
    workspace = yard.open(kind=kind).workspace
    lone = spoil(workspace)

    def close(on_step: Callable[[str], None]) -> object:
        return Yard(yard.repository).close(workspace, on_step=on_step)

    killed_after(step, close)
    told = recover.mend(yard.site(), yard.session())

    assert told == ([] if step == "closed" else ["W1 was half closed, and is closed now"])
    assert yard.known() == []
    (rescue,) = saved_work(yard.site())
    assert yard.leftovers() == [f"refs/heads/{workspace.branch}", rescue.ref]
    yard.gc()
    again = restore(yard.site(), yard.session(), rescue.id, "", str(yard.repository.with_name("again")))
    path = Path(again.path)
    assert git(path, "rev-parse", "HEAD").strip() == lone
    assert git(path, "show", ":staged.txt") == "staged\n"
    assert (path / "loose.txt").read_text() == "loose\n"
    assert git(yard.repository, "show", f"{workspace.branch}:kept.txt") == "on the branch\n"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_clean", [True, False])
def test_what_was_written_before_a_closer_was_killed_at_its_renaming_is_saved(
    yard: Yard, kind: str, is_clean: bool
) -> None:
    workspace = yard.open(kind=kind).workspace
    if not is_clean:
        spoil(workspace)

    def write_late(step: str) -> None:
        if step == "saved":
            Path(workspace.path, "late.txt").write_text("late\n")

    def close(die: Callable[[str], None]) -> object:
        # In the child alone: it dies where the second look would begin.
        closing._save_late = lambda *_: die("renamed")  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
        return Yard(yard.repository).close(workspace, on_step=write_late)

    killed_after("renamed", close)
    recover.mend(yard.site(), yard.session())

    assert yard.known() == []
    late = saved_work(yard.site())[-1]
    again = restore(yard.site(), yard.session(), late.id, "", str(yard.repository.with_name("again")))
    assert Path(again.path, "late.txt").read_text() == "late\n"


@pytest.mark.parametrize("kind", KINDS)
def test_a_half_deleted_workspace_is_not_taken_for_deletions(yard: Yard, kind: str) -> None:
    workspace = yard.open(kind=kind).workspace
    renamed = Path(removal_path(workspace.path, workspace.id))

    def close(on_step: Callable[[str], None]) -> object:
        def half(path: str) -> None:
            if path == str(renamed) and renamed.exists():
                (renamed / "README.md").unlink()
                on_step("half")

        removing.remove_tree = half
        return Yard(yard.repository).close(workspace)

    if kind == "worktree":
        killed_after("forgotten", lambda die: Yard(yard.repository).close(workspace, on_step=die))
        (renamed / "README.md").unlink()
    else:
        killed_after("half", close)
    assert renamed.exists()
    recover.mend(yard.site(), yard.session())

    assert saved_work(yard.site()) == []
    assert not renamed.exists()
    assert yard.known() == []


def test_a_process_in_a_renamed_workspace_is_noticed(yard: Yard) -> None:
    workspace = yard.open().workspace
    killed_after("renamed", lambda die: Yard(yard.repository).close(workspace, on_step=die))
    (half,) = yard.known()

    with Squatter(removal_path(workspace.path, workspace.id)) as squatter:
        with pytest.raises(Held) as raised:
            yard.close(half)
        assert raised.value.facts["processes"] == [squatter.process.pid]

    assert yard.close(half).workspace.state == "closed"


def test_what_somebody_puts_at_its_place_after_a_crash_is_not_touched(yard: Yard) -> None:
    workspace = yard.open().workspace
    spoil(workspace)

    def close(on_step: Callable[[str], None]) -> object:
        return Yard(yard.repository).close(workspace, on_step=on_step)

    killed_after("renamed", close)
    Path(workspace.path).mkdir()
    Path(workspace.path, "mine.txt").write_text("mine\n")
    recover.mend(yard.site(), yard.session())

    assert Path(workspace.path, "mine.txt").read_text() == "mine\n"
    assert len(saved_work(yard.site())) == 1
    assert yard.known() == []


def test_a_half_opened_workspace_in_which_an_installer_still_runs_is_left_for_later(yard: Yard) -> None:
    task = yard.task()
    yard.session()
    killed_after("written", open_in_child(yard.repository, task, "worktree"))
    (half,) = yard.known()

    with Squatter(half.path) as squatter:
        assert recover.mend(yard.site(), yard.session()) == []
        assert Path(half.path).exists()
        with pytest.raises(NotAllowed, match=f"process {squatter.process.pid} "):
            yard.open(task)

    assert recover.mend(yard.site(), yard.session()) == ["W1 was half opened, and is taken back"]
