"""The resident: one for each state folder, quick to be replaced, deaf to noise, and strict with guests."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landlane.app.open import open_repository
from landlane.cli import resident as command
from landlane.cli.serve_sandboxed import refusal_of
from landlane.cli.specs.table import all_commands
from landlane.resident import messages as wire
from landlane.resident.messages import (
    AnswerLost,
    BadMessage,
    find_socket,
    hold_resident,
    pack_request,
    send_request,
)
from landlane.resident.start import ensure_resident
from tests.support.git import commit_text
from tests.support.landing_crashes import CrashTestbed
from tests.support.resident import (
    ResidentTestbed,
    copy_package,
    is_alive,
    run_in_child,
    set_no_new_privileges,
)
from tests.support.shell import masked
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.integration

PING = pack_request(b"ping", b"", (), {}, b"")


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_package(tmp_path_factory.mktemp("package"))


@pytest.fixture
def served(repository: Path, package: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ResidentTestbed]:
    """A repository on SQLite."""
    monkeypatch.setenv("PYTHONPATH", str(package))
    made = ResidentTestbed(repository, package)
    yield made
    made.kill()


@pytest.fixture
def stored(store: str, served: ResidentTestbed) -> ResidentTestbed:
    """A repository on each kind of store."""
    assert store
    return served


def told(text: str) -> str:
    """A text without what depends on the moment."""
    return re.sub(r"\b\d+ s ago", "N s ago", re.sub(r"--wait \w+", "--wait D", masked(text)))


@pytest.mark.slow
def test_commands_answer_as_outside(stored: ResidentTestbed) -> None:
    ann, bob = stored.join("ann"), stored.join("bob")
    stored.outside.with_env(LANDLANE_SESSION=ann).run_json("claim", "src/held.py", "--note", "mine")
    outside, inside = stored.outside.with_env(LANDLANE_SESSION=bob), stored.inside_sandbox(bob)
    for words in (
        ("claim", "src/held.py"),
        ("claim", "src/held.py", "--json"),
        ("check", "src/held.py"),
        ("check", "free.py", "--json"),
        ("claims", "--json"),
        ("status",),
        ("who", "src/held.py", "--json"),
        ("task", "show", "T99", "--json"),
        ("claim",),
        ("claim", "--ttl", "never", "x.py"),
        ("nonsense", "--json"),
        ("claim", "--help"),
    ):
        there, here = outside.run(*words), inside.run(*words)
        assert (here.exit, told(here.out), told(here.err)) == (there.exit, told(there.out), told(there.err))


@pytest.mark.slow
def test_what_is_done_inside_is_done(stored: ResidentTestbed) -> None:
    inside = stored.inside_sandbox(stored.join("bob"))
    (stored.repository / "plan.md").write_text("all of it\n")
    assert inside.run_json("claim", "new.py", "--note=--x=1 and 'quotes'")["granted"]
    assert (
        inside.run_json("task", "add", "From within", "--body", "plan.md", "--path", "a.py")["task"]["id"]
        == "T1"
    )
    assert inside.run("task", "add", "By pipe", "--body", "-", stdin="through a pipe").exit == 0
    assert stored.outside.run_json("task", "show", "T1")["task"]["body"] == "all of it"
    assert stored.outside.run_json("task", "show", "T2")["task"]["body"] == "through a pipe"
    claims = stored.outside.run_json("claims")["claims"]
    assert [(one["pattern"], one["holder"], one["note"]) for one in claims] == [
        ("new.py", "bob", "--x=1 and 'quotes'")
    ]
    assert inside.run_json("next")["task"]["id"] == "T1"
    assert inside.run_json("leave")["ok"]
    assert stored.outside.run_json("claims")["claims"] == []


def test_paths_count_from_where_the_caller_stands(served: ResidentTestbed) -> None:
    (served.repository / "deep" / "er").mkdir(parents=True)
    inside = served.inside_sandbox(served.join("bob"))
    assert inside.at("deep/er").run_json("claim", "x.py")["granted"][0]["pattern"] == "deep/er/x.py"
    assert (
        inside.with_env().run_json("claim", "y.py", "--repo", "deep")["granted"][0]["pattern"] == "deep/y.py"
    )


NOT_FOR_GUESTS = [
    ("gate", "approve", "L1"),
    ("gate", "reject", "L1"),
    ("init", "--yes"),
    ("doctor", "--fix"),
    ("store", "move", "/nowhere"),
    ("store", "rebuild"),
    ("queue", "run", "--drain"),
    ("queue", "eject", "L1"),
    ("workspace", "open", "T1"),
    ("once", "key", "--", "touch", "ran"),
    ("deploy", "prod", "--", "touch", "ran"),
    ("join", "eve"),
    ("rescue", "drop", "R1"),
    ("sync", "--update", "merge"),
    ("task", "add", "Trap", "--check", "touch ran"),
]


@pytest.mark.promise(
    "guests.only-what-is-named",
    "Inside the sandbox, decisions of a person, repairs and programs that would run outside are refused.",
)
@pytest.mark.slow
def test_what_a_guest_may_not_do_is_refused(served: ResidentTestbed) -> None:
    inside = served.inside_sandbox(served.join("bob"))
    served.start()
    for words in NOT_FOR_GUESTS:
        answer = inside.run_error("NOT_IN_SANDBOX", *words, exit=6)
        assert answer["hint"]
    assert not (served.repository / "ran").exists()
    assert [entry["kind"] for entry in served.outside.run_json("log")["entries"]][-1] == "session.joined"


def test_every_command_was_thought_about() -> None:
    """Whoever adds one decides whether it is for guests; until then it is refused."""
    allowed = {one.path for one in all_commands() if refusal_of(one, {}) is None}
    assert {"claim", "land", "done", "task add", "state set", "queue list"} <= allowed
    assert not {"gate approve", "commit", "git", "exec", "run", "store info", "resident"} & allowed


@pytest.mark.promise(
    "guests.act-as-themselves",
    "A caller inside the sandbox acts as the session whose secret it presents, and as no other.",
)
@pytest.mark.slow
def test_a_guest_is_nobody_else(stored: ResidentTestbed, tmp_path: Path) -> None:
    ann, bob = stored.join("ann"), stored.join("bob")
    inside = stored.inside_sandbox(bob)
    inside.run_error("NOT_YOUR_SESSION", "claim", "x.py", "--as", "ann", exit=6)
    inside.run_error("NOT_YOUR_SESSION", "claims", "--as", "ann", exit=6)
    stolen = f"{ann.partition(':')[0]}:{bob.partition(':')[2]}"
    stored.inside_sandbox(stolen).run_error("NOT_YOUR_SESSION", "claims", exit=6)
    stored.inside_sandbox("").run_error("NOT_YOUR_SESSION", "claims", exit=6)
    inside.with_env(LANDLANE_AGENT="ann").run_json("claim", "x.py")
    assert stored.outside.run_json("claims")["claims"][0]["holder"] == "bob"

    other = tmp_path / "other"
    subprocess.run(["git", "init", "--quiet", str(other)], check=True)
    inside.at(other).run_error("OTHER_REPOSITORY", "claim", "x.py", exit=6)
    assert not (other / ".git" / "landlane").exists()


def test_a_guest_is_judged_by_the_settings_of_the_main_checkout(
    served: ResidentTestbed, tmp_path: Path
) -> None:
    work = tmp_path / "work"
    served.outside.git("worktree", "add", "--quiet", "-b", "work", str(work))
    commit_text(work, "landlane.toml", '[claims]\nttl = "7s"\n')
    outside = served.outside.at(work).run_json("claim", "x.py", "--as", "ann")["granted"][0]
    inside = served.inside_sandbox(served.join("bob")).at(work).run_json("claim", "y.py")["granted"][0]
    assert inside["until"] > outside["until"]


def test_files_are_read_by_the_caller_alone(served: ResidentTestbed, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("only outside")
    shown = {b"LANDLANE_SESSION": served.join("bob").encode()}
    words = [b"task", b"add", b"Spy", f"--body={secret}".encode(), b"--json"]
    request = pack_request(b"call", os.fsencode(served.repository), words, shown, b"")
    answer = send_request(served.start(), request, 30.0)
    assert answer is not None
    assert answer[0] == 6
    assert json.loads(answer[1])["code"] == "NOT_IN_SANDBOX"


@pytest.mark.promise(
    "resident.killing-loses-nothing",
    "The resident can be killed at any moment: claims stay granted, and the next caller starts a new one.",
)
@pytest.mark.slow
def test_killed_under_traffic_it_loses_nothing(stored: ResidentTestbed) -> None:
    credentials = stored.join("bob")
    stored.start()
    codes: dict[str, int] = {}

    def claim(worker: int) -> None:
        for number in range(4):
            path = f"w{worker}-{number}.py"
            codes[path] = stored.inside_sandbox(credentials).run("claim", path).exit

    workers = [threading.Thread(target=claim, args=(number,)) for number in range(3)]
    for worker in workers:
        worker.start()
    killed: set[int] = set()
    while any(worker.is_alive() for worker in workers):
        pid = stored.pid
        if pid:
            os.kill(pid, signal.SIGKILL)
            killed.add(pid)
        time.sleep(0.2)
    for worker in workers:
        worker.join()
    assert killed
    held = {one["pattern"] for one in stored.outside.run_json("claims")["claims"]}
    assert {path for path, code in codes.items() if code == 0} <= held
    assert list(codes.values()).count(0) >= 10, codes
    assert stored.inside_sandbox(credentials).run_json("release", "--all")["ok"]


@pytest.mark.promise("resident.one-serves", "Of several residents that start at once, exactly one serves.")
@pytest.mark.slow
def test_of_several_that_start_at_once_one_serves(served: ResidentTestbed) -> None:
    running = [served.outside.popen("resident", "--idle", "1m", "--json") for _ in range(4)]
    wait_until(lambda: sum(one.poll() is not None for one in running) == 3, 40)
    [winner] = [one for one in running if one.poll() is None]
    wait_until(lambda: served.pid == winner.pid)  # it may not listen yet
    for one in running:
        if one is not winner:
            assert json.loads(one.communicate()[0]) == {"ok": True, "served": False}
    winner.terminate()
    assert json.loads(winner.communicate(timeout=30)[0])["why"] == "it was asked to"
    assert not Path(find_socket(str(served.state))).exists()


def test_callers_that_come_at_once_start_one(served: ResidentTestbed) -> None:
    found: list[str | None] = []
    callers = [
        threading.Thread(target=lambda: found.append(ensure_resident(str(served.state), 30.0)))
        for _ in range(6)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert found == [find_socket(str(served.state))] * 6
    first = served.pid
    assert first
    assert [served.pid for _ in range(3)] == [first] * 3


@pytest.mark.slow
def test_it_ends_when_nobody_needs_it_and_not_before(served: ResidentTestbed) -> None:
    path = served.start("--idle", "1500ms")
    held = hold_resident(path)
    pid = served.pid
    assert held is not None
    held.settimeout(2.0)
    with pytest.raises(TimeoutError):
        held.recv(1)  # longer than it would be idle
    assert is_alive(pid)
    held.close()
    wait_until(lambda: not is_alive(pid))
    assert not Path(path).exists()
    assert served.start() == path


def test_it_ends_when_its_folder_goes_away(served: ResidentTestbed) -> None:
    served.start()
    pid = served.pid
    shutil.rmtree(served.state)
    wait_until(lambda: not is_alive(pid))


@pytest.mark.slow
def test_it_ends_when_the_package_is_upgraded(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = copy_package(tmp_path / "own", {"resident/server.py:_CODE_CHECK_SECONDS": 0.2})
    monkeypatch.setenv("PYTHONPATH", str(package))
    served = ResidentTestbed(repository, package)
    served.start()
    before = served.pid
    with (package / "landlane" / "errors.py").open("a") as file:
        file.write("# another release\n")
    wait_until(lambda: not is_alive(before))
    served.start()
    assert served.pid not in (0, before)
    served.kill()


def test_a_path_that_is_too_long_for_a_socket_has_a_short_one(
    repository: Path, package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(package))
    deep = tmp_path / ("a" * 80) / ("b" * 80)
    deep.parent.mkdir()
    served = ResidentTestbed(repository.rename(deep), package)
    path = served.start()
    try:
        assert len(path) < wire.LONGEST_PATH
        assert find_socket(str(served.state)) == path
        assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
        assert served.inside_sandbox(served.join("bob")).run_json("claim", "x.py")["granted"]
        os.chmod(os.path.dirname(path), 0o755)  # others could have put something there
        assert find_socket(str(served.state)) == ""
        os.chmod(os.path.dirname(path), 0o700)
    finally:
        served.kill()


def test_noise_harms_nobody(served: ResidentTestbed) -> None:
    path = served.start()
    pid = served.pid
    lots = random.Random(7)
    body = pack_request(b"hook", b"/", [b"claude", b"x"], {b"A": b"b"}, b"{}")
    noises = [
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        b"ILK1",
        b"ILK2\0\0\0\1x",
        b"ILK1\xff\xff\xff\xff",
        b"ILK1\0\0\0\4\0\0\0\0",
        body[:-1],
        body + b"more",
        pack_request(b"nonsense", b"", (), {}, b""),
        pack_request(b"hook", b"", (), {}, b""),
        pack_request(b"hook", b"", [b"no-client"], {}, b"\xff"),
        pack_request(b"call", b"", (), {}, b""),
        pack_request(b"call", b"/\0x", [b"claim", b"\xff"], {b"LANDLANE_SESSION": b"\xff"}, b""),
        *(lots.randbytes(lots.randrange(200)) for _ in range(60)),
        *(_spoiled(body, lots) for _ in range(60)),
    ]
    open_ones: list[socket.socket] = []
    for noise in noises:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(path)
        try:
            connection.sendall(noise)
        except OSError:
            pass
        open_ones.append(connection)
    answer = send_request(path, PING, 20.0)
    assert answer == (0, b"%d" % pid, b"")
    for connection in open_ones:
        connection.close()
    flood = [socket.socket(socket.AF_UNIX) for _ in range(300)]
    try:
        for connection in flood:
            connection.connect(path)
        assert send_request(path, PING, 30.0) is not None
    finally:
        for connection in flood:
            connection.close()
    assert served.pid == pid
    assert served.inside_sandbox(served.join("bob")).run_json("claim", "x.py")["granted"]


def _spoiled(request: bytes, lots: random.Random) -> bytes:
    changed = bytearray(request)
    for _ in range(lots.randrange(1, 6)):
        changed[lots.randrange(8, len(changed))] = lots.randrange(256)
    return bytes(changed)


def test_other_users_are_not_served(served: ResidentTestbed) -> None:
    if os.geteuid() != 0:
        pytest.skip("only the superuser can become another user")
    path = served.start()
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    os.chmod(path, 0o666)

    def ask_as_nobody() -> object:
        os.chdir(os.path.dirname(path))  # so that no folder above has to let us pass
        os.setgid(65534)
        os.setuid(65534)
        return send_request(os.path.basename(path), PING, 10.0)

    assert run_in_child(ask_as_nobody) == "None"
    assert served.pid


def test_hooks_are_answered_for_whoever_asks(stored: ResidentTestbed) -> None:
    path = stored.start()
    (stored.repository / "new.py").write_text("")
    assert send_request(path, stored.hook("Read", "new.py", "first"), 30.0) == (0, b"", b"")
    assert send_request(path, stored.hook("Edit", "new.py", "first"), 30.0) == (0, b"", b"")
    [claim] = stored.outside.run_json("claims")["claims"]
    assert claim["pattern"] == "new.py"
    answer = send_request(path, stored.hook("Edit", "new.py", "second"), 30.0)
    assert answer is not None
    assert claim["holder"].encode() in answer[1] + answer[2]


def test_a_sandboxed_hook_needs_its_own_secret(stored: ResidentTestbed) -> None:
    path = stored.start()
    (stored.repository / "new.py").write_text("")
    send_request(path, stored.hook("Read", "new.py", "first"), 30.0)
    send_request(path, stored.hook("Edit", "new.py", "first"), 30.0)
    bob = stored.join("bob")

    def sandboxed(session: str, shown: str) -> str:
        def work() -> object:
            set_no_new_privileges()
            return send_request(path, stored.hook("Edit", "new.py", session, credentials=shown), 30.0)

        return run_in_child(work)

    assert sandboxed("first", "").startswith("BadMessage")
    assert "cannot be read by this user" in sandboxed("first", bob)
    assert "claude-first" in sandboxed("bobs-own", bob)
    [claim] = stored.outside.run_json("claims")["claims"]
    assert claim["holder"] == "claude-first"


@pytest.mark.slow
def test_a_caller_that_goes_away_leaves_the_line(served: ResidentTestbed) -> None:
    served.outside.run_json("claim", "x.py", "--as", "ann")
    inside = served.inside_sandbox(served.join("bob"))
    served.start()
    waiting = inside.popen("claim", "x.py", "--wait", "2m")
    served.outside.wait_for_waiter()
    waiting.kill()
    waiting.communicate()
    wait_until(lambda: served.outside.run_json("status")["waiters"] == [])


def test_what_is_said_comes_as_it_is_said(served: ResidentTestbed) -> None:
    inside = served.inside_sandbox(served.join("bob"))
    served.start()
    following = inside.popen("log", "--follow", "--after", "0", "--json")
    assert following.stdout is not None
    assert json.loads(following.stdout.readline())
    following.kill()
    following.communicate()


def test_a_silent_listener_is_waited_for_no_longer_than_asked(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(5)
    with pytest.raises(AnswerLost):
        send_request(path, PING, 0.2)
    assert send_request(str(tmp_path / "none"), PING, 0.2) is None

    def answer(said: bytes) -> None:
        connection, _ = listener.accept()
        connection.recv(1000)
        connection.sendall(said)
        connection.close()

    for said in (b"zzzzzzzzz", b"o\xff\xff\xff\xffx", b"x\0\0\0\5abcde"):
        thread = threading.Thread(target=answer, args=(said,))
        listener.accept()[0].close() if said == b"zzzzzzzzz" else None  # the one that was given up
        thread.start()
        with pytest.raises(BadMessage):
            send_request(path, PING, 10.0)
        thread.join()
    listener.close()


def test_entries_that_nobody_runs_are_run_once(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    testbed = CrashTestbed(repository)
    settings = (repository / "landlane.toml").read_text()
    commit_text(repository, "landlane.toml", settings.replace("resident = false", "resident = true"))
    repo = open_repository(str(repository))
    testbed.submit(repo, "one", {"one.txt": "one"})
    started: list[object] = []
    monkeypatch.setattr(command, "start_queue_runner", started.append)
    monkeypatch.setattr(command, "_QUEUE_SECONDS", -1.0)
    houses = command.LentRepositories(repo.state_folder)
    assert [houses.keep_up(), houses.keep_up()] == ["", ""]
    assert len(started) == 1
    testbed.submit(repo, "two", {"two.txt": "two"})
    assert houses.keep_up() == ""
    assert len(started) == 2
    repo.close()
