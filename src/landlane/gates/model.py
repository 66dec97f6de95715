"""Gates: questions that only a person may answer, their states, and how their risk is scored."""

from __future__ import annotations

from enum import StrEnum

from landlane.errors import Malformed, NotAllowed
from landlane.text import check_text
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


class GateState(StrEnum):
    """The state of a gate."""

    WAITING = "waiting"
    APPROVED = "approved"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"


WAITING, APPROVED, REJECTED, WITHDRAWN = GateState
ANSWERED = (APPROVED, REJECTED)


class GateKind(StrEnum):
    """What a gate is about, riskiest first."""

    FINANCIAL = "financial"
    LEGAL = "legal"
    CREDENTIALS = "credentials"
    DEPLOY = "deploy"
    APPROVAL = "approval"
    TASTE = "taste"


DEPLOY, APPROVAL = GateKind.DEPLOY, GateKind.APPROVAL

# Only the answer to a deploy can be changed, because it takes effect later, when the deploy is made.
_TRANSITIONS: Mapping[GateState, Sequence[GateState]] = {
    WAITING: (APPROVED, REJECTED, WITHDRAWN),
    APPROVED: ANSWERED,
    REJECTED: ANSWERED,
    WITHDRAWN: (),
}

# The risk of each kind before anything is known about the change.
_BASE_RISK: Mapping[str, int] = dict(zip(GateKind, (90, 80, 70, 60, 40, 10), strict=True))

LONGEST_WHY = 2000
_MOST_ABOUT = 20
_LONGEST_ABOUT = 4000
_DIGEST_KEYS = ("commit", "head", "plan", "hash")


@value
class Gate:
    """One question to a person. Instants are wall-clock milliseconds."""

    id: str
    task: str
    kind: GateKind
    why: str
    about: Mapping[str, Any]  # an approval is valid for exactly this
    agent: str  # asked, and resumes the task if its session is still alive
    session: str
    asked_at: int
    state: GateState = WAITING
    risk: int = 0
    attempt: int = 0
    before: str = ""  # the state of the task when it was asked
    holder: str = ""  # the session that holds the claims until the answer
    claims: Sequence[Mapping[str, Any]] = ()  # as they were before; the answer returns them
    evidence: Mapping[str, Any] = {}
    answered_at: int = 0
    answered_by: str = ""
    answer: str = ""
    is_resumed: bool = False  # the agent that asked has the task again

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Gate:
        """Return the gate that a record describes."""
        fields: dict[str, Any] = {**document}
        fields |= {"kind": GateKind(document["kind"]), "state": GateState(document["state"])}
        return cls(**fields)

    def check_transition(self, state: GateState) -> None:
        """Refuse a change of state that the transition table does not have.

        Raises:
            NotAllowed: the gate is not waiting any more.
        """
        is_final = self.state in ANSWERED and self.kind != DEPLOY
        if is_final or state not in _TRANSITIONS[self.state]:
            by = f" by {self.answered_by}" if self.answered_by else ""
            raise NotAllowed(
                f"{self.id} does not wait for a person: it was {self.state}{by}",
                code="NOT_WAITING",
                hint="see what does: landlane inbox",
                state=self.state,
            )

    def become(self, state: GateState, **changes: object) -> Gate:
        """Return the gate in another state, with some fields changed.

        Raises:
            NotAllowed: the transition table does not have this change.
        """
        self.check_transition(state)
        return replace(self, state=state, **changes)


def check_question(kind: str, why: str, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a question is about in its stored form.

    Raises:
        Malformed: the kind is unknown, the reason is missing, or what it is about cannot be stored.
    """
    if kind not in _BASE_RISK:
        known = ", ".join(sorted(_BASE_RISK))
        raise Malformed(f"unknown kind of gate {kind[:40]}", code="BAD_GATE_KIND", hint=f"use one of {known}")
    if not why.strip():
        raise Malformed(
            "say what the person has to decide, and why",
            code="NO_REASON",
            hint="--why 'one or two sentences that stand on their own'",
        )
    check_text(why, "reason", LONGEST_WHY)
    stored: dict[str, Any] = {}
    for key in sorted(about):
        item = about[key]
        if item is None or item == "":
            continue
        plain = item if isinstance(item, (bool, int, str)) else str(item)
        if isinstance(plain, str):
            check_text(plain, f"{key} of what it is about", _LONGEST_ABOUT)
        stored[check_text(key, "name of what it is about", 40)] = plain
    if len(stored) > _MOST_ABOUT:
        raise Malformed(
            f"{len(stored)} facts to decide upon; {_MOST_ABOUT} are the most",
            code="TOO_MANY",
            hint="ask about one thing",
        )
    return stored


def is_same_question(gate: Gate, kind: str, why: str, about: Mapping[str, Any]) -> bool:
    """Return whether a gate asks exactly this."""
    return gate.kind == kind and gate.why == why and dict(gate.about) == dict(about)


def is_about(gate: Gate, about: Mapping[str, Any]) -> bool:
    """Return whether a gate names all of these facts; never for an empty list of facts."""
    return bool(about) and all(gate.about.get(key) == item for key, item in about.items())


def digest_in(about: Mapping[str, Any]) -> str:
    """Return the commit or hash that an approval is bound to; empty if there is none."""
    return next((str(about[key]) for key in _DIGEST_KEYS if about.get(key)), "")


def describe_subject(about: Mapping[str, Any]) -> str:
    """Return what a gate is about in one line."""
    return ", ".join(
        f"{key} {str(item)[:12] if key in _DIGEST_KEYS else item}" for key, item in about.items()
    )


def score_risk(
    kind: str,
    *,
    paths: Sequence[str] = (),
    protected: int = 0,
    lines: int | None = None,
    has_checks: bool | None = None,
) -> int:
    """Return the risk from 0 to 200: by kind, by where and how much is changed, and by whether it is checked.

    `protected` counts the paths under protection; `lines` is the size of the diff, if known; `has_checks` is
    None when unknown.
    """
    risk = _BASE_RISK.get(kind, _BASE_RISK[APPROVAL])
    risk += min(protected, 4) * 10
    risk += min(len(paths).bit_length(), 8) * 2
    risk += min((lines or 0).bit_length(), 14) * 2
    risk += {True: 0, None: 5, False: 15}[has_checks]
    return min(risk, 200)
