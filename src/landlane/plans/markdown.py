"""Plans written as a Markdown checklist: each box is a task, what stands further in below it belongs to it.

    # Dates everywhere

    - [ ] Agree on the interface of dates (name: api) (contract: yes)
      - paths: src/dates/api.py
    - [ ] Parse dates
      - after: api
      - paths: src/dates/parse.py, tests/dates/**
      - check: pytest tests/dates
      Whatever else stands here is the description.

Facts stand behind the title in parentheses, as in the checklists of `task import`, or below it as bullets.
A ticked box is done: it is not added, and nobody waits for it.
"""

from __future__ import annotations

from landlane.plans.model import FACTS, MOST_TASKS, Plan, PlanTask, bad, make_plan, make_task, unknown_fact
from landlane.tasks.checklist import Entry, read_entries
from landlane.text import nearest_word

_SINGULAR = {"path": "paths", "label": "labels", "need": "needs"}
_MANY = frozenset({"paths", "after", "labels", "needs"})
_IGNORED = frozenset({"state", "owner", "key", "id"})  # written by `task list --markdown` for people
_INLINE = frozenset({*FACTS, *_SINGULAR, *_IGNORED}) - {"title", "body"}
_BULLETS = ("- ", "* ", "+ ")
_ID_MARK = "<!-- plan:"


def read_markdown_plan(text: str) -> Plan:
    """The plan that a checklist holds.

    Raises:
        Malformed: an item cannot be understood; the line is named.
    """
    entries = read_entries(text, _INLINE)
    if len(entries) > MOST_TASKS:
        raise bad(
            entries[MOST_TASKS].line, f"{len(entries):,} tasks in one plan", f"{MOST_TASKS:,} are the most"
        )
    title, plan_id = _head(text, entries[0].line if entries else 0)
    return make_plan(title, _Reader(entries).tasks(), id=plan_id)


def _head(text: str, first_task: int) -> tuple[str, str]:
    """The first heading above the tasks, and the id that a comment gives."""
    title = plan_id = ""
    for line in text.splitlines()[: max(first_task - 1, 0)]:
        stripped = line.strip()
        if not title and stripped.startswith("#"):
            title = stripped.strip("#").strip()
        if stripped.startswith(_ID_MARK) and stripped.endswith("-->"):
            plan_id = stripped.removeprefix(_ID_MARK).removesuffix("-->").strip()
    return title, plan_id


class _Reader:
    """Turns the entries of one list into tasks; a title is known as such, also where it has a comma."""

    def __init__(self, entries: list[Entry]) -> None:
        self._entries = entries
        self._titles = {_plain(entry.title) for entry in entries}

    def tasks(self) -> list[PlanTask]:
        return [self._read(entry) for entry in self._entries]

    def _read(self, entry: Entry) -> PlanTask:
        if not entry.title:
            raise bad(entry.line, "a task has no title", "write `- [ ] what is to be done`")
        _refuse_slip(entry)
        given: dict[str, tuple[object, int]] = {"title": (entry.title, entry.line)}
        for word, texts in entry.facts.items():
            for text in texts:
                self._put(given, word, text, entry.line)
        body: list[str] = []
        for line, text in entry.body:
            fact = _bullet_fact(text)
            if fact is None:
                body.append(_unquoted(text))
            else:
                self._put(given, *fact, line)
        if body:
            given["body"] = ("\n".join(body), entry.body[0][0])
        if entry.task_id and "name" not in given:
            given["name"] = (entry.task_id, entry.line)
        return make_task(given, entry.line, is_ticked=entry.is_ticked)

    def _put(self, given: dict[str, tuple[object, int]], word: str, text: str, line: int) -> None:
        """Keep a fact; of those that may be given again, all."""
        word = _SINGULAR.get(word, word)
        if word in _IGNORED:
            return
        if word not in _MANY:
            if word in given:
                raise bad(line, f"{word} stands here twice", "leave one of them out")
            given[word] = (text, line)
            return
        before, at = given.get(word, ((), line))
        assert isinstance(before, tuple)
        is_title = word == "after" and _plain(text) in self._titles
        given[word] = ((*before, *([text] if is_title else _split(text))), at)  # pyright: ignore[reportUnknownVariableType]


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


def _split(text: str) -> list[str]:
    """The parts between commas, but not those inside braces or backquotes; backquotes go."""
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


def _bullet_fact(text: str) -> tuple[str, str] | None:
    """The fact that a line of the description is, such as `- role: code`; nothing when it is just text."""
    stripped = text.strip()
    if not stripped.startswith(_BULLETS):
        return None
    word, colon, rest = stripped[2:].partition(":")
    word = word.strip().strip("*_`").lower()
    if not colon or word not in _INLINE:
        return None
    rest = rest.strip().removeprefix("**").strip()
    is_one_code = word not in _MANY | _SINGULAR.keys() and len(rest) > 1 and rest[0] == rest[-1] == "`"
    return word, rest.strip("`") if is_one_code else rest


def _unquoted(text: str) -> str:
    stripped = text.strip()
    return stripped[1:].removeprefix(" ") if stripped.startswith(">") else stripped


def _refuse_slip(entry: Entry) -> None:
    """Refuse a title that ends in what was meant as a fact: `(pahts: src)` would be lost in silence."""
    _, bracket, rest = entry.title.rpartition("(")
    word, colon, _ = rest.partition(":")
    if not bracket or not colon or not rest.endswith(")") or not word.isalpha():
        return
    if nearest_word(word.lower(), _INLINE, cutoff=0.7):
        raise unknown_fact(word, sorted(_INLINE - _IGNORED), entry.line)
