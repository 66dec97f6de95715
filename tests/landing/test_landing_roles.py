"""The landing check: each role tries everything it may not do, by every means of git, and nothing lands."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from landlane.errors import NotAllowed
from landlane.landing.decide import decide_held_entry
from landlane.landing.enqueue import Submission, enqueue
from landlane.landing.model import BOUNCED, LANDED
from landlane.roles.model import BUILT_IN
from landlane.sessions import join as sessions
from landlane.testing.repositories import git
from tests.support.landing import LandingTestbed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from landlane.landing.model import Landing

pytestmark = pytest.mark.integration

FILES = {
    "src/a.py": "a = 1\n",
    "src/test_a.py": "assert True\n",
    "tests/a.py": "assert 1\n",
    "tests/deep/b.py": "assert 2\n",
    "docs/a.md": "# A\n",
    "README.md": "# R\n",
    "CHANGELOG.md": "# C\n",
    "VERSION": "1\n",
}
# What each role may change of these; the others are somebody else's.
OWN = {
    "code": ("src/a.py", "docs/a.md", "README.md", "CHANGELOG.md", "VERSION", "new/top.py"),
    "test": ("tests/a.py", "tests/deep/b.py", "src/test_a.py", "tests/new.py"),
    "document": ("docs/a.md", "README.md", "CHANGELOG.md", "docs/new.md"),
    "refactor": (*FILES, "new/top.py", "tests/new.py"),
    "release": ("CHANGELOG.md", "VERSION", "pyproject.toml"),
}
PROTECTED = (".gitattributes", ".githooks/pre-commit", "landlane.toml", ".github/workflows/ci.yml")
PROBES = (*FILES, "new/top.py", "tests/new.py", "Tests/a.py", "src/Test_b.py", *PROTECTED)
FOLDED = {"Tests/a.py": "tests/a.py", "src/Test_b.py": "src/test_a.py"}


@pytest.fixture
def testbed(tmp_path: Path) -> Iterator[LandingTestbed]:
    folder = tmp_path / "main"
    folder.mkdir()
    git(folder, "init", "--quiet", "-b", "main")
    made = LandingTestbed(folder)
    made.configure("[]", files=FILES)
    yield made
    made.close()


def is_own(role: str, path: str) -> bool:
    return FOLDED.get(path, path) in OWN.get(role, ())


class BranchWriter:
    """Makes branches without a checkout, out of objects alone."""

    def __init__(self, testbed: LandingTestbed) -> None:
        self.testbed = testbed
        self.folder = testbed.folder

    def run(self, *words: str, stdin: str = "", **variables: str) -> str:
        done = subprocess.run(
            ["git", *words],
            cwd=self.folder,
            env={**os.environ, **variables},
            input=stdin.encode(),
            capture_output=True,
            check=True,
            timeout=60,
        )
        return done.stdout.decode().strip()

    def blob(self, text: str) -> str:
        return self.run("hash-object", "-w", "--stdin", stdin=text)

    def branch(self, name: str, *entries: tuple[str, str, str], start: str = "main") -> str:
        """A branch whose tree has these entries (mode, id, path); a mode of 0 takes a path away."""
        index = str(self.folder / ".git" / f"index-{name}")
        self.run("read-tree", start, GIT_INDEX_FILE=index)
        for mode, found, path in entries:
            words = (
                ["--add", "--cacheinfo", f"{mode},{found},{path}"]
                if mode != "0"
                else ["--force-remove", path]
            )
            self.run("update-index", *words, GIT_INDEX_FILE=index)
        tree = self.run("write-tree", GIT_INDEX_FILE=index)
        commit = self.run("commit-tree", tree, "-p", start, "-m", f"Plumbed {name}")
        self.run("update-ref", f"refs/heads/{name}", commit)
        return commit


def force_into_queue(testbed: LandingTestbed, branch: str, role: str) -> Landing:
    """Enter a branch past all that judges before the queue does, as if those guards had fallen."""
    repo = testbed.repo
    name = f"{branch}-author"
    paths = tuple(testbed.changed_paths(branch))
    testbed.claim(name, *paths)  # before it has a role, which would refuse that
    author = sessions.join(repo, name, role=role, may_choose_role=True).session
    submission = Submission(
        branch=branch,
        head=git(testbed.folder, "rev-parse", branch).strip(),
        target="main",
        paths=paths,
        mergeable=frozenset(),
        subject="past the guards",
        machine=repo.processes.machine,
        home=testbed.prepared_repo.common_dir,
    )
    return enqueue(repo, author, submission)[0]


def refuse(testbed: LandingTestbed, branch: str, role: str) -> NotAllowed:
    """Try to land a branch in a role: refused at the door, and by the queue when it got past that."""
    before = testbed.tip
    testbed.agent("ann", role=role)
    with pytest.raises(NotAllowed) as answer:
        testbed.submit_with_held_claims(branch)
    assert answer.value.code == "ROLE_FORBIDS", answer.value
    entry = force_into_queue(testbed, branch, role)
    assert testbed.run() is None
    ended = testbed.reload(entry)
    assert (ended.state, ended.code) == (BOUNCED, "ROLE_FORBIDS"), ended
    assert ended.advice
    assert testbed.tip == before
    return answer.value


# ---------------------------------------------------------------------------------- each of the twelve


@pytest.mark.slow
@pytest.mark.parametrize("role", BUILT_IN)
def test_role_lands_only_paths_that_it_may_change(testbed: LandingTestbed, role: str) -> None:
    ann = testbed.agent("ann", role=role)
    bad = {path: "evil\n" for path in PROBES if not is_own(role, path)}
    plumber = BranchWriter(testbed)
    blob = plumber.blob("evil\n")
    before = testbed.tip

    for number, path in enumerate(bad):
        branch = f"bad{number}"
        plumber.branch(branch, ("100644", blob, path))
        with pytest.raises(NotAllowed) as answer:
            testbed.submit_with_held_claims(branch)
        assert answer.value.code == "ROLE_FORBIDS", path
        assert answer.value.facts["role"] == role
    entries = [force_into_queue(testbed, f"bad{number}", role) for number in range(0, len(bad), 5)]
    assert testbed.run() is None
    assert {(testbed.reload(one).state, testbed.reload(one).code) for one in entries} == {
        (BOUNCED, "ROLE_FORBIDS")
    }
    assert testbed.tip == before

    good = dict.fromkeys(OWN.get(role, ()), "good\n")
    if not good:
        assert "land" not in BUILT_IN[role].verbs
        return
    testbed.branch("good", good)
    landed = testbed.land("good")
    assert (landed.state, landed.role) == (LANDED, role), landed
    assert all(testbed.read_file(path) == "good\n" for path in good)
    with pytest.raises(NotAllowed, match="no role decides"):
        decide_held_entry(testbed.repo, ann, landed.id, is_approved=True)


# -------------------------------------------------------------------------------------- tricks of git


def test_one_forbidden_path_refuses_the_branch(testbed: LandingTestbed) -> None:
    testbed.branch("mixed", {"src/a.py": "b\n", "tests/a.py": "evil\n", "tests/deep/b.py": "evil\n"})

    answer = refuse(testbed, "mixed", "code")

    assert answer.facts["paths"] == ["tests/a.py", "tests/deep/b.py"]


def test_the_list_of_paths_comes_back_with_the_entry(testbed: LandingTestbed) -> None:
    testbed.branch("mixed", {"tests/a.py": "evil\n", "tests/deep/b.py": "evil\n"})
    entry = force_into_queue(testbed, "mixed", "code")
    testbed.run()

    ended = testbed.reload(entry)
    assert "tests/a.py: the role code may not change tests/a.py" in ended.output
    assert "tests/deep/b.py" in ended.output
    assert "landlane role show code" in ended.advice


@pytest.mark.parametrize("role", ["code", "test"])
def test_moving_a_foreign_file_into_ones_own_place_changes_the_foreign_one(
    testbed: LandingTestbed, role: str
) -> None:
    foreign, own = ("tests/a.py", "src/mine.py") if role == "code" else ("src/a.py", "tests/mine.py")
    testbed.branch("moved", {foreign: None, own: FILES[foreign]})

    assert refuse(testbed, "moved", role).facts["paths"] == [foreign]


def test_taking_a_foreign_folder_away_is_a_change(testbed: LandingTestbed) -> None:
    plumber = BranchWriter(testbed)
    plumber.branch("gone", *(("0", "", path) for path in FILES if path.startswith("tests/")))

    refuse(testbed, "gone", "code")


def test_a_mode_is_a_change(testbed: LandingTestbed) -> None:
    plumber = BranchWriter(testbed)
    plumber.branch("mode", ("100755", plumber.blob(FILES["tests/a.py"]), "tests/a.py"))

    refuse(testbed, "mode", "code")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("role", "path", "target"),
    [
        ("code", "src/link.py", "../tests/a.py"),
        ("code", "src/link", "../tests"),
        ("code", "link", "."),
        ("code", "src/link", "../src/hop/deep"),  # over another link that leads to the tests
        ("test", "tests/link.py", "../src/a.py"),
        ("test", "tests/link", "/etc"),
        ("test", "tests/link", "../../outside"),
        ("document", "docs/link.md", "../src/a.py"),
        ("refactor", "src/link", "../.gitattributes"),
        ("refactor", "link", ".git/hooks"),
    ],
)
def test_link_to_a_forbidden_path_does_not_land(
    testbed: LandingTestbed, role: str, path: str, target: str
) -> None:
    plumber = BranchWriter(testbed)
    hop = plumber.branch("hop", ("120000", plumber.blob("../tests"), "src/hop"))
    plumber.run("update-ref", "refs/heads/main", hop)
    plumber.run("reset", "--hard", "--quiet")
    plumber.branch("link", ("120000", plumber.blob(target), path))

    assert "link" in refuse(testbed, "link", role).message


def test_a_link_within_ones_own_lands(testbed: LandingTestbed) -> None:
    plumber = BranchWriter(testbed)
    plumber.branch("link", ("120000", plumber.blob("../docs/a.md"), "src/readme"))
    testbed.agent("ann", role="code")

    assert testbed.land("link").state == LANDED


@pytest.mark.parametrize("hidden", [False, True])
def test_a_submodule_does_not_land(testbed: LandingTestbed, hidden: bool) -> None:
    if hidden:  # what would keep git from showing it
        ignore = '[submodule "sub"]\n\tpath = src/sub\n\turl = ./x\n\tignore = all\n'
        testbed.commit({".gitmodules": ignore})
        git(testbed.folder, "config", "diff.ignoreSubmodules", "all")
    plumber = BranchWriter(testbed)
    plumber.branch("sub", ("160000", testbed.tip, "src/sub"), ("100644", plumber.blob("b\n"), "src/a.py"))

    answer = refuse(testbed, "sub", "code")

    assert answer.facts["paths"] == ["src/sub"]
    assert "submodule" in answer.message


def test_a_role_that_may_change_protected_files_does(testbed: LandingTestbed) -> None:
    testbed.configure("[]", "[roles.warden]\nlike = 'refactor'\nprotected = true\n")
    testbed.agent("ann", role="warden")
    testbed.branch("attributes", {".gitattributes": "*.x binary\n"})

    assert testbed.land("attributes").state == LANDED


def test_roles_are_those_of_the_target_not_of_the_branch(testbed: LandingTestbed) -> None:
    opened = "[landing]\nchecks = []\nresident = false\n[roles.code]\ndenies = []\nprotected = true\n"
    testbed.branch("opened", {"landlane.toml": opened, "tests/a.py": "evil\n"})

    assert refuse(testbed, "opened", "code").facts["paths"] == ["landlane.toml", "tests/a.py"]


def test_roles_of_the_target_at_the_time_of_landing_count(testbed: LandingTestbed) -> None:
    testbed.branch("docs", {"docs/a.md": "b\n"})
    testbed.agent("ann", role="code")
    entry = testbed.submit("docs")
    testbed.configure("[]", "[roles.code]\ndenies = ['docs/**']\n")

    assert testbed.run() is None
    ended = testbed.reload(entry)
    assert (ended.state, ended.code, ended.role) == (BOUNCED, "ROLE_FORBIDS", "code")


def test_replaced_objects_hide_nothing(testbed: LandingTestbed) -> None:
    plumber = BranchWriter(testbed)
    evil = plumber.branch("evil", ("100644", plumber.blob("evil\n"), "tests/a.py"))
    good = plumber.branch("good", ("100644", plumber.blob("b\n"), "src/a.py"))
    trees = [plumber.run("rev-parse", f"{commit}^{{tree}}") for commit in (evil, good)]
    plumber.run("replace", *trees)
    plumber.run("replace", evil, good)

    testbed.agent("ann", role="code")
    with pytest.raises(NotAllowed) as answer:
        testbed.submit_with_held_claims("evil")
    assert answer.value.facts["paths"] == ["tests/a.py"]


def test_a_merge_that_smuggles_is_judged_by_its_tree(testbed: LandingTestbed) -> None:
    plumber = BranchWriter(testbed)
    own = plumber.branch("own", ("100644", plumber.blob("b\n"), "src/a.py"))
    testbed.commit({"docs/a.md": "other\n"})
    index = str(testbed.folder / ".git" / "index-smuggle")
    plumber.run("read-tree", "main", GIT_INDEX_FILE=index)
    plumber.run(
        "update-index", "--cacheinfo", f"100644,{plumber.blob('evil')},tests/a.py", GIT_INDEX_FILE=index
    )
    tree = plumber.run("write-tree", GIT_INDEX_FILE=index)
    commit = plumber.run("commit-tree", tree, "-p", own, "-p", "main", "-m", "Merge main")
    plumber.run("update-ref", "refs/heads/smuggle", commit)

    assert refuse(testbed, "smuggle", "code").facts["paths"] == ["tests/a.py"]


def test_file_name_that_is_not_valid_text_does_not_land(testbed: LandingTestbed) -> None:
    testbed.branch("odd", {os.fsdecode(b"src/\xff.py"): "x\n"})
    testbed.agent("ann", role="test")

    with pytest.raises(NotAllowed):
        testbed.submit_with_held_claims("odd")


# ------------------------------------------------------------------------------- commits of nobody


def test_commits_without_a_known_session_are_listed_and_land(testbed: LandingTestbed) -> None:
    head = testbed.branch("plain", {"src/a.py": "b\n"})

    landed = testbed.land("plain")

    assert (landed.state, landed.unidentified) == (LANDED, [head])


def test_session_in_the_trailers_of_a_commit_must_exist(testbed: LandingTestbed) -> None:
    ann = testbed.agent("ann")
    said = "Change it\n\nLandlane-Agent: {}\nLandlane-Session: {}\n"
    testbed.branch("one", {"src/a.py": "b\n"}, said.format("ann", ann.id))
    posing = testbed.branch("one", {"src/a.py": "c\n"}, said.format("bob", ann.id), start="one")
    unknown = testbed.branch("one", {"src/a.py": "d\n"}, said.format("bob", "s-aaaaaaaaaa"), start="one")

    assert testbed.submit("one").unidentified == [unknown, posing]
