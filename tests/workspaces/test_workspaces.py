"""Workspaces as every store knows them: begun once, handed on, taken over, told in the journal."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landlane.errors import Held, NotAllowed
from landlane.journal import read as journal
from landlane.platform.process_identity import Process
from landlane.rescue.save import saved_work
from landlane.tasks.change import block_task
from landlane.values import as_dict
from landlane.workspaces import records as operations
from landlane.workspaces import recover
from tests.support.workspaces import Yard

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.contract


@pytest.fixture
def yard(repository: Path, store: str) -> Iterator[Yard]:
    """A fresh repository on each kind of store."""
    del store  # the repository points to it
    yard = Yard(repository)
    yield yard
    yard.end()


def kinds(yard: Yard) -> list[str]:
    return [
        entry.kind
        for entry in journal.read_entries(yard.repo())
        if entry.kind.startswith(("workspace.", "rescue."))
    ]


def gone(yard: Yard) -> dict[str, object]:
    """A process of this machine that has ended."""
    me = yard.repo().processes.current()
    return as_dict(Process(boot_id=me.boot_id, namespace=me.namespace, pid=2**22 - 3, started=me.started))


def test_every_step_is_in_the_journal(yard: Yard) -> None:
    workspace = yard.open().workspace
    Path(workspace.path, "loose.txt").write_text("loose\n")
    yard.close(workspace)

    entries = [
        entry
        for entry in journal.read_entries(yard.repo())
        if entry.kind.startswith(("workspace.", "rescue."))
    ]
    # What was written a moment before it is closed is looked at twice, and what is saved twice is kept once.
    forgotten = {entry.facts()["rescue"] for entry in entries if entry.kind == "rescue.forgotten"}
    assert [entry.kind for entry in entries if entry.facts().get("rescue") not in forgotten] == [
        "workspace.begun",
        "workspace.opened",
        "workspace.closing",
        "rescue.saved",
        "workspace.rescued",
        "workspace.closed",
    ]
    saved = {entry.facts()["rescue"] for entry in entries if entry.kind == "rescue.saved"}
    assert {one.id for one in saved_work(yard.repo().require_git())} == saved - forgotten


def test_ids_are_never_given_twice(yard: Yard) -> None:
    tasks = [yard.task() for _ in range(6)]
    for number in range(6):
        yard.session(f"a{number}")
    threads = [
        threading.Thread(target=yard.open, args=(task,), kwargs={"agent": f"a{number}"})
        for number, task in enumerate(tasks)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert sorted(one.id for one in yard.known()) == ["W1", "W2", "W3", "W4", "W5", "W6"]


def test_a_step_from_another_state_is_refused(yard: Yard) -> None:
    workspace = yard.open().workspace
    yard.close(workspace)

    with pytest.raises(NotAllowed) as raised:
        operations.change_state(yard.repo(), workspace, "closing", None, state="closing")

    assert raised.value.code == "WORKSPACE_BUSY"


def test_only_what_its_process_left_is_taken_over(yard: Yard) -> None:
    workspace = yard.open().workspace
    repo = yard.repo()
    me = as_dict(repo.processes.current())
    parent = {**me, "pid": 1, "started": repo.processes.identify(1).started}
    half = operations.change_state(repo, workspace, "closing", None, state="closing", process=parent)

    assert operations.take_over(repo, half, "closing") is None
    assert recover.mend(yard.site(), yard.session()) == []

    operations.change_state(repo, half, "closing", None, process=gone(yard))
    assert recover.mend(yard.site(), yard.session()) == [f"{workspace.id} was half closed, and is closed now"]


def test_a_workspace_is_held_as_long_as_its_session_lives(yard: Yard) -> None:
    workspace = yard.open(agent="bob").workspace

    assert operations.is_held(yard.repo(), workspace)
    yard.leave("bob")
    assert not operations.is_held(yard.repo(), workspace)
    assert yard.close(workspace).workspace.state == "closed"


def test_whoever_follows_adopts_and_the_former_is_held_off(yard: Yard) -> None:
    task = yard.task()
    yard.open(task, agent="bob")
    yard.leave("bob")
    block_task(yard.repo(), None, task, "looked into")  # so that it is the same attempt still

    adopted = yard.open(task).workspace

    assert adopted.agent == "ann"
    assert "workspace.adopted" in kinds(yard)
    with pytest.raises(Held):
        yard.close(adopted, agent="bob")
