"""Checks of a plan: cycles, waves, implied dependencies, duplicates, unknown names, cost."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landlane.patterns.pattern import overlap, parse
from landlane.plans.check import PlanCheck, check_plan
from landlane.plans.graph import critical_path, find_cycles, waves_of
from landlane.plans.model import PlanTask, make_plan
from landlane.plans.parse import read_plan
from landlane.plans.problems import PlanContext
from landlane.settings.model import LandingSettings, MergeFile, MergeSettings, NumberSettings, Settings

pytestmark = pytest.mark.unit

SETTINGS = Settings(
    numbers={"migration": NumberSettings(path="migrations/{n}_*.sql")},
    landing=LandingSettings(merge=MergeSettings(files={"CHANGELOG.md": MergeFile(kind="union")})),
)


def check(text: str, settings: Settings = SETTINGS) -> PlanCheck:
    return check_plan(read_plan(text, "plan.md"), PlanContext(settings=settings))


def codes(checked: PlanCheck) -> list[str]:
    return [one.code for one in (*checked.problems, *checked.warnings)]


def test_order_waves_and_critical_path() -> None:
    checked = check(
        """
- [ ] D (after: B) (after: C) (path: d) (estimate: 1h)
- [ ] A (path: a) (estimate: 10m)
- [ ] B (after: A) (path: b) (estimate: 2h)
- [ ] C (after: A) (path: c) (estimate: 30m)
- [ ] E (path: e)
"""
    )

    assert checked.is_fine
    assert checked.order == ("A", "B", "C", "D", "E")
    assert checked.waves == (("A", "E"), ("B", "C"), ("D",))
    assert checked.at_once == 2
    assert (checked.critical, checked.critical_ms) == (("A", "B", "D"), 190 * 60_000)
    assert checked.unestimated == ("E",)
    assert checked.follows == ()


def test_without_estimates_the_chain_with_most_tasks_is_critical() -> None:
    checked = check("- [ ] A (path: a)\n- [ ] B (path: b) (after: A)\n- [ ] C (path: c)\n")

    assert (checked.critical, checked.critical_ms) == (("A", "B"), None)


def test_tasks_with_a_common_path_run_one_after_the_other() -> None:
    checked = check(
        """
- [ ] Alpha (path: src/**)
- [ ] Beta (path: src/b.py) (path: CHANGELOG.md)
- [ ] Gamma (path: src/b.py)
- [ ] Delta (path: CHANGELOG.md)
- [ ] Omega (path: src/b.py) (after: Alpha)
- [ ] Free (path: docs)
"""
    )

    implied = {(one.task, one.before): (one.kind, one.what) for one in checked.follows}
    assert implied == {
        ("Beta", "Alpha"): ("path", "both change src/b.py"),
        ("Gamma", "Beta"): ("path", "both change src/b.py"),
        ("Delta", "Beta"): ("hot", "both change CHANGELOG.md, which is hot (union)"),
        ("Omega", "Gamma"): ("path", "both change src/b.py"),
    }
    assert checked.waves[0] == ("Alpha", "Free")
    assert checked.after["Omega"] == ("Alpha", "Gamma")


def test_tasks_that_take_a_number_of_one_kind_run_one_after_the_other() -> None:
    checked = check("- [ ] One (path: migrations/0007_one.sql)\n- [ ] Two (path: migrations/0008_two.sql)\n")

    (edge,) = checked.follows
    assert (edge.task, edge.before, edge.kind) == ("Two", "One", "number")
    assert "migration" in edge.what


def test_contracts_land_first_except_for_their_own_dependencies() -> None:
    checked = check(
        """
- [ ] Work (path: w)
- [ ] More (path: m) (after: Work)
- [ ] Ask (path: q)
- [ ] Api (path: a) (contract: yes) (after: Ask)
- [ ] Form (path: f) (contract: yes)
"""
    )

    assert checked.waves == (("Ask", "Form"), ("Api",), ("Work",), ("More",))
    assert {(one.task, one.before) for one in checked.follows} == {("Work", "Api"), ("Work", "Form")}


def test_every_cycle_is_reported() -> None:
    checked = check(
        "- [ ] A (after: B)\n- [ ] B (after: A)\n- [ ] C (after: C)\n- [ ] D (after: A)\n- [ ] E\n"
    )

    cycles = [one for one in checked.problems if one.code == "TASK_CYCLE"]
    assert [one.reason for one in cycles] == [
        '"A" and "B" wait for each other',
        '"C" waits for itself',
    ]
    assert [one.line for one in cycles] == [1, 3]
    assert checked.waves == ()


def test_unknown_names_are_reported_with_a_suggestion() -> None:
    checked = check(
        "- [ ] Parse (path: a) (role: coder)\n"
        "- [ ] Show (path: b) (agent: claud)\n"
        "- [ ] Ship (path: c) (after: Prase)\n"
        "- [ ] Tell (path: ../d) (kind: song)\n"
    )

    found = [(one.code, one.line) for one in checked.problems]
    assert sorted(found) == [
        ("PATTERN_NOT_TIDY", 4),
        ("UNKNOWN_AGENT", 2),
        ("UNKNOWN_KIND", 4),
        ("UNKNOWN_ROLE", 1),
        ("UNKNOWN_TASK", 3),
    ]
    hints = {one.code: one.hint for one in checked.problems}
    assert "did you mean code?" in hints["UNKNOWN_ROLE"]
    assert "did you mean claude?" in hints["UNKNOWN_AGENT"]
    assert "did you mean Parse?" in hints["UNKNOWN_TASK"]


def test_task_that_is_not_in_the_queue_cannot_be_waited_for() -> None:
    assert codes(check("- [ ] A (path: a) (after: T12)\n")) == ["UNKNOWN_TASK"]


def test_role_that_cannot_do_a_task_is_a_problem() -> None:
    checked = check(
        "- [ ] Write source (path: src/a.py) (role: document)\n"
        "- [ ] Change as a reader (path: src/b.py) (role: review) (kind: code)\n"
        "- [ ] Look around (role: explore)\n"
        "- [ ] Propose (path: src/c.py) (role: propose)\n"
    )

    assert [(one.code, one.line) for one in checked.problems] == [("ROLE_FORBIDS", 1), ("ROLE_FORBIDS", 2)]
    assert "the role document may not change src/a.py" in checked.problems[0].reason
    assert "the role review changes nothing" in checked.problems[1].reason


def test_duplicates_and_missing_paths_are_warnings() -> None:
    checked = check(
        "- [ ] Parse ISO dates (path: src/dates.py)\n"
        "- [ ] Parsing dates (path: src/**)\n"
        "- [ ] Fix the login, see #12 (path: login)\n"
        "- [ ] Fix the logout, see #12 (path: logout)\n"
        "- [ ] Judge it\n"
    )

    assert checked.is_fine
    assert sorted(codes(checked)) == ["NO_PATHS", "TASK_SIMILAR"]
    (alike,) = (one for one in checked.warnings if one.code == "TASK_SIMILAR")
    assert alike.tasks == ("Parsing dates", "Parse ISO dates")


def test_most_cost_is_attempts_times_budget_and_unknown_without_a_budget() -> None:
    plan = "- [ ] A (path: a) (budget: 2) (attempts: 2)\n- [ ] B (path: b) (budget: 0.5)\n"
    assert check(plan).most_micros == 5_500_000

    some = check(plan + "- [ ] C (path: c)\n")
    assert (some.most_micros, some.known_micros, some.unpriced) == (None, 5_500_000, ("C",))

    toml = (
        'budget = 3\n[[task]]\ntitle = "A"\npaths = ["a"]\nbudget = 2\n[[task]]\ntitle = "B"\npaths = ["b"]\n'
    )
    limited = check_plan(read_plan(toml, "p.toml"), PlanContext(settings=SETTINGS))
    assert (limited.most_micros, limited.unpriced) == (3_000_000, ("B",))


def test_ticked_tasks_block_no_others() -> None:
    checked = check("- [x] A (path: a) (after: B)\n- [ ] B (path: a) (after: A)\n")

    assert checked.is_fine
    assert checked.waves == (("B",),)


@pytest.mark.slow
def test_a_thousand_tasks_are_checked_quickly() -> None:
    chain = [PlanTask(name=f"t{n}", title=f"Word{n}", paths=(f"src/{n % 7}/**",)) for n in range(500)]
    apart = [PlanTask(name=f"u{n}", title=f"Other{n}", paths=(f"**/x{n}.py",)) for n in range(500)]

    checked = check_plan(make_plan("", [*chain, *apart]), PlanContext(settings=SETTINGS))

    assert len(checked.order) == 1000
    assert len(checked.waves) > 70


# ------------------------------------------------------------------------------------ for every plan

PATHS = st.sampled_from(
    ["a", "a/b", "a/**", "b", "*.md", "c/x.py", "migrations/1_a.sql", "migrations/2_b.sql"]
)


@st.composite
def plans(draw: st.DrawFn) -> list[PlanTask]:
    count = draw(st.integers(1, 9))
    tasks: list[PlanTask] = []
    for number in range(count):
        befores = draw(st.lists(st.integers(0, count - 1), max_size=2)) if draw(st.booleans()) else []
        tasks.append(
            PlanTask(
                name=f"n{number}",
                title=f"n{number}",
                paths=tuple(draw(st.lists(PATHS, max_size=2))),
                after=tuple(f"n{one}" for one in befores),
                is_contract=draw(st.integers(0, 4)) == 0,
                is_ticked=draw(st.integers(0, 6)) == 0,
                estimate_ms=draw(st.none() | st.integers(0, 100)),
            )
        )
    return tasks


@pytest.mark.promise(
    "plans.collisions-never-run-at-once",
    "Two tasks of a plan that could change the same path never run at the same time.",
)
@given(plans())
def test_conflicting_tasks_never_run_at_the_same_time(tasks: list[PlanTask]) -> None:
    checked = check_plan(make_plan("", tasks), PlanContext(settings=SETTINGS))
    if not checked.is_fine:
        assert codes(checked)[0] == "TASK_CYCLE"
        return
    known = {task.name: task for task in tasks}
    before: dict[str, set[str]] = {}
    for name in checked.order:  # each stands behind all that it waits for
        before[name] = set(checked.after[name]).union(*(before[one] for one in checked.after[name]))
        assert name not in before[name]
    assert sorted(checked.order) == sorted(name for name, task in known.items() if not task.is_ticked)
    for one in checked.order:
        for other in checked.order:
            if one < other and one not in before[other] and other not in before[one]:
                pairs = [(parse(a), parse(b)) for a in known[one].paths for b in known[other].paths]
                assert not any(overlap(a, b) for a, b in pairs)
    needed = {name for name in checked.order if known[name].is_contract}
    needed |= {name for contract in needed for name in before[contract]}
    for name in set(checked.order) - needed:
        assert {one for one in checked.order if known[one].is_contract} <= before[name]
    for earlier, later in pairwise(checked.critical):
        assert earlier in checked.after[later]


GRAPHS = st.integers(1, 7).flatmap(
    lambda count: st.lists(
        st.lists(st.integers(0, count - 1), max_size=3), min_size=count, max_size=count
    ).map(lambda rows: {str(at): tuple(map(str, row)) for at, row in enumerate(rows)})
)


@given(GRAPHS)
def test_cycle_is_found_if_and_only_if_there_is_one(after: dict[str, tuple[str, ...]]) -> None:
    cycles = find_cycles(after)
    for cycle in cycles:
        assert cycle[0] == cycle[-1]
        assert all(later in after[earlier] for earlier, later in pairwise(cycle))
    left = dict(after)
    while free := [task for task, befores in left.items() if not any(one in left for one in befores)]:
        for task in free:
            del left[task]
    assert bool(cycles) == bool(left)
    if not cycles:
        assert sum(map(len, waves_of(after))) == len(after)
        way, length = critical_path(after, dict.fromkeys(after, 1))
        assert len(way) == length == len(waves_of(after))
