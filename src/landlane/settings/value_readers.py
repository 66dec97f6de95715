"""Readers of settings: each takes what a key of `landlane.toml` holds, and gives it back checked."""

from __future__ import annotations

from landlane.clock import parse_duration
from landlane.errors import Malformed, SettingsError
from landlane.ids import is_uuid
from landlane.settings.choices import FILE_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


_MOST = 1_000_000_000


def read_text(found: object, where: str) -> str:
    """A text that is not empty."""
    if not isinstance(found, str) or not found.strip():
        raise wrong(where, "a text", found)
    return found


def read_uuid(found: object, where: str) -> str:
    """A UUID, in small letters."""
    text = read_text(found, where).lower()
    if not is_uuid(text):
        raise wrong(where, "a UUID such as `landlane init` writes", found)
    return text


def read_boolean(found: object, where: str) -> bool:
    """True or false."""
    if not isinstance(found, bool):
        raise wrong(where, "true or false", found)
    return found


def read_texts(found: object, where: str) -> tuple[str, ...]:
    """A list of texts, such as patterns."""
    if not isinstance(found, list):
        raise wrong(where, "a list of patterns", found)
    items: list[object] = found  # pyright: ignore[reportUnknownVariableType]
    return tuple(read_text(item, where) for item in items)


def read_length(found: object, where: str) -> int:
    """A length of time above zero, in milliseconds."""
    if isinstance(found, bool) or not isinstance(found, (str, int)):
        raise wrong(where, "a length of time such as '30m'", found)
    try:
        length = parse_duration(str(found), what=where)
    except Malformed:
        raise wrong(where, "a length of time such as '30m'", found) from None
    if length <= 0:
        raise wrong(where, "a length of time above zero", found)
    return length


def read_lease(found: object, where: str) -> int:
    """A length of time that a lease may have, in milliseconds."""
    length = read_length(found, where)
    if length < 1000:
        raise wrong(where, "at least 1s", found)
    return length


def read_size(found: object, where: str) -> int:
    """A whole number above zero."""
    if isinstance(found, bool) or not isinstance(found, int) or not 0 < found <= _MOST:
        raise wrong(where, f"a whole number from 1 to {_MOST:,}", found)
    return found


def read_pairs(found: object, where: str) -> dict[str, object]:
    """The keys and values of a section."""
    if not isinstance(found, dict):
        raise wrong(where, f"a section of its own: [{where}]", found)
    return found  # pyright: ignore[reportUnknownVariableType]


def read_listed(found: object) -> list[Any]:
    """The items of a list; none of what is no list."""
    return found if isinstance(found, list) else []  # pyright: ignore[reportUnknownVariableType]


def read_names(found: object, where: str) -> tuple[str, ...]:
    """A list of different names."""
    names = read_texts(found, where)
    if not names or len(set(names)) < len(names):
        raise wrong(where, "a list of different names", found)
    return names


def read_table(found: object, where: str, known: dict[str, Callable[[object, str], Any]]) -> dict[str, Any]:
    """The keys of a section whose own name is free, each read by its reader."""
    content = read_pairs(found, where)
    for key in content:
        if key not in known:
            raise unknown(key, list(known), f"{where}.{key}")
    return {key: known[key](item, f"{where}.{key}") for key, item in content.items()}


def wrong(where: str, wanted: str, found: object) -> SettingsError:
    """A value that a key cannot have."""
    return SettingsError(
        f"{FILE_NAME}: {where} must be {wanted}, not {str(found)[:60]!r}",
        code="SETTINGS_WRONG_TYPE",
        hint=f"mend {where} in {FILE_NAME}; `landlane doctor` checks the whole file",
    )


def read_one_of(*words: str) -> Callable[[object, str], str]:
    """A reader of one of these words."""

    def read(found: object, where: str) -> str:
        if not isinstance(found, str) or found not in words:
            raise wrong(where, f"one of {', '.join(words)}", found)
        return found

    return read


def read_bytes(found: object, where: str) -> int:
    """A size such as 500M or 2G; a plain number counts bytes."""
    text = str(found).strip().upper().removesuffix("B") if not isinstance(found, bool) else ""
    factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}.get(text[-1:], 1)
    digits = text if factor == 1 else text[:-1].strip()
    if not digits.isdecimal() or not digits.isascii() or len(digits) > 15:
        raise wrong(where, "a size such as 500M or 2G", found)
    return int(digits) * factor


def read_count(found: object, where: str) -> int:
    """A small whole number, or zero."""
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= 100:
        raise wrong(where, "a whole number from 0 to 100", found)
    return found


def read_words(*known: str) -> Callable[[object, str], tuple[str, ...]]:
    """A reader of lists that hold nothing but these words."""

    def read(found: object, where: str) -> tuple[str, ...]:
        words = read_texts(found, where)
        for word in words:
            if word not in known:
                raise unknown(word, list(known), f"{where}: {word}")
        return tuple(dict.fromkeys(words))

    return read


def micros_from(found: object) -> int | None:
    """Millionths of a US dollar from an amount such as 1.5 or "$1.50"; nothing when it is no amount."""
    from decimal import Decimal, InvalidOperation  # noqa: PLC0415 - dear to import, and few name money

    if isinstance(found, bool) or not isinstance(found, (int, float, str, Decimal)):
        return None
    text = str(found).strip().removeprefix("$").removesuffix("USD").strip()
    try:
        # A float is taken as it is written: 0.1 is a tenth.
        amount = Decimal(text) if len(text) < 60 else Decimal("nan")
        is_sum = amount.is_finite() and 0 <= amount <= _MOST
    except InvalidOperation:
        return None
    return int((amount * 1_000_000).to_integral_value("ROUND_HALF_UP")) if is_sum else None


def read_money(found: object, where: str) -> int:
    """An amount of US dollars, in millionths."""
    micros = micros_from(found)
    if micros is None:
        raise wrong(where, "an amount of US dollars such as 1.50", found)
    return micros


def unknown(word: str, known: list[str], where: str) -> SettingsError:
    """A key or word that nobody knows, with the nearest one that is known."""
    import difflib  # noqa: PLC0415 - only a mistake needs it

    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    nearest = near[0] if near else ""
    meant = f"did you mean `{nearest}`? " if nearest else ""
    return SettingsError(
        f"{FILE_NAME}: unknown key {where[:80]!r}",
        code="SETTINGS_UNKNOWN_KEY",
        hint=f"{meant}known here: {', '.join(sorted(known))}",
        key=where,
        nearest=nearest,
    )
