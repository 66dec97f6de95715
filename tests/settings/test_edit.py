"""`landlane config`: single settings are found, shown and changed by name, and comments survive."""

from __future__ import annotations

import pytest

from landlane.errors import SettingsError
from landlane.settings.edit import all_keys, default_text, find_key, value_text, with_value

pytestmark = pytest.mark.unit

FILE = """\
# Our settings.
[claims]
ttl = "1h"  # long enough for a build
required = ["Makefile"]
"""


def test_a_value_changes_and_everything_else_stays() -> None:
    assert with_value(FILE, find_key("claims.ttl"), "45m") == FILE.replace('"1h"', '"45m"')


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("run.workers", "4", "workers = 4"),
        ("landing.checks", '["make test"]', 'checks = ["make test"]'),
        ("landing.resident", "false", "resident = false"),
        ("rules.file", "docs/RULES.md", 'file = "docs/RULES.md"'),
        ("landing.target", "2", 'target = "2"'),
        ("agents.fix.command", '["sh", "fix.sh"]', 'command = ["sh", "fix.sh"]'),
        ('prices."gpt-4.1".input', "2.5", "input = 2.5"),
    ],
)
def test_values_are_written_as_toml(name: str, text: str, line: str) -> None:
    source = '[prices."gpt-4.1"]\noutput = 10\n' if name.startswith("prices") else ""
    assert line in with_value(source, find_key(name), text)


def test_an_unknown_setting_is_named_with_the_one_that_was_meant() -> None:
    for name, meant in (
        ("claims.tll", "claims.ttl"),
        ("landing.chekcs", "landing.checks"),
        ("run.ttl", "claims.ttl"),
        ("run.silent", ""),
        ("x y", ""),
    ):
        with pytest.raises(SettingsError) as refused:
            find_key(name)
        assert (refused.value.code, refused.value.facts["meant"]) == ("SETTINGS_UNKNOWN_KEY", meant)


def test_a_new_key_comes_before_the_comments_at_the_end_of_its_section() -> None:
    source = '[landing]\nchecks = ["make"]\n\n# [run]\n# agent = "claude"\n\n[hooks]\n'

    changed = with_value(source, find_key("landing.gate"), '["docs/**"]')

    assert changed == source.replace('"make"]\n', '"make"]\ngate = ["docs/**"]\n')


@pytest.mark.parametrize("name", ["claims", "agents.fix", "landing.checks.run", ""])
def test_only_single_settings_can_be_named(name: str) -> None:
    with pytest.raises(SettingsError):
        find_key(name)


@pytest.mark.parametrize(
    ("name", "text"), [("run.workers", "four"), ("claims.ttl", "soon"), ("landing.style", "x")]
)
def test_a_value_that_does_not_fit_is_refused(name: str, text: str) -> None:
    with pytest.raises(SettingsError):
        with_value("", find_key(name), text)


def test_a_file_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(SettingsError) as refused:
        with_value("[claims\n", find_key("claims.ttl"), "1h")
    assert refused.value.code == "SETTINGS_NOT_TOML"


def test_defaults_are_shown_as_the_file_writes_them() -> None:
    shown = {setting.name: default_text(setting.key) for setting in all_keys()}
    assert (shown["claims.ttl"], shown["run.limit"], shown["claims.required"]) == ("30m", "2h", "[]")
    assert (shown["run.disk_floor"], shown["run.workers"]) == ("0", "")
    assert value_text(["make test"]) == '["make test"]'
    assert value_text("30m") == "30m"
