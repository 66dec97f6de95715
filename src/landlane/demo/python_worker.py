"""The Python worker of the demo, as `landlane run` starts it: do the task, commit, report."""

from __future__ import annotations

from landlane.demo.sample_project import git
from landlane.demo.task_actions import DemoWorker, TaskFailed, do_task
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
    worker = DemoWorker(folder, float(think), is_coordinated=True, attempt=assignment.attempt, notes=notes)
    work.progress(f"begun: {assignment.title}")
    try:
        do_task(key, assignment.paths, worker)
    except TaskFailed as error:
        raise Failure(str(error)) from error
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", assignment.title)
    return work.complete("done", commit=git(folder, "rev-parse", "HEAD"))


if __name__ == "__main__":
    serve(work_on)
