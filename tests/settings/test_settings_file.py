"""Reading landlane.toml: cached between commands, read again when it changed, refused when it is broken."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from landlane.errors import SettingsError
from landlane.settings.load import read_settings
from landlane.settings.model import Settings

pytestmark = pytest.mark.integration


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "landlane.toml"


@pytest.fixture
def cache(tmp_path: Path) -> str:
    return str(tmp_path / "settings.cache")


def test_without_a_file_the_defaults_hold(tmp_path: Path, cache: str) -> None:
    assert read_settings(str(tmp_path), cache) == Settings()
    assert not os.path.exists(cache)


def test_settings_are_cached(file: Path, cache: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text("[claims]\nttl = '5m'\nshareable = ['CHANGELOG.md']\n")
    first = read_settings(str(file.parent), cache)
    monkeypatch.setattr("landlane.settings.load._parse", lambda _: pytest.fail("parsed again"))

    assert read_settings(str(file.parent), cache) == first
    assert (first.claims.ttl_ms, first.claims.shareable) == (300_000, ("CHANGELOG.md",))


def test_a_changed_file_is_read_again_though_its_size_and_time_are_the_same(file: Path, cache: str) -> None:
    file.write_text("[claims]\nttl = '5m'\n")
    read_settings(str(file.parent), cache)
    before = file.stat()

    file.write_text("[claims]\nttl = '6m'\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert read_settings(str(file.parent), cache).claims.ttl_ms == 360_000


def test_settings_of_a_removed_file_are_not_used(file: Path, cache: str) -> None:
    file.write_text("[claims]\nttl = '5m'\n")
    read_settings(str(file.parent), cache)
    file.unlink()

    assert read_settings(str(file.parent), cache) == Settings()


@pytest.mark.parametrize("rubbish", [b"", b"rubbish", b"\xe9\x01\x00\x00\x00", b"(\x00", bytes(range(64))])
def test_a_broken_cache_is_ignored(file: Path, cache: str, rubbish: bytes) -> None:
    file.write_text("[claims]\nttl = '5m'\n")
    Path(cache).write_bytes(rubbish)

    assert read_settings(str(file.parent), cache).claims.ttl_ms == 300_000


def test_a_cache_that_cannot_be_written_is_only_slower(file: Path, tmp_path: Path) -> None:
    file.write_text("[claims]\nttl = '5m'\n")

    assert read_settings(str(file.parent), str(tmp_path / "no" / "folder")).claims.ttl_ms == 300_000


@pytest.mark.parametrize("content", [b"[claims\n", b"ttl =", b"\xff\xfe"])
def test_a_file_that_is_not_toml_is_refused(file: Path, cache: str, content: bytes) -> None:
    file.write_bytes(content)

    with pytest.raises(SettingsError) as caught:
        read_settings(str(file.parent), cache)

    assert (caught.value.code, caught.value.exit_code) == ("SETTINGS_NOT_TOML", 2)


def test_a_folder_in_the_place_of_the_file_is_refused(file: Path, cache: str) -> None:
    file.mkdir()

    with pytest.raises(SettingsError) as caught:
        read_settings(str(file.parent), cache)

    assert caught.value.code == "SETTINGS_UNREADABLE"
