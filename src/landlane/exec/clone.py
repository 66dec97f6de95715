"""The clone in which a sandboxed command works, and the git settings it sees there.

The user's git settings are written out rather than included: inside the sandbox `~` is the private home, and
an included file may be hidden. In the clone of a task a small hook adds the agent's name to every commit.
"""

from __future__ import annotations

import os
import shlex

from landlane.exec.cleanup import PINS
from landlane.exec.save_leftovers import CLONE_FOLDER
from landlane.git.commits import AGENT, SESSION, TASK
from landlane.git.create_checkout import add_detached_clone, write_files
from landlane.git.discovery import HOME_POINTER
from landlane.git.lock import git_lock
from landlane.git.run import git_output, resolve_revision, run_in
from landlane.git.untrusted_checkout import setting_line
from landlane.tasks.add import Added, add_task
from landlane.tasks.change import drop_task
from landlane.tasks.model import FINAL, NewTask
from landlane.tasks.records import get_task
from landlane.values import value
from landlane.workspaces.model import CLONE
from landlane.workspaces.open import open_workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.git.discovery import Checkout
    from landlane.repository import Repository
    from landlane.roles.model import Role
    from landlane.sessions.model import Session
    from landlane.workspaces.model import Workspace


_TRAILER_HOOK = "prepare-commit-msg"
_HOOK_MARK = "# Written by Landlane: says who makes the commits of this clone."
_NOT_COPIED = ("include.", "includeif.", "credential.")  # settings that refer to files outside the sandbox


@value
class SandboxClone:
    """Where a sandboxed command works. Without a workspace the clone is thrown away."""

    path: str
    task: str = ""
    has_own_task: bool = False
    workspace: Workspace | None = None


def make_clone(
    repo: Repository, caller: Session, session: Session, role: Role, *, task: str, title: str, scratch: str
) -> SandboxClone:
    """Make the clone that a role works in. A role that writes and has no task gets one with this title.

    Raises:
        Held: another session works on the task.
        RepositoryError: git refuses.
    """
    if role.is_read_only:
        head = resolve_revision(repo.checkout, "HEAD")
        return SandboxClone(path=make_throwaway_clone(repo, session, scratch, head), task=task)
    task_id = task or _add_own_task(repo, caller, role, title)
    try:
        workspace = open_workspace(repo, session, task_id, kind=CLONE).workspace
    except BaseException:
        if not task:
            drop_own_task(repo, caller, task_id, "it could not be begun")
        raise
    return SandboxClone(path=workspace.path, task=task_id, has_own_task=not task, workspace=workspace)


def _add_own_task(repo: Repository, caller: Session, role: Role, title: str) -> str:
    outcome = add_task(repo, caller, NewTask(title=title, role=role.name), force=True)
    assert isinstance(outcome, Added)
    return outcome.task.id


def drop_own_task(repo: Repository, caller: Session, task: str, why: str) -> None:
    """Drop a task that was added for one run, unless it is over."""
    if get_task(repo, task).state not in FINAL:
        drop_task(repo, caller, task, why)


def make_throwaway_clone(repo: Repository, session: Session, scratch: str, head: str) -> str:
    """Clone a commit into the scratch folder and return the path. A ref keeps the borrowed objects alive."""
    path = os.path.join(scratch, CLONE_FOLDER)
    pin = PINS + session.id
    if head:
        with git_lock(repo.common_dir, f"pin {session.id}"):
            if repo.checkout.common_dir != repo.common_dir:
                git_output(repo.home, "fetch", "--quiet", "--no-tags", repo.checkout.root, f"{head}:{pin}")
            else:
                git_output(repo.home, "update-ref", pin, head)
    add_detached_clone(repo.home, path, head, pin)
    if head:
        write_files(path)
    with open(os.path.join(path, ".git", HOME_POINTER), "w", encoding="utf-8") as file:
        file.write(repo.common_dir + "\n")
    return path


def write_git_settings(home: Checkout, folder: str) -> None:
    """Write the user's global git settings into the private home."""
    path = os.path.join(folder, ".gitconfig")
    listed = run_in(home, "config", "--global", "--includes", "--list", "-z")
    lines: list[str] = []
    for item in listed.stdout.split("\0") if not listed.exit_code else ():
        key, is_set, text = item.partition("\n")
        if "." in key and not key.startswith(_NOT_COPIED):
            lines.append(setting_line(key, text if is_set else "true"))
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.writelines(lines)
    os.chmod(path, 0o600)


def install_trailer_hook(folder: str, session: Session, task: str) -> None:
    """Install a hook that names the session in every commit of a clone. A hook of the user is left alone.

    A sandboxed command could remove the hook; its commits would then name no session.
    """
    hooks = os.path.join(folder, ".git", "hooks")
    path = os.path.join(hooks, _TRAILER_HOOK)
    if os.path.islink(hooks) or os.path.islink(path):
        return  # the link may lead out of the clone
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            if _HOOK_MARK not in file.read(1000):
                return
    except FileNotFoundError:
        os.makedirs(hooks, exist_ok=True)
    except OSError:
        return
    facts = {AGENT: session.agent, SESSION: session.id, TASK: task}
    words = " ".join(f"--trailer {shlex.quote(f'{name}={text}')}" for name, text in facts.items() if text)
    lines = (
        "#!/bin/sh",
        _HOOK_MARK,
        f'git interpret-trailers --in-place --if-exists replace {words} "$1"',
        "",
    )
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    os.chmod(path, 0o700)
