"""The fields of a task in a plan: which there are, and how each is read and checked."""

from __future__ import annotations

from landlane.clock import parse_duration
from landlane.errors import Malformed
from landlane.plans.model import PlanTask, bad_plan, new_task
from landlane.settings.money import micros_from
from landlane.tasks.model import check_new_task
from landlane.text import nearest_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    Written = Mapping[str, tuple[object, int]]  # field → its value as written, and the line

_LONGEST_NAME = 300
_MOST_NEEDS = 10
_MOST_MICROS = 1_000_000_000_000


def _read_text(written: object, field: str, line: int) -> str:
    if not isinstance(written, str):
        raise bad_plan(line, f"{field} must be a text, not {_cut(written)}", f'write {field} = "…"')
    return written


def _read_texts(written: object, field: str, line: int) -> tuple[str, ...]:
    texts = [written] if isinstance(written, str) else written
    if not isinstance(texts, (list, tuple)) or not all(isinstance(text, str) for text in texts):  # pyright: ignore[reportUnknownVariableType]
        message = f"{field} must be a list of texts, not {_cut(written)}"
        raise bad_plan(line, message, f'write {field} = ["…", "…"]')
    return tuple(dict.fromkeys(texts))  # pyright: ignore[reportUnknownArgumentType]


def _read_number(written: object, field: str, line: int) -> int:
    text = str(written).strip()
    digits = text.removeprefix("-")
    is_number = isinstance(written, (int, str)) and not isinstance(written, bool)
    if not is_number or not (digits.isascii() and digits.isdigit()) or len(digits) > 6:
        message = f"{field} must be a whole number, not {_cut(written)}"
        raise bad_plan(line, message, f"write it as {field}: 2")
    return int(text)


def _read_duration(written: object, field: str, line: int) -> int:
    if not isinstance(written, str):
        message = f"{field} must be a length of time, not {_cut(written)}"
        raise bad_plan(line, message, 'write it as "45m" or "2h"')
    try:
        return parse_duration(written, what=field)
    except Malformed as error:
        raise bad_plan(line, error.message, error.hint) from None


def read_amount(written: object, field: str, line: int) -> int:
    """Return an amount of US dollars in millionths.

    Raises:
        Malformed: it is not an amount.
    """
    micros = micros_from(written)
    if micros is None or micros > _MOST_MICROS:
        message = f"{field} must be an amount in US dollars, not {_cut(written)}"
        raise bad_plan(line, message, f"write it as {field}: 1.50")
    return micros


def _read_switch(written: object, field: str, line: int) -> bool:
    known = {"true": True, "yes": True, "": True, "false": False, "no": False}
    word = str(written).strip().lower()
    if not isinstance(written, (bool, str)) or word not in known:
        message = f"{field} must be yes or no, not {_cut(written)}"
        raise bad_plan(line, message, f"write it as {field}: yes")
    return known[word]


def _read_needs(written: object, field: str, line: int) -> tuple[tuple[str, int], ...]:
    """Return resources and the amount of each, from a table or from texts such as `gpu=8`."""
    table: Any = written
    if isinstance(table, dict):
        pairs: list[tuple[str, object]] = list(table.items())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    else:
        words = [word.strip() for text in _read_texts(written, field, line) for word in text.split(",")]
        pairs = [(name.strip(), amount or "1") for name, _, amount in (word.partition("=") for word in words)]
    needs = tuple((name, _read_number(amount, f"{field} {name}", line)) for name, amount in pairs)
    are_valid = all(name and name.isascii() and name.isprintable() and amount > 0 for name, amount in needs)
    if not are_valid or len(needs) > _MOST_NEEDS:
        message = f"{field} cannot be understood: {_cut(written)}"
        raise bad_plan(line, message, "write it as needs: gpu=8, licence=1")
    return needs


def _cut(written: object) -> str:
    text = repr(written)
    return text if len(text) <= 60 else text[:57] + "…"


# Field → the attribute of PlanTask, and its reader. docs/howto/plans.md describes each.
FIELDS: dict[str, tuple[str, Callable[[object, str, int], Any]]] = {
    "name": ("name", _read_text),
    "title": ("title", _read_text),
    "body": ("body", _read_text),
    "paths": ("paths", _read_texts),
    "after": ("after", _read_texts),
    "labels": ("labels", _read_texts),
    "role": ("role", _read_text),
    "agent": ("agent", _read_text),
    "kind": ("kind", _read_text),
    "check": ("check", _read_text),
    "output": ("output", _read_text),
    "priority": ("priority", _read_number),
    "attempts": ("attempts", _read_number),
    "estimate": ("estimate_ms", _read_duration),
    "budget": ("budget_micros", read_amount),
    "needs": ("needs", _read_needs),
    "review": ("review", _read_number),
    "reviewers": ("reviewers", _read_texts),
    "decider": ("decider", _read_text),
    "contract": ("is_contract", _read_switch),
    "assign": ("assign", _read_text),
    "gate": ("gate", _read_text),
    "fixes-target": ("fixes_target", _read_switch),
}


def unknown_field(word: str, known: Sequence[str], line: int) -> Malformed:
    """Return the error for an unknown field, with the most similar known one."""
    similar = nearest_word(word, known)
    remark = f"did you mean {similar}?" if similar else f"known: {', '.join(known)}"
    example = "a complete example: landlane help plan check"
    return bad_plan(line, f"unknown key {word[:40]}", example, word=word, remark=remark)


def make_task(written: Written, line: int, *, is_ticked: bool = False) -> PlanTask:
    """Return a task with these fields.

    Raises:
        Malformed: a field is unknown or has an invalid value; the error has its line.
    """
    fields: dict[str, Any] = {}
    for word, (item, at) in written.items():
        if word not in FIELDS:
            raise unknown_field(word, list(FIELDS), at)
        attribute, read = FIELDS[word]
        fields[attribute] = read(item, word, at)
    title = fields.get("title", "") or fields.get("name", "")
    if not title.strip():
        raise bad_plan(line, "a task has no title", 'write title = "what is to be done"')
    fields["title"] = " ".join(title.split())
    name = fields["name"] = " ".join((fields.get("name", "") or title).split())
    if len(name) > _LONGEST_NAME:
        raise bad_plan(line, f"a name has {len(name)} characters", f"use {_LONGEST_NAME} at most")
    task = PlanTask(line=line, is_ticked=is_ticked, **fields)
    try:  # check the limits of the queue here, where the line is known
        check_new_task(new_task(task, ""))
    except Malformed as error:
        word = next((word for word in written if word in error.message), "")
        raise bad_plan(written[word][1] if word else line, error.message, error.hint) from None
    return task
