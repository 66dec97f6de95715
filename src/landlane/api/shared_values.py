"""Values of the library: state, slots, numbers, steps, cost, workspaces and rescues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from landlane.api.results import Failure, Record, Success
from landlane.errors import Held, Stale
from landlane.values import value

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta
    from typing import Any

    from landlane.state.numbers import NumberState
    from landlane.stats.metrics import Metric
    from landlane.usage.model import Total
    from landlane.workspaces.model import WorkspaceKind, WorkspaceState


@value
class State(Success):
    """One version of one key."""

    key: str
    value: Any
    version: int
    agent: str
    session: str
    at: datetime
    reducer: str


@value
class StateStale(Failure):
    """Nothing was written because the key has another version than expected; 0 if it does not exist."""

    code: str
    message: str
    hint: str
    key: str
    expected: int | None
    version: int
    value: Any
    agent: str
    at: datetime | None

    def error(self) -> Stale:
        """Return the error that `unwrap()` raises."""
        facts = {"key": self.key, "version": self.version}
        return Stale(self.message, code=self.code, hint=self.hint, **facts)


@value
class Slot(Record):
    """A slot that is held. `place` is the port or the name; empty for an amount."""

    id: str
    kind: str
    place: str
    name: str
    amount: int
    agent: str
    session: str
    token: int
    workspace: str
    taken_at: datetime
    until: datetime

    @property
    def port(self) -> int | None:
        """The number of a port; None for other kinds."""
        return int(self.place) if self.kind == "port" else None


@value
class SlotTaken(Success):
    """A slot that this session holds now."""

    slot: Slot
    is_new: bool


@value
class SlotRefused(Failure):
    """No slot was taken: what is left, who holds the others, and who waits."""

    code: str
    message: str
    hint: str
    kind: str
    amount: int
    left: int
    size: int
    holders: tuple[Slot, ...]
    waiters: tuple[str, ...]

    def error(self) -> Held:
        """Return the error that `unwrap()` raises."""
        return Held(self.message, code=self.code, hint=self.hint, kind=self.kind)


@value
class AllocatedNumber(Record):
    """A number that was given out; `text` and `path` are formatted as the settings say."""

    kind: str
    number: int
    text: str
    path: str
    state: NumberState
    agent: str
    session: str
    purpose: str
    at: datetime


@value
class CompletedStep(Record):
    """A step that was done once; the caller may keep data in `memo` to continue later."""

    id: str
    task: str
    about: str
    memo: str
    agent: str
    at: datetime


@value
class UsageEntry(Record):
    """Recorded cost; None where it is unknown."""

    id: str
    key: str
    task: str
    attempt: int
    agent: str
    client: str
    model: str
    input_tokens: int | None
    output_tokens: int | None
    cost_micros: int | None
    is_least: bool
    at: datetime


@value
class Booked(Record):
    """An entry of the books; `differs` if the same key was booked before with other amounts."""

    entry: UsageEntry
    is_new: bool
    differs: bool


@value
class Period(Record):
    """From one time up to and excluding another."""

    since: datetime
    until: datetime


@value
class Stats(Record):
    """The metrics of a period, and some of them day by day."""

    period: Period
    metrics: tuple[Metric, ...]
    days: tuple[str, ...]
    daily: Mapping[str, tuple[int, ...]]
    cost: Total


@value
class Workspace(Record):
    """A checkout made for one task, and its branch."""

    id: str
    task: str
    attempt: int
    agent: str
    session: str
    machine: str
    kind: WorkspaceKind
    state: WorkspaceState
    path: str
    branch: str
    base: str
    target: str
    slots: Mapping[str, str]
    environment: Mapping[str, str]
    rescue: str
    why: str
    opened_at: datetime
    closed_at: datetime | None


@value
class Opened(Record):
    """A workspace that is ready, with the branches and rescues of earlier attempts."""

    workspace: Workspace
    is_new: bool
    notes: tuple[str, ...]
    branches: tuple[str, ...]
    rescues: tuple[str, ...]


@value
class Closed(Record):
    """A workspace that was removed, and the id of the rescue of what existed nowhere else."""

    workspace: Workspace
    rescue: str
    is_merged: bool
    notes: tuple[str, ...]


@value
class WorkspaceStatus(Record):
    """A workspace and its state on disk; None where it cannot be known."""

    workspace: Workspace
    title: str
    is_there: bool
    is_held: bool
    is_stale: bool
    is_removable: bool
    is_elsewhere: bool
    size: int
    age: timedelta
    behind: int | None
    uncommitted: int | None
    ended_as: str
    seen_at: datetime | None


@value
class Rescue(Record):
    """Work that was saved under a private ref before something was removed."""

    id: str
    ref: str
    commit: str
    kind: str
    root: str
    branch: str
    head: str
    files: int
    bytes: int
    commits: int
    notes: tuple[str, ...]
    at: datetime
