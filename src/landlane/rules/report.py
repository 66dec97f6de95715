"""Count rule violations in the journal by rule and agent."""

from __future__ import annotations

from collections import Counter

from landlane.journal.read import read_entries
from landlane.rules.model import rule_key
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from landlane.repository import Repository
    from landlane.store.journal_chain import JournalEntry

_CANARY = "canary-"  # prefix of the agents with which `doctor` tries the guards
VIOLATED = "rule.violated"


@value
class RuleViolations:
    """How often a rule was violated: by which agents, at which guards, and when last."""

    rule: str
    count: int
    agents: Mapping[str, int]
    guards: Mapping[str, int]
    last_at: int
    last_what: str


def count_violations(repo: Repository, since: int = 0) -> list[RuleViolations]:
    """Return the violations since an instant of calendar time, most violated rule first."""
    by_rule: dict[str, list[JournalEntry]] = {}
    for entry in read_entries(repo):
        if entry.kind == VIOLATED and entry.at >= since and not entry.agent.startswith(_CANARY):
            by_rule.setdefault(rule_key(_rule_in(entry)), []).append(entry)
    counted = [_count(entries) for entries in by_rule.values()]
    return sorted(counted, key=lambda violations: (-violations.count, violations.rule))


def _rule_in(entry: JournalEntry) -> str:
    return str(entry.facts().get("rule", "")) or "unnamed"


def _count(entries: Sequence[JournalEntry]) -> RuleViolations:
    return RuleViolations(
        rule=_rule_in(entries[0]),
        count=len(entries),
        agents=_most_common(entry.agent for entry in entries),
        guards=_most_common(str(entry.facts().get("guard", "")) for entry in entries),
        last_at=entries[-1].at,
        last_what=str(entries[-1].facts().get("what", "")),
    )


def _most_common(names: Iterable[str]) -> dict[str, int]:
    counts = Counter(names)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
