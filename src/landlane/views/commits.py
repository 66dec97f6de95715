"""Commits as the JSON that every door answers with."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.flows.commits import Made


def commit_json(made: Made) -> dict[str, Any]:
    """A commit that was made."""
    return {
        "ok": True,
        "commit": made.commit,
        "branch": made.branch or None,
        "subject": made.subject,
        "paths": list(made.paths),
        "trailers": {
            "agent": made.trailers.agent,
            "session": made.trailers.session,
            "task": made.trailers.task or None,
            "tokens": list(made.trailers.tokens),
        },
        "changed_by_hooks": list(made.changed_by_hooks),
        "left_alone": made.left_alone,
    }
