"""What a kind of task must show."""

from __future__ import annotations

import pytest

from landlane.errors import SettingsError
from landlane.tasks.model import BUILT_IN, effective_kind, required_evidence

pytestmark = pytest.mark.unit


def test_the_default_kind_depends_on_output_and_git() -> None:
    assert effective_kind("", has_output=True, is_in_git=True) == "output"
    assert effective_kind("", has_output=False, is_in_git=True) == "code"
    assert effective_kind("", has_output=False, is_in_git=False) == "chore"
    assert effective_kind("chore", has_output=True, is_in_git=True) == "chore"


def test_settings_define_the_evidence_of_each_kind() -> None:
    assert required_evidence("code", {}) == BUILT_IN["code"] == ("commit", "paths", "check")
    assert required_evidence("code", {"code": ("commit",)}) == ("commit",)
    assert required_evidence("video", {"video": ("output", "check")}) == ("output", "check")


def test_an_undefined_kind_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SettingsError) as refused:
        required_evidence("video", {"audio": ("output",)})
    assert refused.value.code == "UNKNOWN_KIND"
    assert "audio, chore, code, output" in refused.value.hint
