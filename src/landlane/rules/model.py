"""Rules of a repository: parse them from a text by name, and derive the version from its content.

A rule is a heading with the text below it, or an item of a numbered list. A heading above such items or above
deeper headings, with no text of its own in between, only groups them. Headings and items in comments or
fenced code are ignored.
"""

from __future__ import annotations

from landlane.ids import digest
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST_BYTES = 131_072  # of a rules file; a model reads it at every start
LONGEST_NAME = 80
_VERSION_LETTERS = 12
_SHORTEST_PREFIX = 4
_DEEPEST = 6


@value
class Rule:
    """One rule: its name and its text."""

    name: str
    text: str

    @property
    def key(self) -> str:
        """The name as it is compared."""
        return rule_key(self.name)


@value
class Rules:
    """The parsed rules file."""

    version: str
    text: str
    rules: tuple[Rule, ...]


@value
class RulesChange:
    """The differences between two versions, by rule name."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]

    @property
    def is_nothing(self) -> bool:
        """Whether no rule differs, only the text around them."""
        return not (self.added or self.changed or self.removed)


def rule_key(name: str) -> str:
    """Return a rule's name for comparison: without case and without a final full stop."""
    return " ".join(name.casefold().split()).rstrip(".:")


def normal_text(text: str) -> str:
    """Return the normalised text of a version: no byte order mark, plain line ends, one at the end."""
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return plain.rstrip() + "\n"


def version_of(text: str) -> str:
    """Return the version of a text: a digest that only ignores the kind of line ends."""
    return digest(normal_text(text))[:_VERSION_LETTERS]


def is_version(text: str, version: str) -> bool:
    """Return whether a typed version, or its beginning, matches this one."""
    return len(text) >= _SHORTEST_PREFIX and version.startswith(text.lower())


def read_rules(text: str) -> Rules:
    """Return the rules in a text; without headings or items it is a single rule, if it is not empty."""
    plain = normal_text(text)
    sections = _sections(plain)
    title = ""
    if sections[1:] and sections[1][0] == 1:
        # The title of the document: the text below it is the introduction.
        title = sections[1][1]
        sections = [(0, "", [*sections[0][2], *sections[1][2]]), *sections[2:]]
    found = _rules_in(sections)
    preamble = "\n".join(sections[0][2]).strip()
    if not found and preamble:
        found = [Rule(name=_short(title or _first_words(preamble)), text=preamble)]
    return Rules(version=version_of(plain), text=plain, rules=tuple(_number_duplicates(found)))


def _number_duplicates(rules: Sequence[Rule]) -> list[Rule]:
    """Return the rules with a number appended to repeated names."""
    found: dict[str, Rule] = {}
    counts: dict[str, int] = {}
    for rule in rules:
        counts[rule.key] = counts.get(rule.key, 0) + 1
        named = rule
        while named.key in found:
            named = Rule(name=f"{rule.name[: LONGEST_NAME - 8]} ({counts[rule.key]})", text=rule.text)
            counts[rule.key] += 1
        found[named.key] = named
    return list(found.values())


def digests_of(rules: Rules) -> dict[str, str]:
    """Return each rule's name and text digest, enough to find later which rules changed."""
    return {rule.name: digest(rule.text)[:_VERSION_LETTERS] for rule in rules.rules}


def compare(before: Mapping[str, str], rules: Rules) -> RulesChange:
    """Return the differences from an earlier version, given its `digests_of`."""
    now = digests_of(rules)
    then = {rule_key(name): (name, kept) for name, kept in before.items()}
    here = {rule_key(name) for name in now}
    return RulesChange(
        added=tuple(name for name in now if rule_key(name) not in then),
        changed=tuple(name for name in now if then.get(rule_key(name), ("", now[name]))[1] != now[name]),
        removed=tuple(name for key, (name, _) in then.items() if key not in here),
    )


Section = tuple[int, str, list[str]]  # the level of its heading, its name, and the lines below it


def _sections(text: str) -> list[Section]:
    """Split the text at its headings; the first section is the text above all of them."""
    sections: list[Section] = [(0, "", [])]
    code_mark = ""
    for line in _without_comments(text).split("\n"):
        mark = line.lstrip()[:3]
        if code_mark:
            code_mark = "" if mark == code_mark else code_mark
        elif mark in ("```", "~~~"):
            code_mark = mark
        elif level := _heading_level(line):
            sections.append((level, _heading_name(line[level:]), []))
            continue
        sections[-1][2].append(line)
    return sections


def _without_comments(text: str) -> str:
    """Return the text without `<!-- … -->`; an unterminated comment is kept."""
    kept: list[str] = []
    at = 0
    while (begin := text.find("<!--", at)) >= 0 and (end := text.find("-->", begin)) >= 0:
        kept.append(text[at:begin])
        at = end + len("-->")
    return "".join(kept) + text[at:]


def _heading_level(line: str) -> int:
    level = len(line) - len(line.lstrip("#"))
    return level if 0 < level <= _DEEPEST and line[level : level + 1] in (" ", "\t") else 0


def _heading_name(text: str) -> str:
    name = text.strip().rstrip("#").strip()
    number, rest = _numbered(name)
    return _short(_plain(rest if number else name))


def _rules_in(sections: Sequence[Section]) -> list[Rule]:
    found = [Rule(name=name, text=text) for name, text in _items(sections[0][2])]
    at = 1
    while at < len(sections):
        level, name, lines = sections[at]
        at += 1
        own = "\n".join(lines).strip()
        if items := _items(lines) if _begins_item(own) else []:
            found += [Rule(name=item, text=text) for item, text in items]
            continue
        if not own and at < len(sections) and sections[at][0] > level:
            continue  # a heading that only groups headings
        parts = [own]
        while at < len(sections) and sections[at][0] > level:
            parts += [f"{'#' * sections[at][0]} {sections[at][1]}", "\n".join(sections[at][2]).strip()]
            at += 1
        found.append(Rule(name=name, text="\n\n".join(part for part in parts if part)))
    return found


def _begins_item(text: str) -> bool:
    return bool(_numbered(text.split("\n", 1)[0])[0])


def _items(lines: Sequence[str]) -> list[tuple[str, str]]:
    """Return the items of a numbered list; lines without a number belong to the item above."""
    items: list[list[str]] = []
    for line in lines:
        number, rest = _numbered(line)
        if number:
            items.append([rest])
        elif items:
            items[-1].append(line.strip())
    return [_item("\n".join(item).strip()) for item in items]


def _item(text: str) -> tuple[str, str]:
    """Return the name of an item (its bold beginning or first sentence) and its text."""
    if text.startswith("**") and (end := text.find("**", 2)) > 0:
        return _short(_plain(text[2:end])), text[end + 2 :].lstrip(" .:–—-\n") or _plain(text[2:end])
    return _short(_first_words(text)), text


def _first_words(text: str) -> str:
    line = text.split("\n", 1)[0]
    ends = [at for mark in (". ", ": ", " – ", " — ", "; ") if (at := line.find(mark)) > 0]
    return _plain(line[: min(ends)] if ends else line)


def _numbered(line: str) -> tuple[str, str]:
    """Return the number at the start of a line and the rest: `3. text` or `3) text`."""
    digits = 0
    while digits < min(len(line), 4) and line[digits] in "0123456789":
        digits += 1
    if digits and line[digits : digits + 2] in (". ", ") "):
        return line[:digits], line[digits + 2 :].strip()
    return "", line


def _plain(text: str) -> str:
    return text.replace("**", "").replace("`", "").strip().rstrip(".:").strip()


def _short(name: str) -> str:
    if len(name) > LONGEST_NAME:
        return name[: LONGEST_NAME - 1] + "…"
    return name if rule_key(name) else "unnamed"


# What `landlane init` writes.
RULES_TEMPLATE = """\
# Rules

Every session reads these rules at its start and works under the version it read. A change reaches
running sessions with their next tool call. `landlane rules` shows who has not read the newest.

## 1. Verify before done

Nothing is done because it was written. Verify it through the real public surface: run the program,
call the API or open the page as a user would, besides the check of the task. See it pass on what
you committed, then report with `landlane done TASK`. If you could not verify something, say which
part.

## 2. Honest reporting

Report what happened, not what was hoped for: what failed, what was skipped, what is a guess.
Never claim a test, a commit or a deploy that you did not see for yourself.

## 3. No placeholders in production

No stubs, fake data, silenced checks or "later" in what lands. Nothing that says TODO, TBD or
"coming soon" ships: landing refuses such lines (`[landing] placeholders`). If a part cannot be
finished now, leave it out and add a task for it: `landlane task add`.

## 4. Load memory before acting

Read the state, the decisions and the lessons that were shown to you at the start, and the handoff
of your task, before the first change. Do not decide again what was decided there; if it is wrong,
say so and change the record first. Before you act on a shared value, check that it still holds:
`landlane state check KEY=VERSION`.

## 5. Claim before you change

Change only paths that you hold: `landlane claim PATH`. When a path is refused, do something else
or wait with `landlane claim PATH --wait 10m`. Never go round a refusal through the shell, and
never touch, revert, stage or commit the work of others.

## 6. Sync before you deploy

Look where you stand with `landlane sync` before you land or deploy, and deploy only with
`landlane deploy TARGET -- COMMAND`. What is behind, dirty or not landed is not shipped.

## 7. Keep working through interruptions

Context resets included. A refused path, a failed command or a message in between is no reason to
stop. Note it, do what can be done without it, and come back. Your context may be reset at any time:
commit often, and write decisions and the next step down where the next session finds them
(`landlane state`, the task, the handoff). After a reset, start with `landlane status` and
`landlane next --resume`; do not start over. Give a task back with `landlane fail TASK --why WHY`
only when nothing is left to try.

<!-- Three places for the project's own rules. Replace the text, and move a rule below this comment to
let it hold. How to change rules so that they reach every session: docs/howto/rules.md of Landlane.

## 8. Migrations only add

Older releases run on the same database. Drop nothing before the next release is out.

## 9. Whom to ask

Questions about money, secrets and legal texts go to a person: `landlane gate ask TASK --why WHY`.

## 10. Style

The conventions of this project, and where they are written down.
-->
"""
