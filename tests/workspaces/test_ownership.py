"""Whose a workspace is: its session's, its process's and its clone's; nobody else's folder is touched."""

from __future__ import annotations

import shutil
from collections import namedtuple
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landlane.errors import Held, RepositoryError
from landlane.rescue.save import saved_work
from landlane.tasks.change import block_task
from landlane.values import as_dict
from landlane.workspaces import close as closing
from landlane.workspaces import disk_space, records, recover
from tests.support.git import git
from tests.support.workspaces import KINDS, Yard, commit_file

if TYPE_CHECKING:
    from landlane.workspaces.model import Workspace

pytestmark = pytest.mark.integration

kinds = pytest.mark.parametrize("kind", KINDS)
Usage = namedtuple("Usage", "total used free")

CACHES = """
[workspace]
caches = ["build/cache"]
disk_floor = "1GB"
"""


class CutOff(Exception):
    """The process ends here."""


def leave_half_way(yard: Yard, workspace: Workspace, state: str, **process: object) -> None:
    """As if a process that differs from this one in these had been at it."""
    repo = yard.repo()
    here = as_dict(repo.processes.current())
    records.change_state(repo, workspace, state, None, state=state, process={**here, **process})


@kinds
@pytest.mark.parametrize("state", ["opening", "closing"])
def test_what_a_reboot_cut_off_is_taken_up(yard: Yard, kind: str, state: str) -> None:
    workspace = yard.open(kind=kind).workspace
    leave_half_way(yard, workspace, state, boot_id="the boot before")

    (told,) = recover.mend(yard.site(), yard.session())

    assert told.startswith(f"{workspace.id} was half ")
    assert yard.known() == []
    assert not Path(workspace.path).exists()


@kinds
def test_what_a_container_left_is_taken_up_when_its_session_has_ended(yard: Yard, kind: str) -> None:
    workspace = yard.open(agent="bob", kind=kind).workspace
    leave_half_way(yard, workspace, "closing", namespace="pid:[1]")

    assert recover.mend(yard.site(), yard.session()) == []
    assert Path(workspace.path).exists()
    yard.leave("bob")
    assert recover.mend(yard.site(), yard.session()) == [f"{workspace.id} was half closed, and is closed now"]


@kinds
def test_a_removal_that_fails_is_gone_on_with_by_the_same_process(
    yard: Yard, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = yard.open(kind=kind).workspace

    def refuse(*_: object, **__: object) -> None:
        raise RepositoryError("it cannot be removed", code="NOT_REMOVED", hint="")

    monkeypatch.setattr(closing, "remove_checkout", refuse)
    with pytest.raises(RepositoryError, match="cannot be removed"):
        yard.close(workspace)
    monkeypatch.undo()

    (left,) = yard.known()
    assert (left.state, left.process) == ("closing", {})
    assert recover.mend(yard.site(), yard.session()) == [f"{workspace.id} was half closed, and is closed now"]
    assert not Path(workspace.path).exists()


@kinds
def test_what_appears_at_its_place_is_passed_over(yard: Yard, kind: str) -> None:
    task = yard.task()
    foreign = yard.folder / f"{task}-ann"

    def appear(step: str) -> None:
        if step == "begun":
            foreign.mkdir(parents=True)
            (foreign / "mine.txt").write_text("mine\n")

    workspace = yard.open(task, kind=kind, on_step=appear).workspace

    assert workspace.path == f"{foreign}-2"
    assert yard.known()[0].path == workspace.path
    assert [path.name for path in foreign.iterdir()] == ["mine.txt"]
    yard.close(workspace)
    assert (foreign / "mine.txt").exists()


@kinds
@pytest.mark.parametrize("what", ["a folder", "a clone", "a worktree"])
def test_an_open_that_is_cut_off_leaves_what_others_put_there(yard: Yard, kind: str, what: str) -> None:
    task = yard.task()
    foreign = yard.folder / f"{task}-ann"

    def appear(step: str) -> None:
        foreign.parent.mkdir(exist_ok=True)
        if what == "a folder":
            foreign.mkdir()
        elif what == "a clone":
            git(yard.repository, "clone", "--quiet", str(yard.repository), str(foreign))
        else:
            git(yard.repository, "worktree", "add", "--quiet", "-b", "own", str(foreign))
        (foreign / "mine.txt").write_text("mine\n")
        raise CutOff(step)

    with pytest.raises(CutOff):
        yard.open(task, kind=kind, on_step=appear)

    assert (foreign / "mine.txt").read_text() == "mine\n"
    if what != "a folder":
        assert git(foreign, "status", "--porcelain") == "?? mine.txt\n"
    assert yard.known() == []


@kinds
@pytest.mark.parametrize("at", ["begun", "pinned", "entered", "written"])
def test_an_open_that_is_cut_off_leaves_nothing_of_its_own(yard: Yard, kind: str, at: str) -> None:
    def cut(step: str) -> None:
        if step == at:
            raise CutOff(step)

    with pytest.raises(CutOff):
        yard.open(kind=kind, on_step=cut)

    assert yard.leftovers() == []


def test_two_clones_that_share_a_folder_do_not_hit_each_other(yard: Yard, tmp_path: Path) -> None:
    yard.settings('[workspace]\nfolder = "../shared"\n')
    git(tmp_path, "clone", "--quiet", str(yard.repository), str(yard.repository.with_name("second")))
    other = Yard(yard.repository.with_name("second"))
    task, same = yard.task(), other.task()
    assert task == same
    theirs: list[Workspace] = []

    def be_faster(step: str) -> None:
        if step == "begun":
            theirs.append(other.open(same).workspace)

    ours = yard.open(task, on_step=be_faster).workspace

    assert Path(ours.path).parent == Path(theirs[0].path).parent
    assert ours.path != theirs[0].path
    assert git(theirs[0].path, "status", "--porcelain") == git(ours.path, "status", "--porcelain") == ""
    other.end()


def test_the_workspace_of_a_live_session_is_given_to_nobody_else(yard: Yard) -> None:
    task = yard.task()
    first = yard.open(task, agent="bob").workspace

    with pytest.raises(Held) as raised:
        yard.open(task)

    assert (raised.value.exit_code, raised.value.code) == (3, "TASK_HELD")
    assert raised.value.facts["holder"] == "bob"
    block_task(yard.repo(), None, task, "looked into")  # nobody's task now, and still his place
    with pytest.raises(Held) as raised:
        yard.open(task)
    assert (raised.value.exit_code, raised.value.code) == (3, "WORKSPACE_HELD")
    assert yard.known() == [first]


@kinds
def test_what_an_ended_session_left_is_saved_before_another_goes_on_with_it(yard: Yard, kind: str) -> None:
    task = yard.task()
    first = yard.open(task, agent="bob", kind=kind).workspace
    Path(first.path, "loose.txt").write_text("not committed\n")
    yard.leave("bob")
    block_task(yard.repo(), None, task, "looked into")  # so that it is the same attempt still

    opened = yard.open(task, kind=kind)

    assert (opened.workspace.id, opened.workspace.agent, opened.is_new) == (first.id, "ann", False)
    assert Path(first.path, "loose.txt").read_text() == "not committed\n"
    (saved,) = saved_work(yard.site())
    assert opened.rescues == (saved.id,)
    assert (saved.facts["agent"], saved.facts["by"]) == ("bob", "ann")
    assert yard.open(task, kind=kind).rescues == ()


@kinds
def test_what_an_ended_session_left_is_in_reach_of_the_next_attempt(yard: Yard, kind: str) -> None:
    task = yard.task()
    first = yard.open(task, agent="bob", kind=kind).workspace
    Path(first.path, "loose.txt").write_text("not committed\n")
    yard.leave("bob")

    opened = yard.open(task, kind=kind)

    assert (opened.workspace.attempt, opened.is_new) == (2, True)
    (saved,) = saved_work(yard.site())
    assert opened.rescues == (saved.id,)
    assert Path(first.path, "loose.txt").exists()


def with_cache(yard: Yard) -> Path:
    """A workspace whose session has ended, with a cache."""
    (yard.repository / ".gitignore").write_text("build\n")
    git(yard.repository, "add", ".gitignore")
    yard.settings(CACHES)
    workspace = yard.open(agent="bob").workspace
    cache = Path(workspace.path, "build/cache")
    cache.mkdir(parents=True)
    (cache / "object.o").write_text("made\n")
    yard.leave("bob")
    return cache


def test_eviction_follows_no_link_at_any_depth(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = with_cache(yard)
    elsewhere = yard.repository.with_name("elsewhere")
    cache.parent.rename(elsewhere)
    cache.parent.symlink_to(elsewhere)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**10, 10**10, 0))

    assert disk_space.evict_caches(yard.site()) == []
    assert (elsewhere / "cache/object.o").exists()


def test_opening_makes_room_first_when_the_disk_is_short(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = with_cache(yard)
    yard.open()
    assert cache.exists()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**10, 10**10, 0))

    yard.open()

    assert not cache.exists()
    assert any(told.startswith(f"evicted {cache}") for told in yard.told)


@pytest.mark.slow
@kinds
def test_workspaces_of_a_submodule_lie_beside_the_outermost_repository(
    yard: Yard, tmp_path: Path, kind: str
) -> None:
    for name in ("inner", "outer"):
        git(tmp_path, "init", "--quiet", str(tmp_path / name))
        commit_file(tmp_path / name, f"{name}.txt", name)
    git(tmp_path / "outer", "submodule", "--quiet", "add", str(tmp_path / "inner"), "libs/inner")
    git(tmp_path / "outer", "commit", "--quiet", "-m", "With a submodule")
    git(yard.repository, "submodule", "--quiet", "add", str(tmp_path / "outer"), "vendor/outer")
    git(yard.repository, "submodule", "--quiet", "update", "--init", "--recursive")
    git(yard.repository, "commit", "--quiet", "-m", "With submodules")
    nested = Yard(yard.repository / "vendor/outer/libs/inner")

    workspace = nested.open(kind=kind).workspace

    folder = yard.repository.with_name(f"{yard.repository.name}.inner.workspaces")
    assert Path(workspace.path) == folder / f"{workspace.task}-ann"
    assert Path(workspace.path, "inner.txt").read_text() == "inner"
    assert git(workspace.path, "status", "--porcelain") == ""
    assert git(yard.repository, "status", "--porcelain") == ""
    assert nested.close(workspace).workspace.state == "closed"
    nested.end()
