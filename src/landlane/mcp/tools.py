"""The implementation of each tool: the same operations and JSON as the command line."""

from __future__ import annotations

from landlane.claims.claim_paths import claim_paths
from landlane.claims.held import release
from landlane.claims.model import ClaimMode, Refused
from landlane.claims.take import list_claims, make_request
from landlane.claims.to_json import claim_json, outcome_json, waiter_json
from landlane.claims.wait import list_waiters
from landlane.error_json import error_json, failure_json
from landlane.errors import Malformed, TimedOut
from landlane.gates.model import WAITING
from landlane.gates.subject import ask_person
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
from landlane.rules.show_to_session import carry_rules
from landlane.rules.to_json import carried_json
from landlane.sessions.join import live_sessions
from landlane.sessions.notices import list_unread
from landlane.state.key_rules import StateStale
from landlane.state.keys import append_state, get_state, list_state, set_state
from landlane.state.to_json import stale_json, state_json
from landlane.tasks.change import hand_back
from landlane.tasks.evidence import complete_task
from landlane.tasks.git_evidence import GitEvidence
from landlane.tasks.model import REVIEW_KIND
from landlane.tasks.pick import NothingReady, next_task, resume_task
from landlane.tasks.records import count_tasks, get_task, list_tasks
from landlane.tasks.text import why_no_task
from landlane.tasks.to_json import completion_json, lesson_json, task_json
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from landlane.claims.model import SavedWork
    from landlane.mcp.call import Call
    from landlane.sessions.model import Session


_MOST_ENTRIES = 200
_MOST_SHOWN = 100


def answer(call: Call) -> dict[str, Any]:
    """Run a tool; errors that the model can fix are returned as `ok: false` with a code and a hint."""
    repo = call.repo
    try:
        given = read_arguments(call.tool, call.given)
        arguments = {key: given[key] for key in given if key != "wait"}
        found = _TOOLS[call.tool](replace(call, given=given), **arguments)
        repo.settle()
        return found
    except Exception as error:  # noqa: BLE001 - the model gets an answer and the server continues
        return error_json(error, repo.store.wall_of)


def _status(call: Call) -> dict[str, Any]:
    repo = call.repo
    me = looking_session(repo, call.starter)
    claims = [claim_json(claim, repo.store) for claim in list_claims(repo)]
    mine = [task for task in list_tasks(repo, ("active", "reported")) if me and task.session == me.id]
    landings = list_landings(repo)
    return {
        "ok": True,
        "you": {"agent": me.agent, "session": me.id, "role": me.role or None} if me else None,
        "rules": carried_json(carry_rules(repo, me)),
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


def _short(item: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: item[key] for key in keys if item.get(key) is not None}


def _needs(call: Call, me: Session | None) -> list[str]:
    """Return what needs the caller's attention: new notices, and its bounced or doubted tasks."""
    if me is None:
        return ["you have no session yet; claiming begins one"]
    session = me.id
    notices = call.repo.store.view(lambda snapshot: list_unread(snapshot, session))
    return [*(str(notice["text"]) for notice in notices), *waiting_for(call, me)]


def _journal(call: Call, last: int = 20, since: int | None = None) -> dict[str, Any]:
    repo = call.repo
    looking_session(repo, call.starter)
    most = min(last if since is None else _MOST_ENTRIES, _MOST_ENTRIES)
    newest = last_position(repo)
    after = since if since is not None else max(0, newest - most)
    read = map(entry_json, read_entries(repo, after, most) if most else ())
    entries = [{name: fact for name, fact in entry.items() if name != "hash"} for entry in read]
    return {"ok": True, "entries": entries, "position": newest}


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
        task=task,
        note=note,
    )
    session = call.session

    def on_wait(refused: Refused) -> None:
        first = refused.refused[0]
        call.report(f"waiting for {first.holder}, who holds {first.held}")

    outcome = claim_paths(repo, session, request, call.wait_seconds * 1000, on_wait)
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
    return found | _saved_json(outcome.saved)


def _saved_json(saved: SavedWork | None) -> dict[str, Any]:
    return {} if saved is None else {"rescued": saved.rescue or None, "rescue_note": saved.note}


def _release(call: Call, paths: tuple[str, ...] | None = None, commit: str = "") -> dict[str, Any]:
    repo = call.repo
    wanted = tuple(repo.git.pattern(text) for text in paths) if paths is not None else None
    commit_id = repo.git.commit_id(commit) if commit else ""
    return {"ok": True, "released": list(release(repo, call.session, wanted, commit=commit_id))}


def _next(call: Call, role: str = "") -> dict[str, Any]:
    repo, session = call.repo, call.session
    resumed = resume_task(repo, session)
    if resumed is None and call.wait_seconds:
        call.report("waiting for a task")
    start, wait_ms = GitEvidence(repo).start, call.wait_seconds * 1000
    outcome = resumed or next_task(repo, session, role, start, wait_ms=wait_ms)
    if isinstance(outcome, NothingReady):
        return _nothing_json(outcome, call.wait_seconds)
    missing = ""
    if outcome.task.kind == REVIEW_KIND:
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
        "rules": carried_json(carry_rules(repo, session)),
        **({"note": missing} if missing else {}),
        **_saved_json(outcome.saved),
    }


def _nothing_json(nothing: NothingReady, waited: int) -> dict[str, Any]:
    message = f"no task to take: {why_no_task(nothing)}"
    hint = (
        "call next again with wait to go on waiting"
        if waited
        else "call next with wait, or ask what else to do"
    )
    return failure_json("NO_TASK", message, hint, task=None, claims=[], counts=nothing.counts)


def _done(call: Call, task: str, result: str = "") -> dict[str, Any]:
    """Verify the evidence; a check that takes longer than the client waits continues in the background."""
    session = call.session

    def verify() -> dict[str, Any]:
        with call.pool.borrow() as repo:
            report = call.report
            completion = complete_task(
                repo,
                session,
                task,
                result=result,
                on_step=lambda name: report(f"looking at: {name}"),
            )
            repo.settle()
            return completion_json(completion, repo)

    found = call.jobs.run(("done", session.id, task), verify, LONGEST_WAIT_SECONDS)
    if found is None:
        hint = f"call done for {task} again to hear how it ends; nothing is lost meanwhile"
        raise TimedOut(f"the evidence for {task} is still being looked for", code="STILL_LOOKING", hint=hint)
    return found


def _ask(call: Call, task: str, question: str, kind: str = "approval") -> dict[str, Any]:
    repo = call.repo
    gate = ask_person(repo, call.session, task, kind, question)
    hint = "go on by the answer"
    if gate.state == WAITING:
        hint = f"a person answers {gate.id}; call ask with the same words to hear it, or next for other work"
    found = task_json(get_task(repo, task), repo.store)
    return {"ok": True, "gate": gate_json(gate), "task": found, "hint": hint}


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
        state = get_state(repo, key)
        if state is None:
            hint = "set it without expect to make it; list shows what there is"
            raise Malformed(
                f"there is no state under {key[:80]}", code="NO_STATE", hint=hint, key=key, version=0
            )
    elif do == "append":
        state = append_state(repo, call.session, key, value)
    else:
        state = set_state(repo, call.session, key, value, expect=expect)
    if isinstance(state, StateStale):
        return stale_json(state)[0]
    return {"ok": True, **state_json(state)}


_TOOLS: dict[str, Callable[..., dict[str, Any]]] = {
    "status": _status,
    "claim": _claim,
    "release": _release,
    "next": _next,
    "done": _done,
    "handoff": hand_over,
    "state": _state,
    "land": land,
    "ask": _ask,
    "journal": _journal,
}
