"""What the file claims.json beside the store shows: the live claims."""

from __future__ import annotations

from landlane.claims.read import list_claims
from landlane.claims.to_json import claim_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.repository import Repository


def live_claims(repo: Repository) -> list[dict[str, Any]]:
    """Return the entries of claims.json."""
    return [claim_json(claim, repo.store) for claim in list_claims(repo)]
