"""The work queue as a user types it: every command, its JSON, its exit codes; bad input changes nothing."""

from __future__ import annotations

import re
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
    *("why", "next_action", "result", "created", "taken", "tries", "waits_for"),
    *("assigned_to", "fixes_target"),
}


def test_a_task_from_its_beginning_to_its_end(shell: Shell) -> None:
    """One story: add, next, a report that is not believed, a commit, a landing, the next one."""
    added = shell.run_json(
        "task", "add", "Parse dates", "--path", "src/dates.py", "--check", "test -s src/dates.py"
    )
    assert set(added) == {"ok", "task", "similar", "new"}
    assert set(added["task"]) == FIELDS
    assert (added["task"]["id"], added["task"]["state"], added["new"]) == ("T1", "ready", True)
    after = shell.run_json("task", "add", "Release", "--after", "T1", "--kind", "chore", "--priority", "-2")[
        "task"
    ]
    assert (after["state"], after["after"], after["why"]) == ("blocked", ["T1"], "waits for T1")

    taken = shell.run_json("next", "--as", "ann")
    assert set(taken) == {
        "ok",
        "task",
        "claims",
        "resumed",
        "feedback",
        "rules",
        "branches",
        "handoff",
        "context",
    }
    assert (taken["task"]["owner"], taken["task"]["branch"]) == ("ann", "landlane/T1-1/work")
    assert [claim["pattern"] for claim in taken["claims"]] == ["src/dates.py"]
    assert taken["claims"][0]["task"] == "T1"
    assert (taken["feedback"], taken["branches"]) == ([], [])
    assert shell.holders() == {"src/dates.py": "ann"}

    nothing = shell.run_json("next", "--as", "bob", exit=5)
    assert (nothing["code"], nothing["task"], nothing["counts"]) == (
        "NO_TASK",
        None,
        {"active": 1, "blocked": 1},
    )

    reported = shell.run_error("EVIDENCE_MISSING", "done", "T1", "--as", "ann", exit=6)
    assert reported["task"]["state"] == "reported"
    assert [(one["name"], one["seen"]) for one in reported["evidence"]] == [("commit", False)]

    shell.git("switch", "--quiet", "-c", "landlane/T1-1/work")
    (shell.folder / "src").mkdir()
    (shell.folder / "src" / "dates.py").write_text("import re\n")
    shell.git("add", "src")
    shell.git("commit", "--quiet", "-m", "Dates")
    proved = shell.run_json("done", "T1", "--as", "ann")
    assert [(one["name"], one["seen"]) for one in proved["evidence"]] == [
        ("commit", True),
        ("paths", True),
        ("check", True),
    ]
    assert proved["task"]["state"] == "landing"
    shell.git("switch", "--quiet", "main")
    shell.git("merge", "--quiet", "landlane/T1-1/work")
    assert shell.run_json("done", "T1", "--as", "ann")["task"]["state"] == "done"
    assert shell.holders() == {}
    second = shell.run_json("next", "--as", "bob")["task"]
    assert second["id"] == "T2"
    ended = shell.run_json("done", "T2", "--as", "bob", "--result", "all good")
    assert (ended["task"]["state"], ended["task"]["result"], ended["evidence"]) == ("done", "all good", [])
    kinds = [kind for kind in shell.kinds() if kind.startswith("task.")]
    assert kinds[:5] == ["task.added", "task.added", "task.taken", "task.reported", "task.doubted"]


def test_a_failed_task_passes_its_lesson_to_the_next_owner(shell: Shell) -> None:
    shell.run_json("config", "set", "retries.last", "fail")
    shell.git("add", "landlane.toml")
    shell.git("commit", "--quiet", "-m", "Fail after the last attempt")
    shell.run_json("task", "add", "Parse dates", "--max-attempts", "2")
    shell.run_json("next", "--as", "ann")
    shell.git("branch", "landlane/T1-1/work")
    failed = shell.run_json("fail", "T1", "--why", "the RFC has two forms", "--as", "ann")["task"]
    assert (failed["state"], failed["failures"]) == ("ready", 1)
    again = shell.run_json("next", "--as", "bob")
    assert again["branches"] == ["landlane/T1-1/work"]
    ((lesson),) = again["feedback"]
    assert (lesson["agent"], lesson["attempt"], lesson["why"]) == ("ann", 1, "the RFC has two forms")
    text = shell.run_text("task", "show", "T1")
    assert re.search(r"\n  1  ✗ ann   \d\d:\d\d–\d\d:\d\d   the RFC has two forms\n", text)
    resumed = shell.run_json("next", "--resume", "--as", "bob")
    assert (resumed["task"]["id"], resumed["resumed"], resumed["task"]["attempt"]) == ("T1", True, 2)
    assert shell.run_json("next", "--as", "bob", exit=5)["in_hand"] == ["T1"]
    assert shell.run_json("fail", "T1", "--why", "still", "--as", "bob")["task"]["state"] == "dead"
    assert [task["id"] for task in shell.run_json("task", "list", "--state", "dead")["tasks"]] == ["T1"]
    assert shell.run_json("task", "retry", "T1")["task"]["state"] == "ready"
    log = shell.run_json("task", "log", "T1")["entries"]
    assert [entry["kind"] for entry in log] == [
        *("task.added", "task.taken", "task.failed", "task.taken", "task.failed", "task.retried"),
    ]
    assert "  ann          failed T1 Parse dates: the RFC has two forms\n" in shell.run_text(
        "task", "log", "T1"
    )


def test_a_duplicate_is_refused_unless_forced(shell: Shell) -> None:
    shell.run_json("task", "add", "Add login page")
    answer = shell.run_error("TASK_SIMILAR", "task", "add", "Adding a login page", exit=3)
    assert answer["similar"] == [
        {
            "id": "T1",
            "title": "Add login page",
            "state": "ready",
            "score": 1.0,
            "reason": "same title words",
        }
    ]
    ended = shell.run("task", "add", "Adding a login page")
    assert (ended.exit, ended.out) == (3, "")
    assert "this looks like T1 Add login page (ready): same title words" in ended.err
    assert shell.run_json("task", "add", "Add logout page")["task"]["id"] == "T2"
    forced = shell.run_json("task", "add", "Adding a login page", "--force")
    assert [one["id"] for one in forced["similar"]] == ["T1"]
    assert [one["id"] for one in shell.run_json("task", "show", "T3")["similar"]] == ["T1"]
    assert [one["id"] for one in shell.run_json("task", "show", "T1")["similar"]] == ["T3"]
    keyed = shell.run_json("task", "add", "Login", "--key", "login")
    again = shell.run_json("task", "add", "Something else", "--key", "login")
    assert (again["task"]["id"], again["task"]["title"], again["new"]) == (
        keyed["task"]["id"],
        "Login",
        False,
    )


def test_blocking_unblocking_dropping_and_rings(shell: Shell) -> None:
    for title in ("one", "two", "three"):
        shell.run_json("task", "add", title)
    assert shell.run_json("task", "block", "T1", "--why", "vendor")["task"]["why"] == "vendor"
    assert shell.run_json("task", "unblock", "T1")["task"]["state"] == "ready"
    shell.run_json("task", "after", "T2", "T1")
    shell.run_json("task", "after", "T3", "T2")
    ring = shell.run_error("TASK_CYCLE", "task", "after", "T1", "T3")
    assert ring["cycle"] == ["T1", "T3", "T2", "T1"]
    assert "T1 → T3 → T2 → T1" in ring["message"]
    assert shell.run_json("task", "drop", "T1", "--why", "cancelled")["task"]["state"] == "dropped"
    shell.run_error("TASK_WRONG_STATE", "task", "unblock", "T1", exit=6)
    assert shell.run_json("task", "unblock", "T2")["task"]["state"] == "ready"


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


def test_invalid_calls_are_explained_and_change_nothing(shell: Shell) -> None:
    shell.run_json("task", "add", "Parse dates")
    before = fingerprint(shell.state)
    for code, exit_code, words in BAD:
        answer = shell.run_error(code, *words, exit=exit_code)
        assert answer["hint"], words
    assert fingerprint(shell.state) == before


@pytest.mark.promise(
    "tasks.lists-are-read-once",
    "Importing a checklist that Landlane wrote or already imported adds nothing.",
)
def test_the_list_is_a_table_json_or_a_checklist_that_can_be_read_in_again(shell: Shell) -> None:
    assert shell.run_text("task", "list").strip() == "No tasks."
    shell.run_json(
        "task", "add", "Call f(x) (role: none)", "--label", "v1", "--body", "-", "--path", "src/**"
    )
    shell.run_json(
        "task", "add", "Release @friday", "--after", "T1", "--role", "release", "--output", "out.txt"
    )
    shell.run_json("next", "--as", "ann")
    table = shell.run_text("task", "list").splitlines()
    assert table[0].split() == ["TASK", "STATE", "OWNER", "TRY", "TITLE", "WAITING", "FOR"]
    assert table[1].split()[:4] == ["T1", "active", "ann", "1/3"]
    assert table[2].split()[-1] == "T1"
    assert table[3] == "2 open"
    assert [task["id"] for task in shell.run_json("task", "list", "--label", "v1")["tasks"]] == ["T1"]
    assert shell.run_json("task", "list", "--state", "active", "--state", "done")["tasks"][0]["id"] == "T1"
    written = shell.run_text("task", "list", "--markdown")
    # Without the backslash, `@friday` would be who the task is for.
    assert r"- [ ] T2 Release \@friday (after: T1) (role: release)" in written
    (shell.folder / "TASKS.md").write_text(written)
    before = shell.position()
    assert shell.run_json("task", "import", "TASKS.md") == {
        "ok": True,
        "tasks": [],
        "known": 2,
        "skipped": [],
        "notes": [],
    }
    assert shell.position() == before
    (shell.folder / "TASKS.md").write_text(
        written + "- [ ] Party (after: T2)\n- [ ] Call f(x)  (label: v1)\n"
    )
    more = shell.run_json("task", "import", "TASKS.md")
    assert [(task["id"], task["after"]) for task in more["tasks"]] == [("T3", ["T2"]), ("T4", [])]
    (shell.folder / "ring.md").write_text("- [ ] a (after: b)\n- [ ] b (after: a)\n- [ ] c\n")
    assert shell.run_error("TASK_CYCLE", "task", "import", "ring.md")["cycle"] == ["a", "b", "a"]
    assert len(shell.run_json("task", "list")["tasks"]) == 4


def test_a_checklist_comes_from_standard_input_too(shell: Shell) -> None:
    ended = shell.run("task", "import", "-", "--json", stdin="- [ ] One\n- [ ] Two (after: One)\n")
    assert [task["title"] for task in ended.json()["tasks"]] == ["One", "Two"]


@pytest.mark.parametrize("how", ["added", "released", "done"])
def test_next_wakes_while_it_waits(shell: Shell, how: str) -> None:
    if how == "released":
        shell.run_json("task", "add", "x", "--path", "src")
        shell.run_json("claim", "src/a.py", "--as", "ann")
    elif how == "done":
        shell.run_json("task", "add", "first", "--kind", "chore")
        shell.run_json("next", "--as", "ann")
        shell.run_json("task", "add", "x", "--after", "T1")
    wakes = shell.state / "wake"
    with shell.start("next", "--wait", "40s", "--as", "bob", "--json") as waiting:
        wait_until(lambda: wakes.exists() and list(wakes.iterdir()))
        if how == "released":
            shell.run_json("release", "--all", "--as", "ann")
        elif how == "done":
            shell.run_json("done", "T1", "--as", "ann")
        else:
            shell.run_json("task", "add", "x")
        began = time.monotonic()
        assert waiting.end(20).json()["task"]["title"] == "x"
        assert time.monotonic() - began < 10


def test_a_waiting_next_ends_on_a_signal_and_leaves_nothing_behind(shell: Shell) -> None:
    wakes = shell.state / "wake"
    with shell.start("next", "--wait", "40s", "--as", "bob", "--json") as waiting:
        wait_until(lambda: wakes.exists() and list(wakes.iterdir()))
        waiting.signal(signal.SIGTERM)
        assert waiting.end().exit == 128 + signal.SIGTERM
    assert list(wakes.iterdir()) == []


def test_an_output_outside_the_repository_is_refused_when_the_task_is_added(shell: Shell) -> None:
    for output in ("/etc/x", "../x", "a/../../x", ".git/config", "a//b", "."):
        shell.run_error("PATH_OUTSIDE", "task", "add", "Write it", "--output", output, exit=2)

    assert shell.run_json("task", "list")["tasks"] == []


def test_a_task_without_git_names_an_output_and_its_check(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    (folder / ".landlane").mkdir(parents=True)
    shell = Shell(folder)
    shell.run_json("task", "add", "Record", "--output", "intro.wav", "--check", "grep -q RIFF intro.wav")
    shell.run_json("next", "--as", "ann")
    missing = shell.run_error("EVIDENCE_MISSING", "done", "T1", "--as", "ann", exit=6)
    assert missing["evidence"][0]["found"] == "intro.wav does not exist"
    (folder / "intro.wav").write_text("RIFF")
    assert shell.run_json("done", "T1", "--as", "ann")["task"]["state"] == "done"


def test_control_characters_never_reach_the_terminal(shell: Shell) -> None:
    shell.run_error("NO_TITLE", "task", "add", "x\x1b[31m")
    shell.run_json("task", "add", "x", "--check", "printf '\\033[31mred'; false", "--kind", "chore")
    shell.run_json("next", "--as", "ann")
    assert "\x1b" not in shell.run("done", "T1", "--as", "ann").err
    assert "\x1b" not in shell.run_text("task", "show", "T1")
    assert "\x1b" not in shell.run_text("task", "log", "T1")
    assert "\x1b" not in shell.run_text("task", "list")
