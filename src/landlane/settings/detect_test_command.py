"""Find the command that tests a project from its own files."""

from __future__ import annotations

import json
import os
import shutil

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


_MOST_READ = 1_000_000
_MOST_FOLDERS = 2000  # that are searched for tests
_DEEPEST = 6
_NOT_OURS = frozenset({"node_modules", "venv", "env", "build", "dist", "site-packages", "__pycache__"})

_NPM_LOCKS = (("pnpm-lock.yaml", "pnpm test"), ("yarn.lock", "yarn test"), ("bun.lock", "bun run test"))

_NO_TESTS = "no test specified"  # the script that `npm init` writes


def find_test_command(root: str) -> tuple[str, str]:
    """Return the command that tests a project, and the file that shows it; both are empty if none does.

    Only a command whose program is there is returned.
    """
    for file, find_command in _FILES:
        if os.path.isfile(os.path.join(root, file)) and (command := find_command(root, file)):
            program = command.split()[0]
            if shutil.which(os.path.join(root, program) if os.sep in program else program):
                return command, file
    return "", ""


def _read(root: str, file: str) -> str:
    try:
        with open(os.path.join(root, file), encoding="utf-8", errors="replace") as opened:
            return opened.read(_MOST_READ)
    except OSError:
        return ""


def _with_target(command: str) -> Callable[[str, str], str]:
    """Return a function that returns the command if a file has a target `test`."""

    def find_command(root: str, file: str) -> str:
        lines = _read(root, file).splitlines()
        # `test:` and `test: build`, not `test := value`.
        parts = (line.partition(":") for line in lines if not line.startswith((" ", "\t", "#", ".")))
        has_test = any("test" in names.split() for names, colon, rest in parts if colon and rest[:1] != "=")
        return command if has_test else ""

    return find_command


def _with_script(root: str, file: str) -> str:
    try:
        script: object = json.loads(_read(root, file))["scripts"]["test"]
    except (ValueError, KeyError, TypeError, IndexError):
        return ""
    if not isinstance(script, str) or not script.strip() or _NO_TESTS in script:
        return ""
    locks = (command for lock, command in _NPM_LOCKS if os.path.exists(os.path.join(root, lock)))
    return next(locks, "npm test")


def _with_pytest(root: str, file: str) -> str:
    uses_pytest = file == "pytest.ini" or "pytest" in _read(root, file)
    return _pytest_command() if uses_pytest and _has_tests(root) else ""


def _pytest_command() -> str:
    """Return how pytest is started on this machine; empty if it is not installed."""
    python, pytest = shutil.which("python3"), shutil.which("pytest")
    if python and os.path.exists(os.path.join(os.path.dirname(python), "pytest")):
        return "python3 -m pytest"
    return "pytest" if pytest else ""


def _has_tests(root: str) -> bool:
    """Return whether there are files with tests, at the root or in nested folders."""
    for looked, (folder, names, files) in enumerate(os.walk(root)):
        if any(_is_test_file(name) for name in files):
            return True
        depth = os.path.relpath(folder, root).count(os.sep) + (folder != root)
        if looked > _MOST_FOLDERS or depth >= _DEEPEST:
            names.clear()
        names[:] = [name for name in sorted(names) if name not in _NOT_OURS and not name.startswith(".")]
    return False


def _is_test_file(name: str) -> bool:
    return name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py"))


def _always(command: str) -> Callable[[str, str], str]:
    return lambda _root, _file: command


# Files that name a test command come before those that only show the language.
_FILES: tuple[tuple[str, Callable[[str, str], str]], ...] = (
    *((name, _with_target("make test")) for name in ("GNUmakefile", "Makefile", "makefile")),
    *((name, _with_target("just test")) for name in ("justfile", "Justfile")),
    ("package.json", _with_script),
    *((name, _with_pytest) for name in ("pytest.ini", "pyproject.toml", "setup.cfg", "tox.ini")),
    ("Cargo.toml", _always("cargo test")),
    ("go.mod", _always("go test ./...")),
    ("gradlew", _always("./gradlew test")),
    ("mvnw", _always("./mvnw test")),
    ("pom.xml", _always("mvn test")),
    ("mix.exs", _always("mix test")),
)
