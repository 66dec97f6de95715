"""A repository with a landing queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.landing import LandingTestbed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def testbed(repository: Path) -> Iterator[LandingTestbed]:
    """A fresh repository, and the queue that lands on its main branch."""
    testbed = LandingTestbed(repository)
    yield testbed
    testbed.close()
