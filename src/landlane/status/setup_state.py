"""Read how a repository is set up, and which coding clients are installed."""

from __future__ import annotations

import os

from landlane.clients.model import CLIENTS
from landlane.clients.setup_checks import find_client_program
from landlane.clients.setup_files import ClientEnvironment
from landlane.git.hooks.hooks_path import load_installed_hooks
from landlane.managed_files.manifest import load_record
from landlane.settings.detect_test_command import find_test_command
from landlane.status.next_steps import RepositorySetup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.repository import Repository


def read_setup(repo: Repository) -> RepositorySetup:
    """Return how a repository is set up."""
    checkout, settings = repo.checkout, repo.settings
    record = load_record(checkout.state_folder)
    has_git = bool(checkout.common_dir)
    has_git_hooks = has_git and load_installed_hooks(checkout.home_checkout.common_dir) is not None
    has_checks = settings.landing.checks is not None
    return RepositorySetup(
        is_set_up=bool(record.entries) or has_git_hooks,
        has_git=has_git,
        has_checks=has_checks,
        checks="" if has_checks else find_test_command(checkout.root)[0],
        agent=settings.run.agent,
        clients=record.clients,
        workers=tuple(settings.agents),
    )


def installed_clients(root: str) -> list[str]:
    """Return the titles of the coding clients whose programs are on the search path."""
    home = os.path.expanduser("~")
    place = ClientEnvironment(
        root=root, home=home, search_path=os.environ.get("PATH", ""), variables=os.environ
    )
    return [client.title for name, client in CLIENTS.items() if find_client_program(place, name)]
