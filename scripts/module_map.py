#!/usr/bin/env python3
"""Write docs/reference/modules.md: every module with the first line of its docstring.

`--check` writes nothing, and fails with a diff if the page is out of date. A module without a docstring is
an error in both cases.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "landlane"
PAGE = ROOT / "docs" / "reference" / "modules.md"

ABOVE = """# Modules

<!-- Written by scripts/module_map.py from the docstrings. Change those, then run `make format`. -->

Every module in `src/landlane` with the first line of its docstring.
[ARCHITECTURE.md](../../ARCHITECTURE.md) explains how the packages work together and where to change what."""


def main(arguments: list[str] | None = None) -> int:
    """Write or check the page, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the page is out of date")
    options = parser.parse_args(arguments)
    before = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    after = page_text(PACKAGE)
    if not options.check and after != before:
        PAGE.write_text(after, encoding="utf-8")
    is_stale = options.check and report_difference(before, after)
    has_silent = report_silent(silent_modules(PACKAGE))
    return int(is_stale or has_silent)


def page_text(package: Path) -> str:
    """Return the page."""
    return f"{ABOVE}\n\n{draw(package)}\n"


def draw(package: Path) -> str:
    """Return one section with a table for the single modules, then one for each package."""
    single = [path for path in sorted(package.glob("*.py")) if path.name != "__init__.py"]
    sections = [section(package, single)]
    for folder in sorted(path.parent for path in package.glob("*/__init__.py")):
        modules = [path for path in sorted(folder.rglob("*.py")) if path.parent != folder]
        own = [path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"]
        sections.append(section(folder, own + modules))
    return "\n\n".join(sections)


def section(folder: Path, modules: list[Path]) -> str:
    """Return a heading, the sentence of the package, and a row for each module and inner package."""
    lines = [f"## {folder.name}", "", first_line(folder / "__init__.py")]
    if modules:
        lines += ["", "| module | purpose |", "| --- | --- |"]
        lines += [row(name_in(folder, path), first_line(path)) for path in modules]
    return "\n".join(lines)


def name_in(folder: Path, module: Path) -> str:
    """Return the name of a module in its package; a package inside it is named by its folder."""
    name = module.relative_to(folder).as_posix()
    return name.removesuffix("__init__.py")


def row(name: str, purpose: str) -> str:
    """Return one row of a table."""
    return f"| `{name}` | {purpose.removesuffix('.').replace('|', chr(92) + '|')} |"


def silent_modules(package: Path) -> list[str]:
    """Return the modules without a docstring."""
    return [
        str(path.relative_to(package.parent))
        for path in sorted(package.rglob("*.py"))
        if not first_line(path)
    ]


def first_line(path: Path) -> str:
    """Return the first line of a module's docstring; empty if there is none."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"), str(path)))
    return docstring.splitlines()[0].strip() if docstring else ""


def report_difference(before: str, after: str) -> bool:
    """Print how the page would change, and return whether it would."""
    if before == after:
        return False
    changes = difflib.unified_diff(
        before.splitlines(), after.splitlines(), PAGE.name, "from the docstrings", lineterm="", n=1
    )
    print("\n".join(changes))
    print("docs/reference/modules.md is out of date. `make format` updates it.", file=sys.stderr)
    return True


def report_silent(modules: list[str]) -> bool:
    """Print the modules without a docstring, and return whether there are any."""
    for module in modules:
        print(f"{module} has no docstring: begin it with a sentence about its purpose.", file=sys.stderr)
    return bool(modules)


if __name__ == "__main__":
    raise SystemExit(main())
