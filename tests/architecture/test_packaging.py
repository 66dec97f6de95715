"""The wheel holds everything that the package needs at run time."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

pytestmark = pytest.mark.architecture

ROOT = Path(__file__).parents[2]


def test_the_wheel_has_every_file_of_the_package(tmp_path: Path) -> None:
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    source = ROOT / "src"
    needed = {
        path.relative_to(source).as_posix()
        for path in (source / "landlane").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    with zipfile.ZipFile(wheel) as file:
        assert sorted(needed - set(file.namelist())) == []
    assert {"landlane/store/schema.sqlite.sql", "landlane/tasks/queries.sql"} <= needed
