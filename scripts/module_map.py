#!/usr/bin/env python3
"""Write the module map into ARCHITECTURE.md, from the first docstring line of each module.

`--check` writes nothing, and fails with a diff when the map is stale. A module that does not say what it is
for is a failure either way.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import sys
from pathlib import Path

BEGIN = "<!-- module map: begin -->"
END = "<!-- module map: end -->"
ROOT = Path(__file__).resolve().parent.parent
NOTE_COLUMN = 28


def main(arguments: list[str] | None = None) -> int:
    """Write or check the map, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail when the map is stale")
    options = parser.parse_args(arguments)
    page = ROOT / "ARCHITECTURE.md"
    package = ROOT / "src" / "landlane"
    before = page.read_text(encoding="utf-8")
    after = with_map(before, draw(package))
    if not options.check and after != before:
        page.write_text(after, encoding="utf-8")
    is_stale = options.check and report_difference(before, after)
    is_silent = report_silence(silent_modules(package))
    return int(is_stale or is_silent)


def draw(package: Path) -> str:
    """The tree of modules below a package, one line each."""
    return "\n".join(lines_of(package, depth=0))


def silent_modules(package: Path) -> list[str]:
    """The modules that do not say what they are for."""
    return [
        str(path.relative_to(package.parent))
        for path in sorted(package.rglob("*.py"))
        if not first_line(path)
    ]


def lines_of(package: Path, *, depth: int) -> list[str]:
    """A package's own line, then its modules, then the packages inside it."""
    modules = [path for path in sorted(package.glob("*.py")) if path.name != "__init__.py"]
    inside = [path.parent for path in sorted(package.glob("*/__init__.py"))]
    lines = [line(f"{package.name}/", first_line(package / "__init__.py"), depth)]
    lines += [line(path.name, first_line(path), depth + 1) for path in modules]
    for folder in inside:
        lines += lines_of(folder, depth=depth + 1)
    return lines


def line(name: str, note: str, depth: int) -> str:
    """One line of the map: the name, indented, and what it is for."""
    return f"{'  ' * depth + name:<{NOTE_COLUMN}}{note.removesuffix('.')}".rstrip()


def first_line(path: Path) -> str:
    """The first line of a module's docstring, or nothing."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"), str(path)))
    return docstring.splitlines()[0].strip() if docstring else ""


def with_map(page: str, drawing: str) -> str:
    """The page with this drawing between its markers."""
    if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
        raise SystemExit(f"ARCHITECTURE.md needs one {BEGIN} and, after it, one {END}")
    above, rest = page.split(BEGIN)
    below = rest.split(END)[1]
    return f"{above}{BEGIN}\n\n```text\n{drawing}\n```\n\n{END}{below}"


def report_difference(before: str, after: str) -> bool:
    """Print how the page would change, and return whether it would."""
    if before == after:
        return False
    changes = difflib.unified_diff(
        before.splitlines(), after.splitlines(), "ARCHITECTURE.md", "as the modules say", lineterm="", n=1
    )
    print("\n".join(changes))
    print("The module map is stale. `make format` mends it.", file=sys.stderr)
    return True


def report_silence(modules: list[str]) -> bool:
    """Name the modules that say nothing, and return whether there are any."""
    for module in modules:
        print(f"{module} does not say what it is for: begin its docstring with a sentence.", file=sys.stderr)
    return bool(modules)


if __name__ == "__main__":
    raise SystemExit(main())
