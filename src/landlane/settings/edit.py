"""Read and change single settings by their dotted names; comments in the file survive."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, cast

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Table

from landlane.clock import duration_text
from landlane.errors import SettingsError
from landlane.settings.model import Settings
from landlane.settings.readers import read_plain
from landlane.settings.section import LISTED, NAMED, keys_of
from landlane.text import nearest_word
from landlane.values import value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from landlane.settings.section import Key, Section


@value
class SettingKey:
    """One setting: its path, the description of its key, and its default as `landlane.toml` writes it."""

    path: tuple[str, ...]
    key: Key

    @property
    def name(self) -> str:
        """Return the dotted name, with quotes where TOML needs them."""
        return ".".join(tomlkit.key(part).as_string() for part in self.path)


def all_keys(described: type[Section] = Settings, path: tuple[str, ...] = ()) -> Iterator[SettingKey]:
    """Yield every setting that has a fixed name; not those below a name of the user's, such as agents."""
    for name, key in keys_of(described).items():
        if key.nested is None or key.shape == LISTED:
            yield SettingKey(path=(*path, name), key=key)
        elif key.shape != NAMED:
            yield from all_keys(key.nested, (*path, name))


def find_key(name: str) -> SettingKey:
    """Return a setting by its dotted name.

    Raises:
        SettingsError: there is no such setting; the hint is a call with the one that was meant.
    """
    path = _split(name)
    described: type[Section] | None = Settings
    key: Key | None = None
    parts = iter(path)
    for part in parts:
        key = keys_of(described).get(part) if described else None
        if key is None:
            raise _unknown(name)
        if key.shape == NAMED and next(parts, None) is None:
            raise _unknown(name)
        described = key.nested if key.shape != LISTED else None
    if key is None or described is not None:
        raise _unknown(name)
    return SettingKey(path=path, key=key)


def find_value(document: Mapping[str, Any], path: Sequence[str]) -> Any:
    """Return what a parsed file holds under a path, or None."""
    found: Any = document
    for part in path:
        found = _as_table(found).get(part)
    return found


def _as_table(content: object) -> dict[str, Any]:
    return cast("dict[str, Any]", content) if isinstance(content, dict) else {}


def value_text(content: object) -> str:
    """Return a value as `config get` prints it: text as it is, everything else as TOML."""
    if isinstance(content, str):
        return content
    return tomlkit.dumps({"value": content}).removeprefix("value = ").rstrip("\n")


def default_text(key: Key) -> str:
    """Return the default of a key as landlane.toml would write it; empty if it has none."""
    if key.is_required or key.default is None:
        return ""
    if key.reader in ("duration", "lease"):
        return duration_text(key.default)
    if key.reader == "US dollars":
        return f"{key.default / 1_000_000:g}"
    return value_text(key.default)


def with_value(source: str, setting: SettingKey, text: str) -> str:
    """Return the text of a settings file in which one setting has a new value.

    Raises:
        SettingsError: the file is not valid, or the value does not fit the setting.
    """
    try:
        return _with_content(source, setting, _as_toml(text))
    except SettingsError:
        if isinstance(_as_toml(text), str):
            raise
    return _with_content(source, setting, text)


def _as_toml(text: str) -> object:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        return text


def _with_content(source: str, setting: SettingKey, content: object) -> str:
    try:
        document = tomlkit.parse(source)
        table: Any = document
        for part in setting.path[:-1]:
            table = table.setdefault(part, tomlkit.table())
        is_new = setting.path[-1] not in table
        table[setting.path[-1]] = content
        if is_new and isinstance(table, Table):
            _move_to_last_key(table)
        text = tomlkit.dumps(document)
    except TOMLKitError as error:
        raise SettingsError(
            f"the settings file is not valid TOML: {error}",
            code="SETTINGS_NOT_TOML",
            hint="landlane config list",
        ) from error
    read_plain(tomllib.loads(text))
    return text


def _move_to_last_key(table: Table) -> None:
    """Move the entry that was added last behind the last key: later comments may be about what follows."""
    body = table.value.body
    keys = [at for at, (key, item) in enumerate(body) if key is not None and not isinstance(item, Table)]
    if len(keys) > 1:
        body.insert(keys[-2] + 1, body.pop(keys[-1]))


def _split(name: str) -> tuple[str, ...]:
    """Return the parts of a dotted name; parts in quotes may contain dots."""
    try:
        found: Any = tomllib.loads(f"{name} = 0")
    except ValueError:
        raise _unknown(name) from None
    parts: list[str] = []
    while table := _as_table(found):
        ((part, found),) = table.items()
        parts.append(part)
    return tuple(parts)


def _unknown(name: str) -> SettingsError:
    meant = _nearest(name)
    return SettingsError(
        f"unknown setting {name[:80]}",
        code="SETTINGS_UNKNOWN_KEY",
        hint=f"did you mean {meant}?" if meant else "all settings: landlane config list --all",
        meant=meant,
    )


def _nearest(name: str) -> str:
    """Return the setting that was meant: a similar key of that section, or that key of another one."""
    names = [setting.name for setting in all_keys()]
    section, _, last = name.rpartition(".")
    siblings = [one for one in names if one.rpartition(".")[0] == section]
    if not siblings:
        return nearest_word(name, names)
    if near := nearest_word(last, [one.rpartition(".")[2] for one in siblings]):
        return f"{section}.{near}"
    elsewhere = [one for one in names if one.rpartition(".")[2] == last]
    return elsewhere[0] if len(elsewhere) == 1 else ""
