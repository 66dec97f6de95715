"""What tests of commits need: a crew in a fresh repository."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.committing import Crew

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def crew(repository: Path) -> Iterator[Crew]:
    """Agents that commit in a fresh repository."""
    crew = Crew(repository)
    yield crew
    crew.site.close()
