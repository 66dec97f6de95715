"""Bad input: every mistake is named with a code and a hint, and changes nothing."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

import pytest

from landlane import Landlane
from landlane.errors import LandlaneError, Malformed
from tests.support.shell import LIMIT_SECONDS, Shell, fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.shell import Answer

pytestmark = pytest.mark.acceptance


@pytest.fixture
def busy(shell: Shell) -> Shell:
    """A repository in which ann holds something already."""
    with Landlane(shell.folder, agent="ann") as ann:
        ann.claim("held.py", note="at work")
    return shell


@contextlib.contextmanager
def nothing_changes(shell: Shell) -> Iterator[None]:
    before = fingerprint(shell.folder)
    yield
    assert fingerprint(shell.folder) == before


def refusals(shell: Shell, *calls: tuple[str, list[str]], exit: int = 2) -> list[Answer]:
    """What each call is refused with; none of them changes anything."""
    with nothing_changes(shell):
        return [shell.run_error(code, *words, exit=exit) for code, words in calls]


@pytest.mark.promise("cli.bad-input-changes-nothing", "A command refused for its input changes nothing.")
def test_invalid_patterns_change_nothing(busy: Shell) -> None:
    refusals(
        busy,
        ("PATTERN_EMPTY", ["claim", "", "--as", "bob"]),
        ("PATTERN_EMPTY", ["claim", "good.py", "", "--as", "bob"]),
        ("PATTERN_TOO_LONG", ["claim", "x" * 5000, "--as", "bob"]),
        ("PATTERN_TOO_DEEP", ["claim", "/".join("x" * 200), "--as", "bob"]),
        ("PATTERN_GOES_UP", ["claim", "src/*/../x", "--as", "bob"]),
        ("PATTERN_BAD_NAME", ["claim", "deploy:", "--as", "bob"]),
        ("PATTERN_BAD_NAME", ["claim", "deploy:prod*", "--as", "bob"]),
        ("PATH_OUTSIDE", ["claim", "../elsewhere", "--as", "bob"]),
        ("PATH_INSIDE_GIT", ["claim", ".git/config", "--as", "bob"]),
        ("PATTERN_BAD_TEXT", ["claim", os.fsdecode(b"\xff\xfe"), "--as", "bob"]),
    )


def test_unclosed_braces_are_refused_quickly(busy: Shell) -> None:
    with nothing_changes(busy):
        for text in ("{a,b}" * 40, "{" * 2000, "[" * 2000, "**/" * 90 + "x" + "{a,b,c}" * 12):
            ended = busy.run("claim", text, "--as", "bob", "--json", limit_seconds=10)
            assert ended.exit == 2, ended
            assert ended.json()["code"].startswith("PATTERN_")


def test_ten_thousand_patterns_are_too_many(busy: Shell) -> None:
    (answer,) = refusals(
        busy, ("TOO_MANY_PATTERNS", ["claim", *(f"f{number}" for number in range(10_000)), "--as", "bob"])
    )

    assert "10,000" in answer["message"]


def test_invalid_leases_change_nothing(busy: Shell) -> None:
    out_of_range = ["0s", "999ms", "36525d"]
    no_length = ["-5m", "garbage", "1h30", "5", "1e9s", "٣s", "1.2.3s", "9" * 400 + "s"]
    refusals(
        busy,
        *(("TTL_OUT_OF_RANGE", ["claim", "new.py", f"--ttl={text}", "--as", "bob"]) for text in out_of_range),
        *(("BAD_DURATION", ["claim", "new.py", f"--ttl={text}", "--as", "bob"]) for text in no_length),
    )


def test_invalid_waits_change_nothing(busy: Shell) -> None:
    refusals(
        busy,
        *(
            ("BAD_DURATION", ["claim", "new.py", f"--wait={text}", "--as", "bob"])
            for text in ("-5s", "soon", "9" * 400)
        ),
        ("BAD_CALL", ["claim", "new.py", "--wait=", "--as", "bob"]),
        ("PARTIAL_WAIT", ["claim", "new.py", "--partial", "--wait", "5s", "--as", "bob"]),
    )


def test_invalid_agent_names_change_nothing(busy: Shell) -> None:
    names = ["../ann", ".", "-x", "a b", "a\nb", "\x1b[31m", "x" * 65, "аnn", "ann\u200b", "ann:1"]
    refusals(
        busy,
        *(("BAD_NAME", ["claim", "new.py", f"--as={name}"]) for name in names),
        *(("BAD_NAME", ["join", name]) for name in ("a/b", "Ünn", "")),
        ("BAD_NAME", ["status", "--as", "a/b"]),
    )
    with nothing_changes(busy):
        busy.with_env(LANDLANE_AGENT="a/b").run_error("BAD_NAME", "claim", "new.py")


def test_invalid_labels_and_notes_change_nothing(busy: Shell) -> None:
    refusals(
        busy,
        ("BAD_ROLE", ["join", "bob", "--role", "a/b"]),
        ("BAD_ROLE", ["join", "bob", "--role", "x" * 65]),
        ("BAD_TASK", ["claim", "new.py", "--as", "bob", "--task", "T\n7"]),
        ("BAD_TASK", ["claim", "new.py", "--as", "bob", "--task", "тask"]),
        ("TEXT_TOO_LONG", ["claim", "new.py", "--as", "bob", "--note", "x" * 100_000]),
        ("BAD_TEXT", ["claim", "new.py", "--as", "bob", "--note", os.fsdecode(b"\xff")]),
    )


@pytest.mark.promise(
    "claims.tokens-die-with-the-session",
    "A token is refused once its grant has ended, even when its session no longer exists.",
)
def test_invalid_numbers_and_ids_change_nothing(busy: Shell) -> None:
    refusals(
        busy,
        ("BAD_NUMBER", ["release", "held.py", "--token", "twelve", "--as", "bob"]),
        ("BAD_NUMBER", ["check", "held.py", "--token=-1", "--as", "bob"]),
        ("BAD_NUMBER", ["log", "--after", "yesterday"]),
        ("BAD_NUMBER", ["log", "--last", "1.5"]),
        ("BAD_NUMBER", ["log", "--last", "9" * 30]),
        ("BAD_NUMBER", ["demo", "--agents", "1"]),
        ("UNKNOWN_COMMIT", ["release", "held.py", "--commit", "0" * 40, "--as", "ann"]),
        ("UNKNOWN_COMMIT", ["release", "held.py", "--commit", "HEAD~99", "--as", "ann"]),
        ("UNKNOWN_COMMIT", ["release", "held.py", "--commit=--all", "--as", "ann"]),
        ("NOTHING_NAMED", ["release", "--as", "ann"]),
        ("BOTH_NAMED", ["release", "held.py", "--all", "--as", "ann"]),
    )
    refusals(busy, ("LEASE_OVER", ["release", "held.py", "--token", "5", "--as", "ann"]), exit=4)
    refusals(busy, ("LEASE_OVER", ["check", "held.py", "--token", "5", "--as", "nobody"]), exit=4)


def test_an_unknown_word_is_answered_with_the_nearest_known_one(busy: Shell) -> None:
    answers = refusals(
        busy,
        ("BAD_CALL", ["clam", "x"]),
        ("BAD_CALL", ["claim", "x", "--tll", "5m"]),
        ("BAD_CALL", ["claim"]),
        ("BAD_CALL", ["claim", "x", "--ttl"]),
        ("BAD_CALL", ["join", "ann", "bob"]),
        ("BAD_CALL", ["store", "mvoe", "x"]),
        ("BAD_CALL", ["store"]),
        ("BAD_CALL", ["--nonsense"]),
        ("BAD_CALL", ["claim", "x", "-z"]),
    )

    assert [answer["hint"] for answer in answers] == [
        "landlane claim x --json",
        "landlane claim x --ttl 5m --json",
        "for example: landlane claim src/api.py --note 'new endpoint'",
        "landlane claim x --ttl 30m --json",
        "landlane help join",
        "landlane store move x --json",
        "landlane help store",
        "landlane help",
        "landlane help claim",
    ]


def test_a_noun_without_a_verb_shows_its_help(shell: Shell) -> None:
    ended = shell.run("store")

    assert ended.exit == 2
    assert ended.out == ""
    assert (
        ended.err
        == "error: store needs a command: info, move, adopt, rebuild [BAD_CALL]\nhint: landlane help store\n"
    )


@pytest.mark.promise(
    "cli.empty-is-not-none",
    "An option with an empty value is never treated as an option that was not given.",
)
def test_an_empty_value_is_refused(busy: Shell) -> None:
    """`--token "$TOKEN"` without a token must not check nothing, nor `--as "$NAME"` act as the person."""
    refusals(
        busy,
        ("BAD_CALL", ["check", "held.py", "--token", "", "--as", "ann"]),
        ("BAD_CALL", ["release", "held.py", "--token=", "--as", "ann"]),
        ("BAD_CALL", ["claim", "new.py", "--as", ""]),
        ("BAD_CALL", ["claim", "new.py", "--repo", "", "--as", "ann"]),
        ("BAD_CALL", ["--as=", "claim", "new.py"]),
    )


def test_a_bare_and_a_broken_repository_are_reported(busy: Shell) -> None:
    busy.git("init", "--quiet", "--bare", "bare.git")
    (busy.folder / "inner" / ".git").mkdir(parents=True)
    refusals(
        busy,
        ("BARE_REPOSITORY", ["claim", "x", "--repo", "bare.git", "--as", "bob"]),
        ("REPOSITORY_BROKEN", ["claim", "x", "--repo", "inner", "--as", "bob"]),
        exit=1,
    )


def test_a_missing_folder_is_reported(busy: Shell) -> None:
    (busy.folder / "file").touch()
    refusals(
        busy,
        ("NO_FOLDER", ["claim", "x", "--repo", "scr", "--as", "bob"]),
        ("NO_FOLDER", ["claim", "x", "--repo", "file", "--as", "bob"]),
        exit=1,
    )


def test_a_deleted_current_directory_is_reported(shell: Shell) -> None:
    ended = shell.sh("mkdir gone && cd gone && rmdir ../gone && landlane claims --json")

    assert ended.exit == 1
    assert ended.json()["code"] == "NO_FOLDER"


def test_outside_a_repository_the_error_says_so(tmp_path: Path) -> None:
    shell = Shell(tmp_path)

    for words in (
        ["claim", "x"],
        ["claims"],
        ["status"],
        ["log"],
        ["store", "info"],
        ["store", "rebuild"],
    ):
        shell.run_error("NO_REPOSITORY", *words, exit=1)
    assert not list(tmp_path.iterdir())


def test_a_library_caller_gets_the_same_refusal(busy: Shell) -> None:
    """What argv cannot hold: NUL bytes, ten megabytes, numbers beyond all measure."""
    with Landlane(busy.folder, agent="bob") as bob:
        with nothing_changes(busy):
            bad: list[tuple[list[str], dict[str, Any], str]] = [
                (["a\0b"], {}, "PATTERN_BAD_TEXT"),
                (["x"], {"note": "a\0b"}, "BAD_TEXT"),
                (["x"], {"note": "x" * 10_000_000}, "TEXT_TOO_LONG"),
                (["x"], {"task": "a\0b"}, "BAD_TASK"),
                (["x"], {"task": "x" * 10_000_000}, "BAD_TASK"),
                (["x" * 10_000_000], {}, "PATTERN_TOO_LONG"),
                ([], {}, "NO_PATTERN"),
                (["x"], {"ttl": "-1s"}, "BAD_DURATION"),
                (["x"], {"ttl": ""}, "BAD_DURATION"),
                (["x"], {"wait": "-1s"}, "BAD_DURATION"),
            ]
            for patterns, options, code in bad:
                with pytest.raises(Malformed) as caught:
                    bob.claim(*patterns, **options)
                assert caught.value.code == code, (patterns, options)
                assert len(caught.value.message) < 500
        with pytest.raises(LandlaneError):
            Landlane(busy.folder, agent="a\0b")


def test_a_note_near_the_kernel_limit_is_refused_with_an_explanation(busy: Shell) -> None:
    note = "x" * 131_000  # one argument may have 128 KiB
    with nothing_changes(busy):
        ended = busy.run(
            "claim", "new.py", "--note", note, "--as", "bob", "--json", limit_seconds=LIMIT_SECONDS
        )

    assert ended.json()["code"] == "TEXT_TOO_LONG"


@pytest.mark.promise(
    "cli.no-strange-letters",
    "Control characters in names and notes never reach another user's terminal.",
)
def test_control_characters_of_others_do_not_reach_the_terminal(shell: Shell) -> None:
    shell.run_json(
        "claim", "a\x1b]0;evil\x07b", "line\nbreak", "--literal", "--note", "\x1b[2J\r\n", "--as", "ann"
    )

    shown = [
        shell.run_text("claims"),
        shell.run_text("status"),
        shell.run_text("log"),
        shell.run_text("who", "line\nbreak"),
        shell.run("claim", "**", "--as", "bob").err,
        shell.run_text("release", "line\nbreak", "--literal", "--as", "ann"),
    ]

    for text in shown:
        assert not [letter for letter in text if not letter.isprintable() and letter != "\n"], text
        assert "line\\nbreak" in text or "\\x1b]0;evil" in text
