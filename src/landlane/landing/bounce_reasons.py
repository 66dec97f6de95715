"""The reasons to bounce an entry from the queue: code, text and hint of each."""

from __future__ import annotations

from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

REJECTED = "REJECTED"  # by a person

_MOST_NAMED = 5


@value
class BounceReason:
    """Why an entry is bounced, and what its author can do about it."""

    code: str
    reason: str
    hint: str


def conflict(branch: str, paths: Sequence[str], reasons: Sequence[str]) -> BounceReason:
    """It does not merge with the target branch."""
    named = ", ".join(paths[:_MOST_NAMED])
    named += f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
    reason = f"it conflicts with {branch} in {named}"
    if reasons:
        reason += f": {'; '.join(reasons[:3])}"
    hint = f"landlane sync --update merge, mend {named}, commit, and land again"
    return BounceReason(code="CONFLICT", reason=reason, hint=hint)


def check_failed(failure: str, other: str = "", commit: str = "") -> BounceReason:
    """A check fails on the merged tree; with `other`, only together with that commit of the target."""
    if not other:
        return BounceReason(code="CHECK_FAILED", reason=failure, hint="mend it, commit, and land again")
    hint = (
        f"landlane sync --update merge, mend what does not fit together with {commit[:12]},"
        " commit, and land again"
    )
    reason = f"{failure}, and only together with {other}, which has landed"
    return BounceReason(code="CHECK_FAILED", reason=reason, hint=hint)


def role_forbids(found: str, role: str) -> BounceReason:
    """It changes what its author's role may not change."""
    hint = (
        "take these paths out of the branch, and land again; leave them to an agent of another role: "
        f"`landlane role show {role}` tells what this one does"
    )
    return BounceReason(code="ROLE_FORBIDS", reason=found, hint=hint)


def settings_broken(trouble: str, file_name: str) -> BounceReason:
    """It would leave the target branch with settings that cannot be used."""
    return BounceReason(code="SETTINGS_BROKEN", reason=trouble, hint=f"mend {file_name}, and land again")


def rejected(person: str, why: str) -> BounceReason:
    """A person looked at it and said no."""
    hint = "read the reason, change the work, commit, and submit it again"
    return BounceReason(code=REJECTED, reason=f"{person} rejected it: {why}", hint=hint)


def ejected(agent: str, why: str) -> BounceReason:
    """Somebody took it out of the queue."""
    return BounceReason(code="EJECTED", reason=f"{agent}: {why}", hint="")
