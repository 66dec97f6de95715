"""Keep the plain files beside the store up to date: journal.jsonl, claims.json and tasks.json."""

from __future__ import annotations

import os

from landlane.store.mirror import JOURNAL, Mirror

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.repository import Repository


def update_files(repo: Repository, wait_seconds: float) -> None:
    """Bring the files up to the state of the store."""
    contents = {"claims": lambda: _live_claims(repo), "tasks": lambda: _open_tasks(repo)}
    added = Mirror(repo.state_folder, repo.store, contents).sync(wait_seconds=wait_seconds)
    if added and repo.settings.journal.git and repo.common_dir:
        from landlane.journal.git_copy import commit_journal  # noqa: PLC0415 - few repositories keep this copy

        commit_journal(repo.home, journal_path(repo))


def journal_path(repo: Repository) -> str:
    """Return where the plain copy of the journal is."""
    return os.path.join(repo.state_folder, JOURNAL)


def _live_claims(repo: Repository) -> list[dict[str, Any]]:
    from landlane.app.claims_file import live_claims  # noqa: PLC0415 - not every command writes the files

    return live_claims(repo)


def _open_tasks(repo: Repository) -> list[dict[str, Any]]:
    from landlane.app.tasks_file import open_tasks  # noqa: PLC0415 - not every command writes the files

    return open_tasks(repo)
