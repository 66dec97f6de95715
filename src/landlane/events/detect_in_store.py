"""Detect events in the store: dead sessions, stale claims, stalled queues, failed tasks and waiting gates."""

from __future__ import annotations

from landlane.claims.take import claims_of
from landlane.clock import duration_text
from landlane.events.model import DetectedEvent, EventKind, detected_event
from landlane.events.records import read_progress, record_new, record_progress
from landlane.gates.records import read_gates
from landlane.handoffs.transfer import waiting_in
from landlane.ids import digest
from landlane.landing.model import HELD, QUEUED, TESTING, QueueState
from landlane.sessions.leases import find_session, is_dead, list_live_sessions
from landlane.sessions.model import SessionKind
from landlane.store import records
from landlane.tasks.model import ACTIVE, ANYBODY, DEAD, FAILED, READY
from landlane.tasks.records import find_task
from landlane.text import list_some

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from landlane.events.model import RecordedEvent
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.settings.model import Settings
    from landlane.store.interface import Snapshot
    from landlane.store.journal_chain import JournalEntry


_JOURNAL = "journal"
_SESSION_DEATHS = ("session.lapsed", "session.gone")
_QUEUE_KINDS = ("landing.", "queue.")
_TASK_KINDS = "task."
_PAGE_ENTRIES = 1000
# The first check reads these to find out when the queue and the tasks last changed.
_FIRST_CHECK_ENTRIES = 500
_MAX_NAMED = 10


def record_store_events(repo: Repository, settings: Settings) -> list[RecordedEvent]:
    """Record and return the events that the journal and the current state show for the first time."""
    events = _record_journal_events(repo, settings)
    detected = repo.store.view(lambda snapshot: list(_detect_in_state(snapshot, repo, settings)))
    return [*events, *record_new(repo, settings, detected)]


def _record_journal_events(repo: Repository, settings: Settings) -> list[RecordedEvent]:
    """Record the events of the entries since the last check; the first check only records its position."""
    events: list[RecordedEvent] = []
    while True:
        before = repo.store.view(lambda snapshot: read_progress(snapshot, _JOURNAL))
        last = repo.store.last_entry()
        if last is None or before.get("position", -1) >= last.position:
            return events
        is_first = "position" not in before
        start = max(last.position - _FIRST_CHECK_ENTRIES, 0) if is_first else int(before["position"])
        page = repo.store.entries(start, _PAGE_ENTRIES)
        if not page:
            return events
        after = {
            "position": page[-1].position,
            "queue_moved_at": _newest_at(page, _QUEUE_KINDS, before.get("queue_moved_at", 0)),
            "tasks_moved_at": _newest_at(page, _TASK_KINDS, before.get("tasks_moved_at", 0)),
        }
        detected: list[DetectedEvent] = []
        if not is_first:
            detected = repo.store.view(lambda snapshot, page=page: list(_detect_in_page(snapshot, page)))
        events += record_progress(repo, settings, _JOURNAL, before, after, detected)


def _newest_at(page: Sequence[JournalEntry], kinds: str | tuple[str, ...], known: int) -> int:
    return max((entry.at for entry in page if entry.kind.startswith(kinds)), default=known)


def _detect_in_page(snapshot: Snapshot, page: Sequence[JournalEntry]) -> Iterator[DetectedEvent]:
    lapsed: dict[tuple[str, str], dict[int, str]] = {}
    for entry in page:
        if entry.kind in _SESSION_DEATHS:
            session = find_session(snapshot, entry.session)
            if session is not None and session.kind == SessionKind.AGENT:  # people leave without notice
                how = "went silent" if entry.kind == "session.lapsed" else "ended without leaving"
                text = f"{entry.agent} {how}; what it held is free"
                yield _dead_session_event(entry.session, entry.agent, text)
        elif entry.kind == "landing.bounced":
            yield from _detect_red_landing(entry.facts().get("landing", {}))
        elif entry.kind.startswith(_TASK_KINDS) and entry.facts().get("state") in (DEAD, FAILED):
            yield from _detect_dead_letter(snapshot, entry)
        elif entry.kind == "claim.lapsed":
            facts = entry.facts()
            lapsed.setdefault((entry.session, entry.agent), {})[facts["token"]] = facts["pattern"]
    for (session, agent), stale in lapsed.items():
        yield _stale_claims_event(session, agent, stale, "did not renew it in time; it is free")


def _detect_dead_letter(snapshot: Snapshot, entry: JournalEntry) -> Iterator[DetectedEvent]:
    """Detect a task that failed for good; a person may fix the cause and try it again."""
    facts = entry.facts()
    task = find_task(snapshot, facts["task"])
    if task is not None:
        text = f"{task.id} ({task.title}) is given up: {facts.get('why', '')}"
        facts = {"task": task.id, "title": task.title, "state": facts["state"], "lineage": task.lineage}
        yield detected_event(EventKind.DEAD_LETTER, f"{task.id}:{entry.position}", text, facts)


def _detect_red_landing(landing: dict[str, Any]) -> Iterator[DetectedEvent]:
    if landing.get("code") == "CHECK_FAILED":
        text = f"{landing['id']} ({landing['branch']} of {landing['agent']}) is red: {landing['reason']}"
        facts = {key: landing[key] for key in ("id", "branch", "head", "agent", "task", "reason")}
        yield detected_event(EventKind.RED, landing["id"], text, facts)


def _dead_session_event(session: str, agent: str, text: str) -> DetectedEvent:
    return detected_event(EventKind.DEAD_SESSION, session, text, {"session": session, "agent": agent})


def _detect_in_state(snapshot: Snapshot, repo: Repository, settings: Settings) -> Iterator[DetectedEvent]:
    now = repo.store.wall_of(snapshot.now)
    yield from _detect_sessions(snapshot, repo)
    yield from _detect_queues(snapshot, settings, now)
    yield from _detect_tasks(snapshot, settings, now)
    yield from _detect_pool(snapshot)
    yield from _detect_gates(snapshot, settings, now)
    yield from _detect_handoffs(snapshot, now)


def _detect_sessions(snapshot: Snapshot, repo: Repository) -> Iterator[DetectedEvent]:
    """Detect dead sessions that have not been ended yet, and claims that are not renewed."""
    waiting_at_gate = {gate.session for gate in read_gates(snapshot) if gate.task}
    for session in list_live_sessions(snapshot):
        if session.kind != SessionKind.AGENT:  # people leave without notice; other kinds only hold claims
            continue
        has_died = is_dead(snapshot, session.id, repo.processes)
        is_silent = session.lease_ends_at <= snapshot.now and session.id not in waiting_at_gate
        if has_died or is_silent:
            how = "its processes have ended" if has_died else "it has been silent for longer than its lease"
            yield _dead_session_event(session.id, session.agent, f"{session.agent} is gone: {how}")
        yield from _detect_stale_claims(snapshot, session, has_ended=has_died or is_silent)


def _detect_stale_claims(snapshot: Snapshot, session: Session, *, has_ended: bool) -> Iterator[DetectedEvent]:
    stale = {
        claim.token: claim.pattern
        for claim in claims_of(snapshot, session.id)
        if has_ended or claim.is_over(snapshot.now)
    }
    if stale:
        yield _stale_claims_event(session.id, session.agent, stale, "does not renew it")


def _stale_claims_event(session: str, agent: str, stale: dict[int, str], how: str) -> DetectedEvent:
    patterns = list(stale.values())
    text = f"{agent} claimed {list_some(patterns, _MAX_NAMED)} and {how}"
    facts = {"session": session, "agent": agent, "patterns": patterns[:100]}
    return detected_event(EventKind.STALE_CLAIM, f"{session}:{min(stale)}", text, facts)


def _detect_queues(snapshot: Snapshot, settings: Settings, now: int) -> Iterator[DetectedEvent]:
    paused: set[str] = set()
    for queue in records.find_all(snapshot, "queue"):
        if queue["state"] != QueueState.PAUSED:
            continue
        paused.add(queue["target"])
        kind = EventKind.RED if queue["code"] == "TARGET_RED" else EventKind.PAUSED
        key = f"{queue['target']}:{queue['tip']}:{digest(queue['reason'])[:12]}"
        text = f"the queue of {queue['target']} is paused: {queue['reason']}"
        facts = {name: queue[name] for name in ("target", "tip", "reason", "code")}
        yield detected_event(kind, key, text, facts)
    moved_at = int(read_progress(snapshot, _JOURNAL).get("queue_moved_at", 0))
    waiting: dict[str, records.Document] = {}
    for landing in records.find_all(snapshot, "landing", (QUEUED, TESTING)):
        waiting.setdefault(landing["target"], landing)
    for target, first in waiting.items():
        since = max(first["submitted_at"], moved_at)
        if target not in paused and now - since >= settings.notify.stalled_ms:
            text = (
                f"nothing has moved towards {target} for {duration_text(now - since)}; {first['id']} of "
                f"{first['agent']} is the first in line"
            )
            facts = {"target": target, "landing": first["id"], "agent": first["agent"], "since": since}
            yield detected_event(EventKind.STALLED, f"{first['id']}:{since}", text, facts)


def _detect_tasks(snapshot: Snapshot, settings: Settings, now: int) -> Iterator[DetectedEvent]:
    """Detect that tasks are ready and none of them has changed for a while."""
    counts: dict[str, int] = {row["state"]: row["tasks"] for row in snapshot.all("tasks_count")}
    since = int(read_progress(snapshot, _JOURNAL).get("tasks_moved_at", 0))
    if counts.get(READY) and not counts.get(ACTIVE) and since and now - since >= settings.notify.stalled_ms:
        text = (
            f"{counts[READY]} tasks are ready, and no session has taken one for {duration_text(now - since)}"
        )
        facts = {"ready": counts[READY], "since": since}
        yield detected_event(EventKind.STALLED, f"tasks:{since}", text, facts)


def _detect_pool(snapshot: Snapshot) -> Iterator[DetectedEvent]:
    pool = records.find(snapshot, "pool", "pool")
    if pool is not None and pool.get("paused"):
        key = str(pool.get("paused_at") or digest(str(pool["paused"]))[:12])
        text = f"the pool of workers is paused: {pool['paused']}"
        facts = {"reason": pool["paused"], "by": pool.get("paused_by", "")}
        yield detected_event(EventKind.POOL, key, text, facts)


def _detect_gates(snapshot: Snapshot, settings: Settings, now: int) -> Iterator[DetectedEvent]:
    """Detect gates that wait for a person: once at first, with every reminder, and once when overdue."""
    facts: dict[str, Any]
    for gate in read_gates(snapshot):
        facts = {"gate": gate.id, "kind": gate.kind, "task": gate.task, "agent": gate.agent}
        facts |= {"risk": gate.risk, "about": dict(gate.about)}
        text = f"{gate.id} ({gate.kind}) of {gate.agent or 'landlane'}: {gate.why}"
        yield from _gate_events(settings, gate.id, text, facts, now - gate.asked_at)
    for landing in records.find_all(snapshot, "landing", (HELD,)):
        facts = {"gate": landing["id"], "kind": "landing", "task": landing["task"], "agent": landing["agent"]}
        text = f"{landing['id']} ({landing['branch']}) of {landing['agent']}: {landing['gate']}"
        facts["about"] = {"head": landing["head"], "branch": landing["branch"]}
        yield from _gate_events(settings, landing["id"], text, facts, now - landing["submitted_at"])


def _detect_handoffs(snapshot: Snapshot, now: int) -> Iterator[DetectedEvent]:
    """Detect handoffs that their addressee did not accept in time."""
    for handoff in waiting_in(snapshot):
        if handoff.to != ANYBODY and now >= handoff.until:
            whose = f"{handoff.task} of {handoff.sender}"
            text = f"{handoff.id}: {handoff.to} has not accepted {whose}; it is open to anyone now"
            facts = {"handoff": handoff.id, "task": handoff.task, "agent": handoff.sender, "to": handoff.to}
            yield detected_event(EventKind.HANDOFF_OVERDUE, handoff.id, text, facts)


def _gate_events(
    settings: Settings, id: str, text: str, facts: dict[str, Any], waited_ms: int
) -> Iterator[DetectedEvent]:
    facts = {**facts, "answer": f"landlane gate show {id}"}
    yield detected_event(EventKind.GATE_WAITING, id, f"{text} — waits for a person", facts)
    reminders = waited_ms // settings.gates.remind_ms if settings.gates.remind_ms else 0
    if waited_ms >= settings.gates.overdue_ms:
        message = f"{text} — overdue: it has waited for {duration_text(waited_ms)}"
        yield detected_event(EventKind.GATE_OVERDUE, id, message, facts)
    elif reminders:
        message = f"{text} — still waits, for {duration_text(waited_ms)} now"
        yield detected_event(EventKind.GATE_REMINDER, f"{id}:{reminders}", message, facts)
