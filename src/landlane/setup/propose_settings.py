"""What `init` proposes as settings: with the command that tests the project, as its own files tell it."""

from __future__ import annotations

import os

from landlane.settings.model import FILE_NAME, read_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

UNKNOWN_ID = "{repository_id}"  # for which the id comes that the repository already goes by
_CHECKS = "{checks}"
_TEMPLATE = """\
# Settings of Landlane. Commit this file: every clone and every agent reads it.
# Take the # away from a line to use it. ttl, max_ttl and lease show what holds without.

[repository]
id = "{repository_id}"

[claims]
# ttl = "30m"            # the lease of a claim; any sign of life of its session renews it
# max_ttl = "7d"
# required = ["src/**"]  # the shared surface: changing it needs a claim
# free = ["scratch/**"]  # never needs a claim
# hot = ["CHANGELOG.md"] # may be claimed --shared by many at once

[sessions]
# lease = "30m"          # how long a silent session lives

{checks}

# [run]
# agent = "claude"       # who does tasks that name nobody in `landlane run`
# role = "code"          # what workers may do; without one they hand their changes back

[hooks]
# policy = "auto"        # before an edit: auto takes a free path, strict wants a claim, watch only reports

[journal]
# git = true             # also commit the journal to refs/landlane/journal
"""

_MOST_READ = 1_000_000
_NPM_LOCKS = (("pnpm-lock.yaml", "pnpm test"), ("yarn.lock", "yarn test"), ("bun.lock", "bun run test"))
_NO_TESTS = "no test specified"  # what `npm init` writes where there are none


def settings_text(root: str) -> tuple[str, str]:
    """The settings for a repository that has none, and what was found to be its tests, in words."""
    command, file = find_test_command(root)
    if not command:
        # Without its header: whoever brings the section along must not declare it twice.
        lines = (
            '# [landing]\n# checks = ["make test"]  # what must pass before anything lands; `[]` for nothing'
        )
        return _TEMPLATE.replace(_CHECKS, lines), ""
    lines = (
        "[landing]  # once this is committed, the target branch moves only through the landing queue\n"
        f'checks = ["{command}"]  # what must pass before anything lands, as {file} says'
    )
    told = (
        f", with `{command}` of {file} as the check of what lands: committed, only the queue moves the branch"
    )
    return _TEMPLATE.replace(_CHECKS, lines), told


def missing_checks(root: str) -> str:
    """What the user has yet to add to settings that do not say how the work is tested; they are his."""
    if not os.path.exists(os.path.join(root, FILE_NAME)) or read_settings(root).landing_checks is not None:
        return ""
    command = find_test_command(root)[0] or "make test"
    return f'before anything can land, say below [landing] in {FILE_NAME}: checks = ["{command}"]'


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
    import json

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
