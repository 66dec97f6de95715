"""Secrets are taken out of texts, and nothing else is."""

from __future__ import annotations

import pytest

from landlane.redact import GONE, redact

pytestmark = pytest.mark.unit

SECRET = "ab12" * 12


@pytest.mark.parametrize(
    "text",
    [
        f"LANDLANE_SESSION=s-k3m9abcdef:{SECRET}",
        f"as s-k3m9abcdef:{SECRET} it went on",
        f"Authorization: Bearer {SECRET}",
        f"authorization: token {SECRET}",
        f"sk-proj-{SECRET}",
        f"ghp_{SECRET} and more",
        f"github_pat_{SECRET}",
        f"AIza{SECRET}",
        f'{{"api_key": "{SECRET}"}}',
        f"MY_PASSWORD='{SECRET}'",
        f"postgresql://ann:{SECRET}@db.example/work",
        f"eyJhbGciOiJIUzI1NiJ9.{SECRET}.{SECRET}",
        f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n-----END RSA PRIVATE KEY-----",
        f"-----BEGIN PRIVATE KEY-----\n{SECRET}",
    ],
)
def test_secrets_go(text: str) -> None:
    assert SECRET not in redact(text)
    assert GONE in redact(text)
    assert redact(redact(text)) == redact(text)


def test_secrets_that_are_known_go_whatever_they_look_like() -> None:
    assert redact("it said correct horse twice", ("correct horse", "it")) == f"it said {GONE} twice"


@pytest.mark.parametrize(
    "text",
    [
        "the token is 7, and max_tokens: 200000 were allowed",
        "session s-k3m9abcdef holds src/api.py since task-7",
        "https://example.org:8080/a@b and git@example.org:x/y.git",
        "a password must have eight letters",
        "desk-lamps-and-other-things, pk-1",
    ],
)
def test_ordinary_words_stay(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    "piece", ["a.", "-eyJ", "eyJaaaaaaaa.", "a_", "://a:", "-----BEGIN PRIVATE KEY-----"]
)
@pytest.mark.timeout(20)
def test_no_text_takes_for_ever(piece: str) -> None:
    redact(piece * (64_000 // len(piece)))
