"""A Python child that runs a module starts with -P or -I, so it imports nothing from the current folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.architecture

SOURCE = Path(__file__).resolve().parents[2] / "src"
# `sys.executable` or a placeholder for it, the words between, and `-m`.
STARTS_MODULE = re.compile(r"""(?:sys\.executable|"\{python\}")((?:, "[^"]*")*?), "-m\"""")


def test_no_module_is_started_with_the_current_folder_on_its_path() -> None:
    starts = [
        (path.name, found.group(1))
        for path in SOURCE.rglob("*.py")
        for found in STARTS_MODULE.finditer(path.read_text(encoding="utf-8"))
    ]

    assert len(starts) >= 8
    assert [start for start in starts if not {'"-P"', '"-I"'} & set(start[1].split(", "))] == []
