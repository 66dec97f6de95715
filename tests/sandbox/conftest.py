"""Backends to try the sandbox with: those this machine has, found where `scripts/bubblewrap.sh` put them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landlane.sandbox.bubblewrap import VARIABLE
from landlane.sandbox.model import BUBBLEWRAP_LANDLOCK, LANDLOCK, Backend, Sandbox
from landlane.sandbox.start import choose_backend
from tests.sandbox.escapes import pick_backend

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]


def bubblewrap_for_tests() -> str:
    """The system's own, or the one in .tools."""
    unpacked = ROOT / ".tools" / "bubblewrap" / "usr" / "bin" / "bwrap"
    return shutil.which("bwrap") or (str(unpacked) if os.access(unpacked, os.X_OK) else "")


@pytest.fixture(autouse=True)
def _bubblewrap(sealed_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del sealed_home  # first: it takes our variables away
    if found := bubblewrap_for_tests():
        monkeypatch.setenv(VARIABLE, found)


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
