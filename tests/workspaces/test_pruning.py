"""Pruning: every finished or forsaken workspace ends removed, rescued, or listed with a reason."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landlane.errors import LandlaneError
from landlane.git.remove_checkout import remove_checkout
from landlane.rescue.refs import list_rescues
from landlane.tasks.change import drop_task
from landlane.workspaces import clean_up, records
from landlane.workspaces import close as closing
from landlane.workspaces.locate import find_workspace
from landlane.workspaces.model import CLOSING, IN_TRANSITION
from tests.support.git import git
from tests.support.workspaces import KINDS, ProcessInFolder, WorkspaceTestbed, add_remote, commit_file

if TYPE_CHECKING:
    from landlane.workspaces.model import Workspace

pytestmark = pytest.mark.integration

MANY = 20


def finish(testbed: WorkspaceTestbed, number: int, kind: str) -> Workspace:
    """A finished workspace, each in its own sorry state."""
    task = testbed.task()
    workspace = testbed.open(task, agent=f"agent{number}", kind=kind).workspace
    path = Path(workspace.path)
    state = number % 5
    if state == 1:
        (path / "loose.txt").write_text("loose\n")
    elif state == 2:
        commit_file(path, f"merged-{number}.txt", "merged\n")
        git(testbed.repository, "fetch", "--quiet", str(path), "HEAD")
        git(testbed.repository, "merge", "--quiet", "--squash", "FETCH_HEAD")
        git(testbed.repository, "commit", "--quiet", "-m", f"Squash {number}")
    elif state == 3:
        private = path / ".git" if kind == "clone" else testbed.repository / ".git" / "worktrees" / path.name
        (private / "index.lock").write_text("")  # its agent died in the middle of something
    elif state == 4:
        git(path, "checkout", "--quiet", "--detach")
        commit_file(path, "lone.txt", f"{number}\n")
    drop_task(testbed.repo(), None, task, "over")
    testbed.leave(f"agent{number}")
    return workspace


@pytest.mark.slow
def test_prune_closes_every_finished_workspace_or_gives_a_reason(
    testbed: WorkspaceTestbed, tmp_path: Path
) -> None:
    module = tmp_path / "module"
    git(tmp_path, "init", "--quiet", str(module))
    commit_file(module, "inner.txt", "inner\n")
    git(testbed.repository, "submodule", "--quiet", "add", str(module), "vendor")
    git(testbed.repository, "commit", "--quiet", "-m", "With a submodule")
    finished = [finish(testbed, number, KINDS[number // 5 % 2]) for number in range(MANY)]
    at_work = testbed.open(agent="bob").workspace
    busy = finished[0]
    with ProcessInFolder(busy.path):
        dry = clean_up.prune(testbed.prepared_repo(), testbed.session(), is_dry=True)
        assert [outcome for _, outcome, _ in dry].count("can be removed") == MANY
        found = {
            one.id: (outcome, closed)
            for one, outcome, closed in clean_up.prune(testbed.prepared_repo(), testbed.session())
        }

    assert len(found) == MANY + 1
    assert found[at_work.id][0] == "bob is using it"
    assert "still running in" in found[busy.id][0]
    for one in finished[1:]:
        outcome, closed = found[one.id]
        assert closed is not None, outcome
        assert not Path(one.path).exists()
        number = finished.index(one)
        assert bool(closed.rescue) == (number % 5 in (1, 4)), (number, outcome)
    assert {one.id for one in testbed.workspaces()} == {at_work.id, busy.id}


def test_prune_knows_what_was_merged_at_the_remote(testbed: WorkspaceTestbed) -> None:
    remote = add_remote(testbed.repository)
    task = testbed.task()
    workspace = testbed.open(task).workspace
    commit_file(workspace.path, "work.txt", "work\n")
    git(workspace.path, "push", "--quiet", "origin", "HEAD:refs/heads/topic")
    colleague = remote.with_name("colleague")
    git(remote.parent, "clone", "--quiet", str(remote), str(colleague))
    git(colleague, "merge", "--quiet", "--squash", "origin/topic")
    git(colleague, "commit", "--quiet", "-m", "Squashed")
    git(colleague, "push", "--quiet", "origin", "main")
    drop_task(testbed.repo(), None, task, "over")

    ((_, outcome, closed),) = clean_up.prune(testbed.prepared_repo(), testbed.session())

    assert outcome == "closed"
    assert closed is not None
    assert closed.is_merged
    assert testbed.leftovers() == []


def test_a_workspace_that_cannot_be_closed_does_not_stop_the_others(
    testbed: WorkspaceTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [testbed.task() for _ in range(3)]
    made = [testbed.open(task).workspace for task in tasks]
    for task in tasks:
        drop_task(testbed.repo(), None, task, "over")

    def remove(home: object, path: str, **more: object) -> None:
        if path == made[1].path:
            raise PermissionError(13, "Permission denied", path)
        remove_checkout(home, path, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(closing, "remove_checkout", remove)
    outcomes = [outcome for _, outcome, _ in clean_up.prune(testbed.prepared_repo(), testbed.session())]
    monkeypatch.undo()

    assert outcomes[0] == outcomes[2] == "closed"
    assert "Permission denied" in outcomes[1]
    (left,) = records.list_workspaces(testbed.repo(), IN_TRANSITION)
    assert left.id == made[1].id


def test_an_interrupted_close_is_finished_by_the_next_command(testbed: WorkspaceTestbed) -> None:
    workspace = testbed.open().workspace
    repo = testbed.repo()
    records.update(repo, workspace, "closing", None, state=CLOSING, process={})
    lock = Path(workspace.path) / "odd"
    lock.write_text("x")

    done = clean_up.finish_interrupted(testbed.prepared_repo(), testbed.session())

    assert done == [f"finished removing {workspace.id}, which had been interrupted"]
    assert len(list_rescues(testbed.prepared_repo().common_dir)) == 1


def test_a_workspace_of_another_machine_is_not_closed(testbed: WorkspaceTestbed) -> None:
    workspace = testbed.open().workspace
    repo = testbed.repo()
    records.update(repo, workspace, "moved", None, machine="another")

    ((_, outcome, closed),) = clean_up.prune(testbed.prepared_repo(), testbed.session())

    assert (outcome, closed) == ("it belongs to another clone or machine", None)
    with pytest.raises(LandlaneError):
        find_workspace(testbed.prepared_repo(), workspace.id)
