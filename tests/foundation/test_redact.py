"""Secrets are taken out of texts, and nothing else is."""

from __future__ import annotations

import pytest

from landlane.redact import GONE, cut_url_secrets, hide_credentials, redact, show_url

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


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u@h:1/x?sslpassword=SEEN", "postgresql://u@h:1/x"),
        ("postgresql://u:SE%EN@h:1/x", "postgresql://u:…@h:1/x"),
        (
            "postgresql://u:SE?EN@h/x?sslmode=require&ssl%70assword=SEEN",
            "postgresql://u:…@h/x?sslmode=require",
        ),
        ("postgresql://u@h/x?sslpassword=SE@EN&options=SEEN", "postgresql://u@h/x"),
        ("postgres://[::1]:5,b:6/x?host=/run", "postgres://[::1]:5,b:6/x?host=/run"),
        ("postgresql:///x", "postgresql:///x"),
        # A password with a character that should have been encoded: no part of the rest is certain.
        ("postgresql://u:SE/EN@h:1/x", "postgresql://…"),
        ("postgresql://u:SE@EN@h:1/x", "postgresql://…"),
        ("postgresql://u:1/SEEN@h/x", "postgresql://…"),
        ("postgresql://h:SEEN/x", "postgresql://…"),
        ("host=h password=SEEN", "…"),
    ],
)
def test_only_harmless_parts_of_a_url_are_shown(url: str, shown: str) -> None:
    assert show_url(url) == shown


def test_what_a_driver_says_is_cut_of_the_secrets_of_its_url() -> None:
    url = "postgresql://u:p%40ss@h/x?sslpassword=k%65y&sslmode=require"
    assert (
        cut_url_secrets("p@ss, p%40ss, key, k%65y for u at h (require)", url)
        == "…, …, …, … for u at h (require)"
    )
    assert cut_url_secrets('invalid port "SE" in it', "postgresql://u:SE/EN@h/x") == "…"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            "fatal: unable to access 'https://me:S/E@EN@h/x.git/'",
            "fatal: unable to access 'https://…@h/x.git/'",
        ),
        ("https://SEEN@h/x and ssh://git@h/y", "https://…@h/x and ssh://…@h/y"),
        ("git@example.org:x/y.git and https://h/x", "git@example.org:x/y.git and https://h/x"),
    ],
)
def test_credentials_in_urls_of_remotes_are_hidden(said: str, shown: str) -> None:
    assert hide_credentials(said) == shown
