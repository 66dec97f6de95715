"""Equipping a checkout for the clients in use: which files each of them needs, and which git must not see.

A client's hooks name this machine's interpreter, so their files are kept out of commits by git's own list of
excluded files. A new workspace therefore has none of them, and is equipped when it is made ready.
"""

from __future__ import annotations

import os

from landlane.clients.hook_command import hook_command, sdk_release, server_words
from landlane.clients.registry import NAMES, setup_of
from landlane.clients.setup_model import ClientEnvironment
from landlane.errors import LandlaneError, Malformed
from landlane.git.discovery import find_checkout
from landlane.git.run import run_in
from landlane.managed_files.apply import FileRequest, carry_out, plan_changes
from landlane.managed_files.formats import IGNORED, NotMergeable
from landlane.managed_files.json_comments import COMMENT, MARK
from landlane.managed_files.manifest import init_lock, load_record
from landlane.managed_files.mcp_servers import merged
from landlane.managed_files.text_block import HASHES, block_of
from landlane.managed_files.user_files import read_bytes
from landlane.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from landlane.clients.setup_model import ClientFile
    from landlane.context import Site
    from landlane.git.discovery import Checkout


# What clients were seen to understand in their settings. With anything else some do not start, and some go on
# without these settings, and so without our hooks.
_READS = {"claude": (MARK,), "gemini": (COMMENT,), "qwen": (COMMENT, MARK)}
_TRACKED = "under version control: do not commit this change, it names this machine's interpreter"


def client_environment(root: str) -> ClientEnvironment:
    """Where a client would run in this checkout, as this process sees it."""
    environment = dict(os.environ)
    home = os.path.expanduser("~")
    return ClientEnvironment(
        root=root, home=home, search_path=environment.get("PATH", ""), environment=environment
    )


def clients_in_use(place: ClientEnvironment) -> list[str]:
    """The clients that are on this machine, or have settings in this checkout."""
    return [name for name in NAMES if setup_of(name).is_used(place)]


def check_names(names: Sequence[str]) -> None:
    """Refuse a client that nobody knows.

    Raises:
        Malformed: there is none of that name.
    """
    for name in names:
        if name not in NAMES:
            raise Malformed(
                f"{name[:40]!r} is no client that can be set up",
                code="UNKNOWN_CLIENT",
                hint=f"one of {', '.join(NAMES)}",
            )


def client_requests(names: Sequence[str], place: ClientEnvironment) -> list[FileRequest]:
    """The files that these clients need in a checkout, and in the home of its user."""
    found: list[FileRequest] = []
    for name in names:
        setup = setup_of(name)
        for wanted in _wanted_by(name):
            is_home = wanted.path.startswith("~/")
            base = place.home if is_home else place.root
            path = os.path.join(base, wanted.path[2:] if is_home else wanted.path)
            if any(one.path == path and one.content == wanted.content for one in found):
                continue  # two clients read the same file, and want the same of it
            found.append(
                FileRequest(
                    path=path,
                    root=place.root,
                    form=wanted.form,
                    content=wanted.content,
                    why=f"{setup.TITLE}: {wanted.why}",
                    is_private=not is_home,
                    reader=setup.TITLE,
                    reads=_READS.get(name, ()),
                )
            )
    return found


def _wanted_by(name: str) -> list[ClientFile]:
    """What a client needs: its hooks, and our MCP server where its SDK is installed; each file once."""
    setup = setup_of(name)
    servers: Callable[[list[str]], tuple[ClientFile, ...]] = getattr(setup, "mcp_wanted", lambda _: ())
    all_of_it = [*setup.wanted(_commands_for(name)), *(servers(server_words()) if sdk_release() else ())]
    by_path: dict[str, list[ClientFile]] = {}
    for one in all_of_it:
        by_path.setdefault(one.path, []).append(one)
    return [
        replace(some[0], content=merged([one.content for one in some])) if len(some) > 1 else some[0]
        for some in by_path.values()
    ]


def _commands_for(name: str) -> Callable[[str, bool], str]:
    return lambda word, is_guard: hook_command(name, word, is_guard)


def keep_out_of_commits(checkout: Checkout, wishes: Sequence[FileRequest]) -> list[FileRequest]:
    """The same wishes, with what keeps the private ones out of commits; tracked ones are marked as such."""
    if not checkout.common_dir:
        return list(wishes)
    private = [os.path.relpath(wish.path, checkout.root) for wish in wishes if wish.is_private]
    tracked = tracked_of(checkout, private)
    marked = [
        replace(wish, why=f"{wish.why} ({_TRACKED})")
        if wish.is_private and os.path.relpath(wish.path, checkout.root) in tracked
        else wish
        for wish in wishes
    ]
    hidden = _hide(checkout, [path for path in private if path not in tracked])
    return [*hidden, *marked]


def main_checkout_requests(names: Sequence[str], checkout: Checkout) -> list[FileRequest]:
    """What clients need in the main checkout of a linked worktree: some read their hooks only there.

    What git has there is left as it is, as in any checkout in which one does not stand.
    """
    home = checkout.home_checkout
    if home.root == checkout.root or not os.path.isdir(os.path.join(home.root, ".git")):
        return []
    wishes = [one for one in client_requests(names, client_environment(home.root)) if one.is_private]
    tracked = tracked_of(home, [os.path.relpath(wish.path, home.root) for wish in wishes])
    return [wish for wish in wishes if os.path.relpath(wish.path, home.root) not in tracked]


def tracked_of(checkout: Checkout, paths: Sequence[str]) -> set[str]:
    """Which of these paths git has in its index."""
    if not paths or not checkout.common_dir:
        return set()
    found = run_in(checkout, "ls-files", "-z", "--", *(f":(top,literal){path}" for path in paths))
    return set(found.stdout.split("\0")) - {""}


def _hide(checkout: Checkout, paths: Sequence[str]) -> list[FileRequest]:
    """What has to stand among git's excluded files, so that these do not look like somebody's work."""
    exclude = os.path.join(checkout.common_dir, "info", "exclude")
    try:
        there = block_of((read_bytes(exclude) or b"").decode("utf-8", "surrogateescape"), HASHES)
    except LandlaneError:
        there = None
    lines = there.split("\n") if there else []
    asked = run_in(checkout, "check-ignore", "-z", "--stdin", stdin="\0".join(paths).encode())
    ignored = set(asked.stdout.split("\0"))
    more = [f"/{path}" for path in paths if f"/{path}" not in lines and path not in ignored]
    if not lines and not more:
        return []
    body = "\n".join([*lines, *dict.fromkeys(more)])
    why = "what holds on this machine only stays out of commits"
    return [FileRequest(path=exclude, root=checkout.root, form=IGNORED, content=body, why=why)]


def equip(site: Site, root: str) -> None:
    """Install into another checkout what init set up for the clients; quietly, and as often as one likes.

    What git has there is left as it is: the workspace must not look as if somebody had worked in it.
    """
    state = site.home.state_folder
    try:
        if not load_record(state).clients:
            return
        checkout = find_checkout(root)
        with init_lock(state):
            record = load_record(state)
            gone = [entry.path for entry in record.entries if not os.path.isdir(entry.root)]
            if gone:
                record = replace(
                    record, entries=tuple(entry for entry in record.entries if entry.path not in gone)
                )
            wishes = [
                one for one in client_requests(record.clients, client_environment(root)) if one.is_private
            ]
            tracked = tracked_of(checkout, [os.path.relpath(wish.path, root) for wish in wishes])
            for name in sorted(tracked):
                site.tell(f"{name} is under version control, and stays as it is in this workspace")
            new = [wish for wish in wishes if os.path.relpath(wish.path, root) not in tracked]
            carry_out(state, record, plan_changes(state, record, keep_out_of_commits(checkout, new)))
    except (LandlaneError, NotMergeable, OSError) as error:
        site.tell(f"the clients have no hooks in this workspace: {error}; `landlane doctor` there tells more")
