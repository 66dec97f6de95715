"""All settings as one value, with their defaults."""

from __future__ import annotations

from landlane.settings.choices import ANY_NAME, FILE_NAME, REDUCERS
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


__all__ = ["ANY_NAME", "FILE_NAME", "REDUCERS", "Settings"]

_NO_EVIDENCE: Mapping[str, tuple[str, ...]] = {}


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
    sandbox_required: tuple[str, ...] = ()
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
