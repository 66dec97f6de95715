"""Believing that a task is done: looking for evidence ourselves, then ending the task in one transaction.

Looking takes as long as the check takes, so it happens outside any transaction. The task is `reported` all
the while; if the process dies, anybody may ask again. What was seen counts only if the task is still as it was.
"""

from __future__ import annotations

from interlock.domain.evidence import CHECK, COMMIT, OUTPUT, PATHS, Proof, kind_of, needed
from interlock.domain.patterns import covers
from interlock.domain.tasks import DONE, LANDING, REPORTED
from interlock.errors import NotAllowed
from interlock.operations.claims import living
from interlock.operations.task_rows import move_task, pattern_pairs
from interlock.operations.tasks import finish, get_in, get_task, owned, report_done
from interlock.values import as_dict, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from interlock.domain.agents import Session
    from interlock.domain.tasks import Task
    from interlock.operations.context import Context
    from interlock.ports.evidence import Witness
    from interlock.ports.store import Change

_TAIL = 4000


@value
class Concluded:
    """How far a task is, and what was seen."""

    task: Task
    proofs: tuple[Proof, ...]


def conclude(
    context: Context,
    witness: Witness,
    session: Session | None,
    task_id: str,
    *,
    result: str = "",
    on_step: Callable[[str], None] = lambda _: None,
) -> Concluded:
    """Report a task as done, look for its evidence, and believe it if all is there.

    Raises:
        Stale: the task is not this session's any more.
        NotAllowed: it is in no state that could be done.
    """
    task = get_task(context, task_id)
    if task.state not in (REPORTED, LANDING, DONE):
        if session is None:
            raise NotAllowed(
                f"{task_id} is {task.state}; its owner must report it first",
                code="TASK_NOT_REPORTED",
                hint=f"interlock done {task_id} --as {task.owner or 'OWNER'}",
            )
        if not _has_to_show(context, witness, task):
            return Concluded(task=_finish_on_word(context, session, task_id, result), proofs=())
        task = report_done(context, session, task_id, result)
    if task.state == DONE:
        return Concluded(task=task, proofs=())
    proofs, head = look_for_evidence(context, witness, task, on_step)
    return Concluded(task=_believe(context, witness, session, task, proofs, head), proofs=proofs)


def _has_to_show(context: Context, witness: Witness, task: Task) -> bool:
    kind = kind_of(task.kind, has_output=bool(task.output), is_in_git=witness.is_in_git)
    wanted = needed(kind, context.settings.tasks_evidence)
    return any(name != CHECK or task.check for name in wanted)


def _finish_on_word(context: Context, session: Session, task_id: str, result: str) -> Task:
    """End a task of a kind that has nothing to show: its owner's word is all there is."""

    def work(tx: Change) -> None:
        living(tx, session)
        task = owned(tx, session, task_id)
        finish(tx, replace(task, result=result or task.result), session, head="", evidence=())

    context.change(work)
    return get_task(context, task_id)


def look_for_evidence(
    context: Context, witness: Witness, task: Task, on_step: Callable[[str], None]
) -> tuple[tuple[Proof, ...], str]:
    """Each piece of evidence that a task of this kind needs, and the commit it is about."""
    kind = kind_of(task.kind, has_output=bool(task.output), is_in_git=witness.is_in_git)
    wanted = needed(kind, context.settings.tasks_evidence)
    head = witness.tip(task.branch) if COMMIT in wanted or PATHS in wanted else ""
    proofs: list[Proof] = []
    for name in wanted:
        on_step(name)
        proof = _LOOKS[name](context, witness, task, head)
        if proof is not None:
            proofs.append(proof)
        if proof is not None and not proof.is_seen:
            break  # what comes after rests on it
    return tuple(proofs), head


def _see_commit(context: Context, witness: Witness, task: Task, head: str) -> Proof | None:
    if not head:
        return Proof(
            name=COMMIT,
            is_seen=False,
            found=f"there is no branch {task.branch}",
            hint=f"commit the work there: git switch -c {task.branch}",
        )
    base = witness.base(head)
    if base == head and not witness.is_landed(head):
        return Proof(
            name=COMMIT,
            is_seen=False,
            found=f"{task.branch} has no commit of its own",
            hint="commit the work",
        )
    return Proof(name=COMMIT, is_seen=True, found=f"{head[:12]} on {task.branch}")


def _see_paths(context: Context, witness: Witness, task: Task, head: str) -> Proof | None:
    changed = witness.changed_paths(witness.base(head), head)
    declared = [context.repository.pattern_of(text, kind) for text, kind in pattern_pairs(task.stored_paths)]
    claimed = context.store.view(
        lambda reading: reading.all("claims_of_task", session=task.session, task=task.id)
    )
    declared += [context.repository.pattern_of(row[3], row[4]) for row in claimed]
    outside = [path for path in changed if not any(covers(pattern, path) for pattern in declared)]
    if outside and declared:
        return Proof(
            name=PATHS,
            is_seen=False,
            found=f"changed outside its claims: {', '.join(outside[:5])}",
            hint=f"claim them for the task (interlock claim PATH --task {task.id}) or take them back",
        )
    return Proof(name=PATHS, is_seen=True, found=f"{len(changed)} changed, all inside its claims")


def _see_check(context: Context, witness: Witness, task: Task, head: str) -> Proof | None:
    if not task.check:
        return None
    limit = context.settings.tasks_check_limit_ms / 1000
    checked = witness.run_check(task.check, head, limit)
    if checked.exit_code == 0:
        return Proof(
            name=CHECK, is_seen=True, found=f"`{task.check}` passed" + (f" on {head[:12]}" if head else "")
        )
    return Proof(
        name=CHECK,
        is_seen=False,
        found=f"`{task.check}` ended with {checked.exit_code}: {checked.output[-_TAIL:].strip()}",
        hint="mend it, commit, and say done again",
    )


def _see_output(context: Context, witness: Witness, task: Task, head: str) -> Proof | None:
    if not task.output:
        return Proof(
            name=OUTPUT,
            is_seen=False,
            found="the task names no output",
            hint="add it anew with --output FILE",
        )
    size = witness.output_size(task.output)
    if size <= 0:
        words = "is empty" if size == 0 else "is not there"
        return Proof(
            name=OUTPUT, is_seen=False, found=f"{task.output} {words}", hint="make it, then say done again"
        )
    return Proof(name=OUTPUT, is_seen=True, found=f"{task.output}, {size} bytes")


_LOOKS = {COMMIT: _see_commit, PATHS: _see_paths, CHECK: _see_check, OUTPUT: _see_output}


def _believe(
    context: Context,
    witness: Witness,
    session: Session | None,
    task: Task,
    proofs: tuple[Proof, ...],
    head: str,
) -> Task:
    missing = [proof for proof in proofs if not proof.is_seen]
    is_landed = not head or witness.is_landed(head)
    seen = [as_dict(proof) for proof in proofs]

    def work(tx: Change) -> Task:
        now = get_in(tx, task.id)
        if (now.state, now.attempt, now.session) != (task.state, task.attempt, task.session):
            return now  # somebody else was quicker, or it was taken away meanwhile
        who = (session.agent, session.id) if session else ("", "")
        if missing:
            if now.why != missing[0].found and now.state == REPORTED:
                tx.run("task_set_why", task=task.id, why=missing[0].found, next_action=missing[0].hint)
                tx.record("task.doubted", *who, {"task": task.id, "evidence": seen})
        elif is_landed:
            finish(tx, now, session, head=head, evidence=seen)
        elif now.state == REPORTED:
            action = f"land {task.branch}"
            move_task(
                tx, now, LANDING, keep_owner=True, head=head, why="proved; not landed yet", next_action=action
            )
            tx.record("task.proved", *who, {"task": task.id, "head": head, "evidence": seen})
        return get_in(tx, task.id)

    context.change(work)
    return get_task(context, task.id)
