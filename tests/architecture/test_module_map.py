"""docs/reference/modules.md lists every module with its own first line."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import module_map

pytestmark = pytest.mark.architecture


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with a single module, a package inside it, and one inside that."""
    folder = tmp_path / "landlane"
    (folder / "claims" / "stored").mkdir(parents=True)
    (folder / "__init__.py").write_text('"""The product."""\n')
    (folder / "errors.py").write_text('"""What can go wrong.\n\nIn detail.\n"""\n')
    (folder / "claims" / "__init__.py").write_text('"""The rules."""\n')
    (folder / "claims" / "model.py").write_text('"""Who holds what: `a | b`."""\n')
    (folder / "claims" / "stored" / "__init__.py").write_text('"""Rows."""\n')
    (folder / "claims" / "stored" / "read.py").write_text('"""Read rows."""\n')
    return folder


@pytest.mark.promise(
    "house.every-module-says-what-it-is-for",
    "The module map lists every module with the first line of its docstring.",
)
@pytest.mark.slow
def test_the_map_is_what_the_modules_say() -> None:
    assert module_map.main(["--check"]) == 0


def test_the_map_names_every_module() -> None:
    page = module_map.PAGE.read_text(encoding="utf-8")
    modules = [path for path in module_map.PACKAGE.rglob("*.py") if path.name != "__init__.py"]

    assert len(modules) > 400
    assert [path for path in modules if f"/{path.name}`" not in page and f"`{path.name}`" not in page] == []


def test_each_module_stands_below_its_package_with_its_first_line(package: Path) -> None:
    drawing = module_map.draw(package)

    assert [line for line in drawing.splitlines() if line and not line.startswith(("| module", "| ---"))] == [
        "## landlane",
        "The product.",
        "| `errors.py` | What can go wrong |",
        "## claims",
        "The rules.",
        r"| `model.py` | Who holds what: `a \| b` |",
        "| `stored/` | Rows |",
        "| `stored/read.py` | Read rows |",
    ]


def test_a_module_without_docstring_is_named(package: Path) -> None:
    (package / "claims" / "silent.py").write_text("answer = 42\n")

    assert module_map.silent_modules(package) == ["landlane/claims/silent.py"]


def test_what_stands_above_the_map_stays(package: Path) -> None:
    page = module_map.page_text(package)

    assert page.startswith(f"{module_map.ABOVE}\n\n## landlane\n")
    assert page.endswith("| `stored/read.py` | Read rows |\n")


def test_a_stale_map_fails_with_a_diff(capsys: pytest.CaptureFixture[str]) -> None:
    assert module_map.report_difference("old line\n", "new line\n")
    assert "-old line\n+new line" in capsys.readouterr().out
