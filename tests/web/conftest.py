"""A page that is served for a repository, and a tab that has signed in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.page import PageClient, open_page, stop_page

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.shell import Shell


@pytest.fixture
def served(shell: Shell) -> Iterator[Shell]:
    """A repository whose page is stopped at the end of the test."""
    yield shell
    stop_page(shell)


@pytest.fixture
def page(served: Shell) -> PageClient:
    """A tab that a person has opened by a link."""
    client = PageClient(open_page(served)["url"])
    assert client.sign_in().status == 200
    return client
