"""The sandbox backends of this machine, and a sandbox around the folder of a test."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landlane.sandbox.bubblewrap import BWRAP_VARIABLE
from landlane.sandbox.model import Backend, BackendKind, Sandbox
from landlane.sandbox.start import choose_backend
from tests.sandbox.escapes import pick_backend
from tests.support.tools import find_tool

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(autouse=True)
def _bubblewrap(sealed_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del sealed_home  # it must run first, because it clears our variables
    if found := find_tool("bubblewrap"):
        monkeypatch.setenv(BWRAP_VARIABLE, found)


@pytest.fixture(params=[BackendKind.BUBBLEWRAP_LANDLOCK, BackendKind.LANDLOCK])
def backend(request: pytest.FixtureRequest) -> Backend:
    """Return each backend of this machine in turn."""
    found = pick_backend(request.param)
    if found is None:
        pytest.skip(f"no {request.param}: {' '.join(choose_backend().reasons)}")
    return found


@pytest.fixture
def make_sandbox(tmp_path: Path) -> Callable[..., Sandbox]:
    """Return a function that makes a sandbox with a workspace and a scratch folder, all of it readable."""
    workspace, scratch = tmp_path / "workspace", tmp_path / "scratch"
    scratch.mkdir()

    def make(**more: object) -> Sandbox:
        workspace.mkdir(exist_ok=True)
        given = {"writable": (str(workspace),), "scratch": str(scratch), "readable": (str(tmp_path),), **more}
        return Sandbox(**given)  # pyright: ignore[reportArgumentType]

    return make
