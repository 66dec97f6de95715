"""Plans as they are checked at the command line, before anything starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.git import commit_text

if TYPE_CHECKING:
    from tests.support.shell import Shell

pytestmark = pytest.mark.acceptance

SETTINGS = """
[numbers.migration]
path = "migrations/{n}_*.sql"

[landing.merge.files]
"CHANGELOG.md" = "union"
"""
PLAN = """
title = "Dates everywhere"

[defaults]
role = "code"
agent = "claude"
budget = 1.5
attempts = 2

[[task]]
name = "api"
title = "Agree on the interface of dates"
paths = ["src/dates/api.py"]
contract = true
estimate = "20m"

[[task]]
name = "parse"
title = "Parse dates"
paths = ["src/dates/parse.py", "CHANGELOG.md"]
estimate = "1h"

[[task]]
name = "show"
title = "Show dates"
paths = ["src/app.py", "CHANGELOG.md"]
estimate = "30m"

[[task]]
name = "zone"
title = "Column for the zone"
paths = ["migrations/1_zone.sql"]
estimate = "10m"

[[task]]
name = "place"
title = "Column for the place"
paths = ["migrations/2_place.sql"]
estimate = "10m"
"""
SHOWN = """\
Dates everywhere: 5 tasks, 3 waves, at most 2 at once

  1 ──*api    code · claude · src/dates/api.py · contract · 20m
  2 ┬─*parse  code · claude · src/dates/parse.py, CHANGELOG.md · 1h
    └─ zone   code · claude · migrations/1_zone.sql · 10m
  3 ┬─*show   code · claude · src/app.py, CHANGELOG.md · 30m
    └─ place  code · claude · migrations/2_place.sql · 10m

critical path (*): api → parse → show (1h50m)
cost: at most $15.00
in sequence:
  parse after api: api must land first
  show after parse: both change CHANGELOG.md, which is hot (union)
  zone after api: api must land first
  place after zone: both take a number of the kind migration
"""


def test_a_plan_is_shown_as_a_picture(shell: Shell) -> None:
    commit_text(shell.folder, "landlane.toml", SETTINGS)
    (shell.folder / "plan.toml").write_text(PLAN)

    assert shell.run_text("plan", "check", "plan.toml") == SHOWN


@pytest.mark.promise(
    "plans.shown-before-anything-starts",
    "Checking a plan shows its waves, the tasks that run in sequence and why, and its maximum cost, and "
    "changes nothing.",
)
def test_programs_get_the_same_as_json_and_nothing_is_changed(shell: Shell) -> None:
    commit_text(shell.folder, "landlane.toml", SETTINGS)
    (shell.folder / "plan.toml").write_text(PLAN)
    (shell.folder / "sub").mkdir()
    before = shell.position()

    plan = shell.run_json("plan", "check", "plan.toml")["plan"]
    below = shell.at("sub").run_json("plan", "check", "../plan.toml")["plan"]

    assert plan == below
    assert plan["waves"] == [["api"], ["parse", "zone"], ["show", "place"]]
    assert plan["critical_path"] == {
        "tasks": ["api", "parse", "show"],
        "seconds": 6600.0,
        "without_estimate": [],
    }
    assert plan["cost"] == {"at_most_usd": 15.0, "known_usd": 15.0, "limit_usd": None, "unknown_for": []}
    assert {one["kind"] for one in plan["sequence"]} == {"contract", "hot", "number"}
    tasks = {task["name"]: task for task in plan["tasks"]}
    assert (tasks["place"]["wave"], tasks["place"]["after"]) == (3, ["zone"])
    assert (plan["problems"], plan["warnings"]) == ([], [])
    assert shell.position() == before


def test_a_checklist_with_problems_ends_with_1_and_all_of_them(shell: Shell) -> None:
    text = (
        "- [ ] Parse dates (after: Show dates) (path: a)\n"
        "- [ ] Show dates (after: Parse dates) (path: b)\n"
        "- [ ] Ship (role: coder) (agent: claud) (after: T9) (path: c)\n"
    )
    (shell.folder / "PLAN.md").write_text(text)

    answer = shell.run_error("PLAN_UNFIT", "plan", "check", "PLAN.md", exit=1)
    shown = shell.run_text("plan", "check", "PLAN.md", exit=1)

    assert sorted(one["code"] for one in answer["plan"]["problems"]) == [
        "TASK_CYCLE",
        "UNKNOWN_AGENT",
        "UNKNOWN_ROLE",
        "UNKNOWN_TASK",
    ]
    assert 'line 1: "Parse dates" and "Show dates" wait for each other' in shown
    assert "did you mean code?" in shown
    assert "cost: unknown: no task has a budget" in shown


def test_work_that_is_in_the_queue_is_warned_of(shell: Shell) -> None:
    shell.run_json("task", "add", "Parse ISO dates", "--as", "ann")

    ended = shell.run("plan", "check", "-", "--json", stdin="- [ ] Parse the ISO dates (path: a)\n")

    (warning,) = ended.json()["plan"]["warnings"]
    assert (warning["code"], warning["tasks"]) == ("TASK_SIMILAR", ["Parse the ISO dates", "T1"])
    assert ended.exit == 0


def test_what_is_no_plan_is_refused_with_its_line(shell: Shell) -> None:
    (shell.folder / "plan.toml").write_text('[[task]]\ntitle = "A"\npahts = ["a"]\n')
    assert shell.run_error("BAD_PLAN", "plan", "check", "plan.toml")["line"] == 3
    (shell.folder / "plan.toml").write_bytes(b"\xff\xfe")
    shell.run_error("UNREADABLE_FILE", "plan", "check", "plan.toml")
    shell.run_error("UNREADABLE_FILE", "plan", "check", "none.toml")
    shell.run_error("UNREADABLE_FILE", "plan", "check", ".")
    (shell.folder / "PLAN.md").write_text("# Nothing yet\n")
    shell.run_error("BAD_PLAN", "plan", "check", "PLAN.md")


def test_nobodys_plan_steers_the_terminal(shell: Shell) -> None:
    (shell.folder / "PLAN.md").write_text("- [ ] A (path: a) (check: x)\n- [ ] B (path: \x1b]0;red)\n")

    assert "\x1b" not in shell.run_text("plan", "check", "PLAN.md")
