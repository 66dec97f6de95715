"""Clients, agents and roles that the settings name must exist."""

from __future__ import annotations

import pytest

from landlane.errors import SettingsError
from landlane.settings.readers import parse_settings

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"agents": {"x": {"client": "claud"}}}, "agents.x.client: claud"),
        ({"agents": {"x": {"command": ["./x"], "role": "cod"}}}, "agents.x.role: cod"),
        ({"run": {"agent": "claud"}}, "run.agent: claud"),
        ({"run": {"role": "cod"}}, "run.role: cod"),
    ],
)
def test_an_unknown_name_is_refused_when_the_settings_are_read(
    document: dict[str, object], said: str
) -> None:
    with pytest.raises(SettingsError, match=said) as refused:
        parse_settings(document)  # type: ignore[arg-type]

    assert refused.value.code == "SETTINGS_UNKNOWN_KEY"


def test_known_names_are_accepted() -> None:
    agents = {"mine": {"command": ["./x"], "role": "code"}, "other": {"client": "claude", "role": "own"}}
    parse_settings({"agents": agents, "roles": {"own": {"like": "code"}}, "run": {"agent": "mine"}})
