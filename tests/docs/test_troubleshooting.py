"""The page for what went wrong: each heading is a message that the product really says, with its code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.error_codes import collect_codes
from scripts.references import PACKAGE

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("references")]  # they share what is collected

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "howto" / "troubleshooting.md"
HEADING = re.compile(r"^## (?P<message>.+) \[(?P<code>[A-Z][A-Z_]+)\]$", re.MULTILINE)


def test_every_heading_is_a_message_of_the_product() -> None:
    answer = {(one.message, one.code) for one in collect_codes(PACKAGE)}
    text = PAGE.read_text(encoding="utf-8")

    headings = HEADING.findall(text)

    reported = re.findall(r"^## (?P<start>[^…\n]+ )…$", text, re.MULTILINE)  # by `landlane`, without a code
    assert len(headings) == len(set(headings))
    assert len(headings) + len(reported) == len(re.findall(r"^## ", text, re.MULTILINE))
    assert len(headings) >= 25
    assert [heading for heading in headings if heading not in answer] == []
    shown = (PACKAGE / "status" / "troubles.py").read_text(encoding="utf-8")
    assert [start for start in reported if f"✗ {start}{{" not in shown] == []
