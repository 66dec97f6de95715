"""Who works on what, as rows: state, last sign of life, what a session holds or waits for, and its cost."""

from __future__ import annotations

from landlane.claims.describe import list_holdings
from landlane.clients.model import CLIENTS
from landlane.clock import parse_rfc3339
from landlane.sessions.client_sessions import list_live_links
from landlane.sessions.join import live_sessions
from landlane.sessions.signs_of_life import read_activity
from landlane.status.activity import working_json
from landlane.tasks.attempts import running_attempts
from landlane.units import join_words, ordinal, rough_duration
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from landlane.sessions.model import Session
    from landlane.status.json_types import WaitingJson, WorkingJson
    from landlane.tasks.model import Attempt
    from landlane.web.visit import Visit

MOST_WORKING = 20
_DEFAULT_SILENCE_MS = 60_000  # of a worker that has no limit of its own, as in `run.heartbeat`
_COMMAND_SILENCE_MS = 600_000
# Order on the page: what stands out first.
STUCK, NEEDS_YOU, WAITS, LIMITED, WORKING, IDLE = "stuck", "you", "wait", "limit", "work", "idle"
_ORDER = (STUCK, NEEDS_YOU, WAITS, LIMITED, WORKING, IDLE)
_ICONS = {STUCK: "stuck", NEEDS_YOU: "you", WAITS: "wait", LIMITED: "limit", WORKING: "work", IDLE: "queued"}
_TONES = {STUCK: "warn", NEEDS_YOU: "you", WAITS: "idle", LIMITED: "idle", WORKING: "run", IDLE: "idle"}


@value
class Row:
    """A session, and what it does."""

    id: str
    state: str
    words: str
    agent: str
    client: str
    task: str = ""
    title: str = ""
    attempt: str = ""
    doing: str = ""
    seen_at: int | None = None
    first: str = ""  # what it holds or waits for: a path, or a sentence
    is_path: bool = False
    second: str = ""
    cost_usd: float | None = None
    is_cost_known: bool = True
    note: str = ""  # what happens next without anybody
    gate: str = ""

    @property
    def icon(self) -> str:
        """Return the shape of its state."""
        return _ICONS[self.state]

    @property
    def tone(self) -> str:
        """Return the colour of its state."""
        return _TONES[self.state]


@value
class Working:
    """All sessions, in the order in which a person should look at them."""

    rows: tuple[Row, ...]
    folded: tuple[tuple[str, int], ...]  # working ones that are not listed, by client
    counts: Mapping[str, int]
    total: int


def read_working(visit: Visit, *, is_folded: bool = True) -> Working:
    """Return the sessions that are alive, and the tasks in progress; folded, few of those that only work."""
    reader = _Reader(visit)
    rows = sorted(reader.rows(), key=lambda row: (_ORDER.index(row.state), row.agent, row.id))
    listed: list[Row] = []
    folded: dict[str, int] = {}
    seen = 0
    for row in rows:
        seen += row.state in (WORKING, IDLE)
        if is_folded and seen > MOST_WORKING and row.state in (WORKING, IDLE):
            folded[row.client or "client unknown"] = folded.get(row.client or "client unknown", 0) + 1
        else:
            listed.append(row)
    counts = {state: sum(row.state == state for row in rows) for state in _ORDER}
    return Working(rows=tuple(listed), folded=tuple(folded.items()), counts=counts, total=len(rows))


class _Reader:
    """Reads the facts once, and makes rows of them."""

    def __init__(self, visit: Visit) -> None:
        repo = visit.repo
        self._visit = visit
        self._repo = repo
        self._now = visit.now
        self._store_now = repo.store.view(lambda snapshot: snapshot.now)
        self._sessions = {session.id: session for session in live_sessions(repo) if not session.is_holder}
        self._by_agent = {session.agent: session for session in self._sessions.values()}
        self._clients = {link.session: link.name.client for link in repo.store.view(list_live_links)}
        self._attempts = {attempt.task: attempt for attempt in running_attempts(repo)}
        self._working = working_json(repo)
        self._waiting = visit.waiting
        self._holdings = list_holdings(repo)

    def rows(self) -> list[Row]:
        """Return a row for each worker, each session that waits, and each other live session."""
        waits = {str(one["agent"]): one for one in self._waiting if one["agent"]}
        rows = [self._worker(work, waits.get(work["agent"])) for work in self._working]
        known = {row.agent for row in rows}
        rows += list(self._asking(known))
        known |= {row.agent for row in rows}
        rows += [self._waiter(agent, waits[agent]) for agent in waits if agent not in known]
        known |= {row.agent for row in rows}
        rows += [self._idle(session) for session in self._by_agent.values() if session.agent not in known]
        return rows

    def _worker(self, work: WorkingJson, waiting: WaitingJson | None) -> Row:
        attempt = self._attempts.get(work["task"] or "")
        seen_at = parse_rfc3339(work["seen_at"]) if work["seen_at"] else None
        state, words, note = self._state(work, waiting, attempt, seen_at)
        first, is_path, second = self._held(work["agent"])
        if waiting is not None:
            first, is_path, second = _wait_words(waiting)
        elif work["limit_ends_in_seconds"]:
            first, is_path, second = (
                f"limit resets in {rough_duration(work['limit_ends_in_seconds'] * 1000)}",
                False,
                "",
            )
        return Row(
            id=f"row-{work['task'] or work['agent']}",
            state=state,
            words=words,
            agent=work["agent"],
            client=client_title(work["client"] or "", attempt),
            task=work["task"] or "",
            title=work["title"] or "",
            attempt=f"attempt {work['tries']} of {work['max_tries']}" if work["tries"] else "",
            doing=work["doing"],
            seen_at=seen_at,
            first=first,
            is_path=is_path,
            second=second,
            cost_usd=work["cost_usd"],
            is_cost_known=work["is_cost_known"],
            note=note,
        )

    def _state(
        self, work: WorkingJson, waiting: WaitingJson | None, attempt: Attempt | None, seen_at: int | None
    ) -> tuple[str, str, str]:
        if work["limit_ends_in_seconds"]:
            return LIMITED, "Rate-limited", ""
        if waiting is not None:
            return WAITS, f"Waits for {join_words(waiting['holders']) or 'a claim'}", ""
        silent = self._now - seen_at if seen_at is not None else None
        limit = self._silence_limit(attempt)
        if silent is not None and silent > limit // 2 and (attempt is not None or silent > limit):
            return STUCK, "Stuck", self._next(silent, limit, attempt)
        return WORKING, "Working", ""

    def _silence_limit(self, attempt: Attempt | None) -> int:
        """Return after which silence a worker is ended; without a supervisor, `notify.stalled`."""
        settings = self._repo.settings
        if attempt is None:
            return settings.notify.stalled_ms
        agent = settings.agents.get(attempt.kind)
        own = agent.heartbeat_ms if agent is not None else None
        default = _DEFAULT_SILENCE_MS if attempt.client in CLIENTS else _COMMAND_SILENCE_MS
        return own or settings.run.heartbeat_ms or default

    def _next(self, silent: int, limit: int, attempt: Attempt | None) -> str:
        if attempt is None:
            return "Nothing ends it: look at its terminal."
        left = limit - silent
        when = f"in {rough_duration(left)}" if left >= 1_000 else "now"
        return f"Landlane ends it {when} if it stays silent, and the retry rules decide what is next."

    def _held(self, agent: str) -> tuple[str, bool, str]:
        held = [one for one in self._holdings if one.claim.agent == agent]
        if not held:
            return "", False, ""
        first = held[0]
        parts = [f"and {len(held) - 1} more"] if len(held) > 1 else []
        parts += [f"{rough_duration(max(first.claim.until - self._store_now, 0))} left"]
        waiting = {name for one in held for name in one.waiting}
        parts += [f"{len(waiting)} wait" if len(waiting) > 1 else "1 waits"] if waiting else []
        return first.claim.pattern, True, ", ".join(parts)

    def _asking(self, known: set[str]) -> list[Row]:
        """Return the agents whose task waits for the person."""
        found: list[Row] = []
        for item in self._visit.items:
            agent = self._asker(item["id"])
            session = self._by_agent.get(agent)
            if item["kind"] in ("dead", "handoff") or not agent or agent in known or session is None:
                continue
            known.add(agent)
            found.append(
                Row(
                    id=f"row-{item['id']}",
                    state=NEEDS_YOU,
                    words="Waits for you",
                    agent=agent,
                    client=self._client_of(session),
                    task=item["task"] or "",
                    title=item["title"] or "",
                    attempt=f"asked {rough_duration(item['waited_seconds'] * 1000)} ago",
                    seen_at=self._seen_at(session),
                    first=f"your answer to {item['id']}",
                    second="its paths are kept" if item["kind"] != "review" else "",
                    gate=item["id"],
                    is_cost_known=True,
                )
            )
        return found

    def _asker(self, id: str) -> str:
        return self._visit.asker_of(id)

    def _waiter(self, agent: str, waiting: WaitingJson) -> Row:
        session = self._by_agent.get(agent)
        first, is_path, second = _wait_words(waiting)
        return Row(
            id=f"row-{agent}",
            state=WAITS,
            words=f"Waits for {join_words(waiting['holders']) or 'a claim'}",
            agent=agent,
            client=self._client_of(session) if session is not None else "",
            seen_at=self._seen_at(session) if session is not None else None,
            first=first,
            is_path=is_path,
            second=second,
        )

    def _idle(self, session: Session) -> Row:
        return Row(
            id=f"row-{session.agent}",
            state=IDLE,
            words="Idle",
            agent=session.agent,
            client=self._client_of(session),
            doing=read_activity(self._repo, session).doing,
            seen_at=self._seen_at(session),
        )

    def _client_of(self, session: Session) -> str:
        return "person" if session.is_person else client_title(self._clients.get(session.id, ""), None)

    def _seen_at(self, session: Session) -> int:
        return read_activity(self._repo, session).seen_at


def client_title(client: str, attempt: Attempt | None) -> str:
    """Return how people call a client."""
    known = CLIENTS.get(client)
    if known is not None:
        return known.title
    return "script" if attempt is not None or client == "command" else client


def _wait_words(waiting: WaitingJson) -> tuple[str, bool, str]:
    paths = waiting["paths"]
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    holders = join_words(waiting["holders"])
    first = (
        f"{holders} holds {paths[0]}{more}"
        if paths and holders
        else (paths[0] if paths else waiting["why"] or "")
    )
    position = waiting["position"]
    return first, False, f"{ordinal(position)} in line" if position else ""


@value
class WaitingTask:
    """A task that cannot start yet, and why."""

    task: str
    title: str
    why: str


def read_waiting_tasks(visit: Visit, most: int) -> tuple[list[WaitingTask], int]:
    """Return the first tasks that wait, and how many there are."""
    rows = [one for one in visit.waiting if one["task"]]
    found = [
        WaitingTask(
            task=str(one["task"]),
            title=one["title"] or "",
            why=_task_wait(one),
        )
        for one in rows[:most]
    ]
    return found, len(rows)


def _task_wait(one: WaitingJson) -> str:
    if one["waits_for"]:
        return f"blocked by {join_words(one['waits_for'])}"
    if one["paths"] and one["holders"]:
        return f"{one['paths'][0]}, claimed by {join_words(one['holders'])}"
    return one["why"] or ""
