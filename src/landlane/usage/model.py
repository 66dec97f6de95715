"""Usage: what attempts cost. Each entry is made once, for one lineage; unknown costs stay unknown.

Money is counted in whole millionths of a US dollar, so that sums are exact. An entry belongs to one task,
and so to one lineage; other linked tasks only refer to it. An entry without a task is
unattributed. The totals of all tasks and the unattributed entries add up to the grand total.
"""

from __future__ import annotations

from enum import StrEnum

from landlane.clock import rfc3339
from landlane.errors import Malformed
from landlane.ids import digest
from landlane.settings.money import micros_from
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from landlane.settings.model import Price


LONGEST_KEY = 400
MOST_TOKENS = 10**15
MILLION = 1_000_000


class CostSource(StrEnum):
    """Where the cost of a usage entry comes from."""

    UNKNOWN = ""  # there is no cost
    REPORTED = "reported"  # by the client
    PRICED = "priced"  # computed from its tokens
    IDLE = "idle"  # no worker ran, so it cost nothing


UNKNOWN, REPORTED, PRICED, IDLE = CostSource


@value
class UsageEntry:
    """One usage entry. `state` is its day, by which entries are found; instants are calendar time."""

    id: str = ""  # derived from the key when it is booked
    key: str  # identifies a repeated booking
    lineage: str = ""
    task: str = ""  # empty: unattributed
    state: str = ""
    at: int = 0  # 0 in a request: now
    attempt: int = 0
    agent: str = ""
    client: str = ""
    model: str = ""
    run: str = ""  # the session of the orchestrator whose attempt it was
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_micros: int | None = None
    how: CostSource = UNKNOWN
    links: list[str] = []  # noqa: RUF012 - never changed; other tasks that it has to do with
    is_final: bool = True  # false while its attempt is running
    is_least: bool = False  # its attempt ended without a report: it cost at least this
    by: str = ""  # who booked it

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> UsageEntry:
        """Return the entry that a record describes."""
        fields: dict[str, Any] = {**document, "how": CostSource(document["how"])}
        return cls(**fields)


@value
class Total:
    """The sum of some entries, and how many of them have no known cost."""

    cost_micros: int = 0  # of those whose cost is known
    entries: int = 0
    unknown: int = 0  # bookings without a cost
    least: int = 0  # entries whose cost is a lower bound
    input_tokens: int = 0
    output_tokens: int = 0
    unknown_tokens: int = 0  # bookings without one of the numbers of tokens

    @property
    def is_known(self) -> bool:
        """Return whether the sum is complete."""
        return not self.unknown and not self.least


def add_up(entries: Iterable[UsageEntry]) -> Total:
    """Return the sum of these entries."""
    listed = list(entries)
    return Total(
        cost_micros=sum(entry.cost_micros or 0 for entry in listed),
        entries=len(listed),
        unknown=sum(entry.cost_micros is None for entry in listed),
        least=sum(entry.is_least and entry.cost_micros is not None for entry in listed),
        input_tokens=sum(entry.input_tokens or 0 for entry in listed),
        output_tokens=sum(entry.output_tokens or 0 for entry in listed),
        unknown_tokens=sum(entry.input_tokens is None or entry.output_tokens is None for entry in listed),
    )


def add_up_by(entries: Iterable[UsageEntry], key: Callable[[UsageEntry], str]) -> dict[str, Total]:
    """Return the sum of each group, most expensive first."""
    groups: dict[str, list[UsageEntry]] = {}
    for entry in entries:
        groups.setdefault(key(entry), []).append(entry)
    totals = {name: add_up(group) for name, group in groups.items()}
    return dict(sorted(totals.items(), key=lambda item: (-item[1].cost_micros, -item[1].entries, item[0])))


def usage_id(key: str) -> str:
    """Return the id of the entry with this key; it is the same on every machine."""
    return f"U-{digest(key)[:16]}"


def attempt_key(attempt_id: str) -> str:
    """Return the key under which an attempt is booked."""
    return f"attempt/{attempt_id}"


def day_of(at: int) -> str:
    """Return the day of an instant, such as 2026-01-31. Days begin at midnight UTC."""
    return rfc3339(at)[:10]


def days_between(since: int, until: int) -> list[str]:
    """Return the days that a period touches, in order."""
    day_ms = 86_400_000
    first, last = since // day_ms, max(until - 1, since) // day_ms
    return [day_of(number * day_ms) for number in range(first, last + 1)]


def read_money(found: object, what: str) -> int:
    """Return millionths of a US dollar from an amount such as 1.50.

    Raises:
        Malformed: it is not a valid amount.
    """
    micros = micros_from(found)
    if micros is None:
        raise Malformed(
            f"{what} {str(found)[:40]!r} is not an amount of US dollars",
            code="BAD_AMOUNT",
            hint="write a number from 0 on, such as 1.50; leave it out if it is unknown",
        )
    return micros


def read_tokens(found: object, what: str) -> int | None:
    """Return a number of tokens; None when it is unknown.

    Raises:
        Malformed: it is not a whole number.
    """
    if found is None or found == "":
        return None
    is_text = isinstance(found, str) and found.isascii() and found.isdecimal() and len(found) < 20
    number = int(str(found)) if is_text or (isinstance(found, int) and not isinstance(found, bool)) else -1
    if not 0 <= number <= MOST_TOKENS:
        raise Malformed(
            f"{what} {str(found)[:40]!r} is not a number of tokens",
            code="BAD_TOKENS",
            hint="write a whole number from 0 on; leave it out if it is unknown",
        )
    return number


def price_of(
    prices: Mapping[str, Price],
    model: str,
    input_tokens: int | None,
    output_tokens: int | None,
) -> int | None:
    """Return what the tokens cost by the configured prices; None when the model or a number is unknown.

    A name ending in `*` matches every model with that prefix; the longest match wins.
    """
    found = _price(prices, model)
    if found is None or input_tokens is None or output_tokens is None:
        return None
    exact = input_tokens * found.input_micros + output_tokens * found.output_micros
    return (exact + MILLION // 2) // MILLION


def _price(prices: Mapping[str, Price], model: str) -> Price | None:
    if not model:
        return None
    if model in prices:
        return prices[model]
    fitting = [name for name in prices if name.endswith("*") and model.startswith(name[:-1])]
    return prices[max(fitting, key=len)] if fitting else None


def money_words(micros: int) -> str:
    """Return an amount as text, with two or more decimal places."""
    whole, rest = divmod(micros, MILLION)
    return f"${whole:,}.{f'{rest:06d}'.rstrip('0').ljust(2, '0')}"


def total_words(total: Total) -> str:
    """Return a sum as text, with its unknown part."""
    if not total.entries:
        return "nothing booked"
    if total.unknown == total.entries:
        return "unknown"
    if total.is_known:
        return money_words(total.cost_micros)
    text = f"at least {money_words(total.cost_micros)}"
    return f"{text}; unknown for {total.unknown} of {total.entries}" if total.unknown else text


ATTEMPT, TASK, RUN, TODAY = "attempt", "task", "run", "day"


@value
class Budget:
    """A limit, what counts against it, its subject, and its name for people."""

    kind: str
    limit: int
    spent: int
    words: str

    @property
    def is_shared(self) -> bool:
        """Whether it is of the run or the day: no attempt starts, and running ones go on to their end."""
        return self.kind in (RUN, TODAY)

    @property
    def why(self) -> str:
        """Return the message that it is used up."""
        return f"{self.words}: {money_words(self.spent)} spent of {money_words(self.limit)}"
