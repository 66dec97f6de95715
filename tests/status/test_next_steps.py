"""The next sensible step: what holds all others up comes first."""

from __future__ import annotations

import pytest

from landlane.status.next_steps import Overview, RepositorySetup, next_steps, overview_line

pytestmark = pytest.mark.unit

READY = RepositorySetup(is_set_up=True, has_checks=True, clients=("claude",))
ADD = "landlane task add 'what to do' --path PATH"


def commands(overview: Overview, setup: RepositorySetup = READY) -> list[str]:
    return [step.command for step in next_steps(overview, setup)]


def test_first_step_is_to_set_up() -> None:
    assert commands(Overview(tasks={}), RepositorySetup()) == ["landlane init", ADD]


def test_without_tasks_the_step_is_to_add_one() -> None:
    assert commands(Overview(tasks={"done": 2})) == [ADD]


@pytest.mark.parametrize(
    ("setup", "command"),
    [
        (READY, "landlane run --agent claude"),
        (RepositorySetup(is_set_up=True, has_checks=True, agent="codex"), "landlane run"),
        (
            RepositorySetup(is_set_up=True, has_checks=True, workers=("mine",), clients=("claude",)),
            "landlane run --agent mine",
        ),
        (RepositorySetup(is_set_up=True, has_checks=True), "landlane next"),
        (RepositorySetup(is_set_up=True, has_git=False, clients=("claude",)), "landlane next"),
    ],
)
def test_ready_tasks_go_to_the_available_agents(setup: RepositorySetup, command: str) -> None:
    assert commands(Overview(tasks={"ready": 1}, ready=("T1",)), setup) == [command]


def test_without_checks_the_missing_setting_is_suggested() -> None:
    setup = RepositorySetup(is_set_up=True, checks="npm test", clients=("claude",))

    assert commands(Overview(tasks={"ready": 1}, ready=("T1",)), setup)[0] == (
        "landlane config set landing.checks '[\"npm test\"]'"
    )


def test_blockers_come_before_own_tasks_and_new_work() -> None:
    overview = Overview(
        tasks={"ready": 9},
        mine=("T3",),
        ready=tuple(f"T{number}" for number in range(9)),
        gates=("T7",),
        pool_paused="no disk",
        red="make test fails",
    )

    assert commands(overview) == ["landlane queue show", "landlane run resume", "landlane inbox"]


def test_dead_tasks_are_shown_with_a_way_to_retry() -> None:
    step = next_steps(Overview(tasks={"dead": 1}, dead=("T4",)), READY)[0]

    assert step.command == "landlane task show T4"
    assert "landlane task retry T4" in step.why


def test_long_list_of_names_is_shortened() -> None:
    ready = tuple(f"T{number}" for number in range(5))

    assert (
        next_steps(Overview(tasks={}, ready=ready), READY)[0].why == "start workers on T0, T1, T2 and 2 more"
    )


def test_overview_is_one_line() -> None:
    overview = Overview(tasks={"ready": 2}, ready=("T1", "T2"), sessions=1, claims=2, landings=1)

    assert overview_line(overview) == "1 session, 2 claims, 1 landing, 2 tasks ready"
    assert overview_line(Overview(tasks={})) == "no sessions, no claims, landing queue empty, no tasks"


def test_without_an_agent_one_of_the_ready_tasks_can_be_taken() -> None:
    setup = RepositorySetup(is_set_up=True, has_git=True, has_checks=True)
    whys = [next_steps(Overview(tasks={}, ready=ready), setup)[0].why for ready in (("T1",), ("T1", "T2"))]
    assert whys == ["take T1 yourself", "take one of T1, T2 yourself"]
    assert "landlane next" not in commands(Overview(tasks={"failed": 1}), setup)
