"""Handoffs for Python agents: `Landlane.handoffs`."""

from __future__ import annotations

from landlane.api.session_view import SessionView
from landlane.handoffs.accept import accept_handoff, decline_handoff
from landlane.handoffs.context import context_for
from landlane.handoffs.model import Draft
from landlane.handoffs.records import find_handoff, handed_to, list_handoffs
from landlane.handoffs.send import collect_and_send, send_handoff
from landlane.state.steps import find_step
from landlane.tasks.model import ANYBODY
from landlane.tasks.records import get_task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from landlane.api.claim_values import Refused
    from landlane.api.task_values import Accepted, Handoff


class Handoffs(SessionView):
    """Handoffs of tasks between sessions, as one session sees them."""

    def send(
        self,
        task: str,
        *,
        to: str = ANYBODY,
        product: str = "",
        context: str = "",
        constraints: Sequence[str] = (),
        next: str = "",
        blockers: Sequence[str] = (),
        assumptions: Sequence[str] = (),
        fields: Mapping[str, Any] | None = None,
        maximum: int = 0,
        key: str = "",
        memo: Callable[[Handoff], str] = lambda _: "",
    ) -> Handoff:
        """Hand off one of your tasks: to an agent, to `role:NAME`, or to any agent.

        The task's state in git, its claims, commands and earlier attempts are included automatically.
        With a `key` it is sent once: the same key again, also in another process, gives back what was sent.
        `memo` is kept with it in the same change; see `Landlane.steps`.

        Example:
            `ann.handoffs.send("T1", to="bob", next="fix the two failing tests", context="…")`

        Raises:
            Malformed: the handoff does not match this project's schema.
            Stale: the task no longer belongs to this session.
            WaitsForPerson: the work was handed off too often; a person must decide.
        """
        draft = Draft(
            task=task,
            to=to,
            product=product,
            context=context,
            constraints=tuple(constraints),
            next=next,
            blockers=tuple(blockers),
            assumptions=tuple(assumptions),
            fields=dict(fields or {}),
            maximum=maximum,
        )
        repo, session = self._repo, self._session
        done = find_step(repo, key) if key else None
        if done is not None and (sent := self.show(done.about)) is not None:
            return sent
        also = self._step_recorder(key, task, lambda handoff: handoff.id, memo)
        if not repo.checkout.common_dir:
            return self._settled(send_handoff(repo, session, draft, also=also))
        return self._settled(collect_and_send(repo.require_git(), session, draft, also=also))

    def accept(self, task: str, digest: str = "") -> Accepted | Refused:
        """Accept a handed-off task with its claims and its workspace; the hash shows what was read.

        Raises:
            Malformed: the task was not handed off.
            Held: it is addressed to another agent, for now.
            Stale: the hash differs, or another session has accepted it.
        """
        return self._settled(accept_handoff(self._repo, self._session, task, digest))

    def decline(self, task: str, why: str) -> Handoff:
        """Decline a handed-off task, with a reason; then any agent may take it.

        Raises:
            Held: it is addressed to another agent.
        """
        return self._settled(decline_handoff(self._repo, self._session, task, why))

    def show(self, task: str) -> Handoff | None:
        """Return the newest handoff of a task, or the one with this id."""
        return self._public(find_handoff(self._repo, task))

    def list(self, *, everything: bool = False) -> Sequence[Handoff]:
        """Return the handoffs that wait to be accepted, or all."""
        return self._public(list_handoffs(self._repo, with_settled=everything))

    def mine(self) -> Sequence[Handoff]:
        """Return the handoffs that wait for this agent."""
        return self._public(handed_to(self._repo, self._session))

    def context(self, task: str) -> str:
        """Return what a task's owner should read first: the handoff, or what its last owner left."""
        repo = self._repo
        return context_for(repo.require_git() if repo.checkout.common_dir else repo, get_task(repo, task))
