"""The landing check: each role tries everything it may not do, by every means of git, and nothing lands."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from landlane.errors import NotAllowed
from landlane.landing.enqueue import Submission, enqueue
from landlane.landing.model import BOUNCED, LANDED
from landlane.landing.outcomes import decide_held_entry
from landlane.roles.built_in import BUILT_IN
from landlane.sessions import join as sessions
from landlane.testing.repositories import git
from tests.support.landing import Yard

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
def yard(tmp_path: Path) -> Iterator[Yard]:
    folder = tmp_path / "main"
    folder.mkdir()
    git(folder, "init", "--quiet", "-b", "main")
    made = Yard(folder)
    made.configure("[]", files=FILES)
    yield made
    made.close()


def is_own(role: str, path: str) -> bool:
    return FOLDED.get(path, path) in OWN.get(role, ())


class Plumber:
    """Makes branches without a checkout, out of objects alone."""

    def __init__(self, yard: Yard) -> None:
        self.yard = yard
        self.folder = yard.folder

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


def force_into_queue(yard: Yard, branch: str, role: str) -> Landing:
    """Enter a branch past all that judges before the queue does, as if those guards had fallen."""
    repo = yard.repo
    name = f"{branch}-author"
    paths = tuple(yard.changed(branch))
    yard.claim(name, *paths)  # before it has a role, which would refuse that
    author = sessions.join(repo, name, role=role, may_choose_role=True).session
    submission = Submission(
        branch=branch,
        head=git(yard.folder, "rev-parse", branch).strip(),
        target="main",
        paths=paths,
        mergeable=frozenset(),
        subject="past the guards",
        machine=repo.processes.machine,
        home=yard.site.common_dir,
    )
    return enqueue(repo, author, submission)[0]


def refuse(yard: Yard, branch: str, role: str) -> NotAllowed:
    """Try to land a branch in a role: refused at the door, and by the queue when it got past that."""
    before = yard.tip
    yard.agent("ann", role=role)
    with pytest.raises(NotAllowed) as told:
        yard.enter(branch)
    assert told.value.code == "ROLE_FORBIDS", told.value
    entry = force_into_queue(yard, branch, role)
    assert yard.run() is None
    ended = yard.look(entry)
    assert (ended.state, ended.code) == (BOUNCED, "ROLE_FORBIDS"), ended
    assert ended.advice
    assert yard.tip == before
    return told.value


# ---------------------------------------------------------------------------------- each of the twelve


@pytest.mark.slow
@pytest.mark.parametrize("role", BUILT_IN)
def test_a_role_lands_what_is_its_own_and_nothing_else(yard: Yard, role: str) -> None:
    ann = yard.agent("ann", role=role)
    bad = {path: "evil\n" for path in PROBES if not is_own(role, path)}
    plumber = Plumber(yard)
    blob = plumber.blob("evil\n")
    before = yard.tip

    for number, path in enumerate(bad):
        branch = f"bad{number}"
        plumber.branch(branch, ("100644", blob, path))
        with pytest.raises(NotAllowed) as told:
            yard.enter(branch)
        assert told.value.code == "ROLE_FORBIDS", path
        assert told.value.facts["role"] == role
    entries = [force_into_queue(yard, f"bad{number}", role) for number in range(0, len(bad), 5)]
    assert yard.run() is None
    assert {(yard.look(one).state, yard.look(one).code) for one in entries} == {(BOUNCED, "ROLE_FORBIDS")}
    assert yard.tip == before

    good = dict.fromkeys(OWN.get(role, ()), "good\n")
    if not good:
        assert "land" not in BUILT_IN[role].verbs
        return
    yard.branch("good", good)
    landed = yard.land("good")
    assert (landed.state, landed.role) == (LANDED, role), landed
    assert all(yard.at(path) == "good\n" for path in good)
    with pytest.raises(NotAllowed, match="no role decides"):
        decide_held_entry(yard.repo, ann, landed.id, is_approved=True)


# -------------------------------------------------------------------------------------- tricks of git


def test_one_foreign_path_among_many_bounces_the_whole(yard: Yard) -> None:
    yard.branch("mixed", {"src/a.py": "b\n", "tests/a.py": "evil\n", "tests/deep/b.py": "evil\n"})

    told = refuse(yard, "mixed", "code")

    assert told.facts["paths"] == ["tests/a.py", "tests/deep/b.py"]


def test_the_list_of_paths_comes_back_with_the_entry(yard: Yard) -> None:
    yard.branch("mixed", {"tests/a.py": "evil\n", "tests/deep/b.py": "evil\n"})
    entry = force_into_queue(yard, "mixed", "code")
    yard.run()

    ended = yard.look(entry)
    assert "tests/a.py: the role code may not change tests/a.py" in ended.output
    assert "tests/deep/b.py" in ended.output
    assert "landlane role show code" in ended.advice


@pytest.mark.parametrize("role", ["code", "test"])
def test_moving_a_foreign_file_into_ones_own_place_changes_the_foreign_one(yard: Yard, role: str) -> None:
    foreign, own = ("tests/a.py", "src/mine.py") if role == "code" else ("src/a.py", "tests/mine.py")
    yard.branch("moved", {foreign: None, own: FILES[foreign]})

    assert refuse(yard, "moved", role).facts["paths"] == [foreign]


def test_taking_a_foreign_folder_away_is_a_change(yard: Yard) -> None:
    plumber = Plumber(yard)
    plumber.branch("gone", *(("0", "", path) for path in FILES if path.startswith("tests/")))

    refuse(yard, "gone", "code")


def test_a_mode_is_a_change(yard: Yard) -> None:
    plumber = Plumber(yard)
    plumber.branch("mode", ("100755", plumber.blob(FILES["tests/a.py"]), "tests/a.py"))

    refuse(yard, "mode", "code")


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
def test_a_link_into_what_is_not_ones_own_does_not_land(
    yard: Yard, role: str, path: str, target: str
) -> None:
    plumber = Plumber(yard)
    hop = plumber.branch("hop", ("120000", plumber.blob("../tests"), "src/hop"))
    plumber.run("update-ref", "refs/heads/main", hop)
    plumber.run("reset", "--hard", "--quiet")
    plumber.branch("link", ("120000", plumber.blob(target), path))

    assert "link" in refuse(yard, "link", role).message


def test_a_link_within_ones_own_lands(yard: Yard) -> None:
    plumber = Plumber(yard)
    plumber.branch("link", ("120000", plumber.blob("../docs/a.md"), "src/readme"))
    yard.agent("ann", role="code")

    assert yard.land("link").state == LANDED


@pytest.mark.parametrize("hidden", [False, True])
def test_a_submodule_does_not_land(yard: Yard, hidden: bool) -> None:
    if hidden:  # what would keep git from showing it
        ignore = '[submodule "sub"]\n\tpath = src/sub\n\turl = ./x\n\tignore = all\n'
        yard.commit({".gitmodules": ignore})
        git(yard.folder, "config", "diff.ignoreSubmodules", "all")
    plumber = Plumber(yard)
    plumber.branch("sub", ("160000", yard.tip, "src/sub"), ("100644", plumber.blob("b\n"), "src/a.py"))

    told = refuse(yard, "sub", "code")

    assert told.facts["paths"] == ["src/sub"]
    assert "submodule" in told.message


def test_a_role_that_may_change_protected_files_does(yard: Yard) -> None:
    yard.configure("[]", "[roles.warden]\nlike = 'refactor'\nprotected = true\n")
    yard.agent("ann", role="warden")
    yard.branch("attributes", {".gitattributes": "*.x binary\n"})

    assert yard.land("attributes").state == LANDED


def test_the_role_is_what_the_target_says_of_it_not_the_branch(yard: Yard) -> None:
    opened = "[landing]\nchecks = []\nresident = false\n[roles.code]\ndenies = []\nprotected = true\n"
    yard.branch("opened", {"landlane.toml": opened, "tests/a.py": "evil\n"})

    assert refuse(yard, "opened", "code").facts["paths"] == ["landlane.toml", "tests/a.py"]


def test_what_the_target_says_when_it_lands_counts(yard: Yard) -> None:
    yard.branch("docs", {"docs/a.md": "b\n"})
    yard.agent("ann", role="code")
    entry = yard.submit("docs")
    yard.configure("[]", "[roles.code]\ndenies = ['docs/**']\n")

    assert yard.run() is None
    ended = yard.look(entry)
    assert (ended.state, ended.code, ended.role) == (BOUNCED, "ROLE_FORBIDS", "code")


def test_replaced_objects_hide_nothing(yard: Yard) -> None:
    plumber = Plumber(yard)
    evil = plumber.branch("evil", ("100644", plumber.blob("evil\n"), "tests/a.py"))
    good = plumber.branch("good", ("100644", plumber.blob("b\n"), "src/a.py"))
    trees = [plumber.run("rev-parse", f"{commit}^{{tree}}") for commit in (evil, good)]
    plumber.run("replace", *trees)
    plumber.run("replace", evil, good)

    yard.agent("ann", role="code")
    with pytest.raises(NotAllowed) as told:
        yard.enter("evil")
    assert told.value.facts["paths"] == ["tests/a.py"]


def test_a_merge_that_smuggles_is_judged_by_its_tree(yard: Yard) -> None:
    plumber = Plumber(yard)
    own = plumber.branch("own", ("100644", plumber.blob("b\n"), "src/a.py"))
    yard.commit({"docs/a.md": "other\n"})
    index = str(yard.folder / ".git" / "index-smuggle")
    plumber.run("read-tree", "main", GIT_INDEX_FILE=index)
    plumber.run(
        "update-index", "--cacheinfo", f"100644,{plumber.blob('evil')},tests/a.py", GIT_INDEX_FILE=index
    )
    tree = plumber.run("write-tree", GIT_INDEX_FILE=index)
    commit = plumber.run("commit-tree", tree, "-p", own, "-p", "main", "-m", "Merge main")
    plumber.run("update-ref", "refs/heads/smuggle", commit)

    assert refuse(yard, "smuggle", "code").facts["paths"] == ["tests/a.py"]


def test_a_name_that_is_no_text_does_not_land(yard: Yard) -> None:
    yard.branch("odd", {os.fsdecode(b"src/\xff.py"): "x\n"})
    yard.agent("ann", role="test")

    with pytest.raises(NotAllowed):
        yard.enter("odd")


# ------------------------------------------------------------------------------- commits of nobody


def test_commits_of_nobody_are_shown_and_land(yard: Yard) -> None:
    head = yard.branch("plain", {"src/a.py": "b\n"})

    landed = yard.land("plain")

    assert (landed.state, landed.unidentified) == (LANDED, [head])


def test_who_a_commit_says_it_is_from_must_have_been_here(yard: Yard) -> None:
    ann = yard.agent("ann")
    said = "Change it\n\nLandlane-Agent: {}\nLandlane-Session: {}\n"
    yard.branch("one", {"src/a.py": "b\n"}, said.format("ann", ann.id))
    posing = yard.branch("one", {"src/a.py": "c\n"}, said.format("bob", ann.id), start="one")
    unknown = yard.branch("one", {"src/a.py": "d\n"}, said.format("bob", "s-aaaaaaaaaa"), start="one")

    assert yard.submit("one").unidentified == [unknown, posing]
