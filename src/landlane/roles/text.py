"""Roles in words: what a role writes, may do and may not do, and what enforces it."""

from __future__ import annotations

from landlane.clients.model import NETWORK
from landlane.roles.model import DOCS_WORD, RELEASE_WORD, TESTS_WORD, VERBS, Safety
from landlane.roles.restrictions import COMMANDS, GIT, HOOK, KERNEL, LANDING, SETTINGS, RoleVerdict
from landlane.units import join_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from landlane.roles.model import Role
    from landlane.roles.restrictions import Restriction

_EVERYTHING = "**"
_PATHS = {
    _EVERYTHING: "everything",
    TESTS_WORD: "tests",
    DOCS_WORD: "documentation",
    RELEASE_WORD: "version, change log",
}
_SAFETY = {
    Safety.READ_ONLY: "nothing that it writes lands",
    Safety.PROPOSE: "the orchestrator judges its changes and commits them",
    Safety.COMMIT: "it commits and lands within its paths",
    Safety.TRUSTED: "it also deploys, or changes protected files",
}
_TOOLS = {"shell": "the shell", "network": "the network"}
# What a role may not do, by capability; its paths are described by `_paths_text`.
_NOT = {
    "shell": "use the shell",
    "subagents": "start subagents",
    "write outside": "write outside its workspace",
    "approve": "decide for a person",
}


def writes_text(role: Role) -> str:
    """Return what a role may write: `everything but tests`."""
    if role.is_read_only:
        return "nothing"
    denied = _words(role.denies)
    without = " but" if role.writes == (_EVERYTHING,) else ", not"
    return ", ".join(_words(role.writes)) + (f"{without} {join_words(denied)}" if denied else "")


def safety_text(role: Role) -> str:
    """Return the safety level of a role and what it means."""
    return f"{role.safety}: {_SAFETY[role.safety]}"


def _words(patterns: Sequence[str]) -> list[str]:
    return [_PATHS.get(pattern, pattern) for pattern in patterns]


def may_text(restrictions: Sequence[Restriction]) -> str:
    """Return everything that a role may do, in one line."""
    allowed = [one.capability for one in restrictions if one.verdict == RoleVerdict.ALLOWED]
    tools = [name for capability, name in _TOOLS.items() if capability in allowed]
    phrases = ["edit its paths"] if "edit" in allowed else ["read"]
    phrases += [f"use {join_words(tools)}".replace(" and the ", " and ")] if tools else []
    phrases += ["start subagents"] if "subagents" in allowed else []
    return ", ".join([*phrases, *(verb for verb in VERBS if verb in allowed)])


def not_text(role: Role, restriction: Restriction) -> str:
    """Return what a restriction forbids; empty if it forbids nothing, or if another one says the same."""
    capability = restriction.capability
    if restriction.verdict == RoleVerdict.ALLOWED:
        return ""
    if capability == "edit":
        return "" if role.is_read_only else "use edit tools"
    if capability == "paths":
        return _paths_text(role)
    if capability == "network":
        ports = ", ".join(map(str, role.connects or ())) or "none"
        limit = f"reach TCP ports (allowed: {ports})" if role.connects is not None else ""
        return " or ".join(filter(None, ("use web tools" if NETWORK not in role.tools else "", limit)))
    return _NOT.get(capability, capability)


def _paths_text(role: Role) -> str:
    if role.is_read_only:
        return "change files"
    denied = _words(role.denies)
    if role.writes != (_EVERYTHING,):
        return " or ".join([f"write anything but {', '.join(_words(role.writes))}", *denied])
    denied += [] if role.may_change_protected else ["protected files"]
    return f"write {' or '.join(denied)}" if denied else ""


def enforcement_text(restriction: Restriction, client: str) -> str:
    """Return what enforces a restriction: `refused by git hooks and at landing`."""
    own = f"landlane {restriction.capability}" if restriction.capability in VERBS else "landlane"
    own = "landlane gate" if restriction.capability == "approve" else own
    names = {SETTINGS: f"{client}'s settings", HOOK: "its hook", GIT: "git hooks", COMMANDS: own}
    by: list[str] = []
    for guard in restriction.guards:
        if guard.startswith(KERNEL):
            by.append("the sandbox")
        elif guard != LANDING:
            by.append(names[guard])
    parts = [f"by {by[0]}", *by[1:]] if by else []
    parts += ["at landing"] if LANDING in restriction.guards else []
    if parts:
        return f"refused {join_words(parts)}"
    return f"not enforced in {client}" if client else "not enforced outside a client"
