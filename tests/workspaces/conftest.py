"""A repository in which agents open and close workspaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.workspaces import WorkspaceTestbed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def testbed(repository: Path) -> Iterator[WorkspaceTestbed]:
    """A fresh repository; agents that still run are ended with the test."""
    testbed = WorkspaceTestbed(repository)
    yield testbed
    testbed.end()
