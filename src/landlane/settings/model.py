"""Settings: `landlane.toml` read, checked key by key, and remembered so that it is parsed only once."""

from __future__ import annotations

import marshal
import os

from landlane.errors import SettingsError
from landlane.files import write_whole
from landlane.settings.value_readers import (
    ANY_NAME,
    FILE_NAME,
    REDUCERS,
    check_roles,
    read_agent,
    read_boolean,
    read_bytes,
    read_checks,
    read_deploy,
    read_event_kinds,
    read_evidence,
    read_exports,
    read_handoff_fields,
    read_handoff_keys,
    read_hot_class,
    read_integrate,
    read_lease,
    read_length,
    read_money,
    read_number_kind,
    read_one_of,
    read_orders,
    read_owners,
    read_price,
    read_reducers,
    read_role,
    read_size,
    read_slot_kind,
    read_text,
    read_texts,
    read_uuid,
    read_webhook,
    unknown,
    wrong,
)
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

__all__ = ["ANY_NAME", "FILE_NAME", "KNOWN", "REDUCERS", "Settings", "check_settings", "read_settings"]

_NO_EVIDENCE: Mapping[str, tuple[str, ...]] = {}
_CACHE_FORM = 8  # raise it when what is remembered changes its form
_FILE_KIND, _REGULAR = 0o170000, 0o100000  # what `stat` would call S_IFMT and S_IFREG, without its import


@value
class Settings:
    """Everything `landlane.toml` can say; the defaults hold where it is silent."""

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
    hooks_policy: str = "auto"
    hooks_end_reminder: bool = True
    memory_files: tuple[str, ...] = ()
    memory_max_bytes: int = 4_000
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
    roles: tuple[tuple[str, dict[str, Any]], ...] = ()
    paths_tests: tuple[str, ...] | None = None
    paths_documents: tuple[str, ...] | None = None
    paths_releases: tuple[str, ...] | None = None
    paths_protected: tuple[str, ...] = ()
    fences_required: tuple[str, ...] = ()
    gates_remind_ms: int = 60 * 60_000
    gates_overdue_ms: int = 24 * 3_600_000
    watch_interval_ms: int = 30_000
    watch_stalled_ms: int = 30 * 60_000
    watch_dependencies: tuple[str, ...] | None = None
    notify_command: str = ""
    notify_webhook: str = ""
    notify_kinds: tuple[str, ...] = ()
    notify_limit_ms: int = 10_000
    notify_tries: int = 8
    run_workers: int = 4
    run_agent: str = ""
    run_role: str = ""
    run_heartbeat_ms: int = 60_000
    run_limit_ms: int = 2 * 3_600_000
    run_memory_floor_bytes: int = 0
    run_disk_floor_bytes: int = 0
    agents: tuple[tuple[str, dict[str, Any]], ...] = ()
    review_count: int = 1
    review_reviewers: tuple[str, ...] = ()
    review_decider: str = ""
    review_paths: tuple[str, ...] = ()
    review_kinds: tuple[str, ...] = ()
    retries_max_attempts: int = 10
    retries_max_tasks: int = 60
    retries_max_time_ms: int = 24 * 3_600_000
    retries_max_cost: int | None = None  # millionths of a US dollar
    retries_max_idle: int = 2
    retries_max_starts: int = 5
    retries_backoff_ms: int = 5_000
    retries_backoff_cap_ms: int = 10 * 60_000
    handoffs_max: int = 5
    handoffs_wait_ms: int = 30 * 60_000
    handoffs_required: tuple[str, ...] = ()
    handoffs_fields: tuple[tuple[str, dict[str, Any]], ...] = ()
    budgets_task: int | None = None  # millionths of a US dollar; without one there is no limit
    budgets_run: int | None = None
    budgets_day: int | None = None
    budgets_unknown: int | None = None
    prices: tuple[tuple[str, dict[str, int]], ...] = ()


# section → key → (field of Settings, reader). The reference page is generated from this table.
KNOWN: dict[str, dict[str, tuple[str, Callable[[object, str], Any], str]]] = {
    "repository": {"id": ("repository_id", read_uuid, "what ties all clones of this repository together")},
    "store": {
        "url": ("store_url", read_text, "a path or a postgresql:// URL; keep passwords out of it"),
        "wait": ("store_wait_ms", read_length, "how long to wait for a busy store"),
    },
    "sessions": {"lease": ("session_lease_ms", read_lease, "how long a silent session lives")},
    "claims": {
        "ttl": ("claim_ttl_ms", read_lease, "the lease of a claim that does not say its own"),
        "max_ttl": ("claim_max_ttl_ms", read_lease, "the longest lease anyone may ask for"),
        "required": (
            "claims_required",
            read_texts,
            "patterns of the shared surface: changing it needs a claim",
        ),
        "free": ("claims_free", read_texts, "patterns that never need a claim"),
        "hot": ("claims_hot", read_texts, "patterns that may be claimed `--shared`; without it, any"),
        "ignore_case": ("claims_ignore_case", read_boolean, "whether paths differing in case are one path"),
    },
    "journal": {"git": ("journal_in_git", read_boolean, "also commit the journal to refs/landlane/journal")},
    "tasks": {
        "check_limit": ("tasks_check_limit_ms", read_length, "how long the check of a task may run"),
        "evidence": ("tasks_evidence", read_evidence, "kind of task → what must be seen before it is done"),
    },
    "workspace": {
        "folder": ("workspace_folder", read_text, "where workspaces lie; counts from the repository's root"),
        "kind": ("workspace_kind", read_one_of("worktree", "clone"), "`worktree` or `clone`"),
        "copy": (
            "workspace_copy",
            read_texts,
            "ignored files that a workspace needs a copy of, such as .env",
        ),
        "link": ("workspace_link", read_texts, "ignored folders that workspaces share by a link"),
        "install": ("workspace_install", read_texts, "commands that fetch what the project depends on"),
        "generate": ("workspace_generate", read_texts, "commands that make what is not under git"),
        "check": ("workspace_check", read_text, "the smoke check that a new workspace must pass"),
        "slots": ("workspace_slots", read_exports, "environment variable → kind of slot leased with it"),
        "caches": (
            "workspace_caches",
            read_texts,
            "what can be made again and may be evicted when disk is short",
        ),
        "disk_floor": ("workspace_floor_bytes", read_bytes, "free space below which caches are evicted"),
        "limit": ("workspace_limit_ms", read_length, "how long each command of this section may run"),
    },
    "landing": {
        "target": ("target", read_text, "the branch that work lands on"),
        "remote": (
            "remote",
            read_text,
            "the remote whose target branch counts; `none` for this repository's own",
        ),
        "checks": ("landing_checks", read_checks, "what must pass on the merged tree; `[]` for nothing"),
        "check_limit": ("landing_check_limit_ms", read_length, "how long a check may run that does not say"),
        "style": ("landing_style", read_one_of("merge", "rebase", "squash"), "`merge`, `rebase` or `squash`"),
        "batch": (
            "landing_batch",
            read_size,
            "how many are tested together; while all is green, up to four times that",
        ),
        "gate": ("landing_gate", read_texts, "patterns whose changes a person must approve"),
        "resident": ("landing_resident", read_boolean, "whether the queue runs by itself when nobody waits"),
        "integrate": (
            "landing_integrate",
            read_integrate,
            "opens a task for the whole after a `batch` or `wave`",
        ),
    },
    "hot": {
        ANY_NAME: (
            "hot",
            read_hot_class,
            "pattern → `union`, `sorted-set`, `keyed-map`, `counter` or `generated`, or a table with `class`",
        ),
    },
    "deploy": {
        ANY_NAME: ("deploys", read_deploy, "`paths` it is made of, `verify`, `limit`, `branch`, `gate`"),
    },
    "roles": {
        ANY_NAME: (
            "roles",
            read_role,
            "`like`, `summary`, `tools`, `writes`, `denies`, `verbs`, `protected`, ports and sockets",
        ),
    },
    "paths": {
        "tests": ("paths_tests", read_texts, "patterns that `@tests` stands for; common names without it"),
        "documents": ("paths_documents", read_texts, "patterns that `@documents` stands for"),
        "releases": ("paths_releases", read_texts, "patterns that `@releases` stands for"),
        "protected": (
            "paths_protected",
            read_texts,
            "what no role may change, beside files that make tools run code or say what is allowed",
        ),
    },
    "fences": {
        "required": (
            "fences_required",
            read_texts,
            "promises of the kernel's fence without which `exec` and workers do not start",
        ),
    },
    "gates": {
        "remind": ("gates_remind_ms", read_length, "how long until a person is reminded of what waits"),
        "overdue": ("gates_overdue_ms", read_length, "how long until a gate that waits is overdue"),
    },
    "watch": {
        "interval": ("watch_interval_ms", read_length, "how long `watch` rests between two looks"),
        "stalled": ("watch_stalled_ms", read_length, "how long nothing may move before the queue is stalled"),
        "dependencies": (
            "watch_dependencies",
            read_texts,
            "patterns of files that name what the project depends on; common names without it",
        ),
    },
    "notify": {
        "command": ("notify_command", read_text, "a line of shell that gets each event as JSON on its input"),
        "webhook": ("notify_webhook", read_webhook, "an http:// or https:// address that events are sent to"),
        "kinds": ("notify_kinds", read_event_kinds, "the kinds of events that are sent; all without it"),
        "limit": ("notify_limit_ms", read_length, "how long the command or the receiver may take"),
        "tries": ("notify_tries", read_size, "how often it is tried before it is given up and said so"),
    },
    "run": {
        "workers": ("run_workers", read_size, "how many workers run at once"),
        "agent": ("run_agent", read_text, "who does tasks that name nobody: a client, or one of `[agents]`"),
        "role": ("run_role", read_text, "the role of workers whose task and agent name none; else `explore`"),
        "heartbeat": ("run_heartbeat_ms", read_length, "how long a worker may be silent before it is ended"),
        "limit": ("run_limit_ms", read_length, "how long one attempt may take"),
        "memory_floor": (
            "run_memory_floor_bytes",
            read_bytes,
            "free memory below which no worker is started",
        ),
        "disk_floor": ("run_disk_floor_bytes", read_bytes, "free disk below which no worker is started"),
    },
    "agents": {
        ANY_NAME: (
            "agents",
            read_agent,
            "`command` of a worker, or `client` with `model` and `words`; `role`, `needs`, `most`, times",
        ),
    },
    "retries": {
        "max_attempts": (
            "retries_max_attempts",
            read_size,
            "how many attempts of a task, its children and its follow-ups may fail before a person is asked",
        ),
        "max_tasks": ("retries_max_tasks", read_size, "how many children and follow-ups a task may come to"),
        "max_time": ("retries_max_time_ms", read_length, "how long its failing attempts may take together"),
        "max_cost": ("retries_max_cost", read_money, "US dollars its failing attempts may cost together"),
        "max_idle": (
            "retries_max_idle",
            read_size,
            "attempts in a row that may end well and change nothing",
        ),
        "max_starts": (
            "retries_max_starts",
            read_size,
            "how often in a row work on one task may fail to begin",
        ),
        "backoff": ("retries_backoff_ms", read_length, "the wait after the first failure; it doubles"),
        "backoff_cap": ("retries_backoff_cap_ms", read_length, "the longest wait between two attempts"),
    },
    "budgets": {
        "task": (
            "budgets_task",
            read_money,
            "US dollars for a task with all its attempts, children and follow-ups",
        ),
        "run": ("budgets_run", read_money, "US dollars for what one `landlane run` starts"),
        "day": ("budgets_day", read_money, "US dollars for each day, from midnight UTC"),
        "unknown": (
            "budgets_unknown",
            read_money,
            "what an attempt of unknown cost counts for in these budgets; in no total",
        ),
    },
    "prices": {
        ANY_NAME: (
            "prices",
            read_price,
            "model → `input` and `output` in US dollars per million tokens; a name may end in `*`",
        ),
    },
    "handoffs": {
        "max": (
            "handoffs_max",
            read_size,
            "how often the work of one lineage may be handed on; then a person decides",
        ),
        "wait": (
            "handoffs_wait_ms",
            read_lease,
            "how long a handoff waits for whom it is for; then it is anybody's",
        ),
        "required": (
            "handoffs_required",
            read_handoff_keys,
            "what every handoff must say, such as `product`, `next`, `constraints` or `assumptions`",
        ),
        "fields": (
            "handoffs_fields",
            read_handoff_fields,
            "fields of the project's own: name → `text`, `list`, `number` or `flag`, or a table with `type`",
        ),
    },
    "review": {
        "paths": ("review_paths", read_texts, "patterns whose changes need a review before they land"),
        "kinds": ("review_kinds", read_texts, "kinds of tasks that need a review"),
        "reviewers": ("review_reviewers", read_texts, "who reviews, each with a verdict of its own"),
        "count": ("review_count", read_size, "how many reviewers there are, named or not"),
        "decider": ("review_decider", read_text, "who decides when they disagree: an agent, or `person`"),
    },
    "rules": {"file": ("rules_file", read_text, "the rules every session reads")},
    "hooks": {
        "policy": (
            "hooks_policy",
            read_one_of("auto", "strict", "watch"),
            "`auto` takes a free path for whoever edits it, `strict` wants a claim first, `watch` only tells",
        ),
        "remind": (
            "hooks_end_reminder",
            read_boolean,
            "whether a client is told once, at its end, what it leaves behind",
        ),
    },
    "memory": {
        "files": (
            "memory_files",
            read_texts,
            "what every session is shown at its start: state, decisions, lessons",
        ),
        "max_bytes": ("memory_max_bytes", read_size, "how much of each of them is shown"),
    },
    "state": {
        "max_bytes": ("state_max_bytes", read_size, "the largest value that a key may hold"),
        "owned": ("state_owned", read_owners, "who alone writes the keys of a glob: an agent, or role:NAME"),
        "reducers": (
            "state_reducers",
            read_reducers,
            "how the keys of a glob are combined, and in no other way",
        ),
        "monotonic": (
            "state_monotonic",
            read_orders,
            "the steps that the keys of a glob go through, never back",
        ),
    },
    "numbers": {
        ANY_NAME: (
            "numbers",
            read_number_kind,
            "`path` with one `{n}` where numbers of this kind stand; `width`",
        ),
    },
    "slots": {
        ANY_NAME: (
            "slots",
            read_slot_kind,
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
    try:
        write_whole(memory, marshal.dumps((stamp, fields)))  # pyright: ignore[reportArgumentType]
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
