"""Worktrees that other programs put inside of the repository, and the tools that would walk into them."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from landlane.doctor.examine import examine
from landlane.doctor.nested_worktrees import find_nested, find_walkers
from landlane.git.discovery import find_checkout
from landlane.testing.repositories import git

if TYPE_CHECKING:
    from pathlib import Path

    from landlane.git.discovery import Checkout

pytestmark = pytest.mark.integration

HIDDEN = ".claude/worktrees/one"
PLAIN = "trees/one"


def nest(repository: Path, place: str) -> Checkout:
    git(repository, "worktree", "add", "--quiet", "--detach", place)
    return find_checkout(str(repository))


def write(repository: Path, **files: str) -> None:
    for name, text in files.items():
        (repository / name).write_text(text)


def walkers(home: Checkout) -> list[tuple[str, str]]:
    return [(one.tool, one.file) for one in find_walkers(home) if one.tool != "git"]


def test_nested_worktrees_of_other_repositories_are_found(repository: Path, tmp_path: Path) -> None:
    home = nest(repository, HIDDEN)
    other = tmp_path / "other"
    subprocess.run(["git", "clone", "--quiet", str(repository), str(other)], check=True)
    git(other, "worktree", "add", "--quiet", "--detach", str(repository / "deep" / "er" / "two"))

    assert find_nested(home) == [HIDDEN, "deep/er/two"]


def test_a_worktree_beside_the_repository_and_a_submodule_are_not_nested(
    repository: Path, tmp_path: Path
) -> None:
    home = nest(repository, "../beside")
    module = tmp_path / "module"
    subprocess.run(["git", "clone", "--quiet", str(repository), str(module)], check=True)
    git(repository, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(module), "lib")

    assert find_nested(home) == []


def test_the_doctor_names_each_file_and_the_line_to_add(repository: Path) -> None:
    nest(repository, HIDDEN)
    write(repository, **{"eslint.config.mjs": "export default []\n"})

    check = next(one for one in examine(str(repository)) if one.name == "nested worktrees")

    assert not check.is_ok
    assert "git (.gitignore); eslint (eslint.config.mjs)" in check.found
    assert check.hint == (
        'add to .gitignore: /.claude/worktrees/; eslint.config.mjs: { ignores: [".claude/worktrees/**"] }'
    )


def test_all_tools_pass_when_the_folder_is_excluded(repository: Path) -> None:
    home = nest(repository, HIDDEN)
    write(
        repository,
        **{
            ".gitignore": "/.claude/\n",
            "eslint.config.js": 'export default [{ ignores: [".claude/**"] }]\n',
            "jest.config.js": 'module.exports = { modulePathIgnorePatterns: ["<rootDir>/\\\\.claude/"] }\n',
            "ruff.toml": "line-length = 100\n",
            ".prettierrc": "{}\n",
        },
    )

    assert find_walkers(home) == []


# What each tool passes over by itself is known: folders that begin with a dot, what git ignores.
CASES = [
    ("package.json", '{"jest": {}}', ["jest"], ["jest"]),
    ("package.json", '{"jest": {"testPathIgnorePatterns": ["/.claude/", "/trees/"]}}', [], []),
    ("package.json", '{"name": "x"}', [], []),
    ("jest.config.ts", "export default {}", ["jest"], ["jest"]),
    ("vitest.config.ts", "export default {}", ["vitest"], ["vitest"]),
    ("vite.config.ts", "export default {}", [], []),
    ("vite.config.ts", "export default { test: {} }", ["vitest"], ["vitest"]),
    ("eslint.config.js", "export default []", ["eslint"], ["eslint"]),
    (".eslintrc.json", "{}", [], ["eslint"]),
    ("tsconfig.json", "{}", [], ["typescript"]),
    ("tsconfig.json", '{"include": ["src"], /* c */ }', [], []),
    ("tsconfig.json", '{"exclude": ["trees"], // c\n}', [], []),
    ("tsconfig.json", '{"files": ["a.ts"]}', [], []),
    ("pytest.ini", "[pytest]\n", [], ["pytest"]),
    ("pytest.ini", "[pytest]\nnorecursedirs = build\n", ["pytest"], ["pytest"]),
    ("pytest.ini", "[pytest]\ntestpaths = tests\n", [], []),
    ("setup.cfg", "[tool:pytest]\nnorecursedirs = trees\n", ["pytest"], []),
    ("tox.ini", "[flake8]\nexclude = .claude, trees\n", [], []),
    (".flake8", "[flake8]\nmax-line-length = 100\n", ["flake8"], ["flake8"]),
    ("pyproject.toml", "[tool.pytest.ini_options]\n", [], ["pytest"]),
    ("pyproject.toml", "[tool.ruff]\n", ["ruff"], ["ruff"]),
    ("pyproject.toml", '[tool.ruff]\nextend-exclude = [".claude", "trees"]\n', [], []),
    ("pyproject.toml", "[tool.mypy]\n", [], ["mypy"]),
    ("pyproject.toml", "[tool.mypy]\nexclude = '^trees/'\n", [], []),
    ("mypy.ini", "[mypy]\nfiles = src\n", [], []),
    ("pyproject.toml", "[tool.pyright]\n", [], ["pyright"]),
    ("pyrightconfig.json", '{"exclude": ["build"]}', ["pyright"], ["pyright"]),
    ("pyproject.toml", '[tool.basedpyright]\ninclude = ["src"]\n', [], []),
    ("Cargo.toml", '[workspace]\nmembers = ["crates/*"]\n', [], []),
    ("Cargo.toml", '[workspace]\nmembers = ["*"]\n', ["cargo"], ["cargo"]),
    ("Cargo.toml", '[workspace]\nmembers = ["*"]\nexclude = [".claude", "trees"]\n', [], []),
    ("go.mod", "module x\n", [], ["go"]),
    ("Dockerfile", "FROM scratch\n", ["docker"], ["docker"]),
    (".dockerignore", "/.claude/\ntrees\n", [], []),
    (".prettierrc", "{}", ["prettier"], ["prettier"]),
    (".prettierignore", "trees/\n.claude/\n", [], []),
    ("pyproject.toml", "this is no TOML", [], []),
    ("package.json", "this is no JSON", [], []),
]


@pytest.fixture(scope="module")
def nested(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A folder with a hidden nest and one with a plain one; tools look at files only."""
    made: list[Path] = []
    for name, place in (("hidden", HIDDEN), ("plain", PLAIN)):
        root = tmp_path_factory.mktemp(name)
        (root / ".git" / "objects").mkdir(parents=True)
        (root / ".git" / "refs").mkdir()
        (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        (root / place).mkdir(parents=True)
        (root / place / ".git").write_text("gitdir: /elsewhere/.git/worktrees/one\n")
        made.append(root)
    return made[0], made[1]


@pytest.mark.parametrize(("file", "text", "hidden", "plain"), CASES)
def test_a_tool_that_would_search_nested_worktrees_is_named(
    nested: tuple[Path, Path], file: str, text: str, hidden: list[str], plain: list[str]
) -> None:
    for root, expected in zip(nested, (hidden, plain), strict=True):
        (root / file).write_text(text)
        try:
            found = walkers(find_checkout(str(root)))
        finally:
            (root / file).unlink()
        assert [tool for tool, _ in found] == expected
