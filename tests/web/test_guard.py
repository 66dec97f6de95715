"""Requests that do not come from a tab that has signed in change nothing and learn nothing."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.page import PageClient
    from tests.support.shell import Shell

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.mark.promise(
    "page.guarded", "A request with a foreign host, origin, cookie, token or signature changes nothing."
)
def test_forged_requests_change_nothing(served: Shell, page: PageClient) -> None:
    body = json.dumps({"why": "forged"})
    before = served.position()

    def forge(status: int, **changes: str | None) -> None:
        headers = page.act_headers("pause", body)
        for name, text in changes.items():
            name = name.replace("_", "-")
            headers.pop(name, None)
            if text is not None:
                headers[name] = text
        answer = page.request("POST", "/do/pause", headers, body)
        assert answer.status == status, (changes, answer)

    forge(421, Host="evil.example")
    forge(421, Host=f"localhost:{page.port}")
    forge(421, Host=f"127.0.0.1:{page.port}")
    forge(403, Origin=None)
    forge(403, Origin="http://evil.example")
    forge(403, Origin="null")
    forge(403, Origin=f"http://localhost:{page.port}")
    forge(403, Origin=page.origin + "0")
    forge(403, Sec_Fetch_Site="cross-site")
    forge(403, Sec_Fetch_Site="same-site")
    forge(401, Cookie=None)
    forge(401, Cookie="landlane=" + "A" * 43)
    forge(403, X_Landlane_Token=None)
    forge(403, X_Landlane_Token="0" * 64)
    forge(403, X_Landlane_Signature=None)
    forge(403, X_Landlane_Signature=page.sign("POST", "/do/resume", body))
    forge(403, X_Landlane_Signature=page.sign("POST", "/do/pause", "{}"))
    forge(403, X_Landlane_Signature=page.sign("POST", "/do/pause", body, at=time.time() - 600))
    assert served.position() == before

    forge(200)
    assert served.position() > before

    headers = page.act_headers("pause", body)  # a recorded request, sent again
    assert page.request("POST", "/do/pause", headers, body).status == 200
    before = served.position()
    assert page.request("POST", "/do/pause", headers, body).json()["code"] == "NO_KEY"
    assert served.position() == before


def test_nothing_is_shown_without_a_cookie_and_every_answer_has_a_strict_policy(page: PageClient) -> None:
    for path in ("/", "/live", "/task/T1", "/do/pause", "/settings"):
        method = "POST" if path.startswith("/do/") else "GET"
        answer = page.request(method, path, {"Origin": page.origin}, "{}" if method == "POST" else "")
        assert (answer.status, answer.json()["code"]) == (401, "NOT_SIGNED_IN")
    answer = page.request("GET", "/live", page.cookie_header)
    assert (answer.status, answer.json()["code"]) == (403, "NO_KEY")
    assert page.act("add", title="x", body="y" * 1_100_000).status == 413
    for path in ("/", "/sign-in", "/static/app.js", "/nowhere", "/health"):
        headers = page.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


def test_hostile_texts_are_shown_as_text(served: Shell, page: PageClient) -> None:
    title = '<script>alert(1)</script> " onmouseover="x\' {{ 7 * 7 }} </title>'
    served.run_json("task", "add", title, "--path", "a\u202eb.py", "--as", "ann")
    served.run_json(
        "claim", "x<img src=x onerror=alert(1)>.py", "--as", "ann", "--note", "\x1b[31mred \u202e"
    )
    served.run_json("next", "--as", "ann")

    shown = page.get().body + page.get("/?about=%3Cscript%3E&kind=%22%3E%3Cscript%3E&path=%22%3E%3Cb%3E").body

    assert "<script>alert" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert "<img" not in shown
    assert "{{ 7 * 7 }}" in shown.replace("&#34;", '"')
    assert not set(shown) & {"\x1b", "\u202e"}
