"""Remove secrets from texts before they are stored or shown: by their form, or as parts of a known URL."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

GONE = "[redacted]"
_SHORTEST = 8  # a shorter known secret could match ordinary words
# The text before a secret (the first group) is kept, so that a reader sees what was there. Every pattern
# runs in linear time, whatever the text. They are compiled on first use.
_FORMS = (
    r"(\bs-[0-9a-z]{4,40}:)[A-Za-z0-9_\-]{16,}",  # session secret
    r"(?i)(\b(?:bearer|basic|token)[ :=]+)[A-Za-z0-9._~+/=\-]{12,}",
    r"(\b(?:sk|pk|rk|ak)[-_])[A-Za-z0-9_\-]{12,}",
    r"(\b(?:gh[pousr]|glpat|xox[a-z]|npm|hf|dop_v1|pypi)[-_])[A-Za-z0-9_\-]{12,}",
    r"(\bgithub_pat_)\w{12,}",
    r"(\bAIza)[A-Za-z0-9_\-]{20,}",
    r"(\b(?:AKIA|ASIA))[A-Z0-9]{12,}",
    r"(\beyJ)[A-Za-z0-9_\-]{8,4000}\.[A-Za-z0-9_\-]{8,4000}(?:\.[A-Za-z0-9_\-]+)?",  # signed
    r"(?i)(\b[a-z][a-z0-9+.\-]{0,20}://[^\s:/@]{0,200}:)[^\s/@]{1,200}(?=@)",
    # NAME=value and "name": "value", where the name identifies a secret.
    (
        r"""(?i)((?:api_?key|token|secret|password|passwd|landlane_session)["']?\s{0,3}[=:]\s{0,3}["']?)"""
        r"""[^\s"',;&\[]{8,}"""
    ),
    r"(?s)(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
)


def redact(text: str, known: Iterable[str] = ()) -> str:
    """Return a text without known secrets and without what looks like one."""
    for secret in known:
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, GONE)
    for form in _FORMS:
        text = re.sub(form, rf"\1{GONE}", text)
    return text.replace(GONE + GONE, GONE)


# The parts of a database URL, as libpq finds them. A URL in which a part could belong to the password,
# because that has a character that should have been encoded, does not match.
_SERVER = r"(?:\[[^\]@/?]*\]|[^:@/?,\[\]]*)(?::\d*)?"
_URL = (
    r"(?is)(?P<scheme>[a-z][a-z0-9+.\-]{0,20})://(?:(?P<user>[^:@/]*)(?::(?P<password>[^@/]*))?@)?"
    rf"(?P<server>{_SERVER}(?:,{_SERVER})*)(?P<database>/[^?@]*)?(?:\?(?P<query>.*))?"
)
_HARMLESS = frozenset(
    (
        *("host", "hostaddr", "port", "dbname", "user", "service", "sslmode", "application_name"),
        *("connect_timeout", "target_session_attrs", "gssencmode", "channel_binding"),
    )
)
HIDDEN = "…"


def is_clear_url(url: str) -> bool:
    """Return whether it is certain which parts of a URL are secret."""
    return re.fullmatch(_URL, url) is not None


def show_url(url: str) -> str:
    """Return a URL for people: only parts that cannot be secret; of one that cannot be read, the scheme."""
    parts = re.fullmatch(_URL, url)
    if parts is None:
        return f"{url.partition('://')[0][:20]}://{HIDDEN}" if "://" in url else HIDDEN
    account = (
        ""
        if parts["user"] is None
        else f"{parts['user']}{'' if parts['password'] is None else f':{HIDDEN}'}@"
    )
    shown = "&".join(
        part for part in (parts["query"] or "").split("&") if part.partition("=")[0] in _HARMLESS
    )
    question = "?" if shown else ""
    return f"{parts['scheme']}://{account}{parts['server']}{parts['database'] or ''}{question}{shown}"


def cut_url_secrets(text: str, url: str) -> str:
    """Return what another program says about a URL, without any secret of it.

    If it is not certain which parts are secret, nothing of the text is kept.
    """
    parts = re.fullmatch(_URL, url)
    if parts is None:
        return HIDDEN
    given = (part.partition("=") for part in (parts["query"] or "").split("&"))
    values = [parts["password"] or "", *(value for name, _, value in given if name not in _HARMLESS)]
    for value in values:
        for secret in (value, _decoded(value)):
            text = text.replace(secret, HIDDEN) if secret else text
    return text


def _decoded(text: str) -> str:
    """Return a part of a URL without percent encoding."""
    return re.sub(
        r"(?:%[0-9a-fA-F]{2})+",
        lambda found: bytes.fromhex(found[0].replace("%", "")).decode("utf-8", "replace"),
        text,
    )


def hide_credentials(text: str) -> str:
    """Return what git or a remote says, without the user, token or password in its URLs."""
    if "://" not in text or "@" not in text:
        return text
    return re.sub(r"""([a-zA-Z][a-zA-Z0-9+.\-]{0,20}://)[^\s'"]{1,2000}@""", rf"\1{HIDDEN}@", text)
