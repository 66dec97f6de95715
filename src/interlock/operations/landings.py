"""Landings as the store knows them: submitted, tested, landed, bounced; each step one transaction.

An entry holds its claims in a session of its own, begun with it and ended with it. So its author may leave,
lapse or die, and nobody else can change what is on its way. Every step of whoever runs the queue shows the
token of the run: one that was overtaken writes nothing.
"""

from __future__ import annotations

from interlock.domain.claims import EXCLUSIVE, SHARED, Request, areas_of, token_of
from interlock.domain.landings import (
    BOUNCED,
    EJECTED,
    HELD,
    LANDED,
    MOST_OUTPUT,
    OPEN,
    QUEUED,
    TESTING,
    Landing,
    Queue,
    holder_name,
)
from interlock.domain.patterns import Branch, branches_overlap, covers_branch
from interlock.domain.tasks import DEAD, LANDING, READY, REPORTED, NewTask
from interlock.errors import Held, Malformed, NotAllowed, Stale
from interlock.ids import digest, new_secret, short_id
from interlock.operations import records
from interlock.operations.claims import claim_for, living, taken_facts
from interlock.operations.leases import end_session, session_from
from interlock.operations.runners import check_runner
from interlock.operations.task_rows import get_in, move_task, who
from interlock.values import as_dict, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from interlock.domain.agents import Session
    from interlock.domain.patterns import Pattern
    from interlock.domain.tasks import Task
    from interlock.operations.context import Context
    from interlock.operations.runners import RunnerLease
    from interlock.ports.store import Change, Reading, Row

_NOUN = "landing"
_FOR_EVER_MS = 100 * 365 * 86_400_000
_MOST_NAMED = 20


@value
class Submission:
    """What an author hands in."""

    branch: str
    head: str
    target: str
    paths: tuple[str, ...]
    hot: frozenset[str]  # those of the paths that may be held shared
    subject: str
    machine: str
    home: str
    task: str = ""
    gate: str = ""


def landing_from(document: records.Document) -> Landing:
    """A landing from its record."""
    return Landing(**document)


def submit(context: Context, session: Session, wish: Submission, wall_ms: int) -> tuple[Landing, bool]:
    """Enter a branch into the queue, with the claims that cover it; tells whether it is new.

    Raises:
        NotAllowed: it changes paths that its author does not hold.
        Held: another holds some of them, or the branch is in the queue with another head.
        Stale: the session is over.
    """
    patterns = [context.repository.pattern_of(path, "literal") for path in wish.paths]

    def work(tx: Change) -> tuple[Landing, bool]:
        me = living(tx, session)
        there = _already(tx, wish)
        if there is not None:
            return there, False
        rows = tx.all("claims_of", session=me.id)
        uncovered = [
            pattern
            for path, pattern in zip(wish.paths, patterns, strict=True)
            if not _is_covered(rows, pattern, is_hot=path in wish.hot) and not _is_free(context, pattern)
        ]
        if uncovered:
            raise _outside(tx, me, uncovered)
        landing_id = records.next_id(tx, _NOUN)
        task = get_in(tx, wish.task) if wish.task else None
        holder = _begin_holder(tx, me, landing_id)
        made = Landing(
            id=landing_id,
            branch=wish.branch,
            head=wish.head,
            target=wish.target,
            agent=me.agent,
            session=me.id,
            holder=holder.id,
            state=HELD if wish.gate else QUEUED,
            submitted_at=wall_ms,
            machine=wish.machine,
            home=wish.home,
            subject=wish.subject,
            task=wish.task,
            attempt=task.attempt if task else 0,
            paths=list(wish.paths),
            gate=wish.gate,
            reason=wish.gate,
        )
        _hand_over(tx, context, me, holder, made, patterns, rows)
        records.put(tx, _NOUN, as_dict(made), "submitted", me)
        tx.frees = True
        return made, True

    return context.change(work, areas={**areas_of(patterns), "//landings": True})


def _already(tx: Reading, wish: Submission) -> Landing | None:
    for document in records.all_of(tx, _NOUN, OPEN):
        one = landing_from(document)
        if (one.branch, one.target, one.home) != (wish.branch, wish.target, wish.home):
            continue
        if one.head == wish.head:
            return one
        raise Held(
            f"{one.id} has {wish.branch} in the queue already, at {one.head[:12]}",
            code="LANDING_QUEUED",
            hint=f"wait for it, or take it out: interlock queue eject {one.id}",
            holder=one.agent,
        )
    return None


def _is_covered(rows: Sequence[Row], pattern: Pattern, *, is_hot: bool) -> bool:
    (path,) = pattern.branches
    return any(
        covers_branch(Branch(key=row[0], rest=row[1]), path) and (row[5] == EXCLUSIVE or is_hot)
        for row in rows
    )


def _is_free(context: Context, pattern: Pattern) -> bool:
    free = [context.repository.pattern_of(text, "glob") for text in context.settings.claims_free]
    (path,) = pattern.branches
    return any(covers_branch(branch, path) for one in free for branch in one.branches)


def _outside(tx: Reading, me: Session, uncovered: Sequence[Pattern]) -> NotAllowed | Held:
    named = [pattern.text for pattern in uncovered]
    shown = ", ".join(named[:5]) + (f" and {len(named) - 5} more" if len(named) > 5 else "")
    for pattern in uncovered:
        for row in tx.near("claims_near", pattern.branches, me.id):
            (path,) = pattern.branches
            if row[6] != me.id and row[13] is None and covers_branch(Branch(key=row[0], rest=row[1]), path):
                return Held(
                    f"the branch changes {pattern.text}, which {row[7]} holds",
                    code="CLAIM_HELD",
                    hint=f"take that change out, or ask {row[7]}; then claim it and submit again",
                    holder=row[7],
                    paths=named[:_MOST_NAMED],
                )
    return NotAllowed(
        f"the branch changes what {me.agent} does not hold: {shown}",
        code="OUTSIDE_CLAIMS",
        hint=f"interlock claim {named[0]}, or take the change out of the branch",
        paths=named[:_MOST_NAMED],
    )


def _begin_holder(tx: Change, author: Session, landing_id: str) -> Session:
    """The session of the entry itself: nobody can act for it, and it never lapses."""
    session_id = short_id("s")
    facts: dict[str, object] = {
        "generation": 1,
        "kind": _NOUN,
        "role": author.role,
        "machine": author.machine,
        "secret_hash": digest(new_secret()),
        "lease_ms": _FOR_EVER_MS,
    }
    name = holder_name(landing_id)
    tx.run("session_add", session=session_id, agent=name, **facts)
    tx.record("session.joined", name, session_id, facts)
    row = tx.one("session_get", session=session_id)
    assert row is not None
    return session_from(row)


def _hand_over(
    tx: Change,
    context: Context,
    me: Session,
    holder: Session,
    landing: Landing,
    patterns: Sequence[Pattern],
    rows: Sequence[Row],
) -> None:
    """Give the entry the author's claims for its task, and what else it changes path by path."""
    note = f"{landing.id}: {landing.branch} of {me.agent}"
    moved: list[Row] = []
    seen: set[int] = set()
    for row in rows:
        if landing.task and row[8] == landing.task:
            moved.append(row)
            if row[2] in seen:
                continue
            seen.add(row[2])
            if tx.run("claim_drop", session=me.id, token=row[2]):
                tx.record("claim.released", me.agent, me.id, {"pattern": row[3], "token": row[2]})
            pattern = context.repository.pattern_of(row[3], row[4])
            _give(tx, holder, pattern, row[5], landing, note)
    for pattern in patterns:
        if not _is_covered(moved, pattern, is_hot=True):
            covering = [row for row in rows if _is_covered([row], pattern, is_hot=True)]
            is_shared = bool(covering) and all(row[5] == SHARED for row in covering)
            _give(tx, holder, pattern, SHARED if is_shared else EXCLUSIVE, landing, note)


def _give(tx: Change, holder: Session, pattern: Pattern, mode: str, landing: Landing, note: str) -> None:
    (number,) = tx.next_numbers(1)
    request = Request(patterns=(pattern,), mode=mode, ttl_ms=_FOR_EVER_MS, task=landing.task, note=note[:300])
    claim = claim_for(pattern, request, holder, token_of(tx.epoch, number), tx.now)
    for index, branch in enumerate(pattern.branches):
        tx.run(
            "claim_add",
            key=branch.key,
            token=claim.token,
            branch=index,
            rest=branch.rest,
            session=holder.id,
            pattern=claim.pattern,
            kind=claim.kind,
            mode=mode,
            ttl_ms=claim.ttl_ms,
            granted_at=tx.now,
            task=claim.task,
            note=claim.note,
        )
    tx.record("claim.taken", holder.agent, holder.id, taken_facts(claim), number)


def list_landings(context: Context, states: Sequence[str] = OPEN) -> list[Landing]:
    """The entries in these states, in the order in which they were submitted; all without states."""
    found = context.store.view(lambda reading: records.all_of(reading, _NOUN, states))
    return [landing_from(document) for document in found]


def get_landing(context: Context, landing_id: str) -> Landing:
    """One entry.

    Raises:
        Malformed: there is none of this id.
    """
    document = context.store.view(lambda reading: records.find(reading, _NOUN, landing_id))
    if document is None:
        raise unknown_landing(landing_id)
    return landing_from(document)


def unknown_landing(landing_id: str) -> Malformed:
    """There is no such entry."""
    return Malformed(
        f"there is no landing {landing_id[:40]!r}",
        code="UNKNOWN_LANDING",
        hint="`interlock queue list --all` shows them",
    )


def _locked(tx: Change, landing_id: str) -> Landing:
    document = records.lock(tx, _NOUN, landing_id)
    if document is None:
        raise unknown_landing(landing_id)
    return landing_from(document)


def queue_of(reading: Reading, target: str) -> Queue:
    """What is known of a target branch."""
    document = records.find(reading, "queue", target)
    return Queue(**document) if document else Queue(id=target, target=target)


def get_queue(context: Context, target: str) -> Queue:
    """What is known of a target branch."""
    return context.store.view(lambda reading: queue_of(reading, target))


def change_queue(
    context: Context, lease: RunnerLease | None, target: str, verb: str, **fields: object
) -> Queue:
    """Write down what became of a target branch.

    Raises:
        Stale: somebody else runs the queue by now.
    """

    def work(tx: Change) -> Queue:
        if lease is not None:
            check_runner(tx, lease)
        now = replace(queue_of(tx, target), **fields)
        records.put(tx, "queue", as_dict(now), verb)
        return now

    return context.change(work)


def begin_testing(context: Context, lease: RunnerLease, ids: Sequence[str]) -> list[Landing]:
    """Take entries in hand; those that were ejected or held meanwhile are left out.

    Raises:
        Stale: somebody else runs the queue by now.
    """

    def work(tx: Change) -> list[Landing]:
        check_runner(tx, lease)
        taken: list[Landing] = []
        for landing_id in ids:
            one = _locked(tx, landing_id)
            if one.state in (QUEUED, TESTING):
                one = replace(one, state=TESTING, stage="merging", reason="", code="")
                records.put(tx, _NOUN, as_dict(one), "testing")
                taken.append(one)
        return taken

    return context.change(work)


def show_stage(context: Context, lease: RunnerLease, ids: Sequence[str], stage: str) -> None:
    """Let those who wait see how far it is; nothing is journaled."""

    def work(tx: Change) -> None:
        check_runner(tx, lease)
        for landing_id in ids:
            one = _locked(tx, landing_id)
            if one.state == TESTING and one.stage != stage:
                records.put_quietly(tx, _NOUN, as_dict(replace(one, stage=stage)))

    context.store.change(work, is_durable=False)


def put_back(context: Context, lease: RunnerLease, ids: Sequence[str], reason: str, code: str = "") -> None:
    """Let entries stand in line again.

    Raises:
        Stale: somebody else runs the queue by now.
    """

    def work(tx: Change) -> None:
        check_runner(tx, lease)
        for landing_id in ids:
            one = _locked(tx, landing_id)
            if one.state == TESTING:
                one = replace(one, state=QUEUED, stage="", reason=reason, code=code)
                records.put(tx, _NOUN, as_dict(one), "requeued")

    context.change(work)


def mark_landed(
    context: Context,
    lease: RunnerLease,
    target: str,
    landed: Sequence[tuple[str, str, dict[str, object]]],
    tip: str,
    wall_ms: int,
) -> list[Landing]:
    """The target has moved: these entries have landed, each as a commit; their claims and tasks end with it.

    Raises:
        Stale: somebody else runs the queue by now.
    """
    from interlock.operations.tasks import finish  # noqa: PLC0415 - it knows much

    def work(tx: Change) -> list[Landing]:
        check_runner(tx, lease)
        done: list[Landing] = []
        for landing_id, commit, more in landed:
            one = _locked(tx, landing_id)
            if one.state not in (TESTING, QUEUED):
                continue
            now = replace(
                one, state=LANDED, stage="", commit=commit, reason="", code="", ended_at=wall_ms, **more
            )
            records.put(tx, _NOUN, as_dict(now), "landed")
            _end_holder(tx, now, commit)
            task = get_in(tx, now.task) if now.task else None
            if task is not None and task.state in (LANDING, REPORTED) and task.attempt == now.attempt:
                evidence: list[dict[str, object]] = [
                    {"name": "landed", "is_seen": True, "found": f"{commit[:12]} on {target}", "hint": ""}
                ]
                finish(tx, context, task, None, head=now.head, evidence=evidence)
            _tell_holders(tx, context, now)
            done.append(now)
        queue = queue_of(tx, target)
        queue = replace(queue, tip=tip, move={}, landed=queue.landed + len(done))
        records.put(tx, "queue", as_dict(queue), "moved")
        tx.frees = True
        return done

    return context.change(work)


def _end_holder(tx: Change, landing: Landing, commit: str) -> None:
    """Give back what an entry held, and end its session."""
    row = tx.one("session_lock", session=landing.holder)
    if row is None or row[12] is not None:
        return
    dropped: set[int] = set()
    for claim in tx.all("claims_of", session=landing.holder):
        if claim[2] not in dropped and tx.run("claim_drop", session=landing.holder, token=claim[2]):
            dropped.add(claim[2])
            facts: dict[str, object] = {"pattern": claim[3], "token": claim[2]}
            tx.record(
                "claim.released", row[1], landing.holder, facts | ({"commit": commit} if commit else {})
            )
    end_session(tx, session_from(row), "session.left", {})


def _tell_holders(tx: Change, context: Context, landing: Landing) -> None:
    """Tell every other session whose paths were changed under it."""
    from interlock.operations.notices import add_notice  # noqa: PLC0415

    told: dict[str, list[str]] = {}
    for path in landing.paths:
        pattern = context.repository.pattern_of(path, "literal")
        for row in tx.near("claims_near", pattern.branches, ""):
            is_hit = any(branches_overlap(Branch(key=row[0], rest=row[1]), one) for one in pattern.branches)
            if row[6] not in (landing.holder, landing.session) and row[13] is None and is_hit:
                told.setdefault(row[6], []).append(path)
    for session, paths in told.items():
        shown = ", ".join(dict.fromkeys(paths[:5]))
        text = f"{landing.id} of {landing.agent} landed as {landing.commit[:12]} and changed {shown}: read it again"
        add_notice(tx, session, text)


def bounce(
    context: Context,
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

    def work(tx: Change) -> Landing:
        if lease is not None:
            check_runner(tx, lease)
        one = _locked(tx, landing_id)
        if one.state not in OPEN:
            raise NotAllowed(
                f"{landing_id} is {one.state} already",
                code="LANDING_ENDED",
                hint="`interlock queue show` tells how it ended",
            )
        author = _living_author(tx, one)
        tail = output[-MOST_OUTPUT:]
        task_id = _return_task(tx, context, one, author, reason, hint, tail) if state == BOUNCED else ""
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
            bounce_task=task_id,
            ended_at=wall_ms,
            **more,
        )
        _give_back(tx, context, now, author)
        records.put(tx, _NOUN, as_dict(now), state)
        tx.frees = True
        return now

    from interlock.operations.task_adding import ADDING  # noqa: PLC0415

    return context.change(work, areas=ADDING)


def _living_author(tx: Change, landing: Landing) -> Session | None:
    row = tx.one("session_lock", session=landing.session)
    if row is None or row[12] is not None or row[9] + row[7] <= tx.now:
        return None
    return session_from(row)


def _give_back(tx: Change, context: Context, landing: Landing, author: Session | None) -> None:
    """Return the claims to the author, who has to mend the work; without one they are free."""
    if author is not None:
        has = {row[3] for row in tx.all("claims_of", session=author.id)}
        seen: set[int] = set()
        for row in tx.all("claims_of", session=landing.holder):
            if row[2] in seen or row[3] in has:
                continue
            seen.add(row[2])
            tx.run("claim_drop", session=landing.holder, token=row[2])
            tx.record("claim.released", row[7], landing.holder, {"pattern": row[3], "token": row[2]})
            pattern = context.repository.pattern_of(row[3], row[4])
            _return_claim(tx, author, pattern, row[5], landing)
    _end_holder(tx, landing, "")


def _return_claim(tx: Change, author: Session, pattern: Pattern, mode: str, landing: Landing) -> None:
    (number,) = tx.next_numbers(1)
    ttl_ms = author.shortest_ms  # no longer than what it holds anyway: its next sign of life renews it
    request = Request(patterns=(pattern,), mode=mode, ttl_ms=ttl_ms, task=landing.task)
    claim = claim_for(pattern, request, author, token_of(tx.epoch, number), tx.now)
    for index, branch in enumerate(pattern.branches):
        tx.run(
            "claim_add",
            key=branch.key,
            token=claim.token,
            branch=index,
            rest=branch.rest,
            session=author.id,
            pattern=claim.pattern,
            kind=claim.kind,
            mode=mode,
            ttl_ms=claim.ttl_ms,
            granted_at=tx.now,
            task=claim.task,
            note=claim.note,
        )
    tx.record("claim.taken", author.agent, author.id, taken_facts(claim), number)


def _return_task(
    tx: Change,
    context: Context,
    landing: Landing,
    author: Session | None,
    reason: str,
    hint: str,
    output: str,
) -> str:
    """The author's task again, or a new one for an entry that had none; tells which."""
    from interlock.operations.task_adding import add_in  # noqa: PLC0415

    why = f"{landing.id} bounced: {reason}" + (f"\n{output}" if output else "")
    if landing.task:
        task = get_in(tx, landing.task)
        if task.attempt != landing.attempt or task.state not in (LANDING, REPORTED):
            return ""
        failures = task.failures + 1
        is_theirs = author is not None and task.session == author.id
        then = REPORTED if is_theirs and failures < task.max_attempts else READY
        then = DEAD if failures >= task.max_attempts else then
        _send_back(tx, task, then, why[:4000], hint, failures, is_theirs=is_theirs)
        facts = {
            "task": task.id,
            "why": why[:4000],
            "attempt": task.attempt,
            "failures": failures,
            "state": then,
        }
        tx.record("task.failed", landing.agent, landing.session, {**facts, "landing": landing.id})
        return task.id
    body = (
        f"{landing.id} (branch `{landing.branch}`, head {landing.head}) did not land on {landing.target}.\n\n"
        f"Why: {reason}\n\nWhat to do: {hint}\n"
    ) + (f"\nWhat the check said, at its end:\n\n{output}\n" if output else "")
    new = NewTask(
        title=f"Mend {landing.branch}: {reason.splitlines()[0][:150]}",
        body=body[:60_000],
        paths=(),
        key=f"bounce/{landing.id}",
        labels=("bounced", f"author={landing.agent}"[:64]),
        next_action=hint[:4000],
    )
    added = add_in(tx, context, author, new, (), force=True)
    return added.task.id if hasattr(added, "task") else ""  # type: ignore[union-attr] # pyright: ignore


def _send_back(
    tx: Change, task: Task, then: str, why: str, hint: str, failures: int, *, is_theirs: bool
) -> None:
    if then == REPORTED and task.state == REPORTED:
        tx.run("task_set_why", task=task.id, why=why, next_action=hint)
        return
    keep = is_theirs and then == REPORTED
    move_task(tx, task, then, why=why, keep_owner=keep, failures=failures, head="", next_action=hint[:4000])


def _reopen_task(tx: Change, landing: Landing, author: Session | None, reason: str) -> None:
    """An ejected entry's task is its author's again, or anybody's."""
    if not landing.task:
        return
    task = get_in(tx, landing.task)
    if task.attempt == landing.attempt and task.state == LANDING:
        is_theirs = author is not None and task.session == author.id
        why = f"{landing.id} was ejected: {reason}"
        move_task(tx, task, REPORTED if is_theirs else READY, why=why[:4000], keep_owner=is_theirs, head="")
        tx.record("task.doubted", *who(author), {"task": task.id, "why": why[:4000], "attempt": task.attempt})


def settle(context: Context, landing_id: str, notes: Sequence[str]) -> None:
    """Everything that follows a landing is done."""

    def work(tx: Change) -> None:
        one = _locked(tx, landing_id)
        if not one.is_settled:
            now = replace(one, is_settled=True, notes=[*one.notes, *notes])
            records.put(tx, _NOUN, as_dict(now), "settled")

    context.change(work)


def decide(
    context: Context,
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
        NotAllowed: it does not wait for a person.
        Stale: its head is another than the one the person saw.
    """
    one = get_landing(context, landing_id)
    if one.state != HELD:
        raise NotAllowed(
            f"{landing_id} is {one.state}: it does not wait for a person",
            code="NOT_WAITING",
            hint="`interlock gate list` shows what does",
        )
    if head and not one.head.startswith(head):
        raise Stale(
            f"{landing_id} is at {one.head[:12]}, not at {head[:12]}",
            code="HEAD_MOVED",
            hint=f"look at the change again: git show {one.head[:12]}",
        )
    if not approve:
        hint = "read the reason, change the work, commit, and submit it again"
        return bounce(
            context,
            None,
            landing_id,
            reason=f"{session.agent} rejected it: {why}",
            code="REJECTED",
            hint=hint,
            wall_ms=wall_ms,
        )

    def work(tx: Change) -> Landing:
        now = _locked(tx, landing_id)
        if now.state != HELD or now.head != one.head:
            raise Stale(f"{landing_id} has changed meanwhile", code="HEAD_MOVED", hint="look at it again")
        now = replace(now, state=QUEUED, approved_by=session.agent, approved_head=now.head, reason="")
        records.put(tx, _NOUN, as_dict(now), "approved", session)
        tx.frees = True
        return now

    return context.change(work)


def remember_verdict(
    context: Context, target: str, tree: str, check_key: str, data: str, *, has_run: bool
) -> None:
    """Keep what a check said of a tree; count the run."""

    def work(tx: Change) -> None:
        tx.run("verdict_put", tree=tree, check_key=check_key, data=data)
        if has_run:
            queue = queue_of(tx, target)
            records.put_quietly(tx, "queue", as_dict(replace(queue, tests=queue.tests + 1)))

    context.change(work)


def known_verdict(context: Context, tree: str, check_key: str) -> str:
    """What a check said of a tree before; empty when it was never asked."""
    row = context.store.view(lambda reading: reading.one("verdict_get", tree=tree, check_key=check_key))
    return row[0] if row else ""


def wait_until(
    context: Context, is_over: Callable[[], bool], on_tick: Callable[[], None], timeout_seconds: float = 0.5
) -> None:
    """Sleep until something happened or a moment has passed, unless it is over already."""
    listener = context.store.listen()
    try:
        if not is_over():
            listener.wait(timeout_seconds)
            on_tick()
    finally:
        listener.close()
