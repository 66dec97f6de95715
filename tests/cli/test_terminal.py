"""What the terminal shows: colour that follows the words, tables that fit, errors in one form."""

from __future__ import annotations

import io
import sys

import pytest

from landlane.cli.table import format_table, shorten, wrap_card
from landlane.cli.terminal import Terminal, has_colour, in_one_line, paint
from landlane.errors import Held, Malformed, NotAllowed, TimedOut, WaitsForPerson

pytestmark = pytest.mark.unit

HEADER = ("PATH", "HOLDER", "FOR", "HELD", "WAITING")
ROWS = [
    ("src/api.py", "ann", '"new endpoint"', "4 min", ""),
    ("src/pay/refund.py", "codex-T14", "T14 Refund orders in part or in full", "12 min", ""),
]


class Screen(io.TextIOWrapper):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def test_columns_that_are_empty_in_all_rows_are_left_out() -> None:
    assert format_table(HEADER, ROWS, right=("HELD",)).split("\n") == [
        "PATH               HOLDER     FOR                                     HELD",
        'src/api.py         ann        "new endpoint"                         4 min',
        "src/pay/refund.py  codex-T14  T14 Refund orders in part or in full  12 min",
    ]


def test_only_the_named_column_is_cut_to_fit() -> None:
    lines = format_table(HEADER, ROWS, cut="FOR", width=60).split("\n")

    assert [len(line) <= 60 for line in lines] == [True] * 3
    assert lines[2] == "src/pay/refund.py  codex-T14  T14 Refund orders in…   12 min"


def test_wide_letters_count_twice() -> None:
    table = format_table(("TITLE", "N"), [("日本", "1"), ("plain", "2")])
    assert table.split("\n") == ["TITLE  N", "日本   1", "plain  2"]
    assert shorten("日本語です", 5) == "日本…"


@pytest.mark.parametrize(
    ("line", "painted"),
    [
        ("✓ claimed a.py", "\x1b[32m✓\x1b[0m claimed a.py"),
        ("  ✗ make test", "  \x1b[31m✗\x1b[0m make test"),
        ("error: no task T9 [UNKNOWN_TASK]", "\x1b[31merror:\x1b[0m no task T9\x1b[2m [UNKNOWN_TASK]\x1b[0m"),
        ("refused: a.py is claimed", "\x1b[33mrefused:\x1b[0m a.py is claimed"),
        ("hint: wait in line: landlane claim", "hint: wait in line: \x1b[36mlandlane claim\x1b[0m"),
        ("next: landlane land", "next: \x1b[36mlandlane land\x1b[0m"),
        ("TASK  STATE", "\x1b[2mTASK  STATE\x1b[0m"),
        ("a list [0]", "a list [0]"),
    ],
)
def test_colour_follows_the_words(line: str, painted: str) -> None:
    assert paint(line) == painted


def test_colour_needs_a_terminal_that_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    screen, pipe = Screen(io.BytesIO()), io.TextIOWrapper(io.BytesIO())
    assert (has_colour(screen), has_colour(pipe), has_colour(None)) == (True, False, False)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not has_colour(screen)
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not has_colour(screen)
    monkeypatch.setenv("CLICOLOR_FORCE", "1")
    assert has_colour(pipe)


@pytest.mark.parametrize(
    ("kind", "first"),
    [
        (Malformed, "error:"),
        (Held, "refused:"),
        (NotAllowed, "refused:"),
        (TimedOut, "timed out:"),
        (WaitsForPerson, "waiting:"),
    ],
)
def test_the_first_word_of_an_error_gives_its_kind(
    kind: type[Malformed], first: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = Terminal().fail(kind("no such\nthing", code="CODE", hint="try this: landlane help"))

    assert code == kind.exit_code
    assert capsys.readouterr().err == f"{first} no such\\nthing [CODE]\nhint: try this: landlane help\n"


def test_without_utf8_symbols_are_words(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))

    Terminal().answer({}, "✓ done · 3 → 4 …")

    assert raw.getvalue() == b"ok done | 3 -> 4 ...\n"


def test_quiet_prints_only_the_value_and_verbose_is_known(capfd: pytest.CaptureFixture[str]) -> None:
    Terminal(is_quiet=True).answer_value({"port": 20017}, "20017", "version 3, by ann")
    Terminal(is_quiet=True).answer({}, "✓ added T12", quiet="T12")
    sys.stdout.flush()

    assert capfd.readouterr() == ("20017\nT12\n", "")


def test_control_characters_of_names_are_shown_not_obeyed() -> None:
    assert in_one_line("a\x1b[31mb\n") == "a\\x1b[31mb\\n"


@pytest.mark.parametrize(
    ("hint", "completed"),
    [
        ("landlane claim a.py", "landlane claim a.py --as ann"),
        ("wait in line: landlane claim a.py --wait", "wait in line: landlane claim a.py --wait --as ann"),
        ("landlane release --all, or wait", "landlane release --all --as ann, or wait"),
        ("landlane leave ends your session", "landlane leave --as ann ends your session"),
        ("landlane once build --again -- make", "landlane once build --again --as ann -- make"),
        ("5 minutes: landlane next --wait 5m\n5 seconds: landlane next --wait 5s",
         "5 minutes: landlane next --wait 5m --as ann\n5 seconds: landlane next --wait 5s --as ann"),
        ("landlane claims a.py", "landlane claims a.py"),
        ("check the connection", "check the connection"),
        ("git switch -c my-change", "git switch -c my-change"),
    ],
)  # fmt: skip
def test_a_hint_names_the_agent_inside_its_command(hint: str, completed: str) -> None:
    assert Terminal(agent="ann").as_typed(hint) == completed


HOSTILE = "x\x1b]0;evil\x07\x9b1m\u202e"
ESCAPED = r"x\x1b]0;evil\x07\x9b1m\u202e"


def test_every_way_to_write_escapes_foreign_text(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    terminal.answer({}, f"one\n{HOSTILE}")
    terminal.line({}, HOSTILE)
    terminal.answer({}, terminal.item_table("", [{"a": HOSTILE}], ["a"]))
    terminal.note(HOSTILE)
    terminal.print_error(HOSTILE, HOSTILE, "CODE", [HOSTILE])
    terminal.write_raw("", HOSTILE)
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\ny\n"))
    terminal.confirm(HOSTILE)
    terminal.ask(HOSTILE)
    out, err = capsysbinary.readouterr()
    assert out.decode() == f"one\n{ESCAPED}\n{ESCAPED}\nA\n{ESCAPED}\n"
    assert err.decode() == (
        f"{ESCAPED}\nerror: {ESCAPED} [CODE]\n{ESCAPED}\nhint: {ESCAPED}\n"
        f"{ESCAPED}\n{ESCAPED} [Y/n] {ESCAPED} "
    )
    Terminal(is_json=True).answer({"a": HOSTILE})
    assert capsysbinary.readouterr().out == b'{"a": "x\\u001b]0;evil\\u0007\\u009b1m\\u202e"}\n'


def test_a_value_for_scripts_is_exact_unless_a_terminal_shows_it(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    Terminal().answer_value({}, HOSTILE, remark=HOSTILE)
    out, err = capsysbinary.readouterr()
    assert (out.decode(), err.decode()) == (f"{HOSTILE}\n", f"{ESCAPED}\n")
    shown = io.BytesIO()
    screen = Screen(shown, encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("NO_COLOR", "1")
    Terminal().answer_value({}, HOSTILE)
    screen.flush()
    assert shown.getvalue().decode() == f"{ESCAPED}\n"


def test_a_card_is_wrapped_to_the_width_but_its_commands_and_output_are_not() -> None:
    card = """\
T14 Refund orders                                                          active, attempt 2 of 3
  why       the refund of an order in part leaves the audit trail without its second entry
  check     pytest tests/test_refund.py tests/test_audit.py tests/test_orders.py

  1  ✗ codex   14:02–14:11   L5 bounced: make test failed in two places of the refund
       tests/test_refund.py::test_partial: AssertionError: assert 0 == 500
  ann, 4 min ago: the audit trail is written by the caller, not by the refund
next: landlane task log T14 --follow --as somebody-with-a-long-name"""

    assert wrap_card(card, 100) == card
    assert (
        wrap_card(card, 60)
        == """\
T14 Refund orders                     active, attempt 2 of 3
  why       the refund of an order in part leaves the audit
            trail without its second entry
  check     pytest tests/test_refund.py tests/test_audit.py tests/test_orders.py

  1  ✗ codex   14:02–14:11   L5 bounced: make test failed in
       two places of the refund
       tests/test_refund.py::test_partial: AssertionError: assert 0 == 500
  ann, 4 min ago: the audit trail is written by the caller,
    not by the refund
next: landlane task log T14 --follow --as somebody-with-a-long-name"""
    )


def test_a_long_word_of_a_card_stays_whole() -> None:
    assert wrap_card(f"T1 A\n  why       {'x' * 80} then more", 40).split("\n")[1:] == [
        f"  why       {'x' * 80}",
        "            then more",
    ]
