"""Plans written as a Markdown checklist: each box is a task, and what is indented below it belongs to it.

    # Dates everywhere

    - [ ] Agree on the interface of dates (name: api) (contract: yes)
      - paths: src/dates/api.py
    - [ ] Parse dates
      - after: api
      - paths: src/dates/parse.py, tests/dates/**
      - check: pytest tests/dates
      All other text here is the description.

Fields follow the title in parentheses, as in the checklists of `task import`, or are bullets below it.
A ticked box is done: it is not added, and no task waits for it.
"""

from __future__ import annotations

from landlane.plans.fields import FIELDS, make_task, unknown_field
from landlane.plans.model import Plan, PlanTask, bad_plan, check_task_count, make_plan, normalize
from landlane.tasks.checklist import ChecklistEntry, read_entries
from landlane.text import nearest_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

_SINGULAR = {"path": "paths", "label": "labels", "need": "needs"}
_LISTS = frozenset({"paths", "after", "labels", "needs"})
_IGNORED = frozenset({"state", "owner", "key", "id"})  # written by `task list --markdown` for people
_INLINE = frozenset({*FIELDS, *_SINGULAR, *_IGNORED}) - {"title", "body"}
_BULLETS = ("- ", "* ", "+ ")
_ID_MARK = "<!-- plan:"


def read_markdown_plan(text: str) -> Plan:
    """Return the plan in a checklist.

    Raises:
        Malformed: an item cannot be parsed; the error has the line.
    """
    entries = read_entries(text, _INLINE)
    check_task_count([entry.line for entry in entries])
    title, plan_id = _read_head(text, entries[0].line if entries else 0)
    titles = {normalize(entry.title) for entry in entries}
    return make_plan(title, [_read_task(entry, titles) for entry in entries], id=plan_id)


def _read_head(text: str, first_task: int) -> tuple[str, str]:
    """Return the first heading above the tasks, and the plan's id from a comment."""
    title = plan_id = ""
    for line in text.splitlines()[: max(first_task - 1, 0)]:
        stripped = line.strip()
        if not title and stripped.startswith("#"):
            title = stripped.strip("#").strip()
        if stripped.startswith(_ID_MARK) and stripped.endswith("-->"):
            plan_id = stripped.removeprefix(_ID_MARK).removesuffix("-->").strip()
    return title, plan_id


def _read_task(entry: ChecklistEntry, titles: AbstractSet[str]) -> PlanTask:
    if not entry.title:
        raise bad_plan(entry.line, "a task has no title", "write `- [ ] what is to be done`")
    _refuse_misspelled_field(entry)
    fields = [(word, text, entry.line) for word, texts in entry.attributes.items() for text in texts]
    body: list[str] = []
    for line, text in entry.body:
        if field := _bullet_field(text):
            fields.append((*field, line))
        else:
            body.append(_unquoted(text))
    written: dict[str, tuple[object, int]] = {"title": (entry.title, entry.line)}
    lists: dict[str, tuple[list[str], int]] = {}
    for name, text, line in fields:
        word = _SINGULAR.get(name, name)
        if word in _LISTS:
            # A title may contain commas.
            is_title = word == "after" and normalize(text) in titles
            lists.setdefault(word, ([], line))[0].extend([text] if is_title else _split(text))
        elif word not in _IGNORED:
            if word in written:
                raise bad_plan(line, f"{word} stands here twice", "leave one of them out")
            written[word] = (text, line)
    if body:
        written["body"] = ("\n".join(body), entry.body[0][0])
    if entry.task_id:
        written.setdefault("name", (entry.task_id, entry.line))
    return make_task({**written, **lists}, entry.line, is_ticked=entry.is_ticked)


def _split(text: str) -> list[str]:
    """Split at commas outside braces and backquotes, and remove backquotes."""
    parts, depth, is_code = [""], 0, False
    for letter in text:
        if letter == "`":
            is_code = not is_code
        elif letter == "," and not depth and not is_code:
            parts.append("")
        else:
            depth += (letter == "{") - (letter == "}" and depth > 0)
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def _bullet_field(text: str) -> tuple[str, str] | None:
    """Return the field in a line such as `- role: code`; None if it is plain text."""
    stripped = text.strip()
    if not stripped.startswith(_BULLETS):
        return None
    word, colon, rest = stripped[2:].partition(":")
    word = word.strip().strip("*_`").lower()
    if not colon or word not in _INLINE:
        return None
    rest = rest.strip().removeprefix("**").strip()
    is_code = word not in _LISTS | _SINGULAR.keys() and len(rest) > 1 and rest[0] == rest[-1] == "`"
    return word, rest.strip("`") if is_code else rest


def _unquoted(text: str) -> str:
    stripped = text.strip()
    return stripped[1:].removeprefix(" ") if stripped.startswith(">") else stripped


def _refuse_misspelled_field(entry: ChecklistEntry) -> None:
    """Refuse a title that ends like a field: `(pahts: src)` would be ignored silently."""
    _, bracket, rest = entry.title.rpartition("(")
    word, colon, _ = rest.partition(":")
    is_like_field = bracket and colon and rest.endswith(")") and word.isalpha()
    if is_like_field and nearest_word(word.lower(), _INLINE, cutoff=0.7):
        raise unknown_field(word, sorted(_INLINE - _IGNORED), entry.line)
