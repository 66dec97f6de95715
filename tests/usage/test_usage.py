"""Money in the store: booked once, to one lineage, against budgets; and what `stats` sees; on both stores."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest

from landlane.errors import Malformed
from landlane.gates import ask as gates
from landlane.protocol.worker.messages import Usage
from landlane.settings.model import BudgetSettings, Price, Settings
from landlane.setup.rebuild_store import rebuild_store
from landlane.stats import calculate as stats
from landlane.store import records
from landlane.tasks.add import Added, add_task
from landlane.tasks.attempts import begin_attempt, change_attempt
from landlane.tasks.change import fail_task
from landlane.tasks.model import NewTask
from landlane.tasks.pick import NothingReady, Picked, next_task
from landlane.tasks.records import get_task
from landlane.tasks.retry_rules import Lineage
from landlane.usage import add as usage
from landlane.usage.import_records import import_usage
from landlane.usage.model import PRICED, REPORTED
from landlane.usage.period import Period
from landlane.values import as_dict
from tests.support.sites import MINUTE, SECOND, SQLITE_ONLY, Background, granted, opened
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from landlane.tasks.model import Attempt, Task
    from tests.support.sites import Agent, Site

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
    """Take the next task, as a worker's keeper does."""
    task = take(agent)
    return begin_attempt(agent.repo, agent.session, task, role="code", client="claude", **facts)


def book(agent: Agent, key: str, cost: float | None, task: str = "", **more: object) -> usage.Booked:
    used = Usage(cost_usd=cost) if cost is not None else None
    return usage.book(agent.repo, key=key, task=task, usage=used, **more)  # type: ignore[arg-type]


def test_a_booking_is_made_once_by_its_key(site: Site) -> None:
    ann = site.agent("ann")
    add(ann, "Parse dates")
    before = len(site.entries())

    assert book(ann, "run-1", 0.1, "T1").is_new
    again, other = book(ann, "run-1", 0.1, "T1"), book(ann, "run-1", 0.2)

    assert (again.is_new, again.differs, other.is_new, other.differs) == (False, False, False, True)
    assert other.entry.cost_micros == 100_000
    assert site.kinds()[before:] == ["usage.booked"]


@pytest.mark.promise(
    "usage.booked-once",
    "A usage record that arrives again under the same key is booked once, even when several processes book "
    "it at the same time.",
)
def test_of_those_who_book_the_same_at_once_one_does(live_site: Site) -> None:
    agents = [live_site.agent(name) for name in ("ann", "bob", "cid", "dan")]
    tries = [Background(lambda agent=agent: book(agent, "run-1", 0.1)) for agent in agents]

    assert sum(one.result().is_new for one in tries) == 1
    assert live_site.kinds().count("usage.booked") == 1
    assert usage.totals(agents[0].repo).grand.cost_micros == 100_000


@pytest.mark.promise(
    "usage.parts-equal-the-total",
    "The costs of all tasks and the costs of no task add up exactly to the grand total, however many tasks "
    "a record is linked to.",
)
def test_many_records_linked_to_many_tasks_add_up_to_the_total(site: Site) -> None:
    """337 records, most linked to several tasks and one to 61: counting links would be far too high."""
    ann, dice = site.agent("ann"), random.Random(39)
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
    totals = usage.totals(ann.repo)
    for groups in (totals.tasks, totals.lineages):
        parts = [*groups.values(), totals.unattributed]
        assert sum(one.cost_micros for one in parts) == totals.grand.cost_micros == known
        assert sum(one.entries for one in parts) == totals.grand.entries == 337
        assert sum(one.unknown for one in parts) == totals.grand.unknown > 0
    assert totals.unattributed.entries > 0
    shared = [one for one in usage.list_usage(ann.repo, task="T61") if one.key == "shared"]
    assert (shared[0].task, len(shared[0].links)) == ("T1", 60)


def test_a_foreign_task_goes_by_its_key_and_what_nobody_knows_is_told(site: Site) -> None:
    ann = site.agent("ann")
    add(ann, "Parse dates", key="GH-7")
    lines = '{"tasks": ["XX-1", "GH-7"], "cost_usd": 1}\n\n{"task": "XX-2", "cost_usd": 2}\r\n'

    done = import_usage(
        ann.repo, ann.session, "\ufeff" + lines + lines
    )  # the same lines twice are two records

    assert (done.booked, done.unattributed, done.strange) == (4, 2, ("XX-1", "XX-2"))
    assert usage.totals(ann.repo).tasks["T1"].cost_micros == 2_000_000
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
def test_nothing_is_booked_when_one_line_cannot_be_read(site: Site, bad: str) -> None:
    ann = site.agent("ann")
    with pytest.raises(Malformed) as refused:
        import_usage(ann.repo, ann.session, f'{{"cost_usd": 1}}\n{bad}')
    assert refused.value.facts["line"] == 2
    assert usage.totals(ann.repo).grand.entries == 0


def test_children_belong_to_the_lineage_and_an_unknown_task_is_refused(site: Site) -> None:
    ann = site.agent("ann")
    add(ann, "Parse dates")
    add(ann, "Write the parser", parent="T1")
    book(ann, "a", 1.0, "T1")
    book(ann, "b", None, "T2")
    book(ann, "c", 0.5)

    totals = usage.totals(ann.repo)
    assert {name: one.entries for name, one in totals.lineages.items()} == {"T1": 2}
    family = ann.repo.store.view(lambda snapshot: usage.spent(snapshot, lineage="T1"))
    assert (family.cost_micros, family.unknown) == (1_000_000, 1)
    with pytest.raises(Malformed) as refused:
        book(ann, "d", 1.0, "T9")
    assert refused.value.code == "UNKNOWN_TASK"


def test_the_clients_word_counts_before_the_price_of_its_tokens(site: Site) -> None:
    prices = {"gpt-5": Price(input_micros=1_000_000, output_micros=10_000_000)}
    ann = site.agent("ann", settings=Settings(prices=prices))

    def priced(key: str, model: str, used: Usage) -> tuple[int | None, str]:
        entry = usage.book(ann.repo, key=key, model=model, usage=used).entry
        return entry.cost_micros, entry.how

    assert priced("a", "gpt-5", Usage(input_tokens=100, output_tokens=10)) == (200, PRICED)
    assert priced("b", "gpt-5", Usage(input_tokens=100, output_tokens=10, cost_usd=0.5)) == (
        500_000,
        REPORTED,
    )
    assert priced("c", "other", Usage(input_tokens=100, output_tokens=10)) == (None, "")
    assert priced("d", "gpt-5", Usage(input_tokens=-5, output_tokens=10)) == (None, "")
    assert priced("e", "gpt-5", Usage(cost_usd=float("nan"))) == (None, "")


def test_what_an_attempt_used_so_far_grows_and_its_end_says_what_it_cost(site: Site) -> None:
    ann = site.agent("ann")
    add(ann, "Parse dates")
    attempt = begin(ann)
    usage.note_so_far(ann.repo, attempt, Usage(cost_usd=0.2))
    usage.note_so_far(ann.repo, attempt, Usage(cost_usd=0.1))  # late: it never shrinks
    running = usage.list_usage(ann.repo)[0]
    assert (running.cost_micros, running.is_final, running.is_least) == (200_000, False, False)

    ended = book(ann, usage.attempt_key("A1"), 0.3, "T1", attempt=1).entry
    change_attempt(ann.repo, attempt, "ended", state="ended", run="X1")
    assert (ended.cost_micros, ended.is_final, ended.is_least) == (300_000, True, False)
    assert not book(ann, usage.attempt_key("A1"), 0.9, "T1", attempt=1).is_new
    assert not usage.note_so_far(ann.repo, attempt, Usage(cost_usd=5)).is_new
    assert usage.list_usage(ann.repo) == [ended]


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
def test_an_attempt_that_ends_without_a_word_is_booked_all_the_same(
    site: Site, noted: float | None, how_it_ended: dict[str, str], cost: int | None, is_least: bool
) -> None:
    ann = site.agent("ann")
    add(ann, "Parse dates")
    attempt = begin(ann, orchestrator="here:1:2")
    if noted is not None:
        usage.note_so_far(ann.repo, attempt, Usage(cost_usd=noted))
    for _ in range(2):
        change_attempt(ann.repo, attempt, "ended", state="ended", **how_it_ended)

    (entry,) = usage.list_usage(ann.repo)
    assert (entry.cost_micros, entry.is_least, entry.is_final) == (cost, is_least, True)
    assert (entry.task, entry.attempt, entry.run) == ("T1", 1, "here:1:2")


# --------------------------------------------------------------------------------------------- budgets


@pytest.mark.parametrize("noted", [None, 2.0])
@pytest.mark.parametrize("has_run", [True, False])
def test_the_word_of_an_attempt_that_another_ended_counts_once(
    site: Site, noted: float | None, has_run: bool
) -> None:
    """A machine that was cut off comes back, and its worker knows what it cost."""
    ann = site.agent("ann")
    add(ann, "Parse dates")
    attempt = begin(ann)
    if has_run:
        attempt = change_attempt(ann.repo, attempt, "placed", run="R1")
    if noted is not None:
        usage.note_so_far(ann.repo, attempt, Usage(cost_usd=noted))
    change_attempt(ann.repo, attempt, "ended", state="ended", outcome="lost")
    key = usage.attempt_key(attempt.id)

    word = book(ann, key, 5.0, "T1", attempt=1)
    again = book(ann, key, 7.0, "T1", attempt=1)

    assert (word.differs, again.differs) == (False, True)
    total = usage.totals(ann.repo).grand
    assert (total.cost_micros, total.entries, total.unknown, total.least) == (5_000_000, 1, 0, 0)
    assert book(ann, key, None, "T1", attempt=1).entry.cost_micros == 5_000_000, "silence takes nothing away"


def test_a_lineage_stops_at_its_budget(site: Site) -> None:
    ann = site.agent("ann", settings=Settings(budgets=BudgetSettings(task_micros=1_000_000)))
    add(ann, "Parse dates")
    child, other = add(ann, "Write the parser", parent="T1"), add(ann, "Other thing")
    book(ann, "a", 0.6, "T1")
    assert usage.why_over_budget(ann.repo, child) == ""
    assert usage.left_for(ann.repo, child) == 400_000

    book(ann, "b", 0.4, "T2")
    assert "T1 and what came of it ([budgets] task): $1.00 spent of $1.00" == usage.why_over_budget(
        ann.repo, child
    )
    assert usage.why_over_budget(ann.repo, other) == ""


def test_a_label_limits_each_attempt_and_all_of_them(site: Site) -> None:
    ann = site.agent("ann")
    add(ann, "Parse dates", labels=("budget:0.50",), max_attempts=2)
    attempt = begin(ann)
    task = get_task(ann.repo, "T1")
    assert usage.left_for(ann.repo, task) == 500_000
    assert usage.why_over_budget(ann.repo, task, so_far=Usage(cost_usd=0.4)) == ""
    assert "the attempt at T1" in usage.why_over_budget(ann.repo, task, so_far=Usage(cost_usd=0.5))
    usage.note_so_far(ann.repo, attempt, Usage(cost_usd=0.6))
    assert "the attempt at T1: $0.60 spent of $0.50" in usage.why_over_budget(ann.repo, task)

    book(ann, usage.attempt_key("A1"), 0.6, "T1", attempt=1)
    assert usage.why_over_budget(ann.repo, task) == ""  # the next attempt has a budget of its own
    book(ann, usage.attempt_key("A2"), 0.4, "T1", attempt=2)
    assert "all 2 attempts at T1: $1.00 spent of $1.00" in usage.why_over_budget(ann.repo, task)


def test_a_day_stops_at_its_budget_and_the_next_day_goes_on(site: Site) -> None:
    ann = site.agent("ann", settings=Settings(budgets=BudgetSettings(day_micros=1_000_000)))
    task = add(ann, "Parse dates")
    book(ann, "a", 1.5)  # what belongs to no task counts, too
    assert "today, by UTC" in usage.why_over_budget(ann.repo, task)
    assert usage.spent_today(ann.repo).cost_micros == 1_500_000

    site.clock.advance(DAY)
    assert usage.why_over_budget(site.agent("ann", settings=ann.repo.settings).repo, task) == ""


def test_next_passes_over_what_has_used_up_its_money(site: Site) -> None:
    ann = site.agent("ann", settings=Settings(budgets=BudgetSettings(task_micros=1_000_000)))
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
    assert [gate.task for gate in gates.list_gates(ann.repo)] == ["T1"]


def test_what_failed_with_the_last_of_its_money_is_put_before_a_person(site: Site) -> None:
    ann = site.agent("ann", settings=Settings(budgets=BudgetSettings(task_micros=1_000_000)))
    add(ann, "Parse dates")
    take(ann)
    book(ann, "a", 1.2, "T1")
    assert get_task(ann.repo, "T1").state == "active", "whoever is at it can finish"
    failed = fail_task(ann.repo, ann.session, "T1", "two tests fail")
    assert (failed.state, "its budget is used up" in failed.why) == ("waiting_for_person", True)


def test_a_person_who_lets_a_lineage_go_on_gives_it_another_budget(site: Site) -> None:
    ann = site.agent("ann", settings=Settings(budgets=BudgetSettings(task_micros=1_000_000)))
    task = add(ann, "Parse dates")
    book(ann, "a", 1.5, "T1")
    assert usage.why_over_budget(ann.repo, task)

    lineage = Lineage(id="T1", rounds=1)
    ann.repo.change(lambda tx: records.put(tx, "lineage", as_dict(lineage), "renewed"))
    assert usage.why_over_budget(ann.repo, task) == ""
    assert usage.left_for(ann.repo, task) == 500_000


def test_a_run_stops_at_its_budget(site: Site) -> None:
    ann = site.agent("ann", settings=Settings(budgets=BudgetSettings(run_micros=1_000_000)))
    add(ann, "Parse dates")
    begin(ann, orchestrator="s-run")
    task = get_task(ann.repo, "T1")
    book(ann, usage.attempt_key("A1"), 1.0, "T1", attempt=1)  # whose run it was is known from its attempt

    assert "this run" in usage.why_over_budget(ann.repo, task, run="s-run")
    assert usage.why_over_budget(ann.repo, task, run="s-other") == ""
    assert ann.repo.store.view(lambda snapshot: usage.spent(snapshot, run="s-run")).entries == 1


def test_an_unknown_cost_counts_in_budgets_what_the_settings_say(site: Site) -> None:
    settings = Settings(budgets=BudgetSettings(task_micros=1_000_000, unknown_micros=600_000))
    ann = site.agent("ann", settings=settings)
    task = add(ann, "Parse dates")
    book(ann, "a", None, "T1")
    assert usage.why_over_budget(ann.repo, task) == ""
    book(ann, "b", None, "T1")
    assert "$1.20 spent of $1.00" in usage.why_over_budget(ann.repo, task)
    assert usage.totals(ann.repo).grand.cost_micros == 0  # and nowhere else


# ----------------------------------------------------------------------------------------- the journal


@SQLITE_ONLY
def test_a_rebuilt_store_knows_what_was_spent(site: Site) -> None:
    ann = site.agent("ann")
    add(ann, "Parse dates")
    attempt = begin(ann)
    book(ann, "a", 0.25, "T1")
    usage.note_so_far(ann.repo, attempt, Usage(cost_usd=0.1))
    before = usage.list_usage(ann.repo)
    with opened(site) as repo:
        repo.settle()
        folder, repository_id = repo.state_folder, repo.store.repository
    site.close()

    rebuild_store(folder, repository_id, ignore_case=False)

    ann = site.agent("ann")
    assert usage.list_usage(ann.repo) == before
    assert not book(ann, "a", 0.25, "T1").is_new


def test_time_in_line_for_claims_is_told_once_it_is_over(live_site: Site) -> None:
    ann, bob = live_site.agent("ann"), live_site.agent("bob")
    ann.take("src")
    waiter = Background(lambda: bob.claim("src/a.py", wait_ms=20 * SECOND))
    wait_until(lambda: live_site.line() == ["bob"])
    period = Period(since=0, until=2**50)

    def waits(agent: Agent) -> int | None:
        metrics = {one.name: one for one in stats.stats(agent.repo, period).metrics}
        return metrics["claim_wait"].numerator

    assert waits(ann) == 1  # who still stands there counts
    ann.release("src")
    granted(waiter.result())

    ended = [entry for entry in live_site.entries() if entry.kind == "wait.ended"]
    assert [(entry.agent, entry.facts()["outcome"]) for entry in ended] == [("bob", "answered")]
    assert ended[0].facts()["pattern"] == "src/a.py"
    assert waits(ann) == 1


def test_whoever_gives_up_or_vanishes_has_waited_too(live_site: Site) -> None:
    ann, bob = live_site.agent("ann"), live_site.agent("bob")
    ann.take("src")
    bob.claim("src", wait_ms=50)
    told = [entry.facts() for entry in live_site.entries() if entry.kind == "wait.ended"]
    assert [one["outcome"] for one in told] == ["left"]
    assert told[0]["waited_ms"] >= 50


def test_the_numbers_of_a_period_come_from_the_journal(site: Site) -> None:
    ann = site.agent("ann")
    add(ann, "Parse dates")
    add_task(ann.repo, ann.session, NewTask(title="Parse the dates"))
    take(ann)
    book(ann, "a", 0.25, "T1")

    found = {one.name: one for one in stats.stats(ann.repo, stats.period_of(ann.repo)).metrics}
    assert (found["attempts"].value, found["retries"].value) == (1, 0)
    assert (found["duplicate_rate"].numerator, found["duplicate_rate"].denominator) == (1, 2)
    assert (found["cost"].value, found["cost_per_landed"].note) == (250_000, "nothing landed in the period")
