"""Ordinary work succeeds in a sandbox: git in a clone, installs into the workspace, tests, compilers."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landlane.sandbox.start import SandboxedChild
from tests.support.git import git_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from landlane.processes.child import ChildResult
    from landlane.sandbox.model import Backend, Sandbox

pytestmark = [pytest.mark.integration, pytest.mark.sandbox, pytest.mark.on_disk]

LIMIT_SECONDS = 100.0


@pytest.fixture
def run(backend: Backend, make_sandbox: Callable[..., Sandbox], tmp_path: Path) -> Callable[..., ChildResult]:
    """Return a function that runs a script in the workspace, in the sandbox of a worker."""

    def run(script: str, **more: object) -> ChildResult:
        sandbox = make_sandbox(**more)
        words = ["sh", "-ec", script]
        return SandboxedChild(words, sandbox, cwd=str(tmp_path / "workspace"), backend=backend).wait(
            LIMIT_SECONDS
        )

    return run


def test_git_works_in_a_clone_of_its_own(
    run: Callable[..., ChildResult], repository: Path, tmp_path: Path
) -> None:
    workspace = tmp_path / "workspace"
    git_line(tmp_path, "clone", "--quiet", "--shared", str(repository), str(workspace))
    (repository / "theirs").write_text("theirs\n")
    git_line(repository, "add", "theirs")
    git_line(repository, "commit", "--quiet", "-m", "Theirs")
    before = git_line(repository, "rev-parse", "main")

    ended = run("""
        git switch --quiet -c own
        echo one > one; git add one; git commit --quiet -m One
        echo two >> one; git commit --quiet -am Two; git commit --quiet --amend -m 'Two, again'
        echo three > three; git add three; git stash --quiet; git stash pop --quiet; git reset --quiet --hard
        git fetch --quiet; git rebase --quiet origin/main
        git branch other; git branch --quiet -D other; git tag mine; git gc --quiet
        git status --short; git log --format=%s
    """)

    assert (ended.exit_code, ended.stdout.splitlines()) == (0, ["Two, again", "One", "Theirs", "Begin"]), (
        ended.stderr
    )
    assert git_line(repository, "rev-parse", "main") == before
    assert git_line(repository, "fetch", "--quiet", str(workspace), "own:refs/heads/own") == ""
    assert git_line(repository, "log", "-1", "--format=%s", "own") == "Two, again"


def test_pip_installs_a_package_into_the_workspace(run: Callable[..., ChildResult], tmp_path: Path) -> None:
    wheel = tmp_path / "greeting-1.0-py3-none-any.whl"
    parts = {
        "greeting.py": "def main():\n    print('hello from a package')\n",
        "greeting-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n",
        "greeting-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "greeting-1.0.dist-info/entry_points.txt": "[console_scripts]\ngreet = greeting:main\n",
    }
    with zipfile.ZipFile(wheel, "w") as file:
        for name, text in parts.items():
            file.writestr(name, text)
        file.writestr("greeting-1.0.dist-info/RECORD", "".join(f"{name},,\n" for name in parts))

    ended = run(f"""
        {sys.executable} -m venv --without-pip environment
        {sys.executable} -m pip --quiet --disable-pip-version-check --python environment/bin/python \
            install --no-index {wheel}
        environment/bin/greet
    """)

    assert (ended.exit_code, ended.stdout) == (0, "hello from a package\n"), ended.stderr


def test_npm_installs_a_package_into_the_workspace(run: Callable[..., ChildResult], tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("no npm")
    package = tmp_path / "workspace" / "package"
    package.mkdir(parents=True)
    (package / "package.json").write_text(
        json.dumps({"name": "greeting", "version": "1.0.0", "main": "main.js"})
    )
    (package / "main.js").write_text("module.exports = 'hello from a package'\n")
    (tmp_path / "workspace" / "package.json").write_text(json.dumps({"name": "app", "version": "1.0.0"}))

    ended = run("""
        npm pack --silent ./package >/dev/null
        npm install --silent --offline --no-audit --no-fund ./greeting-1.0.0.tgz
        node -p "require('greeting')"
    """)

    assert ended.stdout.splitlines()[-1:] == ["hello from a package"], ended.stderr
    assert ended.exit_code == 0, ended.stderr


def test_a_test_suite_runs(run: Callable[..., ChildResult], tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "test_small.py").write_text(
        "import subprocess, tempfile\n\n"
        "def test_files(tmp_path):\n    (tmp_path / 'f').write_text('x')\n\n"
        "def test_temporary():\n    tempfile.NamedTemporaryFile().close()\n\n"
        "def test_children():\n    assert subprocess.check_output(['echo', 'x']) == b'x\\n'\n"
    )

    ended = run(f"{sys.executable} -m pytest -q -p no:xdist test_small.py")

    assert (ended.exit_code, "3 passed" in ended.stdout) == (0, True), ended.stdout + ended.stderr


PARALLEL = """
import multiprocessing as m

def double(x):
    return 2 * x

if __name__ == "__main__":
    with m.get_context("fork").Pool(2) as pool:
        print(pool.map(double, range(4)))
    with m.Lock():
        queue = m.Queue()
        queue.put(1)
        print(queue.get())
"""
MANAGED = """
import multiprocessing as m

if __name__ == "__main__":
    with m.get_context("forkserver").Manager() as manager:
        print(manager.list([1, 2]))
"""


def test_python_works_with_many_processes(run: Callable[..., ChildResult], tmp_path: Path) -> None:
    (tmp_path / "parallel.py").write_text(PARALLEL)

    ended = run(f"{sys.executable} ../parallel.py", udp=False, tcp_connect=(), tcp_bind=())

    assert (ended.exit_code, ended.stdout) == (0, "[0, 2, 4, 6]\n1\n"), ended.stderr


def test_python_processes_use_sockets_if_the_role_may(
    run: Callable[..., ChildResult], tmp_path: Path
) -> None:
    (tmp_path / "managed.py").write_text(MANAGED)

    # The folders of tests are too long for the path of a unix socket.
    with tempfile.TemporaryDirectory(prefix="t") as short:
        places = (str(tmp_path / "workspace"), short)
        temporary = (("TMPDIR", short),)
        ended = run(
            f"{sys.executable} ../managed.py", unix_sockets=True, writable=places, environment=temporary
        )

    assert (ended.exit_code, ended.stdout) == (0, "[1, 2]\n"), ended.stderr


def test_a_compiler_works(run: Callable[..., ChildResult]) -> None:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")

    ended = run("echo 'int main(void) { return 0; }' > a.c; cc a.c -o a; ./a; echo fine")

    assert ended.stdout == "fine\n", ended.stderr
