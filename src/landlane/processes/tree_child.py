"""A worker's process: a child whose whole tree can be found and ended by its mark, and the pipes to it."""

from __future__ import annotations

import os
import signal

from landlane.processes.child import Child
from landlane.processes.tree import TREE_MARK, end_tree, new_tree_id, record_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from landlane.processes.tree import ProcessTree


_GRACE_SECONDS = 5.0  # between asking a tree to end and killing it


class WorkerChild(Child):
    """A plain child with everything it will ever start, found by a mark in the environment.

    A child in a sandbox (`SandboxedChild`) can do the same and more.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: str,
        environment: Mapping[str, str] | None = None,
        without: Sequence[str] = (),
        streams: tuple[int, int, int] | None = None,
        tree_id: str = "",
    ) -> None:
        tree_id = tree_id or new_tree_id()
        super().__init__(
            command,
            cwd=cwd,
            environment={**(environment or {}), TREE_MARK: tree_id},
            without=without,
            streams=streams,
        )
        self.tree: ProcessTree = record_tree(tree_id, self.pid, is_wrapped=False)

    def signal(self, number: int) -> None:
        """Send a signal to the group; the one that kills also takes whoever left it."""
        if number == signal.SIGKILL:
            self.end(grace_seconds=0)
        super().signal(number)

    def end(self, *, grace_seconds: float = _GRACE_SECONDS) -> int:
        """End the command and everything it started; tells how many processes there were."""
        return end_tree(self.tree, grace_seconds=grace_seconds)


class ChildPipes:
    """Three pipes, and which of their ends are whose."""

    def __init__(self) -> None:
        child_in, self.to_child = os.pipe()
        self.from_child, child_out = os.pipe()
        self.errors, child_errors = os.pipe()
        self.theirs = (child_in, child_out, child_errors)
        self._open = {*self.theirs, self.to_child, self.from_child, self.errors}
        for ours in (self.to_child, self.from_child, self.errors):
            os.set_blocking(ours, False)

    def shut(self, descriptor: int) -> None:
        """Close one of them, unless it is closed."""
        if descriptor in self._open:
            self._open.discard(descriptor)
            os.close(descriptor)

    def close_theirs(self) -> None:
        for one in self.theirs:
            self.shut(one)

    def close(self) -> None:
        for one in tuple(self._open):
            self.shut(one)
