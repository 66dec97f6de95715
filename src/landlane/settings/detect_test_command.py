"""Find the command that tests a project from its own files."""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


_MOST_READ = 1_000_000

_NPM_LOCKS = (("pnpm-lock.yaml", "pnpm test"), ("yarn.lock", "yarn test"), ("bun.lock", "bun run test"))

_NO_TESTS = "no test specified"  # what `npm init` writes where there are none


def find_test_command(root: str) -> tuple[str, str]:
    """The command that tests the project in a folder, and the file that says so; both empty if none does."""
    for file, tell in _SIGNS:
        if os.path.isfile(os.path.join(root, file)):
            command = tell(root, file)
            if command:
                return command, file
    return "", ""


def _read(root: str, file: str) -> str:
    try:
        with open(os.path.join(root, file), encoding="utf-8", errors="replace") as opened:
            return opened.read(_MOST_READ)
    except OSError:
        return ""


def _by_target(command: str) -> Callable[[str, str], str]:
    """Of a file with named targets: the command, if there is a target `test`."""

    def tell(root: str, file: str) -> str:
        lines = _read(root, file).splitlines()
        # `test:` and `test: build`, not `test := value`.
        names = (line.partition(":") for line in lines if not line.startswith((" ", "\t", "#", ".")))
        is_there = any("test" in name.split() for name, colon, rest in names if colon and rest[:1] != "=")
        return command if is_there else ""

    return tell


def _by_scripts(root: str, file: str) -> str:
    try:
        document = json.loads(_read(root, file))
    except ValueError:
        return ""
    try:
        said: object = document["scripts"]["test"]
    except (KeyError, TypeError, IndexError):
        return ""
    if not isinstance(said, str) or not said.strip() or _NO_TESTS in said:
        return ""
    found = (command for lock, command in _NPM_LOCKS if os.path.exists(os.path.join(root, lock)))
    return next(found, "npm test")


def _by_pytest(root: str, file: str) -> str:
    is_said = file == "pytest.ini" or "pytest" in _read(root, file)
    return "python3 -m pytest" if is_said and _has_tests(root) else ""


def _has_tests(root: str) -> bool:
    for folder in ("tests", "test", "."):
        try:
            names = os.listdir(os.path.join(root, folder))
        except OSError:
            continue
        if any(name.startswith("test_") and name.endswith(".py") for name in names):
            return True
    return False


def _always(command: str) -> Callable[[str, str], str]:
    return lambda _root, _file: command


# What a project says of itself comes before what its language would do.
_SIGNS: tuple[tuple[str, Callable[[str, str], str]], ...] = (
    *((name, _by_target("make test")) for name in ("GNUmakefile", "Makefile", "makefile")),
    *((name, _by_target("just test")) for name in ("justfile", "Justfile")),
    ("package.json", _by_scripts),
    *((name, _by_pytest) for name in ("pytest.ini", "pyproject.toml", "setup.cfg", "tox.ini")),
    ("Cargo.toml", _always("cargo test")),
    ("go.mod", _always("go test ./...")),
    ("gradlew", _always("./gradlew test")),
    ("mvnw", _always("./mvnw test")),
    ("pom.xml", _always("mvn test")),
    ("mix.exs", _always("mix test")),
)
