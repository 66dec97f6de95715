"""Rules: the constitution of a repository as a text, the rules in it by name, and its version by content.

A rule is a heading with the text below it, or an item of a numbered list. A heading above such items or above
deeper headings, with no words of its own in between, only groups them. What stands in comments or in fenced
code begins no rule.
"""

from __future__ import annotations

from landlane.ids import digest
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST_BYTES = 131_072  # of a file of rules; nobody reads more, least of all a model at each start
LONGEST_NAME = 80
_VERSION_LETTERS = 12
_SHORTEST_PREFIX = 4
_DEEPEST = 6


@value
class Rule:
    """One rule: the name by which it is spoken of, and what it says."""

    name: str
    text: str

    @property
    def key(self) -> str:
        """What makes two names the same."""
        return rule_key(self.name)


@value
class Rules:
    """A file of rules as it was read."""

    version: str
    text: str
    rules: tuple[Rule, ...]


@value
class RulesChange:
    """What differs between two versions, by the names of the rules."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]

    @property
    def is_nothing(self) -> bool:
        """Whether no rule differs, only words around them."""
        return not (self.added or self.changed or self.removed)


def rule_key(name: str) -> str:
    """A rule's name as it is compared: without case, and without the full stop at its end."""
    return " ".join(name.casefold().split()).rstrip(".:")


def normal_text(text: str) -> str:
    """The text that a version stands for: no byte order mark, plain line ends, exactly one at the end."""
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return plain.rstrip() + "\n"


def version_of(text: str) -> str:
    """The version of a text: how its lines end makes no difference, everything else does."""
    return digest(normal_text(text))[:_VERSION_LETTERS]


def is_version(text: str, version: str) -> bool:
    """Whether a typed version, perhaps only its beginning, means this one."""
    return len(text) >= _SHORTEST_PREFIX and version.startswith(text.lower())


def read_rules(text: str) -> Rules:
    """The rules in a text. One without headings or items is one rule as a whole; an empty one has none."""
    plain = normal_text(text)
    sections = _sections(plain)
    title = ""
    if sections[1:] and sections[1][0] == 1:
        # The title of it all: what stands below it comes before the rules.
        title = sections[1][1]
        sections = [(0, "", [*sections[0][2], *sections[1][2]]), *sections[2:]]
    found = _rules_in(sections)
    preamble = "\n".join(sections[0][2]).strip()
    if not found and preamble:
        found = [Rule(name=_short(title or _first_words(preamble)), text=preamble)]
    return Rules(version=version_of(plain), text=plain, rules=tuple(_told_apart(found)))


def _told_apart(rules: Sequence[Rule]) -> list[Rule]:
    """The rules with a number behind a name that was there before."""
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
    """Each rule's name and what tells its text from another: enough to say later which were changed."""
    return {rule.name: digest(rule.text)[:_VERSION_LETTERS] for rule in rules.rules}


def compare(before: Mapping[str, str], rules: Rules) -> RulesChange:
    """What is different now from an earlier version, of which `digests_of` was kept."""
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
    """The text cut at its headings; the first section is what stands above all of them."""
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
    """The text without `<!-- … -->`; one that never ends hides nothing."""
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
            continue  # a heading for headings
        parts = [own]
        while at < len(sections) and sections[at][0] > level:
            parts += [f"{'#' * sections[at][0]} {sections[at][1]}", "\n".join(sections[at][2]).strip()]
            at += 1
        found.append(Rule(name=name, text="\n\n".join(part for part in parts if part)))
    return found


def _begins_item(text: str) -> bool:
    return bool(_numbered(text.split("\n", 1)[0])[0])


def _items(lines: Sequence[str]) -> list[tuple[str, str]]:
    """The items of a numbered list; what stands below one without a number belongs to it."""
    items: list[list[str]] = []
    for line in lines:
        number, rest = _numbered(line)
        if number:
            items.append([rest])
        elif items:
            items[-1].append(line.strip())
    return [_item("\n".join(item).strip()) for item in items]


def _item(text: str) -> tuple[str, str]:
    """The name of an item, which is its bold beginning or its first sentence, and its text."""
    if text.startswith("**") and (end := text.find("**", 2)) > 0:
        return _short(_plain(text[2:end])), text[end + 2 :].lstrip(" .:–—-\n") or _plain(text[2:end])
    return _short(_first_words(text)), text


def _first_words(text: str) -> str:
    line = text.split("\n", 1)[0]
    ends = [at for mark in (". ", ": ", " – ", " — ", "; ") if (at := line.find(mark)) > 0]
    return _plain(line[: min(ends)] if ends else line)


def _numbered(line: str) -> tuple[str, str]:
    """The number at the beginning of a line and what follows: `3. text` or `3) text`."""
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


# ------------------------------------------------------------------------------------- what init writes

RULES_TEMPLATE = """\
# Rules

Every session reads these rules at its start and works under the version it read. A change reaches
running sessions with their next tool call. `landlane rules` shows who has not read the newest.

## 1. Verify before done

Nothing is done because it was written. Run the check, see it pass on what you committed, then
report with `landlane done TASK`. If you could not verify something, say which part.

## 2. Honest reporting

Report what happened, not what was hoped for: what failed, what was skipped, what is a guess.
Never claim a test, a commit or a deploy that you did not see for yourself.

## 3. No placeholders in production

No stubs, fake data, silenced checks or "later" in what lands. If a part cannot be finished now,
leave it out and add a task for it: `landlane task add`.

## 4. Load memory before acting

Read the state, the decisions and the lessons that were shown to you at the start, and the handoff
of your task, before the first change. Do not decide again what was decided there; if it is wrong,
say so and change the record first.

## 5. Claim before you change

Change only paths that you hold: `landlane claim PATH`. When a path is refused, do something else
or wait with `landlane claim PATH --wait 10m`. Never go round a refusal through the shell, and
never touch, revert, stage or commit the work of others.

## 6. Sync before you deploy

Look where you stand with `landlane sync` before you land or deploy, and deploy only with
`landlane deploy TARGET -- COMMAND`. What is behind, dirty or not landed is not shipped.

## 7. Keep working through interruptions

A refused path, a failed command or a message in between is no reason to stop. Note it, do what
can be done without it, and come back. Give a task back with `landlane fail TASK --why WHY` only
when nothing is left to try.

<!-- The project's own rules: add them below, each under a heading of its own, such as

## 8. Migrations only add

Older releases run on the same database. Drop nothing before the next release is out.
-->
"""
