"""State of a graph: the keys that a bridge uses, and keys that only their owner writes, by version."""

from __future__ import annotations

import json
from typing import Annotated, Any, TypedDict, get_type_hints

from langgraph.channels.base import BaseChannel
from langgraph.errors import EmptyChannelError, InvalidUpdateError

from landlane.ids import digest
from landlane.state.key_rules import StateStale, check_owner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from landlane.api import Landlane

_NOTHING = object()
_MARK = "landlane.written"  # by this an update is known that went through a bridge
_LONGEST = 60_000  # characters of a value that is kept in the store itself


def latest(_old: Any, new: Any) -> Any:
    """A reducer: what was said last."""
    return new


def merged(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> dict[str, Any]:
    """A reducer: both, and what was said last where both say something."""
    return {**(old or {}), **(new or {})}


class Coordinated(TypedDict):
    """The keys a bridge uses; let the state of a graph inherit them."""

    task: str  # what this thread works on
    refused: Annotated[list[dict[str, Any]], latest]  # who is in the way, after a refusal
    feedback: Annotated[list[str], latest]  # all that earlier attempts were told
    versions: Annotated[dict[str, int], merged]  # of owned keys, as this thread last saw them
    fan: str  # the newest split
    branches: Annotated[dict[str, Any], merged]  # what parts of a fan brought, by task


class Owned(BaseChannel[Any, Any, Any]):
    """A key that one agent, or one role, writes: `draft: Annotated[str, Owned("writer")]`.

    Each write is a version in Landlane's state, and is refused if another was made since this thread looked.
    What did not go through a node of a bridge is not accepted at all.
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
        """What a node reads."""
        return self.typ

    @property
    def UpdateType(self) -> Any:  # noqa: N802 - LangGraph's name
        """What is written."""
        return self.typ

    def from_checkpoint(self, checkpoint: Any) -> Owned:
        """The channel as it was."""
        made = Owned(self.owner, self.typ, self.key)
        if isinstance(checkpoint, dict) and _MARK in checkpoint:
            made.written = checkpoint
        return made

    def checkpoint(self) -> Any:
        """The value with its version and its writer."""
        return self.written if self.written is not _NOTHING else super().checkpoint()

    def get(self) -> Any:
        """The value alone."""
        if self.written is _NOTHING:
            raise EmptyChannelError
        return self.written["value"]

    def update(self, values: Sequence[Any]) -> bool:
        """Take the newest version that its owner wrote.

        Raises:
            InvalidUpdateError: it was written past the bridge, by somebody else, or an older version came.
        """
        for written in values:
            if not isinstance(written, dict) or _MARK not in written:
                raise InvalidUpdateError(
                    f"{self.key} is owned: only a node of {self.owner} on a bridge writes it"
                )
            stands = 0 if self.written is _NOTHING else self.written["version"]
            if written["version"] <= stands:
                raise InvalidUpdateError(f"{self.key} is at version {stands}: {written['version']} is stale")
            self.written = written
        return bool(values)


def owned_keys(schema: type[Any] | None) -> dict[str, str]:
    """The owned keys of a state, each with its owner."""
    if schema is None:
        return {}
    found: dict[str, str] = {}
    for name, hint in get_type_hints(schema, include_extras=True).items():
        for item in getattr(hint, "__metadata__", ()):
            if isinstance(item, Owned):
                found[name] = item.owner
    return found


def write_owned(
    landlane: Landlane,
    owned: Mapping[str, str],
    update: Mapping[str, Any],
    *,
    prefix: str,
    seen: Mapping[str, int],
    run: str,
) -> dict[str, Any] | list[StateStale]:
    """The update with each owned key written as a version of Landlane's state; or what stands there instead.

    `run` is the run of the node: when it is killed behind the write and runs again, the version is its own.

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
        standing = landlane.state.get(prefix + key)
        expected[key] = seen.get(key, 0)
        if standing is not None and _is_of(standing.value, run):
            expected[key] = standing.version
        elif standing is not None and standing.version != expected[key]:
            stale.append(_stale(standing, expected[key]))
    if stale:
        return stale
    versions: dict[str, int] = {}
    made = dict(update)
    for key, item in wanted.items():
        outcome = landlane.state.set(prefix + key, _kept(item, run), expect=expected[key])
        if isinstance(outcome, StateStale):
            return [outcome]
        versions[key] = outcome.version
        made[key] = {_MARK: run, "value": item, "version": outcome.version, "agent": session.agent}
    return {**made, "versions": versions}


def _stale(standing: Any, expected: int) -> StateStale:
    return StateStale(
        key=standing.key,
        expected=expected,
        version=standing.version,
        value=standing.value,
        agent=standing.agent,
        at=standing.at,
        hint=f"{standing.agent} has written version {standing.version} since; look at it, and write again",
    )


def _is_of(kept: Any, run: str) -> bool:
    return isinstance(kept, dict) and ("run", run) in kept.items()  # pyright: ignore[reportUnknownMemberType]


def _kept(item: Any, run: str) -> dict[str, Any]:
    """The value if the store can keep it, else its digest."""
    try:
        text = json.dumps(item, allow_nan=False)
    except (TypeError, ValueError):
        return {"run": run, "digest": digest(repr(item))}
    return {"run": run, "value": item} if len(text) <= _LONGEST else {"run": run, "digest": digest(text)}
