"""A worker's process, whose descendants are found and ended by a mark, and the pipes to it."""

from __future__ import annotations

import os
import signal

from landlane.ids import new_uuid
from landlane.processes.child import Child
from landlane.processes.tree import TREE_MARK, end_tree, record_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from landlane.processes.tree import ProcessTree


_GRACE_SECONDS = 5.0  # between asking a tree to end and killing it


class WorkerChild(Child):
    """An unsandboxed child whose descendants are found by a mark in their environment."""

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
        tree_id = tree_id or new_uuid()
        super().__init__(
            command,
            cwd=cwd,
            environment={**(environment or {}), TREE_MARK: tree_id},
            without=without,
            streams=streams,
        )
        self.tree: ProcessTree = record_tree(tree_id, self.pid, is_wrapped=False)

    def signal(self, number: int) -> None:
        """Send a signal to the group; SIGKILL also ends descendants that left the group."""
        if number == signal.SIGKILL:
            self.end(grace_seconds=0)
        super().signal(number)

    def end(self, *, grace_seconds: float = _GRACE_SECONDS) -> int:
        """End the command and its descendants; return how many processes there were."""
        return end_tree(self.tree, grace_seconds=grace_seconds)


class ChildPipes:
    """The pipes to a child's input, output and errors; `theirs` are the child's ends."""

    def __init__(self) -> None:
        child_in, self.to_child = os.pipe()
        self.from_child, child_out = os.pipe()
        self.errors, child_errors = os.pipe()
        self.theirs = (child_in, child_out, child_errors)
        self._open = {*self.theirs, self.to_child, self.from_child, self.errors}
        for ours in (self.to_child, self.from_child, self.errors):
            os.set_blocking(ours, False)

    def shut(self, descriptor: int) -> None:
        """Close one end, unless it is closed."""
        if descriptor in self._open:
            self._open.discard(descriptor)
            os.close(descriptor)

    def close_theirs(self) -> None:
        for descriptor in self.theirs:
            self.shut(descriptor)

    def close(self) -> None:
        for descriptor in tuple(self._open):
            self.shut(descriptor)
