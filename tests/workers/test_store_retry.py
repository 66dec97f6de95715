"""Steps are retried while the store is unavailable, within one limit for all steps."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from landlane.errors import StoreError, StoreTransient
from landlane.workers import attempt_resources
from landlane.workers.attempt_resources import StoreRetry
from landlane.workers.model import StopRequest

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.unit


class UnavailableStore:
    """A store that is unavailable for some seconds of a clock that only sleeping advances."""

    def __init__(self, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
        self.back_at = seconds
        self.now = 0.0
        self.calls = 0
        clock: Any = SimpleNamespace(monotonic=lambda: self.now, sleep=self.sleep)
        monkeypatch.setattr(attempt_resources, "time", clock)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def step(self) -> str:
        self.calls += 1
        if self.now < self.back_at:
            raise StoreTransient("it is away", code="STORE_UNREACHABLE")
        return "done"


@pytest.fixture
def unavailable(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], UnavailableStore]:
    return lambda seconds: UnavailableStore(seconds, monkeypatch)


def test_a_store_that_comes_back_is_waited_for_and_reported_once(
    unavailable: Callable[[float], UnavailableStore],
) -> None:
    reports: list[str] = []
    retry, store, renewals = StoreRetry(reports.append, StopRequest()), unavailable(100), [0]

    assert retry.run(store.step, lambda: renewals.append(1)) == "done"

    assert (len(reports), retry.has_waited) == (1, True)
    assert sum(renewals) == store.calls - 1
    store.back_at = store.now + 100  # a second outage has its own limit
    assert retry.run(store.step) == "done"


def test_a_lasting_outage_is_waited_for_once_and_not_for_each_step(
    unavailable: Callable[[float], UnavailableStore],
) -> None:
    retry, store = StoreRetry(lambda _: None, StopRequest()), unavailable(1000)
    with pytest.raises(StoreTransient):
        retry.run(store.step)
    assert store.now == attempt_resources.MAX_OUTAGE_SECONDS
    calls = store.calls

    with pytest.raises(StoreTransient):
        retry.run(store.step)

    assert store.calls == calls + 1


def test_a_stopping_attempt_waits_only_briefly(unavailable: Callable[[float], UnavailableStore]) -> None:
    store, stop = unavailable(100), StopRequest()
    stop.why = "the run was stopped"

    with pytest.raises(StoreTransient):
        StoreRetry(lambda _: None, stop).run(store.step)

    assert store.now < 10


def test_a_permanent_store_error_is_not_retried(unavailable: Callable[[float], UnavailableStore]) -> None:
    store = unavailable(0)

    def full() -> None:
        raise StoreError("no room", code="STORE_FULL")

    with pytest.raises(StoreError):
        StoreRetry(lambda _: None, StopRequest()).run(full)

    assert store.now == 0
