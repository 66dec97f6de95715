"""The commands for the rules: rules, rules ack, rules report."""

from __future__ import annotations

from landlane.cli.terminal import in_one_line
from landlane.errors import LandlaneError, Malformed, Stale
from landlane.rules.file import load_rules, no_rules
from landlane.rules.model import is_version
from landlane.rules.report import count_violations
from landlane.rules.to_json import report_json, rules_json
from landlane.rules.versions import COMMAND, change_since, list_readers, see_version
from landlane.rules.versions import acknowledge as record_reading
from landlane.units import count, join_words
from landlane.usage.period import read_since

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from landlane.cli.command import CommandCall
    from landlane.rules.model import Rules, RulesChange
    from landlane.rules.versions import RulesReader


_SHOWN = 8  # digits of a version that people see
_HEX = frozenset("0123456789abcdefABCDEF")


def show(call: CommandCall) -> int:
    """Show the rules, and which sessions have not read them."""
    rules, file = _load(call)
    try:
        session = call.known_session()
    except LandlaneError:
        session = None  # reading the rules needs no live session
    repo = call.repo
    see_version(repo, session, rules, file=file)
    readers = list_readers(repo, rules.version)
    answer = rules_json(rules, file, readers)
    version = rules.version if call.terminal.is_verbose else rules.version[:_SHOWN]
    mine = next((one for one in readers if session is not None and one.session.id == session.id), None)
    read = _reading_text(call, rules, readers, mine)
    lines = [f"{file}, version {version}{f' ({read})' if read else ''}"]
    for number, rule in enumerate(rules.rules, 1):
        lines += ["", f"{number}. {in_one_line(rule.name)}"]
        lines += [f"   {in_one_line(line)}" if line else "" for line in rule.text.split("\n")]
    unread = [one.session.agent for one in readers if not one.is_current and one is not mine]
    lines += ["", f"not read by {join_words(unread)}"] if unread else [""]
    if mine is not None and not mine.is_current:
        lines.append(f"next: {call.command_text('rules', 'ack', version)}")
    return call.terminal.answer(answer, "\n".join(lines).rstrip("\n"), quiet=rules.version)


def _reading_text(
    call: CommandCall, rules: Rules, readers: Sequence[RulesReader], mine: RulesReader | None
) -> str:
    """Return what the caller has read, or how many sessions have read this version."""
    if mine is None:
        have = sum(one.is_current for one in readers)
        verb = "has" if have == 1 else "have"
        if not have:
            return "no session has read it"
        return f"{have} of {count(len(readers), 'session')} {verb} read it"
    if mine.is_current:
        return f"{mine.session.agent} has read it"
    if not mine.version:
        return f"{mine.session.agent} has not read it"
    change = _change_text(change_since(call.repo, mine.version, rules), rules)
    return f"{mine.session.agent} has read {mine.version[:_SHOWN]}; {change} since"


def _change_text(change: RulesChange, rules: Rules) -> str:
    numbers = {rule.name: str(number) for number, rule in enumerate(rules.rules, 1)}
    parts = [
        f"{'rule' if len(names) == 1 else 'rules'} {join_words([numbers[name] for name in names])} {verb}"
        for names, verb in ((change.changed, "changed"), (change.added, "added"))
        if names
    ]
    parts += [f"{count(len(change.removed), 'rule')} removed"] if change.removed else []
    return join_words(parts) or "the text around the rules changed"


def acknowledge(call: CommandCall, version: str) -> int:
    """Record that the caller has read the rules."""
    rules, file = _load(call)
    if version and not _HEX.issuperset(version):
        raise Malformed(
            f"{version[:40]} is not a version of {file}; it is at {rules.version[:_SHOWN]}",
            code="BAD_VERSION",
            hint=f"read them first, then: {call.command_text('rules', 'ack', rules.version[:_SHOWN])}",
        )
    if version and not is_version(version, rules.version):
        raise Stale(
            f"{file} is at version {rules.version[:_SHOWN]}, not {version[:40]}",
            code="RULES_CHANGED",
            hint=f"read it again: {call.command_text('rules', 'show')}",
            version=rules.version,
        )
    session = call.session()
    is_new = record_reading(call.repo, session, rules, how=COMMAND, file=file)
    answer = {"ok": True, "version": rules.version, "agent": session.agent, "session": session.id}
    readers = list_readers(call.repo, rules.version)
    have = sum(reader.is_current for reader in readers)
    verb = "has read" if is_new else "had already read"
    text = f"✓ {session.agent} {verb} {file} version {rules.version[:_SHOWN]}"
    return call.terminal.answer(
        answer | {"is_new": is_new, "read_by": have, "sessions": len(readers)},
        f"{text} ({have} of {count(len(readers), 'session')} {'has' if have == 1 else 'have'})",
    )


def report(call: CommandCall, since: str) -> int:
    """Show which rules are broken most often."""
    call.renew_session()
    broken = count_violations(call.repo, read_since(since, call.repo.wall_ms()) if since else 0)
    answer = report_json(broken)
    rows = [
        [str(rule.count), rule.rule, _counted(rule.agents), _counted(rule.guards), rule.last_what]
        for rule in broken
    ]
    columns = ["times", "rule", "by", "guard", "last"]
    text = call.terminal.table("", columns, rows, right=("TIMES",), cut="LAST")
    return call.terminal.answer(answer, text or "No rules were broken.")


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name or 'unknown'} {count}" for name, count in counts.items())


def _load(call: CommandCall) -> tuple[Rules, str]:
    """Return the rules of this repository; fail if there are none."""
    repo = call.repo
    file = repo.settings.rules.file
    rules = load_rules(repo.checkout, repo.checkout.home_checkout, file)
    if rules is None:
        raise no_rules(repo, file)
    return rules, file
