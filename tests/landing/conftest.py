"""A repository with a landing queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.landing import Yard

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def yard(repository: Path) -> Iterator[Yard]:
    """A fresh repository, and the queue that lands on its main branch."""
    yard = Yard(repository)
    yield yard
    yard.close()
