"""A block or a line of ours in somebody's text, and tables of ours in somebody's TOML."""

from __future__ import annotations

import pytest

from landlane.managed_files.text_block import (
    HASHES,
    block_of,
    drop_block,
    drop_line,
    has_line,
    put_block,
    put_line,
)
from landlane.managed_files.toml_tables import NotToml, drop_tables

pytestmark = pytest.mark.unit

TEXTS = ["", "# Mine\n", "# Mine", "# Mine\r\n\r\ntext\r\n", "# Mine\n\n", "\ufeff# Mine\n"]


@pytest.mark.parametrize("text", TEXTS)
def test_a_block_is_added_replaced_and_removed(text: str) -> None:
    found = put_block(text, "one\ntwo\n")

    assert found.startswith(text)
    assert block_of(found) == "one\ntwo"
    assert put_block(found, "one\ntwo\n") == found
    assert put_block(found, "three").replace("three", "one\r\ntwo" if "\r" in text else "one\ntwo") == found
    assert drop_block(found).rstrip("\r\n") == text.rstrip("\r\n")
    assert ("\r\n" in text) == ("\r\n" in found)
    assert "\n" not in found.replace("\r\n", "") if "\r" in text else True


def test_text_after_a_block_stays() -> None:
    text = put_block("# Mine\n", "ours") + "\n## Later\n"

    assert put_block(text, "newer").endswith("\n## Later\n")
    assert drop_block(text) == "# Mine\n\n## Later\n"
    assert drop_block("# Mine\n") == "# Mine\n"
    assert block_of("# Mine\n") is None


def test_blocks_with_different_marks_do_not_interfere() -> None:
    text = put_block("*.o\n", "/.claude/x", HASHES)

    assert text == "*.o\n\n# landlane: begin\n/.claude/x\n# landlane: end\n"
    assert block_of(text) is None


@pytest.mark.parametrize("text", TEXTS)
def test_a_line_is_added_and_removed(text: str) -> None:
    found = put_line(text, "@AGENTS.md")

    assert found.startswith(text)
    assert found.splitlines()[-1].removeprefix("\ufeff") == "@AGENTS.md"
    assert drop_line(found, "@AGENTS.md").rstrip("\r\n") == text.rstrip("\r\n")


def test_an_import_counts_only_outside_of_code() -> None:
    assert has_line("see @AGENTS.md please", "@AGENTS.md")
    assert not has_line("```\n@AGENTS.md\n```\n", "@AGENTS.md")
    assert not has_line("mail@AGENTS.md", "@AGENTS.md")
    assert drop_line("a\n\nb\n", "@AGENTS.md") == "a\n\nb\n"
    assert drop_line("a\n\n@AGENTS.md\n\nb\n", "@AGENTS.md") == "a\n\nb\n"


def test_tables_are_removed_and_comments_stay() -> None:
    text = '# top\na = 1\n\n[keep]\nb = 2\n\n[state."x:0"]\nc = 3\n# of the next\n[[list]]\nd = 4\n'
    text += "\n[state.y]\ne = 5\n"

    found = drop_tables(text, lambda keys: keys == ("state", "x:0"))

    assert found == "# top\na = 1\n\n[keep]\nb = 2\n# of the next\n[[list]]\nd = 4\n\n[state.y]\ne = 5\n"
    with pytest.raises(NotToml, match="line 1"):
        drop_tables("a b", lambda _: True)
