"""`run` as people see it: the live region on a terminal, lines in a log, the end, Ctrl-C, a pause."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.screen import TerminalRun
from tests.support.snapshots import check_snapshot
from tests.support.waiting import wait_until
from tests.workers.running import LIMIT_SECONDS, WorkerTestbed

pytestmark = [pytest.mark.acceptance, pytest.mark.sandbox]

UNTIL_LET_GO = "touch here; for i in $(seq 1200); do test -e go && break; sleep 0.05; done; rm here go"
_MASKS = (
    (r"\b[0-9a-f]{8}\b", "6d20be71"),
    (r"\b\d\d:\d\d:\d\d\b", "14:32:04"),
    (r"\(\d\d:\d\d\)", "(14:45)"),
    (r"(?<=  )\d:\d\d\b", "0:04"),
    (r"· \d:\d\d\b", "· 0:04"),
    (r"\bL\d\b", "L2"),
    (r"\b\d+ s\b|\bunder 1 s\b", "4 s"),
    (r"resets in 1[12] min", "resets in 12 min"),
)


def mask(text: str) -> str:
    for pattern, replacement in _MASKS:
        text = re.sub(pattern, replacement, text)
    return text


@pytest.fixture
def shop(repository: Path) -> WorkerTestbed:
    return WorkerTestbed(repository, more='[retries]\nbackoff = "100ms"\n')


def held_up(works: WorkerTestbed) -> list[Path]:
    return [found.parent for found in works.root.parent.glob("*.workspaces/*/here")]


@pytest.mark.promise(
    "run.live-region", "On a terminal, a run shows its tasks in rows that are removed when it ends."
)
def test_rows_stay_at_the_bottom_and_what_ended_scrolls_above(shop: WorkerTestbed) -> None:
    slow = shop.add("Export orders as CSV", "b.txt", script={"run": f"{UNTIL_LET_GO}; echo x > b.txt"})
    quick = shop.edit("Add a health check", "a.txt", cost=0.12)
    shop.edit("Paginate orders", "c.txt", after=slow)

    run = TerminalRun(shop.shell, "run", "--workers", "2", NO_COLOR="1")
    busy = run.wait_for(lambda text: f"✓ {quick} " in text and "begun: Export" in text and "1 of 3" in text)
    run.interrupt()
    stopping = run.wait_for(lambda text: "! stopping" in text and " of 3 landed" in text)
    (folder,) = held_up(shop)
    (folder / "go").touch()
    code, ended = run.end()

    assert code == 130
    assert not re.search(r"\x1b\[\d+m", run.output)  # no colour
    assert slow in busy
    check_snapshot("workers/snapshots/live_busy.txt", mask(busy))
    check_snapshot("workers/snapshots/live_stopping.txt", mask(stopping))
    assert ended.startswith(
        stopping.partition("\n  T1")[0]
    )  # what scrolled above stays, and the rows are gone
    assert " of 3 landed" not in ended
    assert ended.endswith("\nnext: landlane run")


def test_without_utf_8_the_region_is_plain_ascii(shop: WorkerTestbed) -> None:
    shop.edit("Add a health check", "a.txt", seconds=1)

    run = TerminalRun(shop.shell, "run", PYTHONUTF8="0", PYTHONIOENCODING="ascii", LC_ALL="C")
    frame = run.wait_for(lambda text: "begun: Add" in text and "0 of 1 landed" in text)
    code, ended = run.end()

    assert (code, run.output.isascii()) == (0, True)
    assert frame.startswith("ok preflight passed: main at ")
    assert "  ------------------------------  0 of 1 landed | 0:0" in frame
    assert "\x1b[32mok\x1b[0m T1 Add a health check landed as " in run.output
    assert "0 of 1" not in ended


def test_a_log_has_one_line_per_event(shop: WorkerTestbed) -> None:
    first = shop.edit("Add a health check", "a.txt", cost=0.12)
    second = shop.add(
        "Paginate orders",
        "b.txt",
        script={"append": {"b.txt": "x\n"}, "cost": 0.2},
        later={1: {"append": {"b.txt": "half\n"}, "cost": 0.1, "fail": "the API has no pages"}},
        after=first,
    )
    third = shop.add("Convert currencies", "c.txt", script={"cost": 0.05, "limit": 720}, after=second)

    process = shop.begin("--workers", "1")
    assert process.stderr is not None
    lines: list[str] = []
    for line in process.stderr:
        lines.append(line)
        if f"{third} waits: " in line:
            break
    (task,) = [one for one in shop.shell.run_json("task", "list")["tasks"] if one["id"] == third]
    listed, shown = shop.shell.run_text("task", "list"), shop.shell.run_text("status")
    process.terminate()
    out, rest = process.communicate(timeout=LIMIT_SECONDS)

    assert process.returncode == 130
    text = "".join(lines) + rest + "--- stdout\n" + out
    check_snapshot("workers/snapshots/log.txt", mask(text).rstrip())
    (wait,) = task["waits_for"]
    assert (wait["kind"], wait["holder"]) == ("limit", "scripted")
    assert wait["resets_at"] is not None
    assert "Scripted limit, resets in 11 min" in listed
    assert f"  {third}  Convert currencies   Scripted limit resets in 11 min" in shown


def test_the_end_lists_what_needs_a_person_and_what_failed(repository: Path) -> None:
    works = WorkerTestbed(repository, more='[retries]\nbackoff = "100ms"\n')
    text = (repository / "landlane.toml").read_text().replace("[run]", 'gate = ["src/pay/**"]\n[run]')
    (repository / "landlane.toml").write_text(text)
    works.git("commit", "--quiet", "--all", "-m", "Ask before it lands")
    works.edit("Add a health check", "a.txt", cost=0.5)
    works.edit("Export orders as CSV", "b.txt", cost=0.3)
    works.edit("Store card tokens", "src/pay/token.py", cost=0.2)
    works.add("Paginate orders", "c.txt", script={"cost": 0.1, "fail": "no such page"}, max_attempts=1)

    ended = works.shell.run("run", limit_seconds=LIMIT_SECONDS)

    assert ended.exit == 7
    check_snapshot("workers/snapshots/summary.txt", mask(ended.out).rstrip())


def test_a_start_that_fails_is_noted_once(repository: Path) -> None:
    agent = '[agents.gone]\ncommand = ["./gone.sh"]\nprotocol = "messages"\n[retries]\nmax_starts = 1\n'
    works = WorkerTestbed(repository, more=agent)
    works.edit("Never started", "a.txt", label="agent:gone")

    works.run(exit=7)

    kinds = [entry["kind"] for entry in works.shell.run_json("log")["entries"]]
    assert kinds.count("pool.failed") == 1


@pytest.mark.promise(
    "run.pause-all", "While everything is paused, nothing starts, lands or is deployed, until a resume."
)
def test_pause_all_also_keeps_finished_work_from_landing(shop: WorkerTestbed) -> None:
    task = shop.add("Add a health check", "a.txt", script={"run": f"{UNTIL_LET_GO}; echo x > a.txt"})
    process = shop.begin("--workers", "1")
    assert process.stderr is not None
    for line in process.stderr:
        if "started" in line:
            break
    wait_until(lambda: held_up(shop))

    paused = shop.shell.run_text("run", "pause", "--all", "--why", "release freeze")
    (held_up(shop)[0] / "go").touch()
    process.communicate(timeout=LIMIT_SECONDS)
    before = shop.states()[task]
    answer = shop.shell.run("queue", "run", "--drain")
    resumed = shop.shell.run_text("run", "resume")
    shop.run()

    assert paused == (
        "✓ paused: no new attempts, landings or deploys\n"
        f"  {task} runs to the end of its attempt\n"
        "next: landlane run resume\n"
    )
    assert before == "landing"
    assert (answer.exit, answer.err.splitlines()[-2:]) == (
        7,
        [
            'waiting: lead paused landing: "release freeze" [RUN_PAUSED]',
            "hint: continue: landlane run resume",
        ],
    )
    assert resumed == "✓ resumed: attempts start again, and landings and deploys continue\n"
    assert shop.states()[task] == "done"
