"""The import contracts hold, and they have teeth."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.architecture

ROOT = Path(__file__).resolve().parents[2]
LINT = "from importlinter.cli import lint_imports; exit(lint_imports(no_cache=True, no_logo=True))"


def _lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Judge the package that stands in this folder (or, without one there, the installed one)."""
    # `-c` puts the folder in front of everything that is installed.
    return subprocess.run(
        [sys.executable, "-c", LINT], cwd=folder, capture_output=True, text=True, timeout=60
    )


def test_the_tree_keeps_every_import_contract() -> None:
    verdict = _lint_imports(ROOT)

    assert verdict.returncode == 0, verdict.stdout + verdict.stderr


def _write_package(folder: Path, modules: dict[str, str]) -> None:
    """Put a small `landlane` with these modules into a folder, under this project's contracts."""
    shutil.copy(ROOT / "pyproject.toml", folder)
    named_in_contracts = {"domain/__init__.py": "", "operations/__init__.py": "", "ports/__init__.py": ""}
    for name, text in {"__init__.py": "", **named_in_contracts, **modules}.items():
        module = folder / "landlane" / name
        module.parent.mkdir(parents=True, exist_ok=True)
        module.write_text(text)
        (module.parent / "__init__.py").touch()


def test_every_contract_refuses_the_import_it_is_there_for(tmp_path: Path) -> None:
    sins = {
        "domain/claims.py": "import landlane.operations.claims\nimport socket\n",
        "operations/claims.py": "",
        "loops/queue.py": "import subprocess\n",
        "views/tables.py": "import rich.table\n",
        "hooks/edit.py": "import sqlite3\n",
    }
    _write_package(tmp_path, sins)

    verdict = _lint_imports(tmp_path)

    assert verdict.returncode == 1
    assert "Contracts: 0 kept, 5 broken." in verdict.stdout, verdict.stdout + verdict.stderr


def test_the_few_who_may_are_let_through(tmp_path: Path) -> None:
    permitted = {
        "git/run.py": "import subprocess\n",
        "runners/process.py": "import subprocess\n",
        "testing/agents.py": "import subprocess\n",
        "cli/terminal.py": "import click\nimport rich.table\n",
        "store/sqlite/open.py": "import sqlite3\n",
        "store/postgres.py": "import psycopg\n",
        "hooks/edit.py": "import _sqlite3\n",
        "loops/queue.py": "import landlane.git.run\n",
    }
    _write_package(tmp_path, permitted)

    verdict = _lint_imports(tmp_path)

    assert verdict.returncode == 0, verdict.stdout + verdict.stderr


def test_a_module_outside_the_layers_is_noticed(tmp_path: Path) -> None:
    _write_package(tmp_path, {"somewhere.py": ""})

    verdict = _lint_imports(tmp_path)

    assert verdict.returncode == 1
    assert "somewhere" in verdict.stdout, verdict.stdout + verdict.stderr
