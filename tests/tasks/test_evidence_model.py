"""What a kind of task must show."""

from __future__ import annotations

import pytest

from landlane.errors import SettingsError
from landlane.tasks.evidence_model import BUILT_IN, effective_kind, required_evidence

pytestmark = pytest.mark.unit


def test_a_task_that_does_not_say_is_what_it_looks_like() -> None:
    assert effective_kind("", has_output=True, is_in_git=True) == "output"
    assert effective_kind("", has_output=False, is_in_git=True) == "code"
    assert effective_kind("", has_output=False, is_in_git=False) == "chore"
    assert effective_kind("chore", has_output=True, is_in_git=True) == "chore"


def test_the_settings_say_what_counts_for_each_kind() -> None:
    assert required_evidence("code", {}) == BUILT_IN["code"] == ("commit", "paths", "check")
    assert required_evidence("code", {"code": ("commit",)}) == ("commit",)
    assert required_evidence("video", {"video": ("output", "check")}) == ("output", "check")


def test_a_kind_that_nobody_described_is_refused_with_those_that_are() -> None:
    with pytest.raises(SettingsError) as refused:
        required_evidence("video", {"audio": ("output",)})
    assert refused.value.code == "UNKNOWN_KIND"
    assert "audio, chore, code, output" in refused.value.hint
