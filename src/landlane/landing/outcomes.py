"""How an entry of the landing queue ends: landed, bounced to its author, or decided by a person.

With it end its claims, and its task goes on: done with the commit that landed, or the author's again together
with what has to be mended.
"""

from __future__ import annotations

from landlane.errors import NotAllowed, Stale
from landlane.landing.bounce_reasons import REJECTED, rejected
from landlane.landing.entry_claims import (
    end_holder,
    give_back,
    living_author,
    release_authors,
    tell_holders,
)
from landlane.landing.fix_tasks import book_bounce, drop_mend, find_mend, is_open
from landlane.landing.model import (
    BOUNCED,
    EJECTED,
    HELD,
    LANDED,
    MOST_OUTPUT,
    OPEN,
    QUEUED,
    TESTING,
    Landing,
)
from landlane.landing.records import NOUN, get_landing, locked, locked_queue
from landlane.roles.model import forbidden
from landlane.sessions.notices import add_notice
from landlane.sessions.runner_lease import check_runner
from landlane.store import records
from landlane.tasks.add import ADDING, Added, add_in
from landlane.tasks.finish import finish
from landlane.tasks.lineage import why_stopped
from landlane.tasks.model import (
    LANDING,
    LONGEST_BODY,
    LONGEST_LINE,
    LONGEST_TITLE,
    READY,
    REPORTED,
    NewTask,
)
from landlane.tasks.records import get_in, move_task, who
from landlane.tasks.retry import judge_in, park_in, state_after, tell_end
from landlane.tasks.retry_rules import AttemptEnd
from landlane.values import as_dict, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.sessions.runner_lease import RunnerLease
    from landlane.store.interface import Transaction
    from landlane.tasks.model import Task


def mark_landed(
    repo: Repository,
    lease: RunnerLease,
    target: str,
    landed: Sequence[tuple[str, str, dict[str, object]]],
    tip: str,
    wall_ms: int,
    *,
    is_late: bool = False,
    is_checkout: Callable[[str], bool] = lambda _: True,
) -> list[Landing]:
    """The target has moved: these entries have landed, each as a commit; their claims and tasks end with it.

    A push that arrives late may bring what was sent back or taken out meanwhile: it has landed all the same.
    `is_checkout` says whether a folder of this machine is the root of a checkout.

    Raises:
        Stale: somebody else runs the queue by now.
    """

    def work(tx: Transaction) -> list[Landing]:
        check_runner(tx, lease)
        done: list[Landing] = []
        for landing_id, commit, more in landed:
            one = locked(tx, landing_id)
            if one.state == LANDED or (one.state not in (TESTING, QUEUED) and not is_late):
                continue
            now = replace(
                one, state=LANDED, stage="", commit=commit, reason="", code="", ended_at=wall_ms, **more
            )
            records.put(tx, NOUN, as_dict(now), "landed")
            end_holder(tx, now, commit)
            drop_mend(tx, repo, now)
            task = get_in(tx, now.task) if now.task else None
            if task is not None and task.state in (LANDING, REPORTED) and task.attempt == now.attempt:
                evidence: list[dict[str, object]] = [
                    {"name": "landed", "is_seen": True, "found": f"{commit[:12]} on {target}", "hint": ""}
                ]
                finish(tx, repo, task, None, head=now.head, evidence=evidence)
            done.append(now)
        release_authors(tx, repo, done)
        for now in done:  # only now: whose own work landed with it need not hear of it
            tell_holders(tx, repo, now, is_checkout)
        queue = locked_queue(tx, target)
        queue = replace(queue, tip=tip, move={}, landed=queue.landed + len(done))
        records.put(tx, "queue", as_dict(queue), "moved")
        tx.frees = True
        return done

    return repo.change(work)


def bounce(
    repo: Repository,
    lease: RunnerLease | None,
    landing_id: str,
    *,
    reason: str,
    code: str,
    hint: str,
    wall_ms: int,
    output: str = "",
    pair: str = "",
    state: str = BOUNCED,
    **more: object,
) -> Landing:
    """Send an entry back: its claims return to its author if that lives, and its task with what to do.

    Raises:
        Stale: somebody else runs the queue by now.
        NotAllowed: it has ended already.
    """

    def work(tx: Transaction) -> Landing:
        if lease is not None:
            check_runner(tx, lease)
        one = locked(tx, landing_id)
        if one.state not in OPEN:
            raise NotAllowed(
                f"{landing_id} is {one.state} already",
                code="LANDING_ENDED",
                hint="`landlane queue show` tells how it ended",
            )
        if lease is None and (one.state == TESTING or is_moving(tx, one)):
            raise NotAllowed(
                f"{landing_id} is being tested, or on its way onto {one.target}",
                code="LANDING_BUSY",
                hint="wait for the verdict; `landlane queue show` tells how far it is",
            )
        author = living_author(tx, one)
        tail = output[-MOST_OUTPUT:]
        task_id = _return_task(tx, repo, one, author, reason, hint, tail) if state == BOUNCED else ""
        if state == EJECTED:
            _reopen_task(tx, one, author, reason)
        now = replace(
            one,
            state=state,
            stage="",
            reason=reason,
            code=code,
            output=tail,
            pair=pair,
            advice=hint,
            bounce_task=task_id,
            ended_at=wall_ms,
            **more,
        )
        give_back(tx, repo, now, author)
        if author is not None and code == REJECTED:  # somebody else answered: its author does not look now
            add_notice(tx, author.id, f"{landing_id} ({one.branch}) will not land: {reason}. {hint}")
        records.put(tx, NOUN, as_dict(now), state)
        tx.frees = True
        return now

    return repo.change(work, areas=ADDING)


def is_moving(tx: Transaction, landing: Landing) -> bool:
    """Whether an entry is part of a move of the target that is written down."""
    entries = locked_queue(tx, landing.target).move.get("entries", [])
    return isinstance(entries, list) and landing.id in entries


def _return_task(
    tx: Transaction,
    repo: Repository,
    landing: Landing,
    author: Session | None,
    reason: str,
    hint: str,
    output: str,
) -> str:
    """The author's task again, or a new one where that is not to be had; tells which."""
    task = get_in(tx, landing.task) if landing.task else None
    if task is None or task.attempt != landing.attempt or task.state not in (LANDING, REPORTED):
        return _add_task(tx, repo, landing, author, reason, hint, output)
    said = _with_tail(f"{landing.id} bounced: {reason}", output)
    end = AttemptEnd(task=task.id, attempt=task.attempt, code="bounced", feedback=said)
    # The author mends it in a workspace that is there: nothing is gained by waiting.
    verdict = judge_in(tx, repo, task, end, grace=task.max_attempts)
    is_theirs = author is not None and task.session == author.id
    then = state_after(verdict, REPORTED if is_theirs else READY)
    why = verdict.why[:LONGEST_LINE]
    failures = task.failures + verdict.is_failure
    _send_back(tx, task, then, why, hint[:LONGEST_LINE], failures, is_theirs=is_theirs)
    by = (landing.agent, landing.session)
    tell_end(tx, repo, by, task, end, verdict, then, landing=landing.id)
    return task.id


def _with_tail(text: str, output: str) -> str:
    """A reason and as much as fits of what was said, from its end: that is where the trouble stands."""
    left = LONGEST_LINE - len(text) - 1
    return f"{text}\n{output[-left:]}" if output and left > 0 else text[:LONGEST_LINE]


def _add_task(
    tx: Transaction,
    repo: Repository,
    landing: Landing,
    author: Session | None,
    reason: str,
    hint: str,
    output: str,
) -> str:
    said = _with_tail(f"{landing.id} bounced: {reason}", output)
    earlier = None
    if not landing.task:  # a branch that comes again and again has one lineage, too
        earlier = find_mend(tx, landing.branch, landing.target, landing.agent, landing.home)
    if earlier is not None and is_open(earlier):
        book_bounce(tx, repo, landing, get_in(tx, earlier.id), said, hint[:LONGEST_LINE])
        return earlier.id
    about = f" It was for {landing.task}." if landing.task else ""
    body = (
        f"{landing.id} (branch `{landing.branch}`, head {landing.head}) of {landing.agent} did not land on"
        f" {landing.target}.{about}\n\nWhy: {reason}\n\nWhat to do: {hint}\n"
    ) + (f"\nWhat was said, at its end:\n\n{output}\n" if output else "")
    new = NewTask(
        title=f"Mend {landing.branch}: {reason.splitlines()[0]}"[:LONGEST_TITLE],
        body=body[:LONGEST_BODY],
        paths=(),
        key=f"bounce/{landing.id}",
        parent=landing.task or (earlier.id if earlier is not None else ""),
        labels=("bounced", f"author={landing.agent}"[:64]),
        next_action=hint[:LONGEST_LINE],
    )
    added = add_in(tx, repo, author, new, (), force=True, may_be_stopped=True)
    if not isinstance(added, Added):
        return ""
    stopped = why_stopped(tx, repo, added.task)
    if stopped and added.is_new:
        park_in(tx, repo, added.task, f"{stopped}. Last: {reason}")
    elif not landing.task and added.is_new:
        book_bounce(tx, repo, landing, added.task, said, hint[:LONGEST_LINE])
    return added.task.id


def _send_back(
    tx: Transaction, task: Task, then: str, why: str, hint: str, failures: int, *, is_theirs: bool
) -> None:
    if then == REPORTED and task.state == REPORTED:
        tx.run("task_set_why", task=task.id, why=why, next_action=hint)
        tx.run("task_set_failures", task=task.id, failures=failures)
        return
    keep = is_theirs and then == REPORTED
    move_task(tx, task, then, why=why, keep_owner=keep, failures=failures, head="", next_action=hint)


def _reopen_task(tx: Transaction, landing: Landing, author: Session | None, reason: str) -> None:
    """An ejected entry's task is its author's again, or anybody's."""
    if not landing.task:
        return
    task = get_in(tx, landing.task)
    if task.attempt == landing.attempt and task.state == LANDING:
        is_theirs = author is not None and task.session == author.id
        why = f"{landing.id} was ejected: {reason}"
        move_task(
            tx, task, REPORTED if is_theirs else READY, why=why[:LONGEST_LINE], keep_owner=is_theirs, head=""
        )
        tx.record(
            "task.doubted",
            *who(author),
            {"task": task.id, "why": why[:LONGEST_LINE], "attempt": task.attempt},
        )


def decide(
    repo: Repository,
    session: Session,
    landing_id: str,
    *,
    approve: bool,
    wall_ms: int,
    head: str = "",
    why: str = "",
) -> Landing:
    """A person lets an entry land exactly as it is, or sends it back.

    Raises:
        NotAllowed: it does not wait for a person, or whoever decides has a role.
        Stale: its head is another than the one the person saw.
    """
    if session.role:
        raise forbidden(session.agent, session.role, "no role decides what waits for a person")
    one = get_landing(repo, landing_id)
    if one.state != HELD:
        raise NotAllowed(
            f"{landing_id} is {one.state}: it does not wait for a person",
            code="NOT_WAITING",
            hint="`landlane gate list` shows what does",
        )
    if head and not one.head.startswith(head):
        raise Stale(
            f"{landing_id} is at {one.head[:12]}, not at {head[:12]}",
            code="HEAD_MOVED",
            hint=f"look at the change again: git show {one.head[:12]}",
        )
    if not approve:
        said = rejected(session.agent, why)
        return bounce(
            repo,
            None,
            landing_id,
            reason=said.reason,
            code=said.code,
            hint=said.hint,
            wall_ms=wall_ms,
        )

    def work(tx: Transaction) -> Landing:
        now = locked(tx, landing_id)
        if now.state != HELD or now.head != one.head:
            raise Stale(f"{landing_id} has changed meanwhile", code="HEAD_MOVED", hint="look at it again")
        now = replace(now, state=QUEUED, approved_by=session.agent, approved_head=now.head, reason="")
        records.put(tx, NOUN, as_dict(now), "approved", session)
        if living_author(tx, now) is not None:
            add_notice(
                tx, now.session, f"{session.agent} let {now.id} ({now.branch}) land: it is queued again"
            )
        tx.frees = True
        return now

    return repo.change(work)
