"""Settings: every key checked by name and type, mistakes answered with what was probably meant."""

from __future__ import annotations

import tomllib

import pytest

from landlane.errors import Malformed, SettingsError
from landlane.settings.check import check_settings
from landlane.settings.keys import KNOWN
from landlane.settings.model import Settings
from landlane.values import as_dict

pytestmark = pytest.mark.unit


def read(text: str) -> Settings:
    return Settings(**check_settings(tomllib.loads(text)))


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
        max_ttl = 7200
        required = ["src/**"]
        free = []
        hot = ["CHANGELOG.md"]
        ignore_case = true
        [journal]
        git = true
        [rules]
        file = "docs/RULES.md"
    """
    settings = read(document)

    assert settings == Settings(
        repository_id="0b9d2d9c-7d3b-4e7b-9a55-0d0d3c0f6a11",
        store_url="postgresql://db/agents",
        store_wait_ms=5_000,
        session_lease_ms=600_000,
        claim_ttl_ms=900_000,
        claim_max_ttl_ms=7_200_000,
        claims_required=("src/**",),
        claims_free=(),
        claims_hot=("CHANGELOG.md",),
        claims_ignore_case=True,
        journal_in_git=True,
        rules_file="docs/RULES.md",
    )


def test_the_table_of_keys_names_only_fields_that_exist_each_once() -> None:
    fields = [field for keys in KNOWN.values() for field, _, _ in keys.values()]

    assert len(fields) == len(set(fields))
    assert set(fields) <= set(as_dict(Settings()))


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
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_known_one(text: str, key: str, nearest: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read(text)

    assert (caught.value.code, caught.value.exit_code) == ("SETTINGS_UNKNOWN_KEY", 2)
    assert caught.value.facts == {"key": key, "nearest": nearest}
    assert (f"`{nearest}`" in caught.value.hint) == bool(nearest)


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
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_by_name(text: str, where: str) -> None:
    with pytest.raises(Malformed) as caught:
        read(text)

    assert caught.value.exit_code == 2
    assert where in caught.value.message


def test_a_longest_lease_below_the_default_shortens_the_default() -> None:
    settings = read("[claims]\nmax_ttl = '10m'")

    assert settings.claim_ttl_ms <= settings.claim_max_ttl_ms == 600_000
