"""Hot classes: which files are merged by their structure, and in which way."""

from __future__ import annotations

from types import MappingProxyType

from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

UNION = "union"
SORTED_SET = "sorted-set"
KEYED_MAP = "keyed-map"
COUNTER = "counter"
GENERATED = "generated"
KINDS = (UNION, SORTED_SET, KEYED_MAP, COUNTER, GENERATED)

_NO_OPTIONS: Mapping[str, object] = MappingProxyType({})


@value
class MergeRule:
    """Files that this pattern covers are merged as this kind, with these options."""

    pattern: str
    kind: str
    options: Mapping[str, object] = _NO_OPTIONS


def rule_for(
    path: str, classes: Sequence[MergeRule], matches: Callable[[str, str], bool]
) -> MergeRule | None:
    """The last class whose pattern covers the path, so that a later line of the settings refines an earlier.

    `matches` is asked with a pattern and the path.
    """
    return next((found for found in reversed(classes) if matches(found.pattern, path)), None)
