"""The rules as they are typed: shown, acknowledged, changed, and reported when they are broken."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from landlane.rules.model import MOST_BYTES, RULES_TEMPLATE, version_of
from tests.support.git import commit_text
from tests.support.snapshots import check_snapshot
from tests.support.transcripts import play

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.shell import Shell

pytestmark = pytest.mark.acceptance

OWN = RULES_TEMPLATE + "\n## 8. Be kind\n\nAlways.\n"


def write(shell: Shell, text: str = RULES_TEMPLATE) -> str:
    commit_text(shell.folder, "RULES.md", text)
    return version_of(text)


def sessions(shell: Shell) -> dict[str, tuple[str | None, bool]]:
    return {one["agent"]: (one["version"], one["is_current"]) for one in shell.run_json("rules")["sessions"]}


def test_rules_shows_them_their_version_and_who_has_not_read_the_newest(shell: Shell) -> None:
    version = write(shell)
    shell.run_json("claim", "a", "--as", "ann")  # `join` would show them
    shell.run_json("claim", "b", "--as", "bob")
    shell.run_json("rules", "ack", "--as", "ann")

    answer = shell.run_json("rules")
    text = shell.run_text("rules")

    assert answer["version"] == version
    assert [rule["name"] for rule in answer["rules"]][:2] == ["Verify before done", "Honest reporting"]
    assert all(rule["text"] for rule in answer["rules"])
    assert answer["unread"] == 1
    assert sessions(shell) == {"bob": (None, False), "ann": (version, True)}
    assert text.startswith(f"RULES.md, version {version[:8]} (1 of 2 sessions has read it)\n")
    assert "5. Claim before you change" in text
    assert text.endswith("\n\nnot read by bob\n")


def test_a_change_makes_everybody_a_stranger_to_it(shell: Shell) -> None:
    old = write(shell)
    shell.run_json("rules", "ack", old, "--as", "ann")
    new = write(shell, OWN)

    assert sessions(shell) == {"ann": (old, False)}
    stale = shell.run_error("RULES_CHANGED", "rules", "ack", old, "--as", "ann", exit=4)
    assert stale["version"] == new
    assert shell.run_json("rules", "ack", new[:6], "--as", "ann")["version"] == new
    assert sessions(shell) == {"ann": (new, True)}
    assert "had already read" in shell.run_text("rules", "ack", "--as", "ann")


def test_the_journal_knows_who_worked_under_which(shell: Shell) -> None:
    old = write(shell)
    shell.run_json("rules", "ack", "--as", "ann")
    new = write(shell, OWN)
    shell.run_json("rules", "ack", "--as", "bob")

    entries = [entry for entry in shell.run_json("log")["entries"] if entry["kind"].startswith("rules.")]

    assert [(entry["kind"], entry["agent"], entry["data"]["version"]) for entry in entries] == [
        ("rules.seen", "ann", old),
        ("rules.acknowledged", "ann", old),
        ("rules.seen", "bob", new),
        ("rules.acknowledged", "bob", new),
    ]
    assert entries[2]["data"]["rules"]["text"] == OWN


def test_what_was_read_survives_a_rebuild_and_a_move(shell: Shell, tmp_path: Path) -> None:
    version = write(shell)
    shell.run_json("rules", "ack", "--as", "ann")

    shell.run_json("store", "rebuild")
    rebuilt = sessions(shell)
    shell.run_json("store", "move", str(tmp_path / "elsewhere.db"))

    assert rebuilt == sessions(shell) == {"ann": (version, True)}


def test_a_version_that_is_none_is_said_to_be_none(shell: Shell) -> None:
    write(shell)

    shell.run_error("BAD_VERSION", "rules", "ack", "newest", "--as", "ann")
    assert "ann" not in sessions(shell)


def test_unusable_rules_are_refused_in_words(shell: Shell) -> None:
    file = shell.folder / "RULES.md"
    assert "landlane init" in shell.run_error("NO_RULES", "rules", exit=1)["hint"]
    for content, code in (
        (b"\x7fELF\x00", "NOT_TEXT"),
        (b"## caf\xe9", "NOT_TEXT"),
        (b"a" * (MOST_BYTES + 1), "RULES_TOO_LONG"),
    ):
        commit_text(shell.folder, "RULES.md", content)
        shell.run_error(code, "rules", exit=1)
        shell.run_error(code, "rules", "ack", "--as", "ann", exit=1)
    file.unlink()
    file.symlink_to("/etc/hostname")
    shell.git("commit", "--quiet", "--all", "--message", "A link")
    shell.run_error("NO_RULES", "rules", exit=1)


def test_another_file_may_hold_them(shell: Shell) -> None:
    commit_text(shell.folder, "landlane.toml", '[rules]\nfile = "docs/law.md"\n')
    commit_text(shell.folder, "docs/law.md", "1. Be kind. Always.\n")

    answer = shell.run_json("rules")

    assert (answer["file"], answer["rules"]) == (
        "docs/law.md",
        [{"name": "Be kind", "text": "Be kind. Always."}],
    )


def test_it_works_outside_of_git_and_from_a_folder_below(tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "plain" / ".landlane").mkdir(parents=True)
    (tmp_path / "plain" / "sub").mkdir()
    (tmp_path / "plain" / "RULES.md").write_text(RULES_TEMPLATE, encoding="utf-8")

    assert shell.at(tmp_path / "plain" / "sub").run_json("rules")["version"] == version_of(RULES_TEMPLATE)


def test_control_characters_in_rules_do_not_steer_the_terminal(shell: Shell) -> None:
    write(shell, "## Be \x1b[2Jkind\n\nAl\x1b]0;x\x07ways.\n")

    assert "\x1b" not in shell.run_text("rules")


def test_the_report_counts_violations(shell: Shell) -> None:
    write(shell)
    assert shell.run_json("rules", "report") == {"ok": True, "total": 0, "rules": []}
    shell.run_json("claim", "README.md", "--as", "bob")
    (shell.folder / "README.md").write_text("of bob\n", encoding="utf-8")
    for _ in range(2):
        shell.run_error("CLAIM_HELD", "commit", "-m", "Mine", "README.md", "--as", "ann", exit=3)
    shell.run_json("task", "add", "Nothing was done", "--as", "bob")
    shell.run_json("next", "--as", "bob")
    for _ in range(2):  # said twice without a commit, and caught once: nothing changed in between
        assert "✗ commit" in shell.run("done", "T1", "--as", "bob").err

    answer = shell.run_json("rules", "report", "--since", "1h")
    text = shell.run_text("rules", "report")

    first = answer["rules"][0]
    assert (first["rule"], first["count"]) == ("claim before you change", 2)
    assert first["agents"] == [{"agent": "ann", "count": 2}]
    assert first["guards"] == [{"guard": "commit", "count": 2}]
    assert "README.md is claimed by bob" in first["last"]
    assert [(one["rule"], one["count"]) for one in answer["rules"][1:]] == [("verify before done", 1)]
    assert "TIMES  RULE" in text
    assert shell.run_error("BAD_PERIOD", "rules", "report", "--since", "ever")["hint"]


def test_what_the_rules_commands_print(shell: Shell) -> None:
    rules = "# Rules\n\n## Verify before done\n\nRun the check.\n\n## Claim first\n\nClaim, then edit.\n"
    commit_text(shell.folder, "RULES.md", rules)
    text = play(shell, "join ann", "claim b --as bob", "rules show --as ann", "rules ack --as ann", "rules")
    commit_text(shell.folder, "RULES.md", f"{rules} Not before.\n\n## Report\n\nSay what failed.\n")
    text += "\n" + play(shell, "rules --as ann", "rules ack nonsense --as ann", "rules ack 12345678 --as ann")
    text += "\n" + play(shell, "rules report")
    check_snapshot("rules/snapshots/rules.txt", text)


def test_an_acknowledgement_says_how_many_sessions_have_read_the_rules(shell: Shell) -> None:
    commit_text(shell.folder, "RULES.md", "# Rules\n\n## Verify before done\n\nRun the check.\n")
    shell.run_json("claim", "b", "--as", "bob")

    text = shell.run_text("rules", "ack", "--as", "ann")

    assert text.startswith("✓ ann has read RULES.md version ")
    assert text.endswith(" (1 of 2 sessions has)\n")


def test_an_invalid_name_is_answered_with_a_valid_one(shell: Shell) -> None:
    answer = shell.run_error("BAD_NAME", "join", "ann b")

    assert answer["message"] == '"ann b" is not a valid name; use letters, digits and . _ @ -'
    assert answer["hint"] == "landlane join ann-b"
