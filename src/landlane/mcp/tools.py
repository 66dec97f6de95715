"""The implementation of each tool: the same operations and JSON as the command line."""

from __future__ import annotations

from landlane.claims.held import release
from landlane.claims.model import ClaimMode, Refused
from landlane.claims.read import list_claims
from landlane.claims.take import make_request
from landlane.claims.takeover import save_former_work
from landlane.claims.to_json import claim_json, outcome_json, waiter_json
from landlane.claims.wait import list_waiters, take_or_wait
from landlane.clock import rfc3339
from landlane.error_json import failed, failure
from landlane.errors import LandlaneError, Malformed, TimedOut
from landlane.gates.subject import ask_person, ask_plainly
from landlane.gates.to_json import gate_json
from landlane.journal.read import last_position, read_entries
from landlane.journal.to_json import entry_json
from landlane.landing.records import list_landings
from landlane.landing.submit import fetch_reviewed_commit
from landlane.mcp.arguments import read_arguments
from landlane.mcp.handoff_tool import hand_over, left_before, waiting_for
from landlane.mcp.land_tool import land
from landlane.mcp.tool_caller import looking_session
from landlane.mcp.tool_schemas import LONGEST_WAIT_SECONDS
from landlane.sessions.join import live_sessions
from landlane.sessions.notices import has_notices
from landlane.state.key_rules import StateStale
from landlane.state.keys import append_state, get_state, list_state, set_state
from landlane.state.to_json import stale_json, state_json
from landlane.tasks.change import hand_back
from landlane.tasks.evidence import complete_task
from landlane.tasks.git_evidence import GitEvidence
from landlane.tasks.pick import NothingReady, resume_task, wait_for_task
from landlane.tasks.records import count_tasks, get_task, list_tasks
from landlane.tasks.to_json import evidence_json, lesson_json, task_json
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from landlane.claims.model import Claim
    from landlane.mcp.call import Call
    from landlane.sessions.model import Session
    from landlane.store.interface import Snapshot


_MOST_ENTRIES = 200
_MOST_SHOWN = 100


def answer(call: Call) -> dict[str, Any]:
    """Run a tool; errors that the model can fix are returned as `ok: false` with a code and a hint."""
    repo = call.repo
    try:
        given = read_arguments(call.tool, call.given)
        found = _DO[call.tool](_with(call, given), **{key: given[key] for key in given if key != "wait"})
        repo.settle()
        return found
    except LandlaneError as error:
        return failure(error, repo.store.wall_of)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        hint = "check the disk, and what this user may read and write"
        return failed("SYSTEM_REFUSED", f"{where}{error.strerror or error}", hint)
    except Exception as error:  # noqa: BLE001 - the model gets an answer and the server continues
        hint = "this is a mistake in landlane: please report it; `landlane doctor` checks the state"
        return failed("UNEXPECTED", f"{type(error).__name__}: {error}"[:500], hint)


def _with(call: Call, given: dict[str, Any]) -> Call:
    return replace(call, given=given)


# --------------------------------------------------------------------------------------------------- looking


def _status(call: Call) -> dict[str, Any]:
    repo = call.repo
    me = looking_session(repo, call.starter)
    claims = [claim_json(claim, repo.store) for claim in list_claims(repo)]
    mine = [task for task in list_tasks(repo, ("active", "reported")) if me and task.session == me.id]
    landings = list_landings(repo)
    return {
        "ok": True,
        "you": {"agent": me.agent, "session": me.id, "role": me.role or None} if me else None,
        "sessions": [
            {"agent": session.agent, "kind": session.kind, "role": session.role or None}
            for session in live_sessions(repo)[:_MOST_SHOWN]
        ],
        "claims": [
            _short(one, "pattern", "mode", "holder", "until", "task", "note") for one in claims[:_MOST_SHOWN]
        ],
        "waiters": [waiter_json(one, repo.store) for one in repo.store.view(list_waiters)[:_MOST_SHOWN]],
        "tasks": {
            "counts": count_tasks(repo),
            "yours": [_short(task_json(one, repo.store), "id", "title", "state", "why") for one in mine],
        },
        "landings": [
            {"id": one.id, "state": one.state, "agent": one.agent, "branch": one.branch, "reason": one.reason}
            for one in landings[:_MOST_SHOWN]
        ],
        "needs_you": _needs(call, me),
        "more": max(0, len(claims) - _MOST_SHOWN),
    }


def _short(item: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: item[key] for key in keys if item.get(key) is not None}


def _needs(call: Call, me: Session | None) -> list[str]:
    """Return what needs the caller's attention: new notices, and its bounced or doubted tasks."""
    if me is None:
        return ["you have no session yet; claiming begins one"]
    session = me.id
    notices = call.repo.store.view(lambda snapshot: has_notices(snapshot, session))
    return [*(str(notice["text"]) for notice in notices), *waiting_for(call, me)]


def _journal(call: Call, last: int = 20, since: int | None = None) -> dict[str, Any]:
    repo = call.repo
    looking_session(repo, call.starter)
    most = min(last if since is None else _MOST_ENTRIES, _MOST_ENTRIES)
    newest = last_position(repo)
    after = since if since is not None else max(0, newest - most)
    entries = [entry_json(entry) for entry in read_entries(repo, after, most)] if most else []
    for entry in entries:
        del entry["hash"]
    return {"ok": True, "entries": entries, "position": newest}


# ---------------------------------------------------------------------------------------------------- claims


def _claim(
    call: Call,
    paths: tuple[str, ...],
    task: str = "",
    note: str = "",
    shared: bool = False,
    literal: bool = False,
) -> dict[str, Any]:
    repo = call.repo
    patterns = tuple(repo.git.pattern(text, is_literal=literal) for text in paths)
    request = make_request(
        repo,
        patterns,
        mode=ClaimMode.SHARED if shared else ClaimMode.EXCLUSIVE,
        ttl_ms=None,
        task=task,
        note=note,
        is_partial=False,
    )
    session = call.session

    def on_wait(refused: Refused) -> None:
        first = refused.refused[0]
        call.tell(f"waiting for {first.holder}, who holds {first.held}")

    outcome = take_or_wait(repo, session, request, call.wait_seconds * 1000, on_wait)
    if not isinstance(outcome, Refused) and call.is_given_up():
        # The client has stopped waiting and would not know that this is held.
        release(repo, session, patterns)
    found, _ = outcome_json(outcome, call.repo.store)
    if isinstance(outcome, Refused):
        if outcome.code == "WAIT_TIMED_OUT":
            found["hint"] = (
                f"call claim again with wait to go on waiting, or do something else: {found['hint']}"
            )
        return found
    return found | _former_work(call, session, outcome.granted)


def _former_work(call: Call, session: Session, granted: tuple[Claim, ...]) -> dict[str, Any]:
    """Save changes that holders of lapsed leases left on these paths, before they are changed."""
    repo = call.repo

    def has_lapsed(snapshot: Snapshot) -> bool:
        return snapshot.one("lapsed_of_others", agent=session.agent) is not None

    if not granted or not repo.checkout.common_dir or not repo.store.view(has_lapsed):
        return {}
    taken = save_former_work(repo.require_git(), session, granted)
    return {} if taken is None else {"rescued": taken.rescue or None, "rescue_note": taken.note}


def _release(call: Call, paths: tuple[str, ...] | None = None, commit: str = "") -> dict[str, Any]:
    repo = call.repo
    wanted = tuple(repo.git.pattern(text) for text in paths) if paths is not None else None
    commit_id = repo.git.commit_id(commit) if commit else ""
    return {"ok": True, "released": list(release(repo, call.session, wanted, commit=commit_id))}


# ----------------------------------------------------------------------------------------------------- tasks


def _next(call: Call, role: str = "") -> dict[str, Any]:
    repo, session = call.repo, call.session
    outcome: Any = resume_task(repo, session)
    if outcome is None:
        if call.wait_seconds:
            call.tell("waiting for a task")
        start = GitEvidence(repo).start
        outcome = wait_for_task(repo, session, role, call.wait_seconds * 1000, start)
    if isinstance(outcome, NothingReady):
        return _nothing(outcome, call.wait_seconds)
    missing = ""
    if outcome.task.kind == "review":
        missing = fetch_reviewed_commit(repo, outcome.task)
    if call.is_given_up() and not outcome.is_resumed:
        hand_back(repo, session, outcome.task.id, "the client had stopped waiting when it was taken")
    return {
        "ok": True,
        "task": task_json(outcome.task, repo.store),
        "claims": [claim_json(claim, repo.store) for claim in outcome.claims],
        "feedback": [lesson_json(one) for one in outcome.lessons],
        "context": left_before(call, outcome),
        "resumed": outcome.is_resumed,
        **({"note": missing} if missing else {}),
        **({} if outcome.is_resumed else _former_work(call, session, outcome.claims)),
    }


def _nothing(nothing: Any, waited: int) -> dict[str, Any]:
    names = ", ".join(nothing.held_up)
    message = "no task is ready" + (f"; {names} wait for paths that others hold" if names else "")
    later = ", ".join(f"{task} until {rfc3339(until)}" for task, until in nothing.held_back)
    message += f"; held back after a failure: {later}" if later else ""
    message += "".join(f"; {task} is over its budget: {why}" for task, why in nothing.over_budget)
    hint = (
        "call next again with wait to go on waiting"
        if waited
        else "call next with wait, or ask what else to do"
    )
    return {**failed("NO_TASK", message, hint), "task": None, "claims": [], "counts": nothing.counts}


def _done(call: Call, task: str, result: str = "") -> dict[str, Any]:
    """Verify the evidence; a check that takes longer than the client waits continues in the background."""
    session = call.session

    def look() -> dict[str, Any]:
        with call.pool.borrow() as repo:
            tell = call.tell
            completion = complete_task(
                repo,
                session,
                task,
                result=result,
                on_step=lambda name: tell(f"looking at: {name}"),
            )
            repo.settle()
            evidence = [evidence_json(item) for item in completion.evidence]
            return {"ok": True, "task": task_json(completion.task, repo.store), "evidence": evidence}

    found = call.jobs.run(("done", session.id, task), look, LONGEST_WAIT_SECONDS)
    if found is None:
        hint = f"call done for {task} again to hear how it ends; nothing is lost meanwhile"
        raise TimedOut(f"the evidence for {task} is still being looked for", code="STILL_LOOKING", hint=hint)
    return found


def _handoff(call: Call, **given: Any) -> dict[str, Any]:
    return hand_over(call, **given)


def _ask(call: Call, task: str, question: str, kind: str = "approval") -> dict[str, Any]:
    repo = call.repo
    if repo.checkout.common_dir:
        gate = ask_person(repo.require_git(), call.session, task, kind, question)
    else:
        gate = ask_plainly(repo, call.session, task, kind, question, "")
    hint = "go on by the answer"
    if gate.state == "waiting":
        hint = f"a person answers {gate.id}; call ask with the same words to hear it, or next for other work"
    found = task_json(get_task(repo, task), repo.store)
    return {"ok": True, "gate": gate_json(gate), "task": found, "hint": hint}


# ----------------------------------------------------------------------------------------- state and landing


def _state(
    call: Call, do: str, key: str = "", value: Any = None, expect: int | None = None
) -> dict[str, Any]:
    repo = call.repo
    if do == "list":
        return {"ok": True, "states": [state_json(entry) for entry in list_state(repo, key)[:_MOST_SHOWN]]}
    if not key:
        raise Malformed(
            f"{do} needs a key", code="BAD_ARGUMENTS", hint="give key; list shows which there are"
        )
    if do == "get":
        found: Any = get_state(repo, key)
        if found is None:
            hint = "set it without expect to make it; list shows what there is"
            raise Malformed(
                f"there is no state under {key[:80]}", code="NO_STATE", hint=hint, key=key, version=0
            )
    elif do == "append":
        found = append_state(repo, call.session, key, value)
    else:
        found = set_state(repo, call.session, key, value, expect=expect)
    if isinstance(found, StateStale):
        return stale_json(found)[0]
    return {"ok": True, **state_json(found)}


def _land(call: Call, branch: str = "", task: str = "") -> dict[str, Any]:
    return land(call, branch, task)


_DO: dict[str, Callable[..., dict[str, Any]]] = {
    "status": _status,
    "claim": _claim,
    "release": _release,
    "next": _next,
    "done": _done,
    "handoff": _handoff,
    "state": _state,
    "land": _land,
    "ask": _ask,
    "journal": _journal,
}
