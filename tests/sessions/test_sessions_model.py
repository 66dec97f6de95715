"""What can name an agent, a role or a task, and what proves a session."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landlane.errors import Malformed
from landlane.ids import Credentials
from landlane.sessions.model import check_agent_name, check_not_reserved, parse_credentials
from landlane.text import check_label, check_text

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("name", ["a", "Ann", "claude-1", "ann@laptop", "a.b_c", "7", "_x", "@x", "a" * 64])
def test_plain_names_are_taken_as_they_are(name: str) -> None:
    assert check_agent_name(name) == name


@pytest.mark.parametrize("name", ["", ".a", "-a", "a b", "a/b", "a\\b", "ä", "a\0", "a\n", "a:b", "a" * 65])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(Malformed) as caught:
        check_agent_name(name)

    assert (caught.value.code, caught.value.exit_code) == ("BAD_NAME", 2)


@pytest.mark.parametrize(
    ("name", "use"),
    [
        *(
            (name, f"the id {name.upper()}")
            for name in ("L9", "l9", "G3", "g3", "T12", "V1", "h4", "W2", "R7", "D1", "B3")
        ),
        ("landlane", "Landlane itself"),
        ("Landlane", "Landlane itself"),
        ("codex-T14", "the worker that `landlane run` starts for T14"),
        ("my-codex-T14", "the worker that `landlane run` starts for T14"),
        ("codex-T14.w", "the worker that `landlane run` starts for T14"),
    ],
)
def test_names_that_landlane_uses_itself_are_reserved(name: str, use: str) -> None:
    with pytest.raises(Malformed) as caught:
        check_not_reserved(name)

    assert (caught.value.code, caught.value.message) == ("NAME_RESERVED", f"{name} is reserved for {use}")
    check_not_reserved(caught.value.hint.removeprefix("landlane join "))


@pytest.mark.parametrize(
    "name",
    [
        "ann",
        "L",
        "Lena",
        "L9x",
        "w1",
        "b2",
        "x7",
        "claude-t123",
        "claude-7f3a",
        "T-1",
        "-T1",
        "ann.T1",
        "landlane2",
    ],
)
def test_other_names_are_free(name: str) -> None:
    check_not_reserved(name)


@given(st.text(max_size=80))
def test_a_name_that_is_accepted_is_safe_as_a_file_name(name: str) -> None:
    try:
        accepted = check_agent_name(name)
    except Malformed:
        return
    assert accepted == name
    assert name.isascii()
    assert name.isprintable()
    assert not set(name) & set("/\\\0 +")
    assert not name.startswith((".", "-"))


@pytest.mark.parametrize("label", ["T7", "code review", "a:b", "x" * 64])
def test_labels_are_short_and_printable(label: str) -> None:
    assert check_label(label, "task") == label


@pytest.mark.parametrize("label", ["", "a/b", "ä", "a\nb", "x" * 65])
def test_other_labels_are_refused_by_what_they_should_be(label: str) -> None:
    with pytest.raises(Malformed) as caught:
        check_label(label, "task kind")

    assert caught.value.code == "BAD_TASK_KIND"


@pytest.mark.parametrize("text", ["", "plain", "日本\n𝔘", "\u2028"])
def test_free_text_of_any_language_is_kept(text: str) -> None:
    assert check_text(text, "note", 100) == text


@pytest.mark.parametrize(
    ("text", "code"), [("x" * 101, "TEXT_TOO_LONG"), ("a\0b", "BAD_TEXT"), ("caf\udce9", "BAD_TEXT")]
)
def test_text_that_a_store_cannot_hold_is_refused(text: str, code: str) -> None:
    with pytest.raises(Malformed) as caught:
        check_text(text, "note", 100)

    assert caught.value.code == code


def test_credentials_are_an_id_and_a_secret() -> None:
    assert parse_credentials("s-abc:secret:with:colons") == Credentials(
        session="s-abc", secret="secret:with:colons"
    )


@pytest.mark.parametrize("text", ["", "s-abc", "s-abc:", ":secret", "abc:secret"])
def test_other_texts_are_no_credentials_and_are_not_repeated(text: str) -> None:
    with pytest.raises(Malformed) as caught:
        parse_credentials(text)

    assert caught.value.code == "BAD_SESSION"
    assert "secret" not in caught.value.message.replace("id:secret", "")
