"""What stories need: a shell in a fresh repository."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.acceptance.calling import Shell

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def shell(repository: Path) -> Shell:
    """A shell that stands in a fresh repository."""
    return Shell(repository)
