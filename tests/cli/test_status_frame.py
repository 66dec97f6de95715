"""The frame of `status` as text, to the letter, from the facts that its JSON has."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from landlane.cli.status_frame import frame_lines, frame_text
from tests.support.snapshots import check_snapshot

pytestmark = pytest.mark.unit

NOW = int(datetime(2026, 11, 18, 14, 32).timestamp() * 1000)  # noqa: DTZ001 - local time is shown
HEADLINE = "shop · 3 need you · 3 working · 2 landing · $4.10 of $20 today · main passing"


def item(id: str, what: str, minutes: int) -> dict[str, Any]:
    return {"id": id, "what": what, "waited_seconds": 60 * minutes, "command": f"landlane inbox {id}"}


def working(task: str, title: str, agent: str, tries: int, **more: object) -> dict[str, Any]:
    row = {"task": task, "title": title, "agent": agent, "tries": tries, "max_tries": 3, "claims": []}
    facts = {"doing": "", "idle_seconds": None, "client": "claude", "limit_ends_in_seconds": None}
    return row | facts | {"cost_usd": None, "is_cost_known": True} | more


def landing(id: str, title: str, agent: str, **more: object) -> dict[str, Any]:
    row = {"landing": id, "title": title, "agent": agent, "check": None, "doing": ""}
    return row | {"check_seconds": None, "check_estimate_seconds": None} | more


def waiting(**facts: object) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(("agent", "task", "title", "position", "why"))
    return row | {"paths": [], "holders": [], "waits_for": []} | facts


def busy_facts() -> dict[str, Any]:
    return {
        "headline": {"text": HEADLINE, "target": "main"},
        "overview": "",
        "troubles": [],
        "inbox": [
            item("L8", "approve a change to src/pay/card.py (T13 Charge cards)", 2),
            item("G3", "T16 Rename routes failed twice the same way: retry?", 9),
            item("V4", "review T17 Show prices in euros (+31 −7)", 21),
        ],
        "working": [
            working("T12", "List users", "ann", 1, doing="editing src/api.py", idle_seconds=12),
            working(
                "T14",
                "Refund orders",
                "codex-T14",
                2,
                doing="pytest tests/test_refund.py",
                idle_seconds=40,
                cost_usd=0.84,
            ),
            working("T19", "Cache exchange rates", "claude-T19", 1, limit_ends_in_seconds=720, cost_usd=0.05),
        ],
        "landing": [
            landing(
                "L9",
                "Search by name",
                "claude-T20",
                check="make test",
                check_seconds=41,
                check_estimate_seconds=70,
            ),
            landing("L10", "Sort results", "claude-T21", doing="tested with L9"),
        ],
        "waiting": [
            waiting(agent="bob", paths=["src/api.py"], holders=["ann"], position=1),
            waiting(task="T15", title="Document payments", waits_for=["T13", "T14"]),
            waiting(task="T18", title="Add a health check", paths=["src/api.py"], holders=["ann"]),
        ],
        "slots": [],
        "money": {
            "today_usd": 4.10,
            "is_known": True,
            "day_budget_usd": 20.0,
            "per_landed_usd": 0.95,
            "closest_task": "T14",
            "closest_usd": 0.84,
            "task_budget_usd": 2.5,
        },
        "dead_letters": 0,
        "notices": [],
    }


def test_a_busy_repository() -> None:
    check_snapshot("cli/snapshots/status_frame.txt", frame_text(busy_facts(), NOW))


def test_lines_know_which_item_they_are_about() -> None:
    opens = [line.opens for line in frame_lines(busy_facts(), NOW) if line.opens]

    assert opens == ["L8", "G3", "V4", "T12", "T14", "T19", "L9", "L10", "T15", "T18"]


def test_sections_without_rows_are_left_out() -> None:
    facts = busy_facts() | {"inbox": [], "landing": [], "waiting": []}
    facts["money"] = {"today_usd": 0.0, "is_known": True, "day_budget_usd": None}

    titles = [line.text for line in frame_lines(facts, NOW) if line.text and not line.text.startswith(" ")]

    assert titles[1:] == ["Working"]


def test_a_check_without_an_estimate_has_no_bar_and_one_that_is_late_a_full_one() -> None:
    facts = busy_facts()
    facts["landing"] = [
        landing("L9", "a", "b", check="make test", check_seconds=41),
        landing("L9", "a", "b", check="make test", check_seconds=100, check_estimate_seconds=70),
    ]

    first, second = [line.text for line in frame_lines(facts, NOW) if line.opens == "L9"]

    assert first.endswith("  make test  0:41")
    assert second.endswith(f"  make test  {'━' * 13} 1:40 of about 1:10")


def test_costs_that_no_script_reports_are_only_mentioned_beside_a_budget() -> None:
    facts = busy_facts()
    facts["money"] = {**facts["money"], "today_usd": 0.0, "is_known": False, "day_budget_usd": None}
    assert "Money" not in frame_text(facts, NOW)
    facts["money"]["day_budget_usd"] = 20.0
    assert frame_text(facts, NOW).endswith("Money\n  no cost was reported today; the budget is $20")
