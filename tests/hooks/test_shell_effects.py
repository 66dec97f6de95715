"""Shell calls of coding clients: what they really changed, whether it was theirs, and how it is put right."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from landlane.app.open import open_repository
from landlane.claims.held import release
from landlane.claims.take import list_claims, make_request, take
from landlane.errors import LandlaneError, NotAllowed
from landlane.files import read_file_version
from landlane.hooks.dispatch import handle
from landlane.hooks.shell import ownership
from landlane.hooks.shell.effects import after_shell, before_shell, check_earlier_calls
from landlane.hooks.shell.ownership import names_file
from landlane.journal.read import read_entries
from landlane.protocol.hook_events import NOTHING, HookEvent, HookEventKind, HookVerdict, ToolAction
from landlane.repository import Repository
from landlane.sessions.client_sessions import ClientName, begin_subagent, bind_session
from landlane.sessions.join import join
from landlane.sessions.notices import take_notices
from landlane.sessions.tool_calls import begin_call, find_read, record_reads
from landlane.store import records
from landlane.testing.repositories import git, make_repository
from landlane.values import as_dict, replace
from landlane.workspaces.commit import commit, make_commit_request
from landlane.workspaces.fix_unauthorized_writes import (
    accept_breach,
    list_open_breaches,
    move_breach,
    refuse_breached,
    undo_breach,
)
from landlane.workspaces.model import Workspace, WorkspaceKind, WorkspaceState
from landlane.workspaces.unauthorized_writes import (
    ACCEPTED,
    CLEARED,
    MOVED,
    OPEN,
    UNDONE,
    BreachKind,
    find_breach,
    list_breaches,
)
from tests.support.git import commit_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from landlane.protocol.hook_events import HookAnswer
    from landlane.sessions.model import Session
    from landlane.store.interface import Transaction

pytestmark = pytest.mark.integration

FILES = {"src/a.py": "one\ntwo\n", "src/b.py": "b\n", "docs/n.md": "n\n", ".gitignore": "ignored/\n*.log\n"}
HELPER = "import sys\nopen(sys.argv[1], 'a').write('x\\n')\n"


class ShellTestbed:
    """A repository with two sessions: ann, whose shell is watched, and beth, who holds src/a.py."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.repo: Repository = open_repository(str(root))
        self.repo = self.repo
        self.prepared_repo = self.repo.require_git()
        self.ann = join(self.repo, "ann").session
        self.beth = join(self.repo, "beth").session
        self.claim(self.beth, "src/a.py", task="")
        self._calls = 0

    def claim(self, session: Session, *paths: str, task: str = "") -> None:
        patterns = tuple(self.repo.git.pattern_of(path, "literal") for path in paths)
        outcome = take(self.repo, session, make_request(self.repo, patterns, task=task))
        assert not outcome.refused

    def event(self, kind: str, command: str, call: str = "c1", cwd: Path | None = None) -> HookEvent:
        return HookEvent(
            client="claude",
            kind=HookEventKind(kind),
            session="x",
            cwd=str(cwd or self.root),
            tool=ToolAction.SHELL,
            command=command,
            call=call,
        )

    def shell(self, command: str, *, session: Session | None = None, cwd: Path | None = None) -> HookAnswer:
        """What a client does: the hook, the command unless it is denied, the hook again."""
        self._calls += 1
        call = f"c{self._calls}"
        who = session or self.ann
        repo = open_repository(str(cwd or self.root))
        try:
            before = before_shell(repo.require_git(), who, self.event("before", command, call, cwd))
            if before.verdict == HookVerdict.DENY:
                return before
            subprocess.run(
                command, shell=True, cwd=cwd or self.root, check=False, timeout=30, capture_output=True
            )
            return after_shell(repo.require_git(), who, self.event("after", command, call, cwd))
        finally:
            repo.close()

    def breach(self) -> str:
        """The only one that is open."""
        (found,) = list_breaches(self.repo)
        return found.id

    def held_by(self, session: Session) -> set[str]:
        return {claim.pattern for claim in list_claims(self.repo) if claim.session == session.id}

    def workspace(self, session: Session, name: str) -> Path:
        """Open a workspace for a session, as `workspace open` leaves it."""
        path = self.root.parent / name
        git(self.root, "worktree", "add", "--quiet", "-b", name, str(path))

        def work(tx: Transaction) -> None:
            made = Workspace(
                id=records.next_id(tx, "workspace"),
                task=f"T-{name}",
                attempt=1,
                agent=session.agent,
                session=session.id,
                machine=session.machine,
                home=str(self.root / ".git"),
                kind=WorkspaceKind.WORKTREE,
                path=str(path),
                branch=name,
                state=WorkspaceState.OPEN,
                opened_at=0,
            )
            records.put(tx, "workspace", as_dict(made), "opened", session)

        self.repo.change(work)
        return path


@pytest.fixture
def place(tmp_path: Path) -> Iterator[ShellTestbed]:
    root = make_repository(tmp_path.resolve() / "repository", files=FILES)
    (root / "helper.py").write_text(HELPER)
    found = ShellTestbed(root)
    yield found
    found.repo.close()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is waited for: in these tests no holder's hook is on its way."""
    monkeypatch.setattr("landlane.hooks.shell.ownership._WAIT_SECONDS", 0.0)


PYTHON = sys.executable
WRITES = {
    "redirect": "echo x > src/a.py",
    "append": "echo x >> src/a.py",
    "tee": "echo x | tee src/a.py > /dev/null",
    "sed": "sed -i s/one/1/ src/a.py",
    "cp": "cp src/b.py src/a.py",
    "mv": "mv src/b.py src/a.py",
    "dd": "dd if=src/b.py of=src/a.py",
    "heredoc to cat": "cat > src/a.py <<'EOF'\nnew\nEOF\n",
    "heredoc to python": f"{PYTHON} - <<'EOF'\nopen('src/a.py', 'w').write('new')\nEOF\n",
    "python -c": f"{PYTHON} -c \"open('src/a.py', 'w').write('new')\"",
    "git checkout": "git checkout -- src/a.py",
    "helper script": f"{PYTHON} helper.py src/a.py",
}
LOOKS = {
    "grep": "grep '>' src/a.py",
    "cat": "cat src/a.py",
    "sed -n": "sed -n 1p src/a.py",
    "git diff": "git diff -- src/a.py",
    "diff": "diff src/a.py src/b.py",
    "wc": "wc -l src/a.py",
    "python -c": f"{PYTHON} -c \"print(open('src/a.py').read())\"",
    "tee": "tee /dev/null < src/a.py",
    "cp": 'cp src/a.py "$(mktemp)"',
    "git log": "git log -- src/a.py",
    "git show": "git show HEAD:src/a.py",
    "echo": 'echo "> src/a.py"',
    "touch": "touch src/a.py",
    "git status": "git status --short",
    "mention": 'echo "git reset --hard"',
    "search": "grep -rn 'git stash' .",
}


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("way", WRITES)
def test_every_way_to_write_is_caught_and_undone(place: ShellTestbed, way: str) -> None:
    (place.root / "src/a.py").write_bytes(b"one, uncommitted \xff\n")

    answer = place.shell(WRITES[way])

    assert answer.verdict in (HookVerdict.INFORM, HookVerdict.DENY)
    assert "src/a.py" in answer.text
    assert "beth" in answer.text
    if answer.verdict == HookVerdict.INFORM:
        undo_breach(place.prepared_repo, place.ann, place.breach())
    assert (place.root / "src/a.py").read_bytes() == b"one, uncommitted \xff\n"


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("way", LOOKS)
def test_reading_command_reports_nothing(place: ShellTestbed, way: str) -> None:
    (place.root / "src/a.py").write_text("one\nuncommitted >\n")

    assert place.shell(LOOKS[way]) == NOTHING
    assert list_breaches(place.repo) == []
    assert place.held_by(place.ann) == set()


def test_the_report_names_holder_task_end_and_the_way_back(place: ShellTestbed) -> None:
    place.claim(place.beth, "docs/n.md", task="T7")

    answer = place.shell("echo x > docs/n.md")

    assert answer.text.startswith("Your shell command changed docs/n.md, held by beth for task T7 until 20")
    assert f"landlane misplaced undo {place.breach()}" in answer.text
    kinds = [entry.facts() for entry in read_entries(place.repo) if entry.kind == "rule.violated"]
    assert [(one["rule"], one["guard"]) for one in kinds] == [("claim before you change", "shell check")]
    (notice,) = take_notices(place.repo, place.beth.id)
    assert "ann changed docs/n.md" in notice


@pytest.mark.usefixtures("quick")
def test_deleting_renaming_and_permissions_are_caught_and_undone(place: ShellTestbed) -> None:
    place.claim(place.beth, "src/b.py", "docs/n.md", "link", "new.txt")
    (place.root / "link").symlink_to("src/a.py")
    (place.root / "new.txt").write_bytes(b"\x00untracked\r\n")

    place.shell("rm src/a.py; mv src/b.py src/c.py; chmod +x docs/n.md; ln -sf docs link; rm new.txt")
    undo_breach(place.prepared_repo, None, place.breach())

    assert (place.root / "src/a.py").read_text() == FILES["src/a.py"]
    assert (place.root / "src/b.py").read_text() == FILES["src/b.py"]
    assert not os.access(place.root / "docs/n.md", os.X_OK)
    assert os.readlink(place.root / "link") == "src/a.py"
    assert (place.root / "new.txt").read_bytes() == b"\x00untracked\r\n"
    assert place.held_by(place.ann) == {"src/c.py"}


@pytest.mark.usefixtures("quick")
def test_a_held_file_that_git_ignores_is_watched_too(place: ShellTestbed) -> None:
    (place.root / "ignored").mkdir()
    (place.root / "ignored/secret").write_text("kept\n")
    place.claim(place.beth, "ignored/secret")

    assert "ignored/secret" in place.shell("echo x > ignored/secret").text
    undo_breach(place.prepared_repo, None, place.breach())

    assert (place.root / "ignored/secret").read_text() == "kept\n"


def test_write_by_the_holder_itself_is_not_a_breach(place: ShellTestbed) -> None:
    before_shell(place.prepared_repo, place.ann, place.event("before", "make"))
    file = place.root / "src/a.py"
    file.write_text("by beth\n")
    record_reads(place.repo, place.beth.id, {str(file): read_file_version(str(file))})

    assert after_shell(place.prepared_repo, place.ann, place.event("after", "make")) == NOTHING


def test_the_holders_hook_may_come_a_moment_later(
    place: ShellTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    bind_session(place.repo, ClientName(client="claude", session="y"), join(place.repo, "beth"))
    before_shell(place.prepared_repo, place.ann, place.event("before", "make"))
    file = place.root / "src/a.py"
    file.write_text("by beth\n")
    slept: list[str] = []

    def pause() -> None:
        slept.append("a moment")
        record_reads(place.repo, place.beth.id, {str(file): read_file_version(str(file))})

    monkeypatch.setattr("landlane.hooks.shell.ownership._pause", pause)

    assert after_shell(place.prepared_repo, place.ann, place.event("after", "make")) == NOTHING
    assert len(slept) == 1


def test_there_is_no_wait_for_a_holder_without_hooks(
    place: ShellTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pause() -> None:
        pytest.fail("waited for a report that cannot come")

    monkeypatch.setattr("landlane.hooks.shell.ownership._pause", pause)

    assert "Take it back now" in place.shell("echo x > src/a.py").text


@pytest.mark.usefixtures("quick")
def test_change_is_uncertain_while_a_command_of_the_holder_runs(place: ShellTestbed) -> None:
    begin_call(place.repo, place.beth.id, "b1", str(place.root), "")

    answer = place.shell("echo x > src/a.py")

    assert answer.verdict == HookVerdict.INFORM
    assert "may not have been you" in answer.text
    refuse_breached(place.prepared_repo, place.ann, ["src/a.py"], str(place.root))
    undo_breach(place.prepared_repo, None, place.breach())
    assert (place.root / "src/a.py").read_text() == FILES["src/a.py"]


@pytest.mark.usefixtures("quick")
def test_a_third_command_is_a_doubt_only_where_ours_does_not_name_the_file(place: ShellTestbed) -> None:
    carl = join(place.repo, "carl").session
    begin_call(place.repo, carl.id, "k1", str(place.root), "")

    assert "Take it back now" in place.shell("echo x > src/a.py").text
    (place.root / "run.sh").write_text("echo y > src/a.py\n")
    assert "may not have been you" in place.shell("sh run.sh").text


@pytest.mark.usefixtures("quick")
def test_what_a_parent_holds_is_not_in_its_childs_way(place: ShellTestbed) -> None:
    name = ClientName(client="claude", session="x", agent="sub")
    child = begin_subagent(place.repo, name, place.beth).session
    other = begin_subagent(
        place.repo, ClientName(client="claude", session="x", agent="two"), place.ann
    ).session

    assert place.shell("echo x > src/a.py", session=child) == NOTHING
    assert "held by beth" in place.shell("echo y > src/a.py", session=other).text


# ------------------------------------------------------------------------------------------ what is free


def test_free_path_is_claimed_for_the_session_that_changed_it(place: ShellTestbed) -> None:
    assert place.shell("echo x > src/b.py; echo y > new.py") == NOTHING

    assert place.held_by(place.ann) == {"src/b.py", "new.py"}
    seen = find_read(place.repo, place.ann.id, str(place.root / "new.py"))
    assert seen is not None
    assert seen[0] == read_file_version(str(place.root / "new.py"))[0]


def test_of_two_commands_at_once_each_takes_only_what_it_names(place: ShellTestbed) -> None:
    begin_call(place.repo, place.beth.id, "b1", str(place.root), "")

    assert place.shell("echo x > mine.py; sh -c 'echo y > their''s.py'") == NOTHING

    assert place.held_by(place.ann) == {"mine.py"}
    assert find_read(place.repo, place.ann.id, str(place.root / "theirs.py")) is None


def test_only_session_still_claims_what_it_changes(place: ShellTestbed) -> None:
    release(place.repo, place.beth, None)
    from landlane.sessions.join import leave

    leave(place.repo, place.beth)

    assert place.shell("echo x > src/b.py") == NOTHING
    assert place.shell("echo y > src/a.py") == NOTHING
    assert place.held_by(place.ann) == {"src/b.py", "src/a.py", "helper.py"} - {"helper.py"}


def test_what_is_as_committed_is_not_taken(place: ShellTestbed) -> None:
    (place.root / "src/b.py").write_text("dirty\n")

    assert place.shell("git checkout -- src/b.py") == NOTHING
    assert place.held_by(place.ann) == set()


def test_strict_reports_what_was_not_claimed(place: ShellTestbed) -> None:
    commit_text(place.root, "landlane.toml", '[hooks]\npolicy = "strict"\n')
    place.claim(place.ann, "docs/n.md")

    answer = place.shell("echo x > src/b.py; echo x > docs/n.md")

    assert "src/b.py, which you have not claimed" in answer.text
    assert "docs/n.md" not in answer.text
    assert place.held_by(place.ann) == {"docs/n.md"}


@pytest.mark.usefixtures("quick")
def test_watch_tells_and_blocks_nothing(place: ShellTestbed) -> None:
    commit_text(place.root, "landlane.toml", '[hooks]\npolicy = "watch"\n')

    answer = place.shell("echo x > src/a.py")

    assert answer.verdict == HookVerdict.INFORM
    assert "src/a.py, held by beth" in answer.text
    assert "It was let pass and only noted" in answer.text
    assert "you cannot commit" not in answer.text
    refuse_breached(place.prepared_repo, place.ann, ["src/a.py"], str(place.root))
    repo = open_repository(str(place.root))
    said = before_shell(repo.require_git(), place.ann, place.event("before", "git stash", "s"))
    repo.close()
    assert said.verdict == HookVerdict.INFORM
    assert said.text.startswith("Landlane let this command pass and only noted it")
    assert "Nothing of the command was run" not in said.text


def test_write_forbidden_by_the_role_is_reported(
    place: ShellTestbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ownership, "may_write", lambda _repo, _session, _path: "reviewers only read")

    answer = place.shell("echo x > src/b.py")

    assert "your role may not: reviewers only read" in answer.text
    (caught,) = [entry.facts() for entry in read_entries(place.repo) if entry.kind == "rule.violated"]
    assert caught["rule"] == "stay in your role"


# ------------------------------------------------------------------------------------------ git verbs


@pytest.mark.parametrize(
    "command",
    [
        "git reset --hard",
        "git clean -fd",
        "git checkout main",
        "git switch -c other",
        "git stash",
        "git add -A",
        "git push --force",
        "cd src && git add .. && git stash",
        "bash -c 'git reset --hard'",
    ],
)
def test_a_verb_that_hits_everybody_is_refused_with_its_scoped_form(
    place: ShellTestbed, command: str
) -> None:
    (place.root / "src/a.py").write_text("uncommitted\n")

    answer = place.shell(command)

    assert answer.verdict == HookVerdict.DENY
    assert "Instead: " in answer.text
    assert "beth: src/a.py" in answer.text
    assert (place.root / "src/a.py").read_text() == "uncommitted\n"


def test_git_verbs_in_another_repository_are_not_checked(place: ShellTestbed, tmp_path: Path) -> None:
    other = make_repository(tmp_path / "other")
    (other / "README.md").write_text("changed\n")

    assert place.shell(f"cd {other} && git reset --hard") == NOTHING
    assert (other / "README.md").read_text() != "changed\n"


# ------------------------------------------------------------------------------------------ other checkouts


@pytest.mark.usefixtures("quick")
def test_writing_beside_the_own_workspace_is_a_stray_and_can_be_moved(place: ShellTestbed) -> None:
    own = place.workspace(place.ann, "ann-work")

    answer = place.shell(f"echo x >> {place.root}/src/b.py", cwd=own)

    assert "outside of your own workspace" in answer.text
    breach = find_breach(place.repo, place.breach())
    assert (breach.kind, breach.root) == (BreachKind.STRAY, str(place.root))
    assert f"landlane misplaced move {breach.id} --to W1" in answer.text
    move_breach(place.prepared_repo, place.ann, breach.id)
    assert (own / "src/b.py").read_text() == "b\nx\n"
    assert (place.root / "src/b.py").read_text() == "b\n"
    assert find_breach(place.repo, breach.id).state == MOVED


@pytest.mark.usefixtures("quick")
def test_shell_outside_of_the_own_workspace_makes_misplaced_changes(place: ShellTestbed) -> None:
    place.workspace(place.ann, "ann-work")

    assert "outside of your own workspace" in place.shell("echo x > src/b.py").text
    with pytest.raises(NotAllowed) as refused:
        refuse_breached(place.prepared_repo, place.ann, ["src/b.py"], str(place.root))
    assert refused.value.code == "MISPLACED_WRITE"


@pytest.mark.usefixtures("quick")
def test_a_held_file_in_another_checkout_is_watched_though_nothing_names_it(place: ShellTestbed) -> None:
    own = place.workspace(place.ann, "ann-work")
    (place.root / "src/a.py").write_text("beth, uncommitted\n")
    (own / "t.py").write_text(f"import os\nopen({str(place.root / 'src/a.py')!r}, 'w').write('x')\n")

    answer = place.shell(f"{PYTHON} t.py", cwd=own)

    assert "src/a.py, held by beth" in answer.text
    undo_breach(place.prepared_repo, None, place.breach())
    assert (place.root / "src/a.py").read_text() == "beth, uncommitted\n"


@pytest.mark.usefixtures("quick")
def test_in_anothers_workspace_nothing_is_ours_to_change(place: ShellTestbed) -> None:
    theirs = place.workspace(place.beth, "beth-work")

    answer = place.shell(f"cd {theirs} && echo x > docs/n.md")

    assert "in the workspace of beth" in answer.text
    undo_breach(place.prepared_repo, None, place.breach())
    assert (theirs / "docs/n.md").read_text() == "n\n"


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "command",
    [
        "echo q >> ../other/src/a.py",
        "cd ../other && echo q >> src/a.py",
        "cd .. && echo q >> other/src/a.py",
        "sh unseen.sh",
    ],
)
def test_a_held_file_in_a_worktree_made_by_hand_is_watched(place: ShellTestbed, command: str) -> None:
    other = place.root.parent / "other"
    git(place.root, "worktree", "add", "--quiet", "-b", "other", str(other))
    (place.root / "unseen.sh").write_text('cd ../"oth""er" && echo q >> src/a".py"\n')

    answer = place.shell(command)

    assert "src/a.py, held by beth" in answer.text
    undo_breach(place.prepared_repo, None, place.breach())
    assert (other / "src/a.py").read_text() == FILES["src/a.py"]


# ------------------------------------------------------------------------------------------ until it is right


@pytest.mark.usefixtures("quick")
def test_what_was_put_back_by_hand_is_over(place: ShellTestbed) -> None:
    place.shell("echo x >> src/a.py")
    first = place.breach()
    (place.root / "src/a.py").write_text(FILES["src/a.py"])

    assert list_open_breaches(place.prepared_repo) == []
    assert find_breach(place.repo, first).state == CLEARED


@pytest.mark.usefixtures("quick")
def test_restoring_through_the_shell_is_not_a_new_write(place: ShellTestbed) -> None:
    place.shell("echo x >> src/a.py")
    first = place.breach()

    assert place.shell("printf 'one\\ntwo\\n' > src/a.py") == NOTHING
    assert list_breaches(place.repo) == []
    assert find_breach(place.repo, first).state == CLEARED


@pytest.mark.usefixtures("quick")
def test_what_was_stray_is_not_committed_before_it_is_right(place: ShellTestbed) -> None:
    place.shell("echo x > src/a.py")
    breach = place.breach()

    with pytest.raises(NotAllowed) as refused:
        commit(
            place.prepared_repo,
            place.ann,
            make_commit_request(place.prepared_repo, ["src/a.py"], str(place.root), message="Mine"),
        )

    assert refused.value.code == "MISPLACED_WRITE"
    assert refused.value.exit_code == 6
    assert f"landlane misplaced undo {breach}" in refused.value.hint
    with pytest.raises(NotAllowed):
        refuse_breached(place.prepared_repo, place.ann, ["src/a.py"])  # as for landing
    refuse_breached(place.prepared_repo, place.beth, ["src/a.py"], str(place.root))  # beth may


@pytest.mark.usefixtures("quick")
def test_a_branch_with_a_stray_write_does_not_land(place: ShellTestbed) -> None:
    from landlane.landing.submit import submit_branch

    (place.root / "landlane.toml").write_text("[landing]\nchecks = []\nresident = false\n")
    git(place.root, "add", "landlane.toml")
    git(place.root, "commit", "--quiet", "-m", "Land without checks")
    place.shell("echo x > src/a.py")
    git(place.root, "switch", "--quiet", "-c", "topic")
    git(place.root, "commit", "--quiet", "-am", "Past the guard")

    with pytest.raises(NotAllowed) as refused:
        submit_branch(place.prepared_repo, place.ann, "topic", "")

    assert refused.value.code == "MISPLACED_WRITE"


@pytest.mark.usefixtures("quick")
def test_a_holder_who_lets_go_makes_it_the_writers(place: ShellTestbed) -> None:
    place.shell("echo x > src/a.py")
    breach = place.breach()
    release(place.repo, place.beth, None)
    with pytest.raises(NotAllowed):
        refuse_breached(place.prepared_repo, place.ann, ["src/a.py"], str(place.root))

    place.claim(place.ann, "src/a.py")

    refuse_breached(place.prepared_repo, place.ann, ["src/a.py"], str(place.root))
    assert find_breach(place.repo, breach).state == CLEARED


@pytest.mark.usefixtures("quick")
def test_the_holder_may_accept_and_the_writer_may_not(place: ShellTestbed) -> None:
    place.shell("echo x > src/a.py")
    breach = place.breach()

    with pytest.raises(NotAllowed):
        accept_breach(place.prepared_repo, place.ann, breach)
    accept_breach(place.prepared_repo, place.beth, breach)

    assert find_breach(place.repo, breach).state == ACCEPTED
    refuse_breached(place.prepared_repo, place.ann, ["src/a.py"], str(place.root))


@pytest.mark.usefixtures("quick")
def test_undo_stops_at_later_changes(place: ShellTestbed) -> None:
    place.shell("echo x > src/a.py")
    first = place.breach()
    place.shell("echo y > src/a.py")

    with pytest.raises(NotAllowed) as refused:
        undo_breach(place.prepared_repo, None, first)
    assert (refused.value.code, refused.value.hint) == (
        "MISPLACED_CONFLICT",
        "undo the newer write first: landlane misplaced undo B2",
    )

    undo_breach(place.prepared_repo, None, "B2")
    undo_breach(place.prepared_repo, None, "B1")
    assert (place.root / "src/a.py").read_text() == FILES["src/a.py"]
    with pytest.raises(LandlaneError, match="already undone"):
        undo_breach(place.prepared_repo, None, "B1")


@pytest.mark.usefixtures("quick")
def test_what_was_kept_survives_a_gc(place: ShellTestbed) -> None:
    (place.root / "src/a.py").write_text("uncommitted\n")
    place.shell("echo x > src/a.py")

    git(place.root, "gc", "--quiet", "--prune=now")
    undo_breach(place.prepared_repo, None, place.breach())

    assert (place.root / "src/a.py").read_text() == "uncommitted\n"


@pytest.mark.usefixtures("quick")
def test_undo_through_the_shell_is_not_a_new_write(place: ShellTestbed) -> None:
    place.shell("echo x > src/a.py")

    answer = place.shell(f"{PYTHON} -m landlane misplaced undo {place.breach()}")

    assert answer == NOTHING
    assert (place.root / "src/a.py").read_text() == FILES["src/a.py"]
    assert list_breaches(place.repo) == []


@pytest.mark.usefixtures("quick")
def test_move_through_the_shell_is_not_a_new_write(place: ShellTestbed) -> None:
    own = place.workspace(place.ann, "ann-work")
    place.shell(f"echo x >> {place.root}/src/a.py", cwd=own)

    answer = place.shell(f"{PYTHON} -m landlane misplaced move {place.breach()}", cwd=own)

    assert answer == NOTHING
    assert (own / "src/a.py").read_text() == FILES["src/a.py"] + "x\n"
    assert (place.root / "src/a.py").read_text() == FILES["src/a.py"]


@pytest.mark.usefixtures("quick")
def test_files_that_came_with_a_commit_are_not_writes(place: ShellTestbed) -> None:
    own = place.workspace(place.ann, "ann-work")
    (place.root / "src/a.py").write_text("landed\n")
    git(place.root, "commit", "--quiet", "-am", "Land")

    assert place.shell("git -c alias.x=1 merge --quiet --ff-only main", cwd=own) == NOTHING
    assert (own / "src/a.py").read_text() == "landed\n"
    assert list_breaches(place.repo) == []


@pytest.mark.parametrize(
    ("command", "is_named"),
    [
        ("echo > src/a.py", True),
        ("python -c \"open('a.py')\"", True),
        ("cat data.py", False),
        ("cat a.pyc x/a.py", True),
        ("cat a.pyc", False),
        ("make", False),
    ],
)
def test_command_names_a_file_by_its_full_name(command: str, is_named: bool) -> None:
    assert names_file(command, "src/a.py") is is_named


# ------------------------------------------------------------------------------------------ patches

PATCH = "*** Begin Patch\n*** Update File: {0}\n@@\n-one\n+1\n*** End Patch"
PATCHING = {
    "heredoc": f"apply_patch <<'X'\n{PATCH}\nX\n",
    "other name": f"applypatch <<'X'\n{PATCH}\nX\n",
    "argument": f"apply_patch '{PATCH}'",
    "in a folder": "cd src && apply_patch <<'X'\n" + PATCH.replace("{0}", "a.py") + "\nX\n",
    "in a shell": f"bash -lc 'apply_patch <<Y\n{PATCH}\nY\n'",
    "piped": f"cat <<X | apply_patch\n{PATCH}\nX\n",
}


@pytest.mark.parametrize("way", PATCHING)
def test_a_patch_in_a_line_of_shell_is_judged_like_an_edit(place: ShellTestbed, way: str) -> None:
    answer = place.shell(PATCHING[way].format("src/a.py"))

    assert answer.verdict == HookVerdict.DENY
    assert answer.text.startswith("src/a.py is claimed by beth")


def test_a_patch_of_what_is_free_takes_it(place: ShellTestbed) -> None:
    event = place.event("before", PATCHING["heredoc"].format("src/b.py"))

    assert before_shell(place.prepared_repo, place.ann, event) == NOTHING
    assert place.held_by(place.ann) == {"src/b.py"}


def test_text_that_only_contains_a_patch_is_not_an_edit(place: ShellTestbed) -> None:
    inner = PATCHING["heredoc"].format("src/a.py")

    assert place.shell(f"cat > how.md <<'DOC'\n{inner}DOC\n") == NOTHING


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("is_live", [True, False])
def test_git_apply_to_a_held_file_is_refused_or_caught(place: ShellTestbed, is_live: bool) -> None:
    (place.root / "src/a.py").write_text("1\ntwo\n")
    (place.root.parent / "p").write_text(git(place.root, "diff") + "\n")
    (place.root / "src/a.py").write_text(FILES["src/a.py"])
    if is_live:
        begin_call(place.repo, place.beth.id, "b1", str(place.root), "")

    answer = place.shell("git apply ../p")

    assert "src/a.py" in answer.text
    assert "beth" in answer.text
    if answer.verdict != HookVerdict.DENY:
        undo_breach(place.prepared_repo, None, place.breach())
    assert (place.root / "src/a.py").read_text() == FILES["src/a.py"]


# ------------------------------------------------------------------------------------------ unheard ends


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("kind", ["before", "after", "prompt", "stop"])
def test_a_call_that_never_ends_is_judged_with_the_next_event(place: ShellTestbed, kind: str) -> None:
    before_shell(place.prepared_repo, place.ann, place.event("before", "echo x > src/a.py", "c1"))
    (place.root / "src/a.py").write_text("x\n")
    following = replace(place.event(kind, "", "c2"), tool="edit" if kind in ("before", "after") else "other")

    assert "src/a.py, held by beth" in check_earlier_calls(place.prepared_repo, place.ann, following)
    assert check_earlier_calls(place.prepared_repo, place.ann, following) == ""
    undo_breach(place.prepared_repo, None, place.breach())
    assert (place.root / "src/a.py").read_text() == FILES["src/a.py"]


@pytest.mark.usefixtures("quick")
def test_change_during_concurrent_calls_is_reported_once(place: ShellTestbed) -> None:
    one, two = (place.event("before", "sh run.sh", call) for call in ("c1", "c2"))
    before_shell(place.prepared_repo, place.ann, one)
    check_earlier_calls(place.prepared_repo, place.ann, two)
    before_shell(place.prepared_repo, place.ann, two)
    (place.root / "src/a.py").write_text("x\n")

    assert "Take it back now" in after_shell(place.prepared_repo, place.ann, replace(two, kind="after")).text
    assert after_shell(place.prepared_repo, place.ann, replace(one, kind="after")) == NOTHING


@pytest.mark.usefixtures("quick")
def test_own_writes_of_a_call_without_end_event_are_recorded_as_read(place: ShellTestbed) -> None:
    file = place.root / "src/b.py"
    patch = place.event("before", PATCHING["heredoc"].format("src/b.py"))
    record_reads(place.repo, place.ann.id, {str(file): read_file_version(str(file))})
    before_shell(place.prepared_repo, place.ann, patch)
    file.write_text("patched\n")

    assert check_earlier_calls(place.prepared_repo, place.ann, patch) == ""
    assert before_shell(place.prepared_repo, place.ann, replace(patch, call="c2")) == NOTHING


LATE = "(sleep 1; echo late >> src/a.py) &"


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("kind", ["stop", "prompt", "before"])
def test_a_late_write_of_what_was_left_running_is_found(place: ShellTestbed, kind: str) -> None:
    event = place.event("before", LATE)
    before_shell(place.prepared_repo, place.ann, event)
    assert after_shell(place.prepared_repo, place.ann, replace(event, kind="after")) == NOTHING
    assert place.shell("true") == NOTHING
    (place.root / "src/a.py").write_text("late\n")

    following = replace(place.event(kind, "ls", "c9"), tool="shell" if kind == "before" else "other")
    text = check_earlier_calls(place.prepared_repo, place.ann, following)

    assert text.startswith("Your shell command changed src/a.py, held by beth")
    assert check_earlier_calls(place.prepared_repo, place.ann, following) == ""
    undo_breach(place.prepared_repo, None, place.breach())
    assert (place.root / "src/a.py").read_text() == FILES["src/a.py"]


@pytest.mark.usefixtures("quick")
def test_late_write_of_unknown_origin_is_reported_as_uncertain_at_the_end_of_a_turn(
    place: ShellTestbed,
) -> None:
    place.shell("sh src/a.py")
    (place.root / "src/a.py").write_text("late\n")

    assert check_earlier_calls(place.prepared_repo, place.ann, place.event("prompt", "")) == ""
    assert "may not have been you" in check_earlier_calls(
        place.prepared_repo, place.ann, place.event("stop", "")
    )
    (place.root / "src/a.py").write_text("later\n")
    assert check_earlier_calls(place.prepared_repo, place.ann, place.event("stop", "")) == ""


@pytest.mark.usefixtures("quick")
def test_the_end_of_a_turn_is_held_once_for_a_late_write(place: ShellTestbed) -> None:
    def hook(kind: str, command: str = "", **more: object) -> HookAnswer:
        tool = "shell" if command else "other"
        event = replace(place.event(kind, command), tool=tool, **more)
        return handle(place.repo, event, {})

    hook("start")
    hook("before", LATE)
    hook("after", LATE)
    (place.root / "src/a.py").write_text("late\n")

    held = hook("stop")

    assert held.verdict == HookVerdict.HOLD
    assert "src/a.py, held by beth" in held.text
    assert hook("stop", is_again=True) == NOTHING
    hook("before", LATE, call="c2")  # of this one no end comes
    (place.root / "src/a.py").write_text("later\n")
    assert hook("before", call="c3", tool_name="x") == NOTHING
    assert "not the first time" in hook("after", call="c3", tool_name="x").text


# ------------------------------------------------------------------------------------------ odd calls


@pytest.mark.usefixtures("quick")
def test_a_call_without_an_id_is_the_newest(place: ShellTestbed) -> None:
    before_shell(place.prepared_repo, place.ann, place.event("before", "x", call=""))
    (place.root / "src/a.py").write_text("x\n")

    assert (
        "Take it back now"
        in after_shell(place.prepared_repo, place.ann, place.event("after", "x", call="")).text
    )


@pytest.mark.usefixtures("quick")
def test_end_event_without_a_start_makes_no_certain_breach(place: ShellTestbed) -> None:
    assert after_shell(place.prepared_repo, place.ann, place.event("after", "x", call="gone")) == NOTHING
    place.shell("true")
    (place.root / "src/a.py").write_text("x\n")

    answer = after_shell(place.prepared_repo, place.ann, place.event("after", "x", call="gone"))

    assert "may not have been you" in answer.text


@pytest.mark.usefixtures("quick")
def test_later_write_of_a_background_command_is_reported_once(place: ShellTestbed) -> None:
    behind = replace(place.event("before", "serve &", call="bg"), is_background=True)
    before_shell(place.prepared_repo, place.ann, behind)
    after_shell(place.prepared_repo, place.ann, replace(behind, kind="after"))
    (place.root / "src/a.py").write_text("by the server\n")

    answer = place.shell("true")

    assert "may not have been you" in answer.text
    assert place.shell("true") == NOTHING
    undo_breach(place.prepared_repo, None, place.breach())
    assert (place.root / "src/a.py").read_text() == FILES["src/a.py"]


@pytest.mark.usefixtures("quick")
def test_odd_names_are_judged_like_any_other(place: ShellTestbed) -> None:
    place.claim(place.beth, "odd")
    folder = place.root / "odd"
    folder.mkdir()
    name = os.fsencode(folder) + b"/\xff\n 'x"
    with open(name, "wb") as file:
        file.write(b"beth\n")

    answer = place.shell('for f in odd/*; do echo x > "$f"; done')

    assert "held by beth" in answer.text
    undo_breach(place.prepared_repo, None, place.breach())
    with open(name, "rb") as file:
        assert file.read() == b"beth\n"


@pytest.mark.slow
def test_the_commands_tell_undo_and_accept(place: ShellTestbed) -> None:
    (place.root / "src/a.py").write_text("uncommitted\n")
    place.shell("echo x > src/a.py")

    def run(*words: str) -> dict[str, object]:
        done = subprocess.run(
            [PYTHON, "-m", "landlane", *words, "--json"],
            cwd=place.root,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    listed = run("misplaced", "list")["breaches"]
    assert isinstance(listed, list)
    assert [(one["id"], one["paths"], one["kind"]) for one in listed] == [("B1", ["src/a.py"], "held")]
    assert run("misplaced", "undo", "B1")["paths"] == ["src/a.py"]
    assert (place.root / "src/a.py").read_text() == "uncommitted\n"
    assert find_breach(place.repo, "B1").state == UNDONE

    place.shell("echo y > src/a.py")
    assert find_breach(place.repo, "B2").state == OPEN
    run("misplaced", "accept", "B2")
    assert find_breach(place.repo, "B2").state == ACCEPTED
