"""The next sensible step: what holds all others up comes first."""

from __future__ import annotations

import pytest

from landlane.status.next_steps import Equipment, Standpoint, next_steps, tells_of

pytestmark = pytest.mark.unit

READY = Equipment(is_set_up=True, has_checks=True, clients=("claude",))
ADD = "landlane task add 'what is to be done' --path PATH"


def commands(point: Standpoint, has: Equipment = READY) -> list[str]:
    return [step.command for step in next_steps(point, has)]


def test_without_anything_it_is_set_up_first() -> None:
    assert commands(Standpoint(tasks={}), Equipment()) == ["landlane init", ADD]


def test_with_nothing_to_do_a_task_is_added() -> None:
    assert commands(Standpoint(tasks={"done": 2})) == [ADD]


@pytest.mark.parametrize(
    ("has", "command"),
    [
        (READY, "landlane run --agent claude"),
        (Equipment(is_set_up=True, has_checks=True, agent="codex"), "landlane run"),
        (
            Equipment(is_set_up=True, has_checks=True, workers=("mine",), clients=("claude",)),
            "landlane run --agent mine",
        ),
        (Equipment(is_set_up=True, has_checks=True), "landlane next"),
        (Equipment(is_set_up=True, has_git=False, clients=("claude",)), "landlane next"),
    ],
)
def test_ready_tasks_go_to_whoever_is_there(has: Equipment, command: str) -> None:
    assert commands(Standpoint(tasks={"ready": 1}, ready=("T1",)), has) == [command]


def test_without_checks_the_line_that_is_missing_is_told() -> None:
    has = Equipment(is_set_up=True, checks="npm test", clients=("claude",))

    assert commands(Standpoint(tasks={"ready": 1}, ready=("T1",)), has)[0] == 'checks = ["npm test"]'


def test_what_holds_others_up_comes_before_ones_own_and_before_new_work() -> None:
    point = Standpoint(
        tasks={"ready": 9},
        mine=("T3",),
        ready=tuple(f"T{number}" for number in range(9)),
        gates=("T7",),
        pool_paused="no disk",
        red="make test fails",
    )

    assert commands(point) == ["landlane queue list", "landlane pool resume", "landlane gate list"]


def test_what_failed_for_good_is_shown_with_a_way_back() -> None:
    step = next_steps(Standpoint(tasks={"dead": 1}, dead=("T4",)), READY)[0]

    assert step.command == "landlane task show T4"
    assert "landlane task retry T4" in step.why


def test_many_names_are_counted() -> None:
    ready = tuple(f"T{number}" for number in range(5))

    assert (
        next_steps(Standpoint(tasks={}, ready=ready), READY)[0].why == "let workers do T0, T1, T2 and 2 more"
    )


def test_the_numbers_stand_in_one_line() -> None:
    point = Standpoint(
        tasks={"ready": 2, "waiting_for_person": 1}, sessions=1, claims=2, attempts=1, landings=1
    )

    assert tells_of(point) == (
        "1 agent here; 2 paths held; 1 worker running; 1 change on the way; "
        "tasks: 2 ready, 1 waiting for person"
    )
    assert tells_of(Standpoint(tasks={})) == "0 agents here; 0 paths held; no tasks"
