"""Whether a role can do a task; `task add`, `plan check` and `run` all ask here."""

from __future__ import annotations

from landlane.roles.model import WORKER_ROLE, Scope
from landlane.tasks.model import COMMIT, PATHS, effective_kind, required_evidence
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from landlane.patterns.pattern import Pattern
    from landlane.roles.model import Role
    from landlane.settings.model import Settings
    from landlane.tasks.model import NewTask


def worker_role(settings: Settings, role: str, agent: str) -> str:
    """Return the role of a task's worker: its own, its agent's, that of the settings, or the default."""
    configured = settings.agents.get(agent)
    return role or (configured.role if configured is not None else "") or settings.run.role or WORKER_ROLE


def default_kind(role: Role | None, kind: str, *, has_output: bool) -> str:
    """Return the kind of a new task: a task for a role that changes nothing reports, and has no commit."""
    return kind or ("chore" if role is not None and role.is_read_only and not has_output else "")


def with_default_kind(role: Role | None, new: NewTask) -> NewTask:
    """Return a new task with the kind that suits its role."""
    kind = default_kind(role, new.kind, has_output=bool(new.output))
    return new if kind == new.kind else replace(new, kind=kind)


def why_unfit(
    settings: Settings,
    role: Role,
    patterns: Iterable[Pattern],
    *,
    kind: str,
    has_output: bool,
    is_in_git: bool = True,
) -> str:
    """Return why a worker in this role could never do a task; empty when it can."""
    if not role.safety.is_as_safe_as(settings.run.safety):
        return (
            f"the role {role.name} has the safety level {role.safety}; "
            f'workers may have "{settings.run.safety}" or a safer one ([run] safety)'
        )
    kind = effective_kind(kind, has_output=has_output, is_in_git=is_in_git)
    needs = required_evidence(kind, settings.tasks.evidence)
    if role.is_read_only:
        if COMMIT in needs or PATHS in needs:
            return (
                f"the role {role.name} changes nothing, and a task of kind {kind} needs a change: "
                "give it to another role, such as propose, or add it with --kind chore"
            )
        return ""
    scope = Scope(role, settings)
    reason = next((why for pattern in patterns if (why := scope.why_not_claimed(pattern))), "")
    return f"{reason}. give it to another role: `landlane role list`" if reason else ""
