"""One call of a tool: its repository, caller and arguments."""

from __future__ import annotations

from landlane.mcp.tool_caller import acting_session
from landlane.mcp.tool_schemas import LONGEST_WAIT_SECONDS
from landlane.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from landlane.mcp.background_jobs import Jobs
    from landlane.mcp.open_repositories import RepositoryPool
    from landlane.mcp.tool_caller import Starter
    from landlane.repository import Repository
    from landlane.sessions.model import Session


@value
class Call:
    """One call of a tool; `report` reports what it waits for."""

    repo: Repository
    pool: RepositoryPool
    jobs: Jobs
    starter: Starter
    tool: str
    given: Mapping[str, Any]
    meta: Mapping[str, Any]
    report: Callable[[str], None]
    is_given_up: Callable[[], bool] = lambda: False

    @property
    def session(self) -> Session:
        """Return the acting session; begin one if there is none."""
        return acting_session(self.repo, self.starter, self.tool, self.meta)

    @property
    def wait_seconds(self) -> int:
        """Return how long to wait: as requested, but never longer than clients wait for us."""
        return min(int(self.given.get("wait", 0)), LONGEST_WAIT_SECONDS)
