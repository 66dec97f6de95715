"""Usage on both stores: booked once, to one lineage, against budgets; and the metrics of `stats`."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest

from landlane.errors import Malformed
from landlane.gates.records import list_gates
from landlane.protocol.worker.messages import Usage
from landlane.settings.model import BudgetSettings, Price, Settings
from landlane.setup.rebuild_store import rebuild_store
from landlane.stats import calculate as stats
from landlane.tasks.add import Added, add_task
from landlane.tasks.attempts import begin_attempt, change_attempt
from landlane.tasks.change import fail_task
from landlane.tasks.lineage import put_lineage
from landlane.tasks.model import NewTask
from landlane.tasks.pick import NothingReady, Picked, next_task
from landlane.tasks.records import get_task
from landlane.tasks.retry_rules import Lineage
from landlane.usage.add import Booked, record_usage_so_far, with_reported
from landlane.usage.add import book as book_usage
from landlane.usage.budget import left_for, why_over_budget
from landlane.usage.import_records import import_usage
from landlane.usage.model import PRICED, REPORTED, UsageEntry, add_up, attempt_key
from landlane.usage.period import Period
from landlane.usage.totals import list_usage, of_lineage, of_run, spent_today, totals_of
from tests.support.project import MINUTE, SECOND, SQLITE_ONLY, Background, granted, opened
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.tasks.model import Attempt, Task
    from landlane.usage.totals import Totals
    from tests.support.project import Agent, Project

pytestmark = pytest.mark.contract

DAY = 24 * 60 * MINUTE


def add(agent: Agent, title: str, **fields: object) -> Task:
    outcome = add_task(agent.repo, agent.session, NewTask(title=title, **fields), force=True)  # type: ignore[arg-type]
    assert isinstance(outcome, Added)
    return outcome.task


def take(agent: Agent) -> Task:
    picked = next_task(agent.repo, agent.session)
    assert isinstance(picked, Picked)
    return picked.task


def begin(agent: Agent, **facts: object) -> Attempt:
    """Take the next task, as a worker's supervisor does."""
    task = take(agent)
    given = {"role": "code", "client": "claude", **facts}
    return agent.repo.change(lambda tx: begin_attempt(tx, agent.repo, agent.session, task, **given))


def book(agent: Agent, key: str, cost: float | None, task: str = "", **more: object) -> Booked:
    used = Usage(cost_usd=cost) if cost is not None else None
    entry = UsageEntry(key=key, task=task, **more)  # type: ignore[arg-type]
    return book_usage(agent.repo, with_reported(entry, used))


def totals(repo: Repository) -> Totals:
    return totals_of(list_usage(repo))


def test_usage_is_booked_once_per_key(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "Parse dates")
    before = len(project.entries())

    assert book(ann, "run-1", 0.1, "T1").is_new
    again, other = book(ann, "run-1", 0.1, "T1"), book(ann, "run-1", 0.2)

    assert (again.is_new, again.differs, other.is_new, other.differs) == (False, False, False, True)
    assert other.entry.cost_micros == 100_000
    assert project.kinds()[before:] == ["usage.booked"]


@pytest.mark.promise(
    "usage.booked-once",
    "A usage record that arrives again under the same key is booked once, even when several processes book "
    "it at the same time.",
)
def test_concurrent_bookings_of_one_key_are_booked_once(live_project: Project) -> None:
    agents = [live_project.agent(name) for name in ("ann", "bob", "cid", "dan")]
    tries = [Background(lambda agent=agent: book(agent, "run-1", 0.1)) for agent in agents]

    assert sum(one.result().is_new for one in tries) == 1
    assert live_project.kinds().count("usage.booked") == 1
    assert totals(agents[0].repo).grand.cost_micros == 100_000


@pytest.mark.promise(
    "usage.parts-equal-the-total",
    "The costs of all tasks and the costs of no task add up exactly to the grand total, however many tasks "
    "a record is linked to.",
)
def test_many_records_linked_to_many_tasks_add_up_to_the_total(project: Project) -> None:
    """337 records, most linked to several tasks and one to 61: counting links would be far too high."""
    ann, dice = project.agent("ann"), random.Random(39)
    names = [add(ann, f"Task number {number}", key=f"K-{number}").id for number in range(1, 62)]
    lines = [json.dumps({"key": "shared", "tasks": names, "cost_usd": 87.654321})]
    for number in range(336):
        linked = dice.sample(names, dice.randint(0, 5))
        cost = dice.choice([None, round(dice.uniform(0, 3), 6)])
        lines.append(json.dumps({"key": f"run-{number}", "tasks": linked, "cost_usd": cost}))
    known = sum(round((json.loads(line)["cost_usd"] or 0) * 1_000_000) for line in lines)

    first = import_usage(ann.repo, ann.session, "\n".join(lines))
    second = import_usage(ann.repo, ann.session, "\n".join(reversed(lines)))

    assert (first.booked, second.booked, second.known, second.differing) == (337, 0, 337, 0)
    summary = totals(ann.repo)
    for groups in (summary.tasks, summary.lineages):
        parts = [*groups.values(), summary.unattributed]
        assert sum(one.cost_micros for one in parts) == summary.grand.cost_micros == known
        assert sum(one.entries for one in parts) == summary.grand.entries == 337
        assert sum(one.unknown for one in parts) == summary.grand.unknown > 0
    assert summary.unattributed.entries > 0
    shared = [one for one in list_usage(ann.repo, task="T61") if one.key == "shared"]
    assert (shared[0].task, len(shared[0].links)) == ("T1", 60)


def test_imported_tasks_are_found_by_key_and_unknown_ones_are_reported(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "Parse dates", key="GH-7")
    lines = '{"tasks": ["XX-1", "GH-7"], "cost_usd": 1}\n\n{"task": "XX-2", "cost_usd": 2}\r\n'

    done = import_usage(
        ann.repo, ann.session, "\ufeff" + lines + lines
    )  # the same lines twice are two records

    assert (done.booked, done.unattributed, done.unknown_tasks) == (4, 2, ("XX-1", "XX-2"))
    assert totals(ann.repo).tasks["T1"].cost_micros == 2_000_000
    assert import_usage(ann.repo, ann.session, lines).known == 2


@pytest.mark.parametrize(
    "bad",
    [
        "{",
        "[1]",
        '{"cost_usd": NaN}',
        '{"cost_usd": "x"}',
        "1" * 5000,
        "[" * 9000,
        '{"cost_usd": 1, "cost_usd": 2}',
    ],
)
def test_nothing_is_booked_if_one_line_cannot_be_parsed(project: Project, bad: str) -> None:
    ann = project.agent("ann")
    with pytest.raises(Malformed) as refused:
        import_usage(ann.repo, ann.session, f'{{"cost_usd": 1}}\n{bad}')
    assert refused.value.facts["line"] == 2
    assert totals(ann.repo).grand.entries == 0


def test_children_belong_to_the_lineage_and_an_unknown_task_is_refused(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "Parse dates")
    add(ann, "Write the parser", parent="T1")
    book(ann, "a", 1.0, "T1")
    book(ann, "b", None, "T2")
    book(ann, "c", 0.5)

    summary = totals(ann.repo)
    assert {name: one.entries for name, one in summary.lineages.items()} == {"T1": 2}
    family = add_up(ann.repo.store.view(lambda snapshot: of_lineage(snapshot, "T1")))
    assert (family.cost_micros, family.unknown) == (1_000_000, 1)
    with pytest.raises(Malformed) as refused:
        book(ann, "d", 1.0, "T9")
    assert refused.value.code == "UNKNOWN_TASK"


def test_cost_reported_by_the_client_takes_precedence_over_token_prices(project: Project) -> None:
    prices = {"gpt-5": Price(input_micros=1_000_000, output_micros=10_000_000)}
    ann = project.agent("ann", settings=Settings(prices=prices))

    def priced(key: str, model: str, used: Usage) -> tuple[int | None, str]:
        entry = book_usage(ann.repo, with_reported(UsageEntry(key=key, model=model), used)).entry
        return entry.cost_micros, entry.how

    assert priced("a", "gpt-5", Usage(input_tokens=100, output_tokens=10)) == (200, PRICED)
    assert priced("b", "gpt-5", Usage(input_tokens=100, output_tokens=10, cost_usd=0.5)) == (
        500_000,
        REPORTED,
    )
    assert priced("c", "other", Usage(input_tokens=100, output_tokens=10)) == (None, "")
    assert priced("d", "gpt-5", Usage(input_tokens=-5, output_tokens=10)) == (None, "")
    assert priced("e", "gpt-5", Usage(cost_usd=float("nan"))) == (None, "")


def test_usage_so_far_grows_until_the_attempt_ends_with_its_cost(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "Parse dates")
    attempt = begin(ann)
    record_usage_so_far(ann.repo, attempt, Usage(cost_usd=0.2))
    record_usage_so_far(ann.repo, attempt, Usage(cost_usd=0.1))  # late: it never shrinks
    running = list_usage(ann.repo)[0]
    assert (running.cost_micros, running.is_final, running.is_least) == (200_000, False, False)

    ended = book(ann, attempt_key("A1"), 0.3, "T1", attempt=1).entry
    change_attempt(ann.repo, attempt, "ended", state="ended", run="X1")
    assert (ended.cost_micros, ended.is_final, ended.is_least) == (300_000, True, False)
    assert not book(ann, attempt_key("A1"), 0.9, "T1", attempt=1).is_new
    assert not record_usage_so_far(ann.repo, attempt, Usage(cost_usd=5)).is_new
    assert list_usage(ann.repo) == [ended]


@pytest.mark.promise(
    "usage.failures-are-booked",
    "Every attempt is booked, even when its supervisor was killed: as unknown, or as at least the usage "
    "recorded so far.",
)
@pytest.mark.parametrize(
    ("noted", "how_it_ended", "cost", "is_least"),
    [
        (0.2, {"run": "X1"}, 200_000, True),  # at least what was noted
        (None, {"run": "X1"}, None, False),  # nobody knows
        (None, {"run": "X1", "code": "not_started"}, 0, False),  # nothing ran
        (None, {}, 0, False),
    ],
)
def test_attempt_that_ends_without_a_report_is_booked(
    project: Project, noted: float | None, how_it_ended: dict[str, str], cost: int | None, is_least: bool
) -> None:
    ann = project.agent("ann")
    add(ann, "Parse dates")
    attempt = begin(ann, orchestrator="here:1:2")
    if noted is not None:
        record_usage_so_far(ann.repo, attempt, Usage(cost_usd=noted))
    for _ in range(2):
        change_attempt(ann.repo, attempt, "ended", state="ended", **how_it_ended)

    (entry,) = list_usage(ann.repo)
    assert (entry.cost_micros, entry.is_least, entry.is_final) == (cost, is_least, True)
    assert (entry.task, entry.attempt, entry.run) == ("T1", 1, "here:1:2")


# --------------------------------------------------------------------------------------------- budgets


@pytest.mark.parametrize("noted", [None, 2.0])
@pytest.mark.parametrize("has_run", [True, False])
def test_late_report_of_an_ended_attempt_counts_once(
    project: Project, noted: float | None, has_run: bool
) -> None:
    """A machine that was cut off comes back, and its worker knows what it cost."""
    ann = project.agent("ann")
    add(ann, "Parse dates")
    attempt = begin(ann)
    if has_run:
        attempt = change_attempt(ann.repo, attempt, "placed", run="R1")
    if noted is not None:
        record_usage_so_far(ann.repo, attempt, Usage(cost_usd=noted))
    change_attempt(ann.repo, attempt, "ended", state="ended", outcome="lost")
    key = attempt_key(attempt.id)

    word = book(ann, key, 5.0, "T1", attempt=1)
    again = book(ann, key, 7.0, "T1", attempt=1)

    assert (word.differs, again.differs) == (False, True)
    total = totals(ann.repo).grand
    assert (total.cost_micros, total.entries, total.unknown, total.least) == (5_000_000, 1, 0, 0)
    assert book(ann, key, None, "T1", attempt=1).entry.cost_micros == 5_000_000, "silence takes nothing away"


def test_lineage_stops_at_its_budget(project: Project) -> None:
    ann = project.agent("ann", settings=Settings(budgets=BudgetSettings(task_micros=1_000_000)))
    add(ann, "Parse dates")
    child, other = add(ann, "Write the parser", parent="T1"), add(ann, "Other thing")
    book(ann, "a", 0.6, "T1")
    assert why_over_budget(ann.repo, child) == ""
    assert left_for(ann.repo, child) == 400_000

    book(ann, "b", 0.4, "T2")
    assert "T1 and what came of it ([budgets] task): $1.00 spent of $1.00" == why_over_budget(ann.repo, child)
    assert why_over_budget(ann.repo, other) == ""


def test_budget_label_limits_each_attempt_and_all_attempts(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "Parse dates", labels=("budget:0.50",), max_attempts=2)
    attempt = begin(ann)
    task = get_task(ann.repo, "T1")
    assert left_for(ann.repo, task) == 500_000
    assert why_over_budget(ann.repo, task, so_far=Usage(cost_usd=0.4)) == ""
    assert "the attempt at T1" in why_over_budget(ann.repo, task, so_far=Usage(cost_usd=0.5))
    record_usage_so_far(ann.repo, attempt, Usage(cost_usd=0.6))
    assert "the attempt at T1: $0.60 spent of $0.50" in why_over_budget(ann.repo, task)

    book(ann, attempt_key("A1"), 0.6, "T1", attempt=1)
    assert why_over_budget(ann.repo, task) == ""  # the next attempt has a budget of its own
    book(ann, attempt_key("A2"), 0.4, "T1", attempt=2)
    assert "all 2 attempts at T1: $1.00 spent of $1.00" in why_over_budget(ann.repo, task)


def test_day_stops_at_its_budget_and_the_next_day_continues(project: Project) -> None:
    ann = project.agent("ann", settings=Settings(budgets=BudgetSettings(day_micros=1_000_000)))
    task = add(ann, "Parse dates")
    book(ann, "a", 1.5)  # what belongs to no task counts, too
    assert "today, by UTC" in why_over_budget(ann.repo, task)
    assert spent_today(ann.repo).cost_micros == 1_500_000

    project.clock.advance(DAY)
    assert why_over_budget(project.agent("ann", settings=ann.repo.settings).repo, task) == ""


def test_next_skips_tasks_over_budget(project: Project) -> None:
    ann = project.agent("ann", settings=Settings(budgets=BudgetSettings(task_micros=1_000_000)))
    add(ann, "Parse dates")
    add(ann, "Other thing")
    add(ann, "Part of it", parent="T1")
    book(ann, "a", 1.0, "T1")

    assert take(ann).id == "T2"
    nothing = next_task(ann.repo, ann.session)
    assert isinstance(nothing, NothingReady)
    assert [task for task, _ in nothing.over_budget] == ["T3"]
    assert nothing.held_up == ()
    assert get_task(ann.repo, "T1").state == "waiting_for_person", "and a person is asked, once"
    assert [gate.task for gate in list_gates(ann.repo)] == ["T1"]


def test_failed_task_over_budget_waits_for_a_person(project: Project) -> None:
    ann = project.agent("ann", settings=Settings(budgets=BudgetSettings(task_micros=1_000_000)))
    add(ann, "Parse dates")
    take(ann)
    book(ann, "a", 1.2, "T1")
    assert get_task(ann.repo, "T1").state == "active", "whoever is at it can finish"
    failed = fail_task(ann.repo, ann.session, "T1", "two tests fail")
    assert (failed.state, "its budget is used up" in failed.why) == ("waiting_for_person", True)


def test_person_who_continues_a_lineage_grants_another_budget(project: Project) -> None:
    ann = project.agent("ann", settings=Settings(budgets=BudgetSettings(task_micros=1_000_000)))
    task = add(ann, "Parse dates")
    book(ann, "a", 1.5, "T1")
    assert why_over_budget(ann.repo, task)

    lineage = Lineage(id="T1", rounds=1)
    ann.repo.change(lambda tx: put_lineage(tx, lineage, "renewed"))
    assert why_over_budget(ann.repo, task) == ""
    assert left_for(ann.repo, task) == 500_000


def test_run_stops_at_its_budget(project: Project) -> None:
    ann = project.agent("ann", settings=Settings(budgets=BudgetSettings(run_micros=1_000_000)))
    add(ann, "Parse dates")
    begin(ann, orchestrator="s-run")
    task = get_task(ann.repo, "T1")
    book(ann, attempt_key("A1"), 1.0, "T1", attempt=1)  # whose run it was is known from its attempt

    assert "this run" in why_over_budget(ann.repo, task, run="s-run")
    assert why_over_budget(ann.repo, task, run="s-other") == ""
    assert len(ann.repo.store.view(lambda snapshot: of_run(snapshot, "s-run"))) == 1


def test_unknown_cost_counts_against_budgets_as_configured(project: Project) -> None:
    settings = Settings(budgets=BudgetSettings(task_micros=1_000_000, unknown_micros=600_000))
    ann = project.agent("ann", settings=settings)
    task = add(ann, "Parse dates")
    book(ann, "a", None, "T1")
    assert why_over_budget(ann.repo, task) == ""
    book(ann, "b", None, "T1")
    assert "$1.20 spent of $1.00" in why_over_budget(ann.repo, task)
    assert totals(ann.repo).grand.cost_micros == 0  # and nowhere else


# ----------------------------------------------------------------------------------------- the journal


@SQLITE_ONLY
def test_rebuilt_store_has_the_same_usage(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "Parse dates")
    attempt = begin(ann)
    book(ann, "a", 0.25, "T1")
    record_usage_so_far(ann.repo, attempt, Usage(cost_usd=0.1))
    before = list_usage(ann.repo)
    with opened(project) as repo:
        repo.settle()
        folder, repository_id = repo.state_folder, repo.store.repository
    project.close()

    rebuild_store(folder, repository_id, ignore_case=False)

    ann = project.agent("ann")
    assert list_usage(ann.repo) == before
    assert not book(ann, "a", 0.25, "T1").is_new


def test_wait_for_claims_is_measured_when_it_is_over(live_project: Project) -> None:
    ann, bob = live_project.agent("ann"), live_project.agent("bob")
    ann.take("src")
    waiter = Background(lambda: bob.claim("src/a.py", wait_ms=20 * SECOND))
    wait_until(lambda: live_project.waiting_agents() == ["bob"])
    period = Period(since=0, until=2**50)

    def waits(agent: Agent) -> int | None:
        metrics = {one.name: one for one in stats.stats(agent.repo, period).metrics}
        return metrics["claim_wait"].numerator

    assert waits(ann) == 1  # who still stands there counts
    ann.release("src")
    granted(waiter.result())

    ended = [entry for entry in live_project.entries() if entry.kind == "wait.ended"]
    assert [(entry.agent, entry.facts()["outcome"]) for entry in ended] == [("bob", "answered")]
    assert ended[0].facts()["pattern"] == "src/a.py"
    assert waits(ann) == 1


def test_waits_that_were_given_up_or_abandoned_count(live_project: Project) -> None:
    ann, bob = live_project.agent("ann"), live_project.agent("bob")
    ann.take("src")
    bob.claim("src", wait_ms=50)
    answer = [entry.facts() for entry in live_project.entries() if entry.kind == "wait.ended"]
    assert [one["outcome"] for one in answer] == ["left"]
    assert answer[0]["waited_ms"] >= 50


def test_metrics_of_a_period_come_from_the_journal(project: Project) -> None:
    ann = project.agent("ann")
    add(ann, "Parse dates")
    add_task(ann.repo, ann.session, NewTask(title="Parse the dates"))
    take(ann)
    book(ann, "a", 0.25, "T1")

    found = {one.name: one for one in stats.stats(ann.repo, stats.period_of(ann.repo)).metrics}
    assert (found["attempts"].value, found["retries"].value) == (1, 0)
    assert (found["duplicate_rate"].numerator, found["duplicate_rate"].denominator) == (1, 2)
    assert (found["cost"].value, found["cost_per_landed"].note) == (250_000, "nothing landed in the period")
