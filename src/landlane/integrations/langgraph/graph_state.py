"""The state of a graph: the keys that a bridge uses, and versioned keys that only their owner writes."""

from __future__ import annotations

import json
from typing import Annotated, Any, TypedDict, get_type_hints

from langgraph.channels.base import BaseChannel
from langgraph.errors import EmptyChannelError, InvalidUpdateError

from landlane.api import StateStale
from landlane.ids import digest
from landlane.state.key_rules import STALE_CODE, check_owner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from landlane.api import Landlane

_NOTHING = object()
_MARK = "landlane.written"  # marks an update that went through a bridge
_MAX_STORED = 60_000  # characters; of a longer value only the digest is stored


def latest(_old: Any, new: Any) -> Any:
    """Reduce to the last value."""
    return new


def merged(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> dict[str, Any]:
    """Reduce to the union of both mappings; the new value of a key wins."""
    return {**(old or {}), **(new or {})}


class Coordinated(TypedDict):
    """The keys that a bridge uses; the state of a graph inherits them."""

    task: str  # the task of this thread
    refused: Annotated[list[dict[str, Any]], latest]  # the holders, after a refusal
    feedback: Annotated[list[str], latest]  # on all earlier attempts
    versions: Annotated[dict[str, int], merged]  # of owned keys, as this thread last read them
    fan: str  # the newest split
    branches: Annotated[dict[str, Any], merged]  # results of the parts of a fan, by task


class Owned(BaseChannel[Any, Any, Any]):
    """A key that one agent, or one role, writes: `draft: Annotated[str, Owned("writer")]`.

    Each write is a version in Landlane's state. It is refused if another version was written since this
    thread read the key, or if it does not come from a node of a bridge.
    """

    __slots__ = ("owner", "written")

    def __init__(self, owner: str, typ: Any = Any, key: str = "") -> None:
        super().__init__(typ, key)
        self.owner = owner
        self.written: Any = _NOTHING

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Owned) and other.owner == self.owner

    def __hash__(self) -> int:
        return hash(self.owner)

    @property
    def ValueType(self) -> Any:  # noqa: N802 - LangGraph's name
        return self.typ

    @property
    def UpdateType(self) -> Any:  # noqa: N802 - LangGraph's name
        return self.typ

    def from_checkpoint(self, checkpoint: Any) -> Owned:
        made = Owned(self.owner, self.typ, self.key)
        if isinstance(checkpoint, dict) and _MARK in checkpoint:
            made.written = checkpoint
        return made

    def checkpoint(self) -> Any:
        return self.written if self.written is not _NOTHING else super().checkpoint()

    def get(self) -> Any:
        if self.written is _NOTHING:
            raise EmptyChannelError
        return self.written["value"]

    def update(self, values: Sequence[Any]) -> bool:
        """Take the newest version.

        Raises:
            InvalidUpdateError: it does not come from a bridge, or is older than the current version.
        """
        for written in values:
            if not isinstance(written, dict) or _MARK not in written:
                raise InvalidUpdateError(
                    f"{self.key} is owned: only a node of {self.owner} on a bridge writes it"
                )
            current = 0 if self.written is _NOTHING else self.written["version"]
            if written["version"] <= current:
                raise InvalidUpdateError(f"{self.key} is at version {current}: {written['version']} is stale")
            self.written = written
        return bool(values)


def owned_keys(schema: type[Any] | None) -> dict[str, str]:
    """Return the owned keys of a state, each with its owner."""
    if schema is None:
        return {}
    owners: dict[str, str] = {}
    for name, hint in get_type_hints(schema, include_extras=True).items():
        for item in getattr(hint, "__metadata__", ()):
            if isinstance(item, Owned):
                owners[name] = item.owner
    return owners


def write_owned(
    landlane: Landlane,
    owned: Mapping[str, str],
    update: Mapping[str, Any],
    *,
    prefix: str,
    known: Mapping[str, int],
    run: str,
) -> dict[str, Any] | list[StateStale]:
    """Write each owned key of an update as a version of Landlane's state; return the update, or stale keys.

    `run` identifies the run of the node: if it is killed after the write and runs again, the version is its
    own.

    Raises:
        NotAllowed: another owns one of the keys.
    """
    wanted = {key: item for key, item in update.items() if key in owned}
    if not wanted:
        return dict(update)
    session = landlane.session
    expected: dict[str, int] = {}
    stale: list[StateStale] = []
    for key in wanted:
        check_owner(key, owned[key], session.agent, session.role)
        current = landlane.state.get(prefix + key)
        expected[key] = known.get(key, 0)
        if current is not None and _is_written_by(current.value, run):
            expected[key] = current.version
        elif current is not None and current.version != expected[key]:
            stale.append(_stale(current, expected[key]))
    if stale:
        return stale
    versions: dict[str, int] = {}
    made = dict(update)
    for key, item in wanted.items():
        outcome = landlane.state.set(prefix + key, _stored(item, run), expect=expected[key])
        if isinstance(outcome, StateStale):
            return [outcome]
        versions[key] = outcome.version
        made[key] = {_MARK: run, "value": item, "version": outcome.version, "agent": session.agent}
    return {**made, "versions": versions}


def _stale(current: Any, expected: int) -> StateStale:
    return StateStale(
        code=STALE_CODE,
        message=f"{current.key} is at version {current.version}, not {expected}",
        key=current.key,
        expected=expected,
        version=current.version,
        value=current.value,
        agent=current.agent,
        at=current.at,
        hint=f"{current.agent} has written version {current.version} since; look at it, and write again",
    )


def _is_written_by(kept: Any, run: str) -> bool:
    return isinstance(kept, dict) and ("run", run) in kept.items()  # pyright: ignore[reportUnknownMemberType]


def _stored(item: Any, run: str) -> dict[str, Any]:
    """Return the value if the store can hold it, else its digest."""
    try:
        text = json.dumps(item, allow_nan=False)
    except (TypeError, ValueError):
        return {"run": run, "digest": digest(repr(item))}
    return {"run": run, "value": item} if len(text) <= _MAX_STORED else {"run": run, "digest": digest(text)}
