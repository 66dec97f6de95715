"""Whether a pattern covers a path, by the rule that claims use."""

from __future__ import annotations

from landlane.patterns.glob import normal_form
from landlane.patterns.pattern import Alternative, Pattern, covers_alternative


def covers(held: Pattern | Alternative, path: str, *, ignore_case: bool = False) -> bool:
    wanted = Alternative(key=normal_form(path, ignore_case=ignore_case), rest=None)
    alternatives = held.alternatives if isinstance(held, Pattern) else (held,)
    return any(covers_alternative(alternative, wanted) for alternative in alternatives)
