"""Journal entries as sentences: `14:28  ann  claimed src/api.py: "new endpoint"`."""

from __future__ import annotations

from landlane.ids import is_record_id
from landlane.sessions.model import OWN_NAME, find_reserved_use
from landlane.store.journal_chain import JournalEntry
from landlane.units import clock_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_COMMIT = 8  # digits of a commit that people see
_LONGEST_TEXT = 160
_NAME_WIDTH = 11
_CANARY = "canary-"  # prefix of the agents with which `doctor` tries the guards

# Bookkeeping that people see only with -v: another entry says the same, or nothing is to be learned from it.
_INTERNAL = (
    *("lineage.", "notice.", "runner.", "client.", "usage.", "attempt.", "event.", "rules.", "wait."),
    *("decision.", "run."),
)
_INTERNAL_KINDS = frozenset(
    {
        *("task.asked", "task.answered", "task.reviewing", "task.reported", "workspace.begun"),
        *("landing.testing", "landing.settled", "queue.moving", "queue.moved"),
    }
)
_DONE_GUARD = "done"  # refuses missing evidence, and another entry says what is missing

# What happened to a task, by kind; {name} is its id and title, {why} a reason if there is one.
_TASK_WORDS = {
    "task.added": "added {name}",
    "task.taken": "started {name}{attempt}",
    "task.reported": "reported {name} as done",
    "task.proved": "finished {name}{commit}",
    "task.done": "completed {name}{commit}",
    "task.doubted": "found no evidence for {name}{why}",
    "task.failed": "failed {name}{why}{attempt}",
    "task.returned": "returned {name} to the queue{why}",
    "task.dropped": "dropped {name}{why}",
    "task.unblocked": "unblocked {name}",
    "task.waits": "made {name} wait{why}",
    "task.planned": "changed {name}",
    "task.split": "split {name}",
    "task.joined": "joined the parts of {name}",
    "task.reviewed": "decided the review of {name}{why}",
}
# What happened to a record, by kind; {id} is its id.
_RECORD_WORDS = {
    "gate.asked": "asked a person: {question} ({id})",
    "gate.approved": "approved {id}{answer}",
    "gate.rejected": "rejected {id}{answer}",
    "gate.withdrawn": "withdrew {id}",
    "landing.submitted": "queued {id} {work}",
    "landing.testing": "tested {id} {work}",
    "landing.requeued": "queued {id} {work} again{reason}",
    "landing.held": "held {id}: {reason_only}",
    "landing.approved": "approved {id}",
    "landing.landed": "landed {id} {work}{as_commit}",
    "landing.bounced": "bounced {id} {work}{reason}",
    "landing.ejected": "removed {id} {work} from the queue{reason}",
    "review.opened": "asked for a review of {task} ({id})",
    "review.approved": "approved {task} ({id})",
    "review.rejected": "rejected {task} ({id})",
    "review.disputed": "found that the reviewers of {task} disagree ({id})",
    "handoff.offered": "handed {task} over",
    "handoff.accepted": "accepted {task}",
    "handoff.declined": "declined {task}",
    "pool.paused": "paused the workers",
    "pool.resumed": "resumed the workers",
}
# Everything else, by kind, with the facts of the entry.
_OTHER_WORDS = {
    "claim.taken": "claimed {pattern}{note}",
    "claim.refused": "was refused {pattern}{holder}",
    "claim.released": "released {pattern}",
    "claim.lapsed": "lost {pattern}: the lease ended",
    "claim.passed": "passed {pattern} on",
    "session.joined": "joined",
    "session.left": "left",
    "session.role": "took the role {role}",
    "commit.made": "committed {commit_only}",
    "duplicate.refused": "was refused a duplicate task",
    "rule.violated": "broke a rule: {what}",
    "guard.overridden": "overrode a guard{why}",
    "number.given": "took the number {number}",
    "once.started": "started {key}",
    "once.ended": "finished {key}",
    "slot.taken": "took {slot}",
    "slot.freed": "freed {slot}",
    "state.set": "set {key}",
    "rescue.saved": "saved work before it was removed",
    "rescue.restored": "restored saved work",
    "rescue.dropped": "dropped saved work",
    "repository.begun": "began the journal",
    "store.moved": "moved the store",
    "store.rebuilt": "rebuilt the store",
    "stray.moved": "moved misplaced changes",
}


def is_for_people(entry: JournalEntry) -> bool:
    """Return whether an entry is shown without -v."""
    if entry.kind.startswith(_INTERNAL) or entry.kind in _INTERNAL_KINDS:
        return False
    # The sessions that hold claims for a gate or a landing come and go with it.
    # So do the sessions of workers, with their attempts.
    is_worker_session = entry.kind.startswith("session.") and find_reserved_use(entry.agent) != ""
    is_canary = entry.agent.startswith(_CANARY)
    return not (is_record_id(entry.agent) or is_worker_session or is_canary or _is_repeated(entry))


def _is_repeated(entry: JournalEntry) -> bool:
    """Return whether another entry says the same: the landing, or that evidence is missing."""
    if entry.kind == "task.done":
        return any(one.get("name") == "landed" for one in entry.facts().get("evidence") or ())
    return entry.kind == "rule.violated" and entry.facts().get("guard") == _DONE_GUARD


def entry_sentence(entry: JournalEntry, titles: Mapping[str, str]) -> str:
    """Return what an entry says, without time and agent; `titles` are those of tasks, by id."""
    facts = entry.facts()
    noun = entry.kind.partition(".")[0]
    record: dict[str, Any] = facts[noun] if isinstance(facts.get(noun), dict) else {}
    words = _TASK_WORDS.get(entry.kind) or _RECORD_WORDS.get(entry.kind) or _OTHER_WORDS.get(entry.kind)
    if words is None:
        return _fallback(entry, facts, record)
    return words.format_map(_Words(facts, record, titles))


def entry_line(entry: JournalEntry, titles: Mapping[str, str], *, has_seconds: bool = False) -> str:
    """Return an entry as a line: local time, who, what."""
    who = entry.agent or OWN_NAME
    clock = clock_time(entry.at, has_seconds=has_seconds)
    return f"{clock}  {who:<{_NAME_WIDTH}}  {entry_sentence(entry, titles)}"


def _fallback(entry: JournalEntry, facts: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    """Return the verb of an entry and the thing that it names."""
    noun, _, verb = entry.kind.partition(".")
    named = record.get("id") or facts.get("task") or facts.get("key") or facts.get("pattern") or ""
    return f"{verb.replace('_', ' ')} {noun} {named}".strip()


class _Words(dict[str, str]):
    """The words that a sentence may name, worked out when they are needed."""

    def __init__(
        self, facts: Mapping[str, Any], record: Mapping[str, Any], titles: Mapping[str, str]
    ) -> None:
        super().__init__()
        self._facts = facts
        self._record = record
        self._titles = titles

    def __missing__(self, key: str) -> str:
        find = getattr(self, f"_{key}", None)
        return find() if find is not None else str(self._facts.get(key) or "")

    def _fact(self, key: str) -> str:
        return _short(self._record.get(key) or self._facts.get(key) or "")

    def _named(self, task: str) -> str:
        return f"{task} {self._titles.get(task, '')}".strip()

    def _name(self) -> str:
        return self._named(str(self._facts.get("task") or "")) or str(self._facts.get("title") or "a task")

    def _id(self) -> str:
        return self._fact("id")

    def _task(self) -> str:
        return self._named(str(self._record.get("task") or self._facts.get("task") or ""))

    def _work(self) -> str:
        return self._task() or self._fact("subject") or self._fact("branch")

    def _question(self) -> str:
        return self._fact("why")

    def _why(self) -> str:
        return _after(self._fact("why"))

    def _what(self) -> str:
        code, colon, what = self._fact("what").partition(": ")
        return what if colon and code.isupper() else self._fact("what")

    def _note(self) -> str:
        return f': "{note}"' if (note := self._fact("note")) else ""

    def _holder(self) -> str:
        how = "awaited" if self._facts.get("is_waiting") else "claimed"
        return f": {how} by {holder}" if (holder := self._fact("holder")) else ""

    def _answer(self) -> str:
        return f': "{said}"' if (said := self._fact("answer")) else ""

    def _reason(self) -> str:
        return _after(self._fact("reason"))

    def _reason_only(self) -> str:
        return self._fact("reason").removeprefix("waits for a person: ")

    def _attempt(self) -> str:
        attempt = int(self._facts.get("attempt") or 0)
        is_named = self._fact("why").startswith("attempt ")
        return f" (attempt {attempt})" if attempt > 1 and not is_named else ""

    def _commit_only(self) -> str:
        return self._fact("commit")[:_COMMIT] or self._fact("head")[:_COMMIT]

    def _commit(self) -> str:
        return f" ({commit})" if (commit := self._commit_only()) else ""

    def _as_commit(self) -> str:
        return f" as {commit[:_COMMIT]}" if (commit := self._fact("commit")) else ""


def _after(text: str) -> str:
    return f": {text}" if text else ""


def _short(found: Any) -> str:
    text = " ".join(str(found).split())
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"
