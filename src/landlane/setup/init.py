"""Plan and apply what `init` writes, and its undo.

Settings, rules and instructions are shared and meant to be committed. The clients' hooks name this machine's
interpreter, so they stay out of commits. `managed_files/apply.py` changes files and restores them.
"""

from __future__ import annotations

import contextlib
import os

from landlane.app.open import ANSWERED, open_repository
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
from landlane.git.shared_config import list_own_limits, remove_own_limits
from landlane.landing.run_checks import find_test_checkouts, remove_test_checkouts
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
from landlane.settings.load import read_settings
from landlane.settings.model import FILE_NAME
from landlane.setup.codex_trust import install_trust, trust_needed
from landlane.setup.install_git_hooks import (
    git_hooks_installed,
    git_hooks_to_change,
    install_git_hooks,
    remove_git_hooks,
)
from landlane.setup.propose_settings import UNKNOWN_ID, missing_checks, settings_text
from landlane.values import replace, value
from landlane.workspaces.model import OPEN
from landlane.workspaces.records import list_open, list_workspaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_OLD_RECORD = "init-record"  # where earlier releases recorded the settings they wrote
_INSTRUCTIONS = "AGENTS.md"
_IMPORT = f"@{_INSTRUCTIONS}"
_LATER = "; for the other checkouts once this branch has landed"


@value
class InitOptions:
    """The request to init: the clients to set up, and whether to make Codex trust our hooks."""

    clients: tuple[str, ...] = ()
    has_clients: bool = True
    has_trust: bool = True


@value
class InitResult:
    """The changes that were made, and notes for the user."""

    changed: tuple[str, ...]
    notes: tuple[str, ...] = ()


@value
class InitPlan:
    """The planned steps in order, and what is left unchanged."""

    root: str
    folder: str
    options: InitOptions
    changes: ChangePlan
    clients: tuple[str, ...] = ()
    is_new: bool = False
    trust: str = ""
    git_hooks: str = ""
    is_undo: bool = False
    test_checkouts: tuple[str, ...] = ()  # checkouts of the landing queue, which undo removes
    limits: tuple[str, ...] = ()  # git limits set for workspaces that no longer exist
    unprotected: tuple[tuple[str, str], ...] = ()  # clients that cannot be set up, and why

    @property
    def is_nothing(self) -> bool:
        """Whether nothing needs to be changed."""
        wanted = (self.changes.steps, self.trust, self.git_hooks, self.test_checkouts, self.limits)
        return not (self.is_new or any(wanted))

    @property
    def lines(self) -> list[tuple[str, str, str]]:
        """Return each step as verb, path and reason."""
        made = [("create", self.folder, "the state, shared by all worktrees")] if self.is_new else []
        trust = [("change", self.trust, "let Codex run these hooks")] if self.trust else []
        installed = "git hooks: ours judge commits, pushes and the target branch, then yours run"
        verb, why = ("restore", "git runs its own hooks") if self.is_undo else ("change", installed)
        hooks = [(verb, self.git_hooks, why)] if self.git_hooks else []
        steps = ((step.verb, step.path, step.why) for step in self.changes.steps)
        test_checkouts = (
            ("remove", path, "the queue tested here; nobody's work is in it") for path in self.test_checkouts
        )
        config = os.path.join(os.path.dirname(self.folder), "config")
        limits = [("restore", config, f"without {', '.join(self.limits)}")] if self.limits else []
        return [*made, *steps, *trust, *hooks, *limits, *test_checkouts]


def plan_init(cwd: str, options: InitOptions | None = None) -> InitPlan:
    """Plan the steps that are missing to set up this repository.

    Raises:
        Malformed: a named client is unknown.
        SettingsError: the existing settings are invalid.
    """
    options = options or InitOptions()
    check_names(options.clients)
    checkout = _checkout_or_folder(cwd)
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
        why = "the MCP server needs an extra: pip install 'landlane[mcp]', then run init again"
        changes = replace(changes, skipped=(*changes.skipped, SkippedFile(path="landlane mcp", why=why)))
    return InitPlan(
        root=checkout.root,
        folder=state,
        options=options,
        changes=changes,
        clients=tuple(names),
        is_new=not os.path.isdir(state),
        trust=trust_needed(env, changes) if options.has_trust and "codex" in names else "",
        git_hooks=git_hooks_to_change(checkout.home_checkout),
        unprotected=tuple(_unprotected(names, checkout.root, changes)),
    )


def _unprotected(names: Sequence[str], root: str, changes: ChangePlan) -> list[tuple[str, str]]:
    """Return the clients that cannot get hooks, each with the conflicting file and the reason."""
    why = {skipped.path: skipped.why for skipped in changes.skipped}
    found: list[tuple[str, str]] = []
    for name in names:
        for wanted in setup_of(name).wanted_files(placeholder_command):
            path = os.path.join(root, wanted.path)
            if path in why:
                found.append((name, f"{path}: {why[path]}"))
    return found


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
        request(FILE_NAME, NEW, template, f"the settings{found}; commit this file"),
        request("RULES.md", NEW, RULES_TEMPLATE, "the rules that every session reads; commit this file"),
        request(_INSTRUCTIONS, TEXT, AGENTS_TEXT, "what agents do in a shared checkout; commit this file"),
    ]
    agents = os.path.realpath(os.path.join(root, _INSTRUCTIONS))
    for name in names:
        reader = CLIENTS[name].instructions
        # A symbolic link to AGENTS.md, common in projects, needs no import line.
        if reader and os.path.realpath(os.path.join(root, reader)) != agents:
            title = CLIENTS[name].title
            requests.append(
                request(reader, LINE, _IMPORT, f"{title} reads {_INSTRUCTIONS} through this line")
            )
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
    repo = open_repository(plan.root)
    try:
        steps = tuple(_with_id(step, repo.store.repository) for step in now.changes.steps)
    finally:
        repo.close()
    changes = replace(now.changes, steps=steps)
    installing.carry_out(plan.folder, load_record(plan.folder), changes, now.clients, on_step)
    changed = [*([plan.folder] if plan.is_new else []), *(step.path for step in steps)]
    if now.git_hooks:
        install_git_hooks(find_checkout(plan.root).home_checkout, _clones(plan.root))
        changed.append(now.git_hooks)
    problem = install_trust(plan.folder, environment_at(plan.root)) if now.trust else ""
    if now.trust and not problem:
        changed.append(now.trust)
    notes = (problem, missing_checks(plan.root))
    return InitResult(changed=tuple(changed), notes=tuple(note for note in notes if note))


def _with_id(step: FileChange, repository_id: str) -> FileChange:
    """Return the step with the id that this repository already has here, so that its claims are kept."""
    if step.after is None or UNKNOWN_ID.encode() not in step.after or step.entry.form != NEW:
        return step
    after = step.after.replace(UNKNOWN_ID.encode(), repository_id.encode())
    entry = replace(step.entry, after=(fingerprint(after),))
    return replace(step, after=after, entry=entry)


def _equip_workspaces(root: str) -> None:
    """Install the same hooks in the open workspaces."""
    repo = open_repository(root)
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
        repo = open_repository(root)
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
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(folder, ANSWERED))


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
    if now.limits and remove_own_limits(home) and not now.git_hooks:
        removed.append(os.path.join(home.common_dir, "config"))
    steps = [step.path for step in now.changes.steps]
    return InitResult(changed=(*steps, *([now.git_hooks] if now.git_hooks else []), *removed))


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
