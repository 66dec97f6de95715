"""A repository in which scripted workers do tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.running_support import Works

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def works(repository: Path) -> Works:
    return Works(repository)
