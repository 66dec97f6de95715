"""Commands in their sandbox: what works there as outside, what is refused, and how it is answered."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest
import rich

from landlane.sandbox.model import BackendKind
from tests.exec.support import ROOT, ExecTestbed
from tests.support.git import commit_text

pytestmark = [pytest.mark.acceptance, pytest.mark.sandbox, pytest.mark.on_disk]

PLAIN_USER = 65_534


@pytest.mark.promise(
    "exec.works-inside",
    "Claims, commits, reports and landings work inside the sandbox as they do outside.",
)
def test_claims_commits_reports_and_landings_work_inside(testbed: ExecTestbed) -> None:
    task = testbed.shell.run_json("task", "add", "Add b", "--path", "src/b.py")["task"]["id"]

    ended = testbed.script(
        "code",
        """
        echo 'b = 1' > src/b.py
        landlane check src/b.py
        landlane commit -m 'Add b' src/b.py
        landlane done $LANDLANE_TASK
        landlane land --wait
        landlane status --json > status.json
        """,
        *("--task", task, "--name", "ann"),
    )

    assert ended.exit == 0, ended
    assert testbed.git("show", "main:src/b.py") == "b = 1"
    trailers = testbed.git("log", "-1", "--format=%(trailers)", "main^2")
    assert "Landlane-Agent: ann" in trailers
    assert testbed.shell.run_json("task", "show", task)["task"]["state"] == "done"
    assert testbed.shell.run_json("workspace", "list")["workspaces"] == []
    assert testbed.left_over() == []


def test_a_task_is_handed_over_from_inside_with_its_files_and_accepted_outside(testbed: ExecTestbed) -> None:
    task = testbed.shell.run_json("task", "add", "Add b", "--path", "src/b.py")["task"]["id"]

    ended = testbed.script(
        "code",
        """
        echo 'b = 1' > src/b.py
        landlane commit -m 'Add b' src/b.py
        echo 'b = 2' > src/b.py
        echo 'half of it' > product.md
        echo 'two forms' | landlane handoff $LANDLANE_TASK --to eve --product product.md --context -
        """,
        *("--task", task, "--name", "ann"),
    )

    assert ended.exit == 0, ended
    taken = testbed.shell.run_json("handoff", "accept", task, "--as", "eve")
    handoff = taken["handoff"]
    assert (handoff["product"], handoff["context"]) == ("half of it", "two forms")
    assert handoff["taken"]["changed"] == ["src/b.py"]
    assert "src/b.py" in handoff["taken"]["dirty"]
    assert taken["task"]["owner"] == "eve"


def test_the_state_of_others_is_out_of_reach_inside(testbed: ExecTestbed) -> None:
    secret = next((testbed.state / "sessions").iterdir(), None) if testbed.state.exists() else None
    testbed.shell.run_json("claim", "docs/guide.md")
    secret = secret or next((testbed.state / "sessions").iterdir())
    credentials = testbed.shell.run_json("join", "victim")["session"]
    ended = testbed.execute(
        "code",
        "sh",
        "-c",
        f"""
        echo evil >> {testbed.state}/store.db && echo wrote
        cat {secret} && echo read
        ls {testbed.state}/sessions/* >/dev/null && cat {testbed.state}/sessions/* && echo read
        landlane claim src/x --as lead && echo acted
        LANDLANE_SESSION={credentials["id"]}:0000 landlane claim src/x && echo posed
        env -u LANDLANE_SESSION landlane claim src/x && echo posed
        env -u LANDLANE_RESIDENT landlane claim src/x && echo opened
        landlane gate approve G1 && echo approved
        landlane exec --role release -- true && echo nested
        landlane release docs/guide.md && echo released
        echo rogue >> docs/guide.md; landlane commit -m Rogue docs/guide.md && echo committed
        """,
    )

    assert ended.out.splitlines() == [], ended
    assert testbed.shell.holders() == {"docs/guide.md": "lead"}
    assert testbed.shell.run_json("log", "--verify")["ok"]


@pytest.mark.promise(
    "guests.checks-are-sandboxed",
    "The check of a task that a sandboxed caller reports done runs in a sandbox, too.",
)
def test_a_check_of_a_sandboxed_caller_runs_in_a_sandbox(testbed: ExecTestbed) -> None:
    trap, secret = testbed.repository.parent / "trap", testbed.repository.parent / "TRAP"
    add = ("task", "add", "Add b", "--path", "src/b.py", "--check", "sh src/b.py")
    task = testbed.shell.run_json(*add)["task"]["id"]

    ended = testbed.script(
        "code",
        f"""
        echo 'touch {trap}; cat {testbed.state}/store.db; test ! -e {trap} && exit 7' > src/b.py
        landlane commit -m 'Add b' src/b.py
        landlane done $LANDLANE_TASK || echo "exit $?"
        printf -- '- [ ] Moon (check: touch {secret}) (kind: chore)\\n' > list.md
        landlane task import list.md || echo "exit $?"
        """,
        *("--task", task, "--name", "mole"),
    )

    assert "exit 6" in ended.out, ended
    assert "failed" in ended.err
    assert "(exit 7)" in ended.err, ended
    assert "NOT_IN_SANDBOX" in ended.err
    assert not trap.exists()
    assert not secret.exists()


@pytest.mark.promise(
    "guests.landings-are-sandboxed",
    "The queue runs the checks of what was submitted from a sandbox in a sandbox.",
)
def test_the_queue_checks_what_comes_from_a_sandbox_in_a_sandbox(weak_testbed: ExecTestbed) -> None:
    testbed, trap = weak_testbed, weak_testbed.repository.parent / "trap"
    settings = '[landing]\nresident = false\nchecks = [{name = "t", run = "sh src/app.py"}]\n'
    (testbed.repository / "landlane.toml").write_text(settings)
    (testbed.repository / "src" / "app.py").write_text("true\n")
    testbed.git("commit", "--quiet", "-am", "Check")
    task = testbed.shell.run_json("task", "add", "Change", "--path", "src/app.py")["task"]["id"]

    ended = testbed.script(
        "code",
        f"""
        echo 'touch {trap} || touch build; test -e build' > src/app.py
        landlane commit -m Change src/app.py
        landlane done $LANDLANE_TASK
        landlane land --wait
        """,
        *("--task", task, "--name", "mole"),
    )

    assert ended.exit == 0, ended
    assert not trap.exists()
    assert "touch build" in testbed.git("show", "main:src/app.py")


def test_git_works_in_the_clone_of_a_task(testbed: ExecTestbed) -> None:
    task = testbed.shell.run_json("task", "add", "Work")["task"]["id"]
    (testbed.repository / "theirs.txt").write_text("theirs\n")
    testbed.git("add", "theirs.txt")
    testbed.git("commit", "--quiet", "-m", "Theirs")

    ended = testbed.script(
        "refactor",
        f"""
        git reset --quiet --hard HEAD~1
        echo one > one; git add one; git commit --quiet -m One
        echo two >> one; git stash --quiet; git stash pop --quiet; git commit --quiet -am Two
        git fetch --quiet {testbed.repository} main; git rebase --quiet FETCH_HEAD
        git fetch --quiet home; git gc --quiet
        git status --short; git log --format=%s
        """,
        *("--task", task),
    )

    assert (ended.exit, ended.out.split()) == (0, ["Two", "One", "Theirs", "Begin"]), ended
    branch = testbed.git("for-each-ref", "--format=%(refname:short)", "refs/heads/landlane")
    assert testbed.git("log", "--format=%s", branch).split() == ["Two", "One", "Theirs", "Begin"]
    assert f"not landed: {testbed.git('rev-parse', '--short=12', branch)}" in ended.err


def test_packages_are_installed_and_tests_run_inside(weak_testbed: ExecTestbed) -> None:
    testbed = weak_testbed
    make_wheel(testbed.repository)
    install = f"""
        {sys.executable} -m venv --without-pip env
        {sys.executable} -m pip --quiet --disable-pip-version-check --python env/bin/python install \
            --no-index {testbed.repository}/greeting-1.0-py3-none-any.whl
        env/bin/greet
        {sys.executable} -m pytest -q -p no:xdist -p no:cacheprovider tests | tail -1
    """
    npm = """
        mkdir package app
        echo '{"name": "greeting", "version": "1.0.0", "main": "main.js"}' > package/package.json
        echo 'module.exports = "hello from npm"' > package/main.js
        echo '{"name": "app", "version": "1.0.0"}' > app/package.json
        cd app; npm pack --silent ../package > packed
        npm install --silent --offline --no-audit --no-fund ./$(cat packed)
        node -p "require('greeting')"
    """
    # A role that only reads builds as well: in a clone that is thrown away.
    ended = testbed.script("verify", install + (npm if shutil.which("npm") else ""))

    said = ended.out.splitlines()
    assert (ended.exit, said[0]) == (0, "hello from pip"), ended
    assert said[1].startswith("1 passed"), ended
    if not shutil.which("npm"):
        pytest.skip("no npm: the rest was seen")
    assert said[2] == "hello from npm"


def make_wheel(folder: Path) -> None:
    parts = {
        "greeting.py": "def main():\n    print('hello from pip')\n",
        "greeting-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n",
        "greeting-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "greeting-1.0.dist-info/entry_points.txt": "[console_scripts]\ngreet = greeting:main\n",
    }
    with zipfile.ZipFile(folder / "greeting-1.0-py3-none-any.whl", "w") as file:
        for name, text in parts.items():
            file.writestr(name, text)
        file.writestr("greeting-1.0.dist-info/RECORD", "".join(f"{name},,\n" for name in parts))


def test_of_a_role_that_reads_nothing_comes_back_and_nothing_is_lost(testbed: ExecTestbed) -> None:
    before = testbed.git("for-each-ref", "refs/heads")

    ended = testbed.script(
        "explore", "echo x > new; git add new; git commit -qm New; pwd; stat -c %a $TMPDIR/.."
    )

    place, mode = ended.out.splitlines()
    assert (ended.exit, mode) == (0, "700"), ended
    assert not os.path.exists(os.path.dirname(place))
    assert testbed.git("for-each-ref", "refs/heads") == before
    assert testbed.left_over() == []
    (rescue,) = testbed.shell.run_json("rescue", "list")["rescues"]
    back = testbed.repository.parent / "back"
    testbed.shell.run_json("rescue", "restore", rescue["id"], "--into", str(back))
    assert (back / "new").read_text() == "x\n"


def test_what_was_not_committed_is_kept(testbed: ExecTestbed) -> None:
    ended = testbed.answer("code", "sh", "-c", "echo precious > src/draft.py; exit 3")

    assert (ended["code of exit"], ended["exit"], ended["code"]) == (3, 3, "COMMAND_FAILED")
    back = testbed.repository.parent / "back"
    testbed.shell.run_json("rescue", "restore", ended["rescue"], "--into", str(back))
    assert (back / "src" / "draft.py").read_text() == "precious\n"
    assert testbed.shell.run_json("task", "show", ended["task"])["task"]["state"] == "dropped"


@pytest.mark.promise(
    "exec.no-settings-obeyed",
    "Nothing that an agent configures in its clone runs outside its sandbox.",
)
def test_no_setting_of_the_clone_is_obeyed_outside(testbed: ExecTestbed) -> None:
    trap = testbed.repository.parent / "trapped"
    ended = testbed.script(
        "code",
        f"""
        printf '#!/bin/sh\\ntouch {trap}\\n' > trap.sh; chmod +x trap.sh
        for name in core.fsmonitor core.pager core.editor core.sshCommand filter.x.clean filter.x.smudge \
            filter.x.process diff.external uploadpack.packObjectsHook gpg.program merge.x.driver; do
            git config $name $PWD/trap.sh
        done
        git config commit.gpgSign false
        mkdir hooks
        for name in pre-commit post-checkout reference-transaction post-commit pre-push post-index-change; do
            cp trap.sh hooks/$name
        done
        echo '* filter=x diff=x merge=x' > .git/info/attributes
        echo more >> src/app.py; echo new > src/new.py
        git -c core.fsmonitor= -c filter.x.clean=cat -c filter.x.process= add src/new.py
        git -c core.fsmonitor= -c filter.x.clean=cat -c filter.x.process= -c core.hooksPath=/ commit -qm New \
            --no-verify src/new.py
        echo left > src/left.py
        git config core.hooksPath $PWD/hooks
        rm -f {trap} 2>/dev/null || true
        """,
    )

    assert ended.exit == 0, ended
    task = testbed.shell.run_json("workspace", "list")["workspaces"][0]["task"]
    testbed.shell.run("workspace", "prune")
    testbed.shell.run("workspace", "open", task)
    assert not trap.exists()


def test_the_command_ends_as_it_ends_and_says_so(testbed: ExecTestbed) -> None:
    killed = testbed.answer("review", "sh", "-c", "echo said; kill -TERM $$")
    assert (killed["code of exit"], killed["exit"], killed["ok"]) == (143, 143, False)
    assert "said" in killed["stderr"]
    assert testbed.execute("review", "sh", "-c", "exit 7").exit == 7
    good = testbed.answer("review", "true")
    assert (good["ok"], good["exit"], good["role"], good["sandbox"].split("+")[0]) == (
        True,
        0,
        "review",
        testbed.backend,
    )
    assert {one["name"] for one in good["promises"] if one["state"] == "held"} >= {"files", "signals", "tree"}
    testbed.shell.run_error("NO_PROGRAM", "exec", "--role", "review", "--", "no-such-program")
    testbed.shell.run_error("UNKNOWN_ROLE", "exec", "--role", "reviewer", "--", "true")


def test_without_a_required_promise_nothing_is_begun(weak_testbed: ExecTestbed) -> None:
    testbed = weak_testbed
    told = (testbed.repository / "landlane.toml").read_text()
    commit_text(testbed.repository, "landlane.toml", f'{told}[sandbox]\nrequired = ["files", "chmod"]\n')
    refused = testbed.shell.run_error("SANDBOX_MISSING", "exec", "--role", "code", "--", "true", exit=6)
    assert refused["missing"] == ["chmod"]
    assert "bubblewrap" in refused["hint"]
    assert testbed.shell.run_json("task", "list")["tasks"] == []
    assert testbed.shell.run_json("workspace", "list")["workspaces"] == []
    assert "run.begun" not in testbed.shell.kinds()
    assert [one["agent"] for one in testbed.shell.run_json("status")["sessions"]] == ["lead"]
    doctor = testbed.shell.run("doctor", "--json").json()
    (kernel,) = (one for one in doctor["checks"] if one["name"] == "sandbox")
    assert not kernel["ok"]

    commit_text(testbed.repository, "landlane.toml", f'{told}[sandbox]\nrequired = ["fils"]\n')
    unknown = testbed.shell.run_error("UNKNOWN_PROMISE", "exec", "--role", "code", "--", "true")
    assert "files" in unknown["hint"]
    doctor = testbed.shell.run("doctor", "--json").json()
    (found,) = (one for one in doctor["checks"] if one["name"] == "settings")
    assert "'fils' is not a promise of the sandbox" in found["found"]

    commit_text(
        testbed.repository, "landlane.toml", f'{told}[sandbox]\nrequired = ["files", "signals", "tree"]\n'
    )
    assert testbed.execute("review", "true").exit == 0


def test_a_name_and_a_task_in_use_are_refused(weak_testbed: ExecTestbed) -> None:
    testbed = weak_testbed
    task = testbed.shell.run_json("task", "add", "Long")["task"]["id"]
    words = (
        "exec",
        "--role",
        "code",
        "--task",
        task,
        "--name",
        "ann",
        "--",
        "sh",
        "-c",
        "echo up; sleep 600",
    )
    with testbed.shell.start(*words) as first:
        assert first.read_line() == "up\n"
        same_name = testbed.shell.run_error(
            "AGENT_IN_USE", "exec", "--role", "review", "--name", "ann", "--", "true", exit=3
        )
        assert same_name["holder"] == "ann"
        assert same_name["until"]
        same_task = testbed.shell.run_json("exec", "--role", "code", "--task", task, "--", "true", exit=3)
        opened = testbed.shell.run_json("workspace", "open", task, exit=3)
        assert same_task["code"] == opened["code"]
        assert same_task["holder"] == "ann"
        first.signal(15)
        assert first.end().exit == 143
    assert testbed.left_over() == []


def test_an_agent_starts_others_only_if_that_is_its_business(weak_testbed: ExecTestbed) -> None:
    shell = weak_testbed.shell
    shell.run_json("join", "boss", "--role", "orchestrator")
    shell.run_json("join", "coder", "--role", "code")
    assert shell.with_env(LANDLANE_AGENT="boss").run("exec", "--role", "test", "--", "true").exit == 0
    coder = shell.with_env(LANDLANE_AGENT="coder")
    assert coder.run("exec", "--role", "review", "--", "true").exit == 0
    coder.run_error("ROLE_FORBIDS", "exec", "--role", "test", "--", "true", exit=6)


@pytest.mark.parametrize("backend", [BackendKind.LANDLOCK, "bubblewrap"])
def test_odd_places_are_no_trouble(tmp_path: Path, backend: str) -> None:
    odd = tmp_path / "a folder with 'odd' $names"
    temporary = odd / "tmp\ndir"
    temporary.mkdir(parents=True)
    testbed = ExecTestbed(odd, backend)
    testbed.shell = testbed.shell.with_env(TMPDIR=str(temporary))
    try:
        ended = testbed.script(
            "code",
            "umask 077; echo x > src/odd.py; landlane claim src/odd.py; landlane commit -m Odd src/odd.py",
        )
        assert ended.exit == 0, ended
        assert testbed.execute("review", "git", "status").exit == 0
        assert list(temporary.iterdir()) == []
    finally:
        testbed.close()


def find_python() -> str:
    """An interpreter that a plain user may run: ours can lie in somebody's home."""
    for name in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        check = "import sys; sys.exit(sys.version_info[:2] != tuple(map(int, sys.argv[1:])))"
        wanted = map(str, sys.version_info[:2])
        try:
            # By a shell: what the starter itself may reach says nothing about its children.
            words = ["sh", "-c", '"$@"', "sh", name, "-I", "-c", check, *wanted]
            done = subprocess.run(words, user=PLAIN_USER, capture_output=True, timeout=20)
        except OSError:
            continue
        if done.returncode == 0:
            return name
    pytest.skip("no Python of this version that a plain user may run")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a plain user")
@pytest.mark.parametrize("backend", [BackendKind.LANDLOCK, "bubblewrap"])
def test_a_plain_user_works_inside_too(backend: str) -> None:
    python = find_python()
    with tempfile.TemporaryDirectory(prefix="plain-") as folder:
        root = Path(folder)
        root.chmod(0o755)
        testbed = ExecTestbed(root / "place", backend)
        home = root / "home"
        home.mkdir()
        subprocess.run(["chown", "-R", f"{PLAIN_USER}:{PLAIN_USER}", folder], check=True, timeout=30)
        packages = [str(ROOT / "src"), os.path.dirname(os.path.dirname(rich.__file__))]
        surroundings = {
            **testbed.shell.environment,
            **dict.fromkeys(("HOME", "TMPDIR", "XDG_RUNTIME_DIR"), str(home)),
            "PYTHONPATH": os.pathsep.join(packages),
            "GIT_CONFIG_GLOBAL": "/dev/null",
        }
        lines = f"""
            id -u; exec >&2; echo x > src/p.py
            {python} -m landlane claim src/p.py; {python} -m landlane commit -m P src/p.py
            mkdir -p $HOME/ro/in; chmod 500 $HOME/ro/in $HOME/ro
        """
        try:
            ended = subprocess.run(
                [python, "-m", "landlane", "exec", "--role", "code", "--", "sh", "-ec", lines],
                cwd=testbed.repository,
                env={**os.environ, **surroundings},
                user=PLAIN_USER,
                group=PLAIN_USER,
                extra_groups=[],
                capture_output=True,
                text=True,
                timeout=60,
            )
            assert (ended.returncode, ended.stdout.strip()) == (0, str(PLAIN_USER)), ended
            assert all(path.lstat().st_uid == PLAIN_USER for path in root.rglob("*"))
            assert [one.name for one in home.iterdir() if one.name.startswith("landlane-")] == []
            assert "not landed" in ended.stderr
        finally:
            testbed.close()
