"""Reading a plan from its text: TOML or a Markdown checklist, told apart by the name of the file."""

from __future__ import annotations

from landlane.plans.markdown import read_markdown_plan
from landlane.plans.model import MOST_CHARACTERS, Plan, bad
from landlane.plans.toml import read_toml_plan

_MARKDOWN = (".md", ".markdown", ".mdown", ".txt")


def read_plan(text: str, name: str = "") -> Plan:
    """The plan that a text holds; `name` is that of its file, if it has one.

    Raises:
        Malformed: it cannot be understood; the line is named.
    """
    if len(text) > MOST_CHARACTERS:
        raise bad(0, f"the plan has {len(text):,} characters", f"{MOST_CHARACTERS:,} are the most; split it")
    text = text.removeprefix("\ufeff")
    if "\0" in text:
        raise bad(text.count("\n", 0, text.index("\0")) + 1, "there is a NUL byte", "give a text file")
    ending = name.lower()
    if ending.endswith(".toml") or (not ending.endswith(_MARKDOWN) and _looks_like_toml(text)):
        return read_toml_plan(text)
    return read_markdown_plan(text)


def _looks_like_toml(text: str) -> bool:
    """Whether a text without a telling name has the tables of a plan in TOML."""
    return any(line.replace(" ", "").startswith("[[task]]") for line in text.splitlines())
