"""What a typed path means: one name for one file, from every folder, worktree, link and spelling."""

from __future__ import annotations

import os
import unicodedata
from typing import TYPE_CHECKING

import pytest

from landlane.errors import PatternError
from landlane.git.discovery import find_checkout
from landlane.git.repository import pattern_from
from landlane.patterns.pattern import Pattern, overlap
from landlane.testing.repositories import git, make_repository

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


@pytest.fixture
def tree(repository: Path) -> Path:
    """A repository with a few folders, files and a linked worktree beside it."""
    for name in ("src/api", "docs"):
        (repository / name).mkdir(parents=True)
    for name in ("src/api/users.py", "docs/a b.md"):
        (repository / name).touch()
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "-m", "Some files")
    git(repository, "worktree", "add", "--quiet", "../linked")
    return repository


def read(text: str, folder: Path, *, is_literal: bool = False, ignore_case: bool = False) -> Pattern:
    checkout = find_checkout(str(folder))
    return pattern_from(text, checkout, str(folder), is_literal=is_literal, ignore_case=ignore_case)


def name(text: str, folder: Path, *, is_literal: bool = False) -> str:
    return read(text, folder, is_literal=is_literal).text


def code_of(text: str, folder: Path, *, ignore_case: bool = False) -> str:
    with pytest.raises(PatternError) as caught:
        read(text, folder, ignore_case=ignore_case)
    assert caught.value.hint
    return caught.value.code


@pytest.mark.promise(
    "paths.one-file-one-name",
    "A file has one name from every folder, worktree, link and spelling.",
)
def test_a_file_has_one_name_from_every_folder(tree: Path) -> None:
    for text, folder in (
        ("src/api/users.py", "."),
        ("./src//api/./users.py", "."),
        ("api/users.py", "src"),
        ("users.py", "src/api"),
        ("../../src/api/users.py", "src/api"),
        ("../src/api/users.py", "docs"),
        (":/src/api/users.py", "docs"),
        ("../nothing-there/../src/api/users.py", "docs"),
    ):
        assert name(text, tree / folder) == "src/api/users.py", text
        assert name(text, tree / folder, is_literal=True) == "src/api/users.py", text


def test_an_absolute_path_in_any_worktree_is_the_same_name(tree: Path) -> None:
    for worktree in ("repository", "linked"):
        text = str(tree.parent / worktree / "src/api/users.py")

        assert name(text, tree) == "src/api/users.py"
        assert name(text, tree / "docs") == "src/api/users.py"
        assert name(text, tree.parent / "linked") == "src/api/users.py"


def test_a_glob_is_resolved_as_far_as_it_is_literal(tree: Path) -> None:
    assert name("api/*.py", tree / "src") == "src/api/*.py"
    assert name("../src/**/*.py", tree / "docs") == "src/**/*.py"
    assert name(str(tree.parent / "linked" / "src" / "*.py"), tree) == "src/*.py"
    assert name(":/**/*.md", tree / "docs") == "**/*.md"
    assert name("**", tree / "src") == "src/**"


def test_the_whole_repository_has_one_name(tree: Path) -> None:
    for text in (".", "./", ":/", ":/.", "src/.."):
        assert name(text, tree) == ".", text
    assert name(":/", tree / "src") == "."


# ------------------------------------------------------------------------------------------------ links


def test_link_means_the_file_or_folder_that_it_leads_to(tree: Path) -> None:
    (tree / "users").symlink_to("src/api/users.py")
    (tree / "code").symlink_to("src")
    (tree / "again").symlink_to("code")

    assert name("users", tree) == "src/api/users.py"
    assert name("code/api/users.py", tree) == "src/api/users.py"
    assert name("again/new.py", tree) == "src/new.py"
    assert name("code/*.py", tree) == "src/*.py"


def test_a_link_into_another_worktree_is_the_same_name(tree: Path) -> None:
    (tree / "there").symlink_to(tree.parent / "linked" / "src")

    assert name("there/api/users.py", tree) == "src/api/users.py"


def test_a_link_out_of_the_repository_is_refused(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tree / "out").symlink_to(tmp_path / "outside")

    assert code_of("out", tree) == "PATH_OUTSIDE"
    assert code_of("out/new.py", tree) == "PATH_OUTSIDE"
    assert code_of("out/*.py", tree) == "PATH_OUTSIDE"


def test_dangling_and_circular_links_are_accepted(tree: Path) -> None:
    (tree / "dangling").symlink_to("src/later.py")
    (tree / "ring").symlink_to("ring")

    assert name("dangling", tree) == "src/later.py"
    assert name("ring", tree) == "ring"


# ---------------------------------------------------------------------------------------------- refusals


def test_path_outside_the_repository_is_refused(tree: Path) -> None:
    for text in ("..", "../x", "src/../../x", "/etc/passwd", "/", "../*.py", "/*/x"):
        assert code_of(text, tree) == "PATH_OUTSIDE", text


def test_gits_own_folder_is_refused(tree: Path) -> None:
    for text in (".git", ".git/config", ".git/**", "src/../.git/hooks/pre-commit", ":/.git"):
        assert code_of(text, tree) == "PATH_INSIDE_GIT", text
        assert code_of(text, tree.parent / "linked") == "PATH_INSIDE_GIT", text


def test_gits_own_folder_is_refused_in_any_case_where_case_means_nothing(tree: Path) -> None:
    assert code_of(".GIT/config", tree, ignore_case=True) == "PATH_INSIDE_GIT"
    assert name(".gitignore", tree) == ".gitignore"
    assert name(".github/workflows", tree) == ".github/workflows"


def test_going_up_behind_a_wildcard_is_refused(tree: Path) -> None:
    assert code_of("src/*/../x", tree) == "PATTERN_GOES_UP"


def test_empty_and_invalid_paths_are_refused(tree: Path) -> None:
    assert code_of("", tree) == "PATTERN_EMPTY"
    assert code_of("a\0b", tree) == "PATTERN_BAD_TEXT"


def test_a_path_beyond_all_measure_is_refused_not_crashed_on(tree: Path) -> None:
    assert code_of("x" * 5000, tree) == "PATTERN_TOO_LONG"
    assert code_of("/".join(["x"] * 500), tree) == "PATTERN_TOO_DEEP"
    assert code_of("x/" * 100_000, tree) in ("PATTERN_TOO_LONG", "PATTERN_TOO_DEEP")
    assert code_of("{a,b}" * 40, tree).startswith("PATTERN_")
    assert code_of("[", tree).startswith("PATTERN_")


# -------------------------------------------------------------------------------------------- odd names


def test_any_file_name_can_be_claimed(tree: Path) -> None:
    spaces = ["docs/a b.md", " ", "  x  ", "a\nb", "tab\there"]
    for text in (*spaces, "it's", 'say "hi"', "-x", "--all", "#", "$HOME", "!x"):
        pattern = read(text, tree, is_literal=True)

        assert pattern.kind == "literal"
        assert pattern.alternatives[0].key == text
        assert read(pattern.text, tree, is_literal=True) == pattern
        assert read(text, tree) == pattern
        assert name(text, tree / "src", is_literal=True) == f"src/{text}"


def test_composed_and_decomposed_letters_are_the_same_name(tree: Path) -> None:
    composed, decomposed = (unicodedata.normalize(form, "Ünïcödé/ﬁn.py") for form in ("NFC", "NFD"))

    assert composed != decomposed
    assert read(composed, tree).alternatives == read(decomposed, tree).alternatives


def test_bytes_that_are_no_text_are_refused(tree: Path) -> None:
    assert code_of(os.fsdecode(b"a\xff\xfe"), tree) == "PATTERN_BAD_TEXT"


def test_brackets_are_a_wildcard_unless_literal_or_escaped(tree: Path) -> None:
    literal = read("app/[id]/page.tsx", tree, is_literal=True)
    escaped = read(r"app/\[id\]/page.tsx", tree)
    glob = read("app/[id]/page.tsx", tree)

    assert literal.alternatives == escaped.alternatives
    assert (literal.kind, escaped.kind, glob.kind) == ("literal", "literal", "glob")
    assert overlap(literal, escaped)
    assert not overlap(literal, glob)
    assert overlap(glob, read("app/i/page.tsx", tree, is_literal=True))


def test_a_folder_with_special_letters_on_the_way_stays_literal(tree: Path) -> None:
    odd = tree / "src" / "[x]{y}"
    odd.mkdir()

    assert overlap(read("*.py", odd), read("src/[x]{y}/a.py", tree, is_literal=True))
    assert not overlap(read("*.py", odd), read("src/x/a.py", tree, is_literal=True))


def test_names_and_paths_that_look_alike_are_distinct(tree: Path) -> None:
    assert read("deploy:prod", tree).kind == "name"
    assert read("deploy:prod", tree / "src") == read("deploy:prod", tree)
    assert read("./deploy:prod", tree).kind == "literal"
    assert read("deploy:prod", tree, is_literal=True) == read("./deploy:prod", tree)
    assert name("./deploy:prod", tree / "src") == "src/deploy:prod"
    assert read("./deploy:*", tree).kind == "glob"
    assert not overlap(read("deploy:prod", tree), read("**", tree))


def test_case_is_ignored_where_the_repository_says_so(tree: Path) -> None:
    upper, lower = (read(text, tree, ignore_case=True) for text in ("SRC/Api/Users.PY", "src/api/users.py"))

    assert upper.alternatives == lower.alternatives
    assert upper.text == "SRC/Api/Users.PY"
    assert not overlap(read("SRC/x", tree), read("src/x", tree))


# ------------------------------------------------------------------------------ repositories in repositories


@pytest.mark.promise("paths.one-home", "A file in a submodule is claimed in the submodule only.")
def test_a_file_in_a_submodule_belongs_to_the_submodule(tree: Path, tmp_path: Path) -> None:
    make_repository(tmp_path / "library")
    git(tree, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../library", "sub")

    with pytest.raises(PatternError) as caught:
        read("sub/README.md", tree)

    assert caught.value.code == "PATH_IN_OTHER_REPOSITORY"
    assert caught.value.hint == "act there: landlane claim README.md --repo sub"
    assert name("sub", tree) == "sub"  # which commit of it is meant, is for this repository to say
    assert name("README.md", tree / "sub") == "README.md"
    assert code_of("../README.md", tree / "sub") == "PATH_OUTSIDE"


def test_a_worktree_inside_the_main_one_is_still_the_same_repository(tree: Path) -> None:
    git(tree, "worktree", "add", "--quiet", ".worktrees/task")

    assert name(".worktrees/task/src/api/users.py", tree) == "src/api/users.py"
    assert name("src/api/users.py", tree / ".worktrees" / "task") == "src/api/users.py"
    assert name(str(tree / "docs"), tree / ".worktrees" / "task") == "docs"


def test_absolute_paths_into_other_worktrees_work_inside_a_hook_too(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tree / ".git"))

    assert name(str(tree.parent / "linked" / "src" / "new.py"), tree) == "src/new.py"
