"""The import contracts hold, and they have teeth."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import grimp
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


@pytest.mark.promise("house.imports-point-down", "No module imports from a layer above its own.")
def test_the_tree_keeps_every_import_contract() -> None:
    verdict = _lint_imports(ROOT)

    assert verdict.returncode == 0, verdict.stdout + verdict.stderr


def _write_package(folder: Path, modules: dict[str, str]) -> None:
    """Put a small `landlane` with these modules into a folder, under this project's contracts."""
    shutil.copy(ROOT / "pyproject.toml", folder)
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = listed["tool"]["importlinter"]["contracts"]
    packages = next(one["layers"] for one in contracts if one["id"] == "layers")
    named_in_contracts = {f"{name}/__init__.py": "" for name in packages}
    named_in_contracts["protocol/worker/model.py"] = named_in_contracts["claims/model.py"] = ""
    for name, text in {"__init__.py": "", **named_in_contracts, **modules}.items():
        module = folder / "landlane" / name
        module.parent.mkdir(parents=True, exist_ok=True)
        module.write_text(text)
        (module.parent / "__init__.py").touch()


def test_every_contract_refuses_the_import_it_is_there_for(tmp_path: Path) -> None:
    sins = {
        "sessions/leases.py": "def lapse():\n    import landlane.tasks.records\n",  # upwards
        "tasks/records.py": "import landlane.tasks.change\n",
        "tasks/change.py": "import landlane.tasks.records\n",
        "claims/model.py": "import os\n",
        "landing/queue.py": "import subprocess\n",
        "status/overview.py": "import rich.table\n",
        "hooks/edit.py": "import sqlite3\n",
    }
    _write_package(tmp_path, sins)

    verdict = _lint_imports(tmp_path)

    assert verdict.returncode == 1
    assert "Contracts: 0 kept, 6 broken." in verdict.stdout, verdict.stdout + verdict.stderr


def test_the_few_who_may_are_let_through(tmp_path: Path) -> None:
    permitted = {
        "git/run.py": "import subprocess\n",
        "processes/child.py": "import subprocess\n",
        "testing/agents.py": "import subprocess\n",
        "cli/terminal.py": "import rich.table\n",
        "store/sqlite/store.py": "import sqlite3\n",
        "store/postgres/store.py": "import psycopg\n",
        "hook_entry/client_fast_path.py": "import _sqlite3\n",
        "landing/queue.py": "import landlane.git.run\n",
    }
    _write_package(tmp_path, permitted)

    verdict = _lint_imports(tmp_path)

    assert verdict.returncode == 0, verdict.stdout + verdict.stderr


def test_a_package_outside_the_layers_is_noticed(tmp_path: Path) -> None:
    _write_package(tmp_path, {"somewhere.py": ""})

    verdict = _lint_imports(tmp_path)

    assert verdict.returncode == 1
    assert "somewhere" in verdict.stdout, verdict.stdout + verdict.stderr


def test_no_contract_ignores_an_import_between_our_own_packages() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    ignored = [
        line for one in listed["tool"]["importlinter"]["contracts"] for line in one.get("ignore_imports", ())
    ]

    assert [line for line in ignored if line.partition(" -> ")[2].startswith("landlane")] == []
    assert "exclude_type_checking_imports" not in listed["tool"]["importlinter"]


def test_a_model_imports_only_models_and_the_foundation() -> None:
    graph = grimp.build_graph("landlane")
    foundation = {"errors", "values", "ids", "clock", "files", "text", "redact", "version"}
    foundation |= {"settings", "patterns"}
    pure = {"landlane.usage.period"}  # parses text, and nothing else
    models = {name for name in graph.modules if name.endswith((".model", "_model"))}
    outside = {
        f"{model} -> {imported}"
        for model in models
        for imported in graph.find_modules_directly_imported_by(model)
        if imported not in models | pure and imported.split(".")[1] not in foundation
    }

    assert outside == set()
