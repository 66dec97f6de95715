"""Logs of attempts: bounded, private, whole after a crash, without secrets; and shown by `task log`."""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING

import pytest

from landlane.errors import Malformed
from landlane.protocol.worker.messages import Heartbeat, Progress, WorkComplete, WorkFailed
from landlane.tasks.attempts import begin_attempt, change_attempt
from landlane.tasks.model import AttemptState
from landlane.values import replace
from landlane.workers import attempt_log as attempt_logs
from landlane.workers.attempt_log import AttemptLog, follow_log, log_path, prune_logs, read_log
from landlane.workers.run_worker import WorkerEnd
from tests.support.commits import CommitTestbed
from tests.support.shell import Shell
from tests.support.tasks import add, take

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration

NOON = 1_800_000_000.0


def _log(folder: Path, attempt: int = 1, **more: tuple[str, ...]) -> AttemptLog:
    return AttemptLog(str(folder), "T7", attempt, wall=lambda: NOON, **more)


def _lines(folder: Path, attempt: int = 1) -> list[str]:
    found = read_log(str(folder), "T7", attempt)
    assert found is not None
    return found.lines


def test_a_log_has_the_workers_messages_and_its_end(tmp_path: Path) -> None:
    log = _log(tmp_path, secrets=("hunter2hunter2",))
    log.write("begun", "claude as explore")
    log.hide("joined later")
    for doing in ("reading", "reading", None, "writing"):
        log.write_message(Heartbeat(assignment="W1", doing=doing))
    log.write_message(
        Progress(assignment="W1", text="half of it\nhunter2hunter2 joined later \x1b[2J", done=0.5)
    )
    failed = WorkFailed(assignment="W1", code="failed", reason="no")
    log.write_message(WorkComplete(assignment="W1", summary="all of it", patch="x"))
    log.write_message(failed)
    log.write_end(WorkerEnd(outcome=failed, exit_code=-9, stderr="a trace\n", messages=7, was_killed=True))

    at, rest = "2027-01-15T08:00:00Z", " " * 30
    assert _lines(tmp_path) == [
        f"{at} begun    claude as explore",
        f"{at} doing    reading",
        f"{at} doing    writing",
        f"{at} says     half of it",
        f"{rest}[redacted] [redacted] \\x1b[2J (50 %)",
        f"{at} done     all of it",
        f"{rest}(patch)",
        f"{at} failed   failed: no",
        f"{at} stderr   a trace",
        f"{at} ended    signal 9, after 7 messages, by us",
    ]
    assert stat.S_IMODE(os.stat(log.path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(log.path)).st_mode) == 0o700


@pytest.mark.slow
def test_of_a_log_that_is_too_long_the_beginning_and_the_end_are_kept(tmp_path: Path) -> None:
    log = _log(tmp_path)
    count = 12_000
    for number in range(count):
        log.write("says", f"line {number} {'x' * 160}")
    log.write("says", "y" * 100_000)

    found = read_log(str(tmp_path), "T7", 1)
    assert found is not None
    size = sum(file.stat().st_size for file in (tmp_path / "attempts").iterdir())
    assert size <= 1024 * 1024 + 100
    assert len(found.head) + found.left_out + len(found.tail) == count + 1
    assert found.left_out > 0
    assert " line 0 " in found.head[0]
    assert found.tail[-1].endswith(" … 100,030 bytes")
    numbers = [int(line.split()[3]) for line in [*found.head, *found.tail[:-1]]]
    assert numbers == [*range(len(found.head)), *range(len(found.head) + found.left_out, count)]


def test_a_log_continues_after_a_crash_in_the_middle_of_a_line(tmp_path: Path) -> None:
    log = _log(tmp_path)
    log.write("says", "one")
    with open(log.path, "ab") as file:
        file.write("2027-01-15T08:00:00Z says     tor\u00fc".encode()[:-1])
    assert len(_lines(tmp_path)) == 1, "a line that is not whole is not shown"

    _log(tmp_path).write("says", "two")

    assert [line[30:] for line in _lines(tmp_path)] == ["one", "tor\N{REPLACEMENT CHARACTER}", "two"]


def test_a_log_that_cannot_be_written_fails_nothing(tmp_path: Path) -> None:
    (tmp_path / "attempts").write_text("in the way", encoding="utf-8")

    log = _log(tmp_path)
    log.write("says", "one")

    assert log.error
    assert read_log(str(tmp_path), "T7", 1) is None


def test_a_link_in_place_of_a_log_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "attempts").mkdir()
    os.symlink(tmp_path / "elsewhere", tmp_path / "attempts" / "T7-1.log")

    log = _log(tmp_path)
    log.write("says", "one")

    assert log.error
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("task", ["", "../T7", ".T7", "T\0"])
def test_a_log_lies_in_its_folder_whatever_the_task_is_called(tmp_path: Path, task: str) -> None:
    with pytest.raises(Malformed):
        log_path(str(tmp_path), task, 1)


def test_the_oldest_logs_go(tmp_path: Path) -> None:
    for attempt in range(1, 6):
        log = _log(tmp_path, attempt)
        log.write("says", "x" * 1000)
        os.utime(log.path, (attempt, attempt))
    kept = log_path(str(tmp_path), "T7", 1)

    assert prune_logs(str(tmp_path), keep=kept, max_logs=3) == 2
    assert sorted(os.listdir(tmp_path / "attempts")) == ["T7-1.log", "T7-4.log", "T7-5.log"]
    assert prune_logs(str(tmp_path), max_bytes=1500) == 2
    assert os.listdir(tmp_path / "attempts") == ["T7-5.log"]


def test_following_yields_every_line_once_and_counts_missed_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt_logs, "_HEAD_BYTES", 400)
    monkeypatch.setattr(attempt_logs, "_PIECE_BYTES", 400)
    log = _log(tmp_path)
    written = iter([3, 5, 4, 60, 0, 2])
    total = 0

    def write(_: float = 0) -> None:
        nonlocal total
        for _ in range(next(written)):
            log.write("says", f"line {total}")
            total += 1

    ends = iter([False, False, False, False, False, True])
    lines = list(follow_log(str(tmp_path), "T7", 1, lambda: next(ends), sleep=write))

    assert total == 72
    numbers = [int(line.split()[-1]) for line in lines if " line " in line]
    gaps = [int(line.split()[1]) for line in lines if "left out" in line]
    assert numbers == sorted(set(numbers))
    assert numbers[:12] == list(range(12))
    assert numbers[-2:] == [70, 71]
    assert len(numbers) + sum(gaps) == total


def test_task_log_shows_the_log_of_an_attempt_and_where_it_is(commit_testbed: CommitTestbed) -> None:
    supervisor = commit_testbed.agent("ann")
    add(supervisor, "Parse dates")
    task = take(supervisor).task
    repo = supervisor.repo
    facts = {"role": "explore", "client": "command"}
    session = supervisor.session
    first = repo.change(lambda tx: begin_attempt(tx, repo, session, task, **facts))
    state = commit_testbed.root / ".git" / "landlane"
    AttemptLog(str(state), task.id, 1).write("says", "it begins")
    change_attempt(
        repo, first, "ended", state=AttemptState.ENDED, code="failed", reason="no", outcome="retry"
    )
    shell = Shell(commit_testbed.root)

    answer = shell.run_json("task", "log", "T1")
    assert [entry["kind"] for entry in answer["entries"]] == ["task.added", "task.taken"]
    assert [(one["attempt"], one["state"], one["code"]) for one in answer["attempts"]] == [
        (1, "ended", "failed")
    ]
    assert answer["log"]["lines"][0].endswith("says     it begins")
    assert (answer["log"]["is_here"], answer["log"]["left_out"]) == (True, 0)
    text = shell.run_text("task", "log", "T1", "--attempt", "1")
    title, line = text.splitlines()[-2:]
    assert title == "Attempt 1 by ann"
    assert re.fullmatch(r"  \d\d:\d\d:\d\d says     it begins", line)  # local time; full times are in JSON
    assert shell.run_text("task", "log", "T1", "--follow") == line.removeprefix("  ") + "\n"
    shell.run_error("UNKNOWN_ATTEMPT", "task", "log", "T1", "--attempt", "2")

    second = replace(task, attempt=2)
    elsewhere = repo.change(lambda tx: begin_attempt(tx, repo, session, second, **facts))
    change_attempt(repo, elsewhere, "moved", machine="m-elsewhere")
    assert "another machine (m-elsewhere)" in shell.run_json("task", "log", "T1")["log"]["note"]
    shell.run_error("ELSEWHERE", "task", "log", "T1", "--follow")
