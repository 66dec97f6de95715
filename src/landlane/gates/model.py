"""Gates: where only a person may decide, what exactly is decided upon, and how much hangs on it."""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.text import check_text
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


WAITING = "waiting"
APPROVED = "approved"
REJECTED = "rejected"
WITHDRAWN = "withdrawn"
STATES = (WAITING, APPROVED, REJECTED, WITHDRAWN)
ANSWERED = (APPROVED, REJECTED)

APPROVAL = "approval"
DEPLOY = "deploy"
# What each kind weighs before anything is known of the change: what cannot be taken back comes first.
KINDS = {"financial": 90, "legal": 80, "credentials": 70, DEPLOY: 60, APPROVAL: 40, "taste": 10}

LONGEST_WHY = 2000
_MOST_ABOUT = 20
_LONGEST_ABOUT = 4000
_ACTS = ("commit", "head", "plan", "hash")  # what an approval may be bound to by a digest


@value
class Gate:
    """One question to a person. Instants are the calendar's, in milliseconds."""

    id: str
    task: str
    kind: str
    why: str
    about: Mapping[str, Any]  # what exactly is approved; an approval counts for nothing else
    agent: str  # who asked, and goes on with the answer if it still lives
    session: str
    asked_at: int
    state: str = WAITING
    risk: int = 0
    attempt: int = 0
    before: str = ""  # the state of the task when it was asked
    holder: str = ""  # the session that keeps the claims meanwhile
    claims: Sequence[Mapping[str, Any]] = ()  # as they were: the answer gives them back
    evidence: Mapping[str, Any] = {}  # what helps to decide
    answered_at: int = 0
    answered_by: str = ""
    answer: str = ""
    is_resumed: bool = False  # whoever asked has the task again


def holder_name(gate_id: str) -> str:
    """The agent's name under which a gate keeps claims."""
    return f"gate-{gate_id}"


def check_question(kind: str, why: str, about: Mapping[str, Any]) -> dict[str, Any]:
    """What is asked about, in the form in which it is kept.

    Raises:
        Malformed: the kind is unknown, there is no reason, or what it is about cannot be stored.
    """
    if kind not in KINDS:
        known = ", ".join(sorted(KINDS))
        raise Malformed(f"there is no gate of the kind {kind[:40]!r}", code="BAD_GATE_KIND", hint=known)
    if not why.strip():
        raise Malformed(
            "say what the person has to decide, and why",
            code="NO_REASON",
            hint="--why 'one or two sentences that stand on their own'",
        )
    check_text(why, "reason", LONGEST_WHY)
    kept: dict[str, Any] = {}
    for key in sorted(about):
        item = about[key]
        if item is None or item == "":
            continue
        plain = item if isinstance(item, (bool, int, str)) else str(item)
        if isinstance(plain, str):
            check_text(plain, f"{key} of what it is about", _LONGEST_ABOUT)
        kept[check_text(key, "name of what it is about", 40)] = plain
    if len(kept) > _MOST_ABOUT:
        raise Malformed(
            f"{len(kept)} facts to decide upon; {_MOST_ABOUT} are the most",
            code="TOO_MANY",
            hint="ask about one thing",
        )
    return kept


def is_same_question(gate: Gate, kind: str, why: str, about: Mapping[str, Any]) -> bool:
    """Whether somebody asks again what was asked already."""
    return gate.kind == kind and gate.why == why and dict(gate.about) == dict(about)


def covers(gate: Gate, about: Mapping[str, Any]) -> bool:
    """Whether an answer was given for exactly this: all that is named here was named there."""
    return bool(about) and all(gate.about.get(key) == item for key, item in about.items())


def bound_to(about: Mapping[str, Any]) -> str:
    """The digest that an approval is bound to: a commit, the hash of a plan or of a file."""
    return next((str(about[key]) for key in _ACTS if about.get(key)), "")


def describe(about: Mapping[str, Any]) -> str:
    """What it is about, in a line."""
    return ", ".join(f"{key} {str(item)[:12] if key in _ACTS else item}" for key, item in about.items())


def risk_of(
    kind: str,
    *,
    paths: Sequence[str] = (),
    protected: int = 0,
    lines: int | None = None,
    has_checks: bool | None = None,
) -> int:
    """How much hangs on it, from 0 to 200: the kind, then where and how much is changed, and what vouches.

    `protected` counts the paths that nobody may change lightly; `lines` is the size of the diff, if known;
    `has_checks` whether something has tested it, and None when nobody knows.
    """
    risk = KINDS.get(kind, KINDS[APPROVAL])
    risk += min(protected, 4) * 10
    risk += min(len(paths).bit_length(), 8) * 2
    risk += min((lines or 0).bit_length(), 14) * 2
    risk += {True: 0, None: 5, False: 15}[has_checks]
    return min(risk, 200)
