"""The resources: rules, open tasks, claims and the newest journal entries."""

from __future__ import annotations

import json

from landlane.claims.take import list_claims
from landlane.claims.to_json import claim_json
from landlane.errors import Malformed
from landlane.journal.read import last_position, read_entries
from landlane.journal.to_json import entry_json
from landlane.rules.file import load_text, no_rules
from landlane.tasks.model import OPEN
from landlane.tasks.records import list_tasks
from landlane.tasks.to_json import tasks_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from landlane.repository import Repository


_NEWEST = 100

# The journal entries that change a resource.
_CHANGED_BY = {"claim": "claims", "session": "claims", "task": "tasks", "rules": "rules"}


def read_resource(repo: Repository, uri: str) -> tuple[str, str]:
    """Return the text of a resource and its MIME type.

    Raises:
        Malformed: there is none of that name.
        LandlaneError: it cannot be read now.
    """
    name = uri.removeprefix("landlane://")
    if name == "rules":
        return _rules(repo), "text/markdown"
    read = _READ.get(name) if uri.startswith("landlane://") else None
    if read is None:
        raise Malformed(
            f"there is no resource {uri[:80]!r}",
            code="UNKNOWN_RESOURCE",
            hint=f"one of {', '.join(f'landlane://{one}' for one in ('rules', *_READ))}",
        )
    return json.dumps(read(repo), ensure_ascii=False), "application/json"


def changed_by(kind: str) -> list[str]:
    """Return the resources that an entry of this kind changes."""
    name = _CHANGED_BY.get(kind.partition(".")[0])
    return ["landlane://journal", *([f"landlane://{name}"] if name else [])]


def _rules(repo: Repository) -> str:
    file = repo.settings.rules.file
    text = load_text(repo.checkout, repo.checkout.home_checkout, file)
    if text is None:  # it is listed, so it must be readable even without rules
        missing = no_rules(repo, file)
        return f"{missing.message}. {missing.hint}.\n"
    return text


def _tasks(repo: Repository) -> dict[str, Any]:
    return {"tasks": tasks_json(repo, list_tasks(repo, tuple(OPEN)))}


def _claims(repo: Repository) -> dict[str, Any]:
    return {"claims": [claim_json(claim, repo.store) for claim in list_claims(repo)]}


def _journal(repo: Repository) -> dict[str, Any]:
    after = max(0, last_position(repo) - _NEWEST)
    return {"entries": [entry_json(entry) for entry in read_entries(repo, after)]}


_READ: dict[str, Callable[[Repository], dict[str, Any]]] = {
    "tasks": _tasks,
    "claims": _claims,
    "journal": _journal,
}
