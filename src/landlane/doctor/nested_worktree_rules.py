"""Rules, one per tool, that detect whether the tool would search a nested copy of the project."""

from __future__ import annotations

import json
import os
import tomllib
from configparser import Error, RawConfigParser
from fnmatch import fnmatchcase

from landlane.managed_files.json_entries import values_of
from landlane.merge.json_source import NotJson
from landlane.merge.value_tree import is_list, is_table
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

_ENDINGS = ("js", "cjs", "mjs", "ts", "cts", "mts")
# The folders that pytest skips by default.
_PYTEST = ("*.egg", ".*", "_darcs", "build", "CVS", "dist", "node_modules", "venv", "{arch}")


@value
class Walker:
    """A tool that would search the folder, the settings file to change, and the line to add."""

    tool: str
    file: str
    line: str


@value
class Nest:
    """A folder with worktrees in it, as a path in the main checkout, and whether git ignores it."""

    root: str
    folder: str
    is_ignored: bool

    @property
    def is_hidden(self) -> bool:
        """Whether a part of its path begins with a dot, which many tools skip."""
        return any(part.startswith(".") for part in self.folder.split("/"))

    def text(self, name: str) -> str | None:
        """Return the text of a file at the root of the checkout; None when it cannot be read."""
        try:
            with open(os.path.join(self.root, name), encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            return None

    def there(self, *names: str) -> Iterator[tuple[str, str]]:
        """Yield the existing ones of these files with their text."""
        for name in names:
            text = self.text(name)
            if text is not None:
                yield name, text

    def is_named(self, text: str) -> bool:
        """Return whether a text names the folder or a parent, as a path, a glob or a regular expression."""
        plain = text.replace("\\", "")
        parts = self.folder.split("/")
        return any("/".join(parts[: length + 1]) in plain for length in range(len(parts)))

    def is_matched(self, patterns: Iterable[str]) -> bool:
        """Return whether one of these globs matches the folder, a folder above it, or the name of one."""
        parts = self.folder.split("/")
        above = ["/".join(parts[: length + 1]) for length in range(len(parts))]
        for pattern in patterns:
            tidy = pattern.strip().removeprefix("./").removeprefix("/").removeprefix("**/")
            tidy = tidy.removesuffix("/**").removesuffix("/*").rstrip("/")
            if any(fnmatchcase(name, tidy) for name in (*parts, *above)):
                return True
        return False

    def could_be_in(self, patterns: Iterable[str]) -> bool:
        """Return whether one of these globs could match inside the folder."""
        first = self.folder.split("/")[0]
        heads = [pattern.removeprefix("./").split("/")[0] for pattern in patterns]
        return any(head in ("", ".", first) or "*" in head for head in heads)


def _strings(found: Any) -> list[str]:
    """Return a list of texts, from a list or from one separated text."""
    if isinstance(found, str):
        return found.replace(",", " ").split()
    return [str(one) for one in found] if is_list(found) else []


def _json(text: str | None) -> dict[str, Any]:
    """Parse a JSON object with comments and trailing commas; empty when it is not an object."""
    try:
        found = values_of(text or "")
    except NotJson:
        return {}
    return found if is_table(found) else {}


def _toml(text: str | None) -> dict[str, Any]:
    try:
        return tomllib.loads(text or "")
    except ValueError:
        return {}


def _section(document: dict[str, Any], *names: str) -> dict[str, Any] | None:
    """Return a nested table; None when there is none."""
    for name in names:
        found = document.get(name)
        if not is_table(found):
            return None
        document = found
    return document


def _ini(text: str | None, section: str) -> dict[str, str] | None:
    reader = RawConfigParser(strict=False)
    try:
        reader.read_string(text or "")
    except Error:
        return None
    return dict(reader.items(section)) if reader.has_section(section) else None


def _tests_of_js(nest: Nest) -> Iterator[Walker]:
    """Jest and vitest search folders that begin with a dot."""
    package = _json(nest.text("package.json"))
    jest = list(nest.there(*(f"jest.config.{ending}" for ending in (*_ENDINGS, "json"))))
    if "jest" in package:
        jest.append(("package.json", json.dumps(package["jest"])))
    escaped = nest.folder.replace(".", "\\\\.")
    pattern = f'"<rootDir>/{escaped}/"'
    for file, text in jest:
        if not nest.is_named(text):
            line = f"modulePathIgnorePatterns: [{pattern}], testPathIgnorePatterns: [{pattern}]"
            yield Walker(tool="jest", file=file, line=line)
    vitest = [f"{tool}.config.{ending}" for tool in ("vitest", "vite") for ending in _ENDINGS]
    for file, text in nest.there(*vitest):
        if (file.startswith("vitest") or "test:" in text) and not nest.is_named(text):
            line = f'test: {{ exclude: [...configDefaults.exclude, "{nest.folder}/**"] }}'
            yield Walker(tool="vitest", file=file, line=line)


def _eslint(nest: Nest) -> Iterator[Walker]:
    """With flat settings it searches folders that begin with a dot, with the older format it does not."""
    for file, text in nest.there(*(f"eslint.config.{ending}" for ending in _ENDINGS)):
        reads_gitignore = nest.is_ignored and ("includeIgnoreFile" in text or "gitignore" in text)
        if not nest.is_named(text) and not reads_gitignore:
            yield Walker(tool="eslint", file=file, line=f'{{ ignores: ["{nest.folder}/**"] }}')
    if nest.is_hidden:
        return
    ignore = nest.text(".eslintignore") or ""
    for file, text in nest.there(
        *(f".eslintrc{ending}" for ending in ("", ".js", ".cjs", ".json", ".yml", ".yaml"))
    ):
        if not nest.is_named(text) and not nest.is_matched(ignore.splitlines()):
            yield Walker(tool="eslint", file=".eslintignore" if ignore else file, line=f"{nest.folder}/")


def _typescript(nest: Nest) -> Iterator[Walker]:
    """Its wildcards skip folders that begin with a dot."""
    for file, text in nest.there("tsconfig.json", "jsconfig.json"):
        found = _json(text)
        is_limited = "files" in found and "include" not in found
        walks = not is_limited and nest.could_be_in(_strings(found.get("include", ["**/*"])))
        if walks and not nest.is_hidden and not nest.is_matched(_strings(found.get("exclude", []))):
            yield Walker(tool="typescript", file=file, line=f'"exclude": ["{nest.folder}"]')


def _pytest(nest: Nest) -> Iterator[Walker]:
    ini = [(file, _ini(text, "pytest")) for file, text in nest.there("pytest.ini", "tox.ini")]
    ini += [(file, _ini(text, "tool:pytest")) for file, text in nest.there("setup.cfg")]
    table = _section(_toml(nest.text("pyproject.toml")), "tool", "pytest", "ini_options")
    for file, found in [*ini, ("pyproject.toml", table)]:
        if found is None:
            continue
        left_out = _strings(found.get("norecursedirs", list(_PYTEST)))
        paths = _strings(found.get("testpaths", []))
        walks = not paths or nest.could_be_in(paths)
        if walks and not nest.is_matched(left_out) and not nest.is_named(str(found.get("addopts", ""))):
            name = nest.folder.split("/")[0]
            yield Walker(tool="pytest", file=file, line=f"norecursedirs = {' '.join(_PYTEST)} {name}")
        return  # pytest reads only the first file it finds


def _ruff(nest: Nest) -> Iterator[Walker]:
    """It skips what git ignores, unless configured otherwise."""
    found = [(file, _toml(text)) for file, text in nest.there("ruff.toml", ".ruff.toml")]
    table = _section(_toml(nest.text("pyproject.toml")), "tool", "ruff")
    for file, settings in found or ([("pyproject.toml", table)] if table is not None else []):
        passes = nest.is_ignored and settings.get("respect-gitignore", True)
        left_out = _strings(settings.get("exclude", [])) + _strings(settings.get("extend-exclude", []))
        if not passes and not nest.is_matched(left_out):
            yield Walker(tool="ruff", file=file, line=f'extend-exclude = ["{nest.folder}"]')


def _flake8(nest: Nest) -> Iterator[Walker]:
    for file, text in nest.there(".flake8", "setup.cfg", "tox.ini"):
        found = _ini(text, "flake8")
        if found is None:
            continue
        left_out = _strings(found.get("exclude", "")) + _strings(found.get("extend-exclude", ""))
        if not nest.is_matched(left_out):
            yield Walker(tool="flake8", file=file, line=f"extend-exclude = {nest.folder}")
        return


def _mypy(nest: Nest) -> Iterator[Walker]:
    """By default it skips folders that begin with a dot."""
    if nest.is_hidden:
        return
    found: list[tuple[str, dict[str, Any] | None]] = [
        (file, _ini(text, "mypy")) for file, text in nest.there("mypy.ini", ".mypy.ini", "setup.cfg")
    ]
    found.append(("pyproject.toml", _section(_toml(nest.text("pyproject.toml")), "tool", "mypy")))
    for file, settings in found:
        if settings is None:
            continue
        files = _strings(settings.get("files", []))
        if (not files or nest.could_be_in(files)) and not nest.is_named(str(settings.get("exclude", ""))):
            yield Walker(tool="mypy", file=file, line=f"exclude = '^{nest.folder}/'")
        return


def _pyright(nest: Nest) -> Iterator[Walker]:
    """By default it skips folders that begin with a dot; a custom `exclude` replaces that."""
    found: list[tuple[str, dict[str, Any] | None]] = [
        (file, _json(text)) for file, text in nest.there("pyrightconfig.json")
    ]
    tools = _section(_toml(nest.text("pyproject.toml")), "tool") or {}
    found += [("pyproject.toml", _section(tools, name)) for name in ("pyright", "basedpyright")]
    for file, settings in found:
        if settings is None or not nest.could_be_in(_strings(settings.get("include", ["."]))):
            continue
        usual = ["**/node_modules", "**/__pycache__", "**/.*"]
        if not nest.is_matched(_strings(settings.get("exclude", usual))):
            yield Walker(tool="pyright", file=file, line=f'exclude = ["{nest.folder}"]')


def _cargo(nest: Nest) -> Iterator[Walker]:
    for file, text in nest.there("Cargo.toml"):
        found = _section(_toml(text), "workspace")
        if found is None or nest.is_matched(_strings(found.get("exclude", []))):
            continue
        if nest.could_be_in(_strings(found.get("members", []))):
            yield Walker(tool="cargo", file=file, line=f'[workspace] exclude = ["{nest.folder}"]')


def _go(nest: Nest) -> Iterator[Walker]:
    """`./...` skips names that begin with a dot or underscore, and separate modules."""
    if nest.text("go.mod") is None or any(part[:1] in "._" for part in nest.folder.split("/")):
        return
    folder = os.path.join(nest.root, nest.folder)
    copies = [os.path.join(folder, name) for name in os.listdir(folder)] if os.path.isdir(folder) else []
    if any(not os.path.exists(os.path.join(copy, "go.mod")) for copy in copies if os.path.isdir(copy)):
        yield Walker(tool="go", file="go.mod", line=f"rename {nest.folder} to begin with a dot")


def _ignore_files(nest: Nest) -> Iterator[Walker]:
    """Git, docker and prettier each have their own ignore file."""
    if not nest.is_ignored:
        yield Walker(tool="git", file=".gitignore", line=f"/{nest.folder}/")
    names = os.listdir(nest.root)
    docker = any(name == "Dockerfile" or name.startswith("Dockerfile.") for name in names)
    text = nest.text(".dockerignore")
    if (docker or text is not None) and not nest.is_matched((text or "").splitlines()):
        yield Walker(tool="docker", file=".dockerignore", line=nest.folder)
    prettier = any(name.startswith((".prettierrc", "prettier.config.")) for name in names)
    text = nest.text(".prettierignore")
    has_it = prettier or text is not None or "prettier" in _json(nest.text("package.json"))
    # It also skips what git ignores.
    if has_it and not nest.is_ignored and not nest.is_matched((text or "").splitlines()):
        yield Walker(tool="prettier", file=".prettierignore", line=f"{nest.folder}/")


RULES: tuple[Callable[[Nest], Iterator[Walker]], ...] = (
    _ignore_files,
    _tests_of_js,
    _eslint,
    _typescript,
    _pytest,
    _ruff,
    _flake8,
    _mypy,
    _pyright,
    _cargo,
    _go,
)
