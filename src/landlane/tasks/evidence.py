"""Verify the evidence that a task is done, then finish it in one transaction.

Looking takes as long as the check takes, so it happens outside any transaction. The task is `reported` all
the while; if the process dies, anybody may ask again. What was seen counts only if the task is still as it
was.
"""

from __future__ import annotations

from landlane.claims.read import claims_of
from landlane.clock import duration_text
from landlane.errors import LandlaneError, NotAllowed
from landlane.patterns.pattern import covers_alternative
from landlane.rules.violations import VERIFY_FIRST
from landlane.sessions.leases import touch
from landlane.tasks.evidence_model import CHECK, COMMIT, OUTPUT, PATHS, VERDICT, Proof, kind_of, needed
from landlane.tasks.extensions import installed
from landlane.tasks.finish import finish, finish_on_word, report_done
from landlane.tasks.model import DONE, LANDING, REPORTED, REVIEW
from landlane.tasks.read import get_task, history_in
from landlane.tasks.rows import get_in, move_task, pattern_pairs, who
from landlane.values import as_dict, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.evidence_model import Witness
    from landlane.tasks.model import Task


_TAIL = 4000
_MOST_NAMED = 5


@value
class Concluded:
    """How far a task is, and what was seen."""

    task: Task
    proofs: tuple[Proof, ...]


@value
class Sight:
    """What is looked at: a task, its newest commit, and where the target stood when the attempt began."""

    repo: Repository
    witness: Witness
    session: Session | None
    task: Task
    head: str
    start: str


def conclude(
    repo: Repository,
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
        SettingsError: nobody has said what a task of this kind must show.
    """
    task = get_task(repo, task_id)
    wanted = _wanted(repo, witness, task)
    if task.state == REVIEW:
        if not _has_moved(witness, task, wanted):
            return Concluded(task=task, proofs=())  # its reviewers have not all spoken yet
        task = _leave_review(repo, session, task)
    if task.state not in (REPORTED, LANDING, DONE):
        if session is None:
            raise _not_reported(task)
        is_on_word = not any(name != CHECK or task.check for name in wanted)
        if is_on_word and installed().reviews.step_for(repo, task, _kind(witness, task)) is None:
            return Concluded(task=finish_on_word(repo, session, task_id, result), proofs=())
        task = report_done(repo, session, task_id, result)
    if task.state == DONE:
        return Concluded(task=task, proofs=())
    sight = _see(repo, witness, session, task, wanted)
    proofs = look_for_evidence(sight, wanted, on_step)
    if all(proof.is_seen for proof in proofs):
        proofs = (*proofs, *_rejected(sight))
    return Concluded(task=_believe(sight, proofs), proofs=proofs)


def _kind(witness: Witness, task: Task) -> str:
    return kind_of(task.kind, has_output=bool(task.output), is_in_git=witness.is_in_git)


def _wanted(repo: Repository, witness: Witness, task: Task) -> tuple[str, ...]:
    return needed(_kind(witness, task), repo.settings.tasks.evidence)


def _has_moved(witness: Witness, task: Task, wanted: Sequence[str]) -> bool:
    """Whether there is another commit now than the one under review: that needs a review of its own."""
    tip = witness.tip(task.branch) if COMMIT in wanted or PATHS in wanted else ""
    return bool(tip) and tip != task.head


def _leave_review(repo: Repository, session: Session | None, task: Task) -> Task:

    if session is None:
        raise _not_reported(task)
    return installed().reviews.take_back(repo, session, task.id)


def _not_reported(task: Task) -> NotAllowed:
    return NotAllowed(
        f"{task.id} is {task.state}; its owner must report it first",
        code="TASK_NOT_REPORTED",
        hint=f"landlane done {task.id} --as {task.owner or 'OWNER'}",
    )


def _see(
    repo: Repository, witness: Witness, session: Session | None, task: Task, wanted: Sequence[str]
) -> Sight:
    head = witness.tip(task.branch) if COMMIT in wanted or PATHS in wanted else ""
    if not head and task.state == LANDING:
        head = task.head  # its branch may be gone once it has landed
    start = repo.store.view(lambda snapshot: _start_of(snapshot, task)) if head else ""
    return Sight(repo=repo, witness=witness, session=session, task=task, head=head, start=start)


def _start_of(snapshot: Snapshot, task: Task) -> str:
    """Where the target branch stood when this attempt was taken up, as the journal has it."""
    taken = [entry.facts() for entry in history_in(snapshot, task.id) if entry.kind == "task.taken"]
    return next((str(facts.get("base", "")) for facts in taken if facts["attempt"] == task.attempt), "")


def look_for_evidence(
    sight: Sight, wanted: Sequence[str], on_step: Callable[[str], None] = lambda _: None
) -> tuple[Proof, ...]:
    """Each piece of evidence that is wanted, up to the first that is missing: the others rest on it."""
    proofs: list[Proof] = []
    for name in wanted:
        on_step(name)
        proof = _LOOKS[name](sight)
        if proof is not None:
            proofs.append(proof)
            if not proof.is_seen:
                break
    return tuple(proofs)


def _see_commit(sight: Sight) -> Proof | None:
    branch = sight.task.branch
    if not sight.head:
        hint = f"commit the work there: git switch -c {branch}"
        return _missing(COMMIT, f"there is no branch {branch}", hint)
    is_known = sight.head == sight.task.head  # proved before, and perhaps landed since
    if not is_known and not sight.witness.has_own_commits(branch, sight.head, sight.start):
        return _missing(COMMIT, f"{branch} has no commit of its own", f"commit the work on {branch}")
    return Proof(name=COMMIT, is_seen=True, found=f"{sight.head[:12]} on {branch}")


def _missing(name: str, found: str, hint: str) -> Proof:
    return Proof(name=name, is_seen=False, found=found, hint=hint)


def _see_paths(sight: Sight) -> Proof | None:
    if not sight.head:
        return _missing(PATHS, f"there is no branch {sight.task.branch}", "commit the work there")
    changed = sight.witness.changed_paths(sight.witness.base(sight.head, sight.start), sight.head)
    allowed, is_bound = _allowed(sight)
    outside = [path for path in changed if not _is_inside(sight.repo, path, allowed)] if is_bound else []
    if outside:
        more = f" and {len(outside) - _MOST_NAMED} more" if len(outside) > _MOST_NAMED else ""
        return _missing(
            PATHS,
            f"changed outside its claims: {', '.join(outside[:_MOST_NAMED])}{more}",
            f"claim them for the task (landlane claim PATH --task {sight.task.id}), or take them back",
        )
    where = "all inside its claims" if is_bound else "it declares and claims no paths"
    return Proof(name=PATHS, is_seen=True, found=f"{len(changed)} changed, {where}")


def _allowed(sight: Sight) -> tuple[list[Pattern], bool]:
    """What the task may change; and whether it declared or claimed anything that it could be bound to."""
    task, pattern_of = sight.task, sight.repo.git.pattern_of
    held = sight.repo.store.view(lambda snapshot: claims_of(snapshot, task.session))
    own = [claim for claim in held if claim.task in ("", task.id)]
    declared = [pattern_of(text, kind) for text, kind in pattern_pairs(task.stored_paths)]
    is_bound = bool(declared) or any(claim.task == task.id for claim in own)
    return declared + [pattern_of(claim.pattern, claim.kind) for claim in own], is_bound


def _is_inside(repo: Repository, path: str, allowed: Sequence[Pattern]) -> bool:
    (changed,) = repo.git.pattern_of(path, "literal").alternatives
    return any(covers_alternative(branch, changed) for pattern in allowed for branch in pattern.alternatives)


def _see_check(sight: Sight) -> Proof | None:
    check = sight.task.check
    if not check:
        return None
    limit_ms = sight.repo.settings.tasks.check_limit_ms
    checked = sight.witness.run_check(check, sight.head, limit_ms / 1000, lambda: _stay_alive(sight))
    where = f" on {sight.head[:12]}" if sight.head else ""
    if checked.is_late:
        ended = f"took longer than {duration_text(limit_ms)} and was killed"
        return _missing(CHECK, f"`{check}` {ended}{where}", "make it quicker, or raise [tasks] check_limit")
    if checked.exit_code:
        said = checked.output[-_TAIL:].strip()
        told = f"`{check}` ended with {checked.exit_code}{where}" + (f": {said}" if said else "")
        return _missing(CHECK, told, "mend it, commit, and say done again")
    return Proof(name=CHECK, is_seen=True, found=f"`{check}` passed{where}")


def _stay_alive(sight: Sight) -> None:
    """A check that runs is a sign of life of whoever asked for it."""
    if sight.session is not None:
        try:
            touch(sight.repo.store, sight.session)
        except LandlaneError:
            return


def change_of(repo: Repository, witness: Witness, task_id: str) -> str:
    """By what the change on a task's branch is known again; empty when there is none, or none to be seen."""
    task = get_task(repo, task_id)
    try:
        tip = witness.tip(task.branch) if witness.is_in_git else ""
        if not tip:
            return ""
        start = repo.store.view(lambda snapshot: _start_of(snapshot, task))
        return witness.change(witness.base(tip, start), tip)
    except LandlaneError:
        return ""


def _see_output(sight: Sight) -> Proof | None:
    output = sight.task.output
    if not output:
        return _missing(OUTPUT, "the task names no output", "add it anew with --output FILE")
    size = sight.witness.output_size(output)
    if size <= 0:
        words = "is empty" if size == 0 else "is not there"
        return _missing(OUTPUT, f"{output} {words}", "make it, then say done again")
    return Proof(name=OUTPUT, is_seen=True, found=f"{output}, {size} bytes")


def _see_verdict(sight: Sight) -> Proof | None:
    """Giving the verdict ends the task of a reviewer: whoever comes here has not given one."""
    review = installed().reviews.review_of(sight.repo, sight.task)
    hint = f"landlane review give {review} --verdict approve|reject --summary 'why'"
    return _missing(VERDICT, f"there is no verdict on {review}", hint)


_LOOKS = {
    COMMIT: _see_commit,
    PATHS: _see_paths,
    CHECK: _see_check,
    OUTPUT: _see_output,
    VERDICT: _see_verdict,
}


def _believe(sight: Sight, proofs: tuple[Proof, ...]) -> Task:
    """Write down what was seen, if the task is still as it was then."""
    task, session, head = sight.task, sight.session, sight.head
    missing = next((proof for proof in proofs if not proof.is_seen), None)
    is_landed = not head or sight.witness.is_landed(head)
    step = _review_step(sight) if missing is None else None
    seen = [as_dict(proof) for proof in proofs]
    if missing is None and not is_landed and head != task.head:
        # First: who reviews or lands it may be on another machine, and is told of it by what follows.
        sight.witness.share(head, lambda: _stay_alive(sight))

    def work(tx: Transaction) -> None:
        now = get_in(tx, task.id)
        if (now.state, now.attempt, now.session) != (task.state, task.attempt, task.session):
            return  # somebody else was quicker, or it was taken away meanwhile
        if missing is not None:
            _doubt(tx, now, session, missing, seen)
        elif step is not None and not installed().reviews.is_approved(tx, now, head):
            _begin_review(tx, sight, now, step)
        elif is_landed:
            finish(tx, sight.repo, now, session, head=head, evidence=seen)
        elif now.state == REPORTED or now.head != head:
            _prove(tx, now, session, head, seen)

    sight.repo.change(work)
    return get_task(sight.repo, task.id)


def _rejected(sight: Sight) -> Sequence[Proof]:
    """What is missing when reviewers rejected exactly this commit: others would only be asked the same."""
    reviews = installed().reviews

    def look(snapshot: Snapshot) -> str:
        is_known = not sight.head or reviews.is_approved(snapshot, sight.task, sight.head)
        return "" if is_known else reviews.rejection_of(snapshot, sight.task, sight.head)

    rejected = sight.repo.store.view(look)
    if not rejected or _review_step(sight) is None:
        return ()
    hint = f"read what was said (landlane review show {rejected}), change it, commit, and say done again"
    return (_missing("review", f"{rejected} rejected exactly this commit", hint),)


def _review_step(sight: Sight) -> object:
    """The review that the task needs, judged also by what it really changed."""
    changed: Sequence[str] = ()
    if sight.head and sight.repo.settings.review.paths:
        changed = sight.witness.changed_paths(sight.witness.base(sight.head, sight.start), sight.head)
    return installed().reviews.step_for(sight.repo, sight.task, _kind(sight.witness, sight.task), changed)


def _begin_review(tx: Transaction, sight: Sight, task: Task, step: object) -> None:
    """All is seen on this commit: now others judge exactly that."""
    if task.state == LANDING:  # approved once, and then somebody committed again
        move_task(tx, task, REPORTED, keep_owner=True, head="")
        task = get_in(tx, task.id)
    base = sight.witness.base(sight.head, sight.start) if sight.head else ""
    change = sight.witness.change(base, sight.head)
    installed().reviews.begin(tx, sight.repo, sight.session, task, sight.head, step, base=base, change=change)


def _doubt(
    tx: Transaction, task: Task, session: Session | None, missing: Proof, seen: list[dict[str, object]]
) -> None:
    """Something is missing: say what, once. A task on its way to the target comes back from there."""
    if task.state == LANDING:
        move_task(tx, task, REPORTED, keep_owner=True, head="")
    if task.state == LANDING or task.why != missing.found:
        tx.run("task_set_why", task=task.id, why=missing.found, next_action=missing.hint)
        facts = {"task": task.id, "why": missing.found, "evidence": seen, "attempt": task.attempt}
        tx.record("task.doubted", *who(session), facts)
        violation = {"rule": VERIFY_FIRST, "guard": "done", "what": f"{task.id}: {missing.found}"[:200]}
        tx.record("rule.violated", *who(session), violation)


def _prove(
    tx: Transaction, task: Task, session: Session | None, head: str, seen: list[dict[str, object]]
) -> None:
    """All is seen but the landing."""
    action = f"land {task.branch}, then: landlane done {task.id}"
    if task.state == REPORTED:
        why = "proved; not landed yet"
        move_task(tx, task, LANDING, keep_owner=True, head=head, why=why, next_action=action)
    else:
        tx.run("task_set_head", task=task.id, head=head)
    tx.record("task.proved", *who(session), {"task": task.id, "head": head, "evidence": seen})
