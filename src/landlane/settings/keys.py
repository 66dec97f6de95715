"""The table of all keys: which reader checks each, and which field it sets."""

from __future__ import annotations

from landlane.settings.choices import ANY_NAME
from landlane.settings.section_readers import (
    read_agent,
    read_checks,
    read_deploy,
    read_event_kinds,
    read_evidence,
    read_exports,
    read_handoff_fields,
    read_handoff_keys,
    read_hot_class,
    read_integrate,
    read_number_kind,
    read_orders,
    read_owners,
    read_price,
    read_reducers,
    read_role,
    read_slot_kind,
    read_webhook,
)
from landlane.settings.value_readers import (
    read_boolean,
    read_bytes,
    read_lease,
    read_length,
    read_money,
    read_one_of,
    read_size,
    read_text,
    read_texts,
    read_uuid,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


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
    "sandbox": {
        "required": (
            "sandbox_required",
            read_texts,
            "promises of the sandbox without which `exec` and workers do not start",
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
