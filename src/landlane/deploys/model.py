"""Deploys: what was brought to which target, by whom, and what is live there now."""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.settings.model import DeploySettings
from landlane.text import check_label
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


RUNNING = "running"
VERIFYING = "verifying"
LIVE = "live"
FAILED = "failed"
SUPERSEDED = "superseded"

STATES = (RUNNING, VERIFYING, LIVE, FAILED, SUPERSEDED)
UNDER_WAY = (RUNNING, VERIFYING)

LONGEST_COMMAND = 1000
LONGEST_OUTPUT = 2000


@value
class DeployTarget:
    """What the settings say of a target; one that they do not name is made of everything."""

    name: str
    paths: tuple[str, ...] = ()
    verify: str = ""
    limit_ms: int = DeploySettings().limit_ms
    branch: str = ""
    has_gate: bool = False  # a person must have approved the very commit and command

    @property
    def lease(self) -> str:
        """What whoever deploys to it holds: the name of the claim, and of the lease of its process."""
        return f"deploy:{self.name}"


@value
class Deploy:
    """One deploy. Instants are milliseconds since 1970; `exit` is None until the command has ended."""

    id: str
    target: str
    state: str
    commit: str
    agent: str
    session: str
    task: str
    command: str
    began_at: int
    ended_at: int | None = None
    exit: int | None = None
    code: str = ""
    reason: str = ""
    output: str = ""
    verified: bool = False


def deploy_target(name: str, sections: Mapping[str, DeploySettings]) -> DeployTarget:
    """The target of this name, with what its section of the settings says.

    Raises:
        Malformed: that cannot name a target.
    """
    check_label(name, "target")
    if name != name.strip() or name.startswith("-") or any(letter in "*?[]{}:\\ " for letter in name):
        raise Malformed(
            f"{name!r} cannot name a target",
            code="BAD_TARGET",
            hint="use a plain word such as prod or staging-2",
        )
    section = sections.get(name, DeploySettings())
    return DeployTarget(
        name=name,
        paths=section.paths,
        verify=section.verify,
        limit_ms=section.limit_ms,
        branch=section.branch,
        has_gate=section.gate,
    )
