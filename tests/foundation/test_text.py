"""Foreign text is escaped before it is shown, and ordinary text stays as it is."""

from __future__ import annotations

import json

import pytest

from landlane.text import in_json, in_lines, in_one_line

pytestmark = pytest.mark.unit

# Escape sequences of 7 and 8 bits, a reversed order of letters, an invisible letter, a paragraph separator.
HOSTILE = "a\x1b[31m\x07\x9b1m\x7f\r\u202e\u2066\u200b\u2029b"
ESCAPED = r"a\x1b[31m\x07\x9b1m\x7f\r\u202e\u2066\u200b\u2029b"


@pytest.mark.promise(
    "output.controls-nothing",
    "No title, note, file name, check output or word of a remote can control the terminal or forge a line.",
)
def test_whatever_could_control_a_terminal_is_escaped() -> None:
    assert in_one_line(HOSTILE) == ESCAPED
    assert in_lines(HOSTILE) == ESCAPED
    assert in_one_line("one\n✓ two\tthree") == r"one\n✓ two\tthree"
    assert in_lines("one\n✓ two\tthree") == "one\n✓ two\tthree"


def test_every_letter_that_is_shown_is_visible() -> None:
    shown = in_one_line("".join(map(chr, range(0xD800))) + "".join(map(chr, range(0xE000, 0x1_0000))))
    assert {letter for letter in shown if not letter.isprintable()} <= set(
        "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
    )


@pytest.mark.parametrize("text", ["plain", "Grüße · 日本\u3000語 ✓", "5\u00a0km", "C:\\x1b"])
def test_ordinary_text_stays(text: str) -> None:
    assert in_one_line(text) == in_lines(text) == text


def test_json_keeps_its_values() -> None:
    document = {"note": HOSTILE + "\U000e0001\n", "path": "\udcff"}
    shown = in_json(json.dumps(document, ensure_ascii=False))
    assert json.loads(shown) == document
    assert all(letter.isprintable() for letter in shown if letter != "\udcff")
