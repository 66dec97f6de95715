"""Watching as a user runs it: real git, real watchers at once, a real webhook, and one that is killed."""

from __future__ import annotations

import json
import os
import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.shell import LANDLANE, Running
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.shell import CommandResult, Shell

pytestmark = pytest.mark.acceptance


class WebhookServer(ThreadingHTTPServer):
    """A webhook on loopback; answers what it was told to, and remembers what it got."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[int] = []  # the next ones; 200 when there are none
        self.got: list[tuple[dict[str, Any], int]] = []
        self.keys: list[str] = []
        self.may_answer = threading.Event()
        self.may_answer.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook?from=landlane"


class _Handler(BaseHTTPRequestHandler):
    server: WebhookServer  # pyright: ignore[reportIncompatibleVariableOverride] - the only one that starts it

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = self.server.answers.pop(0) if self.server.answers else 200
        self.server.got.append((body, status))
        self.server.keys.append(self.headers["Idempotency-Key"])
        self.server.may_answer.wait(30)
        self.send_response(status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test quiet."""


@pytest.fixture
def receiver() -> Iterator[WebhookServer]:
    server = WebhookServer()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.may_answer.set()
    server.shutdown()
    server.server_close()


def configure(shell: Shell, text: str) -> None:
    (shell.folder / "landlane.toml").write_text(text, encoding="utf-8")


def commit(shell: Shell, **files: str) -> str:
    for name, text in files.items():
        path = shell.folder / name.replace("__", ".")
        path.write_text(text, encoding="utf-8")
        shell.git("add", str(path))
    shell.git("commit", "--quiet", "-m", f"Change {', '.join(files)}")
    return shell.git("rev-parse", "HEAD").strip()


def kinds(answer: dict[str, Any]) -> list[str]:
    return [event["kind"] for event in answer["events"]]


def test_commits_and_dependencies_are_seen_once_and_nothing_is_fetched(shell: Shell, tmp_path: Path) -> None:
    assert shell.run_json("notify", "--once")["events"] == [], "the first look only says where it begins"
    head = commit(shell, go__mod="module x\n", a="1")
    found = shell.run_json("notify", "--once")
    assert kinds(found) == ["commits", "dependencies"]
    assert (found["events"][0]["facts"]["after"], found["events"][0]["facts"]["count"]) == (head, 1)
    assert found["events"][1]["facts"]["paths"] == ["go.mod"]
    assert shell.run_json("notify", "--once")["events"] == []
    shell.git("reset", "--quiet", "--hard", "HEAD~1")
    assert "main was rewound" in shell.run_text("notify", "--once")
    configure(shell, '[notify]\ndependencies = ["deps/**"]\n')
    commit(shell, go__mod="module y\n")
    assert kinds(shell.run_json("notify", "--once")) == ["commits"]

    configure(shell, "")
    shell.git("clone", "--quiet", "--bare", ".", str(tmp_path / "remote.git"))
    shell.git("remote", "add", "origin", str(tmp_path / "remote.git"))
    shell.git("fetch", "--quiet")
    shell.git("branch", "--quiet", "--set-upstream-to", "origin/main", "main")
    shell.run_json("notify", "--once")
    shell.git("clone", "--quiet", str(tmp_path / "remote.git"), str(tmp_path / "other"))
    other = shell.at(tmp_path / "other")
    there = commit(other, go__sum="h1\n")
    other.git("push", "--quiet")
    before = shell.git("for-each-ref")
    (event,) = shell.run_json("notify", "--once")["events"]
    assert (event["facts"]["after"], event["facts"]["count"]) == (there, None), "its commits are not here yet"
    assert shell.git("for-each-ref") == before
    shell.git("fetch", "--quiet")
    assert kinds(shell.run_json("notify", "--once")) == ["dependencies"]
    assert [line.split()[1] for line in shell.run_text("notify", "--past").splitlines()] == [
        f"E{number}" for number in range(1, 8)
    ]


@pytest.mark.promise(
    "watch.told-once",
    "Of several watchers one sends an event, and a receiver that has it never gets it again.",
)
@pytest.mark.slow
def test_a_webhook_gets_each_event_once_from_two_watchers(shell: Shell, receiver: WebhookServer) -> None:
    configure(shell, f'[notify]\nwebhook = "{receiver.url}"\ncommand = "cat >> ../heard"\n')
    shell.run_json("notify", "--once")
    receiver.answers = [500, 302]
    said = shell.folder.parent / "said"
    watch = f"exec {LANDLANE} notify --interval 0.1s --json >> {said}"
    one, other = (
        Running(["sh", "-c", watch], shell.folder, {**os.environ, **shell.environment}) for _ in range(2)
    )
    with one, other:
        for number in range(4):
            commit(shell, **{f"file{number}": "x"})
            wait_until(lambda number=number: len({body["id"] for body, _ in receiver.got}) > number)
        wait_until(lambda: sum(status == 200 for _, status in receiver.got) == 4, 30)
        wait_until(lambda: shell.folder.parent.joinpath("heard").read_text().count("\n") == 4)
        wait_until(lambda: said.read_text().count("\n") == 4)  # who saw it may be slower than who sends it
        ended: list[CommandResult] = []
        for watcher in (one, other):
            watcher.signal(signal.SIGTERM)
            ended.append(watcher.end())
    taken = [body["id"] for body, status in receiver.got if status == 200]
    assert sorted(taken) == ["E1", "E2", "E3", "E4"], "who answered 2xx is not told again"
    assert len(receiver.got) == 6, "and who did not is"
    assert set(receiver.keys) == {"E1", "E2", "E3", "E4"}
    heard = [json.loads(line) for line in (shell.folder.parent / "heard").read_text().splitlines()]
    assert sorted(one["id"] for one in heard) == ["E1", "E2", "E3", "E4"]
    assert heard[0]["kind"] == "commits"
    assert heard[0]["repository"] == shell.folder.name
    lines = [json.loads(line) for line in said.read_text().splitlines()]
    assert sorted(line["id"] for line in lines) == ["E1", "E2", "E3", "E4"]
    assert {watcher.exit for watcher in ended} == {0}


@pytest.mark.promise(
    "watch.killed-senders-repeat-nothing",
    "A watcher that is killed while sending causes no duplicate delivery.",
)
def test_a_watcher_killed_while_it_sends_lets_nobody_hear_it_twice(
    shell: Shell, receiver: WebhookServer
) -> None:
    configure(shell, f'[notify]\nwebhook = "{receiver.url}"\nlimit = "5s"\n')
    shell.run_json("notify", "--once")
    commit(shell, a="1")
    receiver.may_answer.clear()
    with shell.start("notify", "--interval", "0.1s") as watcher:
        wait_until(lambda: len(receiver.got) == 1)
        watcher.signal(signal.SIGKILL)
        assert " E1 " in watcher.end().out, "what was seen is said before it is sent"
    receiver.may_answer.set()
    again = shell.run_json("notify", "--once")
    assert (again["events"], again["sent"], again["unsent"]) == ([], [], [])
    (event,) = shell.run_json("notify", "--past")["events"]
    assert event["sent"]["webhook"]["state"] == "sending", "nobody knows whether it got there"
    assert len(receiver.got) == 1


@pytest.mark.slow
def test_what_cannot_be_sent_is_given_up_and_said(shell: Shell, receiver: WebhookServer) -> None:
    more = 'kinds = ["commits"]\ntries = 1\nlimit = "3s"\n'
    configure(shell, f'[notify]\nwebhook = "{receiver.url}"\ncommand = "echo no use; exit 3"\n{more}')
    shell.run_json("notify", "--once")
    commit(shell, go__mod="1")
    receiver.may_answer.clear()
    found = shell.run_json("notify", "--once")
    assert kinds(found) == ["commits", "dependencies", "notify-failed", "notify-failed"]
    assert {one["facts"]["channel"]: one["facts"]["why"] for one in found["events"][2:]} == {
        "command": "could not be sent after 1 tries: it ended with 3: no use",
        "webhook": "could not be sent after 1 tries: no answer within 3 s",
    }
    assert shell.run_json("notify", "--once")["unsent"] == []
    receiver.may_answer.set()


def test_bad_calls_and_settings_are_explained(shell: Shell) -> None:
    shell.run_error("BAD_DURATION", "notify", "--interval", "soon")
    shell.run_error("BAD_DURATION", "notify", "--interval", "0")
    for line in ('webhook = "ftp://x"', 'webhook = "http://a:b@x/"', 'kinds = ["love"]', "tries = 0"):
        configure(shell, f"[notify]\n{line}\n")
        answer = shell.run_json("init", "--dry-run", exit=2)
        assert "notify." in answer["message"]
