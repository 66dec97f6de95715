"""The quick hook has the tools and events of every client as the client's own tables say."""

from __future__ import annotations

import pytest

from scripts import client_tools

pytestmark = pytest.mark.architecture


def test_the_copy_in_the_quick_hook_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    is_stale = client_tools.main(["--check"])

    assert not is_stale, capsys.readouterr().out
