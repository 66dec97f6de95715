"""The pages of the worker protocol say what the code says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scripts import worker_protocol

if TYPE_CHECKING:
    import pytest

pytestmark = pytest.mark.architecture


def test_the_pages_are_what_the_code_says(capsys: pytest.CaptureFixture[str]) -> None:
    is_stale = worker_protocol.main(["--check"])

    assert not is_stale, capsys.readouterr().out
