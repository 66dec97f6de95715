"""The timeline: a lane for each agent, drawn from the journal alone."""

from __future__ import annotations

from landlane.ids import is_record_id
from landlane.journal.select import make_filter
from landlane.journal.sentences import entry_sentence, is_for_people
from landlane.sessions.model import OWN_NAME
from landlane.tasks.records import task_titles
from landlane.text import in_one_line
from landlane.units import clock_time
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from landlane.repository import Repository
    from landlane.store.journal_chain import JournalEntry
    from landlane.web.visit import Visit

SPANS = {"15m": ("15 min", 15), "1h": ("1 h", 60), "6h": ("6 h", 360), "24h": ("24 h", 1440)}
DEFAULT_SPAN = "1h"
KINDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "all": ("All", ()),
    "claims": ("Claims", ("claim.",)),
    "commits": ("Commits", ("commit.",)),
    "landings": ("Landings", ("landing.",)),
    "decisions": ("Decisions", ("gate.", "review.", "decision.")),
}
_MOST_ENTRIES = 20_000
_MOST_BARS = 600
_MOST_LANES = 40
_MOST_LISTED = 40
_PAGE = 2_000
_TICKS = {15: 5, 60: 15, 360: 60, 1440: 240}  # minutes between two lines, by the span
_LEAST_GAP = 0.8  # per cent of the width between two marks
_BEGINS = ("task.taken",)
_ENDS = (
    "task.failed",
    "task.returned",
    "task.done",
    "task.reported",
    "task.dropped",
    "task.waits",
    "task.blocked",
)
_MARKS = {
    "commit.made": ("commit", "ink"),
    "handoff.sent": ("hand", "ink"),
    "handoff.accepted": ("hand", "ink"),
    "gate.asked": ("you", "you"),
    "gate.approved": ("you", "you"),
    "gate.rejected": ("you", "you"),
    "landing.held": ("you", "you"),
    "landing.approved": ("you", "you"),
    "landing.landed": ("check", "ok"),
    "landing.bounced": ("bad", "bad"),
    "task.failed": ("bad", "bad"),
}


@value
class Bar:
    """A length of time in a lane, in per cent of the width."""

    kind: str  # att, tst, you
    start: float
    width: float
    label: str


@value
class Mark:
    """Something that happened, or several things close together."""

    icon: str
    tone: str
    at: float
    text: str
    count: int = 1


@value
class Lane:
    """What one agent did."""

    name: str
    colour: int
    bars: tuple[Bar, ...]
    marks: tuple[Mark, ...]


@value
class Listed:
    """An entry in the list below the lanes."""

    position: int
    at: int
    agent: str
    text: str


@value
class Timeline:
    """The lanes of a span, and the same as a list."""

    since: int
    until: int
    span: str
    lanes: tuple[Lane, ...]
    more_lanes: int
    ticks: tuple[tuple[float, str], ...]
    listed: tuple[Listed, ...]
    entries: int
    is_cut: bool  # the span has more entries than were read

    @property
    def heading(self) -> str:
        """Return the span in clock times."""
        return f"{clock_time(self.since)} to {clock_time(self.until)}"


def read_timeline(
    visit: Visit, span: str = "", about: str = "", kind: str = "all", until: int = 0
) -> Timeline:
    """Return the lanes of the last minutes or hours, filtered by task, path or agent and by kind."""
    repo = visit.repo
    span = span if span in SPANS else DEFAULT_SPAN
    minutes = SPANS[span][1]
    # Full minutes, so that a page without news is the same page.
    end = until or (visit.now // 60_000 + 1) * 60_000
    since = end - minutes * 60_000
    entries, is_cut = entries_since(repo, since, end)
    keep = _filter(repo, about, kind)
    kept = [entry for entry in entries if keep(entry)]
    lanes = draw_lanes(kept, since, end, visit.colours)
    return Timeline(
        since=since,
        until=end,
        span=span,
        lanes=tuple(lanes[:_MOST_LANES]),
        more_lanes=max(len(lanes) - _MOST_LANES, 0),
        ticks=tuple(_ticks(since, end, minutes)),
        listed=tuple(list_entries(repo, [one for one in kept if is_for_people(one)][-_MOST_LISTED:])),
        entries=len(kept),
        is_cut=is_cut,
    )


def draw_lanes(
    entries: Sequence[JournalEntry], since: int, until: int, colours: Mapping[str, int]
) -> list[Lane]:
    """Return the lanes of the entries of a span: the target first, then the agents by name."""
    builder = _Builder(since, until)
    for entry in entries:
        builder.add(entry)
    return builder.lanes(colours)


def _filter(repo: Repository, about: str, kind: str) -> Callable[[JournalEntry], bool]:
    is_about = make_filter(repo, about.strip())
    prefixes = KINDS.get(kind, KINDS["all"])[1]
    return lambda entry: (not prefixes or entry.kind.startswith(prefixes)) and is_about(entry)


def entries_since(repo: Repository, since: int, until: int) -> tuple[list[JournalEntry], bool]:
    """Return the entries of a time, at most so many of the newest, and whether some are left out."""
    last = repo.store.last_entry()
    if last is None or last.at < since:
        return [], False
    first = find_position(repo, since, last.position)
    end = last.position if until >= last.at else find_position(repo, until, last.position)
    is_cut = end - first > _MOST_ENTRIES
    after = max(first, end - _MOST_ENTRIES)
    found: list[JournalEntry] = []
    while after < end:
        page = repo.store.entries(after, min(_PAGE, end - after))
        if not page:
            break
        found += page
        after = page[-1].position
    return [entry for entry in found if since <= entry.at <= until], is_cut


def find_position(repo: Repository, at: int, last: int) -> int:
    """Return the position before the first entry that is not older than an instant."""
    low, high = 0, last
    while low < high:
        middle = (low + high) // 2
        page = repo.store.entries(middle, 1)
        if page and page[0].at < at:
            low = max(page[0].position, middle + 1)
        else:
            high = middle
    return low


def list_entries(repo: Repository, entries: Sequence[JournalEntry]) -> list[Listed]:
    """Return entries as sentences, the newest first."""
    titles = task_titles(repo, [_task_in(entry.facts(), entry.kind) for entry in entries])
    return [
        Listed(
            position=entry.position,
            at=entry.at,
            agent=entry.agent or OWN_NAME,
            text=in_one_line(entry_sentence(entry, titles)),
        )
        for entry in reversed(entries)
    ]


def _task_in(facts: Mapping[str, Any], kind: str) -> str:
    record: Any = facts.get(kind.partition(".")[0])
    inner: Any = record if isinstance(record, dict) else {}  # pyright: ignore[reportUnknownVariableType]
    return str(facts.get("task") or inner.get("task") or "")


def _ticks(since: int, until: int, minutes: int) -> list[tuple[float, str]]:
    step = _TICKS[minutes] * 60_000
    first = -(-since // step) * step
    width = until - since
    places = [(100 * (at - since) / width, clock_time(at)) for at in range(first, until, step)]
    return [(round(at, 2), text) for at, text in places if 2 < at < 97]


class _Builder:
    """Collects bars and marks by lane."""

    def __init__(self, since: int, until: int) -> None:
        self._since, self._until = since, until
        self._bars: dict[str, list[Bar]] = {}
        self._marks: dict[str, list[Mark]] = {}
        self._open: dict[tuple[str, str], tuple[int, str]] = {}  # (lane, thing) → (start, label)
        self._owner: dict[str, str] = {}  # task → lane
        self._begun: set[tuple[str, str]] = set()  # (lane, task) that began in the span
        self._shown: set[str] = set()  # lanes with something that people look for
        self._count = 0

    def _place(self, at: int) -> float:
        return round(
            100 * min(max(at - self._since, 0), self._until - self._since) / (self._until - self._since), 2
        )

    def add(self, entry: JournalEntry) -> None:
        """Take an entry into account."""
        facts = entry.facts()
        noun = entry.kind.partition(".")[0]
        record: Any = facts.get(noun) if isinstance(facts.get(noun), dict) else {}
        task = str(facts.get("task") or record.get("task") or "")
        if noun == "landing":
            self._add_landing(entry, record)
            return
        lane = self._lane_of(entry, record, task)
        if not lane:
            return
        if is_for_people(entry):
            self._shown.add(lane)
        if entry.kind in _BEGINS:
            attempt = int(facts.get("attempt") or 1)
            label = f"{task}, attempt {attempt}" if attempt > 1 else task
            self._owner[task] = lane
            self._open[lane, task] = (entry.at, label)
            self._begun.add((lane, task))
        elif entry.kind in _ENDS:
            self._close(lane, task, entry.at, "att")
        elif entry.kind == "claim.taken":
            self._claim(lane, entry.at, str(facts.get("token")), str(facts.get("pattern")))
        elif entry.kind in ("claim.released", "claim.lapsed"):
            self._close(lane, str(facts.get("token")), entry.at, "hold")
        elif entry.kind == "gate.asked":
            self._open[lane, str(record.get("id"))] = (entry.at, f"waits for you: {record.get('id')}")
        elif entry.kind in ("gate.approved", "gate.rejected", "gate.withdrawn"):
            self._close(lane, str(record.get("id")), entry.at, "you")
        self._mark(lane, entry)

    def _claim(self, lane: str, at: int, token: str, pattern: str) -> None:
        """Draw the first claim of an agent that works on no task."""
        if not any(name == lane for name, _ in self._open):
            self._open[lane, token] = (at, pattern)

    def _lane_of(self, entry: JournalEntry, record: Any, task: str) -> str:
        if entry.kind.startswith("gate."):
            return str(record.get("agent") or entry.agent)
        if entry.kind.startswith("task.") and task in self._owner and not is_record_id(entry.agent):
            return self._owner[task] if entry.agent in ("", OWN_NAME) else entry.agent
        return "" if is_record_id(entry.agent) or not entry.agent else entry.agent

    def _add_landing(self, entry: JournalEntry, record: Any) -> None:
        id = str(record.get("id") or "")
        if entry.kind == "landing.testing":
            self._open.setdefault(("", id), (entry.at, id))
        elif entry.kind in (
            "landing.landed",
            "landing.bounced",
            "landing.requeued",
            "landing.held",
            "landing.ejected",
        ):
            self._close("", id, entry.at, "tst")
        self._mark("", entry)

    def _close(self, lane: str, thing: str, at: int, kind: str) -> None:
        start, label = self._open.pop((lane, thing), (0, ""))
        if label:
            self._bar(lane, kind, start, at, label)
        elif kind == "att" and thing and lane and (lane, thing) not in self._begun:
            self._begun.add((lane, thing))  # only its first end: an attempt is reported, checked and ended
            self._bar(lane, kind, self._since, at, thing)  # it began before the span

    def _bar(self, lane: str, kind: str, start: int, end: int, label: str) -> None:
        if self._count < _MOST_BARS:
            self._count += 1
            left = self._place(start)
            width = max(round(self._place(end) - left, 2), 0.3)
            self._bars.setdefault(lane, []).append(Bar(kind=kind, start=left, width=width, label=label))

    def _mark(self, lane: str, entry: JournalEntry) -> None:
        icon, tone = _MARKS.get(entry.kind, ("", ""))
        if not icon:
            self._marks.setdefault(lane, [])
            return
        at = self._place(entry.at)
        marks = self._marks.setdefault(lane, [])
        text = f"{clock_time(entry.at)} {in_one_line(entry_sentence(entry, {}))}"
        if marks and at - marks[-1].at < _LEAST_GAP and marks[-1].icon == icon:
            number = marks[-1].count + 1
            marks[-1] = Mark(icon=icon, tone=tone, at=marks[-1].at, text=f"{number} × {icon}", count=number)
        else:
            marks.append(Mark(icon=icon, tone=tone, at=at, text=text))

    def lanes(self, colours: Mapping[str, int]) -> list[Lane]:
        """Return the lanes: the target first, then the agents by name."""
        for (lane, thing), (start, label) in self._open.items():
            is_claim = thing.isdecimal()
            kind = (
                "tst"
                if not lane
                else "you"
                if label.startswith("waits for you")
                else "hold"
                if is_claim
                else "att"
            )
            self._bar(lane, kind, start, self._until, label or thing)
        names = sorted(({*self._bars, *self._marks} - {""}) & self._shown)
        made = [self._lane(name, colours[name]) for name in names]
        return [self._lane("", 0), *made] if "" in self._bars or "" in self._marks else made

    def _lane(self, name: str, colour: int) -> Lane:
        return Lane(
            name=name,
            colour=colour,
            bars=tuple(self._bars.get(name, ())),
            marks=tuple(self._marks.get(name, ())),
        )
