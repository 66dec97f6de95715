"""Verdicts by contract: approve or reject, with findings that name a place, how bad it is, and why."""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.text import check_text
from landlane.values import as_dict, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


APPROVE, REJECT = "approve", "reject"
VERDICTS = (APPROVE, REJECT)
# From "right as it is" to "must not land": what one praises and another faults cannot both be so.
SEVERITIES = ("praise", "note", "minor", "major", "blocker")
MOST_FINDINGS = 500
LONGEST_FINDING = 4_000
LONGEST_SUMMARY = 16_000
_LONGEST_PATH = 4_096
_MOST_LINE = 10_000_000
_CONTRACT = (
    'give {"verdict": "approve" or "reject", "summary": "…",'
    ' "findings": [{"path": "…", "line": 1, "severity": "minor", "text": "…"}]}'
)
_KEYS = frozenset({"path", "line", "severity", "text"})


@value
class Finding:
    """What a reviewer found: where, how bad, and why. Without a path it is about the whole."""

    text: str
    path: str = ""
    line: int = 0
    severity: str = "minor"


@value
class Opinion:
    """What one of several says: who, which verdict, and which findings."""

    source: str
    verdict: str = ""
    findings: tuple[Finding, ...] = ()
    summary: str = ""


def bad_verdict(what: str, hint: str = "") -> Malformed:
    """A verdict that does not keep to the contract."""
    return Malformed(
        what,
        code="BAD_VERDICT",
        hint=hint or _CONTRACT,
    )


def read_opinion(found: object, source: str = "") -> Opinion:
    """A verdict as it was given, checked.

    Raises:
        Malformed: it does not keep to the contract.
    """
    if not isinstance(found, dict):
        raise bad_verdict("a verdict must be an object")
    given: dict[str, object] = found  # pyright: ignore[reportUnknownVariableType]
    odd = next((key for key in given if key not in ("verdict", "findings", "summary")), None)
    if odd is not None:
        raise bad_verdict(f"a verdict has no {str(odd)[:40]!r}")
    summary = given.get("summary") or ""
    return make_opinion(source, given.get("verdict"), given.get("findings") or (), summary)


def make_opinion(source: str, verdict: object, findings: object, summary: object = "") -> Opinion:
    """A verdict out of its parts.

    Raises:
        Malformed: it does not keep to the contract.
    """
    if verdict not in VERDICTS:
        raise bad_verdict(f"the verdict must be approve or reject, not {str(verdict)[:40]!r}")
    if not isinstance(summary, str):
        raise bad_verdict("the summary must be a text")
    check_text(summary, "summary", LONGEST_SUMMARY)
    read = read_findings(findings)
    if verdict == APPROVE and any(one.severity == "blocker" for one in read):
        raise bad_verdict(
            "an approval with a blocker contradicts itself",
            "reject it, or call the finding less than a blocker",
        )
    if verdict == REJECT and not summary.strip() and not any(one.severity != "praise" for one in read):
        raise bad_verdict("a rejection must say why", "give a summary, or a finding that says what to change")
    return Opinion(source=source, verdict=str(verdict), findings=read, summary=summary.strip())


def read_findings(found: object) -> tuple[Finding, ...]:
    """Findings as they were given, checked.

    Raises:
        Malformed: they do not keep to the contract.
    """
    if not isinstance(found, (list, tuple)):
        raise bad_verdict("findings must be a list")
    items: list[object] = list(found)  # pyright: ignore[reportUnknownArgumentType]
    if len(items) > MOST_FINDINGS:
        raise bad_verdict(f"{len(items)} findings; {MOST_FINDINGS} are the most", "keep those that matter")
    return tuple(_read_finding(item, at) for at, item in enumerate(items, start=1))


def _read_finding(item: object, at: int) -> Finding:
    if isinstance(item, Finding):
        item = as_dict(item)
    if not isinstance(item, dict):
        raise bad_verdict(f"finding {at} must be an object")
    given: dict[str, Any] = item  # pyright: ignore[reportUnknownVariableType]
    odd = next((key for key in given if key not in _KEYS), None)
    if odd is not None:
        raise bad_verdict(f"finding {at} has an unknown field {str(odd)[:40]!r}")
    text, path = given.get("text"), given.get("path") or ""
    line, severity = given.get("line") or 0, given.get("severity") or "minor"
    if not isinstance(text, str) or not text.strip():
        raise bad_verdict(f"finding {at} says nothing: it needs a text")
    if not isinstance(path, str) or path.startswith("/") or ".." in path.split("/"):
        raise bad_verdict(f"finding {at}: the path must count from the root of the repository")
    if not isinstance(line, int) or isinstance(line, bool) or not 0 <= line <= _MOST_LINE:
        raise bad_verdict(f"finding {at}: the line must be a whole number")
    if severity not in SEVERITIES:
        raise bad_verdict(
            f"finding {at} is of severity {str(severity)[:40]!r}", f"one of {', '.join(SEVERITIES)}"
        )
    check_text(text, f"text of finding {at}", LONGEST_FINDING)
    check_text(path, f"path of finding {at}", _LONGEST_PATH)
    return Finding(text=text.strip(), path=path, line=line, severity=severity)
