"""What a node answered, as a text that is kept with what it did; so that it can be answered again."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Command, Send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SERIALIZER = JsonPlusSerializer()


def command(goto: str | Sequence[tuple[str, Mapping[str, Any]]], update: Mapping[str, Any]) -> Command[Any]:
    """The command for LangGraph: a node to go to, or several with their inputs."""
    if isinstance(goto, str):
        return Command(goto=goto, update=dict(update))
    return Command(goto=[Send(node, dict(given)) for node, given in goto], update=dict(update))


def memo_of(goto: str | Sequence[tuple[str, Mapping[str, Any]]], update: Mapping[str, Any]) -> str:
    """The same as a text."""
    target = goto if isinstance(goto, str) else [[node, dict(given)] for node, given in goto]
    kind, data = _SERIALIZER.dumps_typed({"goto": target, "update": dict(update)})
    return f"{kind}:{b64encode(data).decode()}"


def from_memo(memo: str) -> Command[Any]:
    """The command out of its text."""
    kind, _, data = memo.partition(":")
    kept: dict[str, Any] = _SERIALIZER.loads_typed((kind, b64decode(data)))
    goto = kept["goto"]
    return command(goto if isinstance(goto, str) else [(node, given) for node, given in goto], kept["update"])
