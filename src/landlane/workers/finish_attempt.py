"""After a worker's last message: verify its change, submit it, or decide what else to do."""

from __future__ import annotations

import signal

from landlane.errors import LandlaneError, Malformed, NotAllowed, Stale, StoreError
from landlane.git.create_checkout import fetch_clone_branch
from landlane.git.remove_checkout import is_folder
from landlane.git.run import resolve_revision, try_git_output
from landlane.handoffs.collect_state import save_unfinished
from landlane.ids import digest
from landlane.landing.failed_submission import send_back
from landlane.landing.records import list_landings
from landlane.landing.submit import submit_branch
from landlane.protocol.worker.messages import WorkComplete, WorkFailed
from landlane.reviews.give_verdict import take_verdict
from landlane.sessions.leases import touch
from landlane.tasks.attempts import change_attempt, running_attempts
from landlane.tasks.evidence import complete_task
from landlane.tasks.evidence_model import COMMIT, PATHS, effective_kind, required_evidence
from landlane.tasks.model import AT_WORK, DONE, LANDING, REVIEW, WAITING, returned_branch_of
from landlane.tasks.records import get_task
from landlane.tasks.retry import end_attempt
from landlane.tasks.retry_rules import AttemptEnd
from landlane.tasks.worker_pool import note_infrastructure, note_rate_limit, note_success
from landlane.usage.add import attempt_key, book, cost_of_attempt
from landlane.values import as_dict, value
from landlane.workers.returned.commit import hand_in, keep_returned
from landlane.workers.returned.output import bring_output
from landlane.workers.work_order import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from landlane.exec.clone import Ground
    from landlane.repository import Repository
    from landlane.roles.model import Role
    from landlane.sessions.model import Session
    from landlane.tasks.model import Attempt, Task
    from landlane.workers.agents import Agent
    from landlane.workers.run_worker import WorkerEnd
    from landlane.workers.store_outage import Patience
    from landlane.workers.work_order import Workplace

    T = TypeVar("T")


_MOST_FEEDBACK = 3500
# Words of the protocol that say that no work was done at all, and not because of the task.
_INFRASTRUCTURE = frozenset({"not_started"})
# Somebody killed it, perhaps for want of memory: a lapse, which is counted and says nothing of the task.
_KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)


@value
class _Case:
    """Everything about an attempt whose worker has ended."""

    place: Workplace
    session: Session
    task: Task
    attempt: Attempt
    role: Role
    agent: Agent
    base: str
    ground: Ground
    scratch: str
    end: WorkerEnd
    tell: Callable[[dict[str, Any]], None]
    patience: Patience

    @property
    def repo(self) -> Repository:
        return self.place.repo

    def outlast(self, step: Callable[[], T]) -> T:
        """Do a step that may be done twice, again while the store is away; the session stays alive."""
        return self.patience.outlast(step, lambda: touch(self.repo.store, self.session))

    def see_task(self) -> Task:
        return self.outlast(lambda: get_task(self.repo, self.task.id))


def follow_up(
    place: Workplace,
    *,
    session: Session,
    task: Task,
    attempt: Attempt,
    role: Role,
    agent: Agent,
    base: str,
    ground: Ground,
    scratch: str,
    end: WorkerEnd,
    is_lost: bool,
    tell: Callable[[dict[str, Any]], None],
    patience: Patience,
) -> Outcome:
    """See to what follows; a store that is away for a while is waited for.

    Raises:
        Stale: the task is somebody else's by now.
        StoreError: the store is not to be had.
    """
    case = _Case(
        place=place,
        session=session,
        task=task,
        attempt=attempt,
        role=role,
        agent=agent,
        base=base,
        ground=ground,
        scratch=scratch,
        end=end,
        tell=tell,
        patience=patience,
    )
    case.outlast(lambda: _book(case))
    if ground.workspace is not None:
        fetch_clone_branch(case.repo.home, ground.path, ground.workspace.branch)
    now = case.see_task()
    if now.state == WAITING:
        head, told = _keep(case, is_ours=True)
        return _outcome(case, "waiting", why=now.why + told, head=head, keeps_workspace=True)
    if is_lost or now.session != session.id or now.state not in AT_WORK:
        head, told = _keep(case, is_ours=False)
        told = told or _save_unfinished(case)
        return _outcome(case, "lost", why=_word(end)[1] + told, head=head)
    if isinstance(end.outcome, WorkFailed):
        return _failed(case, end.outcome)
    return _completed(case, end.outcome)


def _keep(case: _Case, *, is_ours: bool) -> tuple[str, str]:
    """Keep a returned change for whoever goes on, as its scratch will be gone: its head, and what to say.

    Raises:
        StoreError: the store is not to be had.
    """
    said, task = case.end.outcome, case.task
    if not isinstance(said, WorkComplete) or not _wants_commit(case):
        return "", ""
    # Where others may be at work, or the worker's own commits are, it does not get in between.
    is_free = is_ours and case.ground.workspace is None
    branch = task.branch if is_free else returned_branch_of(task.id, task.attempt)
    what = (case.repo, case.session, task, case.role, case.base, said, case.scratch)
    try:
        head = case.outlast(lambda: keep_returned(*what, branch=branch))
    except StoreError:
        raise
    except LandlaneError as error:
        return "", f"; what it returned is not kept: {error.code}: {error.message}"
    return head, f"; what it returned is on {branch} at {head[:12]}" if head else ""


def _book(case: _Case) -> None:
    """Book what was used, once, whatever became of the work."""
    task = case.task
    book(
        case.repo,
        key=attempt_key(case.attempt.id),
        lineage=task.lineage,
        task=task.id,
        attempt=task.attempt,
        agent=case.session.agent,
        client=case.agent.client,
        model=case.agent.model,
        usage=case.end.outcome.usage,
        at=case.repo.wall_ms(),
    )


def _save_unfinished(case: _Case) -> str:
    """Save what a worker that may only look left in its checkout, if its task went on elsewhere.

    Nothing of the worker lives any more, so what was looked at stays as it is; what it put in the place of
    its checkout is not followed.
    """
    ground, task = case.ground, case.task
    if ground.workspace is not None or not is_folder(ground.path):
        return ""
    try:
        rescue = case.outlast(lambda: save_unfinished(case.repo, case.session, task, ground.path, case.base))
    except StoreError:
        raise
    except (LandlaneError, OSError) as error:
        return f"; what it left is not saved: {error}"
    return f"; what it left is saved: landlane rescue restore {rescue}" if rescue else ""


def _word(end: WorkerEnd) -> tuple[str, str]:
    said = end.outcome
    return (said.code, said.reason) if isinstance(said, WorkFailed) else ("", said.summary)


def _outcome(case: _Case, kind: str, **more: Any) -> Outcome:
    usage = case.end.outcome.usage
    return Outcome(kind=kind, usage=as_dict(usage) if usage else None, **more)


def _failed(case: _Case, said: WorkFailed) -> Outcome:
    trouble = case.end.trouble.strip()
    reason = said.reason + (f"\n{trouble[-1500:]}" if trouble and said.code != "stopped" else "")
    notes = f"\nnotes: {said.notes}" if said.notes else ""
    repo, kind = case.repo, case.agent.name
    if said.code == "rate_limited":
        others = case.outlast(lambda: running_attempts(repo))
        running = sum(one.agent.startswith(f"{kind[:40]}-{one.task}-") for one in others)
        pause_ms = round((said.retry_after_seconds or 0) * 1000)
        case.outlast(lambda: note_rate_limit(repo, kind, running, pause_ms))
    if said.code == "died" and case.end.exit_code in _KILLED:
        return _end(case, "killed", reason + notes, said=said)
    # One that ends without a word and well has been started, and does not speak the protocol.
    never_began = said.code == "died" and not case.end.messages and case.end.exit_code != 0
    if said.code in _INFRASTRUCTURE or never_began:
        return case.outlast(
            lambda: give_back(case.place, case.session, case.task, case.agent, code=said.code, why=reason)
        )
    return _end(case, said.code, reason + notes, may_retry=said.retry is not False, said=said)


def give_back(
    place: Workplace, session: Session, task: Task, agent: Agent, *, code: str, why: str
) -> Outcome:
    """What could not even begin goes back; the same on several tasks pauses the pool, and charges nobody."""
    note_infrastructure(place.repo, task.id, why, agent.name)
    end = AttemptEnd(
        task=task.id,
        attempt=task.attempt,
        code=code,
        feedback=why[:_MOST_FEEDBACK],
        is_infrastructure=True,
        kind=agent.name,
    )
    decision = end_attempt(place.repo, session, task.id, end)
    return Outcome(kind=decision.outcome, why=decision.why or why, code=code)


def _end(
    case: _Case,
    code: str,
    feedback: str,
    *,
    head: str = "",
    may_retry: bool = True,
    said: WorkFailed | None = None,
) -> Outcome:
    """The attempt did not get there: back into the queue with what was learned, or to a person."""
    end = AttemptEnd(
        task=case.task.id,
        attempt=case.task.attempt,
        code=code,
        feedback=feedback[:_MOST_FEEDBACK],
        change=_change(case, head),
        is_progress=bool(head),
        took_ms=max(case.repo.wall_ms() - case.attempt.started_at, 0),
        cost_micros=case.outlast(lambda: cost_of_attempt(case.repo, case.attempt.id)),
        is_infrastructure=False,
        may_retry=may_retry,
        retry_after_ms=round((said.retry_after_seconds or 0) * 1000) if said else 0,
    )
    repo = case.repo
    # Done twice, either finds the task gone on, and says that it is not ours any more.
    if case.see_task().state == LANDING:  # it was proved, and is the queue's rather than ours
        decision = case.outlast(lambda: send_back(repo, case.session, end))
    else:
        decision = case.outlast(lambda: end_attempt(repo, case.session, case.task.id, end))
    return _outcome(case, decision.outcome, why=decision.why or feedback, code=code, head=head)


def _change(case: _Case, head: str) -> str:
    """What tells this change from another, whenever it was made."""
    tip = head or resolve_revision(case.repo.home, f"refs/heads/{case.task.branch}^{{commit}}")
    if not tip or tip == case.base:
        return ""
    return digest(try_git_output(case.repo.home, "diff-tree", "-r", case.base, tip))


def _completed(case: _Case, said: WorkComplete) -> Outcome:
    """Hand in what it returned, and prove it."""
    wants_commit = _wants_commit(case)
    try:
        head = case.outlast(lambda: _take_in(case, said, wants_commit=wants_commit))
    except (Stale, StoreError):
        raise
    except LandlaneError as error:
        return _end(case, "unfit", f"{error.code}: {error.message}. {error.hint}")
    if head and case.ground.workspace is None:
        # By this it is known as what was handed back, should we be killed before it is submitted.
        case.outlast(lambda: change_attempt(case.repo, case.attempt, "handed", head=head))
    if wants_commit and not head:
        how = (
            "commit the change"
            if "commit" in case.role.verbs
            else "hand the change back as a patch or as files"
        )
        told = f"it said that it was done, and changed nothing that is known of ({how}): {said.summary}"
        return _end(case, "no_change", told)
    case.tell({"event": "stage", "stage": "proving"})
    return _judged(case, said) if case.task.kind == "review" else _prove(case, said, head)


def _prove(case: _Case, said: WorkComplete, head: str) -> Outcome:
    """Look for the evidence, and go on to wherever it leads."""
    repo = case.repo
    result = said.summary if not said.notes else f"{said.summary}\n\n{said.notes}"
    completion = case.outlast(lambda: complete_task(repo, case.session, case.task.id, result=result))
    task = completion.task
    if task.state in (DONE, REVIEW):
        _note_success(case)
        kind, why = ("done", said.summary) if task.state == DONE else ("review", task.why)
        return _outcome(case, kind, why=why, head=head)
    if task.state == WAITING:
        return _outcome(case, "waiting", why=task.why, head=head, keeps_workspace=True)
    if task.state != LANDING:
        missing = completion.missing
        feedback = f"{missing.found}. {missing.hint}" if missing else task.why
        return _end(case, "not_proved", feedback, head=head)
    return _submit(case, head)


def _take_in(case: _Case, said: WorkComplete, *, wants_commit: bool) -> str:
    """Take in what it returned: a change, whose head is told, or the output of its task."""
    if wants_commit:
        case.tell({"event": "stage", "stage": "handing in"})
        return hand_in(case.repo, case.session, case.task, case.role, case.base, said, case.scratch)
    if said.files and case.task.output:
        bring_output(case.repo, case.session, case.task, case.role, said.files, case.scratch)
    return ""


def _wants_commit(case: _Case) -> bool:
    task = case.task
    kind = effective_kind(task.kind, has_output=bool(task.output), is_in_git=bool(case.repo.common_dir))
    wanted = required_evidence(kind, case.repo.settings.tasks.evidence)
    return COMMIT in wanted or PATHS in wanted


def _judged(case: _Case, said: WorkComplete) -> Outcome:
    """A reviewer's answer, which is no work of its own; one that is no verdict is tried again."""

    def judge() -> None:
        if get_task(case.repo, case.task.id).state != DONE:  # by a verdict of which we were not told
            take_verdict(case.repo, case.session, case.task, said)

    try:
        case.outlast(judge)
    except Malformed as error:
        return _end(case, "malformed", f"{error.code}: {error.message}. {error.hint}")
    except NotAllowed as error:
        return _end(case, "refused", f"{error.code}: {error.message}. {error.hint}")
    _note_success(case)
    return _outcome(case, "done", why=said.summary)


def _submit(case: _Case, head: str) -> Outcome:
    case.tell({"event": "stage", "stage": "submitting"})
    repo, task = case.repo, case.task

    def submit() -> None:
        # What stands there has taken the claims with it: its evidence is not to be looked for once more.
        queued = any((one.task, one.head) == (task.id, head) for one in list_landings(repo))
        if not queued and get_task(repo, task.id).state != DONE:
            submit_branch(repo, case.session, task.branch, task.id)

    try:
        case.outlast(submit)
    except (Stale, StoreError):
        raise
    except LandlaneError as error:
        return _end(case, "not_submitted", f"{error.code}: {error.message}. {error.hint}", head=head)
    _note_success(case)
    return _outcome(case, "landing", why="submitted to the landing queue", head=head, keeps_workspace=True)


def _note_success(case: _Case) -> None:
    """Tell the pool. The work is done, whatever becomes of this."""
    try:
        case.outlast(lambda: note_success(case.repo, case.agent.name))
    except StoreError as error:
        case.repo.report(str(error))
