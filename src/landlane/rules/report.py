"""Count rule violations in the journal by rule and agent."""

from __future__ import annotations

from landlane.journal.read import read_entries
from landlane.rules.model import rule_key
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from landlane.repository import Repository
    from landlane.store.journal_chain import Entry

_CANARY = "canary-"  # prefix of the agents with which `doctor` tries the guards
VIOLATED = "rule.violated"


@value
class Broken:
    """How often a rule was violated: by which agents, at which guards, and when last."""

    rule: str
    count: int
    agents: Mapping[str, int]
    guards: Mapping[str, int]
    last_at: int
    last_what: str


def count_violations(repo: Repository, within_ms: int = 0) -> list[Broken]:
    """Return the violations, optionally of a recent period, most violated rule first."""
    store = repo.store
    now = store.wall_of(store.view(lambda snapshot: snapshot.now))
    return count_in(read_entries(repo), now - within_ms if within_ms else 0)


def count_in(entries: Iterable[Entry], since_wall_ms: int = 0) -> list[Broken]:
    """Like `count_violations`, for these entries since a wall-clock instant."""
    found: dict[str, Broken] = {}
    for entry in entries:
        if entry.kind != VIOLATED or entry.at < since_wall_ms or entry.agent.startswith(_CANARY):
            continue
        facts = entry.facts()
        rule = str(facts.get("rule", "")) or "unnamed"
        known = found.get(rule_key(rule))
        found[rule_key(rule)] = Broken(
            rule=known.rule if known is not None else rule,
            count=known.count + 1 if known is not None else 1,
            agents=_one_more(known.agents if known is not None else {}, entry.agent),
            guards=_one_more(known.guards if known is not None else {}, str(facts.get("guard", ""))),
            last_at=entry.at,
            last_what=str(facts.get("what", "")),
        )
    return sorted(found.values(), key=lambda violations: (-violations.count, violations.rule))


def _one_more(counts: Mapping[str, int], name: str) -> dict[str, int]:
    raised = {**counts, name: counts.get(name, 0) + 1}
    return dict(sorted(raised.items(), key=lambda item: (-item[1], item[0])))
