"""Read a parsed landlane.toml: check each key as the model describes it, and name mistakes.

A reader takes what a key holds and where it is, and returns the plain value that its field gets. The plain
form of all settings has built-in types only and can be cached; `Settings.from_plain` builds the values.
"""

from __future__ import annotations

from landlane.clock import is_bare_number, parse_duration
from landlane.errors import Malformed, SettingsError
from landlane.ids import is_uuid
from landlane.settings.model import (
    BUILT_IN_ROLES,
    CLIENT_NAMES,
    FILE_NAME,
    HANDOFF_KEYS,
    PATH_WORDS,
    AgentSettings,
    ClaimSettings,
    HandoffField,
    LandingCheck,
    LandingSettings,
    MergeFile,
    Price,
    RoleSettings,
    Settings,
    SlotSettings,
)
from landlane.settings.money import micros_from
from landlane.settings.section import LISTED, NAMED, keys_of
from landlane.text import nearest_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from landlane.settings.section import Key, Section

    Plain = dict[str, Any]
    Reader = Callable[..., Any]
    Check = Callable[[list[Any]], bool]

_MOST = 1_000_000_000

# Old names, each with the one that replaced it.
_RENAMED = {
    "[fences]": "sandbox",
    "[hot]": "landing.merge.files",
    "[watch]": "notify",
    "claims.hot": "shareable",
    "class": "kind",
}


def parse_settings(document: dict[str, Any]) -> Settings:
    """Return the settings of a parsed document.

    Raises:
        SettingsError: a key is unknown, or its value has the wrong type.
    """
    return Settings.from_plain(read_plain(document))


def read_plain(document: dict[str, Any]) -> Plain:
    """Return the plain form of the settings in a parsed document; raises as `parse_settings` does."""
    plain = _read_section(Settings, document, "")
    _check_roles(plain)
    _check_agent_names(plain)
    return plain


def _read_section(described: type[Section], found: object, where: str) -> Plain:
    content = {described.short: found} if described.short and isinstance(found, str) else _table(found, where)
    keys = keys_of(described)
    plain: Plain = {}
    for name, item in content.items():
        path = f"{where}.{name}" if where else name
        if name in keys:
            plain[keys[name].field] = _read_key(keys[name], item, path)
        elif described is Price and isinstance(item, dict):
            raise wrong(where, 'a name in quotes if it holds a dot, as in [prices."gpt-4.1"]', found)
        else:
            raise unknown(name, keys, path if where else f"[{name}]")
    missing = [name for name, key in keys.items() if key.is_required and name not in content]
    if missing:
        raise wrong(where, f"given {' and '.join(missing)}", found)
    if described in _CHECKS:
        _CHECKS[described](plain, where, content)
    return plain


def _read_key(key: Key, found: object, where: str) -> Any:
    nested = key.nested
    if nested is None:
        reader = READERS[key.reader]
        return reader(found, where, key.choices) if key.choices else reader(found, where)
    if key.shape == NAMED:
        return {
            name: _read_section(nested, item, f"{where}.{name}")
            for name, item in _table(found, where).items()
        }
    if key.shape == LISTED:
        wanted = 'a list of commands, as in checks = ["make test"], or [] for none'
        return [_read_section(nested, item, where) for item in _list(found, where, wanted)]
    return _read_section(nested, found, where)


def _check_claims(plain: Plain, where: str, found: Plain) -> None:
    longest = plain.get("max_ttl_ms", ClaimSettings().max_ttl_ms)
    if plain.get("ttl_ms", 0) > longest:
        raise wrong(f"{where}.ttl", "at most claims.max_ttl", found["ttl"])
    plain.setdefault("ttl_ms", min(ClaimSettings().ttl_ms, longest))


def _check_landing(plain: Plain, where: str, _: Plain) -> None:
    names: set[str] = set()
    for check in plain.get("checks", ()):
        if check["name"] in names:
            raise wrong(f"{where}.checks", "a list of checks with different names", check["name"])
        names.add(check["name"])


def _name_check(plain: Plain, _where: str, _found: Plain) -> None:
    plain.setdefault("name", plain["run"])


def _check_merge_file(plain: Plain, where: str, found: Plain) -> None:
    if (plain["kind"] == "generated") != ("command" in plain):
        raise wrong(where, "given a command if, and only if, its kind is generated", found)


def _check_agent(plain: Plain, where: str, found: Plain) -> None:
    if bool(plain.get("command")) == bool(plain.get("client")):
        raise wrong(where, "given either a command or a client", found)


def _check_handoff_field(_plain: Plain, where: str, _found: Plain) -> None:
    name = where.removeprefix("handoffs.fields.")
    if name in HANDOFF_KEYS or not name.replace("_", "").replace("-", "").isalnum():
        raise wrong(where, "a name of letters, digits, - and _ that is not taken", name)


def _check_slots(plain: Plain, where: str, found: Plain) -> None:
    allowed = ["range"] if where == "slots.port" else ["capacity", "per", "names"]
    for name in found:
        if name not in allowed:
            raise unknown(name, allowed, f"{where}.{name}")
    if where != "slots.port" and ("capacity" in plain) == ("names" in plain):
        raise wrong(where, "given either a capacity or names", found)
    if "per_ms" in plain and "capacity" not in plain:
        raise wrong(f"{where}.per", "beside a capacity", found)


def _check_role_name(_plain: Plain, where: str, _found: Plain) -> None:
    name = where.partition(".")[2]
    if not name.isascii() or not name.replace("-", "a").replace("_", "a").isalnum() or len(name) > 64:
        raise wrong(where, "named with letters, digits, - and _", name)


def _check_roles(plain: Plain) -> None:
    """Refuse roles that are not defined. A role may start from a built-in one or from one above it."""
    known = list(BUILT_IN_ROLES)
    for name, role in plain.get("roles", {}).items():
        base = role.get("like", "")
        if base and base not in known:
            raise unknown(base, known, f"roles.{name}.like: {base}")
        known.append(name)
    integrate: Plain = plain.get("landing", {}).get("integrate") or {}
    run: Plain = plain.get("run", {})
    wanted: dict[str, str] = {
        "landing.integrate.role": integrate.get("role", ""),
        "run.role": run.get("role", ""),
    }
    wanted |= {f"agents.{name}.role": agent.get("role") for name, agent in plain.get("agents", {}).items()}
    for where, role in wanted.items():
        if role and role not in known:
            raise unknown(role, known, f"{where}: {role}")


def _check_agent_names(plain: Plain) -> None:
    """Refuse coding clients and agents that are not known."""
    agents = plain.get("agents", {})
    for name, agent in agents.items():
        client = agent.get("client", "")
        if client and client not in CLIENT_NAMES:
            raise unknown(client, CLIENT_NAMES, f"agents.{name}.client: {client}")
    named = plain.get("run", {}).get("agent", "")
    known = [*agents, *CLIENT_NAMES]
    if named and named not in known:
        raise unknown(named, known, f"run.agent: {named}")


_CHECKS: dict[type[Section], Callable[[Plain, str, Plain], None]] = {
    AgentSettings: _check_agent,
    LandingCheck: _name_check,
    ClaimSettings: _check_claims,
    HandoffField: _check_handoff_field,
    LandingSettings: _check_landing,
    MergeFile: _check_merge_file,
    RoleSettings: _check_role_name,
    SlotSettings: _check_slots,
}


def _table(found: object, where: str) -> Plain:
    if not isinstance(found, dict):
        raise wrong(where, f"a section of its own: [{where}]", found)
    return found  # pyright: ignore[reportUnknownVariableType]


def _list(
    found: object, where: str, wanted: str, is_valid: Callable[[list[Any]], bool] = lambda _: True
) -> list[Any]:
    if not isinstance(found, list) or not is_valid(found):  # pyright: ignore[reportUnknownArgumentType]
        raise wrong(where, wanted, found)  # pyright: ignore[reportUnknownArgumentType]
    return found  # pyright: ignore[reportUnknownVariableType]


def _read_text(found: object, where: str) -> str:
    if not isinstance(found, str) or not found.strip():
        raise wrong(where, "a text", found)
    return found


def _read_uuid(found: object, where: str) -> str:
    text = _read_text(found, where).lower()
    if not is_uuid(text):
        raise wrong(where, "a UUID such as `landlane init` writes", found)
    return text


def _read_boolean(found: object, where: str) -> bool:
    if not isinstance(found, bool):
        raise wrong(where, "true or false", found)
    return found


def _read_texts(found: object, where: str) -> tuple[str, ...]:
    return tuple(_read_text(item, where) for item in _list(found, where, "a list of patterns"))


def _read_names(found: object, where: str) -> tuple[str, ...]:
    names = _read_texts(found, where)
    if not names or len(set(names)) < len(names):
        raise wrong(where, "a list of different names", found)
    return names


def _read_choice(found: object, where: str, choices: tuple[str, ...]) -> str:
    if not isinstance(found, str) or found not in choices:
        raise wrong(where, f"one of {', '.join(choices)}", found)
    return found


def _read_choices(found: object, where: str, choices: tuple[str, ...]) -> tuple[str, ...]:
    words = _read_texts(found, where)
    for word in words:
        if word not in choices:
            raise unknown(word, choices, f"{where}: {word}")
    return tuple(dict.fromkeys(words))


def _read_verbs(found: object, where: str, choices: tuple[str, ...]) -> tuple[str, ...]:
    if not {"approve", "gate"}.isdisjoint(_read_texts(found, where)):
        raise SettingsError(
            f"{FILE_NAME}: {where}: no role can be given the right to approve",
            code="SETTINGS_WRONG_TYPE",
            hint=f"what waits for a person is decided by one; a role can have {', '.join(choices)}",
        )
    return _read_choices(found, where, choices)


def _read_paths(found: object, where: str) -> tuple[str, ...]:
    paths = _read_texts(found, where)
    for path in paths:
        if path.startswith("@") and path not in PATH_WORDS:
            raise unknown(path, PATH_WORDS, f"{where}: {path}")
        if path.startswith("/") or ".." in path.split("/"):
            raise wrong(where, "patterns from the root of the repository", path)
    return paths


def _read_numbered_path(found: object, where: str) -> str:
    path = _read_text(found, where)
    if path.count("{n}") != 1 or path.startswith("/") or ".." in path.split("/"):
        raise wrong(where, "a path from the root with one {n}, as migrations/{n}_*.sql", path)
    return path


def _read_duration(found: object, where: str) -> int:
    if isinstance(found, bool) or not isinstance(found, (str, int)):
        raise wrong(where, "a duration such as '30m'", found)
    if is_bare_number(str(found)):
        raise _unitless(where, str(found))
    try:
        length = parse_duration(str(found), what=where)
    except Malformed:
        raise wrong(where, "a duration such as '30m'", found) from None
    if length <= 0:
        raise wrong(where, "a duration above zero", found)
    return length


def _read_lease(found: object, where: str) -> int:
    length = _read_duration(found, where)
    if length < 1000:
        raise wrong(where, "at least 1s", found)
    return length


def _read_number(found: object, where: str, least: int = 1, most: int = _MOST) -> int:
    if isinstance(found, bool) or not isinstance(found, int) or not least <= found <= most:
        raise wrong(where, f"a whole number from {least} to {most:,}", found)
    return found


def _read_retries(found: object, where: str) -> int:
    return _read_number(found, where, 0, 100)


def _read_size(found: object, where: str) -> int:
    """Read a size such as 500M or 2G; a plain number is in bytes."""
    text = str(found).strip().upper().removesuffix("B") if not isinstance(found, bool) else ""
    factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}.get(text[-1:], 1)
    digits = text if factor == 1 else text[:-1].strip()
    if not digits.isdecimal() or not digits.isascii() or len(digits) > 15:
        raise wrong(where, "a size such as 500M or 2G", found)
    return int(digits) * factor


def _read_money(found: object, where: str) -> int:
    micros = micros_from(found)
    if micros is None:
        raise wrong(where, "an amount of US dollars such as 1.50", found)
    return micros


def _read_url(found: object, where: str) -> str:
    address = _read_text(found, where)
    scheme, colon, rest = address.partition("://")
    host = rest.partition("/")[0]
    if scheme not in ("http", "https") or not colon or not host or not address.isascii() or " " in address:
        raise wrong(where, "an address such as https://hooks.example/landlane", found)
    if "@" in host:
        raise wrong(where, "an address without a name and password: everyone can read the settings", "…@…")
    return address


def _are_ports(ports: list[Any]) -> bool:
    return all(isinstance(port, int) and 0 < port < 65_536 for port in ports)


def _read_ports(found: object, where: str) -> tuple[int, ...]:
    return tuple(_list(found, where, "a list of TCP ports, as in [443]; [] for none", _are_ports))


def _read_port_range(found: object, where: str) -> tuple[int, int]:
    def is_range(ports: list[Any]) -> bool:
        return len(ports) == 2 and _are_ports(ports) and ports[0] <= ports[1]

    first, last = _list(found, where, "the first and the last port, as [20000, 29999]", is_range)
    return first, last


def _table_of(read: Reader) -> Reader:
    """Return a reader of tables whose values are read by another reader."""

    def read_table(found: object, where: str, *choices: tuple[str, ...]) -> Plain:
        return {name: read(item, f"{where}.{name}", *choices) for name, item in _table(found, where).items()}

    return read_table


def _read_order(found: object, where: str) -> tuple[str | float, ...]:
    def is_order(steps: list[Any]) -> bool:
        return bool(steps) and all(isinstance(step, (str, int, float)) for step in steps)

    return tuple(_list(found, where, "a list of texts or numbers in their order", is_order))


def _read_variables(found: object, where: str) -> dict[str, str]:
    variables = _table_of(_read_text)(found, where)
    for name in variables:
        if not name.replace("_", "a").isalnum() or not name.isascii() or name[:1].isdigit():
            raise wrong(where, "names of environment variables, each with a kind of slot", name)
    return variables


# The readers by the names that the model uses; the reference page shows these names.
READERS: dict[str, Reader] = {
    "boolean": _read_boolean,
    "duration": _read_duration,
    "lease": _read_lease,
    "some of": _read_choices,
    "names": _read_names,
    "paths": _read_paths,
    "ports": _read_ports,
    "texts": _read_texts,
    "verbs": _read_verbs,
    "retries": _read_retries,
    "one of": _read_choice,
    "numbered path": _read_numbered_path,
    "port range": _read_port_range,
    "size": _read_size,
    "table of choices": _table_of(_read_choice),
    "table of lists": _table_of(_read_choices),
    "table of numbers": _table_of(_read_number),
    "orders": _table_of(_read_order),
    "table of texts": _table_of(_read_text),
    "variables": _read_variables,
    "text": _read_text,
    "URL": _read_url,
    "US dollars": _read_money,
    "UUID": _read_uuid,
    "number": _read_number,
}


def wrong(where: str, wanted: str, found: object) -> SettingsError:
    """Return the error for a value that a key cannot have."""
    return SettingsError(
        f"{FILE_NAME}: {where} must be {wanted}, not {str(found)[:60]!r}",
        code="SETTINGS_WRONG_TYPE",
        hint=f"correct {where} in {FILE_NAME}, then check the file: landlane doctor",
        setting=where,
    )


def _unitless(where: str, number: str) -> SettingsError:
    """Return the error for a duration without a unit."""
    return SettingsError(
        f"{FILE_NAME}: {where.rpartition('.')[2]} needs a unit",
        code="SETTINGS_WRONG_TYPE",
        hint=f"landlane config set {where} {number}m",
        setting=where,
        remark=f'"{number}m" for minutes, "{number}s" for seconds',
    )


def unknown(word: str, known: Iterable[str], where: str) -> SettingsError:
    """Return the error for an unknown key or word, with its new name or the closest known one."""
    renamed = _RENAMED.get(where) or _RENAMED.get(word)
    nearest = renamed or nearest_word(word, known, cutoff=0.5)
    remark = f"did you mean {nearest}?" if nearest else f"known here: {', '.join(sorted(known))}."
    return SettingsError(
        f"{FILE_NAME}: unknown setting {where[:80]}",
        code="SETTINGS_UNKNOWN_KEY",
        hint=f"{remark} All settings: landlane config list --all",
        key=where,
        nearest=nearest,
        setting=where,
        remark=remark,
    )
