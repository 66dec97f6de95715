"""Whose a workspace is: its session's, its process's and its clone's; nobody else's folder is touched."""

from __future__ import annotations

import shutil
from collections import namedtuple
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landlane.errors import Held, RepositoryError
from landlane.rescue.refs import list_rescues
from landlane.store import records
from landlane.tasks.change import block_task
from landlane.values import as_dict
from landlane.workspaces import clean_up, disk_space
from landlane.workspaces import close as closing
from tests.support.git import git
from tests.support.workspaces import KINDS, WorkspaceTestbed, commit_file

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


class ProcessEnds(Exception):
    """The process ends here."""


def leave_half_way(testbed: WorkspaceTestbed, workspace: Workspace, state: str, **process: object) -> None:
    """As if a process that differs from this one in these had been at it."""
    repo = testbed.repo()
    here = as_dict(repo.processes.current())
    document = as_dict(workspace) | {"state": state, "process": {**here, **process}}
    repo.change(lambda tx: records.put(tx, "workspace", document, state))


@kinds
@pytest.mark.parametrize("state", ["opening", "closing"])
def test_an_opening_or_closing_interrupted_by_a_reboot_is_finished(
    testbed: WorkspaceTestbed, kind: str, state: str
) -> None:
    workspace = testbed.open(kind=kind).workspace
    leave_half_way(testbed, workspace, state, boot_id="the boot before")

    (answer,) = clean_up.finish_interrupted(testbed.prepared_repo(), testbed.session())

    assert f"{workspace.id}, wh" in answer
    assert answer.endswith(" had been interrupted")
    assert testbed.workspaces() == []
    assert not Path(workspace.path).exists()


@kinds
def test_a_closing_left_by_a_container_is_finished_once_its_session_has_ended(
    testbed: WorkspaceTestbed, kind: str
) -> None:
    workspace = testbed.open(agent="bob", kind=kind).workspace
    leave_half_way(testbed, workspace, "closing", namespace="pid:[1]")

    assert clean_up.finish_interrupted(testbed.prepared_repo(), testbed.session()) == []
    assert Path(workspace.path).exists()
    testbed.leave("bob")
    assert clean_up.finish_interrupted(testbed.prepared_repo(), testbed.session()) == [
        f"finished removing {workspace.id}, which had been interrupted"
    ]


@kinds
def test_a_failed_removal_can_be_continued_by_the_same_process(
    testbed: WorkspaceTestbed, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = testbed.open(kind=kind).workspace

    def refuse(*_: object, **__: object) -> None:
        raise RepositoryError("it cannot be removed", code="NOT_REMOVED", hint="")

    monkeypatch.setattr(closing, "remove_checkout", refuse)
    with pytest.raises(RepositoryError, match="cannot be removed"):
        testbed.close(workspace)
    monkeypatch.undo()

    (left,) = testbed.workspaces()
    assert (left.state, left.process) == ("closing", {})
    assert clean_up.finish_interrupted(testbed.prepared_repo(), testbed.session()) == [
        f"finished removing {workspace.id}, which had been interrupted"
    ]
    assert not Path(workspace.path).exists()


@kinds
def test_a_folder_that_appears_at_the_chosen_path_is_avoided(testbed: WorkspaceTestbed, kind: str) -> None:
    task = testbed.task()
    foreign = testbed.folder / f"{task}-ann"

    def appear(step: str) -> None:
        if step == "begun":
            foreign.mkdir(parents=True)
            (foreign / "mine.txt").write_text("mine\n")

    workspace = testbed.open(task, kind=kind, on_step=appear).workspace

    assert workspace.path == f"{foreign}-2"
    assert testbed.workspaces()[0].path == workspace.path
    assert [path.name for path in foreign.iterdir()] == ["mine.txt"]
    testbed.close(workspace)
    assert (foreign / "mine.txt").exists()


@kinds
@pytest.mark.parametrize("what", ["a folder", "a clone", "a worktree"])
def test_an_interrupted_open_leaves_the_files_of_others(
    testbed: WorkspaceTestbed, kind: str, what: str
) -> None:
    task = testbed.task()
    foreign = testbed.folder / f"{task}-ann"

    def appear(step: str) -> None:
        foreign.parent.mkdir(exist_ok=True)
        if what == "a folder":
            foreign.mkdir()
        elif what == "a clone":
            git(testbed.repository, "clone", "--quiet", str(testbed.repository), str(foreign))
        else:
            git(testbed.repository, "worktree", "add", "--quiet", "-b", "own", str(foreign))
        (foreign / "mine.txt").write_text("mine\n")
        raise ProcessEnds(step)

    with pytest.raises(ProcessEnds):
        testbed.open(task, kind=kind, on_step=appear)

    assert (foreign / "mine.txt").read_text() == "mine\n"
    if what != "a folder":
        assert git(foreign, "status", "--porcelain") == "?? mine.txt\n"
    assert testbed.workspaces() == []


@kinds
@pytest.mark.parametrize("at", ["begun", "pinned", "entered", "written"])
def test_an_interrupted_open_leaves_nothing_of_its_own(testbed: WorkspaceTestbed, kind: str, at: str) -> None:
    def cut(step: str) -> None:
        if step == at:
            raise ProcessEnds(step)

    with pytest.raises(ProcessEnds):
        testbed.open(kind=kind, on_step=cut)

    assert testbed.leftovers() == []


def test_two_clones_that_share_a_folder_do_not_interfere(testbed: WorkspaceTestbed, tmp_path: Path) -> None:
    testbed.write_settings('[workspace]\nfolder = "../shared"\n')
    git(tmp_path, "clone", "--quiet", str(testbed.repository), str(testbed.repository.with_name("second")))
    other = WorkspaceTestbed(testbed.repository.with_name("second"))
    task, same = testbed.task(), other.task()
    assert task == same
    theirs: list[Workspace] = []

    def be_faster(step: str) -> None:
        if step == "begun":
            theirs.append(other.open(same).workspace)

    ours = testbed.open(task, on_step=be_faster).workspace

    assert Path(ours.path).parent == Path(theirs[0].path).parent
    assert ours.path != theirs[0].path
    assert git(theirs[0].path, "status", "--porcelain") == git(ours.path, "status", "--porcelain") == ""
    other.end()


def test_the_workspace_of_a_live_session_is_given_to_no_other_session(testbed: WorkspaceTestbed) -> None:
    task = testbed.task()
    first = testbed.open(task, agent="bob").workspace

    with pytest.raises(Held) as raised:
        testbed.open(task)

    assert (raised.value.exit_code, raised.value.code) == (3, "TASK_HELD")
    assert raised.value.facts["holder"] == "bob"
    block_task(testbed.repo(), None, task, "looked into")  # nobody's task now, and still his place
    with pytest.raises(Held) as raised:
        testbed.open(task)
    assert (raised.value.exit_code, raised.value.code) == (3, "WORKSPACE_HELD")
    assert testbed.workspaces() == [first]


@kinds
def test_changes_of_an_ended_session_are_saved_before_another_continues(
    testbed: WorkspaceTestbed, kind: str
) -> None:
    task = testbed.task()
    first = testbed.open(task, agent="bob", kind=kind).workspace
    Path(first.path, "loose.txt").write_text("not committed\n")
    testbed.leave("bob")
    block_task(testbed.repo(), None, task, "looked into")  # so that it is the same attempt still

    opened = testbed.open(task, kind=kind)

    assert (opened.workspace.id, opened.workspace.agent, opened.is_new) == (first.id, "ann", False)
    assert Path(first.path, "loose.txt").read_text() == "not committed\n"
    (saved,) = list_rescues(testbed.prepared_repo().common_dir)
    assert opened.rescues == (saved.id,)
    assert (saved.facts["agent"], saved.facts["by"]) == ("bob", "ann")
    assert testbed.open(task, kind=kind).rescues == ()


@kinds
def test_changes_of_an_ended_session_are_saved_for_the_next_attempt(
    testbed: WorkspaceTestbed, kind: str
) -> None:
    task = testbed.task()
    first = testbed.open(task, agent="bob", kind=kind).workspace
    Path(first.path, "loose.txt").write_text("not committed\n")
    testbed.leave("bob")

    opened = testbed.open(task, kind=kind)

    assert (opened.workspace.attempt, opened.is_new) == (2, True)
    (saved,) = list_rescues(testbed.prepared_repo().common_dir)
    assert opened.rescues == (saved.id,)
    assert Path(first.path, "loose.txt").exists()


def with_cache(testbed: WorkspaceTestbed) -> Path:
    """A workspace whose session has ended, with a cache."""
    (testbed.repository / ".gitignore").write_text("build\n")
    git(testbed.repository, "add", ".gitignore")
    testbed.write_settings(CACHES)
    workspace = testbed.open(agent="bob").workspace
    cache = Path(workspace.path, "build/cache")
    cache.mkdir(parents=True)
    (cache / "object.o").write_text("made\n")
    testbed.leave("bob")
    return cache


def test_eviction_follows_no_link_at_any_depth(
    testbed: WorkspaceTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = with_cache(testbed)
    elsewhere = testbed.repository.with_name("elsewhere")
    cache.parent.rename(elsewhere)
    cache.parent.symlink_to(elsewhere)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**10, 10**10, 0))

    assert disk_space.evict_caches(testbed.prepared_repo()) == []
    assert (elsewhere / "cache/object.o").exists()


def test_opening_frees_disk_space_first_when_it_is_short(
    testbed: WorkspaceTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = with_cache(testbed)
    testbed.open()
    assert cache.exists()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**10, 10**10, 0))

    testbed.open()

    assert not cache.exists()
    assert any(answer.startswith(f"deleted the cache {cache}") for answer in testbed.messages)


@pytest.mark.slow
@kinds
def test_workspaces_of_a_submodule_are_beside_the_outermost_repository(
    testbed: WorkspaceTestbed, tmp_path: Path, kind: str
) -> None:
    for name in ("inner", "outer"):
        git(tmp_path, "init", "--quiet", str(tmp_path / name))
        commit_file(tmp_path / name, f"{name}.txt", name)
    git(tmp_path / "outer", "submodule", "--quiet", "add", str(tmp_path / "inner"), "libs/inner")
    git(tmp_path / "outer", "commit", "--quiet", "-m", "With a submodule")
    git(testbed.repository, "submodule", "--quiet", "add", str(tmp_path / "outer"), "vendor/outer")
    git(testbed.repository, "submodule", "--quiet", "update", "--init", "--recursive")
    git(testbed.repository, "commit", "--quiet", "-m", "With submodules")
    nested = WorkspaceTestbed(testbed.repository / "vendor/outer/libs/inner")

    workspace = nested.open(kind=kind).workspace

    folder = testbed.repository.with_name(f"{testbed.repository.name}.inner.workspaces")
    assert Path(workspace.path) == folder / f"{workspace.task}-ann"
    assert Path(workspace.path, "inner.txt").read_text() == "inner"
    assert git(workspace.path, "status", "--porcelain") == ""
    assert git(testbed.repository, "status", "--porcelain") == ""
    assert nested.close(workspace).workspace.state == "closed"
    nested.end()
