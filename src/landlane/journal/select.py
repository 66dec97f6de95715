"""Select journal entries: of a task, a path or an agent, and since a time."""

from __future__ import annotations

from landlane.errors import PatternError
from landlane.ids import is_record_id
from landlane.journal.read import parse_leniently
from landlane.patterns.pattern import overlap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from landlane.repository import Repository
    from landlane.store.journal_chain import JournalEntry


def make_filter(repo: Repository, about: str) -> Callable[[JournalEntry], bool]:
    """Return whether an entry is about a task or another id, about a path, or by an agent."""
    if not about:
        return lambda _: True
    wanted = about.upper()
    if is_record_id(wanted):
        return lambda entry: wanted in _ids(entry.facts())
    names_path = _path_filter(repo, about)
    return lambda entry: entry.agent == about or names_path(entry)


def _ids(facts: dict[str, Any]) -> Iterable[object]:
    """Return the ids that an entry names: of its task, its gate, and of the record that it holds."""
    found = [facts.get("task"), facts.get("gate")]
    for name in facts:
        record = _record(facts, name)
        found += [record.get("id"), record.get("task")]
    return [item for item in found if isinstance(item, str)]


def _record(facts: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the record that an entry holds under a name; empty if it holds none."""
    record: Any = facts.get(name)
    return record if isinstance(record, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _path_filter(repo: Repository, path: str) -> Callable[[JournalEntry], bool]:
    try:
        wanted = repo.git.pattern(path)
    except PatternError:
        return lambda _: False  # it may still be the name of an agent

    def is_about(entry: JournalEntry) -> bool:
        facts = entry.facts()
        texts = [str(facts["pattern"])] if facts.get("pattern") else []
        texts += map(str, facts.get("paths") or ()) if entry.kind != "task.added" else ()
        texts += [str(one[0]) for one in facts.get("paths") or ()] if entry.kind == "task.added" else []
        texts += map(str, _record(facts, "landing").get("paths") or ())
        kind = str(facts.get("kind") or "glob") if entry.kind.startswith("claim.") else "glob"
        held = (parse_leniently(repo, text, kind) for text in texts)
        return any(pattern is not None and overlap(pattern, wanted) for pattern in held)

    return is_about
