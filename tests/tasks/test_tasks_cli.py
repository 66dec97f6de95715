"""The work queue as a user types it: every command, its JSON, its exit codes; bad input changes nothing."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

import pytest

from tests.support.shell import Shell, fingerprint
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.acceptance

FIELDS = {
    *(
        "id",
        "title",
        "body",
        "state",
        "owner",
        "session",
        "kind",
        "role",
        "priority",
        "paths",
        "after",
        "attempt",
    ),
    *("failures", "lapses", "max_attempts", "lineage", "branch", "head", "check", "output", "key", "labels"),
    *("why", "next_action", "result", "created", "taken"),
}


def test_a_task_from_its_beginning_to_its_end(shell: Shell) -> None:
    """One story: add, next, a report that is not believed, a commit, a landing, the next one."""
    added = shell.ask(
        "task", "add", "Parse dates", "--path", "src/dates.py", "--check", "test -s src/dates.py"
    )
    assert set(added) == {"ok", "task", "similar", "new"}
    assert set(added["task"]) == FIELDS
    assert (added["task"]["id"], added["task"]["state"], added["new"]) == ("T1", "ready", True)
    after = shell.ask("task", "add", "Release", "--after", "T1", "--kind", "chore", "--priority", "-2")[
        "task"
    ]
    assert (after["state"], after["after"], after["why"]) == ("blocked", ["T1"], "waits for T1")

    taken = shell.ask("next", "--as", "ann")
    assert set(taken) == {"ok", "task", "claims", "resumed", "feedback", "branches", "handoff", "context"}
    assert (taken["task"]["owner"], taken["task"]["branch"]) == ("ann", "landlane/T1-1/work")
    assert [claim["pattern"] for claim in taken["claims"]] == ["src/dates.py"]
    assert taken["claims"][0]["task"] == "T1"
    assert (taken["feedback"], taken["branches"]) == ([], [])
    assert shell.holders() == {"src/dates.py": "ann"}

    nothing = shell.ask("next", "--as", "bob", exit=5)
    assert (nothing["code"], nothing["task"], nothing["counts"]) == (
        "NO_TASK",
        None,
        {"active": 1, "blocked": 1},
    )

    reported = shell.ask("done", "T1", "--as", "ann")
    assert reported["task"]["state"] == "reported"
    assert [(one["name"], one["seen"]) for one in reported["evidence"]] == [("commit", False)]

    shell.git("switch", "--quiet", "-c", "landlane/T1-1/work")
    (shell.folder / "src").mkdir()
    (shell.folder / "src" / "dates.py").write_text("import re\n")
    shell.git("add", "src")
    shell.git("commit", "--quiet", "-m", "Dates")
    proved = shell.ask("done", "T1", "--as", "ann")
    assert [(one["name"], one["seen"]) for one in proved["evidence"]] == [
        ("commit", True),
        ("paths", True),
        ("check", True),
    ]
    assert proved["task"]["state"] == "landing"
    shell.git("switch", "--quiet", "main")
    shell.git("merge", "--quiet", "landlane/T1-1/work")
    assert shell.ask("done", "T1", "--as", "ann")["task"]["state"] == "done"
    assert shell.holders() == {}
    second = shell.ask("next", "--as", "bob")["task"]
    assert second["id"] == "T2"
    ended = shell.ask("done", "T2", "--as", "bob", "--result", "all good")
    assert (ended["task"]["state"], ended["task"]["result"], ended["evidence"]) == ("done", "all good", [])
    kinds = [kind for kind in shell.kinds() if kind.startswith("task.")]
    assert kinds[:5] == ["task.added", "task.added", "task.taken", "task.reported", "task.doubted"]


def test_a_failed_task_tells_its_successor_what_was_learned(shell: Shell) -> None:
    shell.ask("task", "add", "Parse dates", "--max-attempts", "2")
    shell.ask("next", "--as", "ann")
    shell.git("branch", "landlane/T1-1/work")
    failed = shell.ask("fail", "T1", "--why", "the RFC has two forms", "--as", "ann")["task"]
    assert (failed["state"], failed["failures"]) == ("ready", 1)
    again = shell.ask("next", "--as", "bob")
    assert again["branches"] == ["landlane/T1-1/work"]
    ((lesson),) = again["feedback"]
    assert (lesson["agent"], lesson["attempt"], lesson["why"]) == ("ann", 1, "the RFC has two forms")
    text = shell.tell("task", "show", "T1")
    assert "feedback      attempt 1, ann: the RFC has two forms" in text
    resumed = shell.ask("next", "--resume", "--as", "bob")
    assert (resumed["task"]["id"], resumed["resumed"], resumed["task"]["attempt"]) == ("T1", True, 2)
    assert shell.ask("next", "--as", "bob", exit=5)["in_hand"] == ["T1"]
    assert shell.ask("fail", "T1", "--why", "still", "--as", "bob")["task"]["state"] == "dead"
    assert [task["id"] for task in shell.ask("task", "list", "--state", "dead")["tasks"]] == ["T1"]
    assert shell.ask("task", "retry", "T1")["task"]["state"] == "ready"
    log = shell.ask("task", "log", "T1")["entries"]
    assert [entry["kind"] for entry in log] == [
        *("task.added", "task.taken", "task.failed", "task.taken", "task.failed", "task.retried"),
    ]
    assert "task.failed" in shell.tell("task", "log", "T1")


def test_what_looks_the_same_is_pointed_out_until_it_is_forced(shell: Shell) -> None:
    shell.ask("task", "add", "Add login page")
    answer = shell.refuse("TASK_SIMILAR", "task", "add", "Adding a login page", exit=3)
    assert answer["similar"] == [
        {
            "id": "T1",
            "title": "Add login page",
            "state": "ready",
            "score": 1.0,
            "reason": "100 % of the words in the titles are the same (login, page)",
        }
    ]
    ended = shell.run("task", "add", "Adding a login page")
    assert (ended.exit, ended.out) == (3, "")
    assert "T1 looks like the same work: Add login page" in ended.err
    assert shell.ask("task", "add", "Add logout page")["task"]["id"] == "T2"
    forced = shell.ask("task", "add", "Adding a login page", "--force")
    assert [one["id"] for one in forced["similar"]] == ["T1"]
    assert [one["id"] for one in shell.ask("task", "show", "T3")["similar"]] == ["T1"]
    assert [one["id"] for one in shell.ask("task", "show", "T1")["similar"]] == ["T3"]
    keyed = shell.ask("task", "add", "Login", "--key", "login")
    again = shell.ask("task", "add", "Something else", "--key", "login")
    assert (again["task"]["id"], again["task"]["title"], again["new"]) == (
        keyed["task"]["id"],
        "Login",
        False,
    )


def test_blocking_unblocking_dropping_and_rings(shell: Shell) -> None:
    for title in ("one", "two", "three"):
        shell.ask("task", "add", title)
    assert shell.ask("task", "block", "T1", "--why", "vendor")["task"]["why"] == "vendor"
    assert shell.ask("task", "unblock", "T1")["task"]["state"] == "ready"
    shell.ask("task", "after", "T2", "T1")
    shell.ask("task", "after", "T3", "T2")
    ring = shell.refuse("TASK_CYCLE", "task", "after", "T1", "T3")
    assert ring["cycle"] == ["T1", "T3", "T2", "T1"]
    assert "T1 → T3 → T2 → T1" in ring["message"]
    assert shell.ask("task", "drop", "T1", "--why", "cancelled")["task"]["state"] == "dropped"
    shell.refuse("TASK_WRONG_STATE", "task", "unblock", "T1", exit=6)
    assert shell.ask("task", "unblock", "T2")["task"]["state"] == "ready"


BAD: list[tuple[str, int, tuple[str, ...]]] = [
    ("NO_TITLE", 2, ("task", "add", " ")),
    ("UNKNOWN_TASK", 2, ("task", "add", "x", "--after", "T99")),
    ("UNKNOWN_TASK", 2, ("task", "add", "x", "--parent", "T99")),
    ("UNKNOWN_KIND", 2, ("task", "add", "x", "--kind", "video")),
    ("BAD_NUMBER", 2, ("task", "add", "x", "--priority", "high")),
    ("OUT_OF_RANGE", 2, ("task", "add", "x", "--max-attempts", "0")),
    ("UNREADABLE_FILE", 2, ("task", "add", "x", "--body", "not-there.md")),
    ("BAD_CALL", 2, ("task", "add")),
    ("UNKNOWN_TASK", 2, ("task", "show", "T99")),
    ("UNKNOWN_TASK", 2, ("task", "log", "T99")),
    ("UNKNOWN_TASK", 2, ("task", "after", "T1", "T99")),
    ("NO_REASON", 2, ("task", "block", "T1")),
    ("NO_REASON", 2, ("task", "drop", "T1", "--why", " ")),
    ("TASK_WRONG_STATE", 6, ("task", "retry", "T1")),
    ("UNKNOWN_STATE", 2, ("task", "list", "--state", "nearly")),
    ("UNREADABLE_FILE", 2, ("task", "import", "not-there.md")),
    ("BAD_DURATION", 2, ("next", "--wait", "soon")),
    ("TASK_NOT_YOURS", 4, ("done", "T1")),
    ("TASK_NOT_YOURS", 4, ("fail", "T1", "--why", "no")),
    ("UNKNOWN_TASK", 2, ("done", "T99")),
    ("NO_REASON", 2, ("fail", "T1")),
]


def test_bad_calls_say_what_is_wrong_and_change_nothing(shell: Shell) -> None:
    shell.ask("task", "add", "Parse dates")
    before = fingerprint(shell.state)
    for code, exit_code, words in BAD:
        answer = shell.refuse(code, *words, exit=exit_code)
        assert answer["hint"], words
    assert fingerprint(shell.state) == before


@pytest.mark.promise(
    "tasks.lists-are-read-once",
    "Importing a checklist that Landlane wrote or already imported adds nothing.",
)
def test_the_list_is_a_table_json_or_a_checklist_that_can_be_read_in_again(shell: Shell) -> None:
    assert shell.tell("task", "list").strip() == "0 tasks"
    shell.ask("task", "add", "Call f(x) (role: none)", "--label", "v1", "--body", "-", "--path", "src/**")
    shell.ask("task", "add", "Release @friday", "--after", "T1", "--role", "release", "--output", "out.txt")
    shell.ask("next", "--as", "ann")
    table = shell.tell("task", "list").splitlines()
    assert table[0] == "2 tasks"
    assert table[1].split() == ["id", "state", "owner", "priority", "attempt", "title", "why"]
    assert table[2].split()[:3] == ["T1", "active", "ann"]
    assert [task["id"] for task in shell.ask("task", "list", "--label", "v1")["tasks"]] == ["T1"]
    assert shell.ask("task", "list", "--state", "active", "--state", "done")["tasks"][0]["id"] == "T1"
    written = shell.tell("task", "list", "--markdown")
    assert "- [ ] T2 Release @friday (after: T1) (role: release)" in written
    (shell.folder / "TASKS.md").write_text(written)
    before = shell.position()
    assert shell.ask("task", "import", "TASKS.md") == {"ok": True, "tasks": [], "known": 2, "skipped": []}
    assert shell.position() == before
    (shell.folder / "TASKS.md").write_text(
        written + "- [ ] Party (after: T2)\n- [ ] Call f(x)  (label: v1)\n"
    )
    more = shell.ask("task", "import", "TASKS.md")
    assert [(task["id"], task["after"]) for task in more["tasks"]] == [("T3", ["T2"]), ("T4", [])]
    (shell.folder / "ring.md").write_text("- [ ] a (after: b)\n- [ ] b (after: a)\n- [ ] c\n")
    assert shell.refuse("TASK_CYCLE", "task", "import", "ring.md")["cycle"] == ["a", "b", "a"]
    assert len(shell.ask("task", "list")["tasks"]) == 4


def test_a_checklist_comes_from_standard_input_too(shell: Shell) -> None:
    ended = shell.run("task", "import", "-", "--json", stdin="- [ ] One\n- [ ] Two (after: One)\n")
    assert [task["title"] for task in ended.answer()["tasks"]] == ["One", "Two"]


@pytest.mark.parametrize("how", ["added", "released", "done"])
def test_next_wakes_while_it_waits(shell: Shell, how: str) -> None:
    if how == "released":
        shell.ask("task", "add", "x", "--path", "src")
        shell.ask("claim", "src/a.py", "--as", "ann")
    elif how == "done":
        shell.ask("task", "add", "first", "--kind", "chore")
        shell.ask("next", "--as", "ann")
        shell.ask("task", "add", "x", "--after", "T1")
    wakes = shell.state / "wake"
    with shell.start("next", "--wait", "40s", "--as", "bob", "--json") as waiting:
        wait_until(lambda: wakes.exists() and list(wakes.iterdir()))
        if how == "released":
            shell.ask("release", "--all", "--as", "ann")
        elif how == "done":
            shell.ask("done", "T1", "--as", "ann")
        else:
            shell.ask("task", "add", "x")
        began = time.monotonic()
        assert waiting.end(20).answer()["task"]["title"] == "x"
        assert time.monotonic() - began < 10


def test_a_waiting_next_ends_on_a_signal_and_leaves_nothing_behind(shell: Shell) -> None:
    wakes = shell.state / "wake"
    with shell.start("next", "--wait", "40s", "--as", "bob", "--json") as waiting:
        wait_until(lambda: wakes.exists() and list(wakes.iterdir()))
        waiting.signal(signal.SIGTERM)
        assert waiting.end().exit == 128 + signal.SIGTERM
    assert list(wakes.iterdir()) == []


def test_a_task_without_git_names_an_output_and_its_check(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    (folder / ".landlane").mkdir(parents=True)
    shell = Shell(folder)
    shell.ask("task", "add", "Record", "--output", "intro.wav", "--check", "grep -q RIFF intro.wav")
    shell.ask("next", "--as", "ann")
    assert shell.ask("done", "T1", "--as", "ann")["evidence"][0]["found"] == "intro.wav is not there"
    (folder / "intro.wav").write_text("RIFF")
    assert shell.ask("done", "T1", "--as", "ann")["task"]["state"] == "done"


def test_control_characters_never_reach_the_terminal(shell: Shell) -> None:
    shell.refuse("NO_TITLE", "task", "add", "x\x1b[31m")
    shell.ask("task", "add", "x", "--check", "printf '\\033[31mred'; false", "--kind", "chore")
    shell.ask("next", "--as", "ann")
    assert "\x1b" not in shell.tell("done", "T1", "--as", "ann")
    assert "\x1b" not in shell.tell("task", "show", "T1")
    assert "\x1b" not in shell.tell("task", "log", "T1")
    assert "\x1b" not in shell.tell("task", "list")
