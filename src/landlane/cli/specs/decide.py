"""Commands under Decide: inbox, gate, review, handoff."""

from __future__ import annotations

from landlane.cli.specs.model import FOREVER, argument, command, flag, option

COMMANDS = (
    command(
        "inbox",
        "Show and answer what waits for you.",
        argument("id", is_optional=True, completes="gate"),
        details=(
            "Lists everything that needs a person: changes that wait for approval, questions and reviews. "
            "First what unblocks the most work. With an id, shows that item, of any kind, and asks for your "
            "answer."
        ),
        examples=(
            "landlane inbox",
            "landlane inbox L8",
        ),
    ),
    command(
        "gate list",
        "List questions for a person.",
        flag("--all", "Include what has ended"),
        examples=("landlane gate list",),
    ),
    command(
        "gate show",
        "Show one question in full.",
        argument("id", completes="gate"),
        examples=("landlane gate show L8",),
    ),
    command(
        "gate ask",
        "Ask a person about your task.",
        argument("task", completes="task"),
        option("--why", "What to decide, and why", "TEXT"),
        option(
            "--kind",
            "Kind of decision",
            "KIND",
            default="approval",
            choices=("approval", "credentials", "legal", "financial", "deploy", "taste"),
        ),
        option("--about", "Commit, file or command='...' (default: the task's branch)", "WHAT"),
        option("--wait", "Wait for the answer, at most TIME", "TIME", alone=FOREVER),
        details="The task pauses and keeps its paths until a person answers.",
        examples=("landlane gate ask T12 --why 'delete the old table?'",),
        exits="0 approved, 6 rejected, 7 waits for a person",
    ),
    command(
        "gate approve",
        "Approve; only a person can.",
        argument("id", completes="gate"),
        option("--head", "Only if this is the commit that waits", "COMMIT"),
        option("--why", "Remark for the agent that asked", "TEXT"),
        examples=("landlane gate approve L8",),
    ),
    command(
        "gate reject",
        "Reject with a reason; only a person can.",
        argument("id", completes="gate"),
        option("--why", "Reason, for the agent that asked", "TEXT"),
        examples=("landlane gate reject L8 --why 'keep the old card form'",),
    ),
    command(
        "gate withdraw",
        "Withdraw your question and continue the task.",
        argument("id", completes="gate"),
        option("--why", "Reason, for the agent that asked", "TEXT"),
        examples=("landlane gate withdraw G3",),
    ),
    command(
        "review list",
        "List reviews.",
        flag("--all", "Include what has ended"),
        examples=("landlane review list",),
    ),
    command(
        "review show",
        "Show a review: verdicts, findings, contradictions.",
        argument("id", completes="review"),
        examples=("landlane review show V4",),
    ),
    command(
        "review give",
        "Approve or reject the commit under review.",
        argument("id", completes="review"),
        option("--verdict", "approve or reject", "VERDICT", choices=("approve", "reject")),
        option("--summary", "Reason in a sentence or two", "TEXT"),
        option("--findings", "JSON file with findings, - for stdin", "FILE", completes="file"),
        option("--head", "Commit you looked at; refused if it changed", "COMMIT"),
        examples=("landlane review give V4 --verdict reject --summary 'loses the time zone'",),
    ),
    command(
        "review withdraw",
        "Take your work back from review.",
        argument("id", completes="review"),
        examples=("landlane review withdraw V4",),
    ),
    command(
        "review adopt",
        "Land approved work whose author is gone.",
        argument("id", completes="review"),
        examples=("landlane review adopt V4",),
    ),
    command(
        "handoff",
        "Hand a task to another agent. Alone: list open handoffs.",
        argument("task", completes="task"),
        option("--to", "Agent, role:NAME, person:NAME, or anybody", "NAME", completes="agent"),
        option("--next", "Next step", "TEXT"),
        option("--product", "File with the result so far, - for stdin", "FILE", completes="file"),
        option("--context", "File with what you found out, - for stdin", "FILE", completes="file"),
        option("--constraint", "Condition that must hold; repeatable", "TEXT", is_repeated=True),
        option("--blocker", "Obstacle; repeatable", "TEXT", is_repeated=True),
        option("--assumption", "Assumption you made; repeatable", "TEXT", is_repeated=True),
        option("--field", "Field of your own; repeatable", "NAME=VALUE", is_repeated=True),
        option("--max", "Limit the number of handoffs of this task", "N"),
        handler="handoff:send",
        details="Branch, claims, workspace and uncommitted files go with it.",
        examples=("landlane handoff T12 --to bob --next 'write the test'",),
    ),
    command(
        "handoff list",
        "List handoffs that wait to be accepted.",
        flag("--all", "Include what has ended"),
        examples=("landlane handoff list",),
    ),
    command(
        "handoff show",
        "Show what was handed over with a task.",
        argument("task", completes="task"),
        examples=("landlane handoff show T12",),
    ),
    command(
        "handoff accept",
        "Accept a task: task, claims and workspace at once.",
        argument("task", completes="task"),
        option("--hash", "Hash of what you read; refused if it changed", "HASH"),
        examples=("landlane handoff accept T12",),
    ),
    command(
        "handoff decline",
        "Decline a task; anyone may take it then.",
        argument("task", completes="task"),
        option("--why", "Reason, for the agent that asked", "TEXT"),
        examples=("landlane handoff decline T12 --why 'no GPU here'",),
    ),
)
