"""The test command that `init` proposes: suites in nested folders, and only programs that are installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.settings.detect_test_command import find_test_command

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH; empty."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def install(programs: Path, *names: str) -> None:
    for name in names:
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)


def test_a_suite_in_nested_folders_is_found(tmp_path: Path, programs: Path) -> None:
    install(programs, "python3", "pytest")
    root = tmp_path / "project"
    (root / "packages/api/tests/unit").mkdir(parents=True)
    (root / "packages/api/tests/unit/test_users.py").write_text("")
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")

    assert find_test_command(str(root)) == ("python3 -m pytest", "pyproject.toml")


def test_tests_of_installed_packages_do_not_count(tmp_path: Path, programs: Path) -> None:
    install(programs, "python3", "pytest")
    root = tmp_path / "project"
    (root / "venv/lib/thing").mkdir(parents=True)
    (root / "venv/lib/thing/test_it.py").write_text("")
    (root / "pytest.ini").write_text("")

    assert find_test_command(str(root)) == ("", "")


def test_a_command_whose_program_is_missing_is_not_proposed(tmp_path: Path, programs: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "Makefile").write_text("test:\n\ttrue\n")
    (root / "test_it.py").write_text("")
    (root / "pytest.ini").write_text("")
    assert find_test_command(str(root)) == ("", "")

    install(programs, "pytest")
    assert find_test_command(str(root)) == ("pytest", "pytest.ini")
    install(programs, "make")
    assert find_test_command(str(root)) == ("make test", "Makefile")
