"""Fencing tokens: epoch and counter."""

from __future__ import annotations

_COUNTER_BITS = 32

_LARGEST_TOKEN = 2**53 - 1


def token_of(epoch: int, number: int) -> int:
    """The fencing token of a grant: an epoch that a restored store raises, then a counter that only grows."""
    token = epoch << _COUNTER_BITS | number
    if number >= 1 << _COUNTER_BITS or token > _LARGEST_TOKEN:
        raise OverflowError(f"no token is left in epoch {epoch}")
    return token


def epoch_of(token: int) -> int:
    """The epoch that a token was given out in."""
    return token >> _COUNTER_BITS
