"""Handoffs: what one owner of a task leaves to the next, checked by a schema, sealed by a hash, and for whom.

A handoff has two halves. What its sender says: product, context, constraints, next step, blockers,
assumptions, and fields of the project's own. And what was taken mechanically, which nobody has to remember.
The hash is over both, and over who hands what to whom: whoever accepts it says which content it has read.
"""

from __future__ import annotations

import json

from landlane.errors import Malformed
from landlane.ids import digest
from landlane.sessions.model import check_agent_name
from landlane.tasks.model import ANYBODY
from landlane.text import check_label, check_text
from landlane.values import as_dict, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from landlane.settings.model import HandoffField, Settings


SENT = "sent"  # it stands: the task waits in the queue for whom it is for
ACCEPTED = "accepted"
REFUSED = "refused"  # over the maximum: a person has it now
WITHDRAWN = "withdrawn"  # the task went another way

_ROLE = "role:"

TEXT = "text"
LIST = "list"
NUMBER = "number"
FLAG = "flag"
TYPES = (TEXT, LIST, NUMBER, FLAG)

LONGEST_TEXT = 64_000
LONGEST_LINE = 4000
MOST_ITEMS = 50
MOST_FIELDS = 50
LONGEST_WHOLE = 400_000
_SHORTEST_PREFIX = 8

# What a sender may say: name → (type, longest). A project adds its own under [handoffs.fields].
SAID: dict[str, tuple[str, int]] = {
    "product": (TEXT, LONGEST_TEXT),
    "context": (TEXT, LONGEST_TEXT),
    "constraints": (LIST, LONGEST_LINE),
    "next": (TEXT, LONGEST_LINE),
    "blockers": (LIST, LONGEST_LINE),
    "assumptions": (LIST, LONGEST_LINE),
}
_ONE_OF = ("next", "context")  # without a word of either the next owner knows no more than git tells


@value
class Draft:
    """What a sender wants to hand over."""

    task: str
    to: str = ANYBODY
    product: str = ""
    context: str = ""
    constraints: tuple[str, ...] = ()
    next: str = ""
    blockers: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    fields: Mapping[str, Any] = {}
    maximum: int = 0  # lower than the project's; 0: the project's
    taken: Mapping[str, Any] = {}  # what was found, not said


@value
class Handoff:
    """A handoff as it stands. Instants are the calendar's, in milliseconds."""

    id: str
    task: str
    lineage: str
    sender: str
    session: str  # of the sender
    to: str
    attempt: int  # the how manyeth of its lineage this is
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
    until: int  # from then on it is anybody's
    state: str = SENT
    holder: str = ""  # the session that keeps the claims meanwhile
    declined: Mapping[str, int] = {}  # agent → not offered to it before
    accepted_by: str = ""
    accepted_session: str = ""
    accepted_at: int = 0
    why: str = ""  # it was declined, refused or withdrawn
    is_settled: bool = False


def holder_name(handoff_id: str) -> str:
    """The agent's name under which a handoff keeps claims."""
    return f"handoff-{handoff_id}"


# ------------------------------------------------------------------------------------------ the schema


def check_draft(draft: Draft, settings: Settings) -> Draft:
    """The draft as it is sent, in one form: nothing empty in lists, fields of the types they should have.

    Raises:
        Malformed: something required is missing, unknown, too long or of the wrong type.
    """
    check_label(draft.task, "task")
    check_receiver(draft.to)
    own = settings.handoffs.fields
    said: dict[str, Any] = {name: getattr(draft, name) for name in SAID}
    for name, (kind, longest) in SAID.items():
        said[name] = _check_item(name, said[name], kind, longest)
    fields = _check_fields(draft.fields, own)
    _check_required(said, fields, settings.handoffs.required, own)
    if draft.maximum < 0 or draft.maximum > settings.handoffs.max:
        raise Malformed(
            f"at most {settings.handoffs.max} handoffs are allowed here, not {draft.maximum}",
            code="OUT_OF_RANGE",
            hint="leave --max out, or give a lower number; [handoffs] max in landlane.toml is the project's",
        )
    whole = _canonical({**said, "fields": fields, "taken": dict(draft.taken)})
    if len(whole) > LONGEST_WHOLE:
        raise Malformed(
            f"the handoff has {len(whole):,} characters; {LONGEST_WHOLE:,} are the most",
            code="TEXT_TOO_LONG",
            hint="keep the long parts in files of the repository and name them",
        )
    return Draft(
        task=draft.task, to=draft.to, fields=fields, maximum=draft.maximum, taken=dict(draft.taken), **said
    )


def check_receiver(to: str) -> str:
    """For whom a handoff may be: an agent, everybody in a role, or anybody.

    Raises:
        Malformed: it names nobody.
    """
    if not to:
        raise Malformed(
            "a handoff is for somebody",
            code="NO_RECEIVER",
            hint=f"--to NAME, --to {_ROLE}NAME, or --to {ANYBODY}",
        )
    if to.startswith(_ROLE):
        check_label(to.removeprefix(_ROLE), "role")
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
        if found != found or abs(found) > 2**53:  # not a number, or none that everybody reads alike
            raise _wrong_type(name, kind, found)
        return found
    if kind == FLAG and isinstance(found, bool):
        return found
    raise _wrong_type(name, kind, found)


def _wrong_type(name: str, kind: str, found: object) -> Malformed:
    wanted = {TEXT: "a text", LIST: "a list of texts", NUMBER: "a number", FLAG: "true or false"}[kind]
    return Malformed(
        f"{name[:40]} of a handoff is {wanted}, not {str(found)[:40]!r}",
        code="HANDOFF_WRONG_TYPE",
        hint="[handoffs.fields] in landlane.toml tells the types of the project's own fields",
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
    said: Mapping[str, Any],
    fields: Mapping[str, Any],
    required: Sequence[str],
    own: Mapping[str, HandoffField],
) -> None:
    wanted = [*required, *(name for name, rule in own.items() if rule.required)]
    have = {**fields, **said}
    missing = [name for name in dict.fromkeys(wanted) if have.get(name) in (None, "", (), [])]
    if not missing and not any(said[name] for name in _ONE_OF):
        missing = [" or ".join(_ONE_OF)]
    if missing:
        raise Malformed(
            f"the handoff lacks {', '.join(missing)}",
            code="HANDOFF_INCOMPLETE",
            hint="; ".join(map(_how_to_say, missing)),
            missing=missing,
        )


def _how_to_say(name: str) -> str:
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
    """A field of the project's own out of `NAME=VALUE`, as typed; items of a list stand behind semicolons.

    Raises:
        Malformed: it has not that form, or not the type that the settings say.
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


# ------------------------------------------------------------------------------------------ the hash


def digest_of(handoff: Handoff) -> str:
    """The hash of what was handed over, by whom and to whom; what became of it later is no part of it."""
    content = as_dict(handoff)
    sealed = ("id", "task", "sender", "to", "attempt", "maximum", "fields", "taken", "sent_at", *SAID)
    return digest(_canonical({name: content[name] for name in sealed}))


def is_whole(handoff: Handoff) -> bool:
    """Whether nobody changed it since it was sealed."""
    return handoff.digest == digest_of(handoff)


def is_same_digest(handoff: Handoff, shown: str) -> bool:
    """Whether a receiver shows the hash, or enough of its beginning."""
    return len(shown) >= _SHORTEST_PREFIX and handoff.digest.startswith(shown.lower())


def _canonical(content: Mapping[str, Any]) -> str:
    return json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


# ------------------------------------------------------------------------------------------ for whom


def is_addressed(handoff: Handoff, agent: str, role: str) -> bool:
    """Whether a handoff names this agent: by its name, its kind of worker, or its role."""
    to = handoff.to
    if to.startswith(_ROLE):
        return role == to.removeprefix(_ROLE)
    return to in (ANYBODY, agent) or agent.startswith(f"{to}-{handoff.task}-")


def may_take(handoff: Handoff, agent: str, role: str, now: int) -> bool:
    """Whether `next` may offer a handed task to this agent now."""
    if handoff.declined.get(agent, 0) > now:
        return False
    return now >= handoff.until or is_addressed(handoff, agent, role)


def handoff_from(document: Mapping[str, Any]) -> Handoff:
    """A handoff from its record."""
    return Handoff(**document)


def summary_of(draft: Draft | Handoff) -> str:
    """What it says in few words, for whoever only looks at the task."""
    said = [draft.context.strip(), f"next: {draft.next.strip()}" if draft.next.strip() else ""]
    return "\n".join(text for text in said if text)[:LONGEST_LINE]
