"""Waiting for a store that is away: as long as it makes sense, and not once more for each step."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import landlane.workers.store_outage as outlasting
from landlane.errors import StoreError, StoreTransient
from landlane.workers.store_outage import Patience

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.unit


class Away:
    """A store that is away for a number of seconds, by a clock that only waiting moves."""

    def __init__(self, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
        self.back_at = seconds
        self.now = 0.0
        self.calls = 0
        clock: Any = SimpleNamespace(monotonic=lambda: self.now, sleep=self.sleep)
        monkeypatch.setattr(outlasting, "time", clock)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def step(self) -> str:
        self.calls += 1
        if self.now < self.back_at:
            raise StoreTransient("it is away", code="STORE_UNREACHABLE")
        return "done"


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], Away]:
    return lambda seconds: Away(seconds, monkeypatch)


def test_a_store_that_comes_back_is_waited_for_and_told_of_once(away: Callable[[float], Away]) -> None:
    told: list[str] = []
    patience, store, kept_up = Patience(told.append, lambda: False), away(100), [0]

    assert patience.outlast(store.step, lambda: kept_up.append(1)) == "done"

    assert (len(told), patience.has_waited) == (1, True)
    assert sum(kept_up) == store.calls - 1
    store.back_at = store.now + 100  # it was back meanwhile: that is another time
    assert patience.outlast(store.step) == "done"


def test_one_that_stays_away_is_waited_for_once_and_not_for_each_step(away: Callable[[float], Away]) -> None:
    patience, store = Patience(lambda _: None, lambda: False), away(1000)
    with pytest.raises(StoreTransient):
        patience.outlast(store.step)
    assert store.now == outlasting.MOST_AWAY_SECONDS
    calls = store.calls

    with pytest.raises(StoreTransient):
        patience.outlast(store.step)

    assert store.calls == calls + 1


def test_whoever_is_to_end_waits_only_a_moment(away: Callable[[float], Away]) -> None:
    store = away(100)

    with pytest.raises(StoreTransient):
        Patience(lambda _: None, lambda: True).outlast(store.step)

    assert store.now < 10


def test_what_does_not_pass_is_not_waited_for(away: Callable[[float], Away]) -> None:
    store = away(0)

    def full() -> None:
        raise StoreError("no room", code="STORE_FULL")

    with pytest.raises(StoreError):
        Patience(lambda _: None, lambda: False).outlast(full)

    assert store.now == 0
