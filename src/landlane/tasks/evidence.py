"""Verify the evidence that a task is done, then finish it in one transaction.

Verifying takes as long as the task's check, so it happens outside any transaction. Meanwhile the task is
`reported`; if the process dies, any session may verify it again. The result counts only if the task has not
changed since, and for its owner only if the claims on what it changed still hold.
"""

from __future__ import annotations

from shlex import quote
from time import monotonic

from landlane.claims.check import needs_no_claim
from landlane.claims.held import require_tokens
from landlane.claims.take import claims_of, live_claims_of
from landlane.errors import LandlaneError, NotAllowed, Stale
from landlane.patterns.pattern import covers_alternative
from landlane.rules.violations import VERIFY_FIRST
from landlane.sessions.leases import touch
from landlane.state.keys import require_states, state_areas
from landlane.tasks.extensions import installed
from landlane.tasks.finish import finish_task, finish_without_evidence, report_done
from landlane.tasks.git_evidence import GitEvidence
from landlane.tasks.model import (
    CHECK,
    COMMIT,
    DONE,
    LANDING,
    OUTPUT,
    PATHS,
    REPORTED,
    REVIEW,
    VERDICT,
    Evidence,
    EvidenceKind,
    effective_kind,
    required_evidence,
)
from landlane.tasks.records import actor_of, get_task, history_in, lock_task, move_task, task_patterns
from landlane.text import path_text
from landlane.units import byte_size, count, exact_duration, join_words
from landlane.values import as_dict, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from landlane.claims.model import Claim
    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot, Transaction
    from landlane.tasks.model import Task


_LONGEST_OUTPUT = 4000
_MOST_NAMED = 5


@value
class Completion:
    """A task after it was reported done, with the evidence that was verified."""

    task: Task
    evidence: tuple[Evidence, ...] = ()
    not_run: tuple[str, ...] = ()  # evidence that was not looked at, because something before it is missing

    @property
    def missing(self) -> Evidence | None:
        return next((item for item in self.evidence if not item.is_seen), None)


_NOTHING: Mapping[str, int] = {}


@value
class _Verification:
    """What is verified: a task at its newest commit, and the target's commit when the attempt began."""

    repo: Repository
    git: GitEvidence
    session: Session | None
    task: Task
    head: str
    start: str
    claims: tuple[Claim, ...] = ()  # of the owner, on what the task changes
    expected: Mapping[str, int] = _NOTHING  # versions of shared keys

    @property
    def base(self) -> str:
        return self.git.base(self.head, self.start)

    def keep_alive(self) -> None:
        """Renew the session's lease while a check runs."""
        if self.session is not None:
            try:
                touch(self.repo.store, self.session)
            except LandlaneError:
                return


def complete_task(
    repo: Repository,
    session: Session | None,
    task_id: str,
    *,
    result: str = "",
    expect: Mapping[str, int] | None = None,
    on_step: Callable[[str], None] = lambda _: None,
) -> Completion:
    """Report a task as done, verify its evidence, and move it on if nothing is missing.

    `expect` are the versions of shared keys that the work is based on: they are judged first, and again in
    the transaction that moves the task on.

    Raises:
        Stale: the task no longer belongs to this session, a claim ended while its evidence was verified, or
            a key has another version.
        NotAllowed: it is in a state that cannot become done.
        SettingsError: the kind of the task is not defined.
    """
    git = GitEvidence(repo)
    task = get_task(repo, task_id)
    expected = expect or {}
    repo.store.view(lambda snapshot: require_states(snapshot, repo, expected))
    required = required_evidence(_kind(git, task), repo.settings.tasks.evidence)
    has_commits = COMMIT in required or PATHS in required
    if task.state == REVIEW:
        tip = git.tip(task.branch) if has_commits else ""
        if not tip or tip == task.head:
            return Completion(task=task)  # its review is still open
        if session is None:
            raise _not_reported(task)
        task = installed().reviews.withdraw(repo, session, task.id)  # a new commit needs a new review
    if task.state not in (REPORTED, LANDING, DONE):
        if session is None:
            raise _not_reported(task)
        is_on_word = not any(name != CHECK or task.check for name in required)
        if is_on_word and installed().reviews.find_required(repo, task, _kind(git, task)) is None:
            return Completion(task=finish_without_evidence(repo, session, task_id, result, expected))
        task = report_done(repo, session, task_id, result)
    if task.state == DONE:
        return Completion(task=task)
    head = git.tip(task.branch) if has_commits else ""
    if not head and task.state == LANDING:
        head = task.head  # its branch may be deleted after landing
    start = repo.store.view(lambda snapshot: _start_of(snapshot, task)) if head else ""
    case = _Verification(
        repo=repo, git=git, session=session, task=task, head=head, start=start, expected=expected
    )
    case = replace(case, claims=_claims_in_use(case))
    evidence = _verify(case, required, on_step)
    if all(item.is_seen for item in evidence):
        evidence = (*evidence, *_rejections(case))
    completion = Completion(task=task, evidence=evidence)
    seen = {item.name for item in evidence}
    not_run = [name for name in required if name not in seen and (name != CHECK or task.check)]
    return Completion(task=_record_result(case, completion), evidence=evidence, not_run=tuple(not_run))


def _kind(git: GitEvidence, task: Task) -> str:
    return effective_kind(task.kind, has_output=bool(task.output), is_in_git=git.is_in_git)


def _not_reported(task: Task) -> NotAllowed:
    return NotAllowed(
        f"{task.id} {task.title} is {task.state}; its owner has not reported it done",
        code="TASK_NOT_REPORTED",
        hint=f"landlane done {task.id} --as {task.owner}" if task.owner else f"landlane task show {task.id}",
    )


def _start_of(snapshot: Snapshot, task: Task) -> str:
    """Return the target's commit when this attempt began, from the journal."""
    taken = [entry.facts() for entry in history_in(snapshot, task.id) if entry.kind == "task.taken"]
    return next((str(facts.get("base", "")) for facts in taken if facts["attempt"] == task.attempt), "")


def _claims_in_use(case: _Verification) -> tuple[Claim, ...]:
    """Return the owner's claims for the task, and its other claims on paths that the task changes."""
    task, session, repo = case.task, case.session, case.repo
    if session is None or session.id != task.session:
        return ()
    held = repo.store.view(lambda snapshot: live_claims_of(snapshot, session.id))
    loose = [claim for claim in held if not claim.task]
    changed = case.git.changed_paths(case.base, case.head) if loose and case.head else ()
    patterns = [repo.git.pattern_of(path, "literal") for path in changed]
    used = [claim for claim in loose if any(claim.covers(pattern) for pattern in patterns)]
    return (*(claim for claim in held if claim.task == task.id), *used)


def _verify(
    case: _Verification, required: Sequence[str], on_step: Callable[[str], None]
) -> tuple[Evidence, ...]:
    """Verify the required evidence in order, up to the first that is missing."""
    evidence: list[Evidence] = []
    for name in required:
        on_step(name)
        item = _VERIFIERS[EvidenceKind(name)](case)
        if item is not None:
            evidence.append(item)
            if not item.is_seen:
                break
    return tuple(evidence)


def _verify_commit(case: _Verification) -> Evidence | None:
    branch = case.task.branch
    if not case.head:
        hint = f"commit your work there: git switch -c {branch}"
        return _missing(COMMIT, f"no branch {branch}", hint)
    is_known = case.head == case.task.head  # verified before, and perhaps landed since
    if not is_known and not case.git.has_own_commits(branch, case.head, case.start):
        hint = f"commit your work there: git switch {branch}"
        return _missing(COMMIT, f"no new commit on {branch}", hint)
    return Evidence(name=COMMIT, is_seen=True, found=f"{case.head[:8]} on {branch}")


def _missing(name: str, found: str, hint: str) -> Evidence:
    return Evidence(name=name, is_seen=False, found=found, hint=hint)


def _verify_paths(case: _Verification) -> Evidence | None:
    if not case.head:
        hint = f"commit your work there: git switch -c {case.task.branch}"
        return _missing(PATHS, f"no branch {case.task.branch}", hint)
    changed = case.git.changed_paths(case.base, case.head)
    allowed, is_bound = _allowed(case)
    settings = case.repo.settings.claims
    outside = [
        path
        for path in (changed if is_bound else ())
        if not is_inside(case.repo, path, allowed) and not needs_no_claim(case.repo, settings, path)
    ]
    if outside:
        return _missing(PATHS, *_describe_unclaimed(outside))
    where = "claimed" if is_bound else "the task names no paths"
    return Evidence(name=PATHS, is_seen=True, found=f"{count(len(changed), 'file')}, {where}")


def _describe_unclaimed(paths: Sequence[str]) -> tuple[str, str]:
    """Return what is wrong with changes outside the claims of a task, and what to do."""
    named = [path_text(path) for path in paths[:_MOST_NAMED]]
    more = [f"{len(paths) - _MOST_NAMED} more"] if len(paths) > _MOST_NAMED else []
    them, are = ("it", "it is") if len(paths) == 1 else ("them", "they are")
    command = f"landlane claim {' '.join(quote(name) for name in named)}"
    found = f"{join_words([*named, *more])} changed, but {are} not claimed"
    return found, f"claim {them}, or take {them} out of the commit: {command}"


def _allowed(case: _Verification) -> tuple[list[Pattern], bool]:
    """Return what the task may change, and whether it declared or claimed any paths."""
    task, pattern_of = case.task, case.repo.git.pattern_of
    held = case.repo.store.view(lambda snapshot: claims_of(snapshot, task.session))
    own = [claim for claim in held if claim.task in ("", task.id)]
    declared = task_patterns(case.repo, task)
    is_bound = bool(declared) or any(claim.task == task.id for claim in own)
    return [*declared, *(pattern_of(claim.pattern, claim.kind) for claim in own)], is_bound


def is_inside(repo: Repository, path: str, allowed: Sequence[Pattern]) -> bool:
    """Return whether one of these patterns covers a path."""
    (changed,) = repo.git.pattern_of(path, "literal").alternatives
    return any(covers_alternative(part, changed) for pattern in allowed for part in pattern.alternatives)


def _verify_check(case: _Verification) -> Evidence | None:
    check = case.task.check
    if not check:
        return None
    limit_ms = case.repo.settings.tasks.check_limit_ms
    began = monotonic()
    run = case.git.run_check(check, case.head, limit_ms / 1000, case.keep_alive)
    took = exact_duration(round((monotonic() - began) * 1000))
    where = f" on {case.head[:8]}" if case.head else ""
    if run.is_late:
        hint = "make it faster, or allow more time: landlane config set tasks.check_limit 30m"
        return _missing(CHECK, f"{check} was stopped after {exact_duration(limit_ms)}{where}", hint)
    if run.exit_code:
        output = run.output[-_LONGEST_OUTPUT:].strip()
        failure = f"{check} failed{where} (exit {run.exit_code})" + (f": {output}" if output else "")
        again = "fix it, commit" if case.head else "fix it"
        return _missing(CHECK, failure, f"{again} and try again: landlane done {case.task.id}")
    return Evidence(name=CHECK, is_seen=True, found=f"{check} passed{where} ({took})")


def _verify_output(case: _Verification) -> Evidence | None:
    output = case.task.output
    if not output:
        hint = f"add the task again with --output FILE, and drop this one: landlane task drop {case.task.id}"
        return _missing(OUTPUT, "the task names no output file", hint)
    size = case.git.output_size(output)
    if size <= 0:
        words = "is empty" if size == 0 else "does not exist"
        hint = f"write it, then try again: landlane done {case.task.id}"
        return _missing(OUTPUT, f"{output} {words}", hint)
    return Evidence(name=OUTPUT, is_seen=True, found=f"{output}, {byte_size(size)}")


def _verify_verdict(case: _Verification) -> Evidence | None:
    """Return that the verdict is missing: giving it would have ended the reviewer's task."""
    review = installed().reviews.review_of(case.repo, case.task)
    hint = f"landlane review give {review} --verdict approve --summary 'why'"
    return _missing(VERDICT, f"no verdict on {review} yet", hint)


_VERIFIERS = {
    COMMIT: _verify_commit,
    PATHS: _verify_paths,
    CHECK: _verify_check,
    OUTPUT: _verify_output,
    VERDICT: _verify_verdict,
}


def change_digest(repo: Repository, task_id: str) -> str:
    """Return a digest of the change on a task's branch; empty when there is none."""
    git, task = GitEvidence(repo), get_task(repo, task_id)
    try:
        tip = git.tip(task.branch)
        if not tip:
            return ""
        start = repo.store.view(lambda snapshot: _start_of(snapshot, task))
        return git.change_digest(git.base(tip, start), tip)
    except LandlaneError:
        return ""


def _record_result(case: _Verification, completion: Completion) -> Task:
    """Write the result of the verification, if the task has not changed since."""
    task, session, head = case.task, case.session, case.head
    missing = completion.missing
    is_landed = not head or case.git.is_landed(head)
    step = _review_step(case) if missing is None else None
    evidence = [as_dict(item) for item in completion.evidence]
    if missing is None and not is_landed and head != task.head:
        # Before the transaction: a session that it notifies may be on another machine and needs the commit.
        case.git.share(head, case.keep_alive)

    def work(tx: Transaction) -> None:
        current = lock_task(tx, task.id)
        if session is not None and (current.attempt, current.session) != (task.attempt, task.session):
            raise _taken_away(current)
        if (current.state, current.attempt, current.session) != (task.state, task.attempt, task.session):
            return  # another process was quicker
        if missing is None:
            require_states(tx, case.repo, case.expected)
        if missing is None and session is not None:
            require_tokens(tx, case.repo, session, case.claims)
        if missing is not None:
            _record_missing(tx, current, session, missing, evidence)
        elif step is not None and not installed().reviews.is_approved(tx, current, head):
            _begin_review(tx, case, current, step)
        elif is_landed:
            finish_task(tx, case.repo, current, session, head=head, evidence=evidence)
        elif current.state == REPORTED or current.head != head:
            _record_verified(tx, current, session, head, evidence)

    case.repo.change(work, areas=state_areas(case.expected))
    return get_task(case.repo, task.id)


def _taken_away(task: Task) -> Stale:
    return Stale(
        f"{task.id} {task.title} was taken away while its evidence was verified: "
        + (f"{task.owner} has it now" if task.owner else f"it is {task.state} now"),
        code="TASK_NOT_YOURS",
        hint=f"see where it stands: landlane task show {task.id}",
        holder=task.owner or None,
        state=task.state,
    )


def _rejections(case: _Verification) -> Sequence[Evidence]:
    """Return what is missing when reviewers rejected exactly this commit: asking again would not help."""
    reviews = installed().reviews

    def find_rejection(snapshot: Snapshot) -> str:
        is_approved = not case.head or reviews.is_approved(snapshot, case.task, case.head)
        return "" if is_approved else reviews.find_rejection(snapshot, case.task, case.head)

    rejected = case.repo.store.view(find_rejection)
    if not rejected or _review_step(case) is None:
        return ()
    hint = f"fix what the reviewers found, and commit: landlane review show {rejected}"
    return (_missing("review", f"{rejected} rejected this commit", hint),)


def _review_step(case: _Verification) -> object:
    """Return the review that the task needs, judging also by the paths it changed."""
    changed: Sequence[str] = ()
    if case.head and case.repo.settings.review.paths:
        changed = case.git.changed_paths(case.base, case.head)
    return installed().reviews.find_required(case.repo, case.task, _kind(case.git, case.task), changed)


def _begin_review(tx: Transaction, case: _Verification, task: Task, step: object) -> None:
    """Open a review of exactly this commit."""
    if task.state == LANDING:  # approved before, but there are new commits
        move_task(tx, task, REPORTED, keep_owner=True, head="")
        task = lock_task(tx, task.id)
    base = case.base if case.head else ""
    change = case.git.change_digest(base, case.head)
    installed().reviews.open(tx, case.repo, case.session, task, case.head, step, base=base, change=change)


def _record_missing(
    tx: Transaction,
    task: Task,
    session: Session | None,
    missing: Evidence,
    evidence: list[dict[str, object]],
) -> None:
    """Record once what is missing; a task that was queued to land becomes `reported` again."""
    if task.state == LANDING:
        move_task(tx, task, REPORTED, keep_owner=True, head="")
    if task.state == LANDING or task.why != missing.found:
        tx.run("task_set_why", task=task.id, why=missing.found, next_action=missing.hint)
        facts = {"task": task.id, "why": missing.found, "evidence": evidence, "attempt": task.attempt}
        tx.record("task.doubted", *actor_of(session), facts)
        violation = {"rule": VERIFY_FIRST, "guard": "done", "what": f"{task.id}: {missing.found}"[:200]}
        tx.record("rule.violated", *actor_of(session), violation)


def _record_verified(
    tx: Transaction, task: Task, session: Session | None, head: str, evidence: list[dict[str, object]]
) -> None:
    """Record that everything is verified and only the landing is left."""
    action = f"land it: landlane land {task.branch} --wait"
    if task.state == REPORTED:
        why = "verified, not landed yet"
        move_task(tx, task, LANDING, keep_owner=True, head=head, why=why, next_action=action)
    else:
        tx.run("task_set_head", task=task.id, head=head)
    tx.record("task.proved", *actor_of(session), {"task": task.id, "head": head, "evidence": evidence})
