"""What must hold before anything lands: every migration applies in order, every package can be imported."""

from __future__ import annotations

import importlib
import sqlite3
import sys
from pathlib import Path

sys.dont_write_bytecode = True
root = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(root))
numbers = [path.name.partition("_")[0] for path in sorted((root / "migrations").iterdir())]
if len(set(numbers)) != len(numbers):
    sys.exit(f"a number is there twice: {numbers}")
database = sqlite3.connect(":memory:")
for path in sorted((root / "migrations").iterdir()):
    database.executescript(path.read_text(encoding="utf-8"))
for path in sorted((root / "packages").iterdir()):
    importlib.import_module(f"packages.{path.name}.main")
