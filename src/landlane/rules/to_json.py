"""Rules, their readers and violations as JSON, the same for the command line, the API and MCP."""

from __future__ import annotations

from landlane.clock import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.rules.json_types import CarriedRulesJson, RulesReaderJson
    from landlane.rules.model import Rules
    from landlane.rules.report import RuleViolations
    from landlane.rules.show_to_session import CarriedRules
    from landlane.rules.versions import RulesReader


def rules_json(rules: Rules, file: str, readers: Sequence[RulesReader]) -> dict[str, Any]:
    """Return the current rules, and the live sessions with the version each has read."""
    return {
        "ok": True,
        "file": file,
        "version": rules.version,
        "rules": [{"name": rule.name, "text": rule.text} for rule in rules.rules],
        "sessions": [reader_json(one) for one in readers],
        "unread": sum(not one.is_current for one in readers),
    }


def reader_json(reader: RulesReader) -> RulesReaderJson:
    """Return a session and the version it has read."""
    return {
        "agent": reader.session.agent,
        "session": reader.session.id,
        "version": reader.version or None,
        "how": reader.how or None,
        "is_current": reader.is_current,
    }


def report_json(broken: Sequence[RuleViolations]) -> dict[str, Any]:
    """Return the violated rules, most violated first."""
    return {
        "ok": True,
        "total": sum(one.count for one in broken),
        "rules": [
            {
                "rule": one.rule,
                "count": one.count,
                "agents": [{"agent": agent or None, "count": count} for agent, count in one.agents.items()],
                "guards": [{"guard": guard, "count": count} for guard, count in one.guards.items()],
                "last_at": rfc3339(one.last_at),
                "last": one.last_what,
            }
            for one in broken
        ],
    }


def carried_json(rules: CarriedRules | None) -> CarriedRulesJson | None:
    """Return the rules that go along with an answer as JSON; null without a rules file."""
    if rules is None:
        return None
    return {"file": rules.file, "version": rules.version, "text": rules.text or None}
