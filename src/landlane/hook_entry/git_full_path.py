"""The full path of a git hook: collect what git is about to do, check it, and report the outcome.

In a sandbox the resident does the check: the facts from git are collected here, inside, and sent to it.
"""

from __future__ import annotations

import os

from landlane.app.open import person_name
from landlane.errors import LandlaneError, Malformed, RepositoryError
from landlane.files import stamp_of, write_whole
from landlane.git.discovery import Checkout, find_checkout
from landlane.git.hooks.scripts import CANARY, JUDGED
from landlane.git.run import LOCATION_VARIABLES, run_git, try_git_output
from landlane.hook_entry.open_repository import open_usual
from landlane.hooks import commit_push
from landlane.hooks.commit_push import Caller, Move, Pushed, head_of, judge_commit, judge_moves, judge_push
from landlane.protocol.hook_events import STRICT, HookOutput
from landlane.repository import Repository
from landlane.sessions import identify
from landlane.settings.model import FILE_NAME
from landlane.values import replace, value
from landlane.workspaces.target_guard import guarded_target, likely_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from landlane.repository import Repository


_COMMIT, _PUSH, _MOVE = "pre-commit", "pre-push", "reference-transaction"
_WHAT = {_COMMIT: "this commit", _PUSH: "this push", _MOVE: "this"}
_HEADS = "refs/heads/"
_CLIENTS = ("CLAUDECODE", "CODEX_SANDBOX", "GEMINI_CLI", "QWEN_CODE", "OPENCODE", "CURSOR_AGENT")
_RESIDENT_SECONDS = 20.0
_FACTS = "landlane-githook"


@value
class Asked:
    """The request of a hook, complete without further git calls: branches as `ref new kind`."""

    hook: str
    words: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    branch: str = ""
    moves: tuple[tuple[str, str, str], ...] = ()

    def packed(self) -> bytes:
        """Return the request as bytes for the resident."""
        lines = [" ".join(move) for move in self.moves]
        parts = ["\n".join(self.words), self.branch, "\n".join(lines), *self.paths]
        return "\0".join(parts).encode("utf-8", "surrogateescape")


def _unpacked(hook: str, payload: bytes) -> Asked:
    words, branch, lines, *paths = payload.decode("utf-8", "surrogateescape").split("\0")
    moves: list[tuple[str, str, str]] = []
    for line in lines.split("\n") if lines else []:
        ref, new, kind = line.split(" ")
        moves.append((ref, new, kind))
    return Asked(
        hook=hook,
        words=tuple(words.split("\n")) if words else (),
        paths=tuple(paths),
        branch=branch,
        moves=tuple(moves),
    )


# ---------------------------------------------------------------------------------------------- gathering


def answer_here(hook: str, pid: str, words: list[str], payload: bytes) -> tuple[int, str]:
    """Answer one hook call: return the exit code and the text for stderr."""
    try:
        here, index = _stand(hook)
        if here is None:
            return 0, ""
        asked = _gather(here, index, hook, words, payload)
        if hook == _MOVE and (here.home or not asked.moves):
            return 0, ""
        if os.environ.get("LANDLANE_RESIDENT"):
            return _ask_resident(here, asked)
        return _judge_here(here, asked, pid)
    except LandlaneError as error:
        return 1, _refused(hook, error)


def _stand(hook: str) -> tuple[Checkout | None, str]:
    """Return git's checkout and its index; no checkout for a bare repository without a worktree."""
    cwd = os.getcwd()
    named = os.environ.get("GIT_DIR", "")
    index = os.environ.get("GIT_INDEX_FILE", "")
    index = os.path.abspath(index) if index else ""
    git_dir = os.path.realpath(named) if named else ""
    if hook == _MOVE and git_dir and (cwd + "/").startswith(git_dir + "/"):  # a push to this repository
        cwd = _a_root_of(git_dir)
        if not cwd:
            return None, ""
    elif named:
        try:
            return find_checkout(cwd), index
        finally:
            _forget_places()
    _forget_places()
    return find_checkout(cwd), index


def _forget_places() -> None:
    """Remove git's own variables, so that they do not affect the git processes we start."""
    for name in LOCATION_VARIABLES:
        os.environ.pop(name, None)


def _a_root_of(git_dir: str) -> str:
    """Return a checkout of the repository in a git directory."""
    if os.path.basename(git_dir) == ".git":
        return os.path.dirname(git_dir)
    from landlane.git.remove_checkout import list_worktrees  # noqa: PLC0415 - only in a bare repository

    linked = os.path.join(git_dir, "gitdir")
    if os.path.exists(linked):
        with open(linked, encoding="utf-8", errors="surrogateescape") as file:
            return os.path.dirname(file.readline().rstrip("\n"))
    home = Checkout(root=git_dir, git_dir=git_dir, common_dir=git_dir)
    return next((root for _, root in list_worktrees(home) if os.path.isdir(root)), "")


def _gather(here: Checkout, index: str, hook: str, words: list[str], payload: bytes) -> Asked:
    text = payload.decode("utf-8", "surrogateescape")
    if hook == _COMMIT:
        *paths, code = text.split("\0")
        if code.strip() != "0":
            raise RepositoryError(
                "git cannot tell what is staged", code="GIT_FAILED", hint="try `git status`"
            )
        return Asked(hook=hook, paths=_own_paths(here, index, paths), branch=_branch_of(here))
    moved = [line.split(" ") for line in text.split("\n") if line]
    if hook == _PUSH:
        moves = tuple((ref, new, _kind(here, old, new)) for _, new, ref, old in moved)
        return Asked(hook=hook, words=tuple(words), moves=moves)
    if hook != _MOVE:
        raise Malformed(f"no hook of ours is called {hook[:40]!r}", code="HOOK_INPUT", hint="")
    return Asked(hook=hook, moves=tuple((ref, new, "-") for _, new, ref in moved if ref.startswith(_HEADS)))


def _own_paths(here: Checkout, index: str, paths: list[str]) -> tuple[str, ...]:
    """Return the staged paths; for a merge, only those that differ from both sides."""
    merged = os.path.join(here.git_dir, "MERGE_HEAD")
    if not os.path.exists(merged):
        return tuple(paths)
    words = ("diff", "--cached", "--name-only", "-z", "--no-renames", "--no-ext-diff", "MERGE_HEAD")
    variables = {"GIT_INDEX_FILE": index} if index else {}
    found = run_git(*words, cwd=here.root, git_dir=here.git_dir, variables=variables)
    if found.exit_code:
        return tuple(paths)
    changed = set(found.stdout.split("\0"))
    return tuple(path for path in paths if path in changed)


def _branch_of(here: Checkout) -> str:
    branch = head_of(here.git_dir)
    if branch != ".invalid":
        return branch
    return try_git_output(here, "symbolic-ref", "--quiet", "--short", "HEAD")


def _kind(here: Checkout, old: str, new: str) -> str:
    if not old.strip("0"):
        return "new"
    if not new.strip("0"):
        return "-"
    found = run_git("merge-base", "--is-ancestor", old, new, cwd=here.root, git_dir=here.git_dir)
    return "forced" if found.exit_code else "-"


# ------------------------------------------------------------------------------------------------ judging


def _judge_here(here: Checkout, asked: Asked, pid: str) -> tuple[int, str]:
    repo = open_usual(here.root)
    code, message = _judge(repo, here, asked, os.environ, is_packing=_is_packing(pid))
    if asked.hook == _COMMIT:
        if not code and asked.branch:
            _note_judged(here, pid, asked.branch)
        _note_facts(repo, here)
    return code, message


def _judge(
    repo: Repository,
    here: Checkout,
    asked: Asked,
    environment: Mapping[str, str],
    *,
    is_packing: bool = False,
) -> tuple[int, str]:
    repo = replace(repo, checkout=here)
    caller = _caller(repo, environment)
    is_canary = bool(environment.get(CANARY))
    try:
        try:
            _check_hook(repo, caller, asked, is_packing=is_packing)
        except LandlaneError as error:
            reason = environment.get("LANDLANE_OVERRIDE", "").strip()
            if not reason:
                raise
            commit_push.override(repo, caller, reason, asked.hook, error)
            return 0, f"landlane: overridden and written down: {error.message}\n"
    except LandlaneError as error:
        if not is_canary:
            commit_push.note_refusal(repo, caller.session, error)
        return 1, _refused(asked.hook, error, is_person=not caller.why_no_person)
    return 0, ""


def _check_hook(repo: Repository, caller: Caller, asked: Asked, *, is_packing: bool) -> None:
    if asked.hook == _COMMIT:
        judge_commit(repo, caller, asked.paths, asked.branch)
    elif asked.hook == _PUSH:
        remote = asked.words[0] if asked.words else ""
        pushed = [
            Pushed(ref=ref, new=new, is_new=kind == "new", is_forced=kind == "forced")
            for ref, new, kind in asked.moves
        ]
        judge_push(repo, caller, remote, pushed)
    else:
        moves = [Move(ref=ref, new=new) for ref, new, _ in asked.moves]
        judge_moves(repo, caller, moves, is_packing=is_packing)


def _caller(repo: Repository, environment: Mapping[str, str]) -> Caller:
    """Return the caller of git. An agent whose session has ended is still an agent, without claims."""
    shown = environment.get("LANDLANE_SESSION", "")
    named = environment.get("LANDLANE_AGENT", "")
    person = person_name()
    who = identify.Caller(session_text=shown, agent_variable=named, person=person)
    try:
        joined = identify.known_session(repo, who)
    except LandlaneError as error:
        return Caller(session=None, name=named or "an agent", why_no_person=error.message)
    session = joined.session if joined else None
    why = ""
    if shown or named:
        why = "LANDLANE_SESSION and LANDLANE_AGENT are for agents"
    elif session is not None and session.kind != "person":
        why = f"this is the session of {session.agent}, an agent"
    elif client := next((name for name in _CLIENTS if name in environment), ""):
        why = f"this runs in a coding client: {client} is set"
    return Caller(session=session, name=session.agent if session else named or person, why_no_person=why)


def _is_packing(pid: str) -> bool:
    """Return whether the calling git process only packs refs."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
    except OSError:
        return False
    return os.path.basename(words[0]) == b"git" and b"pack-refs" in words[1:2]


def _refused(hook: str, error: LandlaneError, *, is_person: bool = False) -> str:
    message = f"landlane: {_WHAT.get(hook, 'this')} is refused: {error.message}\n"
    if error.hint:
        message += f"hint: {error.hint}\n"
    if is_person:
        message += 'hint: you can override it with a reason, which is kept: LANDLANE_OVERRIDE="why" git …\n'
    return message


def _note_judged(here: Checkout, pid: str, branch: str) -> None:
    """Record that the commit was checked, as git_fast_path.py does, so that the branch hook can skip it."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            started = file.read().rpartition(") ")[2].split(" ")[19]
        with open(os.path.join(here.git_dir, JUDGED), "w", encoding="utf-8") as file:
            file.write(f"{pid} {started} {_HEADS}{branch}\n")
    except (OSError, IndexError):
        return


def _note_facts(repo: Repository, here: Checkout) -> None:
    """Write the facts for the fast path, valid for these settings; it only covers simple cases."""

    def stamp(path: str) -> str:
        try:
            return stamp_of(os.stat(path))
        except OSError:
            return "-"

    path = os.path.join(here.git_dir, _FACTS)
    own, at_home = (os.path.join(root, FILE_NAME) for root in (here.root, here.home_checkout.root))
    settings = repo.settings
    store = str(getattr(repo.store, "path", ""))
    ignores_case = repo.git.pattern_of("A", "literal").alternatives[0].key != "A"
    repo = replace(repo, checkout=here)
    facts = ["1", here.root, own, stamp(own), at_home, stamp(at_home), repo.store.repository, store, ""]
    known = "\n".join(facts)
    is_simple = store and not (ignores_case or settings.claims.required or settings.hooks.policy == STRICT)
    try:
        if os.path.exists(path):
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                if is_simple and file.read().startswith(known):
                    return
        if not is_simple:
            if os.path.exists(path):
                os.unlink(path)
            return
        # Uncommitted settings may guard the target once they are committed.
        waits = settings.landing.checks is not None
        target = likely_target(repo) if waits else guarded_target(repo)
        write_whole(path, known + (target.branch if target else "-"))
    except OSError:
        return


# ---------------------------------------------------------------------------------------------- the resident


def _ask_resident(here: Checkout, asked: Asked) -> tuple[int, str]:
    """Let the resident check the request; in a sandbox nothing else can."""
    from landlane.resident.messages import pack_request, send_request, shared_environment  # noqa: PLC0415 - only in a sandbox

    environment = {os.fsencode(name): os.fsencode(text) for name, text in os.environ.items()}
    words = [b"git", asked.hook.encode()]
    request = pack_request(
        b"hook", os.fsencode(here.root), words, shared_environment(environment), _with_root(here, asked)
    )
    heard = send_request(os.environ["LANDLANE_RESIDENT"], request, _RESIDENT_SECONDS)
    if heard is None:
        raise RepositoryError(
            "the resident does not answer, and in the sandbox nobody else can judge",
            code="NO_RESIDENT",
            hint="try again; outside, `landlane doctor` tells more",
        )
    return heard[0], heard[2].decode("utf-8", "replace")


def _with_root(here: Checkout, asked: Asked) -> bytes:
    return os.fsencode(here.root) + b"\0" + asked.packed()


def answer_for_guest(
    hook: str, payload: bytes, environment: Mapping[str, str], open_at: Callable[[str], Repository]
) -> HookOutput:
    """Check a request from a sandbox, in the resident; its git is trusted about its own clone."""
    try:
        root, _, rest = payload.partition(b"\0")
        repo = open_at(os.fsdecode(root))
        here = find_checkout(os.fsdecode(root))
        told = {name: text for name, text in environment.items() if name != "LANDLANE_OVERRIDE"}
        code, message = _judge(repo, here, _unpacked(hook, rest), told)
    except LandlaneError as error:
        code, message = 1, _refused(hook, error)
    return HookOutput(exit_code=code, stderr=message)
