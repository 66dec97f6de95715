"""What a person can do in the page: the operations of the commands, journaled under the person's name."""

from __future__ import annotations

from landlane.app.repair_config import prepare_git
from landlane.claims.force_release import release_by_force
from landlane.claims.model import Refused
from landlane.errors import Held, Malformed, NotAllowed
from landlane.gates.to_json import gate_json
from landlane.handoffs.accept import accept_handoff, decline_handoff
from landlane.handoffs.records import find_handoff
from landlane.inbox.answer import answer_held_landing, answer_question
from landlane.inbox.decisions import note_answered, note_shown
from landlane.inbox.outcome import gate_outcome, landing_outcome
from landlane.landing.decide import eject_entry, resume_queue
from landlane.landing.to_json import landing_json, queue_json
from landlane.rescue.restore import restore
from landlane.rescue.to_json import rescue_json
from landlane.reviews.give_verdict import give_verdict
from landlane.reviews.records import get_review
from landlane.reviews.to_json import review_json, verdict_text
from landlane.tasks.add import LooksAlike, TaskEdit, add_task, edit_task
from landlane.tasks.change import block_task, drop_task, retry_task, unblock_task
from landlane.tasks.finish import add_dependency
from landlane.tasks.model import DEAD, NewTask, check_reason
from landlane.tasks.records import get_task
from landlane.tasks.to_json import pool_json, task_json
from landlane.tasks.worker_pool import pause_pool, resume_pool
from landlane.text import home_path
from landlane.units import count, join_words
from landlane.values import value
from landlane.workspaces.locate import workspaces_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.tasks.model import Task
    from landlane.web.visit import Visit

_LONGEST = 64_000
_MOST_FINDINGS = 200


@value
class Request:
    """One action: who acts, in which repository, and what was given."""

    repo: Repository
    session: Session
    given: Mapping[str, Any]

    def text(self, name: str, *, is_required: bool = False) -> str:
        """Return a text that was given."""
        found = self.given.get(name, "")
        if not isinstance(found, str) or len(found) > _LONGEST:
            raise Malformed(
                f"{name} is not a text of allowed length", code="BAD_CALL", hint="load the page again"
            )
        if is_required and not found.strip():
            raise Malformed(f"{name} is missing", code="BAD_CALL", hint="fill in the field")
        return found.strip() if name != "body" else found

    def items(self, name: str) -> list[Any]:
        """Return a list that was given; an empty one if it is something else."""
        found: Any = self.given.get(name)
        return list(found) if isinstance(found, list) else []  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]

    def words(self, name: str) -> tuple[str, ...]:
        """Return the lines of a text, or the words of one line."""
        text = self.text(name)
        parts = text.splitlines() if "\n" in text else text.split(",")
        return tuple(part.strip() for part in parts if part.strip())


def act(visit: Visit, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Run an action for the person who is signed in; return the answer of the command with a sentence.

    Raises:
        LandlaneError: the operation refuses it, as it would refuse the command.
    """
    action = ACTIONS[name]
    if visit.is_read_only or (name in DECISIONS and not visit.can_decide):
        raise NotAllowed(
            "this page cannot decide: an answer here must be signed at a terminal",
            code="PAGE_CANNOT_DECIDE",
            hint="use the command beside the card",
        )
    session = visit.source.session_of(visit.person)
    try:
        return {"ok": True, **action(Request(repo=visit.repo, session=session, given=given))}
    finally:
        visit.source.settle()


def _approve(request: Request) -> dict[str, Any]:
    return _answer(request, approve=True)


def _reject(request: Request) -> dict[str, Any]:
    return _answer(request, approve=False)


def _answer(request: Request, *, approve: bool) -> dict[str, Any]:
    id, head = request.text("id", is_required=True).upper(), request.text("head")
    why = request.text("why")
    if not approve:
        check_reason(why)
    repo, person = request.repo, request.session
    if id.startswith("L"):
        landing = answer_held_landing(repo, person, id, approve=approve, head=head, why=why)
        return {"landing": landing_json(landing), "message": landing_outcome(repo, landing)}
    gate = answer_question(repo, person, id, approve=approve, head=head, why=why)
    return {"gate": gate_json(gate), "message": gate_outcome(repo, gate)}


def _review(request: Request) -> dict[str, Any]:
    repo = request.repo
    verdict = request.text("verdict", is_required=True)
    findings: list[Any] = request.items("findings")
    if len(findings) > _MOST_FINDINGS:
        raise Malformed("there are too many comments", code="BAD_VERDICT", hint="give fewer comments")
    review = give_verdict(
        repo,
        request.session,
        get_review(repo, request.text("id", is_required=True).upper()).id,
        verdict=verdict,
        findings=findings,
        summary=request.text("summary"),
        head=request.text("head"),
    )
    note_answered(repo, request.session, review.id)
    text = verdict_text(review, get_task(repo, review.task).title, verdict, len(findings))
    return {"review": review_json(review), "message": text}


def _retry(request: Request) -> dict[str, Any]:
    repo, why = request.repo, request.text("why")
    stopped = get_task(repo, _task_id(request))
    ready = retry_task(repo, request.session, stopped.id, check_reason(why) if why else "")
    if stopped.state == DEAD:
        note_answered(repo, request.session, ready.id)
    return _task_answer(
        repo, ready, f"{ready.id} is {ready.state} again, with {count(ready.max_attempts, 'attempt')}"
    )


def _drop(request: Request) -> dict[str, Any]:
    repo, was = request.repo, get_task(request.repo, _task_id(request))
    dropped = drop_task(repo, request.session, was.id, request.text("why"))
    if was.state == DEAD:
        note_answered(repo, request.session, dropped.id)
    return _task_answer(repo, dropped, f"dropped {dropped.id}")


def _block(request: Request) -> dict[str, Any]:
    blocked = block_task(request.repo, request.session, _task_id(request), request.text("why"))
    return _task_answer(request.repo, blocked, f"blocked {blocked.id}")


def _unblock(request: Request) -> dict[str, Any]:
    task = unblock_task(request.repo, request.session, _task_id(request))
    return _task_answer(request.repo, task, f"{task.id} is {task.state}")


def _after(request: Request) -> dict[str, Any]:
    before = request.text("before", is_required=True).upper()
    task = add_dependency(request.repo, request.session, _task_id(request), before)
    return _task_answer(request.repo, task, f"{task.id} waits for {before}")


def _add(request: Request) -> dict[str, Any]:
    new = NewTask(
        title=request.text("title", is_required=True),
        body=request.text("body"),
        paths=request.words("paths"),
        after=tuple(word.upper() for word in request.words("after")),
        check=request.text("check"),
        role=request.text("role"),
        priority=_number(request, "priority") or 0,
        max_attempts=_number(request, "max_attempts") or 3,
    )
    outcome = add_task(request.repo, request.session, new, force=bool(request.given.get("force")))
    if isinstance(outcome, LooksAlike):
        raise _similar(outcome)
    word = "added" if outcome.is_new else "known already:"
    return _task_answer(request.repo, outcome.task, f"{word} {outcome.task.id} {outcome.task.title}")


def _edit(request: Request) -> dict[str, Any]:
    given = request.given
    edit = TaskEdit(
        title=request.text("title") or None,
        body=request.text("body") if "body" in given else None,
        priority=_number(request, "priority"),
        paths=request.words("paths") or None,
    )
    outcome = edit_task(
        request.repo, request.session, _task_id(request), edit, force=bool(given.get("force"))
    )
    if isinstance(outcome, LooksAlike):
        raise _similar(outcome)
    return _task_answer(request.repo, outcome.task, f"changed {outcome.task.id} {outcome.task.title}")


def _similar(outcome: LooksAlike) -> Malformed:
    first = outcome.similar[0]
    return Malformed(
        f"this looks like {first.task} {first.title} ({first.state}): {first.reason}",
        code="TASK_SIMILAR",
        hint="if it is different work, add it anyway",
        can_force=True,
    )


def _number(request: Request, name: str) -> int | None:
    text = str(request.given.get(name, "")).strip()
    if not text:
        return None
    try:
        return int(text)
    except ValueError as error:
        raise Malformed(f"{name} must be a number", code="BAD_NUMBER", hint="such as 0") from error


def _accept(request: Request) -> dict[str, Any]:
    repo = prepare_git(request.repo, lambda _: None)
    task_id = _task_id(request)
    handoff = find_handoff(repo, task_id)
    accepted = accept_handoff(repo, request.session, task_id)
    if isinstance(accepted, Refused):
        holders = join_words([one.holder for one in accepted.refused])
        hint = "wait until they are free, or release them by force"
        raise Held(f"{holders} holds paths of {task_id}", code="CLAIM_HELD", hint=hint)
    if handoff is not None:
        note_answered(repo, request.session, handoff.id)
    task = accepted.task
    return _task_answer(
        repo, task, f"{task.id} {task.title} is yours; go on: landlane handoff show {task.id}"
    )


def _decline(request: Request) -> dict[str, Any]:
    handoff = decline_handoff(request.repo, request.session, _task_id(request), request.text("why"))
    note_answered(request.repo, request.session, handoff.id)
    return {"message": f"declined {handoff.task}"}


def _eject(request: Request) -> dict[str, Any]:
    repo = request.repo.require_git()
    id = request.text("id", is_required=True).upper()
    ended = eject_entry(repo, request.session, id, request.text("why") or "no reason given")
    return {
        "landing": landing_json(ended),
        "message": f"{ended.id} is out of the queue; its branch is unchanged",
    }


def _pause(request: Request) -> dict[str, Any]:
    why = check_reason(request.text("why") or "paused in the page")
    pool = pause_pool(request.repo, request.session, why, pauses_landing=True)
    return {"pool": pool_json(pool), "message": "paused: nothing new starts, lands or is deployed"}


def _resume(request: Request) -> dict[str, Any]:
    pool = resume_pool(request.repo, request.session)
    return {"pool": pool_json(pool), "message": "resumed"}


def _resume_queue(request: Request) -> dict[str, Any]:
    why = request.text("why", is_required=True)
    queue = resume_queue(request.repo.require_git(), request.session, why)
    return {"queue": queue_json(queue), "message": f"the queue of {queue.target} runs again"}


def _release(request: Request) -> dict[str, Any]:
    token = _number(request, "token") or 0
    claim = release_by_force(request.repo, request.session, token, request.text("why"))
    return {"message": f"released {claim.pattern}; {claim.agent} is notified"}


def _restore(request: Request) -> dict[str, Any]:
    repo = prepare_git(request.repo, lambda _: None)
    restored = restore(
        repo, request.session, request.text("id", is_required=True), "", workspaces_folder(repo)
    )
    files = count(restored.rescue.files, "file")
    return {
        "rescue": rescue_json(restored.rescue),
        "path": restored.path,
        "notes": list(restored.notes),
        "message": f"restored {files} to {home_path(restored.path)}",
    }


def _shown(request: Request) -> dict[str, Any]:
    """Record that an item is shown to the person, for the time that decisions take."""
    note_shown(request.repo, request.session.agent, request.text("id", is_required=True).upper())
    return {"message": ""}


def _task_id(request: Request) -> str:
    return request.text("task", is_required=True).upper()


def _task_answer(repo: Repository, task: Task, message: str) -> dict[str, Any]:
    return {"task": task_json(task, repo.store), "message": message}


ACTIONS: Mapping[str, Callable[[Request], dict[str, Any]]] = {
    "approve": _approve,
    "reject": _reject,
    "review": _review,
    "retry": _retry,
    "drop": _drop,
    "block": _block,
    "unblock": _unblock,
    "after": _after,
    "add": _add,
    "edit": _edit,
    "accept": _accept,
    "decline": _decline,
    "eject": _eject,
    "pause": _pause,
    "resume": _resume,
    "resume-queue": _resume_queue,
    "release": _release,
    "restore": _restore,
    "shown": _shown,
}
# Not from a page where answers must be signed by a key.
DECISIONS = frozenset({"approve", "reject", "review"})
