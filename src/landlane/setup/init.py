"""Plan and apply what `init` writes, and its undo.

Settings, rules and instructions are shared and meant to be committed. The clients' hooks name this machine's
interpreter, so they stay out of commits. `managed_files/apply.py` changes files and restores them.
"""

from __future__ import annotations

import contextlib
import os

from landlane.app.open import ANSWERED, ANSWERED_GIT, check_location, open_repository
from landlane.app.store_place import has_state
from landlane.clients.model import CLIENTS
from landlane.clients.registry import setup_of
from landlane.clients.setup_files import (
    LINE,
    NEW,
    TEXT,
    FileForm,
    environment_at,
    placeholder_command,
    sdk_release,
)
from landlane.errors import LandlaneError, RepositoryError, StoreError
from landlane.git.discovery import HOME_POINTER, Checkout, find_checkout
from landlane.git.run import try_git_output
from landlane.git.shared_config import list_own_limits, remove_own_limits
from landlane.git.target import commit_at, find_target
from landlane.git.target_settings import not_committed, settings_in_force
from landlane.landing.clean_checkout import find_test_checkouts, remove_test_checkouts
from landlane.managed_files import apply as installing
from landlane.managed_files.agents_md import AGENTS_TEXT
from landlane.managed_files.apply import ChangePlan, FileChange, FileRequest, SkippedFile
from landlane.managed_files.client_files import (
    check_names,
    client_requests,
    clients_in_use,
    equip,
    keep_out_of_commits,
    main_checkout_requests,
)
from landlane.managed_files.manifest import init_lock, load_record
from landlane.managed_files.user_files import fingerprint, read_bytes
from landlane.rules.model import RULES_TEMPLATE
from landlane.settings.detect_test_command import find_test_command
from landlane.settings.load import read_settings
from landlane.settings.model import FILE_NAME
from landlane.setup.codex_trust import install_trust, trust_needed
from landlane.setup.install_git_hooks import (
    git_hooks_installed,
    git_hooks_to_change,
    install_git_hooks,
    remove_git_hooks,
)
from landlane.setup.plan import InitOptions, InitPlan, InitResult
from landlane.setup.propose_settings import UNKNOWN_ID, missing_checks, settings_text
from landlane.values import replace
from landlane.version import install_command
from landlane.workspaces.committed_settings import committed_at
from landlane.workspaces.model import OPEN
from landlane.workspaces.records import list_open, list_workspaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_OLD_RECORD = "init-record"  # where earlier releases recorded the settings they wrote
_INSTRUCTIONS = "AGENTS.md"
_IMPORT = f"@{_INSTRUCTIONS}"
_LATER = "; in the other checkouts once this branch has landed"
_SHARED_FORMS = (NEW, TEXT, LINE)  # of the files that are meant to be committed


def plan_init(cwd: str, options: InitOptions | None = None) -> InitPlan:
    """Plan the steps that are missing to set up this repository.

    Raises:
        Malformed: a named client is unknown.
        SettingsError: the existing settings are invalid.
    """
    options = options or InitOptions()
    check_names(options.clients)
    checkout = _checkout_or_folder(cwd)
    check_location(checkout)
    state = checkout.state_folder
    record = load_record(state)
    if os.path.exists(os.path.join(checkout.root, FILE_NAME)):
        read_settings(checkout.root)  # report an invalid file now, not later
    env = environment_at(checkout.root)
    names = list(dict.fromkeys(options.clients or (*record.clients, *clients_in_use(env))))
    names = names if options.has_clients else []
    requests = [*_shared_requests(checkout, names), *client_requests(names, env)]
    requests = [*keep_out_of_commits(checkout, requests), *main_checkout_requests(names, checkout)]
    changes = installing.plan_changes(state, record, requests)
    if names and not sdk_release():
        why = f"the MCP server is not installed; add it: {install_command('mcp')}"
        changes = replace(changes, skipped=(*changes.skipped, SkippedFile(path="landlane mcp", why=why)))
    branch, git_hooks = _target_branch(checkout), git_hooks_to_change(checkout.home_checkout)
    return InitPlan(
        root=checkout.root,
        folder=state,
        options=options,
        changes=changes,
        clients=tuple(names),
        is_new=not has_state(state),
        trust=trust_needed(env, changes) if options.has_trust and "codex" in names else "",
        git_hooks=git_hooks,
        has_git=bool(checkout.common_dir),
        branch=branch,
        consequence=_consequence(checkout, changes, branch, has_new_hooks=bool(git_hooks)),
        unprotected=tuple(_unprotected(names, checkout.root, changes)),
    )


def _unprotected(names: Sequence[str], root: str, changes: ChangePlan) -> list[tuple[str, str]]:
    """Return the clients that cannot get hooks, each with the file in the way."""
    skipped = {file.path for file in changes.skipped}
    found: list[tuple[str, str]] = []
    for name in names:
        for wanted in setup_of(name).wanted_files(placeholder_command):
            path = os.path.join(root, wanted.path)
            if path in skipped:
                found.append((name, path))
    return found


def _target_branch(checkout: Checkout) -> str:
    """Return the branch that work will land on; before the first commit, the current one."""
    if not checkout.common_dir:
        return ""
    home = checkout.home_checkout
    try:
        return find_target(home, settings_in_force(checkout, is_person=True).settings).branch
    except RepositoryError:
        return try_git_output(home, "symbolic-ref", "--quiet", "--short", "HEAD")


def _consequence(checkout: Checkout, changes: ChangePlan, branch: str, *, has_new_hooks: bool) -> str:
    """Return from when on only the landing queue moves the target branch, if the plan brings that about."""
    if not checkout.common_dir:
        return "This folder is not in git: no workspaces, commits or landing. To have them: git init"
    if not branch:
        return ""
    guard = f"{branch} changes only through `landlane land`."
    if any(step.path == os.path.join(checkout.root, FILE_NAME) for step in changes.steps):
        return f"After you commit {FILE_NAME}, {guard}" if find_test_command(checkout.root)[0] else ""
    home = checkout.home_checkout
    tip = commit_at(home, f"refs/heads/{branch}")
    committed = committed_at(home, tip) if tip and has_new_hooks else None
    is_guarded = committed is not None and committed.landing.checks is not None
    return f"From then on {guard}" if is_guarded else ""


def _shared_requests(checkout: Checkout, names: Sequence[str]) -> list[FileRequest]:
    """Plan the shared files: settings, rules, and the instructions with the lines that import them.

    In a linked worktree they belong to its branch. The main checkout is left unchanged.
    """
    root = checkout.root
    later = "" if root == checkout.home_checkout.root else _LATER

    def request(name: str, form: FileForm, content: str, why: str) -> FileRequest:
        return FileRequest(
            path=os.path.join(root, name), root=root, form=form, content=content, why=why + later
        )

    template, found = settings_text(root)
    requests = [
        request(FILE_NAME, NEW, template, f"settings{found}"),
        request("RULES.md", NEW, RULES_TEMPLATE, "rules every agent reads at its start"),
        request(_INSTRUCTIONS, TEXT, AGENTS_TEXT, "how agents share this repository"),
    ]
    agents = os.path.realpath(os.path.join(root, _INSTRUCTIONS))
    for name in names:
        reader = CLIENTS[name].instructions
        # A symbolic link to AGENTS.md, common in projects, needs no import line.
        if reader and os.path.realpath(os.path.join(root, reader)) != agents:
            title = CLIENTS[name].title
            requests.append(request(reader, LINE, _IMPORT, f"makes {title} read {_INSTRUCTIONS}"))
    return requests


def plan_undo(cwd: str) -> InitPlan:
    """Plan the undo of what init changed. The state stays: it holds the history of others."""
    checkout = find_checkout(cwd)
    state = checkout.state_folder
    changes = installing.plan_undo(state, load_record(state))
    old = _old_settings_removal(checkout)
    if old is not None and all(step.path != old.path for step in changes.steps):
        changes = replace(changes, steps=(*changes.steps, old))
    home = checkout.home_checkout
    return InitPlan(
        root=checkout.root,
        folder=state,
        options=InitOptions(),
        changes=changes,
        git_hooks=git_hooks_installed(home),
        is_undo=True,
        test_checkouts=tuple(find_test_checkouts(home)),
        limits=_limits_to_drop(home),
    )


def carry_out(plan: InitPlan, on_step: Callable[[str], None] = lambda _: None) -> InitResult:
    """Execute the plan, computed again under the lock; `on_step` is called after each step.

    Raises:
        LandlaneError: a file cannot be written; nothing was changed.
        TimedOut: another init kept running.
    """
    with init_lock(plan.folder):
        if plan.is_undo:
            return _undo(plan, on_step)
        done = _install(plan, on_step)
    try:
        _equip_workspaces(plan.root)
    except LandlaneError as error:
        return replace(done, notes=(*done.notes, f"open workspaces have no hooks yet: {error.message}"))
    return done


def _install(plan: InitPlan, on_step: Callable[[str], None]) -> InitResult:
    # The plan that was shown may be outdated: another init may have run in the meantime.
    now = plan_init(plan.root, plan.options)
    repo = open_repository(plan.root, may_begin=True, is_person=True)
    try:
        steps = tuple(_with_id(step, repo.store.repository) for step in now.changes.steps)
    finally:
        repo.close()
    changes = replace(now.changes, steps=steps)
    installing.carry_out(plan.folder, load_record(plan.folder), changes, now.clients, on_step)
    if now.git_hooks:
        install_git_hooks(find_checkout(plan.root).home_checkout, _clones(plan.root))
    problem = install_trust(plan.folder, environment_at(plan.root)) if now.trust else ""
    done = replace(now, is_new=plan.is_new, trust="" if problem else now.trust)
    unprotected = {name for name, _ in now.unprotected} | ({"codex"} if problem else set[str]())
    notes = (problem, missing_checks(plan.root), _not_in_force(plan.root))
    return InitResult(
        lines=tuple(done.lines),
        protected=tuple(name for name in _changed_clients(done) if name not in unprotected),
        to_commit=tuple(_files_to_commit(plan.root, steps)),
        notes=tuple(note for note in notes if note),
    )


def _not_in_force(root: str) -> str:
    """Return that the settings are not on the target branch yet; empty if they are."""
    checkout = find_checkout(root)
    held = settings_in_force(checkout, is_person=True)
    return not_committed(held.branch) if held.is_own else ""


def _changed_clients(plan: InitPlan) -> list[str]:
    """Return the clients of which a file with hooks is changed by a plan."""
    changed = {line.path for line in plan.lines}
    return [
        name
        for name in plan.clients
        if any(
            os.path.join(plan.root, file.path) in changed
            for file in setup_of(name).wanted_files(placeholder_command)
        )
    ]


def _files_to_commit(root: str, steps: Sequence[FileChange]) -> list[str]:
    """Return the written files that are meant for every clone and that git does not ignore."""
    paths = [step.path for step in steps if step.entry.form in _SHARED_FORMS]
    checkout = _checkout_or_folder(root)
    if not paths or not checkout.common_dir:
        return []
    ignored = try_git_output(checkout, "check-ignore", "--", *paths).splitlines()
    return [path for path in paths if path not in ignored]


def _with_id(step: FileChange, repository_id: str) -> FileChange:
    """Return the step with the id that this repository already has here, so that its claims are kept."""
    if step.after is None or UNKNOWN_ID.encode() not in step.after or step.entry.form != NEW:
        return step
    after = step.after.replace(UNKNOWN_ID.encode(), repository_id.encode())
    entry = replace(step.entry, after=(fingerprint(after),))
    return replace(step, after=after, entry=entry)


def _equip_workspaces(root: str) -> None:
    """Install the same hooks in the open workspaces."""
    repo = open_repository(root, is_person=True)
    try:
        if repo.checkout.common_dir:
            repo = repo.require_git()
            for workspace in list_open(repo):
                equip(repo, workspace.path)
    finally:
        repo.close()


def _clones(root: str) -> list[str]:
    """Return the open workspaces with their own git config; none when the store cannot be read."""
    found = _open_workspaces(root)
    return [path for path in found if os.path.isfile(os.path.join(path, ".git", HOME_POINTER))]


def _limits_to_drop(home: Checkout) -> tuple[str, ...]:
    """Return the git limits that Landlane set; none while workspaces share objects that gc would remove."""
    found = list_own_limits(home) if home.common_dir else []
    return tuple(found) if found and not _open_workspaces(home.root) else ()


def _open_workspaces(root: str) -> list[str]:
    try:
        repo = open_repository(root, is_person=True)
    except StoreError:
        return []
    try:
        return [workspace.path for workspace in list_workspaces(repo, (OPEN,))]
    finally:
        repo.close()


def _remove_answer_marks(checkout: Checkout) -> None:
    """Record that no hook is active here any more, so that removing the state means a fresh start."""
    if not checkout.home_dir:
        return
    entries = os.path.join(checkout.home_dir, "worktrees")
    names = os.listdir(entries) if os.path.isdir(entries) else []
    for folder in (checkout.home_dir, *(os.path.join(entries, name) for name in names)):
        for name in (ANSWERED, ANSWERED_GIT):
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(folder, name))


def _undo(plan: InitPlan, on_step: Callable[[str], None]) -> InitResult:
    now = plan_undo(plan.root)
    _remove_answer_marks(find_checkout(plan.root))
    installing.carry_out_undo(plan.folder, load_record(plan.folder), now.changes, on_step)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(plan.folder, _OLD_RECORD))
    home = find_checkout(plan.root).home_checkout
    if now.git_hooks:
        remove_git_hooks(home, _clones(plan.root))
    removed = remove_test_checkouts(home)
    if now.limits:
        remove_own_limits(home)
    return InitResult(lines=tuple(replace(now, test_checkouts=tuple(removed)).lines))


def _old_settings_removal(checkout: Checkout) -> FileChange | None:
    """Return the removal of settings that an earlier release wrote, if they are unchanged."""
    path = os.path.join(checkout.root, FILE_NAME)
    written = (read_bytes(os.path.join(checkout.state_folder, _OLD_RECORD)) or b"").decode().strip()
    there = read_bytes(path)
    if not written or there is None or fingerprint(there) != written:
        return None
    settings = FileRequest(path=path, root=checkout.root, form=NEW, content="", why="as init wrote it")
    return installing.removal(settings, there)


def _checkout_or_folder(cwd: str) -> Checkout:
    try:
        return find_checkout(cwd)
    except RepositoryError as error:
        if error.code != "NO_REPOSITORY":
            raise
        return Checkout(root=os.path.realpath(cwd), git_dir="", common_dir="")
