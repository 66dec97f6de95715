"""What a watcher sees in the store: the dead, the stale, what stands still, and who waits for a person."""

from __future__ import annotations

from landlane.claims.read import claims_of
from landlane.clock import duration_text
from landlane.events.kinds import (
    DEAD_LETTER,
    DEAD_SESSION,
    GATE_OVERDUE,
    GATE_REMINDER,
    GATE_WAITING,
    HANDOFF_OVERDUE,
    PAUSED,
    POOL,
    RED,
    STALE_CLAIM,
    STALLED,
)
from landlane.events.model import Fact
from landlane.events.records import marks_in, write_facts, write_moved
from landlane.gates.records import gates_in
from landlane.handoffs.transfer import waiting_in
from landlane.ids import digest
from landlane.landing.model import HELD, QUEUED, TESTING
from landlane.sessions.leases import is_dead
from landlane.sessions.model import SessionKind
from landlane.sessions.read import find_session, list_live_sessions
from landlane.store import records
from landlane.tasks.model import ACTIVE, ANYBODY, DEAD, FAILED, READY
from landlane.tasks.records import find_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from landlane.events.model import Event
    from landlane.repository import Repository
    from landlane.sessions.model import Session
    from landlane.settings.model import Settings
    from landlane.store.interface import Snapshot
    from landlane.store.journal_chain import Entry


_JOURNAL = "journal"
_DEAD = ("session.lapsed", "session.gone")
_MOVES = ("landing.", "queue.")
_WORK = "task."
_PAGE = 1000
_BACK = 500  # how far a first look goes back to see when something last moved
_MOST_NAMED = 10


def observe(repo: Repository, settings: Settings) -> list[Event]:
    """Look at the store, and write down what was not known yet; tells that."""
    events = _read_journal(repo, settings)
    facts = repo.store.view(lambda snapshot: list(_seen_now(snapshot, repo, settings)))
    return [*events, *write_facts(repo, settings, facts)]


# ------------------------------------------------------------------------------------------ what has happened


def _read_journal(repo: Repository, settings: Settings) -> list[Event]:
    """What the journal tells since the last look; the first look only remembers where it began."""
    events: list[Event] = []
    while True:
        before = repo.store.view(lambda snapshot: marks_in(snapshot, _JOURNAL))
        last = repo.store.last_entry()
        if last is None or before.get("position", -1) >= last.position:
            return events
        is_first = "position" not in before
        start = max(last.position - _BACK, 0) if is_first else int(before["position"])
        page = repo.store.entries(start, _PAGE)
        if not page:
            return events
        after = {
            "position": page[-1].position,
            "queue_moved_at": _newest(page, _MOVES, before.get("queue_moved_at", 0)),
            "tasks_moved_at": _newest(page, (_WORK,), before.get("tasks_moved_at", 0)),
        }
        facts = [] if is_first else _told_by_all(repo, page)
        events += write_moved(repo, settings, _JOURNAL, before, after, facts)


def _newest(page: Sequence[Entry], kinds: tuple[str, ...], known: int) -> int:
    return max((entry.at for entry in page if entry.kind.startswith(kinds)), default=known)


def _told_by_all(repo: Repository, page: Sequence[Entry]) -> list[Fact]:
    return repo.store.view(lambda snapshot: list(_told_by(snapshot, page)))


def _told_by(snapshot: Snapshot, page: Sequence[Entry]) -> Iterator[Fact]:
    lapsed: dict[tuple[str, str], dict[int, str]] = {}
    for entry in page:
        if entry.kind in _DEAD:
            session = find_session(snapshot, entry.session)
            if session is not None and session.kind == SessionKind.AGENT:  # people come and go
                how = "went silent" if entry.kind == "session.lapsed" else "ended without leaving"
                text = f"{entry.agent} {how}; what it held is free"
                yield _dead_session(entry.session, entry.agent, text)
        elif entry.kind == "landing.bounced":
            yield from _red_landing(entry.facts().get("landing", {}))
        elif entry.kind.startswith(_WORK) and entry.facts().get("state") in (DEAD, FAILED):
            yield from _dead_letter(snapshot, entry)
        elif entry.kind == "claim.lapsed":
            facts = entry.facts()
            lapsed.setdefault((entry.session, entry.agent), {})[facts["token"]] = facts["pattern"]
    for (session, agent), stale in lapsed.items():
        yield _stale(session, agent, stale, "did not renew it in time; it is free")


def _dead_letter(snapshot: Snapshot, entry: Entry) -> Iterator[Fact]:
    """A task was given up: it keeps everything, and somebody may mend what was wrong and try it again."""
    facts = entry.facts()
    task = find_task(snapshot, facts["task"])
    if task is not None:
        yield Fact(
            kind=DEAD_LETTER,
            about=f"{DEAD_LETTER}:{task.id}:{entry.position}",
            text=f"{task.id} ({task.title}) is given up: {facts.get('why', '')}",
            facts={"task": task.id, "title": task.title, "state": facts["state"], "lineage": task.lineage},
        )


def _red_landing(landing: dict[str, Any]) -> Iterator[Fact]:
    if landing.get("code") == "CHECK_FAILED":
        text = f"{landing['id']} ({landing['branch']} of {landing['agent']}) is red: {landing['reason']}"
        facts = {key: landing[key] for key in ("id", "branch", "head", "agent", "task", "reason")}
        yield Fact(kind=RED, about=f"{RED}:{landing['id']}", text=text, facts=facts)


def _dead_session(session: str, agent: str, text: str) -> Fact:
    facts = {"session": session, "agent": agent}
    return Fact(kind=DEAD_SESSION, about=f"{DEAD_SESSION}:{session}", text=text, facts=facts)


# ------------------------------------------------------------------------------------------ what is so now


def _seen_now(snapshot: Snapshot, repo: Repository, settings: Settings) -> Iterator[Fact]:
    now = repo.store.wall_of(snapshot.now)
    yield from _sessions(snapshot, repo)
    yield from _queues(snapshot, settings, now)
    yield from _tasks(snapshot, settings, now)
    yield from _pool(snapshot)
    yield from _gates(snapshot, settings, now)
    yield from _handoffs(snapshot, now)


def _sessions(snapshot: Snapshot, repo: Repository) -> Iterator[Fact]:
    """Sessions that are over and of which nobody took notice, and claims that are in the way for nothing."""
    resting = {gate.session for gate in gates_in(snapshot) if gate.task}
    for session in list_live_sessions(snapshot):
        if session.kind != SessionKind.AGENT:  # people come and go, and what only holds is nobody
            continue
        has_died = is_dead(snapshot, session.id, repo.processes)
        is_silent = session.lease_ends_at <= snapshot.now and session.id not in resting
        if has_died or is_silent:
            how = "its processes have ended" if has_died else "it has been silent for longer than its lease"
            yield _dead_session(session.id, session.agent, f"{session.agent} is gone: {how}")
        yield from _stale_claims(snapshot, session, has_ended=has_died or is_silent)


def _stale_claims(snapshot: Snapshot, session: Session, *, has_ended: bool) -> Iterator[Fact]:
    stale = {
        claim.token: claim.pattern
        for claim in claims_of(snapshot, session.id)
        if has_ended or claim.is_over(snapshot.now)
    }
    if stale:
        yield _stale(session.id, session.agent, stale, "does not renew it")


def _stale(session: str, agent: str, stale: dict[int, str], how: str) -> Fact:
    patterns = list(stale.values())
    names = ", ".join(patterns[:_MOST_NAMED])
    more = f" and {len(patterns) - _MOST_NAMED} more" if len(patterns) > _MOST_NAMED else ""
    return Fact(
        kind=STALE_CLAIM,
        about=f"{STALE_CLAIM}:{session}:{min(stale)}",
        text=f"{agent} claimed {names}{more} and {how}",
        facts={"session": session, "agent": agent, "patterns": patterns[:100]},
    )


def _queues(snapshot: Snapshot, settings: Settings, now: int) -> Iterator[Fact]:
    paused: set[str] = set()
    for queue in records.all_of(snapshot, "queue"):
        if queue["state"] != "paused":
            continue
        paused.add(queue["target"])
        kind = RED if queue["code"] == "TARGET_RED" else PAUSED
        yield Fact(
            kind=kind,
            about=f"{kind}:{queue['target']}:{queue['tip']}:{digest(queue['reason'])[:12]}",
            text=f"the queue of {queue['target']} is paused: {queue['reason']}",
            facts={key: queue[key] for key in ("target", "tip", "reason", "code")},
        )
    moved_at = int(marks_in(snapshot, _JOURNAL).get("queue_moved_at", 0))
    waiting: dict[str, records.Document] = {}
    for landing in records.all_of(snapshot, "landing", (QUEUED, TESTING)):
        waiting.setdefault(landing["target"], landing)
    for target, first in waiting.items():
        since = max(first["submitted_at"], moved_at)
        if target not in paused and now - since >= settings.notify.stalled_ms:
            yield Fact(
                kind=STALLED,
                about=f"{STALLED}:{first['id']}:{since}",
                text=f"nothing has moved towards {target} for {duration_text(now - since)}; {first['id']} of "
                f"{first['agent']} is the first in line",
                facts={"target": target, "landing": first["id"], "agent": first["agent"], "since": since},
            )


def _tasks(snapshot: Snapshot, settings: Settings, now: int) -> Iterator[Fact]:
    """Work is there, and nobody does anything about it."""
    counts: dict[str, int] = {row["state"]: row["tasks"] for row in snapshot.all("tasks_count")}
    since = int(marks_in(snapshot, _JOURNAL).get("tasks_moved_at", 0))
    if counts.get(READY) and not counts.get(ACTIVE) and since and now - since >= settings.notify.stalled_ms:
        text = f"{counts[READY]} tasks are ready, and nobody has touched any for {duration_text(now - since)}"
        facts = {"ready": counts[READY], "since": since}
        yield Fact(kind=STALLED, about=f"{STALLED}:tasks:{since}", text=text, facts=facts)


def _pool(snapshot: Snapshot) -> Iterator[Fact]:
    pool = records.find(snapshot, "pool", "pool")
    if pool is not None and pool.get("paused"):
        yield Fact(
            kind=POOL,
            about=f"{POOL}:{pool.get('paused_at') or digest(str(pool['paused']))[:12]}",
            text=f"the pool of workers is paused: {pool['paused']}",
            facts={"reason": pool["paused"], "by": pool.get("paused_by", "")},
        )


def _gates(snapshot: Snapshot, settings: Settings, now: int) -> Iterator[Fact]:
    """What waits for a person: told once, then again after a while, and once when it is overdue."""
    for gate in gates_in(snapshot):
        facts = {
            "gate": gate.id,
            "kind": gate.kind,
            "task": gate.task,
            "agent": gate.agent,
            "risk": gate.risk,
        }
        text = f"{gate.id} ({gate.kind}) of {gate.agent or 'landlane'}: {gate.why}"
        yield from _waits(settings, gate.id, text, {**facts, "about": dict(gate.about)}, now - gate.asked_at)
    for landing in records.all_of(snapshot, "landing", (HELD,)):
        facts = {"gate": landing["id"], "kind": "landing", "task": landing["task"], "agent": landing["agent"]}
        text = f"{landing['id']} ({landing['branch']}) of {landing['agent']}: {landing['gate']}"
        about = {"head": landing["head"], "branch": landing["branch"]}
        yield from _waits(
            settings, landing["id"], text, {**facts, "about": about}, now - landing["submitted_at"]
        )


def _handoffs(snapshot: Snapshot, now: int) -> Iterator[Fact]:
    """What was handed to somebody who did not come for it."""
    for one in waiting_in(snapshot):
        if one.to != ANYBODY and now >= one.until:
            yield Fact(
                kind=HANDOFF_OVERDUE,
                about=f"{HANDOFF_OVERDUE}:{one.id}",
                text=f"{one.id}: {one.to} did not come for {one.task} of {one.sender}; it is anybody's now",
                facts={"handoff": one.id, "task": one.task, "agent": one.sender, "to": one.to},
            )


def _waits(settings: Settings, id: str, text: str, facts: dict[str, Any], waited: int) -> Iterator[Fact]:
    facts = {**facts, "answer": f"landlane gate show {id}"}
    yield Fact(
        kind=GATE_WAITING, about=f"{GATE_WAITING}:{id}", text=f"{text} — waits for a person", facts=facts
    )
    times = waited // settings.gates.remind_ms if settings.gates.remind_ms else 0
    if waited >= settings.gates.overdue_ms:
        told = f"{text} — overdue: it has waited for {duration_text(waited)}"
        yield Fact(kind=GATE_OVERDUE, about=f"{GATE_OVERDUE}:{id}", text=told, facts=facts)
    elif times:
        told = f"{text} — still waits, for {duration_text(waited)} now"
        yield Fact(kind=GATE_REMINDER, about=f"{GATE_REMINDER}:{id}:{times}", text=told, facts=facts)
