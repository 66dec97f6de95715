"""Repositories and coding clients that call the hooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.testing.fake_clock import FakeClock
from tests.hooks.stand_in_client import ScriptedClient
from tests.support.landing import LandingTestbed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def one(root: Path) -> Iterator[ScriptedClient]:
    """A coding client in the repository `root`, which the test file defines."""
    with ScriptedClient(root) as client:
        yield client


@pytest.fixture
def two(root: Path) -> Iterator[ScriptedClient]:
    """A second coding client in the same repository."""
    with ScriptedClient(root) as client:
        yield client


@pytest.fixture
def testbed(repository: Path) -> Iterator[LandingTestbed]:
    """A repository with a landing queue, whose time stands still until the test moves it."""
    testbed = LandingTestbed(repository, FakeClock())
    yield testbed
    testbed.close()
