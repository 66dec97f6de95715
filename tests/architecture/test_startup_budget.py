"""What a fresh process must not load: every command and every hook pays for its imports."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

pytestmark = pytest.mark.architecture

ROOT = Path(__file__).resolve().parents[2]

TOO_DEAR_FOR_ANY_COMMAND = {"asyncio", "click", "dataclasses", "mcp", "psycopg", "pydantic", "rich"}
TOO_DEAR_FOR_HELP = {"mcp", "psycopg", "pydantic", "starlette", "tree_sitter"}
WHO = "to see who pulled it in: python -X importtime .venv/bin/landlane --help"

HELP = """
import sys
from landlane.cli.main import main
code = main(["--help"])
if code:
    sys.exit(f"landlane --help ended with {code}")
"""


def _loaded_by(program: str) -> set[str]:
    """The names in `sys.modules` after a program has run in a fresh interpreter."""
    # Without site: what .pth files of installed packages import is not ours, and would hide what is.
    paths = [str(ROOT / "src"), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    start = f"import sys\nsys.path[:0] = {paths!r}\n"
    finish = '\nprint("\\n".join(sys.modules), file=sys.stderr)\n'
    result = subprocess.run(
        [sys.executable, "-I", "-S", "-c", start + program + finish],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
    )
    assert result.returncode == 0, result.stderr
    return set(result.stderr.split())


@pytest.mark.promise(
    "cli.quick-start",
    "Importing the command line loads neither the terminal libraries nor any heavy dependency.",
)
def test_importing_the_command_line_stays_light() -> None:
    loaded = _loaded_by("import landlane.cli.main")

    assert not loaded & TOO_DEAR_FOR_ANY_COMMAND, WHO


def test_help_loads_no_heavy_dependency() -> None:
    loaded = _loaded_by(HELP)

    assert "landlane.cli.main" in loaded
    assert not loaded & TOO_DEAR_FOR_HELP, WHO
