"""Over HTTP: a token per session, loopback only, no pages from elsewhere; refusals are in the journal."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from landlane.testing.repositories import make_repository
from tests.mcp.speaking import CLIENT, ENVELOPE, MODERN
from tests.mcp.test_tools import landlane

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.integration


class HttpServer:
    """A server and where it listens."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        words = [sys.executable, "-m", "landlane", "mcp", "--http", "--port", "0", *arguments]
        self.process = subprocess.Popen(
            words, cwd=folder, env=dict(os.environ), stderr=subprocess.PIPE, text=True
        )
        assert self.process.stderr is not None
        said = self.process.stderr.readline()
        self.host, _, rest = said.partition("http://")[2].rpartition(":")
        self.port = int(rest.partition("/")[0])

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(30)
        assert self.process.stderr is not None
        self.process.stderr.close()

    def token(self, name: str) -> str:
        joined = landlane(self.folder, "join", name)["session"]
        return f"{joined['id']}:{joined['secret']}"

    def post(self, message: Any, token: str = "", **headers: str) -> tuple[int, dict[str, str], str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        sent = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **({"Authorization": f"Bearer {token}"} if token else {}),
            **{name.replace("_", "-"): text for name, text in headers.items()},
        }
        body = message if isinstance(message, str) else json.dumps(message)
        connection.request("POST", "/mcp", body, sent)
        answer = connection.getresponse()
        found = {name.lower(): text for name, text in answer.getheaders()}
        text = answer.read().decode()
        connection.close()
        return answer.status, found, text

    def call(self, token: str, tool: str, **given: Any) -> dict[str, Any]:
        """Call a tool in the modern era, which knows no connections."""
        params = {"name": tool, "arguments": given, "_meta": ENVELOPE}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        named = {"Mcp_Protocol_Version": MODERN, "Mcp_Method": "tools/call", "Mcp_Name": tool}
        status, _, text = self.post(message, token, **named)
        assert status == 200, text
        return json.loads(text)["result"]["structuredContent"]


HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT},
}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    made = HttpServer(make_repository(tmp_path_factory.mktemp("http") / "repository"))
    yield made
    made.close()


def refused_entries(served: HttpServer) -> list[str]:
    entries = landlane(served.folder, "log")["entries"]
    return [one["data"]["what"] for one in entries if one["data"].get("guard") == "mcp"]


def test_each_token_acts_for_its_own_session(served: HttpServer) -> None:
    ann, bob = served.token("ann"), served.token("bob")
    assert served.call(ann, "claim", paths=["calc.py"])["granted"][0]["holder"] == "ann"
    refused = served.call(bob, "claim", paths=["calc.py"])
    assert (refused["code"], refused["refused"][0]["holder"]) == ("CLAIM_HELD", "ann")
    assert served.call(bob, "status")["you"]["agent"] == "bob"
    assert served.call(bob, "release")["released"] == []
    assert served.call(ann, "release")["released"] == ["calc.py"]


@pytest.mark.promise(
    "mcp.token-per-session",
    "Over HTTP a wrong or missing token is refused, and the refusal is written to the journal.",
)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("shown", "code"),
    [("", "NO_TOKEN"), ("nonsense", "BAD_TOKEN"), ("s-unknown:secret", "NOT_YOUR_SESSION"), ("wrong", "")],
)
def test_a_wrong_or_missing_token_is_refused_and_recorded(served: HttpServer, shown: str, code: str) -> None:
    if shown == "wrong":
        shown, code = f"{served.token('ann').partition(':')[0]}:guessed", "NOT_YOUR_SESSION"
    status, headers, text = served.post(HELLO, shown)
    assert status == 401
    assert headers["www-authenticate"].startswith("Bearer")
    assert json.loads(text)["code"] == code
    assert any(what.startswith(code) for what in refused_entries(served))


def test_many_refusals_do_not_fill_the_journal(served: HttpServer) -> None:
    for _ in range(30):
        served.post(HELLO)
    assert len([what for what in refused_entries(served) if what.startswith("NO_TOKEN")]) == 1


def test_a_connection_belongs_to_the_session_it_began_with(served: HttpServer) -> None:
    ann, bob = served.token("ann"), served.token("bob")
    _, headers, _ = served.post(HELLO, ann)
    connection = {"Mcp_Session_Id": headers["mcp-session-id"], "Mcp_Protocol_Version": "2025-11-25"}
    assert served.post(LIST, ann, **connection)[0] == 200
    status, _, text = served.post(LIST, bob, **connection)
    assert (status, json.loads(text)["code"]) == (404, "NOT_YOUR_CONNECTION")


def test_a_session_that_has_left_is_refused(served: HttpServer) -> None:
    token = served.token("eve")
    landlane(served.folder, "leave", "--as", "eve")
    status, _, text = served.post(HELLO, token)
    assert (status, json.loads(text)["code"]) == (401, "SESSION_OVER")


@pytest.mark.slow
def test_a_page_in_a_browser_cannot_reach_it(served: HttpServer) -> None:
    token = served.token("ann")
    assert served.post(HELLO, token, Origin="http://evil.example")[0] == 403
    assert served.post(HELLO, token, Host="evil.example")[0] == 421
    assert served.post(HELLO, token, Origin=f"http://127.0.0.1:{served.port}")[0] == 200


def test_only_loopback_is_listened_on(served: HttpServer) -> None:
    assert served.host == "127.0.0.1"


@pytest.mark.parametrize("body", ["", "{", "[" * 50_000, "x" * 3_000_000, "null", '{"jsonrpc": "2.0"}'])
def test_the_server_survives_any_post(served: HttpServer, body: str) -> None:
    token = served.token("ann")
    try:
        status, _, _ = served.post(body, token)
        assert 400 <= status < 500
    except (BrokenPipeError, ConnectionResetError):
        pass  # it hung up on what is too large
    assert served.call(token, "status")["ok"]


@pytest.mark.slow
def test_an_address_in_use_is_reported(served: HttpServer) -> None:
    words = [sys.executable, "-m", "landlane", "mcp", "--http", "--port", str(served.port), "--json"]
    done = subprocess.run(words, cwd=served.folder, capture_output=True, text=True)
    assert json.loads(done.stdout)["code"] == "ADDRESS_IN_USE"
