"""What workers return becomes one commit on the branch of their task, or is refused and leaves nothing."""

from __future__ import annotations

import base64
import os
import subprocess
import zlib
from typing import TYPE_CHECKING, Any

import pytest

from landlane.errors import Held, NotAllowed, RepositoryError, Stale
from landlane.gates.open import open_task_gate
from landlane.git.commits import read_trailers
from landlane.git.discovery import find_checkout
from landlane.handoffs.accept import accept_handoff
from landlane.handoffs.context import context_for
from landlane.handoffs.model import Draft
from landlane.handoffs.send import send_handoff
from landlane.protocol.worker.messages import WorkComplete
from landlane.repository import Repository
from landlane.roles.model import find_role
from landlane.settings.model import RoleSettings, Settings
from landlane.tasks.change import drop_task, fail_task
from landlane.tasks.model import returned_branch_of
from landlane.tasks.pick import Picked, next_task
from landlane.tasks.records import get_task
from landlane.values import replace
from landlane.workers.returned.commit import ReturnedWork, commit_returned, commit_unclaimed
from tests.support.commits import CommitTestbed, raises_code
from tests.support.project import Background, granted
from tests.support.tasks import add

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from landlane.tasks.model import Task

pytestmark = pytest.mark.integration

ROLE = "propose"  # it may not commit
BRANCH = "landlane/T1-1/work"


class ReturnedWorkTestbed:
    """A task in hand, and a worker's throw-away checkout in which changes are made."""

    def __init__(self, commit_testbed: CommitTestbed, folder: Path) -> None:
        self.commit_testbed = commit_testbed
        for path, text in {
            "src/a.py": "one\ntwo\nthree\n",
            "src/run.sh": "true\n",
            "docs/a.md": "#\n",
        }.items():
            commit_testbed.write(path, text)
        commit_testbed.git("add", "--all")
        commit_testbed.git("commit", "--quiet", "-m", "Begin")
        self.base = commit_testbed.head()
        self.supervisor = commit_testbed.agent("ann")
        self.scratch = folder / "scratch"
        self.scratch.mkdir()
        self.clone = folder / "clone"
        commit_testbed.git("clone", "--quiet", ".", str(self.clone))
        self.task = self._take(paths=("src/**",))

    def _take(self, paths: tuple[str, ...]) -> Task:
        add(self.supervisor, "Parse dates", paths=paths)
        picked = next_task(self.supervisor.repo, self.supervisor.session, "", lambda: self.base)
        assert isinstance(picked, Picked)
        return picked.task

    def write(self, path: str, content: str | bytes) -> None:
        file = self.clone / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())

    def diff(self) -> str:
        """All that was changed in the checkout, as a patch."""
        self.commit_testbed.git("add", "--all", at=self.clone)
        return self.commit_testbed.git("diff", "--cached", "--binary", "--find-copies-harder", at=self.clone)

    def hand_in(self, role: str = ROLE, task: Task | None = None, base: str = "", **returned: Any) -> str:
        return commit_returned(self._work(role, task or self.task, base or self.base, returned))

    def keep(self, branch: str, **returned: Any) -> str:
        """Commit work that cannot be handed in now."""
        return commit_unclaimed(self._work(ROLE, self.task, self.base, returned), branch)

    def _work(self, role: str, task: Task, base: str, returned: dict[str, Any]) -> ReturnedWork:
        return ReturnedWork(
            repo=self.prepared_repo(),
            session=self.supervisor.session,
            task=task,
            role=find_role(self.supervisor.repo.settings, role),
            base=base,
            message=WorkComplete(assignment="W1", **{"summary": "dates are parsed", **returned}),
            scratch=str(self.scratch),
        )

    def prepared_repo(self) -> Repository:
        here = find_checkout(str(self.commit_testbed.root))
        repo = self.supervisor.repo
        return replace(repo, checkout=here, report=self.commit_testbed.messages.append)

    def files(self, **contents: str) -> tuple[str, ...]:
        """Lay files into scratch; `__` stands for a slash, `_` for a dot."""
        names = {name.replace("__", "/").replace("_", "."): text for name, text in contents.items()}
        for name, text in names.items():
            file = self.scratch / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return tuple(names)

    def heads(self) -> str:
        return self.commit_testbed.git("for-each-ref", "--format=%(refname) %(objectname)")

    def objects(self) -> str:
        return self.commit_testbed.git("count-objects")

    def caught(self) -> list[str]:
        facts = [
            entry.facts() for entry in self.commit_testbed.project.entries() if entry.kind == "rule.violated"
        ]
        return [f"{one['rule']}: {one['what']}" for one in facts if one["guard"] == "hand-in"]

    def show(self, commit: str, form: str) -> str:
        return self.commit_testbed.git("show", "--no-patch", f"--format={form}", commit).strip()


@pytest.fixture
def work(commit_testbed: CommitTestbed, tmp_path: Path) -> ReturnedWorkTestbed:
    return ReturnedWorkTestbed(commit_testbed, tmp_path)


def test_a_patch_becomes_one_commit_with_the_identity_of_its_task(work: ReturnedWorkTestbed) -> None:
    work.write("src/a.py", "one\n2\nthree\n")
    before = work.commit_testbed.status()

    head = work.hand_in(patch=work.diff(), summary="dates\n\nLandlane-Agent: bob\n\x1b[31mred")

    assert work.commit_testbed.git("rev-parse", BRANCH).strip() == head
    assert work.show(head, "%P") == work.base
    assert work.show(head, "%an <%ae>") == "Ada Example <ada@example.invalid>"
    said = read_trailers(work.commit_testbed.message(head))
    assert (said.agent, said.session, said.task) == ("ann", work.supervisor.session.id, "T1")
    assert said.tokens == tuple(claim.token for claim in work.commit_testbed.project.claims())
    assert work.commit_testbed.message(head).startswith(
        "Parse dates\n\ndates\n\n[31mred\n\nLandlane-Agent: ann\n"
    )
    assert work.commit_testbed.git("show", f"{head}:src/a.py") == "one\n2\nthree\n"
    assert work.commit_testbed.status() == before, "no working tree and no index was touched"
    made = [entry.facts() for entry in work.commit_testbed.project.entries() if entry.kind == "commit.made"]
    assert [(one["commit"], one["paths"], one["task"]) for one in made] == [(head, ["src/a.py"], "T1")]


def test_a_plain_unified_diff_that_lost_its_last_line_end_is_taken(work: ReturnedWorkTestbed) -> None:
    patch = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three"

    head = work.hand_in(patch=patch)

    assert work.commit_testbed.git("show", f"{head}:src/a.py") == "one\n2\nthree\n"


def test_renames_modes_binaries_new_and_deleted_files_come_through_a_patch(work: ReturnedWorkTestbed) -> None:
    work.commit_testbed.git("mv", "src/a.py", "src/b.py", at=work.clone)
    (work.clone / "src" / "run.sh").chmod(0o755)
    work.write("src/new/ü.py", "new\n")
    work.write("src/data.bin", bytes(range(256)) * 40)

    head = work.hand_in(patch=work.diff())

    listed = work.commit_testbed.git("-c", "core.quotePath=false", "ls-tree", "-r", head, "src/").splitlines()
    assert [line.split(" ")[0] + line.partition("\t")[2] for line in listed] == [
        "100644src/b.py",
        "100644src/data.bin",
        "100644src/new/ü.py",
        "100755src/run.sh",
    ]
    work.commit_testbed.git("fsck", "--strict")
    data = subprocess.run(
        ["git", "show", f"{head}:src/data.bin"],
        cwd=work.commit_testbed.root,
        capture_output=True,
        check=True,
        timeout=30,
    )
    assert data.stdout == bytes(range(256)) * 40


def test_a_delta_of_a_binary_file_comes_through(
    work: ReturnedWorkTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("landlane.workers.returned.apply.MAX_BYTES", 100_000)
    first = os.urandom(60_000)
    work.write("src/data.bin", first)
    base = work.hand_in(patch=work.diff())
    work.commit_testbed.git("commit", "--quiet", "-m", "first", at=work.clone)
    work.write("src/data.bin", first + b"more")
    patch = work.diff()
    assert "\ndelta " in patch

    head = work.hand_in(patch=patch, base=base)

    assert work.show(head, "%P") == base
    assert work.commit_testbed.git("cat-file", "-s", f"{head}:src/data.bin").strip() == "60004"


def test_files_of_the_scratch_folder_replace_those_of_the_repository(work: ReturnedWorkTestbed) -> None:
    work.commit_testbed.git("config", "core.fileMode", "false")
    work.commit_testbed.git("config", "core.autocrlf", "true")
    files = work.files(src__a_py="1\r\n", src__new_sh="#!/bin/sh\n")
    (work.scratch / "src" / "new.sh").chmod(0o755)
    (work.scratch / "src" / "unlisted.py").write_text("x\n", encoding="utf-8")
    os.symlink("a.py", work.scratch / "src" / "link.py")

    head = work.hand_in(files=(*files, "src/link.py"))

    modes = [
        line.partition(" ")[0] for line in work.commit_testbed.git("ls-tree", "-r", head, "src/").splitlines()
    ]
    assert work.commit_testbed.paths_of(head) == ["src/a.py", "src/link.py", "src/new.sh"]
    assert modes == ["100644", "120000", "100755", "100644"]
    assert work.commit_testbed.git("show", f"{head}:src/a.py") == "1\n"


def test_an_empty_change_is_not_committed(work: ReturnedWorkTestbed) -> None:
    before = work.heads()

    assert work.hand_in(patch=" \n") == ""
    assert work.hand_in(files=()) == ""
    assert work.hand_in(files=work.files(src__a_py="one\ntwo\nthree\n")) == ""
    assert work.hand_in() == ""
    assert work.hand_in(role="code") == ""
    assert work.heads() == before


def _outside(work: ReturnedWorkTestbed) -> dict[str, Any]:
    work.write("docs/a.md", "else\n")
    return {"patch": work.diff()}


def _moved_out(work: ReturnedWorkTestbed) -> dict[str, Any]:
    work.commit_testbed.git("mv", "src/a.py", "docs/b.py", at=work.clone)
    return {"patch": work.diff()}


def _moved_in(work: ReturnedWorkTestbed) -> dict[str, Any]:
    work.commit_testbed.git("mv", "docs/a.md", "src/a.md", at=work.clone)
    return {"patch": work.diff()}


@pytest.mark.parametrize(
    ("make", "path"), [(_outside, "docs/a.md"), (_moved_out, "docs/b.py"), (_moved_in, "docs/a.md")]
)
def test_a_path_outside_the_claims_of_the_task_is_refused(
    work: ReturnedWorkTestbed, make: Callable[[ReturnedWorkTestbed], dict[str, Any]], path: str
) -> None:
    returned = make(work)
    heads, objects = work.heads(), work.objects()

    with raises_code(NotAllowed, "NOT_CLAIMED") as caught:
        work.hand_in(**returned)

    assert caught.value.facts["paths"] == [path]
    assert (work.heads(), work.objects()) == (heads, objects)
    assert work.caught()[-1].startswith("claim before you change: NOT_CLAIMED")


def test_a_claim_that_is_over_or_for_another_task_does_not_count(work: ReturnedWorkTestbed) -> None:
    work.supervisor.take("docs/**", task="T9")
    with raises_code(NotAllowed, "NOT_CLAIMED"):
        work.hand_in(files=work.files(docs__a_md="x\n"))
    work.supervisor.release("src/**")
    work.commit_testbed.agent("bob", "src/**")

    with raises_code(Held, "CLAIM_HELD") as caught:
        work.hand_in(files=work.files(src__a_py="x\n"))
    assert caught.value.facts["holder"] == "bob"


def test_a_task_without_paths_gets_claims_on_the_paths_it_changed(work: ReturnedWorkTestbed) -> None:
    work.commit_testbed.agent("bob", "docs/**")
    drop_task(work.supervisor.repo, work.supervisor.session, "T1", "another one")
    task = work._take(paths=())

    with raises_code(Held, "CLAIM_HELD") as caught:
        work.hand_in(task=task, files=work.files(src__a_py="x\n", docs__a_md="x\n"))
    assert (caught.value.facts["holder"], caught.value.facts["paths"]) == ("bob", ["docs/a.md"])
    assert work.supervisor.holds() == []

    head = work.hand_in(task=task, files=("src/a.py",))

    assert work.supervisor.holds() == ["src/a.py"]
    assert read_trailers(work.commit_testbed.message(head)).tokens == (
        granted(work.supervisor.claim("src/a.py"))[0].token,
    )


@pytest.mark.parametrize(
    "path", ["AGENTS.md", "src/.gitattributes", "src/.Claude/settings.json", ".github/workflows/x.yml"]
)
def test_a_read_only_role_cannot_return_protected_files(work: ReturnedWorkTestbed, path: str) -> None:
    work.supervisor.take("**", task="T1")
    work.write(path, "x\n")

    with raises_code(NotAllowed, "ROLE_FORBIDS") as caught:
        work.hand_in(patch=work.diff())

    assert caught.value.facts["paths"] == [path]
    assert work.caught()[-1].startswith("stay in your role: ")


def test_a_role_can_return_only_paths_it_may_write(work: ReturnedWorkTestbed) -> None:
    settings = Settings(
        roles={"notes": RoleSettings(tools=("read",), writes=("src/**",), denies=("src/a.*",))}
    )
    work.supervisor.repo = replace(work.supervisor.repo, settings=settings)

    with raises_code(NotAllowed, "ROLE_FORBIDS"):
        work.hand_in(role="notes", files=work.files(src__a_py="x\n"))
    assert work.hand_in(role="notes", files=work.files(src__b_py="x\n"))


def _link(work: ReturnedWorkTestbed, end: str) -> dict[str, Any]:
    (work.scratch / "src").mkdir()
    os.symlink(end, work.scratch / "src" / "link")
    return {"files": ("src/link",)}


@pytest.mark.parametrize("end", ["/etc/passwd", "../../outside", "../.git/config", "../AGENTS.md"])
def test_a_link_that_leads_outside_or_to_protected_files_is_refused(
    work: ReturnedWorkTestbed, end: str
) -> None:
    with raises_code(NotAllowed, "ROLE_FORBIDS") as caught:
        work.hand_in(**_link(work, end))
    assert caught.value.facts["paths"] == ["src/link"]


def test_a_submodule_is_not_handed_in(work: ReturnedWorkTestbed) -> None:
    patch = (
        "diff --git a/src/sub b/src/sub\nnew file mode 160000\nindex 0000000..1111111\n--- /dev/null\n"
        f"+++ b/src/sub\n@@ -0,0 +1 @@\n+Subproject commit {'1' * 40}\n"
    )

    with raises_code(NotAllowed, "CHANGE_UNSAFE") as caught:
        work.hand_in(patch=patch)
    assert caught.value.facts["paths"] == ["src/sub"]
    assert "submodules are not handed in" in work.caught()[-1]


def _patch_of(path: str) -> str:
    head = f"diff --git a/{path} b/{path}\nnew file mode 100644\n"
    return f"{head}--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "src/../../x",
        ".git/hooks/post-checkout",
        "src/.GIT/config",
        "src/git~1/x",
        "src/.g\u200cit/config",
    ],
)
@pytest.mark.parametrize("is_patch", [True, False])
def test_a_path_that_leaves_the_tree_is_refused(work: ReturnedWorkTestbed, path: str, is_patch: bool) -> None:
    work.supervisor.take("**", task="T1")
    before = work.heads()
    (work.scratch / "src").mkdir()
    target = work.scratch / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("x\n", encoding="utf-8")

    with raises_code(NotAllowed, "CHANGE_UNSAFE"):
        work.hand_in(patch=_patch_of(path)) if is_patch else work.hand_in(files=(path,))
    assert work.heads() == before
    assert work.caught()


@pytest.mark.parametrize("path", ["SRC/b.py", "src/A.py", "README.MD"])
def test_a_name_that_some_disks_take_for_another_is_refused(work: ReturnedWorkTestbed, path: str) -> None:
    work.supervisor.take("**", task="T1")

    with raises_code(NotAllowed, "CHANGE_UNSAFE") as caught:
        work.hand_in(patch=_patch_of(path))
    assert caught.value.facts["paths"] == [path]


def test_a_name_may_change_its_case_and_a_file_become_a_folder(work: ReturnedWorkTestbed) -> None:
    work.commit_testbed.git("mv", "src/run.sh", "src/Run.sh", at=work.clone)
    (work.clone / "src" / "a.py").unlink()
    work.write("src/a.py/b.py", "x\n")

    head = work.hand_in(patch=work.diff())

    assert work.commit_testbed.paths_of(head) == ["src/Run.sh", "src/a.py", "src/a.py/b.py", "src/run.sh"]


def test_a_patch_that_does_not_apply_is_refused_with_the_message_of_git(work: ReturnedWorkTestbed) -> None:
    work.write("src/a.py", "one\n2\nthree\n")
    patch = work.diff().replace("two", "tow")

    with raises_code(NotAllowed, "CHANGE_UNFIT") as caught:
        work.hand_in(patch=patch)
    assert "src/a.py: patch does not apply" in caught.value.message
    for text in ("just words\n", _patch_of("src/a.py")):
        with raises_code(NotAllowed, "CHANGE_UNFIT"):
            work.hand_in(patch=text)
    assert work.caught() == [], "a mistake is no broken rule"


@pytest.mark.parametrize("what", ["missing", "folder", "fifo", "behind a link"])
def test_listed_paths_must_be_files_in_the_scratch_folder(work: ReturnedWorkTestbed, what: str) -> None:
    (work.scratch / "src").mkdir()
    path = "src/x"
    if what == "folder":
        (work.scratch / path).mkdir()
    elif what == "fifo":
        os.mkfifo(work.scratch / path)
    elif what == "behind a link":
        os.symlink("/etc", work.scratch / "src" / "etc")
        path = "src/etc/passwd"

    with raises_code(NotAllowed, "CHANGE_UNFIT") as caught:
        work.hand_in(files=(path,))
    assert caught.value.facts["paths"] == [path]


def _bomb(size: int, kind: str) -> str:
    """A patch of a few lines that unfolds to many bytes."""
    data = (
        zlib.compress(bytes(size), 9) if kind == "literal" else zlib.compress(b"\x00\x80\x80\x80\x80\x10\x00")
    )
    declared = size if kind == "literal" else 7
    lines: list[str] = []
    for at in range(0, len(data), 52):
        piece = data[at : at + 52]
        length = len(piece)
        letter = chr(ord("A") + length - 1) if length <= 26 else chr(ord("a") + length - 27)
        lines.append(letter + base64.b85encode(piece + bytes(-length % 4)).decode())
    body = "\n".join(lines)
    return (
        "diff --git a/src/big b/src/big\nnew file mode 100644\n"
        f"index {'0' * 40}..{'1' * 40}\nGIT binary patch\n{kind} {declared}\n{body}\n\n"
        "literal 0\nHcmV?d00001\n\n"
    )


@pytest.mark.parametrize("kind", ["literal", "delta"])
def test_a_patch_that_unfolds_to_too_much_is_refused_before_git_sees_it(
    work: ReturnedWorkTestbed, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("landlane.workers.returned.apply.MAX_BYTES", 1000)
    objects = work.objects()

    with raises_code(NotAllowed, "CHANGE_TOO_BIG"):
        work.hand_in(patch=_bomb(5000, kind))
    assert work.objects() == objects
    assert work.caught()


def test_files_that_are_too_big_together_are_refused(
    work: ReturnedWorkTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("landlane.workers.returned.apply.MAX_BYTES", 1000)
    files = work.files(src__a_py="x" * 600, src__b_py="x" * 600)

    with raises_code(NotAllowed, "CHANGE_TOO_BIG"):
        work.hand_in(files=files)
    work.write("src/c.py", "y" * 1500)
    with raises_code(NotAllowed, "CHANGE_TOO_BIG"):
        work.hand_in(patch=work.diff())
    assert work.hand_in(files=files[:1])


def test_handing_in_the_same_again_gives_the_same_head(
    work: ReturnedWorkTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    work.write("src/a.py", "one\n2\nthree\n")
    patch = work.diff()
    head = work.hand_in(patch=patch)
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-01-03T00:00:00+00:00")

    assert work.hand_in(patch=patch, summary="in other words") == head
    with raises_code(Stale, "BRANCH_MOVED"):
        work.hand_in(files=work.files(src__a_py="else\n"))
    assert work.commit_testbed.git("rev-parse", BRANCH).strip() == head
    assert [entry.kind for entry in work.commit_testbed.project.entries()].count("commit.made") == 1


def test_two_at_once_make_one_commit(work: ReturnedWorkTestbed) -> None:
    files = work.files(src__a_py="x\n")

    both = [Background(lambda: work.hand_in(files=files)) for _ in range(2)]
    heads = {one.result() for one in both}

    assert len(heads) == 1
    assert work.commit_testbed.git("rev-list", "--count", f"{work.base}..{BRANCH}").strip() == "1"


def test_work_on_a_task_of_another_session_is_refused(work: ReturnedWorkTestbed) -> None:
    files = work.files(src__a_py="x\n")
    with raises_code(Stale, "TASK_NOT_YOURS"):
        work.hand_in(task=replace(work.task, attempt=2), files=files)
    fail_task(work.supervisor.repo, work.supervisor.session, "T1", "cannot")
    before = work.heads()

    with raises_code(Stale, "TASK_NOT_YOURS"):
        work.hand_in(files=files)
    assert work.heads() == before


def test_work_returned_while_a_person_is_asked_is_only_kept(work: ReturnedWorkTestbed) -> None:
    open_task_gate(work.supervisor.repo, work.supervisor.session, "T1", "approval", "May I?", {})
    work.write("src/a.py", "one\n2\nthree\n")
    patch = work.diff()
    with raises_code(Stale, "TASK_NOT_YOURS"):
        work.hand_in(patch=patch)

    head = work.keep(BRANCH, patch=patch)

    assert work.keep(BRANCH, patch=patch) == head
    assert work.commit_testbed.git("show", f"{BRANCH}:src/a.py") == "one\n2\nthree\n"
    said = read_trailers(work.commit_testbed.message(head))
    assert (said.agent, said.task, said.tokens) == ("ann", "T1", ())
    assert get_task(work.supervisor.repo, "T1").state == "waiting_for_person"
    with raises_code(Stale, "BRANCH_MOVED"):
        work.keep(BRANCH, files=work.files(src__b_py="other\n"))
    with raises_code(NotAllowed, "ROLE_FORBIDS"):
        work.keep("landlane/T1-1/x", files=work.files(landlane_toml=""))


def test_work_returned_after_a_handoff_is_kept_and_shown_to_the_next_owner(
    work: ReturnedWorkTestbed,
) -> None:
    ann, bob = work.supervisor, work.commit_testbed.agent("bob")
    send_handoff(ann.repo, ann.session, Draft(task="T1", to="bob", next="go on"))
    accept_handoff(bob.repo, bob.session, "T1")
    branch = returned_branch_of("T1", 1)

    head = work.keep(branch, files=work.files(src__b_py="half of it"))

    answer = context_for(work.prepared_repo(), get_task(bob.repo, "T1"))
    assert f"{branch} at {head[:12]}" in answer
    assert BRANCH not in work.heads()


def test_a_checked_out_branch_is_not_moved(work: ReturnedWorkTestbed, tmp_path: Path) -> None:
    work.commit_testbed.git("worktree", "add", "--quiet", "-b", BRANCH, str(tmp_path / "tree"))

    with raises_code(RepositoryError, "BRANCH_IN_USE"):
        work.hand_in(files=work.files(src__a_py="x\n"))


def test_a_base_that_is_not_here_is_refused(work: ReturnedWorkTestbed) -> None:
    with raises_code(RepositoryError, "UNKNOWN_BASE"):
        work.hand_in(base="1" * 40, files=work.files(src__a_py="x\n"))


def test_hooks_and_settings_of_the_user_have_no_say(work: ReturnedWorkTestbed) -> None:
    for name in ("post-index-change", "pre-commit", "commit-msg"):
        work.commit_testbed.hook(name, 'echo ran >> "$0.ran"; exit 1')
    work.commit_testbed.git("config", "apply.whitespace", "fix")
    work.write("src/a.py", "one  \ntwo\nthree\n")

    head = work.hand_in(patch=work.diff())

    assert work.commit_testbed.git("show", f"{head}:src/a.py") == "one  \ntwo\nthree\n"
    assert not list((work.commit_testbed.root / ".git" / "hooks").glob("*.ran"))


def test_a_commit_of_a_worker_that_may_commit_must_be_on_its_branch(work: ReturnedWorkTestbed) -> None:
    with raises_code(NotAllowed, "CHANGE_UNFIT"):
        work.hand_in(role="code", commit=work.base)
    work.commit_testbed.git("branch", BRANCH)
    assert work.hand_in(role="code", commit=work.base) == ""
    work.write("src/a.py", "x\n")
    work.commit_testbed.git("commit", "--quiet", "--all", "-m", "x", at=work.clone)
    head = work.commit_testbed.git("rev-parse", "HEAD", at=work.clone).strip()
    work.commit_testbed.git("fetch", "--quiet", str(work.clone), f"+HEAD:refs/heads/{BRANCH}")

    assert work.hand_in(role="code", commit=head) == head
    assert work.hand_in(role="code") == head
    with raises_code(NotAllowed, "ROLE_FORBIDS"):
        work.hand_in(role=ROLE, commit=head)
    assert work.hand_in(role=ROLE) == ""
