"""What every successful answer has."""

from __future__ import annotations

from typing import Literal, TypedDict


class Answer(TypedDict):
    """The answer of a command that did what it was asked."""

    ok: Literal[True]
