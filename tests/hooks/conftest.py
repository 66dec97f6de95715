"""Repositories and coding clients that call the hooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.testing.fake_clock import FakeClock
from tests.hooks.stand_in_client import StandIn
from tests.support.landing import Yard

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def one(root: Path) -> Iterator[StandIn]:
    """A coding client in the repository `root`, which the test file defines."""
    with StandIn(root) as client:
        yield client


@pytest.fixture
def two(root: Path) -> Iterator[StandIn]:
    """A second coding client in the same repository."""
    with StandIn(root) as client:
        yield client


@pytest.fixture
def yard(repository: Path) -> Iterator[Yard]:
    """A repository with a landing queue, whose time stands still until the test moves it."""
    yard = Yard(repository, FakeClock())
    yield yard
    yard.close()
