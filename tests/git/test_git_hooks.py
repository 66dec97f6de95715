"""Git's own hooks as guards: what they refuse to whom, whose hooks still run, and what goes on working."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from landlane.claims import take as claims
from landlane.clients.model import CLIENT_VARIABLES
from landlane.doctor.examine import examine
from landlane.doctor.try_git_hooks import check_git_hooks
from landlane.errors import NotAllowed
from landlane.git.hook_pass import hooks_folder
from landlane.git.shared_config import find_config_damage
from landlane.journal.read import read_entries
from landlane.sessions.join import join
from landlane.setup.init import InitOptions, carry_out, plan_init, plan_undo
from landlane.setup.install_git_hooks import (
    COMMITS,
    PUSHES,
    TARGET,
    git_hooks_to_change,
    install_git_hooks,
    remove_git_hooks,
)
from landlane.workspaces.commit import commit, make_commit_request
from tests.support.landing import LandingTestbed
from tests.support.processes import is_stopped
from tests.support.project import let_time_pass
from tests.support.resident import ResidentTestbed, copy_package
from tests.support.waiting import wait_until
from tests.support.workspaces import KINDS, WorkspaceTestbed, add_remote

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from landlane.git.discovery import Checkout

pytestmark = pytest.mark.integration

PLACES = ("branch", "clone", "detached", "merge")[: 4 if "LANDLANE_STOPS" in os.environ else 2]
DAY_MS = 24 * 3600 * 1000
LANDING = "[landing]\nchecks = []\nresident = false\n"


class HookedRepository(WorkspaceTestbed):
    """A repository whose git runs our hooks."""

    @property
    def home(self) -> Checkout:
        return self.repo().checkout.home_checkout

    def install(self) -> None:
        install_git_hooks(self.home)

    def hold(self, agent: str, pattern: str) -> None:
        repo = self.repo(agent)
        request = claims.make_request(repo, (repo.git.pattern(pattern),))
        claims.take(repo, self.session(agent), request)

    def git(
        self, *words: str, at: Path | str | None = None, agent: str = "", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        given = {**os.environ, "GIT_EDITOR": "true", **variables}
        if agent:
            given["LANDLANE_AGENT"] = agent
        command = ["git", "-c", "protocol.file.allow=always", *words]
        return subprocess.run(
            command, cwd=at or self.repository, capture_output=True, text=True, timeout=60, env=given
        )

    def ok(self, *words: str, **more: Any) -> str:
        done = self.git(*words, **more)
        assert not done.returncode, (words, done.stderr)
        return done.stdout

    def refused(self, *words: str, **more: Any) -> str:
        done = self.git(*words, **more)
        assert done.returncode, (words, done.stdout)
        assert "Landlane refused" in done.stderr, done.stderr
        return done.stderr

    def stage(self, path: str, text: str = "text\n", at: Path | str | None = None) -> None:
        root = self.repository if at is None else type(self.repository)(at)
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
        self.ok("add", path, at=str(root))

    def hook(self, name: str, script: str, folder: Path | None = None) -> None:
        path = (folder or self.repository / ".git" / "hooks") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def guard(self) -> None:
        """Let the queue be the only one to move main."""
        self.write_settings(LANDING)

    def tip(self, branch: str = "main") -> str:
        return self.ok("rev-parse", branch).strip()

    def caught(self, kind: str = "rule.violated") -> list[dict[str, object]]:
        return [entry.facts() for entry in read_entries(self.repo()) if entry.kind == kind]


@pytest.fixture
def testbed(repository: Path) -> Iterator[HookedRepository]:
    made = HookedRepository(repository)
    made.install()
    yield made
    made.end()


# ------------------------------------------------------------------------------------------- in and out


@pytest.mark.promise(
    "git-hooks.undone-exactly",
    "Removing our git hooks restores the config file byte for byte.",
)
@pytest.mark.parametrize(
    "config",
    [
        "[core]\n\tbare = false\n",
        "[core]\n\tbare = false\n\thooksPath = .husky # ours\n[user]\n\tname = x\n",
        "[user]\n\tname = x",
        "[core] bare = false\n[core]\n\tHooksPath=hooks\n[core]\n\thookspath = other\n",
    ],
)
def test_undo_restores_the_config_byte_for_byte(repository: Path, config: str) -> None:
    testbed = HookedRepository(repository)
    path = repository / ".git" / "config"
    home = testbed.home
    path.write_text(config, encoding="utf-8")

    install_git_hooks(home)
    install_git_hooks(home)
    assert not git_hooks_to_change(home)
    assert testbed.ok("config", "core.hooksPath").strip() == hooks_folder(home.common_dir)
    assert not find_config_damage(home)
    remove_git_hooks(home)

    if config.count("ooks") < 3:  # of several values git keeps one
        assert path.read_text(encoding="utf-8") == config
    assert testbed.git("config", "core.hooksPath").stdout.strip() in ("", ".husky", "other")
    assert not os.path.exists(hooks_folder(home.common_dir))
    testbed.end()


@pytest.mark.parametrize("name", ["a\tb", "a\bb", "a\x0cb\u2028c", 'a "b" \\n # c'])
def test_odd_letters_in_the_path_reach_git_unchanged(repository: Path, name: str) -> None:
    odd = repository.rename(repository.with_name(name))
    config = (odd / ".git" / "config").read_bytes()
    testbed = HookedRepository(odd)
    testbed.install()
    assert testbed.ok("config", "-z", "core.hooksPath") == hooks_folder(str(odd / ".git")) + "\0"
    testbed.hold("ann", "a.py")
    testbed.stage("a.py")
    assert "claimed by ann" in testbed.refused("commit", "-q", "-m", "Work")

    remove_git_hooks(testbed.home)
    assert (odd / ".git" / "config").read_bytes() == config
    testbed.end()


def test_undo_keeps_settings_that_others_made_meanwhile(repository: Path) -> None:
    testbed = HookedRepository(repository)
    path = repository / ".git" / "config"
    before = path.read_text(encoding="utf-8")
    testbed.install()
    testbed.ok("config", "alias.st", "status")

    remove_git_hooks(testbed.home)

    assert path.read_text(encoding="utf-8") == before + "[alias]\n\tst = status\n"
    testbed.end()


def test_a_moved_repository_gets_its_hooks_back(testbed: HookedRepository) -> None:
    testbed.end()
    moved = testbed.repository.with_name("moved")
    testbed.repository.rename(moved)
    there = HookedRepository(moved)

    there.prepared_repo()

    assert there.ok("config", "core.hooksPath").strip() == str(moved / ".git" / "landlane-hooks")
    there.end()


# --------------------------------------------------------------------------------------------- commits


def test_a_person_without_company_commits_freely(testbed: HookedRepository) -> None:
    for number in range(3):  # the first takes the ordinary road, the others the quick one
        testbed.stage("a.py", f"{number}\n")
        testbed.ok("commit", "-q", "-m", "Work")
    assert not testbed.caught()


def test_a_commit_of_a_held_path_is_refused_to_everybody_but_its_holder(testbed: HookedRepository) -> None:
    testbed.stage("b.py")
    testbed.ok("commit", "-q", "-m", "The quick road is open now")
    testbed.hold("ann", "a.py")
    testbed.stage("a.py")

    said = testbed.refused("commit", "-q", "-m", "Work", agent="bob")
    assert "a.py is claimed by ann" in said
    assert "OVERRIDE" not in said
    assert "claimed by ann" in testbed.refused("commit", "-q", "-m", "Work")
    assert [one["rule"] for one in testbed.caught()] == ["claim before you change"] * 2
    assert {one["guard"] for one in testbed.caught()} == {"git hook"}

    testbed.ok("commit", "-q", "-m", "Work", agent="ann")


@pytest.mark.promise(
    "git-hooks.late-commits",
    "A plain git commit is checked again when its branch moves: a claim lost in the editor refuses it.",
)
@pytest.mark.soak
@pytest.mark.parametrize("where", PLACES)
def test_a_claim_that_is_lost_in_the_editor_refuses_the_commit(testbed: HookedRepository, where: str) -> None:
    at: Path | str = testbed.repository
    if where == "clone":
        at = testbed.open(kind="clone").workspace.path
    elif where == "detached":
        testbed.ok("switch", "--quiet", "--detach")
    else:
        testbed.ok("switch", "--quiet", "-c", "topic")
    if where == "merge":
        testbed.stage("other.py", at=at)
        testbed.ok("commit", "-qm", "Other", agent="ann")
        testbed.ok("switch", "--quiet", "-c", "side", "HEAD~1")
        testbed.stage("side.py", at=at)
        testbed.ok("commit", "-qm", "Side", agent="ann")
        testbed.ok("merge", "--quiet", "--no-commit", "--no-ff", "topic")
    testbed.hold("ann", "src/a.py")
    testbed.stage("src/a.py", at=at)
    before = testbed.ok("rev-parse", "HEAD", at=at)
    pid_file = testbed.repository.parent / "editor"
    editor = f'echo $$ >{pid_file}.new; mv {pid_file}.new {pid_file}; kill -STOP $$; echo late >"$0"'
    environment = {**os.environ, "LANDLANE_AGENT": "ann", "GIT_EDITOR": f"sh -c {shlex.quote(editor)}"}
    committing = subprocess.Popen(
        ["git", "commit", "--quiet"], cwd=at, env=environment, stderr=subprocess.PIPE, text=True
    )
    wait_until(pid_file.exists)
    pid = int(pid_file.read_text(encoding="utf-8"))
    wait_until(lambda: is_stopped(pid))

    let_time_pass(testbed.repo().store, DAY_MS)
    testbed.hold("bob", "src/a.py")
    os.kill(pid, signal.SIGCONT)
    _, errors = committing.communicate(timeout=60)

    assert committing.returncode
    assert "Landlane refused this commit: your claim on src/a.py ended" in errors
    assert "bob has claimed it since [LEASE_OVER]" in errors
    assert testbed.ok("rev-parse", "HEAD", at=at) == before
    assert "src/a.py" in testbed.ok("diff", "--cached", "--name-only", at=at)


def test_paths_that_a_users_hook_adds_are_checked(testbed: HookedRepository) -> None:
    testbed.ok("switch", "--quiet", "-c", "topic")
    testbed.hold("bob", "theirs.py")
    testbed.hook("pre-commit", "echo x >theirs.py; git add theirs.py")
    testbed.stage("mine.py")
    assert "theirs.py" in testbed.refused("commit", "-qm", "Work", agent="ann")


def test_an_amended_message_needs_no_claim_again(testbed: HookedRepository) -> None:
    testbed.ok("switch", "--quiet", "-c", "topic")
    testbed.stage("a.py")
    testbed.ok("commit", "-qm", "Work", agent="ann")
    testbed.hold("bob", "a.py")
    testbed.ok("commit", "--amend", "-qm", "Better", agent="ann")


def test_both_ends_of_a_rename_count(testbed: HookedRepository) -> None:
    testbed.stage("old.py", "some text that git knows again\n")
    testbed.ok("commit", "-q", "-m", "Work")
    testbed.hold("ann", "old.py")
    testbed.ok("mv", "old.py", "new.py")

    assert "old.py is claimed" in testbed.refused("commit", "-q", "-m", "Move", agent="bob")


def test_unclaimed_paths_are_refused_where_a_claim_is_required(testbed: HookedRepository) -> None:
    testbed.write_settings('[claims]\nrequired = ["src/**"]\n')
    testbed.hold("ann", "elsewhere")
    testbed.stage("src/a.py")
    assert "src/a.py is not claimed" in testbed.refused("commit", "-q", "-m", "Work", agent="bob")
    testbed.hold("bob", "src/**")
    testbed.ok("commit", "-q", "-m", "Work", agent="bob")
    testbed.stage("docs/a.md")
    testbed.ok("commit", "-q", "-m", "Work", agent="bob")


def test_policy_strict_wants_a_claim_for_everything(testbed: HookedRepository) -> None:
    testbed.write_settings('[hooks]\npolicy = "strict"\n[claims]\nfree = ["scratch/**"]\n')
    testbed.session("bob")
    testbed.stage("docs/a.md")
    assert "docs/a.md is not claimed" in testbed.refused("commit", "-q", "-m", "Work", agent="bob")
    testbed.ok("reset", "-q")
    testbed.stage("scratch/a.md")
    testbed.ok("commit", "-q", "-m", "Work", agent="bob")


def test_a_role_that_does_not_commit_or_write_there_is_refused(testbed: HookedRepository) -> None:
    join(testbed.repo(), "rex", role="review")
    join(testbed.repo(), "cody", role="code")
    testbed.stage("tests/test_a.py")
    assert "refused" in testbed.refused("commit", "-q", "-m", "Work", agent="rex")
    assert "tests/test_a.py" in testbed.refused("commit", "-q", "-m", "Work", agent="cody")
    assert [one["rule"] for one in testbed.caught()] == ["stay in your role"] * 2
    testbed.ok("reset", "-q")
    testbed.stage("src/a.py")
    testbed.ok("commit", "-q", "-m", "Work", agent="cody")


def test_merge_is_checked_only_for_its_own_changes(testbed: HookedRepository) -> None:
    testbed.stage("a.py", "base\n")
    testbed.ok("commit", "-q", "-m", "Base")
    testbed.ok("switch", "-q", "-c", "topic")
    testbed.stage("a.py", "mine\n")
    testbed.ok("commit", "-q", "-m", "Mine", agent="bob")
    testbed.ok("switch", "-q", "main")
    testbed.stage("a.py", "theirs\n")
    testbed.stage("b.py", "theirs\n")
    testbed.ok("commit", "-q", "-m", "Theirs", agent="ann")
    testbed.hold("ann", "b.py")
    testbed.ok("switch", "-q", "topic")
    assert testbed.git("merge", "-q", "main", agent="bob").returncode
    testbed.stage("a.py", "both\n")

    testbed.ok("commit", "-q", "-m", "Merge", agent="bob")


@pytest.mark.promise(
    "git-hooks.foreign-paths",
    "A plain git commit of a path that another session holds is refused, in every checkout.",
)
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_git_hooks_refuse_in_every_workspace(testbed: HookedRepository, kind: str) -> None:
    opened = testbed.open(kind=kind, agent="bob").workspace
    testbed.hold("ann", "a.py")
    testbed.stage("a.py", at=opened.path)

    assert "claimed by ann" in testbed.refused("commit", "-q", "-m", "Work", at=opened.path, agent="bob")
    testbed.ok("reset", "-q", at=opened.path)
    testbed.stage("b.py", at=opened.path)
    testbed.ok("commit", "-q", "-m", "Work", at=opened.path, agent="bob")
    testbed.stage("b.py", "again\n", at=opened.path)
    testbed.ok("commit", "-q", "--amend", "-m", "Work", at=opened.path, agent="bob")


def test_a_clone_made_before_gets_the_hooks_and_loses_them_again(repository: Path) -> None:
    testbed = HookedRepository(repository)
    testbed.hook("post-commit", "exit 0")
    opened = testbed.open(kind="clone").workspace
    before = testbed.ok("config", "core.hooksPath", at=opened.path)

    install_git_hooks(testbed.home, [opened.path])
    assert testbed.ok("config", "core.hooksPath", at=opened.path).strip() == hooks_folder(
        testbed.home.common_dir
    )
    later = testbed.open(kind="clone").workspace
    remove_git_hooks(testbed.home, [opened.path, later.path])

    assert testbed.ok("config", "core.hooksPath", at=opened.path) == before
    assert testbed.ok("config", "core.hooksPath", at=later.path) == before
    testbed.end()


def test_our_own_commit_passes_and_runs_the_users_hook_once(testbed: HookedRepository) -> None:
    log = testbed.repository / ".git" / "log"
    testbed.hook("pre-commit", f'echo "pre $LANDLANE_PASS" >> "{log}"')
    testbed.guard()
    log.unlink()
    testbed.hold("ann", "a.py")
    (testbed.repository / "a.py").write_text("text\n", encoding="utf-8")
    repo = testbed.prepared_repo()
    commit_request = make_commit_request(repo, ["a.py"], str(testbed.repository), message="Work")
    with pytest.raises(NotAllowed) as refused:
        commit(repo, testbed.session("ann"), commit_request)
    assert refused.value.code == "TARGET_GUARDED"
    assert not log.exists()

    testbed.ok("switch", "-q", "-c", "topic")
    commit(repo, testbed.session("ann"), commit_request)

    assert log.read_text(encoding="utf-8") == "pre \n"


# ------------------------------------------------------------------------------------ the user's own hooks


@pytest.mark.promise(
    "git-hooks.own-hooks-run",
    "Every git hook of the user still runs, with git's own arguments and input.",
)
def test_every_hook_of_the_user_still_runs_with_gits_own_input(testbed: HookedRepository) -> None:
    log = testbed.repository / ".git" / "log"
    for name in ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "post-checkout"):
        testbed.hook(name, f'echo "{name} $# $PWD" >> "{log}"')
    testbed.hook("reference-transaction", f'[ "$1" = prepared ] && sed "s/^/ref /" >> "{log}"; exit 0')
    testbed.hook("pre-push", f'sed "s/^/push $1 /" >> "{log}"')
    testbed.stage("a.py")
    testbed.ok("commit", "-q", "-m", "Work")
    head, before = testbed.tip(), testbed.tip("HEAD~1")
    root = testbed.repository

    assert log.read_text(encoding="utf-8").splitlines() == [
        f"pre-commit 0 {root}",
        f"prepare-commit-msg 2 {root}",
        f"commit-msg 1 {root}",
        f"ref {before} {head} HEAD",
        f"ref {before} {head} refs/heads/main",
        f"post-commit 0 {root}",
    ]
    log.unlink()
    remote = add_remote(testbed.repository)
    log.unlink(missing_ok=True)
    testbed.ok("push", "-q", "origin", "HEAD:refs/heads/other")
    assert f"push origin HEAD {head} refs/heads/other {'0' * 40}" in log.read_text(encoding="utf-8")
    assert remote.exists()


@pytest.mark.parametrize("name", ["pre-commit", "commit-msg", "reference-transaction"])
def test_a_hook_of_the_user_that_says_no_is_obeyed(testbed: HookedRepository, name: str) -> None:
    before = testbed.tip()
    testbed.hook(name, "echo 'not like this' >&2; exit 7")
    testbed.stage("a.py")
    done = testbed.git("commit", "-q", "-m", "Work")
    assert done.returncode
    assert "not like this" in done.stderr
    assert testbed.tip() == before


@pytest.mark.slow
@pytest.mark.parametrize("is_relative", [True, False])
def test_hooks_of_a_former_hooks_path_go_on_running(repository: Path, is_relative: bool) -> None:
    testbed = HookedRepository(repository)
    folder = repository / ".husky"
    testbed.ok("config", "core.hooksPath", ".husky" if is_relative else str(folder))
    testbed.install()
    testbed.hook("pre-commit", f'echo ran >> "{repository / ".git" / "log"}"', folder)  # added later
    testbed.ok("add", ".husky")
    testbed.ok("commit", "-q", "-m", "Hooks")
    worktree = repository.with_name("tree")
    testbed.ok("worktree", "add", "-q", "-b", "side", str(worktree))
    testbed.stage("b.py", at=worktree)
    testbed.ok("commit", "-q", "-m", "Work", at=worktree)

    assert (repository / ".git" / "log").read_text(encoding="utf-8") == "ran\nran\n"
    remove_git_hooks(testbed.home)
    assert testbed.ok("config", "core.hooksPath").strip() == (".husky" if is_relative else str(folder))
    testbed.end()


# -------------------------------------------------------------------------------------------- the override


@pytest.mark.promise(
    "git-hooks.person-overrides",
    "A person can override a git hook with a reason that is recorded; an agent cannot.",
)
def test_a_person_overrides_with_a_reason_that_is_kept(testbed: HookedRepository) -> None:
    testbed.guard()
    testbed.hold("ann", "a.py")
    testbed.stage("a.py")
    assert "LANDLANE_OVERRIDE" in testbed.refused("commit", "-q", "-m", "Work")

    testbed.ok("commit", "-q", "-m", "Work", LANDLANE_OVERRIDE="ann is on leave")

    (entry,) = testbed.caught("guard.overridden")
    assert entry["reason"] == "ann is on leave"
    assert entry["paths"] == ["a.py"]


def test_an_agent_cannot_override(testbed: HookedRepository) -> None:
    testbed.hold("ann", "a.py")
    testbed.stage("a.py")
    said = testbed.refused("commit", "-q", "-m", "Work", agent="bob", LANDLANE_OVERRIDE="I want to")
    assert "only a person" in said
    joined = join(testbed.repo(), "eve")
    shown = f"{joined.session.id}:{joined.secret}"
    said = testbed.refused("commit", "-q", "-m", "x", LANDLANE_SESSION=shown, LANDLANE_OVERRIDE="I want to")
    assert "only a person" in said
    assert not testbed.caught("guard.overridden")


@pytest.mark.parametrize("variable", CLIENT_VARIABLES)
def test_git_inside_a_client_cannot_override(testbed: HookedRepository, variable: str) -> None:
    testbed.hold("ann", "a.py")
    testbed.stage("a.py")
    variables = {variable: "1", "LANDLANE_OVERRIDE": "I want to"}
    assert f"{variable} is set" in testbed.refused("commit", "-q", "-m", "x", **variables)
    assert not testbed.caught("guard.overridden")


def test_a_registered_ancestor_is_an_agent_whatever_it_says(testbed: HookedRepository) -> None:
    testbed.hold("ann", "a.py")
    testbed.stage("a.py")
    script = (
        "import os, subprocess, sys\n"
        "from landlane.app.open import open_repository\n"
        "from landlane.sessions.join import join\n"
        "context = open_repository('.')\n"
        "join(context, 'bob', process=context.processes.current())\n"
        "os.environ['LANDLANE_OVERRIDE'] = 'please'\n"
        "sys.exit(subprocess.run(['git', 'commit', '-q', '-m', 'Work']).returncode)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=testbed.repository, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert "only a person can override that: this is the session of bob" in done.stderr


def test_agent_known_by_its_process_commits_only_claimed_paths(testbed: HookedRepository) -> None:
    opened = testbed.open(agent="bob").workspace
    testbed.hold("bob", "b.py")
    testbed.hold("ann", "a.py")
    script = (
        "import subprocess\n"
        "from landlane.app.open import open_repository\n"
        "from landlane.sessions.join import join\n"
        "context = open_repository('.')\n"
        "join(context, 'bob', process=context.processes.current())\n"
        "for path in ('b.py', 'b.py', 'b.py', 'a.py'):\n"
        "    open(path, 'a').write('more')\n"
        "    subprocess.run(['git', 'add', path], check=True)\n"
        "    print(subprocess.run(['git', 'commit', '-q', '-m', 'Work']).returncode, flush=True)\n"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=opened.path, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["0", "0", "0", "1"], done.stderr
    assert "a.py is claimed by ann" in done.stderr


# ----------------------------------------------------------------------------------------- the target branch


def test_the_first_landing_settings_are_committed_by_hand(testbed: HookedRepository) -> None:
    testbed.guard()
    testbed.stage("a.py")
    refusal = "Landlane refused this commit: main changes only through landing [TARGET_GUARDED]\n"
    assert refusal in testbed.refused("commit", "-q", "-m", "Work")


WAYS = {
    "commit": [("commit", "-q", "--allow-empty", "-m", "x")],
    "commit without hooks": [("commit", "-q", "--no-verify", "--allow-empty", "-m", "x")],
    "amend": [("commit", "-q", "--no-verify", "--amend", "-m", "x")],
    "merge": [("merge", "-q", "topic")],
    "merge commit": [("merge", "-q", "--no-ff", "-m", "x", "topic")],
    "pull": [("pull", "-q", "--ff-only", ".", "topic")],
    "push": [("config", "receive.denyCurrentBranch", "ignore"), ("push", "-q", ".", "topic:main")],
    "forced push": [("config", "receive.denyCurrentBranch", "ignore"), ("push", "-q", ".", "+main~1:main")],
    "reset": [("reset", "-q", "--hard", "main~1")],
    "rebase": [("rebase", "-q", "--onto", "topic", "main~1", "main")],
    "cherry-pick": [("cherry-pick", "topic")],
    "revert": [("revert", "--no-edit", "HEAD")],
    "rename": [("branch", "-m", "main", "other")],
    "rename over": [("switch", "-q", "--detach"), ("branch", "-M", "topic", "main")],
    "delete": [("switch", "-q", "--detach"), ("branch", "-q", "-D", "main")],
    "branch -f": [("switch", "-q", "--detach"), ("branch", "-q", "-f", "main", "topic")],
    "update-ref": [("update-ref", "refs/heads/main", "topic")],
    "update-ref -d": [("update-ref", "-d", "refs/heads/main")],
    "fetch": [("switch", "-q", "--detach"), ("fetch", "-q", ".", "topic:main")],
    "checkout -B": [("checkout", "-q", "-B", "main", "topic")],
}


@pytest.mark.promise(
    "git-hooks.target",
    "Once the target branch has landing checks, no git command outside the queue moves, renames or deletes "
    "it.",
)
@pytest.mark.slow
@pytest.mark.parametrize("is_packed", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_nothing_but_the_queue_moves_the_target(testbed: HookedRepository, way: str, is_packed: bool) -> None:
    testbed.guard()
    testbed.ok("switch", "-q", "-c", "topic")
    testbed.stage("topic.py")
    testbed.ok("commit", "-q", "-m", "Topic")
    testbed.ok("switch", "-q", "main")
    if is_packed:
        testbed.ok("pack-refs", "--all")
    before = testbed.tip()
    *first, last = WAYS[way]
    for words in first:
        testbed.ok(*words)

    done = testbed.git(*last)

    assert testbed.tip() == before, (done.stdout, done.stderr)
    assert done.returncode, (done.stdout, done.stderr)
    assert "main changes only through landing" in done.stderr


@pytest.mark.slow
def test_linked_worktree_does_not_bypass_the_hooks(testbed: HookedRepository) -> None:
    testbed.guard()
    opened = testbed.open(agent="bob").workspace
    testbed.stage("b.py", at=opened.path)
    testbed.ok("commit", "-q", "-m", "Work", at=opened.path, agent="bob")
    before = testbed.tip()
    testbed.ok("config", "receive.denyCurrentBranch", "ignore")
    for words in (("update-ref", "refs/heads/main", "HEAD"), ("push", "-q", ".", "HEAD:main")):
        said = testbed.refused(*words, at=opened.path, agent="bob", LANDLANE_OVERRIDE="x")
        assert "changes only through landing" in said
    assert testbed.tip() == before


def test_a_clone_cannot_push_into_the_target(testbed: HookedRepository) -> None:
    testbed.guard()
    testbed.ok("switch", "-q", "--detach")
    opened = testbed.open(agent="bob", kind="clone").workspace
    testbed.stage("b.py", at=opened.path)
    testbed.ok("commit", "-q", "-m", "Work", at=opened.path, agent="bob")
    before = testbed.tip()
    for more in ((), ("--no-verify",)):
        assert "changes only through landing" in testbed.refused(
            "push", *more, "home", "HEAD:main", at=opened.path, agent="bob"
        )
    assert testbed.tip() == before


def test_local_target_may_follow_the_remote(testbed: HookedRepository) -> None:
    testbed.guard()
    remote = add_remote(testbed.repository)
    clone = testbed.repository.with_name("colleague")
    testbed.ok("clone", "-q", str(remote), str(clone), at=testbed.repository.parent)
    testbed.stage("a.py", at=clone)
    testbed.ok("commit", "-q", "-m", "Landed", at=clone)
    testbed.ok("push", "-q", "origin", "main", at=clone)

    testbed.ok("pull", "-q", "--ff-only")
    testbed.stage("b.py")
    assert "changes only through landing" in testbed.refused("commit", "-q", "-m", "Work")


@pytest.mark.slow
def test_the_queue_itself_moves_the_target(repository: Path) -> None:
    landing = LandingTestbed(repository)
    install_git_hooks(landing.repo.checkout.home_checkout)
    landing.configure()
    landing.branch("one", {"b.txt": "b\n"})
    landing.branch("two", {"c.txt": "c\n"})
    before = landing.tip

    assert landing.land("one").state == "landed"
    assert landing.land("two", "bob").state == "landed"

    assert landing.tip != before
    kinds = [entry.kind for entry in read_entries(landing.repo)]
    assert "rule.violated" not in kinds
    landing.close()


# --------------------------------------------------------------------------------------- branches of others


@pytest.mark.promise(
    "git-hooks.branches-of-others",
    "The branch of another session's workspace can be neither deleted nor rewound.",
)
@pytest.mark.slow
@pytest.mark.parametrize("is_packed", [True, False])
def test_the_branch_of_anothers_workspace_is_neither_deleted_nor_rewound(
    testbed: HookedRepository, is_packed: bool
) -> None:
    opened = testbed.open(agent="ann").workspace
    testbed.stage("a.py", at=opened.path)
    testbed.ok("commit", "-q", "-m", "Work", at=opened.path, agent="ann")
    if is_packed:
        testbed.ok("pack-refs", "--all")
    ref = f"refs/heads/{opened.branch}"
    before = testbed.tip(ref)
    for words in (
        ("update-ref", "-d", ref),
        ("update-ref", ref, "main"),
        ("push", "-q", ".", f"+main:{ref}"),
        ("push", "-q", ".", f":{ref}"),
    ):
        assert "ann's workspace" in testbed.refused(*words, agent="bob")
    reset = testbed.refused("reset", "-q", "--hard", "HEAD~1", at=opened.path, agent="bob")
    assert "ann's workspace" in reset
    assert testbed.tip(ref) == before
    assert {one["rule"] for one in testbed.caught()} == {"leave the work of others alone"}
    testbed.ok("reset", "-q", "--hard", "HEAD~1", at=opened.path, agent="ann")


@pytest.mark.slow
def test_a_branch_that_is_checked_out_elsewhere_is_left_alone(testbed: HookedRepository) -> None:
    worktree = testbed.repository.with_name("tree")
    testbed.ok("worktree", "add", "-q", "-b", "side", str(worktree))
    assert f"checked out at {worktree}" in testbed.refused("update-ref", "-d", "refs/heads/side")
    testbed.ok("update-ref", "-d", "refs/heads/side", LANDLANE_OVERRIDE="it is mine")
    testbed.ok("branch", "free")
    testbed.ok("branch", "-q", "-D", "free")


@pytest.mark.slow
def test_pushes_past_the_queue_and_over_others_are_refused(testbed: HookedRepository) -> None:
    remote = add_remote(testbed.repository)
    testbed.guard()
    testbed.ok("push", "-q", "origin", "main")  # with it the remote has the settings
    opened = testbed.open(agent="ann").workspace
    testbed.ok("push", "-q", "origin", f"{opened.branch}:{opened.branch}", agent="ann")
    testbed.ok("switch", "-q", "-c", "topic")
    testbed.stage("a.py")
    testbed.ok("commit", "-q", "-m", "Work")

    assert "changes only through landing" in testbed.refused("push", "-q", "origin", "topic:main")
    assert "ann's workspace" in testbed.refused("push", "-q", "origin", f":{opened.branch}", agent="bob")
    orphan = testbed.ok("commit-tree", "-m", "x", "HEAD^{tree}").strip()
    forced = f"+{orphan}:refs/heads/{opened.branch}"
    assert "ann's workspace" in testbed.refused("push", "-q", "origin", forced, agent="bob")
    testbed.ok("push", "-q", "origin", "topic")
    assert remote.exists()


# ----------------------------------------------------------------------------------- what goes on working


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_ordinary_work_on_an_own_branch_is_allowed(testbed: HookedRepository, kind: str) -> None:
    testbed.guard()
    opened = testbed.open(agent="bob", kind=kind).workspace

    def ok(*words: str) -> str:
        return testbed.ok(*words, at=opened.path, agent="bob")

    for number in range(3):
        testbed.stage("b.py", f"{number}\n", at=opened.path)
        ok("commit", "-q", "-m", f"Work {number}")
    testbed.stage("b.py", "stashed\n", at=opened.path)
    ok("stash")
    ok("stash", "pop")
    ok("checkout", "-q", "HEAD", "--", "b.py")
    ok("rebase", "-q", "--force-rebase", "HEAD~2")
    ok("reset", "-q", "--hard", "HEAD~1")
    ok("bisect", "start", "HEAD", "HEAD~1")
    ok("bisect", "reset")
    ok("tag", "mark")
    ok("tag", "-d", "mark")
    ok("branch", "mine")
    ok("branch", "-q", "-D", "mine")
    ok("pack-refs", "--all")
    ok("gc", "--quiet")
    ok("fetch", "-q", "home" if kind == "clone" else ".", "main")
    assert not testbed.caught()


def test_packing_refs_is_not_a_deletion(testbed: HookedRepository) -> None:
    testbed.guard()
    opened = testbed.open(agent="ann").workspace
    before = (testbed.tip(), testbed.tip(opened.branch))
    testbed.ok("pack-refs", "--all", "--prune", agent="bob")
    testbed.ok("gc", "--quiet", agent="bob")
    testbed.ok("pack-refs", "--all", agent="bob")
    assert (testbed.tip(), testbed.tip(opened.branch)) == before
    assert "refs/heads/main" in (testbed.repository / ".git" / "packed-refs").read_text(encoding="utf-8")
    assert not testbed.caught()


@pytest.mark.slow
def test_workspaces_are_opened_and_closed_by_us_without_being_judged(testbed: HookedRepository) -> None:
    testbed.guard()
    for kind in KINDS:
        opened = testbed.open(agent="ann", kind=kind).workspace
        testbed.stage("a.py", at=opened.path)
        testbed.ok("commit", "-q", "-m", "Work", at=opened.path, agent="ann")
        testbed.close(opened, agent="ann")
    assert not testbed.caught()


# ---------------------------------------------------------------------------------------------- breakage


def test_a_missing_interpreter_refuses_and_says_how_to_go_on(testbed: HookedRepository) -> None:
    script = testbed.repository / ".git" / "landlane-hooks" / "pre-commit"
    text = script.read_text(encoding="utf-8")
    script.write_text(text.replace(sys.executable, "/nowhere/python"), encoding="utf-8")
    testbed.stage("a.py")
    said = testbed.refused("commit", "-q", "-m", "Work")
    assert "could not be run" in said
    assert "landlane init" in said


def test_a_killed_check_refuses(testbed: HookedRepository) -> None:
    script = testbed.repository / ".git" / "landlane-hooks" / "pre-commit"
    text = script.read_text(encoding="utf-8")
    assert sys.executable in text
    killed = f"sh -c 'kill -{signal.SIGKILL.value} $$' "
    script.write_text(text.replace(f"{sys.executable} -I", f"{killed} -I"), encoding="utf-8")
    testbed.stage("a.py")
    assert "could not be run" in testbed.refused("commit", "-q", "-m", "Work")


def test_a_broken_store_refuses(testbed: HookedRepository) -> None:
    testbed.stage("a.py")
    testbed.end()
    for name in ("store.db", "store.db-wal", "store.db-shm"):
        path = testbed.repository / ".git" / "landlane" / name
        if name == "store.db":
            path.write_bytes(b"no store at all" * 100)
        else:
            path.unlink(missing_ok=True)
    assert "refused" in testbed.refused("commit", "-q", "-m", "Work")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "reply"),
    [
        ("UPDATE meta SET value = '99' WHERE key = 'schema'", "newer Landlane"),
        ("UPDATE meta SET value = '0' WHERE key = 'schema'", "older Landlane"),
        ("PRAGMA user_version=99", "newer Landlane"),
        ("PRAGMA application_id=0x494C434B", "another program"),
    ],
)
def test_a_store_of_another_version_or_program_refuses(
    testbed: HookedRepository, command: str, reply: str
) -> None:
    for number in range(2):  # from the second commit on the fast path would allow it
        testbed.stage("a.py", f"{number}\n")
        testbed.ok("commit", "-q", "-m", "Work")
    testbed.end()
    with contextlib.closing(
        sqlite3.connect(testbed.repository / ".git" / "landlane" / "store.db")
    ) as database:
        database.execute(command)
        database.commit()
    testbed.stage("a.py", "more\n")

    assert reply in testbed.refused("commit", "-q", "-m", "Work")


@pytest.mark.slow
def test_another_target_is_guarded_at_once(testbed: HookedRepository) -> None:
    (testbed.repository / "landlane.toml").write_text(LANDING)
    testbed.ok("add", "landlane.toml")
    testbed.ok("commit", "-q", "-m", "Settings")
    testbed.ok("branch", "trunk")
    testbed.ok("switch", "-q", "-c", "topic")
    for number in range(2):  # from the second commit on the fast path would allow it
        testbed.stage("a.py", f"{number}\n")
        testbed.ok("commit", "-q", "-m", "Work")

    testbed.ok("switch", "-q", "trunk")  # a usual name, so it is the target now
    testbed.stage("a.py", "more\n")

    assert "[TARGET_GUARDED]" in testbed.refused("commit", "-q", "-m", "Work")


# ------------------------------------------------------------------------------------------ the resident


@pytest.mark.slow
def test_in_a_sandbox_the_resident_judges(testbed: HookedRepository, tmp_path: Path) -> None:
    served = ResidentTestbed(testbed.repository, copy_package(tmp_path / "package"))
    opened = testbed.open(agent="bob", kind="clone").workspace
    shown = served.join("bob")
    testbed.hold("ann", "a.py")
    variables = {"LANDLANE_SESSION": shown, "LANDLANE_RESIDENT": served.start()}
    testbed.stage("a.py", at=opened.path)

    said = testbed.refused("commit", "-q", "-m", "Work", at=opened.path, **variables, LANDLANE_OVERRIDE="x")
    assert "a.py is claimed by ann" in said
    testbed.ok("reset", "-q", at=opened.path)
    testbed.stage("b.py", at=opened.path)
    testbed.ok("commit", "-q", "-m", "Work", at=opened.path, **variables)
    testbed.guard()
    testbed.ok("config", "receive.denyCurrentBranch", "ignore")
    said = testbed.refused("push", "home", "+HEAD:main", at=opened.path, **variables)
    assert "changes only through landing" in said


def test_in_a_sandbox_without_a_resident_nothing_is_committed(
    testbed: HookedRepository, tmp_path: Path
) -> None:
    testbed.stage("a.py")
    said = testbed.refused("commit", "-q", "-m", "Work", LANDLANE_RESIDENT=str(tmp_path / "nobody"))
    assert "the resident does not answer" in said


# ---------------------------------------------------------------------------------------------- the doctor


@pytest.mark.slow
def test_the_doctor_proves_that_the_git_hooks_refuse(testbed: HookedRepository) -> None:
    add_remote(testbed.repository)
    testbed.guard()
    testbed.ok("push", "-q", "origin", "main")
    repo = testbed.repo()
    entries = len(testbed.caught())

    rows = {check.name: check for check in check_git_hooks(repo)}

    assert set(rows) == {COMMITS, PUSHES, TARGET}
    assert all(row.is_ok and row.is_enforced and "was refused" in row.found for row in rows.values()), rows
    assert len(testbed.caught()) == entries


def test_the_doctors_commit_is_refused_for_the_path_alone(testbed: HookedRepository) -> None:
    rows = {check.name: check for check in check_git_hooks(testbed.repo())}
    assert "was refused" in rows[COMMITS].found
    assert not rows[TARGET].is_enforced


def test_doctor_finds_missing_hooks(repository: Path) -> None:
    testbed = HookedRepository(repository)
    checks = check_git_hooks(testbed.repo())
    assert all(not check.is_enforced and "landlane init" in check.hint for check in checks)
    testbed.end()


def test_doctor_restores_the_hooks_path_that_another_tool_overwrote_and_keeps_its_hooks(
    testbed: HookedRepository,
) -> None:
    log = testbed.repository / ".git" / "log"
    testbed.hook("pre-commit", f'echo husky >> "{log}"', testbed.repository / ".husky")
    testbed.ok("config", "core.hooksPath", ".husky")
    repo = testbed.repo()
    assert all(not check.is_ok for check in check_git_hooks(repo))

    checks = check_git_hooks(repo, is_fixing=True)

    assert all(check.is_ok for check in checks), checks
    testbed.stage("a.py")
    testbed.ok("commit", "-q", "-m", "Work")
    assert log.read_text(encoding="utf-8") == "husky\n"
    remove_git_hooks(testbed.home)
    assert testbed.ok("config", "core.hooksPath").strip() == ".husky"


def test_the_doctor_sees_a_hook_that_cannot_run(testbed: HookedRepository) -> None:
    script = testbed.repository / ".git" / "landlane-hooks" / "pre-commit"
    script.chmod(0o644)
    repo = testbed.repo()
    assert not check_git_hooks(repo)[0].is_ok
    assert check_git_hooks(repo, is_fixing=True)[0].is_enforced


# ---------------------------------------------------------------------------------------------------- init


def test_init_puts_the_git_hooks_in_and_undo_takes_them_out(repository: Path) -> None:
    path = repository / ".git" / "config"
    before = path.read_bytes()
    chosen = InitOptions(has_clients=False)
    plan = plan_init(str(repository), chosen)
    assert ("change", str(path)) in [(line.verb, line.path) for line in plan.lines]

    assert str(path) in carry_out(plan).changed
    rows = {check.name: check for check in examine(str(repository))}
    assert rows[COMMITS].is_enforced, rows[COMMITS]
    assert rows[PUSHES].is_ok, rows[PUSHES]
    assert plan_init(str(repository), chosen).is_nothing
    undo = plan_undo(str(repository))
    assert ("restore", str(path)) in [(line.verb, line.path) for line in undo.lines]
    carry_out(undo)

    assert path.read_bytes() == before
    assert not {check.name: check for check in examine(str(repository))}[COMMITS].is_enforced
