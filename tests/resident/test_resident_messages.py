"""What the resident and its callers say to each other: whole requests come through, and nothing else does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landlane.resident.messages import (
    HEAD,
    MAGIC,
    MOST_BYTES,
    BadMessage,
    body_length,
    pack_request,
    shared_environment,
    unpack_request,
)

pytestmark = pytest.mark.unit

words = st.lists(st.binary(max_size=20), max_size=5)
pairs = st.dictionaries(st.binary(max_size=9), st.binary(max_size=9), max_size=4)


@given(st.binary(max_size=9), st.binary(max_size=9), words, pairs, st.binary(max_size=50))
def test_a_request_comes_through_as_it_was(
    verb: bytes, cwd: bytes, said: list[bytes], answer: dict[bytes, bytes], stdin: bytes
) -> None:
    request = pack_request(verb, cwd, said, answer, stdin)
    assert body_length(request[:HEAD]) == len(request) - HEAD
    assert unpack_request(request[HEAD:]) == (verb, cwd, said, answer, stdin)


@given(st.binary(max_size=200))
def test_noise_is_no_request(noise: bytes) -> None:
    try:
        unpack_request(noise)
    except BadMessage:
        return
    assert len(noise) >= 20  # five empty fields at least


@given(words, st.integers(0, 60), st.integers(0, 255))
def test_a_spoiled_request_is_garbled_or_another_one(said: list[bytes], at: int, value: int) -> None:
    body = bytearray(pack_request(b"call", b"/", said, {b"A": b"b"}, b"x")[HEAD:])
    body[at % len(body)] = value
    try:
        unpack_request(bytes(body))
    except BadMessage:
        return


def test_what_is_too_long_is_refused_before_it_is_read() -> None:
    with pytest.raises(BadMessage):
        body_length(MAGIC + (MOST_BYTES + 1).to_bytes(4, "big"))
    with pytest.raises(BadMessage):
        pack_request(b"call", b"", (), {}, bytes(MOST_BYTES))


def test_only_what_tells_who_asks_is_told() -> None:
    answer = shared_environment(
        {
            b"LANDLANE_SESSION": b"s:x",
            b"LANDLANE_STORE": b"/elsewhere",
            b"LANDLANE_RESIDENT": b"/sock",
            b"CLAUDE_PROJECT_DIR": b"/p",
            b"CLAUDE_CODE_OAUTH_TOKEN": b"secret",
            b"GEMINI_API_KEY": b"secret",
            b"LD_PRELOAD": b"evil.so",
            b"PATH": b"/bin",
            b"TERM": b"dumb",
        }
    )
    assert set(answer) == {b"LANDLANE_SESSION", b"CLAUDE_PROJECT_DIR", b"TERM"}
