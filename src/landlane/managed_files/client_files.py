"""Write the files that clients need into a checkout, and keep them out of commits.

A client's hooks name this machine's interpreter, so their files are listed in git's own list of excluded
files. A new workspace therefore has none of them, and gets them when it is opened.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import reduce

from landlane.clients.model import CLIENTS, HOOK_CLIENTS, check_client
from landlane.clients.registry import setup_of
from landlane.clients.setup_checks import is_used
from landlane.clients.setup_files import (
    IGNORED,
    ClientEnvironment,
    ClientFile,
    environment_at,
    hook_command,
    sdk_release,
    server_words,
)
from landlane.errors import LandlaneError
from landlane.git.discovery import Checkout, find_checkout
from landlane.git.run import run_in
from landlane.managed_files.apply import FileRequest, carry_out, plan_changes
from landlane.managed_files.formats import NotMergeable
from landlane.managed_files.json_entries import merge_wanted
from landlane.managed_files.manifest import init_lock, load_record
from landlane.managed_files.text_block import HASHES, block_of
from landlane.managed_files.user_files import read_bytes
from landlane.merge.json_source import COMMENT, MARK
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository


# What clients accept in their settings beyond plain JSON. With anything else, some do not start, and some
# ignore these settings, and so our hooks.
_ACCEPTED = {"claude": (MARK,), "gemini": (COMMENT,), "qwen": (COMMENT, MARK)}
_TRACKED = "do not commit this change: it names this machine's interpreter"


def clients_in_use(env: ClientEnvironment) -> list[str]:
    """Return the clients that are installed on this machine, or have settings in this checkout."""
    return [name for name in HOOK_CLIENTS if is_used(env, name)]


def check_names(names: Sequence[str]) -> None:
    """Refuse a client that cannot be set up.

    Raises:
        Malformed: there is none of that name.
    """
    for name in names:
        check_client(name, HOOK_CLIENTS, f"unknown client {name[:40]}")


def client_requests(names: Sequence[str], env: ClientEnvironment) -> list[FileRequest]:
    """Return the files that these clients need in a checkout, and in the home of its user."""
    requests: list[FileRequest] = []
    for name in names:
        for file in _files_for(name):
            path = env.path(file.path)
            if any(one.path == path and one.content == file.content for one in requests):
                continue  # two clients read the same file, and want the same of it
            requests.append(
                FileRequest(
                    path=path,
                    root=env.root,
                    form=file.form,
                    content=file.content,
                    why=f"{file.why} {CLIENTS[name].title}",
                    is_private=not file.path.startswith("~/"),
                    reader=CLIENTS[name].title,
                    accepted=_ACCEPTED.get(name, ()),
                )
            )
    return requests


def _files_for(name: str) -> list[ClientFile]:
    """Return the files of a client: its hooks, and our MCP server where its SDK is installed."""
    setup = setup_of(name)
    files = [
        *setup.wanted_files(lambda event, is_guard: hook_command(name, event, is_guard)),
        *(setup.server_files(server_words()) if sdk_release() else ()),
    ]
    by_path: dict[str, list[ClientFile]] = {}
    for file in files:
        by_path.setdefault(file.path, []).append(file)
    return [
        replace(files[0], content=reduce(merge_wanted, [file.content for file in files]))
        for files in by_path.values()
    ]


def keep_out_of_commits(checkout: Checkout, requests: Sequence[FileRequest]) -> list[FileRequest]:
    """Return the same requests, and one that has git exclude the private files; tracked ones are marked."""
    if not checkout.common_dir:
        return list(requests)
    private = [request for request in requests if request.is_private]
    tracked = _tracked(checkout, private)
    marked = [
        replace(request, why=f"{request.why}; {_TRACKED}") if request in tracked else request
        for request in requests
    ]
    hidden = [os.path.relpath(one.path, checkout.root) for one in private if one not in tracked]
    return [*_exclude(checkout, hidden), *marked]


def main_checkout_requests(names: Sequence[str], checkout: Checkout) -> list[FileRequest]:
    """Return what clients need in the main checkout of a linked worktree: some read their hooks only there.

    Files that git tracks there are left as they are.
    """
    home = checkout.home_checkout
    if home.root == checkout.root or not os.path.isdir(os.path.join(home.root, ".git")):
        return []
    requests = [one for one in client_requests(names, environment_at(home.root)) if one.is_private]
    tracked = _tracked(home, requests)
    return [request for request in requests if request not in tracked]


def _tracked(checkout: Checkout, requests: Sequence[FileRequest]) -> list[FileRequest]:
    """Return the requests for files that git has in its index."""
    if not requests or not checkout.common_dir:
        return []
    paths = {os.path.relpath(request.path, checkout.root): request for request in requests}
    listed = run_in(checkout, "ls-files", "-z", "--", *(f":(top,literal){path}" for path in paths))
    return [paths[path] for path in sorted(set(listed.stdout.split("\0")) & set(paths))]


def _exclude(checkout: Checkout, paths: Sequence[str]) -> list[FileRequest]:
    """Return the request that adds paths to git's excluded files, so that they do not look like work."""
    exclude = os.path.join(checkout.common_dir, "info", "exclude")
    try:
        block = block_of((read_bytes(exclude) or b"").decode("utf-8", "surrogateescape"), HASHES)
    except LandlaneError:
        block = None
    lines = block.split("\n") if block else []
    asked = run_in(checkout, "check-ignore", "-z", "--stdin", stdin="\0".join(paths).encode())
    ignored = set(asked.stdout.split("\0"))
    more = [f"/{path}" for path in paths if f"/{path}" not in lines and path not in ignored]
    if not lines and not more:
        return []
    body = "\n".join([*lines, *dict.fromkeys(more)])
    why = "keeps the files for this machine out of commits"
    return [FileRequest(path=exclude, root=checkout.root, form=IGNORED, content=body, why=why)]


def equip(repo: Repository, root: str) -> None:
    """Install into another checkout what init set up for the clients; it can be called again at any time.

    Files that git tracks there are left as they are, so that the workspace has no changes.
    """
    state = repo.home.state_folder
    try:
        if not load_record(state).clients:
            return
        checkout = find_checkout(root)
        with init_lock(state):
            record = load_record(state)
            record = replace(record, entries=tuple(one for one in record.entries if os.path.isdir(one.root)))
            env = environment_at(checkout.root)
            requests = [one for one in client_requests(record.clients, env) if one.is_private]
            tracked = _tracked(checkout, requests)
            for one in tracked:
                name = os.path.relpath(one.path, checkout.root)
                repo.report(f"{name} is under version control, and stays as it is in this workspace")
            new = keep_out_of_commits(checkout, [one for one in requests if one not in tracked])
            carry_out(state, record, plan_changes(state, record, new))
    except (LandlaneError, NotMergeable, OSError) as error:
        repo.report(f"the clients have no hooks in this workspace: {error}; see why: landlane doctor")
