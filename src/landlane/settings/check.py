"""Check a parsed landlane.toml key by key."""

from __future__ import annotations

from landlane.settings.choices import ANY_NAME
from landlane.settings.keys import KNOWN
from landlane.settings.model import Settings
from landlane.settings.section_readers import (
    check_roles,
)
from landlane.settings.value_readers import unknown, wrong

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def check_settings(document: dict[str, Any]) -> dict[str, Any]:
    """The fields of Settings that a parsed document sets, each checked.

    Raises:
        SettingsError: an unknown key (named, with the nearest known one) or a value of the wrong type.
    """
    fields: dict[str, Any] = {}
    for section, content in document.items():
        if section not in KNOWN:
            raise unknown(section, list(KNOWN), f"[{section}]")
        if not isinstance(content, dict):
            raise wrong(section, "a section", content)
        keys: dict[str, object] = content  # pyright: ignore[reportUnknownVariableType]
        for key, found in keys.items():
            is_free = ANY_NAME in KNOWN[section]
            if key not in KNOWN[section] and not is_free:
                raise unknown(key, list(KNOWN[section]), f"{section}.{key}")
            field, reader, _ = KNOWN[section][ANY_NAME if is_free else key]
            read = reader(found, f"{section}.{key}")
            fields[field] = (*fields.get(field, ()), (key, read)) if is_free else read
    longest = fields.get("claim_max_ttl_ms", Settings().claim_max_ttl_ms)
    if fields.get("claim_ttl_ms", 0) > longest:
        raise wrong("claims.ttl", "at most claims.max_ttl", document["claims"]["ttl"])
    fields.setdefault("claim_ttl_ms", min(Settings().claim_ttl_ms, longest))
    check_roles(fields.get("roles", ()), fields.get("landing_integrate"))
    return fields
