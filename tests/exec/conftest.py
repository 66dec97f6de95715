"""Repositories in which commands run inside the sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.sandbox.model import BUBBLEWRAP, LANDLOCK
from tests.exec.support import Yard

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(params=[LANDLOCK, BUBBLEWRAP])
def yard(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Yard]:
    """A repository for each backend of this machine in turn."""
    made = Yard(tmp_path, request.param)
    yield made
    made.close()


@pytest.fixture
def weak_yard(tmp_path: Path) -> Iterator[Yard]:
    """A repository where Landlock alone enforces the sandbox."""
    made = Yard(tmp_path, LANDLOCK)
    yield made
    made.close()
