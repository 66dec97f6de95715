"""Commands that run a branch's code: what they reach, what honest ones can do, and what a failure says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from landlane.errors import NotAllowed
from landlane.sandbox import sandboxed_check
from landlane.sandbox.model import Backend, BackendKind
from landlane.sandbox.sandboxed_check import (
    CheckCommand,
    CheckPlaces,
    describe_confinement,
    run_sandboxed_check,
)
from landlane.settings.model import (
    CheckSandboxSettings,
    LandingSettings,
    SandboxSettings,
    Settings,
    WorkspaceSettings,
)
from landlane.testing.postgres_install import program_folders

if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.processes.child import ChildResult

    Check = Callable[..., ChildResult]

pytestmark = [pytest.mark.integration, pytest.mark.sandbox, pytest.mark.on_disk]

LIMIT_SECONDS = 60.0
NOTHING = CheckSandboxSettings()
EVERYTHING = CheckSandboxSettings(network=True, unix_sockets=True)


def settings_with(opened: CheckSandboxSettings, **more: Any) -> Settings:
    return Settings(landing=LandingSettings(sandbox=opened), **more)


@pytest.fixture
def check(tmp_path: Path, sealed_home: Path, backend: Backend, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Return a function that runs a script as a check of a repository, with each backend in turn."""
    monkeypatch.setattr(sandboxed_check, "choose_backend", lambda: backend)
    root, tree = tmp_path / "repo", tmp_path / "repo.workspaces" / "tree"
    state = root / ".git" / "landlane"
    for folder in (state, root / ".git" / "hooks", tree, tmp_path / "repo.workspaces" / "other"):
        folder.mkdir(parents=True)
    (root / "app.py").write_text("good\n")
    (state / "store.db").write_text("SECRET\n")
    (sealed_home / ".bashrc").write_text("good\n")
    (sealed_home / ".secret").write_text("SECRET\n")
    (tmp_path / "repo.workspaces" / "other" / "file").write_text("SECRET\n")

    def run(script: str, opened: CheckSandboxSettings = NOTHING, **more: Any) -> ChildResult:
        limit = float(more.pop("limit_seconds", LIMIT_SECONDS))
        command = CheckCommand(
            words=("/bin/sh", "-c", script), path=str(tree), environment={}, limit_seconds=limit
        )
        places = CheckPlaces(root=str(root), common_dir=str(root / ".git"), state_folder=str(state))
        return run_sandboxed_check(settings_with(opened, **more), places, command, lambda: None)

    return run


@pytest.mark.promise(
    "checks.sandboxed",
    "A check changes only its checkout: neither the main checkout, hooks and branches, nor the home.",
)
@pytest.mark.parametrize(
    "target",
    ["repo/app.py", "repo/.git/hooks/pre-commit", "repo/.git/config", "repo.workspaces/other/file", "new"],
)
def test_a_check_writes_only_in_its_checkout(check: Check, tmp_path: Path, target: str) -> None:
    path = tmp_path / target
    before = path.read_text() if path.exists() else None

    ended = check(f"echo mine > own; echo evil > {path}; cat own")

    assert ended.stdout == "mine\n"
    assert (path.read_text() if path.exists() else None) == before


def test_a_check_reads_no_secret(
    check: Check, tmp_path: Path, sealed_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NPM_TOKEN", "AWS_SECRET_ACCESS_KEY", "MY_API_KEY", "SSH_AUTH_SOCK"):
        monkeypatch.setenv(name, "SECRET")
    monkeypatch.setenv("DATABASE_URL", "postgresql://me:SECRET@db/x")
    monkeypatch.setenv("LANDLANE_SESSION", "s-1:SECRET")
    paths = (
        sealed_home / ".secret",
        tmp_path / "repo.workspaces/other/file",
        tmp_path / "repo/.git/landlane/store.db",
    )

    ended = check(f"env; cat {' '.join(map(str, paths))} {tmp_path}/repo/app.py; ls -a ~")

    assert "SECRET" not in ended.stdout
    assert "good" not in ended.stdout
    assert ".bashrc" not in ended.stdout


def test_the_git_directory_can_be_read_and_not_written(check: Check, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path / "repo")], check=True)

    ended = check("cat ../../repo/.git/HEAD; git -C ../../repo config core.evil 1")

    assert ended.stdout.startswith("ref: refs/heads/")
    assert "evil" not in (tmp_path / "repo/.git/config").read_text()


def test_what_a_check_leaves_running_ends_with_it(check: Check, tmp_path: Path) -> None:
    script = "(setsid sleep 1000 & echo $! > pid); (setsid env -i sleep 1000 & echo $! > other); sleep 1000"

    ended = check(script, limit_seconds=1.5)

    assert ended.has_timed_out
    folder = tmp_path / "repo.workspaces" / "tree"
    is_alone = [name for name in ("pid", "other") if _is_sleeping(int((folder / name).read_text()))]
    assert not is_alone


def _is_sleeping(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() == "sleep"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo x > {tmp}/beside; exit 1", 'landing.sandbox.write = ["{tmp}"]'),
        (
            "python3 -c \"import socket; socket.create_connection(('192.0.2.1', 9), 1)\"",
            "landing.sandbox.network",
        ),
        ("cat {home}/.secret", 'landing.sandbox.write = ["{home}"]'),
    ],
    ids=["a file", "the network", "the home"],
)
def test_a_failure_says_what_was_refused_and_which_setting_allows_it(
    check: Check, tmp_path: Path, sealed_home: Path, script: str, expected: str
) -> None:
    known = {"tmp": str(tmp_path), "home": str(sealed_home)}

    ended = check(script.format(**known))

    assert ended.exit_code != 0
    assert "the sandbox refused" in ended.stderr
    assert expected.format(**known) in ended.stderr


def test_no_setting_is_named_for_the_main_checkout(check: Check, tmp_path: Path) -> None:
    ended = check("echo evil > ../../repo/app.py; exit 1")
    absolute = check(f"echo evil > {tmp_path}/repo/app.py; exit 1")

    assert "landing.sandbox" not in ended.stderr + absolute.stderr
    assert "the sandbox refused" in absolute.stderr


def test_the_settings_open_a_folder(check: Check, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()

    ended = check(f"echo x > {tmp_path}/cache/x", CheckSandboxSettings(write=(str(tmp_path / "cache"),)))

    assert ended.exit_code == 0, ended.stderr


@pytest.mark.parametrize("folder", [".cache", ".config", ".local/share"])
def test_the_settings_open_a_folder_that_many_programs_share(
    check: Check, sealed_home: Path, folder: str
) -> None:
    (sealed_home / folder / "tool").mkdir(parents=True)

    ended = check(f"echo x > ~/{folder}/tool/x", CheckSandboxSettings(write=(f"~/{folder}",)))

    assert ended.exit_code == 0, ended.stderr
    assert (sealed_home / folder / "tool" / "x").read_text() == "x\n"


def test_a_required_sandbox_refuses_checks_without_one(
    check: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = SandboxSettings(required=("files",))
    with pytest.raises(NotAllowed) as off:
        check("touch ran", CheckSandboxSettings(off=True), sandbox=needed)
    monkeypatch.setattr(sandboxed_check, "choose_backend", lambda: Backend(name=BackendKind.NONE))
    with pytest.raises(NotAllowed) as absent:
        check("touch ran", sandbox=needed)

    assert (off.value.code, absent.value.code) == ("SANDBOX_MISSING", "SANDBOX_MISSING")
    assert not (tmp_path / "repo.workspaces" / "tree" / "ran").exists()


def test_what_confines_checks_is_said_in_a_few_words() -> None:
    backend = Backend(name=BackendKind.LANDLOCK, landlock_abi=7)
    opened = CheckSandboxSettings(network=True, write=("~/.m2",))

    said = [
        describe_confinement(settings_with(one), on)
        for one, on in (
            (CheckSandboxSettings(), backend),
            (opened, backend),
            (CheckSandboxSettings(off=True), backend),
            (CheckSandboxSettings(), Backend(name=BackendKind.NONE)),
        )
    ]

    assert said == [
        "landlock",
        "landlock; opened: network, writing ~/.m2",
        "none: switched off by landing.sandbox.off",
        "none: this machine has no sandbox",
    ]


def test_pytest_with_a_fork_server_passes(check: Check, tmp_path: Path) -> None:
    (tmp_path / "repo.workspaces/tree/test_fork.py").write_text(
        "import multiprocessing\n\n\ndef test_it():\n"
        "    context = multiprocessing.get_context('forkserver')\n"
        "    process = context.Process(target=print, args=('hi',))\n"
        "    process.start()\n    process.join(30)\n    assert process.exitcode == 0\n"
    )

    ended = check(f"{sys.executable} -m pytest -q -p no:cacheprovider test_fork.py", EVERYTHING)

    assert ended.exit_code == 0, ended.stdout + ended.stderr


@pytest.mark.skipif(not shutil.which("npm"), reason="no npm")
def test_npm_test_passes_with_linked_modules(check: Check, tmp_path: Path) -> None:
    modules = tmp_path / "repo" / "node_modules"
    (modules / "adder").mkdir(parents=True)
    (modules / "adder" / "index.js").write_text("exports.add = (a, b) => a + b;\n")
    tree = tmp_path / "repo.workspaces" / "tree"
    (tree / "node_modules").symlink_to(modules)
    (tree / "package.json").write_text('{"scripts": {"test": "node test.js"}}\n')
    (tree / "test.js").write_text("if (require('adder').add(1, 2) !== 3) process.exit(1);\n")
    ended = check(
        "npm test; c=$?; echo evil > node_modules/adder/index.js; exit $c",
        workspace=WorkspaceSettings(link=("node_modules",)),
    )

    assert ended.exit_code == 0, ended.stdout + ended.stderr
    assert "evil" not in (modules / "adder" / "index.js").read_text()


@pytest.mark.slow
def test_postgresql_on_a_socket_can_be_started(check: Check, backend: Backend) -> None:
    programs = next((str(one) for one in program_folders() if (one / "initdb").exists()), "")
    is_root = os.geteuid() == 0
    if not programs or (is_root and not shutil.which("setpriv")):
        pytest.skip("no PostgreSQL server that can be run here")
    if is_root and backend.bwrap:
        pytest.skip("root cannot become another user in a user namespace")
    user = "setpriv --reuid=65534 --clear-groups" if is_root else ""
    give = "chmod 711 $TMPDIR $TMPDIR/..; chown 65534 $d" if is_root else "true"
    script = f"""
        d=$TMPDIR/pg; mkdir $d; {give}; cd $d
        {user} {programs}/initdb -D $d/data -U me -A trust --no-sync > /dev/null || exit 3
        options="-k $d -c listen_addresses="
        {user} {programs}/pg_ctl -D $d/data -w -l $d/log -o "$options" start > /dev/null || exit 4
        {user} {programs}/psql -h $d -U me -Atc 'select 41 + 1' postgres
        {user} {programs}/pg_ctl -D $d/data -m immediate stop > /dev/null
    """

    ended = check(script, CheckSandboxSettings(unix_sockets=True))
    refused = check(script) if not backend.bwrap else None

    assert ended.stdout == "42\n", ended.stdout + ended.stderr
    assert refused is None or "landing.sandbox.unix_sockets = true" in refused.stderr, refused


@pytest.mark.skipif(not shutil.which("make") or not shutil.which("gcc"), reason="no make or gcc")
def test_make_reads_the_cache_of_ccache_and_changes_nothing_in_it(
    check: Check, tmp_path: Path, sealed_home: Path
) -> None:
    cache = sealed_home / ".cache" / "ccache"
    cache.mkdir(parents=True)
    (cache / "known").write_text("known\n")
    compiler = "ccache gcc" if shutil.which("ccache") else "gcc"
    tree = tmp_path / "repo.workspaces" / "tree"
    (tree / "Makefile").write_text(
        f"test: hello\n\t./hello\n\nhello: hello.c\n\t{compiler} -o hello hello.c\n"
    )
    (tree / "hello.c").write_text("int main(void) { return 0; }\n")

    ended = check("make test && cat $CCACHE_DIR/known; echo evil > $CCACHE_DIR/known")

    assert ended.stdout.endswith("known\n"), ended.stdout + ended.stderr
    assert (cache / "known").read_text() == "known\n"


@pytest.mark.slow
def test_a_check_costs_little_more_than_without_a_sandbox(check: Check) -> None:
    def seconds(opened: CheckSandboxSettings) -> float:
        began = time.monotonic()
        assert check("sleep 0.3", opened).exit_code == 0
        return time.monotonic() - began

    ratio = min(seconds(CheckSandboxSettings()) for _ in range(3)) / min(
        seconds(CheckSandboxSettings(off=True)) for _ in range(3)
    )

    assert ratio < 1.6  # of 0.3 s; `make bench` measures checks of 2 s
