"""What the setup of a coding client is made of: where it is, what to write for it, and what is wrong."""

from __future__ import annotations

from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


JSON = "json"  # merged into a JSON document, whose comments and layout stay
TEXT = "text"  # a marked block of a text file
WHOLE = "whole"  # a file of our own
TOML = "toml"  # a marked block with a table of a TOML file


@value
class ClientEnvironment:
    """Where a client would run: a checkout, its user's home, and where programs are found."""

    root: str
    home: str
    search_path: str
    environment: Mapping[str, str]


@value
class ClientFile:
    """A file that a client reads, and what must be in it.

    `path` counts from the root of the checkout; one that begins with `~/` from the home. For JSON, `content`
    is merged: tables key by key, lists by adding what is ours, anything else only where nothing is set.
    """

    path: str
    form: str
    content: Any
    why: str


@value
class SetupProblem:
    """Why a client's guard does not hold, or not fully, and how to fix it."""

    what: str
    hint: str
    is_open: bool = True  # nothing is stopped at all; else only a failure of ours would let an edit pass


@value
class Canary:
    """A call as the client would make it, to see whether it is refused."""

    word: str
    payload: Mapping[str, Any]
    environment: Mapping[str, str]
