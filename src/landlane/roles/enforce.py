"""Enforce the roles of sessions for every guard, and record each refusal."""

from __future__ import annotations

from landlane.errors import StoreError
from landlane.roles.model import Scope, find_role, forbidden, role_or_read_only, why_not_verb
from landlane.rules.violations import STAY_IN_ROLE, record_violation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from landlane.patterns.pattern import Pattern
    from landlane.repository import Repository
    from landlane.roles.model import Role
    from landlane.sessions.model import Session
    from landlane.settings.model import Settings


_MOST_NAMED = 50
_LAST: list[Any] = []


def role_of(repo: Repository, session: Session, settings: Settings | None = None) -> Role | None:
    """Return the role of a session, or None. `settings` overrides those of the repository."""
    return role_or_read_only(settings or repo.settings, session.role)


def check_known(repo: Repository, role: str) -> None:
    """Refuse a role that is not defined.

    Raises:
        Malformed: there is no role of this name.
    """
    if role:
        find_role(repo.settings, role)


def _scope_of(role: Role, settings: Settings) -> Scope:
    """Return the expanded paths of a role, once for many checks by a shell call."""
    if not _LAST or _LAST[0] != role or _LAST[1] is not settings:
        _LAST[:] = [role, settings, Scope(role, settings)]
    return _LAST[2]


def may_write(repo: Repository, session: Session, path: str) -> str:
    """Return why a session's role forbids changing a path relative to the root; empty when it may."""
    role = role_of(repo, session) if session.role else None
    return _scope_of(role, repo.settings).why_not(path) if role is not None else ""


def not_writable(repo: Repository, session: Session, paths: Sequence[str]) -> dict[str, str]:
    """Return the paths that a session's role may not change, each with the reason."""
    role = role_of(repo, session) if session.role else None
    if role is None:
        return {}
    scope = _scope_of(role, repo.settings)
    return {path: reason for path in paths if (reason := scope.why_not(path))}


def check_verb(
    repo: Repository, session: Session, verb: str, *, guard: str, settings: Settings | None = None
) -> None:
    """Refuse a verb that a session's role does not allow.

    Raises:
        NotAllowed: the role does not allow the verb.
    """
    reason = why_not_verb(role_of(repo, session, settings), verb) if session.role else ""
    if reason:
        record_role_violation(repo, session, guard=guard, what=reason)
        raise forbidden(session.agent, session.role, reason, verb=verb)


def check_paths(repo: Repository, session: Session, paths: Sequence[str], *, guard: str) -> None:
    """Refuse changes to paths that a session's role may not write.

    Raises:
        NotAllowed: with all of the forbidden paths.
    """
    found = not_writable(repo, session, paths) if session.role else {}
    if found:
        refuse_paths(repo, session, session.role, found, guard=guard)


def refuse_paths(repo: Repository, session: Session, role: str, found: dict[str, str], *, guard: str) -> None:
    """Record these paths as a violation, and refuse them.

    Raises:
        NotAllowed: always.
    """
    first = next(iter(found.values()))
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    record_role_violation(repo, session, guard=guard, what=first, paths=tuple(found))
    named = list(found)[:_MOST_NAMED]
    raise forbidden(session.agent, role, f"{first}{more}", path=named[0], paths=named)


def check_claim(repo: Repository, session: Session, patterns: Sequence[Pattern]) -> None:
    """Refuse a claim that a session's role cannot use.

    Raises:
        NotAllowed: the role may not claim, or cannot write any path of one of the patterns.
    """
    role = role_of(repo, session)
    if role is None:
        return
    reason = why_not_verb(role, "claim")
    if reason:
        record_role_violation(
            repo, session, guard="claim", what=reason, paths=tuple(one.text for one in patterns)
        )
        raise forbidden(session.agent, role.name, reason, verb="claim", pattern=patterns[0].text)
    scope = _scope_of(role, repo.settings)
    found = {pattern.text: reason for pattern in patterns if (reason := scope.why_not_claimed(pattern))}
    if found:
        refuse_paths(repo, session, role.name, found, guard="claim")


def record_role_violation(
    repo: Repository, session: Session | None, *, guard: str, what: str, paths: tuple[str, ...] = ()
) -> None:
    """Record a violation of a role; a store failure does not lift the refusal."""
    texts = tuple(path.encode("utf-8", "backslashreplace").decode() for path in paths)
    what = what.encode("utf-8", "backslashreplace").decode()
    try:
        record_violation(repo, session, rule=STAY_IN_ROLE, guard=guard, what=what, paths=texts)
    except StoreError:
        return
