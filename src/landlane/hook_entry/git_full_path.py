"""The full path of a git hook: collect what git is about to do, check it, and report the outcome.

In a sandbox the resident does the check: what git is about to do is collected here, inside, and sent to it.
"""

from __future__ import annotations

import os

from landlane.app.open import ANSWERED_GIT, person_name
from landlane.clients.model import CLIENT_VARIABLES
from landlane.errors import LandlaneError, Malformed, RepositoryError
from landlane.files import write_atomically
from landlane.git.discovery import Checkout, find_checkout
from landlane.git.hooks.scripts import CANARY, JUDGED
from landlane.git.run import LOCATION_VARIABLES, run_git, try_git_output
from landlane.hook_entry.repository import (
    ABSENT,
    ignores_case,
    open_from_hook,
    read_cache,
    state_stamps,
    store_path_of,
    watched_files,
)
from landlane.hooks.commit_push import (
    BranchUpdate,
    GitCaller,
    head_of,
    judge_commit,
    judge_moves,
    judge_push,
    note_refusal,
    override,
)
from landlane.protocol.hook_events import HookOutput, HookPolicy
from landlane.sessions.join import Caller, known_session
from landlane.text import in_lines, in_one_line
from landlane.values import replace, value
from landlane.workspaces.target_guard import guarded_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from landlane.repository import Repository


_COMMIT, _PUSH, _MOVE = "pre-commit", "pre-push", "reference-transaction"
_MADE = "commit"  # a commit that exists, and whose branch is about to move
_WHAT = {_COMMIT: "this commit", _MADE: "this commit", _PUSH: "this push", _MOVE: "this"}
_HEADS = "refs/heads/"
_RESIDENT_SECONDS = 20.0
_NEW, _FORCED = "new", "forced"
_CACHE, _FORM = ANSWERED_GIT, "3"


@value
class GitHookRequest:
    """What git is about to do, complete without further git calls."""

    hook: str
    remote: str = ""
    paths: tuple[str, ...] = ()
    branch: str = ""
    updates: tuple[BranchUpdate, ...] = ()

    def pack(self, root: str) -> bytes:
        """Return the request, and the root of its checkout, as bytes for the resident."""
        lines = [
            f"{update.ref} {update.new} {_NEW if update.is_new else _FORCED if update.is_forced else '-'}"
            for update in self.updates
        ]
        parts = [self.remote, self.branch, "\n".join(lines), *self.paths]
        return os.fsencode(root) + b"\0" + "\0".join(parts).encode("utf-8", "surrogateescape")


def _unpack(hook: str, payload: bytes) -> tuple[str, GitHookRequest]:
    root, _, rest = payload.partition(b"\0")
    remote, branch, lines, *paths = rest.decode("utf-8", "surrogateescape").split("\0")
    words = [line.split(" ") for line in lines.split("\n") if line]
    updates = tuple(_update(ref, new, kind) for ref, new, kind in words)
    remote = remote.partition("\n")[0]  # the hooks of earlier releases also send its address
    request = GitHookRequest(hook=hook, remote=remote, paths=tuple(paths), branch=branch, updates=updates)
    return os.fsdecode(root), request


def _update(ref: str, new: str, kind: str = "") -> BranchUpdate:
    return BranchUpdate(ref=ref, new=new, is_new=kind == _NEW, is_forced=kind == _FORCED)


def answer_here(hook: str, pid: str, arguments: list[str], payload: bytes) -> tuple[int, str]:
    """Answer one hook call: return the exit code and the text for stderr."""
    try:
        checkout, index = _locate(hook)
        if checkout is None:
            return 0, ""
        request = _collect(checkout, index, hook, arguments, payload)
        if hook == _MOVE and (checkout.home or not request.updates):
            return 0, ""
        if os.environ.get("LANDLANE_RESIDENT"):
            code, message = _ask_resident(checkout, request)
        else:
            repo = replace(open_from_hook(checkout.root), checkout=checkout)
            code, message = _judge(repo, request, os.environ, is_packing=_is_packing(pid))
            if hook == _COMMIT:
                _cache_for_fast_path(repo)
        if hook == _COMMIT and not code:
            _note_judged(checkout, pid, request.branch, is_final=bool(message))  # a person has overridden it
        return code, message
    except LandlaneError as error:
        return 1, _refusal_text(hook, error)


def _locate(hook: str) -> tuple[Checkout | None, str]:
    """Return git's checkout and its index; no checkout for a bare repository without a worktree."""
    cwd = os.getcwd()
    named = os.environ.get("GIT_DIR", "")
    index = os.environ.get("GIT_INDEX_FILE", "")
    index = os.path.abspath(index) if index else ""
    git_dir = os.path.realpath(named) if named else ""
    if hook == _MOVE and git_dir and (cwd + "/").startswith(git_dir + "/"):  # a push to this repository
        cwd = _find_root(git_dir)
        if not cwd:
            return None, ""
    elif named:
        try:
            return find_checkout(cwd), index
        finally:
            _remove_git_variables()
    _remove_git_variables()
    return find_checkout(cwd), index


def _remove_git_variables() -> None:
    """Remove git's own variables, so that they do not affect the git processes we start."""
    for name in LOCATION_VARIABLES:
        os.environ.pop(name, None)


def _find_root(git_dir: str) -> str:
    """Return the root of a checkout of the repository in a git directory; empty without one."""
    if os.path.basename(git_dir) == ".git":
        return os.path.dirname(git_dir)
    from landlane.git.remove_checkout import list_worktrees  # noqa: PLC0415 - only in a bare repository

    linked = os.path.join(git_dir, "gitdir")
    if os.path.exists(linked):
        with open(linked, encoding="utf-8", errors="surrogateescape") as file:
            return os.path.dirname(file.readline().rstrip("\n"))
    home = Checkout(root=git_dir, git_dir=git_dir, common_dir=git_dir)
    return next((root for _, root in list_worktrees(home) if os.path.isdir(root)), "")


def _collect(
    checkout: Checkout, index: str, hook: str, arguments: list[str], payload: bytes
) -> GitHookRequest:
    text = payload.decode("utf-8", "surrogateescape")
    if hook in (_COMMIT, _MADE):
        *paths, code = text.split("\0")
        if code.strip() != "0":
            raise RepositoryError(
                "git cannot list the paths of the commit", code="GIT_FAILED", hint="see why: git status"
            )
        paths = _without_merged(checkout, index, paths, arguments[0] if hook == _MADE else "")
        return GitHookRequest(hook=hook, paths=tuple(paths), branch=_branch_of(checkout))
    lines = [line.split(" ") for line in text.split("\n") if line]
    if hook == _PUSH:
        pushed = tuple(_update(ref, new, _push_kind(checkout, old, new)) for _, new, ref, old in lines)
        return GitHookRequest(hook=hook, remote=arguments[0] if arguments else "", updates=pushed)
    if hook != _MOVE:
        raise Malformed(f"no hook of ours is called {hook[:40]!r}", code="HOOK_INPUT", hint="")
    moved = tuple(_update(ref, new) for _, new, ref in lines if ref.startswith(_HEADS))
    return GitHookRequest(hook=hook, updates=moved)


def _without_merged(checkout: Checkout, index: str, paths: list[str], commit: str) -> list[str]:
    """Return the paths of a commit, or of the index before it; for a merge, what differs from both sides."""
    if not os.path.exists(os.path.join(checkout.git_dir, "MERGE_HEAD")):
        return paths
    words = ("diff", "--name-only", "-z", "--no-renames", "--no-ext-diff")
    sides = ("MERGE_HEAD", commit) if commit else ("--cached", "MERGE_HEAD")
    variables = {"GIT_INDEX_FILE": index} if index and not commit else {}
    ended = run_git(*words, *sides, cwd=checkout.root, git_dir=checkout.git_dir, variables=variables)
    changed = set(paths if ended.exit_code else ended.stdout.split("\0"))
    return [path for path in paths if path in changed]


def _branch_of(checkout: Checkout) -> str:
    branch = head_of(checkout.git_dir)
    if branch != ".invalid":
        return branch
    return try_git_output(checkout, "symbolic-ref", "--quiet", "--short", "HEAD")


def _push_kind(checkout: Checkout, old: str, new: str) -> str:
    if not old.strip("0"):
        return _NEW
    if not new.strip("0"):
        return ""
    words = ("merge-base", "--is-ancestor", old, new)
    return _FORCED if run_git(*words, cwd=checkout.root, git_dir=checkout.git_dir).exit_code else ""


def _judge(
    repo: Repository, request: GitHookRequest, environment: Mapping[str, str], *, is_packing: bool = False
) -> tuple[int, str]:
    """Check a request; return the exit code and the text for stderr."""
    caller = _find_caller(repo, environment)
    try:
        try:
            _check_request(repo, caller, request, is_packing=is_packing)
        except LandlaneError as error:
            reason = environment.get("LANDLANE_OVERRIDE", "").strip()
            if not reason:
                raise
            override(repo, caller, reason, request.hook, error)
            return 0, f"Landlane: overridden, and recorded in the journal: {in_one_line(error.message)}\n"
    except LandlaneError as error:
        if not environment.get(CANARY):
            note_refusal(repo, caller.session, error)
        return 1, _refusal_text(request.hook, error, is_person=not caller.why_no_person)
    return 0, ""


def _check_request(repo: Repository, caller: GitCaller, request: GitHookRequest, *, is_packing: bool) -> None:
    if request.hook in (_COMMIT, _MADE):
        judge_commit(repo, caller, request.paths, request.branch)
    elif request.hook == _PUSH:
        judge_push(repo, caller, request.remote, request.updates)
    else:
        judge_moves(repo, caller, request.updates, is_packing=is_packing)


def _find_caller(repo: Repository, environment: Mapping[str, str]) -> GitCaller:
    """Return the caller of git. An agent whose session has ended is still an agent, without claims."""
    session_text = environment.get("LANDLANE_SESSION", "")
    agent = environment.get("LANDLANE_AGENT", "")
    person = person_name()
    try:
        joined = known_session(repo, Caller(session_text=session_text, agent_variable=agent, person=person))
    except LandlaneError as error:
        return GitCaller(session=None, name=agent or "an agent", why_no_person=error.message)
    session = joined.session if joined else None
    why = ""
    if session_text or agent:
        why = "LANDLANE_SESSION and LANDLANE_AGENT are for agents"
    elif session is not None and not session.is_person:
        why = f"this is the session of {session.agent}, an agent"
    elif client := next((name for name in CLIENT_VARIABLES if name in environment), ""):
        why = f"this runs in a coding client: {client} is set"
    return GitCaller(session=session, name=session.agent if session else agent or person, why_no_person=why)


def _is_packing(pid: str) -> bool:
    """Return whether the calling git process only packs refs."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
    except OSError:
        return False
    return os.path.basename(words[0]) == b"git" and b"pack-refs" in words[1:2]


def _refusal_text(hook: str, error: LandlaneError, *, is_person: bool = False) -> str:
    message = f"Landlane refused {_WHAT.get(hook, 'this')}: {in_lines(error.message)} [{error.code}]\n"
    if error.hint:
        message += f"hint: {in_lines(error.hint)}\n"
    if is_person:
        message += 'hint: override it with a reason that the journal keeps: LANDLANE_OVERRIDE="why" git …\n'
    return message


def _note_judged(checkout: Checkout, pid: str, branch: str, *, is_final: bool) -> None:
    """Record which git process makes a commit, as git_fast_path.py does.

    The branch hook checks the commit again when the branch moves, unless the check was final.
    """
    ref = _HEADS + branch if branch else "HEAD"
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            started = file.read().rpartition(") ")[2].split(" ")[19]
        with open(os.path.join(checkout.git_dir, JUDGED), "w", encoding="utf-8") as file:
            file.write(f"{pid} {started} {ref}{' final' if is_final else ''}\n")
    except (OSError, IndexError):
        return


def _cache_for_fast_path(repo: Repository) -> None:
    """Write the cache if the fast path can check commits here; otherwise delete it."""
    checkout, settings, store_path = repo.checkout, repo.settings, store_path_of(repo)
    path = os.path.join(checkout.git_dir, _CACHE)
    try:
        is_simple = not (
            settings.claims.required or settings.hooks.policy == HookPolicy.STRICT or ignores_case(repo)
        )
        if not store_path or not is_simple:
            if os.path.exists(path):
                os.unlink(path)
            return
        target = guarded_target(repo)
        branch = target.branch if target else ABSENT
        known = (_FORM, checkout.root, repo.store.repository, store_path, branch)
        text = "\n".join((*known, *state_stamps(repo), *watched_files(repo)))
        if read_cache(path) != text:
            write_atomically(path, text)
    except OSError:
        return


def _ask_resident(checkout: Checkout, request: GitHookRequest) -> tuple[int, str]:
    """Let the resident check the request; in a sandbox nothing else can."""
    from landlane.resident.messages import pack_request, send_request, shared_environment  # noqa: PLC0415 - only in a sandbox

    environment = {os.fsencode(name): os.fsencode(text) for name, text in os.environ.items()}
    message = pack_request(
        b"hook",
        os.fsencode(checkout.root),
        [b"git", request.hook.encode()],
        shared_environment(environment),
        request.pack(checkout.root),
    )
    reply = send_request(os.environ["LANDLANE_RESIDENT"], message, _RESIDENT_SECONDS)
    if reply is None:
        raise RepositoryError(
            "the resident does not answer, and in the sandbox only it can decide",
            code="NO_RESIDENT",
            hint="try again; outside the sandbox: landlane doctor",
        )
    return reply[0], reply[2].decode("utf-8", "replace")


def answer_for_guest(
    hook: str, payload: bytes, environment: Mapping[str, str], open_at: Callable[[str], Repository]
) -> HookOutput:
    """Check a request from a sandbox, in the resident; its git is trusted about its own clone."""
    try:
        root, request = _unpack(hook, payload)
        repo = replace(open_at(root), checkout=find_checkout(root))
        without_override = {name: text for name, text in environment.items() if name != "LANDLANE_OVERRIDE"}
        code, message = _judge(repo, request, without_override)
    except LandlaneError as error:
        code, message = 1, _refusal_text(hook, error)
    return HookOutput(exit_code=code, stderr=message)
