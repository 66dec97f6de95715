"""What the tests of the MCP server need: the SDK, and a repository with a commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.testing.repositories import make_repository

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("mcp", reason="the extra `mcp` is not installed")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with two files."""
    return make_repository(tmp_path / "repository", files={"calc.py": "x = 1\n", "free.py": "y = 1\n"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one file, for all tests of a module."""
    return make_repository(tmp_path_factory.mktemp("module") / "repository", files={"calc.py": "x = 1\n"})
