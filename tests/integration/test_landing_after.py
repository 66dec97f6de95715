"""After a landing: the workspace is closed, dependants go on, others are told, and the whole is looked at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from interlock.domain.tasks import NewTask
from interlock.flows.closing import close_workspace
from interlock.flows.workspaces import open_workspace
from interlock.operations import sessions
from interlock.operations.notices import take_notices
from interlock.operations.picking import Picked, next_task
from interlock.operations.task_adding import Added, add_task
from interlock.operations.tasks import get_task, list_tasks
from interlock.testing.repositories import git
from tests.landing_support import Yard

if TYPE_CHECKING:
    from collections.abc import Iterator

    from interlock.domain.workspaces import Workspace


@pytest.fixture
def yard(repository: Path) -> Iterator[Yard]:
    found = Yard(repository)
    yield found
    found.close()


def open_task(yard: Yard, title: str, agent: str, *paths: str, after: tuple[str, ...] = ()) -> Workspace:
    """A task in the hands of an agent, with a workspace for it."""
    context = yard.house.context
    added = add_task(context, None, NewTask(title=title, paths=paths, after=after), force=True)
    assert isinstance(added, Added)
    picked = next_task(context, yard.agent(agent))
    assert isinstance(picked, Picked)
    return open_workspace(yard.site, yard.agent(agent), picked.task.id).workspace


def work(workspace: Workspace, files: dict[str, str]) -> None:
    for name, text in files.items():
        (Path(workspace.path) / name).write_text(text)
    git(Path(workspace.path), "add", "--all")
    git(Path(workspace.path), "commit", "--quiet", "-m", f"Write {', '.join(files)}")


def test_the_task_is_done_dependants_go_on_and_the_workspace_is_closed(yard: Yard) -> None:
    yard.configure("[]")
    workspace = open_task(yard, "Write a", "ann", "a.txt")
    context = yard.house.context
    add_task(context, None, NewTask(title="Go on with b", after=("T1",)))
    work(workspace, {"a.txt": "x"})

    entry = yard.enter(workspace.branch)
    assert get_task(context, "T2").state == "blocked"
    assert yard.run() is None

    assert get_task(context, "T1").state == "done"
    assert get_task(context, "T2").state == "ready"
    assert not Path(workspace.path).exists()
    assert yard.look(entry).notes == [f"{workspace.id} is closed"]
    assert yard.look(entry).is_settled
    assert yard.holders() == {}


def test_what_was_not_committed_in_the_workspace_is_saved(yard: Yard) -> None:
    yard.configure("[]")
    workspace = open_task(yard, "Write a", "ann", "a.txt")
    work(workspace, {"a.txt": "x"})
    (Path(workspace.path) / "draft.txt").write_text("an idea")

    entry = yard.enter(workspace.branch)
    assert yard.run() is None

    (note,) = yard.look(entry).notes
    assert "the rest of it saved as" in note
    assert not Path(workspace.path).exists()
    rescue = note.rpartition(" ")[2]
    listed = git(yard.folder, "for-each-ref", "--format=%(refname)", "refs/interlock")
    assert rescue in listed


def test_a_workspace_torn_down_before_the_queue_comes_loses_nothing(yard: Yard) -> None:
    """T37 with a workspace: its author closes it as soon as it has submitted."""
    yard.configure("[]")
    workspace = open_task(yard, "Write a", "ann", "a.txt")
    work(workspace, {"a.txt": "x"})
    entry = yard.enter(workspace.branch)
    close_workspace(yard.site, yard.agent("ann"), workspace, force=True)
    sessions.leave(yard.house.context, yard.agent("ann"))

    assert yard.run() is None

    assert yard.look(entry).state == "landed"
    assert yard.at("a.txt") == "x"


def test_what_was_committed_in_a_clone_lands(yard: Yard) -> None:
    yard.configure("[]", "[workspace]\nkind = 'clone'\n")
    workspace = open_task(yard, "Write a", "ann", "a.txt")
    assert workspace.kind == "clone"
    work(workspace, {"a.txt": "x"})

    entry = yard.enter(workspace.branch)
    assert yard.run() is None

    assert yard.look(entry).state == "landed"
    assert not Path(workspace.path).exists()


def test_others_are_told_once_that_their_paths_were_changed_under_them(yard: Yard) -> None:
    yard.configure("[]", "[hot]\n'LOG' = 'union'\n", {"LOG": "", "a": "", "src/b": ""})
    yard.branch("one", {"LOG": "x\n", "a": "x"})
    yard.claim("ann", "LOG", is_shared=True)
    yard.claim("ann", "a")
    yard.claim("bob", "LOG", is_shared=True)
    yard.claim("carl", "src/b")
    yard.enter("one")

    assert yard.run() is None

    context = yard.house.context
    commit = yard.look("L1").commit[:12]
    expected = [f"L1 of ann landed as {commit} and changed LOG: read it again"]
    assert take_notices(context, yard.agent("bob").id) == expected
    assert take_notices(context, yard.agent("bob").id) == []
    assert take_notices(context, yard.agent("carl").id) == []
    assert take_notices(context, yard.agent("ann").id) == []


@pytest.mark.parametrize(("after", "tasks"), [("batch", 2), ("wave", 1)])
def test_a_task_for_the_whole_is_opened(yard: Yard, after: str, tasks: int) -> None:
    whole = f"integrate = {{ title = 'Try it all', role = 'tester', check = 'true', after = '{after}' }}"
    yard.configure("[]", f"batch = 2\n{whole}\n")
    for number in range(3):
        yard.branch(f"b{number}", {f"f{number}": "x"}, f"Add f{number}")
        yard.submit(f"b{number}", f"agent{number}")

    assert yard.run() is None

    found = [task for task in list_tasks(yard.house.context) if "integration" in task.labels]
    assert len(found) == tasks
    assert {(task.role, task.check) for task in found} == {("tester", "true")}
    assert all(task.title.startswith("Try it all (") for task in found)
    assert "b2: Add f2" in found[-1].body
