"""What stories need: a shell in a fresh repository."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.acceptance.calling import Shell
from tests.client_support import make_bare_path

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def shell(repository: Path) -> Shell:
    """A shell that stands in a fresh repository."""
    return Shell(repository)


@pytest.fixture
def programs(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the search path: no coding client is in it, unless the test puts one there."""
    folder = make_bare_path(tmp_path_factory.mktemp("programs") / "bin")
    monkeypatch.setenv("PATH", str(folder))
    return folder
