"""A repository in which scripted workers do tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.workers.running import WorkerTestbed, end_what_was_begun

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def ended() -> Iterator[None]:
    yield
    end_what_was_begun()


@pytest.fixture
def works(repository: Path) -> WorkerTestbed:
    return WorkerTestbed(repository)
