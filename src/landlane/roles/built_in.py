"""The built-in roles, and those that the settings define or change."""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.roles.model import DOCS_WORD, RELEASE_WORD, TESTS_WORD, Role
from landlane.settings.model import BUILT_IN_ROLES
from landlane.text import nearest_word
from landlane.values import as_dict, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.settings.model import Settings


_READING = ("read", "shell")

_WORKING = ("read", "edit", "shell", "network")

_BUILDING = ("claim", "commit", "land")


def _reader(name: str, summary: str, *more: str) -> Role:
    return Role(name=name, summary=summary, tools=(*_READING, *more), unix_sockets=False, udp=False)


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
            summary="plans and hands out work; changes no file itself, claims only names such as deploy:prod",
            tools=("read", "shell", "network", "agents"),
            verbs=("claim",),
        ),
        _writer("code", "changes the source, not the tests", ["**"], [TESTS_WORD]),
        _writer("test", "changes the tests, not the source", [TESTS_WORD]),
        _reader("debug", "finds out why something fails; changes nothing"),
        _reader("review", "judges the work of others; changes nothing"),
        _reader("verify", "runs checks and tells what it saw; changes nothing"),
        _reader("explore", "looks around and reports; changes nothing"),
        _writer("document", "changes documents", [DOCS_WORD], [TESTS_WORD]),
        _writer("refactor", "changes the form of source and tests, not what they do", ["**"]),
        _reader("security", "looks for weaknesses and reports them; changes nothing"),
        _reader("research", "reads widely, also on the network, and reports; changes nothing", "network"),
        Role(
            name="release",
            summary="versions, change logs and deployments",
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
        if "protected" in changes:
            changes["may_change_protected"] = changes.pop("protected")
        roles[name] = replace(base, name=name, **changes)
    return roles


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
    meant = f"did you mean {near}? " if near else ""
    return Malformed(
        f"there is no role {name[:40]!r}",
        code="UNKNOWN_ROLE",
        hint=f"{meant}one of {', '.join(known)}; or define it: [roles.{name[:40]}] in landlane.toml",
        nearest=near,
    )


def bound_by(settings: Settings, name: str) -> Role | None:
    """Return the role with this name, or None without one.

    A role that is no longer defined may only read, since its permissions are unknown.
    """
    if not name:
        return None
    try:
        return find_role(settings, name)
    except Malformed:
        return Role(name=name, summary="is not defined any more, so it may only read", tools=("read",))
