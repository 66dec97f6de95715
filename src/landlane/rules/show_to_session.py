"""Show the rules to a session: in full at its start, and the differences when the file changes."""

from __future__ import annotations

from landlane.errors import LandlaneError
from landlane.rules.file import load_rules
from landlane.rules.versions import HOOK, acknowledge, change_since, find_acknowledgement, record_shown
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository
    from landlane.rules.model import Rules, RulesChange
    from landlane.rules.versions import Acknowledgement
    from landlane.sessions.model import Session


@value
class CarriedRules:
    """The version of the rules that holds now, and what of them is new to a session; empty for nothing."""

    file: str
    version: str
    text: str


_LONGEST_FULL = 6000  # characters of rules that a start shows as they are
_LONGEST_NEWS = 3000
_MOST_NAMES = 40


def show_rules(repo: Repository, session: Session, *, is_reminder: bool = False) -> str:
    """Return the rules for the start of a session; rules shown in full count as read.

    With `is_reminder`, a session that has read this version only gets its number.

    Raises:
        LandlaneError: they cannot be read.
    """
    file = repo.settings.rules.file
    rules = load_rules(repo.checkout, repo.home, file)
    if rules is None:
        return f"Rules: there is no {file} here."
    known = find_acknowledgement(repo, session.id)
    if is_reminder and known is not None and known.version == rules.version:
        return (
            f"Rules ({file}, version {rules.version}): unchanged since you read them: {_names(rules)}. "
            "`landlane rules` shows them again."
        )
    return _show_full(repo, session, rules, file)[0]


def _show_full(repo: Repository, session: Session, rules: Rules, file: str) -> tuple[str, bool]:
    """Return the rules, or their names if they are long, and whether they are shown for the first time."""
    if len(rules.text) > _LONGEST_FULL:
        text = (
            f"Rules ({file}, version {rules.version}), by name: {_names(rules)}. "
            f"Read {file} before you act, then say so: `landlane rules ack {rules.version}`."
        )
        return text, record_shown(repo, session, rules, file=file)
    text = f"Rules ({file}, version {rules.version}). Work by them:\n\n{_text(rules)}"
    return text, acknowledge(repo, session, rules, how=HOOK, file=file)


def show_rules_safely(repo: Repository, session: Session, *, is_reminder: bool = False) -> str:
    """Like `show_rules`, but return one line when the rules cannot be read."""
    try:
        return show_rules(repo, session, is_reminder=is_reminder)
    except LandlaneError as error:
        return f"Rules: {error.message}. Tell the person you work for: {error.hint}."


def show_rules_change(repo: Repository, session: Session) -> str:
    """Return the changed rules for a running session; empty when it has seen them.

    Raises:
        LandlaneError: they cannot be read.
    """
    file = repo.settings.rules.file
    rules = load_rules(repo.checkout, repo.home, file)
    known = find_acknowledgement(repo, session.id)
    if rules is None or (known is not None and known.shown == rules.version):
        return ""
    if known is None or not known.shown:
        text, is_first = _show_full(repo, session, rules, file)
    else:
        text, is_first = _show_change(repo, session, known, rules, file)
    # Tool calls may end at the same time: only one of them reports the change.
    return text if is_first else ""


def carry_rules(repo: Repository, session: Session | None) -> CarriedRules | None:
    """Return the rules for an answer to a session: their version, and what of them is new to it.

    Without a session only the version is returned. None if there is no rules file, or it cannot be read.
    """
    file = repo.settings.rules.file
    try:
        rules = load_rules(repo.checkout, repo.home, file)
        if rules is None:
            return None
        text = show_rules_change(repo, session) if session is not None else ""
    except LandlaneError:
        return None  # `landlane rules` says why
    return CarriedRules(file=file, version=rules.version, text=text)


def _show_change(
    repo: Repository, session: Session, known: Acknowledgement, rules: Rules, file: str
) -> tuple[str, bool]:
    change = change_since(repo, known.shown, rules)
    head = f"{file} has changed: version {rules.version} instead of {known.shown}. {_describe_change(change)}"
    texts = _changed_texts(rules, change)
    if len(texts) <= _LONGEST_NEWS and known.version == known.shown:
        text = "\n\n".join(part for part in (f"{head} It holds for you from now on.", texts) if part)
        return text, acknowledge(repo, session, rules, how=HOOK, file=file)
    text = f"{head} Read {file}, then say so: `landlane rules ack {rules.version}`."
    return text, record_shown(repo, session, rules, file=file)


def _names(rules: Rules) -> str:
    names = [rule.name for rule in rules.rules]
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return "; ".join(names[:_MOST_NAMES]) + more if names else "none"


def _text(rules: Rules) -> str:
    """Return the rules without the text around them, which is for people."""
    if not rules.rules:
        return "(the file names no rule)"
    return "\n".join(
        f"{number}. {rule.name}: {_join_lines(rule.text)}" for number, rule in enumerate(rules.rules, 1)
    )


def _join_lines(text: str) -> str:
    """Join a plain paragraph into one line; formatted text is unchanged."""
    lines = text.split("\n")
    is_plain = all(line and line[0] not in " \t-*+#|>0123456789" and line[:3] != "```" for line in lines)
    return " ".join(lines) if is_plain else text


def _describe_change(change: RulesChange) -> str:
    if change.is_nothing:
        return "No rule differs, only the words around them."
    parts = [
        f"{what}: {'; '.join(names[:_MOST_NAMES])}."
        for what, names in (("New", change.added), ("Changed", change.changed), ("Gone", change.removed))
        if names
    ]
    return " ".join(parts)


def _changed_texts(rules: Rules, change: RulesChange) -> str:
    wanted = {*change.added, *change.changed}
    changed = [rule for rule in rules.rules if rule.name in wanted]
    return "\n".join(f"- {rule.name}: {_join_lines(rule.text)}" for rule in changed)
