"""Settings: every key checked by name and type, mistakes answered with what was probably meant."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest

from landlane.errors import Malformed, SettingsError
from landlane.settings.model import (
    AgentSettings,
    ClaimSettings,
    JournalSettings,
    LandingCheck,
    MergeFile,
    Price,
    RepositorySettings,
    RuleSettings,
    SessionSettings,
    Settings,
    StoreSettings,
)
from landlane.settings.readers import READERS, parse_settings
from landlane.settings.section import keys_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from landlane.settings.section import Section

pytestmark = pytest.mark.unit


def read(text: str) -> Settings:
    return parse_settings(tomllib.loads(text))


def test_without_settings_the_defaults_hold() -> None:
    assert read("") == Settings()


def test_every_known_key_is_read() -> None:
    document = """
        [repository]
        id = "0B9D2D9C-7D3B-4E7B-9A55-0D0D3C0F6A11"
        [store]
        url = "postgresql://db/agents"
        wait = "5s"
        [sessions]
        lease = "10m"
        [claims]
        ttl = "15m"
        max_ttl = "2h"
        required = ["src/**"]
        free = []
        shareable = ["CHANGELOG.md"]
        ignore_case = true
        [journal]
        git = true
        [rules]
        file = "docs/RULES.md"
    """
    settings = read(document)

    assert settings == Settings(
        repository=RepositorySettings(id="0b9d2d9c-7d3b-4e7b-9a55-0d0d3c0f6a11"),
        store=StoreSettings(url="postgresql://db/agents", wait_ms=5_000),
        sessions=SessionSettings(lease_ms=600_000),
        claims=ClaimSettings(
            ttl_ms=900_000,
            max_ttl_ms=7_200_000,
            required=("src/**",),
            free=(),
            shareable=("CHANGELOG.md",),
            ignore_case=True,
        ),
        journal=JournalSettings(git=True),
        rules=RuleSettings(file="docs/RULES.md"),
    )


def sections_of(described: type[Section]) -> Iterator[type[Section]]:
    yield described
    for key in keys_of(described).values():
        if key.nested is not None:
            yield from sections_of(key.nested)


@pytest.mark.parametrize("described", list(sections_of(Settings)), ids=lambda described: described.__name__)
def test_every_field_of_a_section_is_a_described_key_with_a_reader(described: type[Section]) -> None:
    keys = keys_of(described)

    assert [key.field for key in keys.values()] == list(described.__annotations__)
    for key in keys.values():
        assert key.nested is not None or (key.text and key.reader in READERS)


def test_a_section_is_frozen_and_refuses_unknown_fields() -> None:
    with pytest.raises(AttributeError, match="ttl_ms cannot be changed"):
        Settings().claims.ttl_ms = 1  # type: ignore[misc]
    with pytest.raises(TypeError, match="no field 'tll_ms'"):
        ClaimSettings(tll_ms=1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        _ = LandingCheck().run  # type: ignore[call-arg]


def test_sections_are_equal_when_all_values_are() -> None:
    assert ClaimSettings(ttl_ms=ClaimSettings().ttl_ms) == ClaimSettings()
    assert ClaimSettings(ttl_ms=1) != ClaimSettings()
    assert repr(ClaimSettings(ttl_ms=1)) == "ClaimSettings(ttl_ms=1)"


def test_named_and_listed_tables_become_values() -> None:
    settings = read("""
        [landing]
        checks = ["make test", { run = "make lint", name = "lint", limit = "5s", retries = 2 }]
        [landing.merge.files]
        "CHANGELOG.md" = "union"
        "build.txt" = { kind = "generated", command = "make build.txt" }
        [agents.ann]
        client = "claude"
        needs = { gpu = 2 }
        [prices."gpt-*"]
        input = 1.25
        output = "$10"
    """)

    assert settings.landing.checks == (
        LandingCheck(run="make test", name="make test"),
        LandingCheck(run="make lint", name="lint", limit_ms=5_000, retries=2),
    )
    assert settings.landing.merge.files == {
        "CHANGELOG.md": MergeFile(kind="union"),
        "build.txt": MergeFile(kind="generated", command="make build.txt"),
    }
    assert settings.agents == {"ann": AgentSettings(client="claude", needs={"gpu": 2})}
    assert settings.prices == {"gpt-*": Price(input_micros=1_250_000, output_micros=10_000_000)}
    assert settings.mergeable_patterns == ("CHANGELOG.md", "build.txt")


@pytest.mark.promise(
    "settings.mistakes-are-named",
    "An unknown key in the settings is refused with the closest known key.",
)
@pytest.mark.parametrize(
    ("text", "key", "nearest"),
    [
        ("[claim]\nttl = 1", "[claim]", "claims"),
        ("[claims]\ntll = 1", "claims.tll", "ttl"),
        ("[claims]\nignorecase = true", "claims.ignorecase", "ignore_case"),
        ("[journal]\nxyzzy = 1", "journal.xyzzy", ""),
        ("[claims]\nhot = ['LOG']", "claims.hot", "shareable"),
        ("[hot]\nLOG = 'union'", "[hot]", "landing.merge.files"),
        ("[watch]\ninterval = '1m'", "[watch]", "notify"),
        ("[fences]\nrequired = []", "[fences]", "sandbox"),
        ("[landing.merge.files]\nLOG = { class = 'union' }", "landing.merge.files.LOG.class", "kind"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_known_one(text: str, key: str, nearest: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read(text)

    assert (caught.value.code, caught.value.exit_code) == ("SETTINGS_UNKNOWN_KEY", 2)
    remark = f"did you mean {nearest}?" if nearest else "known here: git."
    facts = {"key": key, "nearest": nearest, "setting": key, "remark": remark}
    assert caught.value.facts == facts
    assert caught.value.hint == f"{remark} All settings: landlane config list --all"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("claims = 1", "claims"),
        ("[claims]\nttl = true", "claims.ttl"),
        ("[claims]\nttl = 1.5", "claims.ttl"),
        ("[claims]\nttl = '0s'", "claims.ttl"),
        ("[claims]\nrequired = 'src'", "claims.required"),
        ("[claims]\nrequired = [1]", "claims.required"),
        ("[claims]\nrequired = ['']", "claims.required"),
        ("[claims]\nignore_case = 'yes'", "claims.ignore_case"),
        ("[store]\nurl = ''", "store.url"),
        ("[store]\nwait = -1", "store.wait"),
        ("[repository]\nid = 'mine'", "repository.id"),
        ("[claims]\nttl = '2h'\nmax_ttl = '1h'", "claims.ttl"),
        ("[claims]\nttl = '8d'", "claims.ttl"),
        ("[landing]\nchecks = 'make'", "landing.checks"),
        ("[landing]\nchecks = [{ name = 'x' }]", "landing.checks must be given run"),
        (
            "[landing]\nchecks = ['make', 'make']",
            "checks with different names",
        ),
        ("[landing.merge.files]\nLOG = 'magic'", "landing.merge.files.LOG.kind"),
        ("[landing.merge.files]\nLOG = 'generated'", "landing.merge.files.LOG"),
        ("[prices.gpt-4.1]\ninput = 1", "a name in quotes if it holds a dot"),
        ("[prices.m]\ninput = 1", "prices.m must be given output"),
        ("[numbers.migration]\nwidth = 4", "numbers.migration must be given path"),
        ("[numbers.migration]\npath = 'migrations/1.sql'", "numbers.migration.path"),
        ("[slots.port]\nrange = [9, 1]", "slots.port.range"),
        ("[state.monotonic]\na = []", "state.monotonic.a"),
        ("[roles.x]\nconnects = [0]", "roles.x.connects"),
        ("[slots.gpu]\ncapacity = 1\nnames = ['a']", "slots.gpu"),
        ("[state.reducers]\n'a/*' = 'product'", "state.reducers.a/*"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_by_name(text: str, where: str) -> None:
    with pytest.raises(Malformed) as caught:
        read(text)

    assert caught.value.exit_code == 2
    assert where in caught.value.message


def test_a_longest_lease_below_the_default_shortens_the_default() -> None:
    settings = read("[claims]\nmax_ttl = '10m'")

    assert settings.claims.ttl_ms <= settings.claims.max_ttl_ms == 600_000
