"""ARCHITECTURE.md is short, and what it names exists."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.architecture

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "landlane"
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
OF_USERS = "landlane.toml"  # it is in the repositories of users


def _table_below(heading: str) -> list[list[str]]:
    """The cells of the rows of the first table below a heading."""
    section = TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_page_has_at_most_150_lines() -> None:
    assert len(TEXT.splitlines()) <= 150
    assert max(len(line) for line in TEXT.splitlines() if not line.startswith("|")) <= 125


def test_the_table_of_changes_has_at_most_25_rows() -> None:
    rows = _table_below("To change X, go to Y")

    assert 15 <= len(rows) <= 25
    assert all("`" in row[1] for row in rows)


def test_every_file_and_function_on_the_page_exists() -> None:
    named = re.findall(r"`([\w/.]+\.(?:py|sql|toml))(?::(\w+))?`", TEXT)

    assert len(named) > 60
    for file, function in named:
        if file == OF_USERS:
            continue
        found = [path for folder in (ROOT, PACKAGE) if (path := folder / file).exists()]
        if "/" not in file:  # a name such as `model.py` that several packages have
            found = found or list(PACKAGE.rglob(file))
        assert found, f"there is no {file}"
        assert not function or f"def {function}(" in found[0].read_text(encoding="utf-8"), (
            f"{file} has no {function}"
        )


def test_every_folder_on_the_page_exists() -> None:
    named = {*re.findall(r"`([\w/]+/)`", TEXT), *re.findall(r"(?<= )([a-z_]+/)(?= )", TEXT)}

    assert len(named) > 10
    assert [one for one in named if not ((ROOT / one).is_dir() or (PACKAGE / one).is_dir())] == []


def test_the_packages_are_in_the_order_of_the_contract() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["id"] == "layers")
    rows = _table_below("Order of the packages")

    assert [name for row in rows for name in re.findall(r"`(\w+)`", row[0])] == layers
    assert all(row[1].endswith(".") for row in rows)
