"""Pruning: every finished or forsaken workspace ends removed, rescued, or listed with a reason."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landlane.errors import LandlaneError
from landlane.git.remove_checkout import remove_checkout
from landlane.rescue.save import saved_work
from landlane.tasks.change import drop_task
from landlane.workspaces import close as closing
from landlane.workspaces import prune, records, recover
from landlane.workspaces.locate import find_workspace
from tests.support.git import git
from tests.support.workspaces import KINDS, Squatter, Yard, add_remote, commit_file

if TYPE_CHECKING:
    from landlane.workspaces.model import Workspace

pytestmark = pytest.mark.integration

MANY = 20


def finish(yard: Yard, number: int, kind: str) -> Workspace:
    """A finished workspace, each in its own sorry state."""
    task = yard.task()
    workspace = yard.open(task, agent=f"agent{number}", kind=kind).workspace
    path = Path(workspace.path)
    state = number % 5
    if state == 1:
        (path / "loose.txt").write_text("loose\n")
    elif state == 2:
        commit_file(path, f"merged-{number}.txt", "merged\n")
        git(yard.repository, "fetch", "--quiet", str(path), "HEAD")
        git(yard.repository, "merge", "--quiet", "--squash", "FETCH_HEAD")
        git(yard.repository, "commit", "--quiet", "-m", f"Squash {number}")
    elif state == 3:
        private = path / ".git" if kind == "clone" else yard.repository / ".git" / "worktrees" / path.name
        (private / "index.lock").write_text("")  # its agent died in the middle of something
    elif state == 4:
        git(path, "checkout", "--quiet", "--detach")
        commit_file(path, "lone.txt", f"{number}\n")
    drop_task(yard.repo(), None, task, "over")
    yard.leave(f"agent{number}")
    return workspace


@pytest.mark.slow
def test_prune_ends_every_finished_workspace_or_says_why_not(yard: Yard, tmp_path: Path) -> None:
    module = tmp_path / "module"
    git(tmp_path, "init", "--quiet", str(module))
    commit_file(module, "inner.txt", "inner\n")
    git(yard.repository, "submodule", "--quiet", "add", str(module), "vendor")
    git(yard.repository, "commit", "--quiet", "-m", "With a submodule")
    finished = [finish(yard, number, KINDS[number // 5 % 2]) for number in range(MANY)]
    at_work = yard.open(agent="bob").workspace
    busy = finished[0]
    with Squatter(busy.path):
        dry = prune.prune(yard.site(), yard.session(), is_dry=True)
        assert [outcome for _, outcome, _ in dry].count("would be closed") == MANY
        found = {
            one.id: (outcome, closed) for one, outcome, closed in prune.prune(yard.site(), yard.session())
        }

    assert len(found) == MANY + 1
    assert found[at_work.id][0] == "its session lives"
    assert "live process" in found[busy.id][0]
    for one in finished[1:]:
        outcome, closed = found[one.id]
        assert closed is not None, outcome
        assert not Path(one.path).exists()
        number = finished.index(one)
        assert bool(closed.rescue) == (number % 5 in (1, 4)), (number, outcome)
    assert {one.id for one in yard.known()} == {at_work.id, busy.id}


def test_prune_knows_what_was_merged_at_the_remote(yard: Yard) -> None:
    remote = add_remote(yard.repository)
    task = yard.task()
    workspace = yard.open(task).workspace
    commit_file(workspace.path, "work.txt", "work\n")
    git(workspace.path, "push", "--quiet", "origin", "HEAD:refs/heads/topic")
    colleague = remote.with_name("colleague")
    git(remote.parent, "clone", "--quiet", str(remote), str(colleague))
    git(colleague, "merge", "--quiet", "--squash", "origin/topic")
    git(colleague, "commit", "--quiet", "-m", "Squashed")
    git(colleague, "push", "--quiet", "origin", "main")
    drop_task(yard.repo(), None, task, "over")

    ((_, outcome, closed),) = prune.prune(yard.site(), yard.session())

    assert outcome == "closed"
    assert closed is not None
    assert closed.is_merged
    assert yard.leftovers() == []


def test_one_that_fails_does_not_stop_the_others(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [yard.task() for _ in range(3)]
    made = [yard.open(task).workspace for task in tasks]
    for task in tasks:
        drop_task(yard.repo(), None, task, "over")

    def remove(home: object, path: str, **more: object) -> None:
        if path == made[1].path:
            raise PermissionError(13, "Permission denied", path)
        remove_checkout(home, path, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(closing, "remove_checkout", remove)
    outcomes = [outcome for _, outcome, _ in prune.prune(yard.site(), yard.session())]
    monkeypatch.undo()

    assert outcomes[0] == outcomes[2] == "closed"
    assert "Permission denied" in outcomes[1]
    (left,) = records.list_interrupted(yard.repo())
    assert left.id == made[1].id


def test_what_was_half_closed_is_closed_by_the_next_look(yard: Yard) -> None:
    workspace = yard.open().workspace
    repo = yard.repo()
    records.change_state(repo, workspace, "closing", None, state="closing", process={})
    lock = Path(workspace.path) / "odd"
    lock.write_text("x")

    done = recover.mend(yard.site(), yard.session())

    assert done == [f"{workspace.id} was half closed, and is closed now"]
    assert len(saved_work(yard.site())) == 1


def test_a_workspace_of_another_machine_is_not_closed(yard: Yard) -> None:
    workspace = yard.open().workspace
    repo = yard.repo()
    records.change_state(repo, workspace, "moved", None, machine="another")

    ((_, outcome, closed),) = prune.prune(yard.site(), yard.session())

    assert (outcome, closed) == ("it belongs to another clone or machine", None)
    with pytest.raises(LandlaneError):
        find_workspace(yard.site(), workspace.id)
