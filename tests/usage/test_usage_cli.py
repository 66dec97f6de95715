"""Money and metrics as a user types them: bookings, totals, budgets, and the numbers of a period."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING

import pytest

from landlane.units import rough_duration

if TYPE_CHECKING:
    from tests.support.shell import Shell
from tests.support.snapshots import check_snapshot

pytestmark = pytest.mark.acceptance

SETTINGS = """\
[landing]
checks = []
resident = false

[budgets]
day = 2

[prices."gpt-5*"]
input = 1.25
output = 10
"""

SPENDER = """\
import json, sys, time
task = json.loads(sys.stdin.readline())
for step in range(1, 600):
    used = {"input_tokens": 10 * step, "output_tokens": step, "cost_usd": 0.5 * step}
    said = {"type": "Progress", "version": 1, "assignment": task["assignment"], "text": "x", "usage": used}
    print(json.dumps(said), flush=True)
    time.sleep(0.1)
"""


def without_measurement(table: str, label: str, number: str) -> str:
    """Return the table with an N for a number of the first column, which must be in the row of this label."""
    row = re.compile(rf"^({label} +){number}(?= {{3}})", re.MULTILINE)
    assert len(row.findall(table)) == 1, table
    return row.sub(lambda found: found[1] + "N".rjust(len(number)), table)


def configure(shell: Shell, text: str = SETTINGS) -> None:
    (shell.folder / "landlane.toml").write_text(text)
    shell.git("add", "landlane.toml")
    shell.git("commit", "--quiet", "-m", "Settings")


def test_what_was_spent_adds_up_and_unknown_stays_unknown(shell: Shell) -> None:
    configure(shell)
    for title in ("Parse dates", "Write the manual"):
        shell.run_json("task", "add", title, "--as", "ann")
    words = ("usage", "add", "--as", "ann", "--task", "T1", "--key", "run-17")
    assert shell.run_json(*words, "--cost", "0.42")["usage"]["cost_micros"] == 420_000
    again = shell.run_json(*words, "--cost", "0.43")
    assert (again["is_new"], again["differs"], again["usage"]["cost_usd"]) == (False, True, 0.42)
    assert "nothing was changed" in shell.run_text(*words, "--cost", "0.43")
    tokens = ("--model", "gpt-5-mini", "--input-tokens", "48210", "--output-tokens", "2107")
    assert (
        shell.run_json("usage", "add", "--task", "T2", *tokens, "--as", "ann")["usage"]["known_by"]
        == "priced"
    )

    lines = [{"key": "a", "tasks": ["T2", "T1"], "cost_usd": 0.1}, {"key": "b", "task": "elsewhere"}]
    (shell.folder / "usage.jsonl").write_text("\n".join(map(json.dumps, lines)))
    done = shell.run_json("usage", "import", "usage.jsonl", "--as", "ann")
    assert (done["booked"], done["unattributed"], done["unknown_tasks"]) == (2, 1, ["elsewhere"])
    assert shell.run_json("usage", "import", "usage.jsonl", "--as", "ann")["known"] == 2

    answer = shell.run_json("usage")
    parts = [*answer["tasks"].values(), answer["unattributed"]]
    assert sum(one["cost_micros"] or 0 for one in parts) == answer["total"]["cost_micros"] == 601_333
    assert (answer["unattributed"]["cost_usd"], answer["total"]["is_least"]) == (None, True)
    text = shell.run_text("usage")
    assert [line.split()[-1] for line in text.splitlines() if line.startswith("no task")] == ["unknown"]
    assert text.splitlines()[-1].endswith("≥ $0.60 of $2")
    elsewhere = shell.run_json("usage", "list", "--task", "T1")["elsewhere"]
    assert [(one["key"], one["task"]) for one in elsewhere] == [("a", "T2")]
    assert "≥ $0.60 of $2 today" in shell.run_text("status")
    assert shell.run_json("status")["spent_today"]["budget_usd"] == 2


def test_every_misuse_says_what_to_do(shell: Shell) -> None:
    shell.run_error("UNKNOWN_TASK", "usage", "add", "--task", "T9", "--as", "ann", exit=2)
    shell.run_error("BAD_AMOUNT", "usage", "add", "--cost", "-1", "--as", "ann", exit=2)
    shell.run_error("BAD_TOKENS", "usage", "add", "--input-tokens", "many", "--as", "ann", exit=2)
    shell.run_error("BAD_INSTANT", "usage", "add", "--at", "now", "--as", "ann", exit=2)
    shell.run_error("BAD_KEY", "usage", "add", "--key", "x" * 401, "--as", "ann", exit=2)
    shell.run_error("FILE_UNREADABLE", "usage", "import", "nowhere.jsonl", "--as", "ann", exit=2)
    (shell.folder / "bad.jsonl").write_text('{"cost_usd": 1}\n{"cost": 1}\n')
    refused = shell.run_error("BAD_USAGE_RECORD", "usage", "import", "bad.jsonl", "--as", "ann", exit=2)
    assert refused["line"] == 2
    shell.run_error("BAD_GROUP", "usage", "--by", "moon", exit=2)
    shell.run_error("BAD_PERIOD", "stats", "--since", "soon", exit=2)
    shell.run_error("BAD_PERIOD", "stats", "--since", "2026-02-01", "--until", "2026-01-01", exit=2)
    for text, said in (
        ("[prices.gpt-4.1]\ninput = 1\noutput = 2\n", "in quotes"),
        ("[budgets]\nday = -1\n", "day"),
    ):
        (shell.folder / "landlane.toml").write_text(text, encoding="utf-8")
        error = shell.run_error("SETTINGS_WRONG_TYPE", "init", "--dry-run")
        assert said in error["message"]


def test_stats_tells_each_number_with_what_it_was_counted_from(shell: Shell) -> None:
    configure(shell)
    shell.run_json("task", "add", "Parse dates", "--path", "dates", "--as", "ann")
    shell.run_json("next", "--as", "ann")
    shell.git("switch", "--quiet", "-c", "landlane/T1-1/work")
    (shell.folder / "dates").write_text("parsed\n")
    shell.git("add", "dates")
    shell.git("commit", "--quiet", "-m", "Parse dates")
    shell.git("switch", "--quiet", "--detach", "main")
    shell.run_json("land", "landlane/T1-1/work", "--task", "T1", "--wait", "--as", "ann")
    shell.run_json("usage", "add", "--task", "T1", "--cost", "1.50", "--as", "ann")

    answer = shell.run_json("stats", "--since", "1d")
    found = answer["metrics"]
    assert (found["tasks_landed"]["value"], found["attempts"]["value"]) == (1, 1)
    assert (found["merge_success"]["numerator"], found["merge_success"]["denominator"]) == (1, 1)
    assert found["cost_per_landed"] == {"value": 1.5, "unit": "usd", "numerator": 1.5, "denominator": 1}
    assert found["target_red"] == {"value": 0, "unit": "ms"}
    assert answer["definitions"].keys() == found.keys()
    assert sum(day["changes_landed"] for day in answer["days"]) == 1
    text = shell.run_text("stats")
    weeks = shell.run_json("stats")["weeks"]
    assert len(weeks) == 4
    # How long setup, work and landing took depends on the machine.
    measured = weeks[0]["metrics"]
    overhead = f"{100 * measured['coordination_overhead']['value']:.0f} %"
    text = without_measurement(text, "Coordination overhead", overhead)
    text = without_measurement(text, "Setup", rough_duration(measured["setup_time"]["value"]))
    check_snapshot("usage/snapshots/stats.txt", text.rstrip("\n"))
    early = shell.run_text("stats", "--until", "2020-01-01").splitlines()
    assert early[0].split() == ["2019-12-26", "TO", "2020-01-01"]
    assert early[3].split() == ["Merged", "without", "a", "conflict", "–"]
    assert "divided by the changes that landed" in " ".join(shell.run_text("stats", "--define").split())


@pytest.mark.promise(
    "usage.budgets-stop",
    "A worker that uses up its budget is stopped, and a person is asked before the task is tried again.",
)
@pytest.mark.sandbox
def test_a_worker_that_uses_up_its_budget_is_ended_and_a_person_is_asked(shell: Shell) -> None:
    (shell.folder / "spender.py").write_text(SPENDER)
    worker = json.dumps([sys.executable, "spender.py"])
    shell.git("add", "spender.py")
    configure(
        shell,
        f'[agents.spender]\ncommand = {worker}\nprotocol = "messages"\nrole = "explore"\n'
        "[budgets]\ntask = 1\n[landing]\nchecks = []\n",
    )
    shell.run_json("task", "add", "Look around", "--kind", "chore", "--as", "ann")

    ended = shell.run("run", "--agent", "spender", "--json")

    assert ended.exit == 7, ended
    answer = shell.run_json("usage")
    assert answer["total"]["entries"] == 1
    assert answer["total"]["cost_usd"] >= 1
    task = shell.run_json("task", "show", "T1")["task"]
    assert task["state"] == "waiting_for_person"
    assert "its budget is used up" in task["why"]
    assert shell.run_json("stats")["metrics"]["attempts"]["value"] == 1


def test_the_table_of_usage_names_tasks_and_adds_the_others_up(shell: Shell) -> None:
    configure(shell, "[budgets]\nday = 20\n")
    costs = ("0.84", "0.50", "0.31", "0.20", "")
    for number, cost in enumerate(costs, 1):
        shell.run_json("task", "add", f"Work {number} of {len(costs)}", "--as", "lead", "--force")
        words = ("--cost", cost, "--input-tokens", "412000", "--output-tokens", "18400") if cost else ()
        shell.run_json("usage", "add", "--task", f"T{number}", *words, "--as", "ann")

    check_snapshot("usage/snapshots/usage.txt", shell.run_text("usage").rstrip("\n"))
    assert "T5 Work 5 of 5" in shell.run_text("usage", "-v")
    assert shell.run_text("usage", "--until", "2020-01-01") == "No spending is recorded.\n"


@pytest.mark.parametrize("command", ["log", "stats", "usage"])
def test_a_period_that_cannot_be_read_is_answered_with_one_that_can(shell: Shell, command: str) -> None:
    refused = shell.run(command, "--since", "yesterdy")

    assert refused.err.splitlines() == [
        "error: --since yesterdy is not a time [BAD_PERIOD]",
        f'hint: use 2h, 3d, 14:30, a date or "all": landlane {command} --since 1d',
    ]
