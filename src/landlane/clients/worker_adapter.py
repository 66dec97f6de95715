"""The interface between the worker process and a coding client: start options and output events.

An adapter makes the arguments that start a client without a person, and turns each line that it prints into
events. Nothing here starts a process or reads a clock.

Permissions turn a role into what a client is started with. They are the weakest of the guards: their meaning
may change with the client's next release. What a client cannot restrict is listed in `open`, and is left to
the hooks, the kernel and the landing check.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol, cast

from landlane.clients.model import EDIT, NETWORK, SHELL, TOOL_KINDS, ClientTools
from landlane.protocol.worker.messages import Usage
from landlane.values import value

_LONGEST_SHOWN = 160
_NO_VARIABLES: Mapping[str, str] = {}
PATHS = "paths"
_NOTHING: Mapping[str, Any] = {}

BY_SHELL = "its web tools are off; what the shell reaches is left to the kernel"
NO_PATHS = "its settings know no paths: left to its hooks and to the landing check"
ONLY_DENIED = "it is notified of refusals, not of what the shell writes"


class RoleTools(Protocol):
    """What a client has to know about a role."""

    @property
    def tools(self) -> tuple[str, ...]: ...
    @property
    def is_read_only(self) -> bool: ...


@value
class Permissions:
    """What a client is started with. `settings` go into `settings_file`, which lies in its home."""

    arguments: tuple[str, ...] = ()
    settings: Mapping[str, Any] = _NOTHING
    settings_file: str = ""
    environment: Mapping[str, str] = _NOTHING
    closed: tuple[str, ...] = ()  # what the client itself refuses by this
    open: Mapping[str, str] = _NOTHING  # what it does not, and why


def excluded_kinds(role: RoleTools) -> list[str]:
    """Return the kinds of tools that a role does not have."""
    return [kind for kind in TOOL_KINDS if kind not in role.tools or (kind == EDIT and role.is_read_only)]


def excluded_tools(role: RoleTools, tools: ClientTools) -> dict[str, tuple[str, ...]]:
    """Return the tools of a client that a role does not have, by their kind."""
    return {kind: names for kind in excluded_kinds(role) if (names := tools.of_kind(kind))}


def left_open(role: RoleTools, excluded: Sequence[str], paths: str = NO_PATHS) -> dict[str, str]:
    """Return what a client does not refuse although the role has no such tools, and why."""
    left: dict[str, str] = {}
    if SHELL in role.tools and NETWORK in excluded:
        left[NETWORK] = BY_SHELL
    if SHELL in role.tools and EDIT in excluded:
        left[SHELL] = "what the shell writes is left to the kernel, its hooks and the landing check"
    if EDIT in role.tools:
        left[PATHS] = paths
    return left


def exclude_by_settings(
    role: RoleTools, tools: ClientTools, is_sandboxed: bool, *, settings_file: str, approval: str
) -> Permissions:
    """Return the permissions for clients that exclude tools in their settings, as Gemini and Qwen do."""
    excluded = excluded_tools(role, tools)
    names = [name for group in excluded.values() for name in group]
    settings: dict[str, Any] = {"tools": {"exclude": names}}
    if is_sandboxed:
        settings["tools"]["sandbox"] = False
    return Permissions(
        arguments=("--approval-mode", "yolo" if SHELL in role.tools else approval),
        settings=settings,
        settings_file=settings_file,
        closed=tuple(excluded),
        open=left_open(role, tuple(excluded)),
    )


class OutputKind(StrEnum):
    """What a line of a client's output is about."""

    TEXT = "text"  # the model wrote something
    PRINTED = "printed"  # the client printed something, which need not be from the model
    CALL = "call"  # a tool was called
    CALL_ENDED = "call_ended"
    USAGE = "usage"
    RETRY = "retry"  # the provider rejected a request, and the client retries by itself
    ERROR = "error"  # the client could not go on; output that follows takes this back


@value
class OutputEvent:
    """One thing that a client reported."""

    kind: OutputKind
    text: str = ""
    call: str = ""  # the id of a tool call
    is_more: bool = False  # the text continues the one before
    key: str = ""  # the answer that the usage belongs to; empty for all usage so far
    is_added: bool = False  # the usage comes on top of all that was reported before
    usage: Usage | None = None
    status: int = 0  # the provider's HTTP status, where the client reports it
    word: str = ""  # the client's own word for an error


@value
class StartOptions:
    """How a client is to be started. `extra` are arguments of the caller, which override ours."""

    prompt_file: str = ""  # only for clients that read the prompt from a file
    scratch: str = ""
    model: str = ""
    budget_usd: float | None = None
    extra: tuple[str, ...] = ()

    def unless_given(self, names: Sequence[str], words: Sequence[str]) -> list[str]:
        """Return words of ours, unless the caller has given one of these options."""
        given = {word.partition("=")[0] for word in self.extra}
        return [] if given & set(names) else list(words)

    @property
    def model_words(self) -> list[str]:
        """The option that chooses the model; all clients spell it the same."""
        return ["--model", self.model] if self.model else []


@value
class WorkerAdapter:
    """One client as a worker."""

    name: str
    arguments: Callable[[StartOptions], list[str]]
    read_output: Callable[[str], list[OutputEvent]]  # reads a line of its output
    read_errors: Callable[[str], list[OutputEvent]] | None = None  # reads a line of its standard error
    permissions: Callable[[RoleTools, Sequence[str], bool], Permissions] | None = None
    sign_in: str  # what its user does to sign in
    takes_prompt_file: bool = False  # else it reads the prompt from its standard input
    environment: Mapping[str, str] = _NO_VARIABLES  # variables that the user has set override these
    own_files: tuple[str, ...] = ()  # files that it leaves in the checkout, as gitignore patterns
    reports_call_starts: bool = True  # it reports when a tool call starts, not only when it ends


class Fields:
    """A JSON object of unknown shape; a field that is missing or of another type reads as empty."""

    def __init__(self, item: object) -> None:
        self._fields = cast("dict[str, Any]", item) if isinstance(item, dict) else {}

    def __bool__(self) -> bool:
        return bool(self._fields)

    def get(self, key: str) -> Any:
        return self._fields.get(key)

    def text(self, *keys: str) -> str:
        """Return the first of these fields that is a text with something in it."""
        return next((item for key in keys if isinstance(item := self.get(key), str) and item), "")

    def table(self, key: str) -> Fields:
        return Fields(self.get(key))

    def tables(self, key: str) -> list[Fields]:
        """Return the objects in a list, or the members of an object."""
        items = self.get(key)
        if isinstance(items, dict):
            items = list(cast("dict[str, Any]", items).values())
        return [Fields(item) for item in cast("list[Any]", items)] if isinstance(items, list) else []

    def texts(self, key: str) -> list[str]:
        """Return the texts in a list."""
        items = self.get(key)
        return [str(item) for item in cast("list[Any]", items)] if isinstance(items, list) else []

    def count(self, *keys: str) -> int | None:
        """Return the sum of the token counts in these fields; None when none of them is known."""
        known = [int(number) for key in keys if (number := self._number(key, 2**53)) is not None]
        return sum(known) if known else None

    def amount(self, key: str) -> float | None:
        """Return an amount of money."""
        number = self._number(key, 1_000_000_000)
        return None if number is None else float(number)

    def _number(self, key: str, below: float) -> float | None:
        item = self.get(key)
        is_number = isinstance(item, (int, float)) and not isinstance(item, bool)
        return item if is_number and 0 <= item < below else None


def parse_line(line: str) -> Fields:
    """Return the JSON object in a line; an empty one for anything else."""
    if not line.startswith("{"):
        return Fields(None)
    try:
        return Fields(json.loads(line))
    except (ValueError, RecursionError):
        return Fields(None)


def add_usage(parts: Iterable[Usage]) -> Usage:
    """Return the sum; what is unknown in every part stays unknown."""
    sums: dict[str, Any] = {}
    for part in parts:
        for name in ("input_tokens", "output_tokens", "cost_usd"):
            if (number := getattr(part, name)) is not None:
                sums[name] = sums.get(name, 0) + number
    return Usage(**sums)


def printable(text: str) -> str:
    """Return a text that the worker protocol can carry: zero bytes and lone surrogates are replaced."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def describe_call(tool: str, arguments: Fields) -> str:
    """Return a tool call in a few words: its name, and the file, command or query it is about."""
    names = ("file_path", "path", "filePath", "notebook_path", "command", "cmd", "pattern", "query", "url")
    text = " ".join(f"{tool} {arguments.text(*names)}".split())
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"
