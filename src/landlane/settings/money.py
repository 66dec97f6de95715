"""Read amounts of US dollars."""

from __future__ import annotations

_MOST = 1_000_000_000


def micros_from(found: object) -> int | None:
    """Return an amount such as 1.5 or "$1.50" in millionths of a US dollar; None if it is not an amount."""
    from decimal import Decimal, InvalidOperation  # noqa: PLC0415 - expensive, and few commands handle money

    if isinstance(found, bool) or not isinstance(found, (int, float, str, Decimal)):
        return None
    text = str(found).strip().removeprefix("$").removesuffix("USD").strip()
    try:
        # A float counts as it is written: 0.1 is a tenth.
        amount = Decimal(text) if len(text) < 60 else Decimal("nan")
        is_sum = amount.is_finite() and 0 <= amount <= _MOST
    except InvalidOperation:
        return None
    return int((amount * 1_000_000).to_integral_value("ROUND_HALF_UP")) if is_sum else None
