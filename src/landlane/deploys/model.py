"""Deploys: which commit was deployed to which target, by whom, and which one is live there."""

from __future__ import annotations

from enum import StrEnum

from landlane.errors import Malformed
from landlane.settings.model import DeploySettings
from landlane.text import check_label
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


class DeployState(StrEnum):
    """The state of a deploy."""

    RUNNING = "running"
    VERIFYING = "verifying"  # the command has succeeded, and the target's check runs
    LIVE = "live"
    FAILED = "failed"
    SUPERSEDED = "superseded"  # it was live until a later deploy


RUNNING, VERIFYING, LIVE, FAILED, SUPERSEDED = DeployState
UNFINISHED = (RUNNING, VERIFYING)

# `Deploy.become` makes every change and checks it here.
TRANSITIONS: Mapping[DeployState, Sequence[DeployState]] = {
    RUNNING: (VERIFYING, LIVE, FAILED),
    VERIFYING: (LIVE, FAILED),
    LIVE: (SUPERSEDED,),
    FAILED: (),
    SUPERSEDED: (),
}

CHILD = "child"  # in the record of an unfinished deploy: the process of its command
MAX_COMMAND_CHARS = 1000
MAX_OUTPUT_CHARS = 2000


@value
class DeployTarget:
    """A deploy target and its section of the settings."""

    name: str
    settings: DeploySettings

    @property
    def lease(self) -> str:
        """The name of the claim and of the process lease that a deploy to this target holds."""
        return f"deploy:{self.name}"


@value
class Deploy:
    """One deploy. Times are wall-clock milliseconds; `exit` is None until the command has ended."""

    id: str
    target: str
    state: DeployState
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
    verify: str = ""  # the command that verified it

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Deploy:
        """Return the deploy that a record describes, without the process of its command."""
        fields = {key: item for key, item in document.items() if key != CHILD}
        fields["state"] = DeployState(document["state"])
        return cls(**fields)

    def become(self, state: DeployState, **changes: object) -> Deploy:
        """Return the deploy after a change of its state.

        Raises:
            ValueError: `TRANSITIONS` does not allow the change.
        """
        if state not in TRANSITIONS[self.state]:
            raise ValueError(f"{self.id} is {self.state} and cannot become {state}")
        return replace(self, state=state, **changes)


def deploy_target(name: str, sections: Mapping[str, DeploySettings]) -> DeployTarget:
    """Return the target of this name; one without a section in the settings has the defaults.

    Raises:
        Malformed: this is not a valid name.
    """
    check_label(name, "target")
    if name != name.strip() or name.startswith("-") or any(letter in "*?[]{}:\\ " for letter in name):
        raise Malformed(
            f"{name!r} is not a valid target name",
            code="BAD_TARGET",
            hint="use letters, digits, - and _, such as prod or staging-2",
        )
    return DeployTarget(name=name, settings=sections.get(name, DeploySettings()))
