"""Readers of settings: each takes what a key of `landlane.toml` holds, and gives it back checked."""

from __future__ import annotations

from landlane.clock import parse_duration
from landlane.errors import Malformed, SettingsError
from landlane.ids import is_uuid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

FILE_NAME = "landlane.toml"
EVIDENCE = ("commit", "paths", "check", "output")
HOT_CLASSES = ("union", "sorted-set", "keyed-map", "counter", "generated")
EVENT_KINDS = (
    *("commits", "dependencies", "red", "stalled", "paused", "pool", "stale-claim", "dead-session"),
    *("gate-waiting", "gate-reminder", "gate-overdue", "handoff-overdue", "dead-letter", "notify-failed"),
)
REDUCERS = ("append", "union", "max", "min", "sum", "merge")
HANDOFF_KEYS = ("product", "context", "constraints", "next", "blockers", "assumptions")
HANDOFF_TYPES = ("text", "list", "number", "flag")
# What a role may be allowed to use, and to do. Each client's own permissions are made from these words.
ROLE_TOOLS = ("read", "edit", "shell", "network", "agents")
ROLE_VERBS = ("claim", "commit", "land", "deploy")
PATH_WORDS = ("@tests", "@documents", "@releases")
BUILT_IN_ROLES = (
    *("orchestrator", "code", "test", "debug", "review", "verify"),
    *("explore", "document", "refactor", "security", "research", "release"),
)
ANY_NAME = "*"  # in the table of what is known: a key that may have any name, each with a section of its own
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


def read_owners(found: object, where: str) -> tuple[tuple[str, str], ...]:
    """Globs of keys, each with who owns them."""
    return tuple(
        (glob, read_text(owner, f"{where}.{glob}")) for glob, owner in read_pairs(found, where).items()
    )


def read_reducers(found: object, where: str) -> tuple[tuple[str, str], ...]:
    """Globs of keys, each with how they are combined."""
    pairs = tuple(
        (glob, read_text(name, f"{where}.{glob}")) for glob, name in read_pairs(found, where).items()
    )
    for glob, name in pairs:
        if name not in REDUCERS:
            raise wrong(f"{where}.{glob}", f"one of {', '.join(REDUCERS)}", name)
    return pairs


def read_orders(found: object, where: str) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """Globs of keys, each with the steps they go through."""
    orders = [(glob, read_listed(steps)) for glob, steps in read_pairs(found, where).items()]
    for glob, steps in orders:
        if not steps or not all(isinstance(step, (str, int, float)) for step in steps):
            raise wrong(f"{where}.{glob}", "a list of texts or numbers in their order", steps)
    return tuple((glob, tuple(steps)) for glob, steps in orders)


def read_listed(found: object) -> list[Any]:
    """The items of a list; none of what is no list."""
    return found if isinstance(found, list) else []  # pyright: ignore[reportUnknownVariableType]


def read_number_kind(found: object, where: str) -> dict[str, Any]:
    """A kind of numbers: where they stand, and how wide they are."""
    kind = read_table(found, where, {"path": read_text, "width": read_size})
    path = kind.get("path", "")
    if path.count("{n}") != 1 or path.startswith("/") or ".." in path.split("/"):
        raise wrong(f"{where}.path", "a path from the root with one {n}, as migrations/{n}_*.sql", path)
    return kind


def read_slot_kind(found: object, where: str) -> dict[str, Any]:
    """A kind of slots: a capacity, names, or ports."""
    if where == "slots.port":
        return read_table(found, where, {"range": read_port_range})
    kind = read_table(found, where, {"capacity": read_size, "per": read_lease, "names": read_names})
    if ("capacity" in kind) == ("names" in kind):
        raise wrong(where, "given either a capacity or names", found)
    if "per" in kind and "capacity" not in kind:
        raise wrong(f"{where}.per", "beside a capacity", found)
    return kind


def read_port_range(found: object, where: str) -> tuple[int, int]:
    """The first and the last port."""
    ports = read_listed(found)
    are_ports = all(isinstance(port, int) and 0 < port < 65_536 for port in ports)
    if len(ports) != 2 or not are_ports or ports[0] > ports[1]:
        raise wrong(where, "the first and the last port, as [20000, 29999]", found)
    return ports[0], ports[1]


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


def read_evidence(found: object, where: str) -> dict[str, tuple[str, ...]]:
    """Kinds of tasks, each with what must be seen."""
    if not isinstance(found, dict):
        raise wrong(where, 'a table of kinds, as in code = ["commit", "check"]', found)
    kinds: dict[str, object] = found  # pyright: ignore[reportUnknownVariableType]
    read = {kind: read_texts(names, f"{where}.{kind}") for kind, names in kinds.items()}
    for kind, names in read.items():
        for name in names:
            if name not in EVIDENCE:
                raise unknown(name, list(EVIDENCE), f"{where}.{kind}: {name}")
    return read


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


def read_checks(found: object, where: str) -> tuple[dict[str, Any], ...]:
    """Commands, or tables with `run` and perhaps `name`, `limit` and `retries`."""
    if not isinstance(found, list):
        raise wrong(where, 'a list of commands, as in checks = ["make test"], or [] for none', found)
    items: list[object] = found  # pyright: ignore[reportUnknownVariableType]
    known = {"run": read_text, "name": read_text, "limit": read_length, "retries": read_count}
    checks: list[dict[str, Any]] = []
    for item in items:
        check = {"run": read_text(item, where)} if isinstance(item, str) else read_table(item, where, known)
        if "run" not in check:
            raise wrong(where, "given a command: run = …", item)
        check.setdefault("name", check["run"])
        if any(check["name"] == other["name"] for other in checks):
            raise wrong(where, "a list of checks with different names", check["name"])
        checks.append(check)
    return tuple(checks)


def read_hot_class(found: object, where: str) -> dict[str, Any]:
    """The name of a class, or a table with it and what that class needs."""
    known: dict[str, Callable[[object, str], Any]] = {
        "class": read_one_of(*HOT_CLASSES),
        "command": read_text,
        "validate": read_text,
        "pattern": read_text,
        "begin": read_text,
        "end": read_text,
    }
    if isinstance(found, str):
        found = {"class": found}
    read = read_table(found, where, known)
    if "class" not in read:
        raise wrong(where, f"given a class, one of {', '.join(HOT_CLASSES)}", found)
    if (read["class"] == "generated") != ("command" in read):
        raise wrong(where, "given a command if, and only if, its class is generated", found)
    return read


def read_deploy(found: object, where: str) -> dict[str, Any]:
    """A target of deploys."""
    known = {"paths": read_texts, "verify": read_text, "limit": read_length, "branch": read_text}
    return read_table(found, where, {**known, "gate": read_boolean})


def read_integrate(found: object, where: str) -> dict[str, Any]:
    """The task that is opened for the whole after a landing."""
    known = {"title": read_text, "role": read_text, "check": read_text, "after": read_one_of("batch", "wave")}
    return {"title": "Look at what landed as a whole", "after": "wave", **read_table(found, where, known)}


def read_exports(found: object, where: str) -> tuple[tuple[str, str], ...]:
    """Names of environment variables, each with the kind of slot whose place it holds."""
    pairs = tuple(
        (name, read_text(kind, f"{where}.{name}")) for name, kind in read_pairs(found, where).items()
    )
    for name, _ in pairs:
        if not name.replace("_", "a").isalnum() or not name.isascii() or name[:1].isdigit():
            raise wrong(where, "names of environment variables, each with a kind of slot", name)
    return pairs


def read_words(*known: str) -> Callable[[object, str], tuple[str, ...]]:
    """A reader of lists that hold nothing but these words."""

    def read(found: object, where: str) -> tuple[str, ...]:
        words = read_texts(found, where)
        for word in words:
            if word not in known:
                raise unknown(word, list(known), f"{where}: {word}")
        return tuple(dict.fromkeys(words))

    return read


def _read_verbs(found: object, where: str) -> tuple[str, ...]:
    """Verbs of a role; deciding what waits for a person is none that a role could have."""
    if "approve" in read_listed(found) or "gate" in read_listed(found):
        raise SettingsError(
            f"{FILE_NAME}: {where}: no role can be given the right to approve",
            code="SETTINGS_WRONG_TYPE",
            hint=f"what waits for a person is decided by one; a role can have {', '.join(ROLE_VERBS)}",
        )
    return read_words(*ROLE_VERBS)(found, where)


def _read_role_paths(found: object, where: str) -> tuple[str, ...]:
    """Patterns from the root, or words that stand for some."""
    paths = read_texts(found, where)
    for path in paths:
        if path.startswith("@") and path not in PATH_WORDS:
            raise unknown(path, list(PATH_WORDS), f"{where}: {path}")
        if path.startswith("/") or ".." in path.split("/"):
            raise wrong(where, "patterns from the root of the repository", path)
    return paths


def _read_ports(found: object, where: str) -> tuple[int, ...]:
    ports = read_listed(found)
    are_ports = all(isinstance(port, int) and 0 < port < 65_536 for port in ports)
    if not are_ports or not isinstance(found, list):
        raise wrong(where, "a list of TCP ports, as in [443]; [] for none", found)
    return tuple(ports)


def read_role(found: object, where: str) -> dict[str, Any]:
    """What a section `[roles.NAME]` says; whether its base is there is told by `check_roles`."""
    name = where.partition(".")[2]
    if not name.isascii() or not name.replace("-", "a").replace("_", "a").isalnum() or len(name) > 64:
        raise wrong(where, "named with letters, digits, - and _", name)
    known: dict[str, Callable[[object, str], Any]] = {
        "like": read_text,
        "summary": read_text,
        "tools": read_words(*ROLE_TOOLS),
        "writes": _read_role_paths,
        "denies": _read_role_paths,
        "verbs": _read_verbs,
        "protected": read_boolean,
        "connects": _read_ports,
        "unix_sockets": read_boolean,
        "udp": read_boolean,
    }
    return read_table(found, where, known)


def read_handoff_keys(found: object, where: str) -> tuple[str, ...]:
    """What a sender must say in every handoff."""
    names = read_texts(found, where)
    for name in names:
        if name not in HANDOFF_KEYS:
            raise unknown(name, list(HANDOFF_KEYS), f"{where}: {name}")
    return names


def read_handoff_fields(found: object, where: str) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Fields of a handoff of the project's own: a type each, or a table with it."""
    known: dict[str, Callable[[object, str], Any]] = {
        "type": read_one_of(*HANDOFF_TYPES),
        "required": read_boolean,
        "longest": read_size,
    }
    fields: list[tuple[str, dict[str, Any]]] = []
    for name, item in read_pairs(found, where).items():
        if name in HANDOFF_KEYS or not name.replace("_", "").replace("-", "").isalnum():
            raise wrong(f"{where}.{name}", "a name of letters, digits, - and _ that is not taken", name)
        table = {"type": item} if isinstance(item, str) else item
        fields.append((name, {"type": "text", **read_table(table, f"{where}.{name}", known)}))
    return tuple(fields)


def read_webhook(found: object, where: str) -> str:
    """An address that events are sent to."""
    address = read_text(found, where)
    scheme, colon, rest = address.partition("://")
    host = rest.partition("/")[0]
    if scheme not in ("http", "https") or not colon or not host or not address.isascii() or " " in address:
        raise wrong(where, "an address such as https://hooks.example/landlane", found)
    if "@" in host:
        raise wrong(where, "an address without a name and password: settings are read by everybody", "…@…")
    return address


def read_event_kinds(found: object, where: str) -> tuple[str, ...]:
    """Kinds of events."""
    return read_words(*EVENT_KINDS)(found, where)


def read_agent(found: object, where: str) -> dict[str, Any]:
    """What a section `[agents.NAME]` says: how one kind of worker is started, and what it needs."""
    known: dict[str, Callable[[object, str], Any]] = {
        "command": read_texts,
        "client": read_text,
        "model": read_text,
        "words": read_texts,
        "role": read_text,
        "needs": _read_needs,
        "most": read_size,
        "heartbeat": read_length,
        "limit": read_length,
    }
    agent = read_table(found, where, known)
    if bool(agent.get("command")) == bool(agent.get("client")):
        raise wrong(where, "given either a command or a client", found)
    return agent


def _read_needs(found: object, where: str) -> dict[str, int]:
    """Resources, each with how much of it."""
    return {name: read_size(amount, f"{where}.{name}") for name, amount in read_pairs(found, where).items()}


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


def read_price(found: object, where: str) -> dict[str, int]:
    """What a model costs: US dollars for a million tokens in, and for a million out."""
    if any(isinstance(item, dict) for item in read_pairs(found, where).values()):
        raise wrong(where, 'a name in quotes if it holds a dot, as in [prices."gpt-4.1"]', found)
    price = read_table(found, where, {"input": read_money, "output": read_money})
    if len(price) < 2:
        raise wrong(where, "given both input and output, in US dollars per million tokens", found)
    return price


def check_roles(defined: tuple[tuple[str, dict[str, Any]], ...], integrate: Mapping[str, Any] | None) -> None:
    """Refuse a role that is like one that is not there, and the wish for one that nobody defines.

    A role may be like a built-in one, or like one that stands above it in the file.

    Raises:
        SettingsError: there is none of that name.
    """
    known = list(BUILT_IN_ROLES)
    for name, role in defined:
        base = role.get("like", "")
        if base and base not in known:
            raise unknown(base, known, f"roles.{name}.like: {base}")
        known.append(name)
    wanted = integrate.get("role", "") if integrate else ""
    if wanted and wanted not in known:
        raise unknown(wanted, known, f"landing.integrate.role: {wanted}")


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
