"""Diffs as the page shows them: whole ones, cut ones, and those of commits that come later."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.git.discovery import find_checkout
from landlane.testing.repositories import git
from landlane.web import diffs
from landlane.web.diffs import parse_diff, read_diff

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


def test_a_diff_is_shown_once_its_commits_are_fetched(repository: Path, tmp_path: Path) -> None:
    base = git(repository, "rev-parse", "HEAD").strip()
    other = tmp_path / "other"
    git(tmp_path, "clone", "--quiet", str(repository), str(other))
    (other / "new.py").write_text("x = 1\n")
    git(other, "add", "--all")
    git(other, "commit", "--quiet", "-m", "New")
    head = git(other, "rev-parse", "HEAD").strip()
    home = find_checkout(str(repository)).home_checkout

    assert not read_diff(home, base, head).files
    git(repository, "fetch", "--quiet", str(other))

    assert [file.path for file in read_diff(home, base, head).files] == ["new.py"]


def test_files_without_lines_are_shown(repository: Path) -> None:
    base = git(repository, "rev-parse", "HEAD").strip()
    (repository / "picture").write_bytes(b"\0\1\2" * 100)
    (repository / "empty").touch()
    git(repository, "mv", "README.md", "other.md")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "-m", "Without lines")

    head = git(repository, "rev-parse", "HEAD").strip()
    found = read_diff(find_checkout(str(repository)).home_checkout, base, head)

    shown = {(file.path, file.status, file.is_binary) for file in found.files}
    assert shown == {("picture", "new", True), ("empty", "new", False), ("other.md", "renamed", False)}


def test_a_diff_that_is_cut_inside_of_a_rename_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diffs, "_MOST_LINES", 3)
    text = "diff --git a/old b/new\nsimilarity index 100%\nrename from old\nrename to new"

    found = parse_diff(text)

    assert (len(found.files), found.left_out) == (1, 1)


def test_words_are_marked_in_lines_of_few_words_only() -> None:
    header = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n"
    found = [
        parse_diff(f"{header}-{'([' * number}\n+{'(([' * (number // 2)}").files[0].lines
        for number in (10, 130)  # to compare the longer ones takes more than a second
    ]

    assert [any(piece.is_marked for line in lines for piece in line.pieces) for lines in found] == [
        True,
        False,
    ]
