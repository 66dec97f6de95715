"""Read a plan from text: TOML or a Markdown checklist."""

from __future__ import annotations

from landlane.plans.markdown import read_markdown_plan
from landlane.plans.model import MOST_CHARACTERS, Plan, bad_plan
from landlane.plans.toml import read_toml_plan

_MARKDOWN = (".md", ".markdown", ".mdown", ".txt")


def read_plan(text: str, name: str = "") -> Plan:
    """Return the plan in a text; `name` is that of its file, if it has one.

    Raises:
        Malformed: it cannot be parsed; the error has the line.
    """
    if len(text) > MOST_CHARACTERS:
        hint = f"{MOST_CHARACTERS:,} are the most; split it"
        raise bad_plan(0, f"the plan has {len(text):,} characters", hint)
    text = text.removeprefix("\ufeff")
    if "\0" in text:
        raise bad_plan(text.count("\n", 0, text.index("\0")) + 1, "there is a NUL byte", "give a text file")
    name = name.lower()
    if name.endswith(".toml") or (not name.endswith(_MARKDOWN) and _has_toml_tasks(text)):
        return read_toml_plan(text)
    return read_markdown_plan(text)


def _has_toml_tasks(text: str) -> bool:
    return any(line.replace(" ", "").startswith("[[task]]") for line in text.splitlines())
