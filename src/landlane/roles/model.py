"""Roles: what an agent may do, in the vocabulary that every guard uses; the built-in ones and the settings'.

A role is a list of tools, the paths it may write, and the verbs it may use. Only a person can approve,
whatever the role. A session without a role is only bound by claims and rules.
"""

from __future__ import annotations

from enum import StrEnum

from landlane.errors import Malformed, NotAllowed, PatternError, SettingsError
from landlane.patterns.pattern import LITERAL, NAME, alternatives_overlap, covers_alternative, parse
from landlane.settings.model import BUILT_IN_ROLES, PATH_WORDS, ROLE_TOOLS, ROLE_VERBS
from landlane.text import nearest_word
from landlane.values import as_dict, replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from landlane.patterns.pattern import Alternative, Pattern
    from landlane.settings.model import Settings


TOOLS = ROLE_TOOLS
VERBS = ROLE_VERBS
WORKER_ROLE = "propose"  # of a worker started without a role
TESTS_WORD, DOCS_WORD, RELEASE_WORD = PATH_WORDS

# Default locations of tests.
TESTS = (
    *("tests/**", "test/**", "spec/**", "**/tests/**", "**/test/**", "**/__tests__/**", "**/spec/**"),
    *("**/test_*.py", "**/*_test.py", "**/conftest.py", "**/*_test.go", "**/*_test.rs"),
    *("**/*.test.*", "**/*.spec.*", "**/*Test.java", "**/*Tests.cs", "**/*_spec.rb"),
)
DOCUMENTS = ("docs/**", "doc/**", "**/*.md", "**/*.rst", "**/*.adoc")
RELEASES = (
    *("CHANGELOG*", "**/CHANGELOG*", "HISTORY*", "NEWS*", "news/**"),
    *("VERSION", "**/version.*", "**/_version.*"),
    *("pyproject.toml", "setup.cfg", "setup.py", "package.json", "Cargo.toml", "pom.xml", "build.gradle*"),
)
# Files that make tools run code or grant permissions: no role may write them unless it lists them.
PROTECTED = (
    *(
        "**/.git/**",
        "**/.gitattributes",
        "**/.gitmodules",
        "**/.lfsconfig",
        "**/.githooks/**",
        "**/.husky/**",
    ),
    *(".pre-commit-config.yaml", "lefthook.yml", ".github/workflows/**", ".github/actions/**"),
    *(".github/hooks/**", ".gitlab-ci.yml", ".circleci/**", "Jenkinsfile", "**/.envrc"),
    *("**/.claude/**", "**/.codex/**", "**/.gemini/**", "**/.qwen/**", "**/.opencode/**", "**/.cursor/**"),
    *(
        "**/.copilot/**",
        "**/opencode.json*",
        "**/.mcp.json",
        "**/.vscode/**",
        ".github/copilot-instructions.md",
    ),
    *("landlane.toml", "RULES.md", "**/AGENTS.md", "**/CLAUDE.md", "**/GEMINI.md", "**/QWEN.md"),
)
# Characters that some file systems ignore: names that differ only by them are the same file.
_UNSEEN = dict.fromkeys([*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])


class Safety(StrEnum):
    """How much harm a role can do, safest first."""

    READ_ONLY = "read-only"  # nothing that it writes lands
    PROPOSE = "propose"  # the orchestrator commits its changes after judging them
    COMMIT = "commit"  # it commits and lands within its paths
    TRUSTED = "trusted"  # it also deploys, or changes files that decide what is allowed

    def is_as_safe_as(self, other: str) -> bool:
        """Return whether this level is the other one or a safer one."""
        levels = list(Safety)
        return levels.index(self) <= levels.index(Safety(other))


@value
class Role:
    """What an agent may do. `writes` are patterns; `denies` removes from them. Scratch is always writable."""

    name: str
    summary: str
    tools: tuple[str, ...]
    writes: tuple[str, ...] = ()
    denies: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    may_change_protected: bool = False
    connects: tuple[int, ...] | None = None  # TCP ports it may reach; None: all
    unix_sockets: bool = False  # of other programs
    udp: bool = True

    @property
    def is_read_only(self) -> bool:
        """Whether nothing that it writes lands."""
        return not self.writes

    @property
    def safety(self) -> Safety:
        """How much harm it can do."""
        if "deploy" in self.verbs or (self.writes and self.may_change_protected):
            return Safety.TRUSTED
        if self.is_read_only:
            return Safety.READ_ONLY
        return Safety.COMMIT if {"commit", "land"} & set(self.verbs) else Safety.PROPOSE


def why_not_verb(role: Role | None, verb: str) -> str:
    """Return why a role may not use a verb; empty when it may."""
    if role is None or verb in role.verbs:
        return ""
    return f"the role {role.name} may not {verb}"


def forbidden(agent: str, role: str, reason: str, **facts: Any) -> NotAllowed:
    """Return the error for what a role forbids."""
    return NotAllowed(
        f"{agent} cannot do that: {reason}",
        code="ROLE_FORBIDS",
        hint=f"see what {role} may do: landlane role show {role}",
        holder=agent,
        role=role,
        **facts,
    )


class Scope:
    """The paths that a role may write, expanded once for many checks."""

    def __init__(self, role: Role, settings: Settings) -> None:
        words = path_words(settings)
        self.role = role
        self._writes = _branches(expand_words(role.writes, words))
        self._denies = _branches(expand_words(role.denies, words))
        self._protected = () if role.may_change_protected else _branches(protected_patterns(settings))

    def why_not(self, path: str) -> str:
        """Return why the role may not write a path relative to the root; empty when it may.

        Names are compared without case and without characters that some file systems ignore.
        """
        role = self.role
        if role.is_read_only:
            return f"the role {role.name} changes no file"
        try:
            forms = _forms(path)
        except PatternError as error:
            return f"{path} cannot be judged: {error.message}"
        if any(_covers(self._protected, form) for form in forms):
            return f"{path} decides what tools run or what is allowed: the role {role.name} may not change it"
        if any(_covers(self._denies, form) or not _covers(self._writes, form) for form in forms):
            return f"the role {role.name} may not change {path}"
        return ""

    def why_not_claimed(self, pattern: Pattern) -> str:
        """Return why the role may not claim a pattern; a glob is fine if some path of it is writable."""
        if pattern.kind is NAME:
            return ""
        if pattern.kind is LITERAL:
            return self.why_not(pattern.text.removeprefix("./"))
        folded = parse(pattern.text, ignore_case=True).alternatives
        is_inside = any(
            alternatives_overlap(branch, one)
            and not any(covers_alternative(taken, branch) for taken in (*self._denies, *self._protected))
            for branch in folded
            for one in self._writes
        )
        return "" if is_inside else f"the role {self.role.name} may change nothing of {pattern.text}"


def _forms(path: str) -> list[Alternative]:
    """Return a path normalised for comparison, also as file systems that ignore characters see it."""
    plain = "/".join(part.translate(_UNSEEN).rstrip(" .") or part for part in path.split("/"))
    (first,) = parse(path, literal=True, ignore_case=True).alternatives
    return [first] if plain == path else [first, *parse(plain, literal=True, ignore_case=True).alternatives]


def _branches(patterns: Iterable[str]) -> tuple[Alternative, ...]:
    return tuple(branch for text in patterns for branch in parse(text, ignore_case=True).alternatives)


def _covers(branches: Sequence[Alternative], wanted: Alternative) -> bool:
    return any(covers_alternative(branch, wanted) for branch in branches)


def expand_words(patterns: Sequence[str], words: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the patterns with words such as @tests expanded."""
    return [one for text in patterns for one in words.get(text, (text,))]


def path_words(settings: Settings) -> dict[str, Sequence[str]]:
    """Return the patterns of words such as @tests, from the settings or by default."""
    return {
        TESTS_WORD: TESTS if settings.paths.tests is None else settings.paths.tests,
        DOCS_WORD: DOCUMENTS if settings.paths.documents is None else settings.paths.documents,
        RELEASE_WORD: RELEASES if settings.paths.releases is None else settings.paths.releases,
    }


def protected_patterns(settings: Settings) -> list[str]:
    """Return the paths that no role may change unless it lists them, with the rules file."""
    rules = settings.rules.file
    is_here = not rules.startswith("/") and ".." not in rules.split("/")
    return [*PROTECTED, *([rules] if is_here else []), *settings.paths.protected]


def may_commit(role: Role) -> bool:
    """Return whether a worker in this role commits itself instead of returning a patch."""
    return bool(role.writes) and "commit" in role.verbs


_READING = ("read", "shell")

_WORKING = ("read", "edit", "shell", "network")

_BUILDING = ("claim", "commit", "land")


def _reader(name: str, summary: str, *more: str) -> Role:
    return Role(name=name, summary=summary, tools=(*_READING, *more), udp=False)


def _writer(name: str, summary: str, writes: Sequence[str], denies: Sequence[str] = ()) -> Role:
    return Role(
        name=name,
        summary=summary,
        tools=_WORKING,
        writes=tuple(writes),
        denies=tuple(denies),
        verbs=_BUILDING,
    )


BUILT_IN: dict[str, Role] = {
    role.name: role
    for role in (
        Role(
            name="orchestrator",
            summary="plans and hands out work",
            tools=("read", "shell", "network", "agents"),
            verbs=("claim",),
        ),
        Role(
            name="propose",
            summary="proposes changes, which the orchestrator commits",
            tools=("read", "edit", "shell"),
            writes=("**",),
            unix_sockets=False,
            udp=False,
        ),
        _writer("code", "changes source, not tests", ["**"], [TESTS_WORD]),
        _writer("test", "changes tests, not source", [TESTS_WORD]),
        _reader("debug", "finds out why something fails"),
        _reader("review", "judges the work of others"),
        _reader("verify", "runs checks and reports the results"),
        Role(
            name="explore",
            summary="explores the code and reports",
            tools=("read",),
            unix_sockets=False,
            udp=False,
        ),
        _writer("document", "changes documentation", [DOCS_WORD], [TESTS_WORD]),
        _writer("refactor", "restructures source and tests", ["**"]),
        _reader("security", "finds and reports vulnerabilities"),
        _reader("research", "researches, also on the network, and reports", "network"),
        Role(
            name="release",
            summary="prepares versions and deploys",
            tools=_WORKING,
            writes=(RELEASE_WORD,),
            verbs=(*_BUILDING, "deploy"),
        ),
    )
}
assert tuple(BUILT_IN) == BUILT_IN_ROLES  # the settings are checked against these names


def roles_of(settings: Settings) -> dict[str, Role]:
    """Return the built-in roles, with those that the settings change or add."""
    roles = dict(BUILT_IN)
    for name, given in settings.roles.items():
        base = roles.get(given.like or name) or Role(name=name, summary="", tools=("read",))
        changes = {field: item for field, item in as_dict(given).items() if item is not None}
        del changes["like"]
        required = changes.pop("safety", "")
        if "protected" in changes:
            changes["may_change_protected"] = changes.pop("protected")
        roles[name] = replace(base, name=name, **changes)
        if required and not roles[name].safety.is_as_safe_as(required):
            raise SettingsError(
                f'[roles.{name}] safety = "{required}", but the role is {roles[name].safety}: '
                f"it may {_powers_text(roles[name])}",
                code="ROLE_UNSAFE",
                hint=f"take that away from the role, or demand less: "
                f"landlane config set roles.{name}.safety {roles[name].safety}",
            )
    return roles


def _powers_text(role: Role) -> str:
    """Return what makes a role as unsafe as it is."""
    if role.safety == Safety.TRUSTED:
        return "deploy" if "deploy" in role.verbs else "change protected files"
    return " and ".join(verb for verb in ("commit", "land") if verb in role.verbs) or "propose changes"


def find_role(settings: Settings, name: str) -> Role:
    """Return the role of this name.

    Raises:
        Malformed: there is no such role.
    """
    if name in BUILT_IN and not settings.roles:
        return BUILT_IN[name]
    roles = roles_of(settings)
    found = roles.get(name)
    if found is None:
        raise unknown_role(name, list(roles))
    return found


def unknown_role(name: str, known: list[str]) -> Malformed:
    """Return the error for an unknown role, naming the closest one."""
    near = nearest_word(name, known, cutoff=0.5)
    return Malformed(
        f"unknown role {name[:40]}",
        code="UNKNOWN_ROLE",
        hint=f"{f'did you mean {near}? ' if near else ''}all roles: landlane role list",
        nearest=near,
        **({"unknown": name, "meant": near} if near else {}),
    )


def role_or_read_only(settings: Settings, name: str) -> Role | None:
    """Return the role with this name, or None without one.

    A role that is no longer defined may only read, since its permissions are unknown.
    """
    if not name:
        return None
    try:
        return find_role(settings, name)
    except Malformed:
        return Role(name=name, summary="is no longer defined, so it may only read", tools=("read",))
