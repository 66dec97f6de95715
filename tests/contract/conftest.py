"""Sites for the contract tests: a repository on each kind of store, with time that stands still or passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.testing.fake_clock import FakeClock
from tests.support import Site

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def site(repository: Path, store: str) -> Iterator[Site]:
    """A repository whose time stands still until the test moves it."""
    made = Site(repository, store, FakeClock())
    yield made
    made.close()


@pytest.fixture
def live_site(repository: Path, store: str) -> Iterator[Site]:
    """A repository in real time, for waiting and for processes."""
    made = Site(repository, store)
    yield made
    made.close()
