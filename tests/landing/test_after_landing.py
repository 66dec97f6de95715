"""After a landing: the workspace is closed, dependants go on, others are told, and the whole is looked at."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from landlane.cli import command as cli_command
from landlane.cli.queue import run_queue
from landlane.errors import Malformed
from landlane.landing import after_landing as settling
from landlane.landing import queue
from landlane.landing import records as landings
from landlane.landing.decide import eject_entry
from landlane.landing.model import LANDED
from landlane.sessions import join as sessions
from landlane.sessions import notices
from landlane.sessions.notices import take_notices
from landlane.store import records
from landlane.tasks.add import Added, add_task
from landlane.tasks.model import NewTask
from landlane.tasks.pick import Picked, next_task
from landlane.tasks.records import get_task, list_tasks
from landlane.testing.repositories import git
from landlane.workspaces.close import close_workspace
from landlane.workspaces.open import open_workspace
from tests.support.landing import LandingTestbed

if TYPE_CHECKING:
    from landlane.workspaces.model import Workspace

pytestmark = pytest.mark.integration


def open_task(
    testbed: LandingTestbed, title: str, agent: str, *paths: str, after: tuple[str, ...] = ()
) -> Workspace:
    """A task in the hands of an agent, with a workspace for it."""
    repo = testbed.repo
    added = add_task(repo, None, NewTask(title=title, paths=paths, after=after), force=True)
    assert isinstance(added, Added)
    picked = next_task(repo, testbed.agent(agent))
    assert isinstance(picked, Picked)
    return open_workspace(testbed.prepared_repo, testbed.agent(agent), picked.task.id).workspace


def work(workspace: Workspace, files: dict[str, str]) -> None:
    for name, text in files.items():
        (Path(workspace.path) / name).write_text(text)
    git(Path(workspace.path), "add", "--all")
    git(Path(workspace.path), "commit", "--quiet", "-m", f"Write {', '.join(files)}")


def test_the_task_is_done_dependants_go_on_and_the_workspace_is_closed(testbed: LandingTestbed) -> None:
    testbed.configure("[]")
    workspace = open_task(testbed, "Write a", "ann", "a.txt")
    repo = testbed.repo
    add_task(repo, None, NewTask(title="Go on with b", after=("T1",)))
    work(workspace, {"a.txt": "x"})

    entry = testbed.submit_with_held_claims(workspace.branch)
    assert get_task(repo, "T2").state == "blocked"
    assert testbed.run() is None

    assert get_task(repo, "T1").state == "done"
    assert get_task(repo, "T2").state == "ready"
    assert not Path(workspace.path).exists()
    assert testbed.reload(entry).notes == [f"{workspace.id} is closed"]
    assert testbed.reload(entry).is_settled
    assert testbed.holders() == {}


def test_uncommitted_changes_in_the_workspace_are_saved(testbed: LandingTestbed) -> None:
    testbed.configure("[]")
    workspace = open_task(testbed, "Write a", "ann", "a.txt")
    work(workspace, {"a.txt": "x"})
    (Path(workspace.path) / "draft.txt").write_text("an idea")

    entry = testbed.submit_with_held_claims(workspace.branch)
    assert testbed.run() is None

    (note,) = testbed.reload(entry).notes
    assert "the rest of it saved as" in note
    assert not Path(workspace.path).exists()
    rescue = note.rpartition(" ")[2]
    listed = git(testbed.folder, "for-each-ref", "--format=%(refname)", "refs/landlane")
    assert rescue in listed


def test_workspace_removed_before_the_queue_runs_loses_nothing(testbed: LandingTestbed) -> None:
    """T37 with a workspace: its author closes it as soon as it has submitted."""
    testbed.configure("[]")
    workspace = open_task(testbed, "Write a", "ann", "a.txt")
    work(workspace, {"a.txt": "x"})
    entry = testbed.submit_with_held_claims(workspace.branch)
    close_workspace(testbed.prepared_repo, testbed.agent("ann"), workspace, force=True)
    sessions.leave(testbed.repo, testbed.agent("ann"))

    assert testbed.run() is None

    assert testbed.reload(entry).state == "landed"
    assert testbed.read_file("a.txt") == "x"


def test_commits_made_in_a_clone_land(testbed: LandingTestbed) -> None:
    testbed.configure("[]", "[workspace]\nkind = 'clone'\n")
    workspace = open_task(testbed, "Write a", "ann", "a.txt")
    assert workspace.kind == "clone"
    work(workspace, {"a.txt": "x"})

    entry = testbed.submit_with_held_claims(workspace.branch)
    assert testbed.run() is None

    assert testbed.reload(entry).state == "landed"
    assert not Path(workspace.path).exists()


def test_other_sessions_are_notified_once_that_their_paths_changed(testbed: LandingTestbed) -> None:
    testbed.configure("[]", "[landing.merge.files]\n'LOG' = 'union'\n", {"LOG": "", "a": "", "src/b": ""})
    testbed.branch("one", {"LOG": "x\n", "a": "x"})
    testbed.claim("ann", "LOG", is_shared=True)
    testbed.claim("ann", "a")
    testbed.claim("bob", "LOG", is_shared=True)
    testbed.claim("carl", "src/b")
    testbed.submit_with_held_claims("one")

    assert testbed.run() is None

    repo = testbed.repo
    commit = testbed.reload("L1").commit[:12]
    expected = [f"L1 of ann landed as {commit} and changed LOG: read it again"]
    assert take_notices(repo, testbed.agent("bob").id) == expected
    assert take_notices(repo, testbed.agent("bob").id) == []
    assert take_notices(repo, testbed.agent("carl").id) == []
    assert take_notices(repo, testbed.agent("ann").id) == []


@pytest.mark.slow
@pytest.mark.parametrize(("after", "tasks"), [("batch", 2), ("wave", 1)])
def test_integration_task_is_opened(testbed: LandingTestbed, after: str, tasks: int) -> None:
    whole = f"integrate = {{ title = 'Try it all', role = 'verify', check = 'true', after = '{after}' }}"
    testbed.configure("[]", f"batch = 2\n{whole}\n")
    for number in range(3):
        testbed.branch(f"b{number}", {f"f{number}": "x"}, f"Add f{number}")
        testbed.submit(f"b{number}", f"agent{number}")

    assert testbed.run() is None

    found = [task for task in list_tasks(testbed.repo) if "integration" in task.labels]
    assert len(found) == tasks
    assert {(task.role, task.check) for task in found} == {("verify", "true")}
    assert all(task.title.startswith("Try it all (") for task in found)
    assert "b2: Add f2" in found[-1].body


WHOLE = "integrate = { title = 'Try it all', after = 'wave' }\n"


def wholes(testbed: LandingTestbed) -> list[str]:
    """The bodies of the tasks for the whole."""
    return [task.body for task in list_tasks(testbed.repo) if "integration" in task.labels]


def test_a_wave_whose_last_entry_is_ejected_gets_its_task(testbed: LandingTestbed) -> None:
    testbed.configure("[]", f"gate = ['secret/**']\n{WHOLE}")
    for number, name in enumerate(["a", "b", "c", "secret/d"]):
        testbed.branch(f"b{number}", {name: "x"})
        testbed.submit(f"b{number}", f"agent{number}")
    assert testbed.run() is None
    assert testbed.states() == {"b0": "landed", "b1": "landed", "b2": "landed", "b3": "held"}
    assert wholes(testbed) == []

    eject_entry(testbed.prepared_repo, testbed.agent("agent3"), "L4", "not now")
    assert testbed.run() is None
    assert testbed.run() is None

    (body,) = wholes(testbed)
    assert [line.split()[1] for line in body.splitlines()[1:]] == ["L1", "L2", "L3"]


def test_the_wave_of_another_target_is_another(testbed: LandingTestbed) -> None:
    testbed.configure("[]", f"gate = ['secret/**']\n{WHOLE}")
    testbed.branch("held", {"secret/a": "x"})
    entry = testbed.submit("held")
    assert entry.state == "held"

    def put_elsewhere(tx: records.Transaction) -> None:
        document = records.lock(tx, "landing", entry.id)
        assert document is not None
        records.put(tx, "landing", {**document, "target": "next"}, "changed")

    testbed.repo.change(put_elsewhere)
    testbed.branch("one", {"a": "x"})
    assert testbed.land("one").state == "landed"

    assert len(wholes(testbed)) == 1


def test_the_landing_of_an_integration_task_opens_no_further_one(testbed: LandingTestbed) -> None:
    testbed.configure("[]", "integrate = { kind = 'code', after = 'wave' }\n")
    testbed.branch("one", {"a.txt": "a\n"})
    testbed.land("one")
    (task,) = [task for task in list_tasks(testbed.repo) if "integration" in task.labels]
    assert task.kind == "code"
    session = testbed.agent("dora")
    next_task(testbed.repo, session)
    testbed.branch(f"landlane/{task.id}-1/work", {"a.txt": "fixed\n"})
    testbed.claim("dora", "a.txt")
    testbed.submit_with_held_claims(f"landlane/{task.id}-1/work", "dora", task.id)

    testbed.run()
    testbed.run()

    found = [task.state for task in list_tasks(testbed.repo) if "integration" in task.labels]
    assert found == ["done"]


def test_settings_of_the_target_decide_whether_an_integration_task_is_opened(
    testbed: LandingTestbed,
) -> None:
    testbed.configure("[]", WHOLE)
    testbed.branch("one", {"a": "x"})
    testbed.submit("one")
    (testbed.folder / "landlane.toml").write_text("[landing]\nchecks = []\n")
    testbed._repo = None

    assert testbed.run() is None

    assert len(wholes(testbed)) == 1


def test_a_task_that_cannot_be_opened_fails_no_landing(
    testbed: LandingTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    testbed.configure("[]", WHOLE)
    testbed.branch("one", {"a": "x"})

    def refuse(*_: object) -> None:
        raise Malformed("the body is too long", code="TOO_LONG", hint="")

    with monkeypatch.context() as patch:
        patch.setattr(queue, "open_integration_task", refuse)
        assert testbed.land("one").state == "landed"
    assert any("the integration task was not added" in note for note in testbed.notes)
    assert testbed.run() is None

    assert len(wholes(testbed)) == 1


def test_integration_task_lists_the_latest_of_very_many_landings(testbed: LandingTestbed) -> None:
    testbed.configure("[]")
    testbed.branch("one", {"a": "x"})
    first = testbed.land("one")
    repo = testbed.repo

    def multiply(tx: records.Transaction) -> None:
        document = records.lock(tx, "landing", first.id)
        assert document is not None
        for _ in range(149):
            more = {"id": records.next_id(tx, "landing"), "subject": "x" * 2000}
            records.put(tx, "landing", {**document, **more}, "landed")

    repo.change(multiply)
    testbed.configure("[]", WHOLE)
    assert testbed.run() is None

    (body,) = wholes(testbed)
    lines = body.splitlines()
    assert (len(lines), lines[-1]) == (102, "and 50 more before them")
    assert lines[-2].startswith("- L150 one: xxx")
    assert landings.list_unintegrated(testbed.repo, "main") == []
    assert len(landings.list_landings(testbed.repo, (LANDED,))) == 150


class CommandCall:
    """What `queue run` needs of a command line."""

    def __init__(self, testbed: LandingTestbed) -> None:
        self.repo = testbed.repo
        self.terminal = self
        self.is_json = True
        self.answers: list[dict[str, Any]] = []

    def note(self, _: str) -> None:
        """Nobody watches."""

    def caller_name(self) -> str:
        return "runner"

    def answer(self, document: dict[str, Any], _: str, code: int = 0) -> int:
        self.answers.append(document)
        return code


def test_ended_entries_are_not_read_again(testbed: LandingTestbed, monkeypatch: pytest.MonkeyPatch) -> None:
    testbed.configure("[]")
    testbed.branch("one", {"a": "x"})
    assert testbed.land("one").state == "landed"
    testbed.branch("two", {"b": "x"})
    testbed.submit("two")
    session, repo = testbed.agent("ann").id, testbed.repo
    repo.change(lambda tx: notices.add_notice(tx, session, "read it again"))
    assert take_notices(repo, session) == ["read it again"]
    read: list[str] = []

    def parse(text: str) -> dict[str, Any]:
        found = json.loads(text)
        read.append(found["id"])
        return found

    monkeypatch.setattr(records, "json", SimpleNamespace(loads=parse, dumps=json.dumps))
    monkeypatch.setattr(cli_command, "stop_on_signals", lambda: None)

    settling.repair_submitted_refs(
        testbed.prepared_repo, settling.find_target(testbed.prepared_repo.home, testbed.repo.settings)
    )
    assert take_notices(repo, session) == []
    call = CommandCall(testbed)
    assert run_queue(call, drain=True, wait="") == 0  # pyright: ignore[reportArgumentType]

    assert set(read) == {"L2", "main"}
    assert [one["state"] for one in call.answers[0]["landings"]] == ["landed"]
