"""Read and check structured sections: checks, roles, agents, deploys, webhooks."""

from __future__ import annotations

from landlane.errors import SettingsError
from landlane.settings.choices import (
    BUILT_IN_ROLES,
    EVENT_KINDS,
    EVIDENCE,
    FILE_NAME,
    HANDOFF_KEYS,
    HANDOFF_TYPES,
    HOT_CLASSES,
    PATH_WORDS,
    REDUCERS,
    ROLE_TOOLS,
    ROLE_VERBS,
)
from landlane.settings.value_readers import (
    read_boolean,
    read_count,
    read_lease,
    read_length,
    read_listed,
    read_money,
    read_names,
    read_one_of,
    read_pairs,
    read_size,
    read_table,
    read_text,
    read_texts,
    read_words,
    unknown,
    wrong,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


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
