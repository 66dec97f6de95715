"""What the file claims.json beside the store shows: the live claims."""

from __future__ import annotations

from landlane.claims.read import list_claims
from landlane.claims.to_json import claim_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from landlane.context import Context


def live_claims(context: Context) -> list[dict[str, Any]]:
    """Return the entries of claims.json."""
    return [claim_json(claim, context.store) for claim in list_claims(context)]
