"""Repositories in odd places: folders with every kind of name, far too deep, reached through links."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.shell import Shell

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.acceptance


def repository_at(folder: Path) -> Shell:
    folder.mkdir(parents=True)
    shell = Shell(folder)
    shell.git("init", "--quiet")
    return shell


@pytest.mark.parametrize("name", ["a b'c\"d\t", "per%20cent?mode=ro#[x]*{y}", "ünïcödé 💥"])
def test_a_folder_may_have_any_name(tmp_path: Path, name: str) -> None:
    shell = repository_at(tmp_path / name)

    shell.run_json("claim", "a", "--as", "ann")

    shell.run_error("CLAIM_HELD", "claim", str(shell.folder / "a"), "--as", "bob", exit=3)
    assert shell.run_json("doctor")["ok"]


def test_a_folder_with_a_line_break_in_its_name_is_refused(tmp_path: Path) -> None:
    shell = repository_at(tmp_path / "a\nb")

    refused = shell.run_error("PATH_NOT_TEXT", "claim", "a", "--as", "ann", exit=1)

    assert refused["hint"] == "rename the folder, then try again"
    assert not shell.state.exists()


def test_waiting_works_however_deep_the_repository_lies(tmp_path: Path) -> None:
    shell = repository_at(tmp_path / "/".join(["a-folder-with-a-rather-long-name"] * 8))
    shell.run_json("claim", "a", "--as", "ann")
    with shell.start("claim", "a", "--as", "bob", "--wait", "30s", "--json") as waiter:
        shell.wait_for_waiter()
        shell.run_json("release", "--all", "--as", "ann")

        assert waiter.end(20).exit == 0


def test_a_repository_reached_through_a_link_is_the_same_one(tmp_path: Path) -> None:
    shell = repository_at(tmp_path / "real")
    (tmp_path / "link").symlink_to("real")
    shell.run_json("claim", "src/a", "--as", "ann")
    linked = Shell(tmp_path / "link")

    linked.run_error("CLAIM_HELD", "claim", "src/a", "--as", "bob", exit=3)
    linked.run_error("CLAIM_HELD", "claim", str(tmp_path / "link" / "src" / "a"), "--as", "bob", exit=3)


def test_a_repository_that_was_moved_keeps_its_state(tmp_path: Path) -> None:
    shell = repository_at(tmp_path / "before")
    token = shell.run_json("claim", "a", "--as", "ann")["granted"][0]["token"]
    shell.folder.rename(tmp_path / "after")

    assert Shell(tmp_path / "after").run_json("check", "a", "--as", "ann", "--token", str(token))["ok"]
