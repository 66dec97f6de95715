"""Repositories in which commands run inside the sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.sandbox.model import BackendKind
from tests.exec.support import ExecTestbed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(params=[BackendKind.LANDLOCK, BackendKind.BUBBLEWRAP])
def testbed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ExecTestbed]:
    """A repository for each backend of this machine in turn."""
    made = ExecTestbed(tmp_path, request.param)
    yield made
    made.close()


@pytest.fixture
def weak_testbed(tmp_path: Path) -> Iterator[ExecTestbed]:
    """A repository where Landlock alone enforces the sandbox."""
    made = ExecTestbed(tmp_path, BackendKind.LANDLOCK)
    yield made
    made.close()
