"""Workspaces as every store knows them: begun once, handed on, taken over, told in the journal."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landlane.errors import Held, NotAllowed
from landlane.journal import read as journal
from landlane.platform.process import Process
from landlane.rescue.refs import list_rescues
from landlane.tasks.change import block_task
from landlane.values import as_dict
from landlane.workspaces import clean_up, records
from landlane.workspaces.model import CLOSING
from tests.support.workspaces import WorkspaceTestbed

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.contract


@pytest.fixture
def testbed(repository: Path, store: str) -> Iterator[WorkspaceTestbed]:
    """A fresh repository on each kind of store."""
    del store  # the repository points to it
    testbed = WorkspaceTestbed(repository)
    yield testbed
    testbed.end()


def kinds(testbed: WorkspaceTestbed) -> list[str]:
    return [
        entry.kind
        for entry in journal.read_entries(testbed.repo())
        if entry.kind.startswith(("workspace.", "rescue."))
    ]


def gone(testbed: WorkspaceTestbed) -> dict[str, object]:
    """A process of this machine that has ended."""
    me = testbed.repo().processes.current()
    return as_dict(Process(boot_id=me.boot_id, namespace=me.namespace, pid=2**22 - 3, started=me.started))


def test_every_step_is_in_the_journal(testbed: WorkspaceTestbed) -> None:
    workspace = testbed.open().workspace
    Path(workspace.path, "loose.txt").write_text("loose\n")
    testbed.close(workspace)

    entries = [
        entry
        for entry in journal.read_entries(testbed.repo())
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
    assert {one.id for one in list_rescues(testbed.repo().require_git().common_dir)} == saved - forgotten


def test_ids_are_never_given_twice(testbed: WorkspaceTestbed) -> None:
    tasks = [testbed.task() for _ in range(6)]
    for number in range(6):
        testbed.session(f"a{number}")
    threads = [
        threading.Thread(target=testbed.open, args=(task,), kwargs={"agent": f"a{number}"})
        for number, task in enumerate(tasks)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert sorted(one.id for one in testbed.workspaces()) == ["W1", "W2", "W3", "W4", "W5", "W6"]


def test_a_change_from_another_state_is_refused(testbed: WorkspaceTestbed) -> None:
    workspace = testbed.open().workspace
    testbed.close(workspace)

    with pytest.raises(NotAllowed) as raised:
        records.update(testbed.repo(), workspace, "closing", None, state=CLOSING)

    assert raised.value.code == "WORKSPACE_BUSY"


def test_only_a_closing_whose_process_has_ended_is_taken_over(testbed: WorkspaceTestbed) -> None:
    workspace = testbed.open().workspace
    repo = testbed.repo()
    me = as_dict(repo.processes.current())
    parent = {**me, "pid": 1, "started": repo.processes.identify(1).started}
    half = records.update(repo, workspace, "closing", None, state=CLOSING, process=parent)

    assert records.take_over(repo, half) is None
    assert clean_up.finish_interrupted(testbed.prepared_repo(), testbed.session()) == []

    records.update(repo, half, "closing", None, process=gone(testbed))
    assert clean_up.finish_interrupted(testbed.prepared_repo(), testbed.session()) == [
        f"finished removing {workspace.id}, which had been interrupted"
    ]


def test_a_workspace_is_held_as_long_as_its_session_lives(testbed: WorkspaceTestbed) -> None:
    workspace = testbed.open(agent="bob").workspace

    assert records.is_held(testbed.repo(), workspace)
    testbed.leave("bob")
    assert not records.is_held(testbed.repo(), workspace)
    assert testbed.close(workspace).workspace.state == "closed"


def test_the_next_session_adopts_a_workspace_and_the_former_is_refused(testbed: WorkspaceTestbed) -> None:
    task = testbed.task()
    testbed.open(task, agent="bob")
    testbed.leave("bob")
    block_task(testbed.repo(), None, task, "looked into")  # so that it is the same attempt still

    adopted = testbed.open(task).workspace

    assert adopted.agent == "ann"
    assert "workspace.adopted" in kinds(testbed)
    with pytest.raises(Held):
        testbed.close(adopted, agent="bob")
