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
from landlane.landing.model import LANDED
from landlane.landing.outcomes import eject_entry
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
from tests.support.landing import Yard

if TYPE_CHECKING:
    from landlane.workspaces.model import Workspace

pytestmark = pytest.mark.integration


def open_task(yard: Yard, title: str, agent: str, *paths: str, after: tuple[str, ...] = ()) -> Workspace:
    """A task in the hands of an agent, with a workspace for it."""
    repo = yard.repo
    added = add_task(repo, None, NewTask(title=title, paths=paths, after=after), force=True)
    assert isinstance(added, Added)
    picked = next_task(repo, yard.agent(agent))
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
    repo = yard.repo
    add_task(repo, None, NewTask(title="Go on with b", after=("T1",)))
    work(workspace, {"a.txt": "x"})

    entry = yard.enter(workspace.branch)
    assert get_task(repo, "T2").state == "blocked"
    assert yard.run() is None

    assert get_task(repo, "T1").state == "done"
    assert get_task(repo, "T2").state == "ready"
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
    listed = git(yard.folder, "for-each-ref", "--format=%(refname)", "refs/landlane")
    assert rescue in listed


def test_a_workspace_torn_down_before_the_queue_comes_loses_nothing(yard: Yard) -> None:
    """T37 with a workspace: its author closes it as soon as it has submitted."""
    yard.configure("[]")
    workspace = open_task(yard, "Write a", "ann", "a.txt")
    work(workspace, {"a.txt": "x"})
    entry = yard.enter(workspace.branch)
    close_workspace(yard.site, yard.agent("ann"), workspace, force=True)
    sessions.leave(yard.repo, yard.agent("ann"))

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
    yard.configure("[]", "[landing.merge.files]\n'LOG' = 'union'\n", {"LOG": "", "a": "", "src/b": ""})
    yard.branch("one", {"LOG": "x\n", "a": "x"})
    yard.claim("ann", "LOG", is_shared=True)
    yard.claim("ann", "a")
    yard.claim("bob", "LOG", is_shared=True)
    yard.claim("carl", "src/b")
    yard.enter("one")

    assert yard.run() is None

    repo = yard.repo
    commit = yard.look("L1").commit[:12]
    expected = [f"L1 of ann landed as {commit} and changed LOG: read it again"]
    assert take_notices(repo, yard.agent("bob").id) == expected
    assert take_notices(repo, yard.agent("bob").id) == []
    assert take_notices(repo, yard.agent("carl").id) == []
    assert take_notices(repo, yard.agent("ann").id) == []


@pytest.mark.slow
@pytest.mark.parametrize(("after", "tasks"), [("batch", 2), ("wave", 1)])
def test_a_task_for_the_whole_is_opened(yard: Yard, after: str, tasks: int) -> None:
    whole = f"integrate = {{ title = 'Try it all', role = 'verify', check = 'true', after = '{after}' }}"
    yard.configure("[]", f"batch = 2\n{whole}\n")
    for number in range(3):
        yard.branch(f"b{number}", {f"f{number}": "x"}, f"Add f{number}")
        yard.submit(f"b{number}", f"agent{number}")

    assert yard.run() is None

    found = [task for task in list_tasks(yard.repo) if "integration" in task.labels]
    assert len(found) == tasks
    assert {(task.role, task.check) for task in found} == {("verify", "true")}
    assert all(task.title.startswith("Try it all (") for task in found)
    assert "b2: Add f2" in found[-1].body


WHOLE = "integrate = { title = 'Try it all', after = 'wave' }\n"


def wholes(yard: Yard) -> list[str]:
    """The bodies of the tasks for the whole."""
    return [task.body for task in list_tasks(yard.repo) if "integration" in task.labels]


def test_a_wave_whose_last_entry_is_ejected_gets_its_task(yard: Yard) -> None:
    yard.configure("[]", f"gate = ['secret/**']\n{WHOLE}")
    for number, name in enumerate(["a", "b", "c", "secret/d"]):
        yard.branch(f"b{number}", {name: "x"})
        yard.submit(f"b{number}", f"agent{number}")
    assert yard.run() is None
    assert yard.states() == {"b0": "landed", "b1": "landed", "b2": "landed", "b3": "held"}
    assert wholes(yard) == []

    eject_entry(yard.site, yard.agent("agent3"), "L4", "not now")
    assert yard.run() is None
    assert yard.run() is None

    (body,) = wholes(yard)
    assert [line.split()[1] for line in body.splitlines()[1:]] == ["L1", "L2", "L3"]


def test_the_wave_of_another_target_is_another(yard: Yard) -> None:
    yard.configure("[]", f"gate = ['secret/**']\n{WHOLE}")
    yard.branch("held", {"secret/a": "x"})
    entry = yard.submit("held")
    assert entry.state == "held"

    def put_elsewhere(tx: records.Transaction) -> None:
        document = records.lock(tx, "landing", entry.id)
        assert document is not None
        records.put(tx, "landing", {**document, "target": "next"}, "changed")

    yard.repo.change(put_elsewhere)
    yard.branch("one", {"a": "x"})
    assert yard.land("one").state == "landed"

    assert len(wholes(yard)) == 1


def test_the_settings_of_the_target_say_whether_there_is_a_task_for_the_whole(yard: Yard) -> None:
    yard.configure("[]", WHOLE)
    yard.branch("one", {"a": "x"})
    yard.submit("one")
    (yard.folder / "landlane.toml").write_text("[landing]\nchecks = []\n")
    yard._repo = None

    assert yard.run() is None

    assert len(wholes(yard)) == 1


def test_a_task_that_cannot_be_opened_fails_no_landing(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    yard.configure("[]", WHOLE)
    yard.branch("one", {"a": "x"})

    def refuse(*_: object) -> None:
        raise Malformed("the body is too long", code="TOO_LONG", hint="")

    with monkeypatch.context() as patch:
        patch.setattr(queue, "open_integration_task", refuse)
        assert yard.land("one").state == "landed"
    assert any("no task for the whole was opened" in note for note in yard.notes)
    assert yard.run() is None

    assert len(wholes(yard)) == 1


def test_a_whole_of_very_many_names_the_latest(yard: Yard) -> None:
    yard.configure("[]")
    yard.branch("one", {"a": "x"})
    first = yard.land("one")
    repo = yard.repo

    def multiply(tx: records.Transaction) -> None:
        document = records.lock(tx, "landing", first.id)
        assert document is not None
        for _ in range(149):
            more = {"id": records.next_id(tx, "landing"), "subject": "x" * 2000}
            records.put(tx, "landing", {**document, **more}, "landed")

    repo.change(multiply)
    yard.configure("[]", WHOLE)
    assert yard.run() is None

    (body,) = wholes(yard)
    lines = body.splitlines()
    assert (len(lines), lines[-1]) == (102, "and 50 more before them")
    assert lines[-2].startswith("- L150 one: xxx")
    assert landings.list_unintegrated(yard.repo, "main") == []
    assert len(landings.list_landings(yard.repo, (LANDED,))) == 150


class CommandCall:
    """What `queue run` needs of a command line."""

    def __init__(self, yard: Yard) -> None:
        self.repo = yard.repo
        self.terminal = self
        self.is_json = True
        self.answers: list[dict[str, Any]] = []

    def note(self, _: str) -> None:
        """Nobody watches."""

    def caller_name(self) -> str:
        return "runner"

    def answer(self, answer: dict[str, Any], _: str) -> None:
        self.answers.append(answer)


def test_what_is_over_is_not_read_again(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    yard.configure("[]")
    yard.branch("one", {"a": "x"})
    assert yard.land("one").state == "landed"
    yard.branch("two", {"b": "x"})
    yard.submit("two")
    session, repo = yard.agent("ann").id, yard.repo
    repo.change(lambda tx: notices.add_notice(tx, session, "read it again"))
    assert take_notices(repo, session) == ["read it again"]
    read: list[str] = []

    def parse(text: str) -> dict[str, Any]:
        found = json.loads(text)
        read.append(found["id"])
        return found

    monkeypatch.setattr(records, "json", SimpleNamespace(loads=parse, dumps=json.dumps))
    monkeypatch.setattr(cli_command, "heed_signals", lambda: None)

    settling.repair_submitted_refs(yard.site, settling.find_target(yard.site.home, yard.repo.settings))
    assert take_notices(repo, session) == []
    call = CommandCall(yard)
    assert run_queue(call, drain=True, wait="") == 0  # pyright: ignore[reportArgumentType]

    assert set(read) == {"L2", "main"}
    assert [one["state"] for one in call.answers[0]["landings"]] == ["landed"]
