"""The Python workers of the demo as `landlane run` starts them: a deed, a commit, the worker protocol."""

from __future__ import annotations

from landlane.demo.sample_project import git
from landlane.demo.task_actions import Broken, Hands, do
from landlane.worker import Failure, serve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from landlane.protocol.worker.messages import WorkComplete
    from landlane.worker import Work


def work_on(work: Work) -> WorkComplete:
    """Do the task whose description is `KEY SECONDS`."""
    assignment = work.assignment
    key, _, think = (assignment.body or "").partition(" ")
    folder = assignment.folder
    notes = "\n".join(assignment.notes)
    hands = Hands(folder, float(think), is_coordinated=True, attempt=assignment.attempt, notes=notes)
    work.progress(f"begun: {assignment.title}")
    try:
        do(key, assignment.paths, hands)
    except Broken as trouble:
        raise Failure(str(trouble)) from trouble
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", assignment.title)
    return work.complete("done", commit=git(folder, "rev-parse", "HEAD"))


if __name__ == "__main__":
    serve(work_on)
