"""Tests stand beside the package they are about, and every file says of which kind it is."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

pytestmark = pytest.mark.architecture

TESTS = Path(__file__).resolve().parents[1]
PACKAGE = TESTS.parent / "src" / "landlane"
KINDS = {"unit", "contract", "integration", "acceptance", "simulation", "client", "architecture"}
# Folders of tests that are not about one package. `foundation` is about the single modules of src/landlane.
OTHER_FOLDERS = {"architecture", "bench", "docs", "examples", "foundation", "support"}
FILES = sorted(TESTS.rglob("test_*.py"))


def _marks_of_file(path: Path) -> list[str]:
    """Return the names in `pytestmark = pytest.mark.<name>`, or in a list of such marks."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            words = [one.attr for one in ast.walk(node.value) if isinstance(one, ast.Attribute)]
            return [word for word in words if word != "mark"]
    return []


def test_every_folder_of_tests_mirrors_a_package() -> None:
    packages = {init.parent.name for init in PACKAGE.glob("*/__init__.py")}
    folders = {path.parent.relative_to(TESTS).as_posix() for path in FILES}

    assert folders - packages - OTHER_FOLDERS == set()


def test_every_file_of_tests_has_exactly_one_kind() -> None:
    kinds = {path.relative_to(TESTS).as_posix(): KINDS.intersection(_marks_of_file(path)) for path in FILES}

    assert {name: sorted(found) for name, found in kinds.items() if len(found) != 1} == {}
