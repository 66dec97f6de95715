"""Invalid settings: the error names the file, the key and the closest known key; nothing is changed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.support.git import commit_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.shell import Shell

pytestmark = pytest.mark.acceptance


def write(text: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(text, encoding="utf-8")


def write_bytes(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


def make_folder(path: Path) -> None:
    path.mkdir()


def make_ring(path: Path) -> None:
    path.symlink_to(path.name)


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


BROKEN = {
    "not TOML": (write("[claims\nttl = 5"), "SETTINGS_NOT_TOML", "landlane.toml:1: not valid TOML"),
    "binary": (write_bytes(bytes(range(256)) * 4), "SETTINGS_NOT_TOML", "landlane.toml"),
    "nested beyond reason": (write("a = " + "[" * 5000), "SETTINGS_NOT_TOML", "landlane.toml"),
    "a number without end": (write("[store]\nwait = " + "9" * 5000), "SETTINGS_NOT_TOML", "landlane.toml"),
    "unknown section": (write("[clams]\n"), "SETTINGS_UNKNOWN_KEY", "clams"),
    "unknown key": (write('[claims]\ntll = "5m"\n'), "SETTINGS_UNKNOWN_KEY", "claims.tll"),
    "wrong type": (write("[claims]\nttl = true\n"), "SETTINGS_WRONG_TYPE", "claims.ttl"),
    "no section": (write("claims = 5\n"), "SETTINGS_WRONG_TYPE", "claims"),
    "no length": (write('[claims]\nttl = "soon"\n'), "SETTINGS_WRONG_TYPE", "claims.ttl"),
    "length too great": (write(f'[claims]\nttl = "{"9" * 400}s"\n'), "SETTINGS_WRONG_TYPE", "claims.ttl"),
    "lease of nothing": (write('[sessions]\nlease = "1ms"\n'), "SETTINGS_WRONG_TYPE", "sessions.lease"),
    "ttl above the highest": (write('[claims]\nttl = "8d"\n'), "SETTINGS_WRONG_TYPE", "max_ttl"),
    "no id": (write('[repository]\nid = "mine"\n'), "SETTINGS_WRONG_TYPE", "repository.id"),
    "no list": (write('[claims]\nshareable = "x"\n'), "SETTINGS_WRONG_TYPE", "claims.shareable"),
    "a folder": (make_folder, "SETTINGS_UNREADABLE", "landlane.toml"),
    "a ring of links": (make_ring, "SETTINGS_UNREADABLE", "landlane.toml"),
    "a pipe": (make_pipe, "SETTINGS_UNREADABLE", "landlane.toml"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_settings_that_cannot_be_used_lock_no_one_out(shell: Shell, case: str) -> None:
    make, _, named = BROKEN[case]
    commit_text(shell.folder, "landlane.toml", '[claims]\nmax_ttl = "10m"\nttl = "10m"\n')
    (shell.folder / "landlane.toml").unlink()
    make(shell.folder / "landlane.toml")

    def claim_too_long() -> None:
        for name in ((), ("--as", "bob")):
            shell.run_error("TTL_OUT_OF_RANGE", "claim", "new.py", "--ttl", "20m", *name)

    claim_too_long()
    assert named in checked_settings(shell)["found"]
    if (shell.folder / "landlane.toml").is_file():
        shell.git("commit", "--quiet", "--all", "--message", "Break the settings")
        claim_too_long()
        assert named in checked_settings(shell)["found"]
        assert "the last valid settings hold" in shell.run("claims").err
    shell.run_json("claim", "landlane.toml", "--as", "bob")


def checked_settings(shell: Shell) -> dict[str, str]:
    checks = shell.run_json("doctor", exit=1)["checks"]
    return next(check for check in checks if check["name"] == "settings" and not check["ok"])


def test_settings_that_cannot_be_used_and_are_not_committed_leave_the_last_ones_to_the_person(
    shell: Shell,
) -> None:
    settings = shell.folder / "landlane.toml"
    settings.write_text('[claims]\nmax_ttl = "10m"\nttl = "10m"\n', encoding="utf-8")
    shell.run_error("TTL_OUT_OF_RANGE", "claim", "a", "--ttl", "20m")
    settings.write_text("[claims\n", encoding="utf-8")

    shell.run_error("TTL_OUT_OF_RANGE", "claim", "a", "--ttl", "20m")
    shell.run_json("claim", "b", "--ttl", "20m", "--as", "ann")
    assert "not valid TOML" in shell.run("claims").err


def test_an_unknown_key_is_named_with_its_nearest(shell: Shell) -> None:
    commit_text(shell.folder, "landlane.toml", '[claims]\ntll = "5m"\n')

    failed = checked_settings(shell)

    assert "unknown setting claims.tll" in failed["found"]


def test_a_fixed_file_counts_at_once(shell: Shell) -> None:
    commit_text(shell.folder, "landlane.toml", '[claims]\nmax_ttl = "10m"\n')
    shell.run_error("TTL_OUT_OF_RANGE", "claim", "a", "--ttl", "20m", "--as", "ann")
    short = shell.run_json("claim", "a", "--as", "ann")["granted"][0]

    commit_text(shell.folder, "landlane.toml", '[claims]\nmax_ttl = "90m"\nttl = "1h"\n')
    long = shell.run_json("claim", "b", "--ttl", "20m", "--as", "ann")["granted"][0]

    assert short["until"] < long["until"]


def test_doctor_says_which_setting_is_wrong(shell: Shell) -> None:
    commit_text(shell.folder, "landlane.toml", '[claims]\nrequired = ["../x"]\n')

    checks = shell.run_json("doctor", exit=1)["checks"]

    assert [(check["name"], check["ok"]) for check in checks] == [("repository", True), ("settings", False)]


def test_check_distinguishes_required_and_free_paths(shell: Shell) -> None:
    settings = '[claims]\nrequired = ["src/**"]\nfree = ["src/scratch/**", "scratch/**"]\n'
    commit_text(shell.folder, "landlane.toml", settings)

    needed = shell.run_error("CLAIM_REQUIRED", "check", "src/api.py", "--as", "ann", exit=6)
    both = shell.run_error("CLAIM_REQUIRED", "check", "src/scratch/x", "--as", "ann", exit=6)
    free = shell.run_json("check", "scratch/x", "docs/x", "--as", "ann")
    shell.run_json("claim", "src/api.py", "--as", "ann")
    held = shell.run_json("check", "src/api.py", "--as", "ann")

    assert needed["hint"] == "landlane claim src/api.py --as ann"
    assert both["hint"] == "landlane claim src/scratch/x --as ann"
    assert [row["state"] for row in free["paths"]] == ["free", "free"]
    assert [row["state"] for row in held["paths"]] == ["held"]


def test_check_distinguishes_free_paths_from_unclaimed_ones(shell: Shell) -> None:
    commit_text(shell.folder, "landlane.toml", '[claims]\nfree = ["scratch/**"]\n')

    paths = shell.run_json("check", "scratch/x", "docs/x", "--as", "ann")["paths"]

    assert [row["state"] for row in paths] == ["free", "unclaimed"]


def test_only_shareable_files_can_be_shared_where_some_are_named(shell: Shell) -> None:
    commit_text(shell.folder, "landlane.toml", '[claims]\nshareable = ["CHANGELOG.md"]\n')

    shell.run_json("claim", "CHANGELOG.md", "--shared", "--as", "ann")
    shell.run_error("NOT_MERGEABLE", "claim", "src/api.py", "--shared", "--as", "ann", exit=6)
