"""Commands under Plan and run: task, plan, run, queue."""

from __future__ import annotations

from landlane.cli.specs.model import FOREVER, argument, command, flag, option

COMMANDS = (
    command(
        "task add",
        "Add a task.",
        argument("title"),
        option("--path", "Path it will change; repeatable", "PATH", is_repeated=True, completes="path"),
        option("--check", "Command that must pass, run by Landlane", "COMMAND"),
        option(
            "--after", "Task that must be done first; repeatable", "ID", is_repeated=True, completes="task"
        ),
        option("--body", "File with the description, - for stdin", "FILE", completes="file"),
        option("--priority", "Higher goes first; one step is worth an hour of waiting", "N"),
        option("--role", "Only for agents in this role", "ROLE", completes="role"),
        option("--kind", "Kind of evidence: code, output, chore or your own", "KIND"),
        option("--output", "File that a task without git writes", "PATH", completes="file"),
        option("--max-attempts", "Number of attempts before a person is asked", "N"),
        option("--review", "Number of reviewers who must approve", "N"),
        option("--reviewer", "Reviewer; repeatable", "NAME", is_repeated=True, completes="agent"),
        option("--decider", "Decides when reviewers disagree: an agent, or person", "NAME"),
        option("--parent", "Task it was split from", "ID", completes="task"),
        option("--label", "Word to find it by; repeatable", "WORD", is_repeated=True),
        option("--key", "Your own id: adding the same key again changes nothing", "KEY"),
        option("--next", "First step for its owner", "TEXT"),
        option("--assign", "Only for this agent or person:NAME", "NAME", completes="agent"),
        option("--gate", "Ask a person this before any agent takes it", "TEXT"),
        flag("--fixes-target", "It repairs the target branch: started while that fails"),
        flag("--force", "Add it even if it looks like another task"),
        examples=(
            "landlane task add 'List users' --path src/api.py --check 'pytest tests/test_api.py'",
            "landlane task add 'Document payments' --path docs/pay.md --after T13 --after T14",
        ),
        exits="0 added, 3 looks like another task",
    ),
    command(
        "task list",
        "List tasks.",
        flag("--all", "Include done and dropped tasks"),
        option("--state", "Only in this state, such as needs-you; repeatable", "STATE", is_repeated=True),
        option("--label", "Only with this label", "WORD"),
        flag("--markdown", "Print a TASKS.md checklist"),
        examples=(
            "landlane task list",
            "landlane task list --state ready --state blocked",
        ),
    ),
    command(
        "task show",
        "Show one task in full.",
        argument("task", completes="task"),
        handler="task_show:show",
        examples=("landlane task show T12",),
    ),
    command(
        "task log",
        "Show a task's attempts and worker output.",
        argument("task", completes="task"),
        option("--attempt", "Show this attempt (default: the newest)", "N"),
        flag("--follow", "Print output as it comes, until the attempt ends"),
        handler="task_log:log",
        examples=(
            "landlane task log T12",
            "landlane task log T12 --follow",
        ),
    ),
    command(
        "task edit",
        "Change title, body, paths, priority or assignee.",
        argument("task", completes="task"),
        option("--title", "New title", "TEXT"),
        option("--body", "File with the new description, - for stdin", "FILE", completes="file"),
        option(
            "--path", "New paths, before it is taken; repeatable", "PATH", is_repeated=True, completes="path"
        ),
        option("--priority", "New priority; higher goes first", "N"),
        option("--assign", "Only for this agent or person:NAME; anybody for all", "NAME", completes="agent"),
        option("--next", "First step for its owner", "TEXT"),
        flag("--force", "Go on even if it now looks like another task"),
        examples=(
            "landlane task edit T12 --title 'List active users' --priority 2",
            "landlane task edit T12 --path src/api.py --path docs/api.md",
        ),
    ),
    command(
        "task split",
        "Split a task into parts and join the results.",
        argument("task", completes="task"),
        argument("plan", completes="file"),
        option(
            "--policy",
            "Parts that must be done to join: all, any, a number, or collect",
            "POLICY",
            default="all",
        ),
        option("--deadline", "Join with what is done after TIME", "TIME"),
        option(
            "--rest",
            "Parts not started at the join: drop or keep",
            "WHAT",
            default="drop",
            choices=("drop", "keep"),
        ),
        handler="fanout:split",
        examples=(
            "landlane task split T14 parts.md",
            "landlane task split T14 parts.toml --policy 2 --deadline 1h",
        ),
    ),
    command(
        "task parts",
        "Show the parts of a split task and their results.",
        argument("task", is_optional=True, completes="task"),
        flag("--all", "Include joined tasks"),
        handler="fanout:parts",
        examples=(
            "landlane task parts",
            "landlane task parts T14",
        ),
    ),
    command(
        "task after",
        "Make a task wait for another.",
        argument("task", completes="task"),
        argument("before", completes="task", needs="the task to wait for"),
        examples=("landlane task after T15 T13",),
    ),
    command(
        "task block",
        "Keep a task from being taken.",
        argument("task", completes="task"),
        option("--why", "Reason, shown to the next agent", "TEXT"),
        examples=("landlane task block T12 --why 'waiting for the new API'",),
    ),
    command(
        "task unblock",
        "Make a blocked task available again.",
        argument("task", completes="task"),
        examples=("landlane task unblock T12",),
    ),
    command(
        "task retry",
        "Give a failed task a new attempt budget.",
        argument("task", completes="task"),
        option("--why", "Reason, shown to the next agent", "TEXT"),
        details="By a person, this also answers the question about it and ends a running attempt.",
        examples=("landlane task retry T12 --why 'the flaky test is fixed'",),
    ),
    command(
        "task drop",
        "Drop a task.",
        argument("task", completes="task"),
        option("--why", "Reason, shown to the next agent", "TEXT"),
        examples=("landlane task drop T12 --why 'no longer needed'",),
    ),
    command(
        "task import",
        "Add tasks from a checklist.",
        argument("file", completes="file"),
        flag("--force", "Add tasks even if they look like others"),
        handler="task:import_list",
        details="Importing the same file again adds nothing.",
        examples=("landlane task import TASKS.md",),
    ),
    command(
        "task sync",
        "Keep a checklist file and the queue equal.",
        argument("file", completes="file"),
        option(
            "--prefer",
            "Where both changed, take the side of: queue or file",
            "SIDE",
            choices=("queue", "file"),
        ),
        details=(
            "Lines become tasks and keep their ids: `- [ ] Title (path: src/a.py) @agent (T12)`. Done tasks "
            "are ticked; titles and assignees follow an edit on either side. Only lines of tasks change. "
            "Conflicts, unknown words and ticks without evidence are shown and left."
        ),
        examples=("landlane task sync TASKS.md", "landlane task sync TASKS.md --prefer queue"),
    ),
    command(
        "plan check",
        "Check a plan before running it.",
        argument("plan", completes="file"),
        details=(
            'A plan is a checklist, "- [ ] Add refunds (path: src/pay/**)", or TOML with one [[task]] per '
            'task: title = "Add refunds", paths = ["src/pay/**"], after = ["Charge cards"], check = "make '
            'test". Other keys: name, body, role, agent, kind, output, priority, attempts, estimate, budget, '
            "needs, review, reviewers, decider, contract, fixes-target, labels."
        ),
        examples=("landlane plan check plan.toml",),
        exits="0 it can run, 1 it cannot, 2 it cannot be read",
    ),
    command(
        "run",
        "Start workers on ready tasks and land their work.",
        argument("plan", is_optional=True, completes="file"),
        argument("command", is_rest=True, is_optional=True, completes="command"),
        option("--workers", "Number of workers at once (default: [run] workers)", "N"),
        option("--agent", "Agent for tasks that name none, such as claude", "NAME", completes="agent"),
        flag("--offline", "Start from what was fetched last"),
        flag("--forever", "Keep taking tasks as they become ready, until stopped"),
        flag("--until-empty", "Wait for tasks that others work on, too"),
        flag("--force", "Add planned tasks even if they look like others"),
        details=(
            "Runs the tasks of PLAN, or all that are ready. Each worker has its own checkout and "
            "sandbox. COMMAND does tasks that name no agent: the task comes in LANDLANE_TITLE, "
            "LANDLANE_PATHS and the file LANDLANE_TASK_FILE; exit 0 with changed files means done. "
            "Ctrl-C lets running attempts finish; a second one stops them and saves their work."
        ),
        examples=(
            "landlane run --agent claude",
            "landlane run plan.toml --workers 3",
            "landlane run -- ./do.sh",
        ),
        exits="0 all landed, 1 some failed, 7 something waits for a person, 130 stopped",
    ),
    command(
        "run pause",
        "Start no new attempts; running ones continue.",
        flag("--all", "Land and deploy nothing, either"),
        option("--why", "Reason, shown to the next agent", "TEXT"),
        examples=(
            "landlane run pause --why 'release freeze'",
            "landlane run pause --all --why 'release freeze'",
        ),
    ),
    command(
        "run resume",
        "Start attempts again.",
        examples=("landlane run resume",),
    ),
    command(
        "queue list",
        "List landings.",
        flag("--all", "Include ended landings"),
        flag("--conflicts", "Show which open branches conflict, and the best order"),
        examples=("landlane queue list",),
    ),
    command(
        "queue show",
        "Show a landing with its checks, or the target branch.",
        argument("landing", completes="landing", is_optional=True),
        details=(
            "Without a landing it shows the target: passing or failing, since which commit, by whom, "
            "the failing lines, and what waits. -v adds the full output."
        ),
        examples=(
            "landlane queue show L9",
            "landlane queue show",
        ),
    ),
    command(
        "queue run",
        "Run the landing queue.",
        flag("--drain", "End when the queue is empty"),
        option("--wait", "Wait for another process that runs it, at most TIME", "TIME", alone=FOREVER),
        handler="queue:run_queue",
        details=(
            "`landlane land --wait` and `landlane run` run the queue themselves; this is for schedules. "
            "--drain also waits while another process runs the queue."
        ),
        examples=("landlane queue run --drain",),
    ),
    command(
        "queue eject",
        "Take a landing out of the queue.",
        argument("landing", completes="landing"),
        option("--why", "Reason, shown to the next agent", "TEXT"),
        examples=("landlane queue eject L9 --why 'wrong branch'",),
    ),
    command(
        "queue resume",
        "Continue after the queue paused.",
        option("--why", "Reason, shown to the next agent", "TEXT"),
        examples=("landlane queue resume",),
    ),
)
