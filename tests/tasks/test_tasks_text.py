"""What the commands for tasks print, pinned line by line; commits and times are masked."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from landlane.tasks.pick import NothingReady
from landlane.tasks.text import why_no_task
from tests.support.snapshots import check_snapshot

if TYPE_CHECKING:
    from tests.support.shell import Shell

pytestmark = pytest.mark.acceptance

MASKS = (
    (r"\b[0-9a-f]{8}\b", "COMMIT"),
    (r"\((under )?\d+ s\)", "(SECONDS)"),
    (r"\b\d\d:\d\d\b", "HH:MM"),
    (r"\b\d+ s ago", "N s ago"),
    (r"HH:MM:\d\d", "HH:MM:SS"),
    (r"\b[0-9a-f]{12}\b", "HASH"),
)


class Transcript:
    """Commands and what they print, as a person sees it."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._lines: list[str] = []

    def run(self, *words: str) -> None:
        ended = self._shell.run(*words)
        call = " ".join(word if re.fullmatch(r"[\w./:-]+", word) else f"'{word}'" for word in words)
        self._lines += [f"$ landlane {call}" + (f"  → {ended.exit}" if ended.exit else "")]
        self._lines += [text.rstrip("\n") for text in (ended.err, ended.out) if text]

    def check(self, name: str) -> None:
        text = "\n".join(self._lines)
        for pattern, mask in MASKS:
            text = re.sub(pattern, mask, text)
        check_snapshot(f"tasks/snapshots/{name}.txt", text)


def commit(shell: Shell, branch: str, **files: str) -> None:
    shell.git("switch", "--quiet", "-C", branch)
    for name, text in files.items():
        (shell.folder / name).write_text(text)
    shell.git("add", "--all")
    shell.git("commit", "--quiet", "-m", "Work")


def test_adding_editing_and_listing(shell: Shell) -> None:
    page = Transcript(shell)
    page.run("task", "list")
    page.run("task", "add", "List users", "--path", "src/api.py", "--check", "true")
    page.run("task", "add", "Charge cards", "--kind", "chore")
    page.run("task", "add", "Document payments", "--path", "docs/pay.md", "--after", "T1", "--after", "T2")
    page.run("task", "add", "List the users", "--path", "src/api.py")
    page.run("task", "add", "Add a health check", "--path", "src/api.py")
    page.run("task", "edit", "T3", "--title", "Document all payments", "--priority", "2")
    page.run("task", "edit", "T3")
    page.run("next", "--as", "ann")
    page.run("next", "--as", "bob")
    page.run("done", "T2", "--as", "bob")
    page.run("task", "list")
    page.run("task", "list", "--all", "--as", "ann")
    page.run("task", "list", "--state", "needs-yuo")
    page.run("task", "show", "T40")
    page.run("task", "show", "t33")
    page.run("done", "T1", "--as", "bob")
    page.run("task", "edit", "T1", "--path", "src/app.py")
    page.check("add-and-list")


def test_next_done_and_fail(shell: Shell) -> None:
    page = Transcript(shell)
    page.run("next", "--as", "ann")
    shell.run_json("task", "add", "List users", "--path", "api.py", "--check", "grep users api.py")
    shell.run_json("task", "add", "Add a health check", "--path", "api.py")
    page.run("next", "--as", "ann")
    page.run("next", "--as", "ann")
    page.run("next", "--as", "bob")
    page.run("done", "T1", "--as", "ann")
    commit(shell, "landlane/T1-1/work", **{"api.py": "users", "Makefile": "all:"})
    page.run("done", "T1", "--as", "ann")
    shell.git("rm", "--quiet", "Makefile")
    shell.git("commit", "--quiet", "--amend", "-m", "Work")
    page.run("done", "T1", "--as", "ann")
    shell.run_json("task", "add", "Ask the API", "--kind", "chore")
    for agent in ("ann", "bob"):
        page.run("next", "--as", agent)
        page.run("fail", "T3", "--why", "the API has no such endpoint", "--as", agent)
    page.run("task", "list")
    page.run("task", "list", "--state", "needs-you", "--as", "ann")
    page.check("next-done-fail")


def test_a_task_says_what_it_waits_for_and_how_often_it_was_tried(shell: Shell) -> None:
    shell.run_json("task", "add", "One", "--path", "a", "--kind", "chore")
    shell.run_json("task", "add", "Two", "--path", "b", "--after", "T1")
    shell.run_json("task", "add", "Three", "--path", "a/b")
    shell.run_json("next", "--as", "ann")
    one, two, three = shell.run_json("task", "list")["tasks"]
    assert (one["tries"], one["waits_for"]) == ({"charged": 1, "limit": 3}, [])
    assert [(wait["kind"], wait["id"]) for wait in two["waits_for"]] == [("task", "T1")]
    assert [(wait["kind"], wait["path"], wait["holder"]) for wait in three["waits_for"]] == [
        ("claim", "a", "ann")
    ]
    assert three["tries"] == {"charged": 0, "limit": 3}


def test_an_edit_is_recorded_and_its_values_are_checked(shell: Shell) -> None:
    shell.run_json("task", "add", "One", "--path", "a")
    edited = shell.run_json("task", "edit", "T1", "--title", "Another one", "--priority", "-3", "--path", "b")
    task = edited["task"]
    assert (task["title"], task["priority"], task["paths"]) == ("Another one", -3, ["b"])
    assert "task.edited" in shell.kinds()
    shell.run_error("OUT_OF_RANGE", "task", "edit", "T1", "--priority", "5000")
    shell.run_error("BAD_NUMBER", "task", "edit", "T1", "--priority", "high")


def test_showing_a_task_its_log_its_parts_and_its_handoffs(shell: Shell) -> None:
    page = Transcript(shell)
    (shell.folder / "body.md").write_text("Refund an order in full or in part.\n\n- keep the audit trail\n")
    (shell.folder / "parts.md").write_text("# Parts\n- [ ] Card (kind: chore)\n- [ ] Bank (kind: chore)\n")
    words = ("--path", "src/refund.py", "--check", "true", "--body", "body.md", "--priority", "2")
    shell.run_json("task", "add", "Refund orders", *words, "--label", "budget:1.25", "--as", "lead")
    shell.run_json("task", "add", "Document payments", "--after", "T1", "--kind", "chore")
    page.run("task", "show", "t1")
    shell.run_json("next", "--as", "ann")
    shell.run_json("usage", "add", "--task", "T1", "--attempt", "1", "--cost", "0.51", "--agent", "ann")
    shell.run_json("fail", "T1", "--why", "no such endpoint", "--as", "ann")
    page.run("task", "show", "T1")
    shell.run_json("next", "--as", "ann")
    page.run("handoff", "T1", "--to", "bob", "--next", "write the test", "--assumption", "UTC", "--as", "ann")
    page.run("handoff")
    page.run("handoff", "show", "T1")
    page.run("handoff", "accept", "T1", "--as", "bob")
    page.run("task", "show", "T1", "--as", "bob")
    page.run("handoff", "T1", "--to", "cid", "--next", "land it", "--as", "bob")
    page.run("handoff", "decline", "T1", "--why", "no time", "--as", "cid")
    page.run("task", "log", "T1")
    page.run("task", "split", "T1", "parts.md", "--policy", "any", "--deadline", "2h", "--as", "lead")
    page.run("task", "split", "T1", "parts.md", "--policy", "any", "--deadline", "2h", "--as", "lead")
    page.run("task", "parts")
    page.run("task", "show", "T1")
    shell.run_json("next", "--as", "ann")
    shell.run_json("done", "T3", "--as", "ann", "--result", "cards are refunded")
    page.run("task", "parts", "T1")
    page.run("task", "parts")
    page.check("show")


@pytest.mark.parametrize(("number", "text"), [(1, "1 needs a person"), (2, "2 need a person")])
def test_why_there_is_no_task_has_the_right_number(number: int, text: str) -> None:
    assert why_no_task(NothingReady(counts={"waiting_for_person": number}, held_up=())) == text
