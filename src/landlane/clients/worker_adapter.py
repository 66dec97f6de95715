"""The interface between the worker process and a coding client: start options and output events.

An adapter says with which words a client starts without a person, and reads what it prints: a line becomes
events. Nothing here starts anything or looks at a clock.
"""

from __future__ import annotations

import json
from typing import cast

from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from landlane.protocol.worker.messages import Usage

TEXT = "text"  # the model said something
SAID = "said"  # the client printed something, which need not be the model's
CALL, CALL_ENDED = "call", "call_ended"  # a tool was called, and is through
SPENT = "spent"
RETRY = "retry"  # the provider turned a request away, and the client tries again by itself
ERROR = "error"  # the client could not go on; what it says later takes that back

MORE = "+"  # the key of what comes on top of everything before it

BY_STDIN, BY_ARGUMENT, BY_FILE = "stdin", "argument", "file"
MOST_ARGUMENT_BYTES = 100_000  # the system takes no more than 128 KiB for one word
_LONGEST_SHOWN = 160


@value
class OutputEvent:
    """One thing that a client told."""

    kind: str
    text: str = ""
    call: str = ""  # the id of a tool call
    is_more: bool = False  # a text that goes on with the one before
    key: str = ""  # of what was spent: for which answer; empty for all of it so far
    usage: Usage | None = None
    status: int = 0  # what the provider answered, where that is told
    word: str = ""  # the client's own word for an error


@value
class StartOptions:
    """How a client is to be started. `extra` are the words of whoever starts it, and go before ours."""

    prompt: str = ""  # only where it is an argument
    prompt_file: str = ""
    scratch: str = ""
    model: str = ""
    budget_usd: float | None = None
    extra: tuple[str, ...] = ()


_NO_VARIABLES: Mapping[str, str] = {}


@value
class WorkerAdapter:
    """One client as a worker."""

    name: str
    title: str
    words: Callable[[StartOptions], list[str]]  # behind the program's name
    read: Callable[[str], list[OutputEvent]]  # a line of its output
    facts: str  # how it hears of facts while it works
    sign_in: str  # what its user does so that it knows its account
    prompt_by: str = BY_STDIN
    read_trouble: Callable[[str], list[OutputEvent]] | None = None  # a line of its errors
    environment: Mapping[str, str] = _NO_VARIABLES  # type: ignore[assignment]  # what the user has set goes before it
    leavings: tuple[str, ...] = ()  # files of its own that it leaves in the checkout, as patterns of git
    tells_calls: bool = True  # it tells when a tool begins, and not only when it is through

    @property
    def program(self) -> str:
        """The program that has to be there."""
        return self.name


BY_HOOKS = (
    "its hooks tell it with the result of its next tool call, where the checkout is set up for it "
    "(`landlane init`)"
)
BY_NOTES = "it has no hooks: it hears of them with the notes of the next attempt, and not before"


def read_object(line: str) -> dict[str, Any]:
    """The object that stands in a line; an empty one for anything else."""
    if not line.startswith("{"):
        return {}
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return as_object(found)


def as_object(found: object) -> dict[str, Any]:
    """What was found, if it is an object; else an empty one."""
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def as_list(found: object) -> list[Any]:
    """What was found, if it is a list; else an empty one."""
    return cast("list[Any]", found) if isinstance(found, list) else []


def as_text(found: object) -> str:
    """What was found, if it is a text; else an empty one."""
    return found if isinstance(found, str) else ""


def clean(text: str) -> str:
    """A text that can be said in the worker protocol: what is no letter in it is replaced."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def count(found: object) -> int | None:
    """A number of tokens, if it is one."""
    is_number = isinstance(found, (int, float)) and not isinstance(found, bool)
    return int(cast("float", found)) if is_number and 0 <= cast("float", found) < 2**53 else None


def amount(found: object) -> float | None:
    """An amount of money, if it is one."""
    is_number = isinstance(found, (int, float)) and not isinstance(found, bool)
    return float(cast("float", found)) if is_number and 0 <= cast("float", found) < 1_000_000_000 else None


def total(*found: object) -> int | None:
    """The sum of what is known; nothing when none of it is."""
    known = [number for one in found if (number := count(one)) is not None]
    return sum(known) if known else None


def shown_call(tool: str, given: object) -> str:
    """A tool call in a few words: its name, and what it is about."""
    table = as_object(given)
    names = ("file_path", "path", "filePath", "notebook_path", "command", "cmd", "pattern", "query", "url")
    about = next((text for name in names if (text := as_text(table.get(name)))), "")
    text = " ".join(f"{tool} {about}".split())
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"


def unless_given(extra: Sequence[str], names: Sequence[str], words: Sequence[str]) -> list[str]:
    """Words of ours, unless whoever starts the client has given one of these options."""
    given = {word.partition("=")[0] for word in extra}
    return [] if given & set(names) else list(words)
