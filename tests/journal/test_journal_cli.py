"""The journal as its readers see it: stretches of it, following it, proving it, keeping it in git."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import sys
import time
from typing import TYPE_CHECKING

import pytest

from landlane import Landlane
from tests.support.git import commit_text
from tests.support.shell import Running
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from tests.support.shell import Shell

pytestmark = pytest.mark.acceptance

# A follower that hears of nothing unless it is woken.
NEVER_LOOKS = """
import landlane.journal.read as journal
from landlane.cli.main import run
journal._POLL_SECONDS = 600.0
raise SystemExit(run())
"""


def positions(shell: Shell, *words: str) -> list[int]:
    return [entry["position"] for entry in shell.run_json("log", *words)["entries"]]


def test_what_happened_is_told_in_order_with_who_and_what(shell: Shell) -> None:
    shell.run_json("claim", "a", "--as", "ann", "--task", "T1")
    shell.run_json("release", "a", "--as", "ann")

    entries = shell.run_json("log")["entries"]

    assert [(entry["kind"], entry["agent"]) for entry in entries] == [
        ("repository.begun", ""),
        ("session.joined", "ann"),
        ("claim.taken", "ann"),
        ("claim.released", "ann"),
    ]
    assert [entry["position"] for entry in entries] == [1, 2, 3, 4]
    assert entries[2]["data"]["task"] == "T1"
    assert entries[2]["data"]["token"] == entries[3]["data"]["token"]
    assert "secret" not in str(entries).replace("secret_hash", "")


def test_only_a_stretch_is_told_when_asked_for(shell: Shell) -> None:
    with Landlane(shell.folder, agent="ann") as ann:
        for number in range(8):
            ann.claim(f"file{number}")

    assert positions(shell) == list(range(1, 11))
    assert positions(shell, "--after", "7") == [8, 9, 10]
    assert positions(shell, "--last", "2") == [9, 10]
    assert positions(shell, "--after", "7", "--last", "9") == [8, 9, 10]
    assert positions(shell, "--last", "0") == positions(shell, "--after", "99") == []
    assert len(shell.run_json("log", "--last", "3")["entries"]) == 3


def test_a_follower_hears_of_a_claim_within_moments_and_sleeps_otherwise(shell: Shell) -> None:
    shell.run_json("join", "ann")
    environment = {**os.environ, **shell.environment}
    words = [sys.executable, "-c", NEVER_LOOKS, "log", "--follow", "--json"]
    with (
        Running(words, shell.folder, environment) as woken,
        shell.start("log", "--follow", "--json") as follower,
    ):
        wait_until(lambda: len(list(shell.state.glob("wake/*"))) == 2)
        shell.run_json("claim", "a", "--as", "ann")
        asked_at = time.monotonic()
        lines = [json.loads(one.read_line()) for one in (woken, follower)]
        took = time.monotonic() - asked_at
        ticks = _settled_ticks(follower.pid)
        for _ in range(3):
            shell.run_json("claims")  # looking wakes nobody
        busy = _cpu_ticks(follower.pid) - ticks

    for line in lines:
        assert (line["kind"], line["agent"], line["data"]["pattern"]) == ("claim.taken", "ann", "a")
    assert took < 30  # it would look by itself after 600
    assert busy <= 2  # hundredths of a second: it does not look again and again


def _settled_ticks(pid: int) -> int:
    """What a process has used, once that has stood still for some looks: it has written and sleeps."""
    looks = [_cpu_ticks(pid)]

    def stands_still() -> bool:
        looks.append(_cpu_ticks(pid))
        return len(looks) > 5 and len(set(looks[-5:])) == 1

    wait_until(stands_still)
    return looks[-1]


def _cpu_ticks(pid: int) -> int:
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_a_follower_begins_where_it_is_told_to(shell: Shell) -> None:
    shell.run_json("claim", "a", "--as", "ann")

    with shell.start("log", "--follow", "--after", "1") as follower:
        lines = [follower.read_line(), follower.read_line()]

    assert [lines[0].split()[1:], lines[1].split()[1:]] == [["ann", "joined"], ["ann", "claimed", "a"]]


# --------------------------------------------------------------------------------------------- proving it


def used(shell: Shell) -> Shell:
    with Landlane(shell.folder, agent="ann") as ann:
        ann.claim("a", "b", "c")
        ann.release("b")
    return shell


def change_store(shell: Shell, statement: str) -> None:
    """Change what the database itself protects, as somebody who means harm would."""
    with contextlib.closing(sqlite3.connect(shell.state / "store.db")) as db:
        guards = "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'journal'"
        for (name,) in db.execute(guards).fetchall():
            db.execute(f"DROP TRIGGER {name}")
        db.execute(statement)
        db.commit()


def change_copy(shell: Shell, edit) -> None:
    path = shell.state / "journal.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(edit(lines)), encoding="utf-8")


def trouble(shell: Shell) -> list[str]:
    answer = shell.run_error("JOURNAL_CHANGED", "log", "--verify", exit=1)
    assert answer["message"] == answer["trouble"][0]
    assert [check["name"] for check in shell.run_json("doctor", exit=1)["checks"] if not check["ok"]] == [
        "journal"
    ]
    return answer["trouble"]


def test_an_untouched_journal_is_whole(shell: Shell) -> None:
    answer = used(shell).run_json("log", "--verify")

    assert (answer["entries"], answer["trouble"]) == (6, [])
    assert shell.run_text("log", "--verify").startswith(
        "✓ 6 entries, unchanged since they were written (head "
    )


def test_an_edited_entry_is_found_in_the_store(shell: Shell) -> None:
    change_store(used(shell), "UPDATE journal SET agent = 'bob' WHERE position = 3")

    assert trouble(shell)[0] == "entry 3 (claim.taken) was changed, or the one before it"


def test_entries_cut_out_of_the_middle_of_the_store_are_missed(shell: Shell) -> None:
    change_store(used(shell), "DELETE FROM journal WHERE position IN (3, 4)")

    assert trouble(shell)[0] == "entries 3 to 4 are missing"


def test_entries_cut_off_the_end_of_the_store_are_missed(shell: Shell) -> None:
    change_store(used(shell), "DELETE FROM journal WHERE position > 4")

    assert "the store was cut: journal.jsonl knows 2 newer entries, up to 6" in trouble(shell)


def test_a_store_that_is_older_than_its_copy_counts_as_restored_and_never_gives_a_token_twice(
    shell: Shell,
) -> None:
    change_store(used(shell), "DELETE FROM journal WHERE position > 4")
    tokens = {claim["token"] for claim in shell.run_json("claims")["claims"]}

    new = shell.run_json("claim", "d", "--as", "ann")["granted"][0]["token"]

    assert new > max(tokens) + 2**31
    assert "store.restored" in shell.kinds()
    assert len(list(shell.state.glob("journal.before-*.jsonl"))) == 1


@pytest.mark.promise(
    "journal.copies-are-proved",
    "An edited or truncated journal is detected in every copy, not only in the store.",
)
def test_an_edited_copy_is_found(shell: Shell) -> None:
    change_copy(used(shell), lambda lines: [line.replace('"pattern":"a"', '"pattern":"z"') for line in lines])

    assert trouble(shell) == ["entry 3 (claim.taken) was changed, or the one before it, in journal.jsonl"]


def test_lines_cut_out_of_the_copy_are_missed(shell: Shell) -> None:
    change_copy(used(shell), lambda lines: lines[:2] + lines[4:])

    assert trouble(shell) == ["entries 3 to 4 are missing, in journal.jsonl"]


def test_a_strange_line_in_the_copy_is_found(shell: Shell) -> None:
    change_copy(used(shell), lambda lines: [*lines[:2], "something else\n", *lines[2:]])

    assert trouble(shell)[0].startswith("journal.jsonl holds something else after entry 2")


def test_a_copy_that_lost_its_end_is_made_whole_again(shell: Shell) -> None:
    change_copy(used(shell), lambda lines: [*lines[:3], lines[3][:40]])

    assert shell.run_json("log", "--verify")["trouble"] == []
    assert len((shell.state / "journal.jsonl").read_text(encoding="utf-8").splitlines()) == 6


def test_trouble_is_told_to_people_on_stderr(shell: Shell) -> None:
    change_store(used(shell), "UPDATE journal SET agent = 'bob' WHERE position = 3")

    ended = shell.run("log", "--verify")

    assert (ended.exit, ended.out) == (1, "")
    assert "[JOURNAL_CHANGED]" in ended.err
    assert "entry 3 (claim.taken)" in ended.err


# ----------------------------------------------------------------------------------------------- in git


def test_the_journal_is_committed_to_a_ref_of_its_own_when_the_settings_say_so(shell: Shell) -> None:
    commit_text(shell.folder, "landlane.toml", "[journal]\ngit = true\n")
    shell.run_json("claim", "a", "--as", "ann", "--note", "one line\u2028or two?")
    shell.run_json("claim", "b", "--as", "ann")

    ref = "refs/landlane/journal"
    kept = shell.git("show", f"{ref}:journal/000000001.jsonl")

    assert kept == (shell.state / "journal.jsonl").read_text(encoding="utf-8")
    assert shell.git("log", "--format=%s", ref).splitlines()[0] == "journal: up to entry 4"
    assert shell.git("status", "--porcelain", "--untracked-files=no") == ""
    assert shell.run_json("log", "--verify")["trouble"] == []


def test_a_rewritten_ref_is_found(shell: Shell) -> None:
    commit_text(shell.folder, "landlane.toml", "[journal]\ngit = true\n")
    shell.run_json("claim", "a", "--as", "ann")
    text = shell.git("show", "refs/landlane/journal:journal/000000001.jsonl").replace('"a"', '"z"')
    blob = shell.run_program("git", "hash-object", "-w", "--stdin", stdin=text).out.strip()
    inner = shell.run_program("git", "mktree", stdin=f"100644 blob {blob}\t000000001.jsonl\n").out.strip()
    tree = shell.run_program("git", "mktree", stdin=f"040000 tree {inner}\tjournal\n").out.strip()
    commit = shell.git("commit-tree", tree, "-m", "nothing happened").strip()
    shell.git("update-ref", "refs/landlane/journal", commit)

    assert trouble(shell) == [
        "entry 3 (claim.taken) was changed, or the one before it, in refs/landlane/journal"
    ]


def test_inside_a_hook_the_journal_goes_to_the_right_repository(shell: Shell) -> None:
    commit_text(shell.folder, "landlane.toml", "[journal]\ngit = true\n")
    (shell.folder / "src").mkdir()
    hook = shell.with_env(GIT_DIR=".git", GIT_INDEX_FILE=".git/index")

    hook.run_json("claim", "src/a", "--as", "ann")

    assert hook.run_json("log", "--verify")["trouble"] == []
    assert shell.git("rev-parse", "--verify", "refs/landlane/journal")


def test_bookkeeping_of_the_queue_and_of_processes_is_shown_only_with_v(shell: Shell) -> None:
    (shell.folder / "landlane.toml").write_text('[landing]\nchecks = ["true"]\n')
    shell.git("add", ".")
    shell.git("commit", "--quiet", "-m", "Start")
    shell.git("switch", "--quiet", "-c", "feature")
    shell.run_json("claim", "new.py", "--as", "ann")
    (shell.folder / "new.py").write_text("x = 1\n")
    shell.run_json("commit", "-m", "Add it", "new.py", "--as", "ann")
    shell.run_json("land", "--wait", "--as", "ann")

    assert "landed L1" in shell.run_text("log")
    assert "queue main" not in shell.run_text("log")
    assert "queue main" in shell.run_text("log", "-v")


def test_what_doctor_tries_is_shown_only_with_v(shell: Shell) -> None:
    shell.run_json("claim", "a", "--as", "canary-x")

    assert "canary-x" not in shell.run_text("log")
    assert "canary-x" in shell.run_text("log", "-v")
