"""Remove secrets from texts before they are stored or shown: keys, tokens and passwords, by their form."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

GONE = "[redacted]"
_SHORTEST = 8  # a shorter known secret could match ordinary words
# The text before a secret (the first group) is kept, so that a reader sees what was there. Every pattern
# runs in linear time, whatever the text.
_FORMS = (
    re.compile(r"(\bs-[0-9a-z]{4,40}:)[A-Za-z0-9_\-]{16,}"),  # session secret
    re.compile(r"(\b(?:bearer|basic|token)[ :=]+)[A-Za-z0-9._~+/=\-]{12,}", re.IGNORECASE),
    re.compile(r"(\b(?:sk|pk|rk|ak)[-_])[A-Za-z0-9_\-]{12,}"),
    re.compile(r"(\b(?:gh[pousr]|glpat|xox[a-z]|npm|hf|dop_v1|pypi)[-_])[A-Za-z0-9_\-]{12,}"),
    re.compile(r"(\bgithub_pat_)\w{12,}"),
    re.compile(r"(\bAIza)[A-Za-z0-9_\-]{20,}"),
    re.compile(r"(\b(?:AKIA|ASIA))[A-Z0-9]{12,}"),
    re.compile(r"(\beyJ)[A-Za-z0-9_\-]{8,4000}\.[A-Za-z0-9_\-]{8,4000}(?:\.[A-Za-z0-9_\-]+)?"),  # signed
    re.compile(r"(\b[a-z][a-z0-9+.\-]{0,20}://[^\s:/@]{0,200}:)[^\s/@]{1,200}(?=@)", re.IGNORECASE),
    # NAME=value and "name": "value", where the name identifies a secret.
    re.compile(
        r"""((?:api_?key|token|secret|password|passwd|landlane_session)["']?\s{0,3}[=:]\s{0,3}["']?)"""
        r"""[^\s"',;&\[]{8,}""",
        re.IGNORECASE,
    ),
    re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
)


def redact(text: str, known: Iterable[str] = ()) -> str:
    """Return a text without known secrets and without what looks like one."""
    for secret in known:
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, GONE)
    for form in _FORMS:
        text = form.sub(rf"\1{GONE}", text)
    return text.replace(GONE + GONE, GONE)
