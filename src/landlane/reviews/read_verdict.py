"""Check a verdict as a reviewer gave it: approve or reject, a summary, and findings."""

from __future__ import annotations

from landlane.errors import Malformed
from landlane.reviews.model import APPROVE, REJECT, Opinion, ReviewFinding, ReviewVerdict, Severity
from landlane.text import check_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_MOST_FINDINGS = 500
_LONGEST_FINDING = 4_000
_LONGEST_SUMMARY = 16_000
_LONGEST_PATH = 4_096
_MOST_LINE = 10_000_000
_CONTRACT = (
    'give {"verdict": "approve" or "reject", "summary": "…",'
    ' "findings": [{"path": "…", "line": 1, "severity": "minor", "text": "…"}]}'
)


def bad_verdict(message: str, hint: str = "") -> Malformed:
    """Return the error for a verdict that does not match the contract."""
    return Malformed(message, code="BAD_VERDICT", hint=hint or _CONTRACT)


def verdict_fields(document: object) -> dict[str, Any]:
    """Return the fields of a verdict in JSON.

    Raises:
        Malformed: it is not an object, or has unknown fields.
    """
    if not isinstance(document, dict):
        raise bad_verdict("a verdict must be an object")
    fields: dict[str, Any] = document  # pyright: ignore[reportUnknownVariableType]
    unknown = next((key for key in fields if key not in ("verdict", "findings", "summary")), None)
    if unknown is not None:
        raise bad_verdict(f"a verdict has no {str(unknown)[:40]!r}")
    return fields


def read_opinion(source: str, verdict: object, findings: object, summary: object) -> Opinion:
    """Return an opinion if it matches the contract.

    Raises:
        Malformed: it does not.
    """
    if verdict not in list(ReviewVerdict):
        raise bad_verdict(f"the verdict must be approve or reject, not {str(verdict)[:40]!r}")
    summary = summary or ""
    if not isinstance(summary, str):
        raise bad_verdict("the summary must be a text")
    check_text(summary, "summary", _LONGEST_SUMMARY)
    read = _read_findings(findings or ())
    if verdict == APPROVE and any(finding.severity == Severity.BLOCKER for finding in read):
        raise bad_verdict(
            "an approval with a blocker contradicts itself",
            "reject it, or call the finding less than a blocker",
        )
    if (
        verdict == REJECT
        and not summary.strip()
        and all(finding.severity == Severity.PRAISE for finding in read)
    ):
        raise bad_verdict("a rejection must say why", "give a summary, or a finding that says what to change")
    return Opinion(source=source, verdict=ReviewVerdict(str(verdict)), findings=read, summary=summary.strip())


def _read_findings(findings: object) -> tuple[ReviewFinding, ...]:
    if not isinstance(findings, (list, tuple)):
        raise bad_verdict("findings must be a list")
    items: list[object] = list(findings)  # pyright: ignore[reportUnknownArgumentType]
    if len(items) > _MOST_FINDINGS:
        raise bad_verdict(f"{len(items)} findings; {_MOST_FINDINGS} are the most", "keep those that matter")
    return tuple(_read_finding(item, at) for at, item in enumerate(items, start=1))


def _read_finding(item: object, at: int) -> ReviewFinding:
    if not isinstance(item, dict):
        raise bad_verdict(f"finding {at} must be an object")
    fields: dict[str, Any] = item  # pyright: ignore[reportUnknownVariableType]
    unknown = next((key for key in fields if key not in ("path", "line", "severity", "text")), None)
    if unknown is not None:
        raise bad_verdict(f"finding {at} has an unknown field {str(unknown)[:40]!r}")
    text, path = fields.get("text"), fields.get("path") or ""
    line, severity = fields.get("line") or 0, fields.get("severity") or "minor"
    if not isinstance(text, str) or not text.strip():
        raise bad_verdict(f"finding {at} says nothing: it needs a text")
    if not isinstance(path, str) or path.startswith("/") or ".." in path.split("/"):
        raise bad_verdict(f"finding {at}: the path must count from the root of the repository")
    if not isinstance(line, int) or isinstance(line, bool) or not 0 <= line <= _MOST_LINE:
        raise bad_verdict(f"finding {at}: the line must be a whole number")
    if severity not in list(Severity):
        raise bad_verdict(
            f"finding {at} is of severity {str(severity)[:40]!r}", f"one of {', '.join(Severity)}"
        )
    check_text(text, f"text of finding {at}", _LONGEST_FINDING)
    check_text(path, f"path of finding {at}", _LONGEST_PATH)
    return ReviewFinding(text=text.strip(), path=path, line=line, severity=Severity(severity))
