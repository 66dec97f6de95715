"""Settings: `interlock.toml` read, checked key by key, and remembered so that it is parsed only once."""

from __future__ import annotations

import marshal
import os

from interlock.clock import parse_duration
from interlock.errors import Malformed, SettingsError
from interlock.ids import is_uuid
from interlock.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

FILE_NAME = "interlock.toml"
EVIDENCE = ("commit", "paths", "check", "output")
_NO_EVIDENCE: Mapping[str, tuple[str, ...]] = {}
_CACHE_FORM = 4  # raise it when what is remembered changes its form
_MOST = 1_000_000_000
_FILE_KIND, _REGULAR = 0o170000, 0o100000  # what `stat` would call S_IFMT and S_IFREG, without its import


@value
class Settings:
    """Everything `interlock.toml` can say; the defaults hold where it is silent."""

    repository_id: str = ""
    store_url: str = ""
    store_wait_ms: int = 30_000
    session_lease_ms: int = 30 * 60_000
    claim_ttl_ms: int = 30 * 60_000
    claim_max_ttl_ms: int = 7 * 86_400_000
    claims_required: tuple[str, ...] = ()
    claims_free: tuple[str, ...] = ()
    claims_hot: tuple[str, ...] | None = None
    claims_ignore_case: bool | None = None
    journal_in_git: bool = False
    rules_file: str = "RULES.md"
    state_max_bytes: int = 65_536
    state_owned: tuple[tuple[str, str], ...] = ()
    state_reducers: tuple[tuple[str, str], ...] = ()
    state_monotonic: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    numbers: tuple[tuple[str, dict[str, Any]], ...] = ()
    slots: tuple[tuple[str, dict[str, Any]], ...] = ()
    tasks_check_limit_ms: int = 10 * 60_000
    tasks_evidence: Mapping[str, tuple[str, ...]] = _NO_EVIDENCE
    workspace_folder: str = ""
    workspace_kind: str = "worktree"
    workspace_copy: tuple[str, ...] = ()
    workspace_link: tuple[str, ...] = ()
    workspace_install: tuple[str, ...] = ()
    workspace_generate: tuple[str, ...] = ()
    workspace_check: str = ""
    workspace_slots: tuple[tuple[str, str], ...] = ()
    workspace_caches: tuple[str, ...] = ()
    workspace_floor_bytes: int = 0
    workspace_limit_ms: int = 15 * 60_000
    target: str = ""
    remote: str = ""
    landing_checks: tuple[dict[str, Any], ...] | None = None
    landing_check_limit_ms: int = 30 * 60_000
    landing_style: str = "merge"
    landing_batch: int = 8
    landing_gate: tuple[str, ...] = ()
    landing_resident: bool = True
    landing_integrate: Mapping[str, Any] | None = None
    hot: tuple[tuple[str, dict[str, Any]], ...] = ()
    deploys: tuple[tuple[str, dict[str, Any]], ...] = ()


def _text(found: object, where: str) -> str:
    if not isinstance(found, str) or not found.strip():
        raise _wrong(where, "a text", found)
    return found


def _uuid(found: object, where: str) -> str:
    text = _text(found, where).lower()
    if not is_uuid(text):
        raise _wrong(where, "a UUID such as `interlock init` writes", found)
    return text


def _boolean(found: object, where: str) -> bool:
    if not isinstance(found, bool):
        raise _wrong(where, "true or false", found)
    return found


def _texts(found: object, where: str) -> tuple[str, ...]:
    if not isinstance(found, list):
        raise _wrong(where, "a list of patterns", found)
    items: list[object] = found  # pyright: ignore[reportUnknownVariableType]
    return tuple(_text(item, where) for item in items)


def _length(found: object, where: str) -> int:
    if isinstance(found, bool) or not isinstance(found, (str, int)):
        raise _wrong(where, "a length of time such as '30m'", found)
    try:
        length = parse_duration(str(found), what=where)
    except Malformed:
        raise _wrong(where, "a length of time such as '30m'", found) from None
    if length <= 0:
        raise _wrong(where, "a length of time above zero", found)
    return length


def _lease(found: object, where: str) -> int:
    length = _length(found, where)
    if length < 1000:
        raise _wrong(where, "at least 1s", found)
    return length


def _size(found: object, where: str) -> int:
    if isinstance(found, bool) or not isinstance(found, int) or not 0 < found <= _MOST:
        raise _wrong(where, f"a whole number from 1 to {_MOST:,}", found)
    return found


def _pairs(found: object, where: str) -> dict[str, object]:
    if not isinstance(found, dict):
        raise _wrong(where, f"a section of its own: [{where}]", found)
    return found  # pyright: ignore[reportUnknownVariableType]


def _owners(found: object, where: str) -> tuple[tuple[str, str], ...]:
    return tuple((glob, _text(owner, f"{where}.{glob}")) for glob, owner in _pairs(found, where).items())


def _reducers(found: object, where: str) -> tuple[tuple[str, str], ...]:
    pairs = tuple((glob, _text(name, f"{where}.{glob}")) for glob, name in _pairs(found, where).items())
    for glob, name in pairs:
        if name not in REDUCERS:
            raise _wrong(f"{where}.{glob}", f"one of {', '.join(REDUCERS)}", name)
    return pairs


def _orders(found: object, where: str) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    orders = [(glob, _listed(steps)) for glob, steps in _pairs(found, where).items()]
    for glob, steps in orders:
        if not steps or not all(isinstance(step, (str, int, float)) for step in steps):
            raise _wrong(f"{where}.{glob}", "a list of texts or numbers in their order", steps)
    return tuple((glob, tuple(steps)) for glob, steps in orders)


def _listed(found: object) -> list[Any]:
    return found if isinstance(found, list) else []  # pyright: ignore[reportUnknownVariableType]


def _number_kind(found: object, where: str) -> dict[str, Any]:
    kind = _table(found, where, {"path": _text, "width": _size})
    path = kind.get("path", "")
    if path.count("{n}") != 1 or path.startswith("/") or ".." in path.split("/"):
        raise _wrong(f"{where}.path", "a path from the root with one {n}, as migrations/{n}_*.sql", path)
    return kind


def _slot_kind(found: object, where: str) -> dict[str, Any]:
    if where == "slots.port":
        return _table(found, where, {"range": _port_range})
    kind = _table(found, where, {"capacity": _size, "per": _lease, "names": _names})
    if ("capacity" in kind) == ("names" in kind):
        raise _wrong(where, "given either a capacity or names", found)
    if "per" in kind and "capacity" not in kind:
        raise _wrong(f"{where}.per", "beside a capacity", found)
    return kind


def _port_range(found: object, where: str) -> tuple[int, int]:
    ports = _listed(found)
    are_ports = all(isinstance(port, int) and 0 < port < 65_536 for port in ports)
    if len(ports) != 2 or not are_ports or ports[0] > ports[1]:
        raise _wrong(where, "the first and the last port, as [20000, 29999]", found)
    return ports[0], ports[1]


def _names(found: object, where: str) -> tuple[str, ...]:
    names = _texts(found, where)
    if not names or len(set(names)) < len(names):
        raise _wrong(where, "a list of different names", found)
    return names


def _table(found: object, where: str, known: dict[str, Callable[[object, str], Any]]) -> dict[str, Any]:
    """The keys of a section whose own name is free, each read by its reader."""
    content = _pairs(found, where)
    for key in content:
        if key not in known:
            raise _unknown(key, list(known), f"{where}.{key}")
    return {key: known[key](item, f"{where}.{key}") for key, item in content.items()}


def _wrong(where: str, wanted: str, found: object) -> SettingsError:
    return SettingsError(
        f"{FILE_NAME}: {where} must be {wanted}, not {str(found)[:60]!r}",
        code="SETTINGS_WRONG_TYPE",
        hint=f"mend {where} in {FILE_NAME}; `interlock doctor` checks the whole file",
    )


def _evidence(found: object, where: str) -> dict[str, tuple[str, ...]]:
    if not isinstance(found, dict):
        raise _wrong(where, 'a table of kinds, as in code = ["commit", "check"]', found)
    kinds: dict[str, object] = found  # pyright: ignore[reportUnknownVariableType]
    read = {kind: _texts(names, f"{where}.{kind}") for kind, names in kinds.items()}
    for kind, names in read.items():
        for name in names:
            if name not in EVIDENCE:
                raise _unknown(name, list(EVIDENCE), f"{where}.{kind}: {name}")
    return read


def _one_of(*words: str) -> Callable[[object, str], str]:
    def read(found: object, where: str) -> str:
        if not isinstance(found, str) or found not in words:
            raise _wrong(where, f"one of {', '.join(words)}", found)
        return found

    return read


def _bytes(found: object, where: str) -> int:
    """A size such as 500M or 2G; a plain number counts bytes."""
    text = str(found).strip().upper().removesuffix("B") if not isinstance(found, bool) else ""
    factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}.get(text[-1:], 1)
    digits = text if factor == 1 else text[:-1].strip()
    if not digits.isdecimal() or not digits.isascii() or len(digits) > 15:
        raise _wrong(where, "a size such as 500M or 2G", found)
    return int(digits) * factor


def _count(found: object, where: str) -> int:
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= 100:
        raise _wrong(where, "a whole number from 0 to 100", found)
    return found


def _checks(found: object, where: str) -> tuple[dict[str, Any], ...]:
    """Commands, or tables with `run` and perhaps `name`, `limit` and `retries`."""
    if not isinstance(found, list):
        raise _wrong(where, 'a list of commands, as in checks = ["make test"], or [] for none', found)
    items: list[object] = found  # pyright: ignore[reportUnknownVariableType]
    known = {"run": _text, "name": _text, "limit": _length, "retries": _count}
    checks: list[dict[str, Any]] = []
    for item in items:
        check = {"run": _text(item, where)} if isinstance(item, str) else _table(item, where, known)
        if "run" not in check:
            raise _wrong(where, "given a command: run = …", item)
        check.setdefault("name", check["run"])
        if any(check["name"] == other["name"] for other in checks):
            raise _wrong(where, "a list of checks with different names", check["name"])
        checks.append(check)
    return tuple(checks)


def _hot_class(found: object, where: str) -> dict[str, Any]:
    """The name of a class, or a table with it and what that class needs."""
    known: dict[str, Callable[[object, str], Any]] = {
        "class": _one_of(*HOT_CLASSES),
        "command": _text,
        "validate": _text,
        "pattern": _text,
        "begin": _text,
        "end": _text,
    }
    if isinstance(found, str):
        found = {"class": found}
    read = _table(found, where, known)
    if "class" not in read:
        raise _wrong(where, f"given a class, one of {', '.join(HOT_CLASSES)}", found)
    if (read["class"] == "generated") != ("command" in read):
        raise _wrong(where, "given a command if, and only if, its class is generated", found)
    return read


def _deploy(found: object, where: str) -> dict[str, Any]:
    known = {"paths": _texts, "verify": _text, "limit": _length, "branch": _text}
    return _table(found, where, known)


def _integrate(found: object, where: str) -> dict[str, Any]:
    known = {"title": _text, "role": _text, "check": _text, "after": _one_of("batch", "wave")}
    return {"title": "Look at what landed as a whole", "after": "wave", **_table(found, where, known)}


def _exports(found: object, where: str) -> tuple[tuple[str, str], ...]:
    """Names of environment variables, each with the kind of slot whose place it holds."""
    pairs = tuple((name, _text(kind, f"{where}.{name}")) for name, kind in _pairs(found, where).items())
    for name, _ in pairs:
        if not name.replace("_", "a").isalnum() or not name.isascii() or name[:1].isdigit():
            raise _wrong(where, "names of environment variables, each with a kind of slot", name)
    return pairs


HOT_CLASSES = ("union", "sorted-set", "keyed-map", "counter", "generated")
REDUCERS = ("append", "union", "max", "min", "sum", "merge")
ANY_NAME = "*"  # in the table below: a key that may have any name, each with a section of its own

# section → key → (field of Settings, reader). The reference page is generated from this table.
KNOWN: dict[str, dict[str, tuple[str, Callable[[object, str], Any], str]]] = {
    "repository": {"id": ("repository_id", _uuid, "what ties all clones of this repository together")},
    "store": {
        "url": ("store_url", _text, "a path or a postgresql:// URL; keep passwords out of it"),
        "wait": ("store_wait_ms", _length, "how long to wait for a busy store"),
    },
    "sessions": {"lease": ("session_lease_ms", _lease, "how long a silent session lives")},
    "claims": {
        "ttl": ("claim_ttl_ms", _lease, "the lease of a claim that does not say its own"),
        "max_ttl": ("claim_max_ttl_ms", _lease, "the longest lease anyone may ask for"),
        "required": ("claims_required", _texts, "patterns of the shared surface: changing it needs a claim"),
        "free": ("claims_free", _texts, "patterns that never need a claim"),
        "hot": ("claims_hot", _texts, "patterns that may be claimed `--shared`; without it, any"),
        "ignore_case": ("claims_ignore_case", _boolean, "whether paths differing in case are one path"),
    },
    "journal": {"git": ("journal_in_git", _boolean, "also commit the journal to refs/interlock/journal")},
    "tasks": {
        "check_limit": ("tasks_check_limit_ms", _length, "how long the check of a task may run"),
        "evidence": ("tasks_evidence", _evidence, "kind of task → what must be seen before it is done"),
    },
    "workspace": {
        "folder": ("workspace_folder", _text, "where workspaces lie; counts from the repository's root"),
        "kind": ("workspace_kind", _one_of("worktree", "clone"), "`worktree` or `clone`"),
        "copy": ("workspace_copy", _texts, "ignored files that a workspace needs a copy of, such as .env"),
        "link": ("workspace_link", _texts, "ignored folders that workspaces share by a link"),
        "install": ("workspace_install", _texts, "commands that fetch what the project depends on"),
        "generate": ("workspace_generate", _texts, "commands that make what is not under git"),
        "check": ("workspace_check", _text, "the smoke check that a new workspace must pass"),
        "slots": ("workspace_slots", _exports, "environment variable → kind of slot leased with it"),
        "caches": (
            "workspace_caches",
            _texts,
            "what can be made again and may be evicted when disk is short",
        ),
        "disk_floor": ("workspace_floor_bytes", _bytes, "free space below which caches are evicted"),
        "limit": ("workspace_limit_ms", _length, "how long each command of this section may run"),
    },
    "landing": {
        "target": ("target", _text, "the branch that work lands on"),
        "remote": (
            "remote",
            _text,
            "the remote whose target branch counts; `none` for this repository's own",
        ),
        "checks": ("landing_checks", _checks, "what must pass on the merged tree; `[]` for nothing"),
        "check_limit": ("landing_check_limit_ms", _length, "how long a check may run that does not say"),
        "style": ("landing_style", _one_of("merge", "rebase", "squash"), "`merge`, `rebase` or `squash`"),
        "batch": (
            "landing_batch",
            _size,
            "how many are tested together; while all is green, up to four times that",
        ),
        "gate": ("landing_gate", _texts, "patterns whose changes a person must approve"),
        "resident": ("landing_resident", _boolean, "whether the queue runs by itself when nobody waits"),
        "integrate": (
            "landing_integrate",
            _integrate,
            "opens a task for the whole after a `batch` or `wave`",
        ),
    },
    "hot": {
        ANY_NAME: (
            "hot",
            _hot_class,
            "pattern → `union`, `sorted-set`, `keyed-map`, `counter` or `generated`, or a table with `class`",
        ),
    },
    "deploy": {
        ANY_NAME: ("deploys", _deploy, "`paths` it is made of, `verify` command, `limit`, `branch`"),
    },
    "rules": {"file": ("rules_file", _text, "the rules every session reads")},
    "state": {
        "max_bytes": ("state_max_bytes", _size, "the largest value that a key may hold"),
        "owned": ("state_owned", _owners, "who alone writes the keys of a glob: an agent, or role:NAME"),
        "reducers": ("state_reducers", _reducers, "how the keys of a glob are combined, and in no other way"),
        "monotonic": ("state_monotonic", _orders, "the steps that the keys of a glob go through, never back"),
    },
    "numbers": {
        ANY_NAME: (
            "numbers",
            _number_kind,
            "`path` with one `{n}` where numbers of this kind stand; `width`",
        ),
    },
    "slots": {
        ANY_NAME: (
            "slots",
            _slot_kind,
            "`capacity`, also with `per`; or `names`; for `port`: `range = [20000, 29999]`",
        ),
    },
}


def read_settings(root: str, memory: str = "") -> Settings:
    """The settings of the checkout at `root`; `memory` is a file that remembers the last reading.

    Raises:
        SettingsError: the file is not TOML, or holds an unknown or unusable key.
    """
    path = os.path.join(root, FILE_NAME)
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return Settings()
    except OSError as error:
        raise _unreadable(error.strerror) from error
    if found.st_mode & _FILE_KIND != _REGULAR:
        raise _unreadable("it is no regular file")
    # A change within the clock's resolution keeps the size and the time: ctime and inode tell more.
    stamp = (_CACHE_FORM, path, found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)
    fields = _recall(memory, stamp)
    if fields is None:
        fields = check_settings(_parse(path))
        _remember(memory, stamp, fields)
    return Settings(**fields)


def _recall(memory: str, stamp: tuple[object, ...]) -> dict[str, Any] | None:
    try:
        with open(memory, "rb") as file:
            old_stamp, fields = marshal.loads(file.read())  # noqa: S302 - our own file, in git's own folder
    except (OSError, ValueError, EOFError, TypeError):
        return None
    return fields if old_stamp == stamp else None


def _remember(memory: str, stamp: tuple[object, ...], fields: dict[str, Any]) -> None:
    """Keep the reading for the next process; failing to is only slower."""
    if not memory:
        return
    scratch = f"{memory}.{os.getpid()}"
    try:
        with open(scratch, "wb") as file:
            file.write(marshal.dumps((stamp, fields)))  # pyright: ignore[reportArgumentType]
        os.replace(scratch, memory)
    except OSError:
        return


def _parse(path: str) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415 - dear to import, and only needed when the file changed

    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except (ValueError, RecursionError) as error:  # also for what is no UTF-8, or nested beyond all reason
        raise SettingsError(
            f"{FILE_NAME} is not valid TOML: {error}",
            code="SETTINGS_NOT_TOML",
            hint="mend the line it names, or move the file away to go on with the defaults",
        ) from error
    except OSError as error:
        raise _unreadable(error.strerror) from error


def _unreadable(why: str | None) -> SettingsError:
    return SettingsError(
        f"{FILE_NAME} cannot be read: {why}",
        code="SETTINGS_UNREADABLE",
        hint="make it a file that this user may read, or move it away to go on with the defaults",
    )


def check_settings(document: dict[str, Any]) -> dict[str, Any]:
    """The fields of Settings that a parsed document sets, each checked.

    Raises:
        SettingsError: an unknown key (named, with the nearest known one) or a value of the wrong type.
    """
    fields: dict[str, Any] = {}
    for section, content in document.items():
        if section not in KNOWN:
            raise _unknown(section, list(KNOWN), f"[{section}]")
        if not isinstance(content, dict):
            raise _wrong(section, "a section", content)
        keys: dict[str, object] = content  # pyright: ignore[reportUnknownVariableType]
        for key, found in keys.items():
            is_free = ANY_NAME in KNOWN[section]
            if key not in KNOWN[section] and not is_free:
                raise _unknown(key, list(KNOWN[section]), f"{section}.{key}")
            field, reader, _ = KNOWN[section][ANY_NAME if is_free else key]
            read = reader(found, f"{section}.{key}")
            fields[field] = (*fields.get(field, ()), (key, read)) if is_free else read
    longest = fields.get("claim_max_ttl_ms", Settings().claim_max_ttl_ms)
    if fields.get("claim_ttl_ms", 0) > longest:
        raise _wrong("claims.ttl", "at most claims.max_ttl", document["claims"]["ttl"])
    fields.setdefault("claim_ttl_ms", min(Settings().claim_ttl_ms, longest))
    return fields


def _unknown(word: str, known: list[str], where: str) -> SettingsError:
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
