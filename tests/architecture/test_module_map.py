"""The module map in ARCHITECTURE.md follows the modules."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import module_map

pytestmark = pytest.mark.architecture


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with one module and one package inside."""
    folder = tmp_path / "landlane"
    (folder / "domain").mkdir(parents=True)
    (folder / "__init__.py").write_text('"""The whole."""\n')
    (folder / "errors.py").write_text('"""What can go wrong.\n\nIn detail.\n"""\n')
    (folder / "domain" / "__init__.py").write_text('"""The rules."""\n')
    (folder / "domain" / "claims.py").write_text('"""Who holds what."""\n')
    return folder


def test_the_map_is_what_the_modules_say() -> None:
    assert module_map.main(["--check"]) == 0


def test_each_module_stands_below_its_package_with_its_first_line(package: Path) -> None:
    drawing = module_map.draw(package)

    assert [line.split(maxsplit=1) for line in drawing.splitlines()] == [
        ["landlane/", "The whole"],
        ["errors.py", "What can go wrong"],
        ["domain/", "The rules"],
        ["claims.py", "Who holds what"],
    ]


def test_a_module_without_docstring_is_named(package: Path) -> None:
    (package / "domain" / "silent.py").write_text("answer = 42\n")

    assert module_map.silent_modules(package) == ["landlane/domain/silent.py"]


def test_what_stands_around_the_markers_stays() -> None:
    page = f"above\n{module_map.BEGIN}\nold\n{module_map.END}\nbelow\n"

    after = module_map.with_map(page, "new")

    assert after.startswith("above\n")
    assert after.endswith("below\n")
    assert "old" not in after
    assert module_map.with_map(after, "new") == after


def test_a_stale_map_fails_with_a_diff(capsys: pytest.CaptureFixture[str]) -> None:
    assert module_map.report_difference("old line\n", "new line\n")
    assert "-old line\n+new line" in capsys.readouterr().out
