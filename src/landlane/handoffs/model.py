"""Handoffs: their content, states, schema and hash, and which agents may accept them.

A handoff has two parts. The sender writes product, context, constraints, next step, blockers, assumptions and
the fields that the project defines. `collect_state` adds what git, the journal and the hooks know. The hash
covers both parts, the sender and the receiver, so a receiver can show which content it has read.
"""

from __future__ import annotations

import json
from enum import StrEnum

from landlane.errors import Malformed, NotAllowed
from landlane.ids import digest
from landlane.sessions.model import check_agent_name
from landlane.tasks.model import ANYBODY, PERSON, is_for_person
from landlane.text import check_label, check_text
from landlane.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from landlane.settings.model import HandoffField, Settings

    OnStep = Callable[[str], None]


class HandoffState(StrEnum):
    """The state of a handoff."""

    SENT = "sent"  # the task waits in the queue for its receiver
    ACCEPTED = "accepted"
    REFUSED = "refused"  # over the maximum: a person decides
    WITHDRAWN = "withdrawn"  # the task was dropped or changed before it was accepted


SENT, ACCEPTED, REFUSED, WITHDRAWN = HandoffState

# A declined handoff stays sent: any agent may accept it from then on.
_TRANSITIONS: Mapping[HandoffState, Sequence[HandoffState]] = {
    SENT: (SENT, ACCEPTED, REFUSED, WITHDRAWN),
    ACCEPTED: (),
    REFUSED: (),
    WITHDRAWN: (),
}

_ROLE = "role:"

TEXT = "text"
LIST = "list"
NUMBER = "number"
FLAG = "flag"

LONGEST_TEXT = 64_000
LONGEST_LINE = 4000
MOST_ITEMS = 50
_LONGEST_CONTENT = 400_000
_SHORTEST_PREFIX = 8

# The fields a sender can fill: name → (type, longest). A project adds its own under [handoffs.fields].
_SENDER_FIELDS: dict[str, tuple[str, int]] = {
    "product": (TEXT, LONGEST_TEXT),
    "context": (TEXT, LONGEST_TEXT),
    "constraints": (LIST, LONGEST_LINE),
    "next": (TEXT, LONGEST_LINE),
    "blockers": (LIST, LONGEST_LINE),
    "assumptions": (LIST, LONGEST_LINE),
}
_ONE_OF = ("next", "context")  # without either, the next owner knows only what git shows


@value
class Draft:
    """A handoff before it is checked and sent."""

    task: str
    to: str = ANYBODY
    product: str = ""
    context: str = ""
    constraints: tuple[str, ...] = ()
    next: str = ""
    blockers: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    fields: Mapping[str, Any] = {}
    maximum: int = 0  # at most that of the project, which 0 stands for
    taken: Mapping[str, Any] = {}  # collected mechanically


@value
class Handoff:
    """A handoff. Instants are wall-clock milliseconds."""

    id: str
    task: str
    lineage: str
    sender: str
    session: str  # of the sender
    to: str
    attempt: int  # counts the handoffs of its lineage, from 1
    maximum: int
    product: str
    context: str
    constraints: Sequence[str]
    next: str
    blockers: Sequence[str]
    assumptions: Sequence[str]
    fields: Mapping[str, Any]
    taken: Mapping[str, Any]
    digest: str
    sent_at: int
    until: int  # any agent may accept it from then on
    state: HandoffState = SENT
    holder: str = ""  # the session that holds the claims until it is accepted
    declined: Mapping[str, int] = {}  # agent → the instant before which it is not offered again
    accepted_by: str = ""
    accepted_session: str = ""
    accepted_at: int = 0
    why: str = ""  # it was declined, refused or withdrawn
    is_settled: bool = False

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Handoff:
        """Return the handoff that a record describes."""
        fields: dict[str, Any] = {**document, "state": HandoffState(document["state"])}
        return cls(**fields)

    def become(self, state: HandoffState, **changes: object) -> Handoff:
        """Return the handoff in another state, with some fields changed.

        Raises:
            NotAllowed: the transition table does not have this change.
        """
        if state not in _TRANSITIONS[self.state]:
            raise NotAllowed(
                f"{self.id} is {self.state} and cannot become {state}",
                code="NOT_WAITING",
                hint="`landlane handoff list` shows those that wait",
                state=self.state,
            )
        return replace(self, state=state, is_settled=state != SENT, **changes)


def check_draft(draft: Draft, settings: Settings) -> Draft:
    """Return the draft in the form that is sent: checked, and without empty list items.

    Raises:
        Malformed: something required is missing, unknown, too long or of the wrong type.
    """
    check_label(draft.task, "task")
    check_receiver(draft.to)
    own = settings.handoffs.fields
    sender_fields = {
        name: _check_item(name, getattr(draft, name), kind, longest)
        for name, (kind, longest) in _SENDER_FIELDS.items()
    }
    fields = _check_fields(draft.fields, own)
    _check_required(sender_fields, fields, settings.handoffs.required, own)
    if draft.maximum < 0 or draft.maximum > settings.handoffs.max:
        raise Malformed(
            f"at most {settings.handoffs.max} handoffs are allowed here, not {draft.maximum}",
            code="OUT_OF_RANGE",
            hint="leave --max out, or give a lower number; [handoffs] max in landlane.toml is the project's",
        )
    content = _canonical({**sender_fields, "fields": fields, "taken": dict(draft.taken)})
    if len(content) > _LONGEST_CONTENT:
        raise Malformed(
            f"the handoff has {len(content):,} characters; {_LONGEST_CONTENT:,} are the most",
            code="TEXT_TOO_LONG",
            hint="keep the long parts in files of the repository and name them",
        )
    return replace(draft, fields=fields, taken=dict(draft.taken), **sender_fields)


def check_receiver(to: str) -> str:
    """Return the receiver of a handoff: the name of an agent, `role:NAME` or `anybody`.

    Raises:
        Malformed: it is empty or not a valid name.
    """
    if not to:
        raise Malformed(
            "a handoff needs a receiver",
            code="NO_RECEIVER",
            hint=f"--to NAME, --to {_ROLE}NAME, --to {PERSON}:NAME, or --to {ANYBODY}",
        )
    if to.startswith(_ROLE):
        check_label(to.removeprefix(_ROLE), "role")
    elif is_for_person(to):
        check_label(to.partition(":")[2] or PERSON, "person")
    else:
        check_agent_name(to)
    return to


def _check_item(name: str, found: object, kind: str, longest: int) -> Any:
    if kind == TEXT and isinstance(found, str):
        text = check_text(found, name, longest)
        return text.strip("\n") if text.strip() else ""
    if kind == LIST and isinstance(found, (list, tuple)):
        items: list[object] = list(found)  # pyright: ignore[reportUnknownArgumentType]
        if len(items) > MOST_ITEMS:
            most = f"{len(items)} {name}; {MOST_ITEMS} are the most"
            raise Malformed(most, code="TOO_MANY", hint="name those that count")
        texts = [_check_item(name, item, TEXT, longest).strip() for item in items]
        return tuple(text for text in texts if text)
    if kind == NUMBER and isinstance(found, (int, float)) and not isinstance(found, bool):
        if abs(found) <= 2**53:  # exact in every JSON parser; false for NaN
            return found
    elif kind == FLAG and isinstance(found, bool):
        return found
    raise _wrong_type(name, kind, found)


def _wrong_type(name: str, kind: str, found: object) -> Malformed:
    wanted = {TEXT: "a text", LIST: "a list of texts", NUMBER: "a number", FLAG: "true or false"}[kind]
    return Malformed(
        f"{name[:40]} of a handoff is {wanted}, not {str(found)[:40]!r}",
        code="HANDOFF_WRONG_TYPE",
        hint="[handoffs.fields] in landlane.toml has the types of custom fields",
    )


def _check_fields(given: Mapping[str, Any], own: Mapping[str, HandoffField]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if not isinstance(given, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Malformed(
            "the project's own fields of a handoff are names with values",
            code="HANDOFF_WRONG_TYPE",
            hint='such as {"risk": "low"}',
        )
    for name, found in given.items():
        if name not in own:
            known = ", ".join(sorted(own)) or "none is defined"
            raise Malformed(
                f"a handoff here has no field {str(name)[:40]!r}",
                code="HANDOFF_UNKNOWN_FIELD",
                hint=f"known: {known}; [handoffs.fields] in landlane.toml defines them",
            )
        rule = own[name]
        fields[name] = _check_item(name, found, rule.type, rule.longest or LONGEST_LINE)
        if isinstance(fields[name], tuple):
            fields[name] = list(fields[name])
    return dict(sorted(fields.items()))


def _check_required(
    sender_fields: Mapping[str, Any],
    fields: Mapping[str, Any],
    required: Sequence[str],
    own: Mapping[str, HandoffField],
) -> None:
    wanted = [*required, *(name for name, rule in own.items() if rule.required)]
    have = {**fields, **sender_fields}
    missing = [name for name in dict.fromkeys(wanted) if have.get(name) in (None, "", (), [])]
    if not missing and not any(sender_fields[name] for name in _ONE_OF):
        missing = [" or ".join(_ONE_OF)]
    if missing:
        raise Malformed(
            f"the handoff lacks {', '.join(missing)}",
            code="HANDOFF_INCOMPLETE",
            hint="; ".join(map(_option_for, missing)),
            missing=missing,
        )


def _option_for(name: str) -> str:
    ways = {
        "product": "--product FILE",
        "context": "--context FILE",
        "constraints": "--constraint TEXT",
        "blockers": "--blocker TEXT",
        "assumptions": "--assumption TEXT",
        "next": "--next 'the next step'",
    }
    return ways.get(name, "--next 'the next step'" if " or " in name else f"--field {name}=VALUE")


def read_field(text: str, settings: Settings) -> tuple[str, Any]:
    """Parse `NAME=VALUE` into a field of the type that the settings give it; semicolons separate list items.

    Raises:
        Malformed: it is not of that form, or not of that type.
    """
    name, equals, rest = text.partition("=")
    if not equals or not name:
        raise Malformed(f"--field {text[:40]!r} is not NAME=VALUE", code="BAD_FIELD", hint="--field risk=low")
    field = settings.handoffs.fields.get(name)
    kind = field.type if field else TEXT
    if kind == LIST:
        return name, [item.strip() for item in rest.split(";")]
    if kind == FLAG and rest in ("true", "false", "yes", "no"):
        return name, rest in ("true", "yes")
    if kind == NUMBER:
        try:
            return name, float(rest) if "." in rest else int(rest)
        except ValueError:
            raise _wrong_type(name, NUMBER, rest) from None
    return name, rest


def digest_of(handoff: Handoff) -> str:
    """Return the hash of the content, sender and receiver; it does not cover what happens after sending."""
    own = ("id", "task", "sender", "to", "attempt", "maximum", "fields", "taken", "sent_at")
    return digest(_canonical({name: getattr(handoff, name) for name in (*own, *_SENDER_FIELDS)}))


def is_unchanged(handoff: Handoff) -> bool:
    """Return whether the content still has the hash it was sent with."""
    return handoff.digest == digest_of(handoff)


def is_same_digest(handoff: Handoff, shown: str) -> bool:
    """Return whether this is the hash, or a long enough prefix of it."""
    return len(shown) >= _SHORTEST_PREFIX and handoff.digest.startswith(shown.lower())


def _canonical(content: Mapping[str, Any]) -> str:
    return json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def is_addressed(handoff: Handoff, agent: str, role: str) -> bool:
    """Return whether a handoff is addressed to this agent: by name, kind of worker or role."""
    to = handoff.to
    if to.startswith(_ROLE):
        return role == to.removeprefix(_ROLE)
    return to in (ANYBODY, agent) or agent.partition(".")[0] == f"{to}-{handoff.task}"


def may_take(handoff: Handoff, agent: str, role: str, now: int) -> bool:
    """Return whether `next` may offer the task to this agent now."""
    if handoff.declined.get(agent, 0) > now or is_for_person(handoff.to):
        return False  # what is for a person is accepted in the inbox, and never offered to an agent
    return now >= handoff.until or is_addressed(handoff, agent, role)


def summary_of(handoff: Handoff) -> str:
    """Return context and next step, as shown with the task."""
    texts = [handoff.context.strip(), f"next: {handoff.next.strip()}" if handoff.next.strip() else ""]
    return "\n".join(text for text in texts if text)[:LONGEST_LINE]
