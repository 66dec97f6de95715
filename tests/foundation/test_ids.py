"""Identifiers: the right form, and never the same twice."""

from __future__ import annotations

import hashlib
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landlane.ids import digest, is_uuid, new_secret, new_uuid, short_id

pytestmark = pytest.mark.unit


@given(st.text())
def test_digest_is_the_sha256_of_the_text(text: str) -> None:
    assert digest(text) == hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def test_digest_takes_a_file_name_that_is_no_valid_text() -> None:
    assert len(digest("caf\udce9")) == 64


def test_a_short_id_has_its_prefix_and_no_letter_that_reads_like_another() -> None:
    letters = {letter for _ in range(200) for letter in short_id("s", 20)[2:]}

    assert short_id("s").startswith("s-")
    assert len(short_id("w", 6)) == 8
    assert letters.isdisjoint("il1o0")


def test_ids_and_secrets_differ_each_time() -> None:
    for make in (lambda: short_id("s"), new_secret, new_uuid):
        assert len({make() for _ in range(500)}) == 500


def test_a_secret_has_192_bits() -> None:
    assert len(bytes.fromhex(new_secret())) == 24


def test_a_new_uuid_is_a_random_one_of_the_standard() -> None:
    made = uuid.UUID(new_uuid())

    assert (made.version, made.variant) == (4, uuid.RFC_4122)
    assert is_uuid(new_uuid())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not-a-uuid",
        "00000000-0000-0000-0000-00000000000",
        "00000000-0000-0000-0000-0000000000000",
        "00000000-0000-0000-0000-00000000000G",
        "00000000-0000-0000-0000-00000000000A",
        "00000000000000000000000000000000",
        "00000000-0000-0000-0000-00000000000\n",
    ],
)
def test_other_texts_are_no_uuid(text: str) -> None:
    assert not is_uuid(text)
