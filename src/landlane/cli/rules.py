"""The commands for the rules: rules, rules ack, rules report."""

from __future__ import annotations

from landlane.cli.terminal import in_one_line
from landlane.errors import LandlaneError, Malformed, Stale
from landlane.rules.file import load_rules, no_rules
from landlane.rules.model import is_version
from landlane.rules.report import count_violations
from landlane.rules.to_json import report_json, rules_json
from landlane.rules.versions import COMMAND, list_readers, see_version
from landlane.rules.versions import acknowledge as record_reading
from landlane.units import count
from landlane.usage.period import read_since

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from landlane.cli.command import CommandCall
    from landlane.rules.model import Rules


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
    lines = [f"{file}, version {rules.version}"]
    for number, rule in enumerate(rules.rules, 1):
        lines += ["", f"{number}. {in_one_line(rule.name)}"]
        lines += [f"   {in_one_line(line)}" if line else "" for line in rule.text.split("\n")]
    unread = [reader for reader in readers if not reader.is_current]
    rows = [[reader.session.agent, reader.version or "none"] for reader in unread]
    title = f"unread in {len(unread)} of {len(readers)} sessions"
    lines += ["", call.terminal.table(title if unread else _all_read(len(readers)), ["agent", "read"], rows)]
    return call.terminal.answer(answer, "\n".join(lines))


def _all_read(count: int) -> str:
    if not count:
        return "no session is here"
    return "the session that is here has read it" if count == 1 else f"all {count} sessions have read it"


def acknowledge(call: CommandCall, version: str) -> int:
    """Record that the caller has read the rules."""
    rules, file = _load(call)
    if version and not _HEX.issuperset(version):
        raise Malformed(
            f"{version[:40]!r} is no version of the rules",
            code="BAD_VERSION",
            hint="`landlane rules` shows the version: twelve digits and letters from a to f",
        )
    if version and not is_version(version, rules.version):
        raise Stale(
            f"{file} is at version {rules.version}, not at {version[:40]}",
            code="RULES_CHANGED",
            hint="read it again: landlane rules show",
            version=rules.version,
        )
    session = call.session()
    is_new = record_reading(call.repo, session, rules, how=COMMAND, file=file)
    answer = {"ok": True, "version": rules.version, "agent": session.agent, "session": session.id}
    readers = list_readers(call.repo, rules.version)
    have = sum(reader.is_current for reader in readers)
    verb = "has read" if is_new else "had already read"
    text = f"✓ {session.agent} {verb} {file} version {rules.version}"
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
    title = f"{answer['total']} caught" if broken else "nothing was caught"
    columns = ["times", "rule", "by", "guard", "last"]
    return call.terminal.answer(answer, call.terminal.table(title, columns, rows))


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name or 'unknown'} {count}" for name, count in counts.items())


def _load(call: CommandCall) -> tuple[Rules, str]:
    """Return the rules of this repository; fail if there are none."""
    repo = call.repo
    file = repo.settings.rules.file
    rules = load_rules(repo.checkout, repo.checkout.home_checkout, file)
    if rules is None:
        raise no_rules(file)
    return rules, file
