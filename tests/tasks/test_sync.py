"""`task sync FILE` keeps a checklist and the queue equal, both ways, and shows what it cannot decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.app.open import open_repository
from landlane.tasks.sync_checklist import sync_checklist

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.shell import Answer, Shell

pytestmark = pytest.mark.acceptance


def write(shell: Shell, text: str) -> Path:
    path = shell.folder / "TASKS.md"
    path.write_bytes(text.encode())
    return path


def sync(shell: Shell, *words: str) -> tuple[str, Answer]:
    answer = shell.run_json("task", "sync", "TASKS.md", *words)
    return (shell.folder / "TASKS.md").read_bytes().decode(), answer


def finish(shell: Shell, task: str) -> None:
    shell.run_json("next", "--as", "ann")
    shell.run_json("done", task, "--as", "ann")


@pytest.mark.promise(
    "tasks.sync-both-ways", "A checklist and the queue become equal, and syncing again changes nothing."
)
def test_new_lines_become_tasks_and_done_tasks_are_ticked(shell: Shell) -> None:
    write(shell, "# Plan\n\nText.\n\n- [ ] Parse dates (kind: chore) (path: src/a.py)\n* [ ] Show them\n")

    text, answer = sync(shell)
    assert text == (
        "# Plan\n\nText.\n\n- [ ] Parse dates (kind: chore) (path: src/a.py) (T1)\n* [ ] Show them (T2)\n"
    )
    assert [task["paths"] for task in answer["added"]] == [["src/a.py"], []]
    finish(shell, "T1")
    text, answer = sync(shell)
    assert "- [x] Parse dates" in text
    assert answer["ticked"] == [5]

    again, answer = sync(shell)
    assert again == text
    assert not any((answer["added"], answer["ticked"], answer["edited"], answer["listed"], answer["notes"]))


def test_moved_and_reworded_lines_keep_their_task(shell: Shell) -> None:
    write(shell, "- [ ] One\n- [ ] Two\n")
    sync(shell)
    write(shell, "- [ ] Two, better (T2)\n\ntext\n- [ ] One (T1)\n")

    text, answer = sync(shell)

    assert text == "- [ ] Two, better (T2)\n\ntext\n- [ ] One (T1)\n"
    assert answer["edited"] == ["T2"]
    assert shell.run_json("task", "show", "T2")["task"]["title"] == "Two, better"
    shell.run_json("task", "edit", "T1", "--title", "One from the queue")
    assert "- [ ] One from the queue (T1)" in sync(shell)[0]


def test_edits_on_both_sides_are_a_conflict_until_a_side_is_chosen(shell: Shell) -> None:
    write(shell, "- [ ] One\n")
    sync(shell)
    shell.run_json("task", "edit", "T1", "--title", "From the queue")
    write(shell, "- [ ] From the file (T1)\n")

    for _ in range(2):
        text, answer = sync(shell)
        assert text == "- [ ] From the file (T1)\n"
        assert "From the queue" in answer["notes"][0]["text"]

    assert sync(shell, "--prefer", "queue")[0] == "- [ ] From the queue (T1)\n"


def test_duplicated_deleted_and_nested_lines(shell: Shell) -> None:
    write(shell, "- [ ] One\n  - [ ] Part of one\n- [ ] Two\n")
    sync(shell)
    write(shell, "- [ ] One (T1)\n  - [ ] Part of one (T2)\n- [ ] One (T1)\n- [ ] one\n")

    text, answer = sync(shell)

    assert text == "- [ ] One (T1)\n  - [ ] Part of one (T2)\n- [ ] One (T1)\n- [ ] one\n"
    said = [(note["line"], note["text"]) for note in answer["notes"]]
    assert said[0] == (3, "T1 is listed twice, first in line 1")
    assert said[1] == (4, "it has the same title as line 1; it is not added")
    assert said[2][1].startswith("the line of T3 is gone; the task stays")
    assert shell.run_json("task", "show", "T3")["task"]["state"] == "ready"
    assert len(sync(shell)[1]["notes"]) == 2, "a deleted line is reported once"


def test_line_breaks_and_code_blocks_stay_as_they_are(shell: Shell) -> None:
    write(shell, "- [ ] One\r\n```\r\n- [ ] an example\r\n```\r\nlast")

    assert sync(shell)[0] == "- [ ] One (T1)\r\n```\r\n- [ ] an example\r\n```\r\nlast"


def test_a_tick_is_not_believed_and_an_untick_undoes_nothing(shell: Shell) -> None:
    write(shell, "- [ ] One (kind: chore)\n- [ ] Two\n")
    sync(shell)
    finish(shell, "T1")
    sync(shell)
    write(shell, "- [ ] One (kind: chore) (T1)\n- [x] Two (T2)\n")

    text, answer = sync(shell, "--as", "bob")

    assert text == "- [ ] One (kind: chore) (T1)\n- [x] Two (T2)\n"
    assert [note["line"] for note in answer["notes"]] == [1, 2]
    assert "done needs evidence" in answer["notes"][1]["text"]
    assert shell.run_json("task", "show", "T2")["task"]["state"] == "ready"
    assert sync(shell, "--prefer", "queue")[0] == "- [x] One (kind: chore) (T1)\n- [ ] Two (T2)\n"


def test_assignees_paths_and_unknown_parts(shell: Shell) -> None:
    shell.run_json("join", "agent-2")
    write(shell, "- [ ] One (colour: red) @agent-2\n- [ ] Two @agent-9\n")

    text, answer = sync(shell)

    assert text == "- [ ] One (colour: red) @agent-2 (T1)\n- [ ] Two @agent-9 (T2)\n"
    one, two = (shell.run_json("task", "show", name)["task"] for name in ("T1", "T2"))
    assert (one["title"], one["assigned_to"]) == ("One", "agent-2")
    assert (two["title"], two["assigned_to"]) == ("Two", None)
    said = [note["text"] for note in answer["notes"]]
    assert said[0].startswith('unknown word "colour"')
    assert '"@agent-9" is not a known agent' in said[1]
    write(shell, text.replace(" @agent-2", ""))
    sync(shell)
    assert shell.run_json("task", "show", "T1")["task"]["assigned_to"] is None


def test_a_task_that_was_added_elsewhere_gets_a_line(shell: Shell) -> None:
    shell.run_json("task", "add", "From the queue", "--path", "src/a.py")
    write(shell, "- [ ] Mine")

    assert sync(shell)[0] == "- [ ] Mine (T2)\n- [ ] From the queue (path: src/a.py) (T1)\n"


def test_two_syncs_at_once_add_nothing_twice(shell: Shell) -> None:
    write(shell, "".join(f"- [ ] Item number {number}x\n" for number in range(20)))

    running = [shell.start("task", "sync", "TASKS.md") for _ in range(2)]
    for one in running:
        with one:
            assert one.end().exit == 0

    assert len(shell.run_json("task", "list")["tasks"]) == 20
    assert len(set((shell.folder / "TASKS.md").read_text().split("("))) == 21


def test_a_file_that_another_session_has_claimed_is_not_written(shell: Shell) -> None:
    path = write(shell, "- [ ] One\n")
    shell.run_json("claim", "TASKS.md", "--as", "ann")

    shell.run_error("CLAIM_HELD", "task", "sync", "TASKS.md", "--as", "bob", exit=3)

    assert path.read_text() == "- [ ] One\n"


def test_import_reports_unknown_words(shell: Shell) -> None:
    write(shell, "- [ ] One (path: a.py) (colour: red) @ann\n")

    answer = shell.run_json("task", "import", "TASKS.md")

    (task,) = answer["tasks"]
    assert (task["paths"], task["assigned_to"]) == (["a.py"], "ann")
    assert answer["notes"] == [{"line": 1, "text": "unknown word colour"}]


def test_a_sync_that_ended_before_it_wrote_the_file_loses_no_edit_of_the_queue(shell: Shell) -> None:
    path = write(shell, "- [ ] One\n")
    sync(shell)
    shell.run_json("task", "edit", "T1", "--title", "From the queue")
    shell.run_json("task", "add", "Two")
    repo = open_repository(str(shell.folder))
    try:
        sync_checklist(repo, None, str(path), path.read_text(), agents=())  # its new text is never written
    finally:
        repo.close()

    text, answer = sync(shell)

    assert text == "- [ ] From the queue (T1)\n- [ ] Two (T2)\n"
    assert answer["notes"] == []
    assert shell.run_json("task", "show", "T1")["task"]["title"] == "From the queue"


def test_an_agents_sync_takes_no_task_from_a_person_and_keeps_the_rest(shell: Shell) -> None:
    write(shell, "- [ ] Sign it @person:pat\n- [ ] Two\n")
    sync(shell)
    write(shell, "- [ ] Sign it @bob (T1)\n- [ ] Two, better (T2)\n")

    answer = shell.run_json("task", "sync", "TASKS.md", "--as", "bob")

    assert answer["edited"] == ["T2"]
    assert "T1 is for a person (person:pat)" in answer["notes"][0]["text"]
    assert shell.run_json("task", "show", "T1")["task"]["assigned_to"] == "person:pat"
