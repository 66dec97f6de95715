"""Backends to try the sandbox with: those this machine has, found where `scripts/bubblewrap.sh` put them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landlane.sandbox.bubblewrap import BWRAP_VARIABLE
from landlane.sandbox.model import BUBBLEWRAP_LANDLOCK, LANDLOCK, Backend, Sandbox
from landlane.sandbox.start import choose_backend
from tests.sandbox.escapes import pick_backend
from tests.support.bubblewrap import find_bubblewrap

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(autouse=True)
def _bubblewrap(sealed_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del sealed_home  # first: it takes our variables away
    if found := find_bubblewrap():
        monkeypatch.setenv(BWRAP_VARIABLE, found)


@pytest.fixture(params=[BUBBLEWRAP_LANDLOCK, LANDLOCK])
def backend(request: pytest.FixtureRequest) -> Backend:
    """Each backend of this machine in turn."""
    found = pick_backend(request.param)
    if found is None:
        pytest.skip(f"no {request.param}: {' '.join(choose_backend().reasons)}")
    return found


@pytest.fixture
def make_sandbox(tmp_path: Path) -> Callable[..., Sandbox]:
    """A sandbox around a workspace and a scratch in the test's folder, all of which stays readable."""
    workspace, scratch = tmp_path / "workspace", tmp_path / "scratch"
    scratch.mkdir()

    def make(**more: object) -> Sandbox:
        workspace.mkdir(exist_ok=True)
        given = {"writable": (str(workspace),), "scratch": str(scratch), "readable": (str(tmp_path),), **more}
        return Sandbox(**given)  # pyright: ignore[reportArgumentType]

    return make
