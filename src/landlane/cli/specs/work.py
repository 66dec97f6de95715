"""Commands under Work: claim, release, check, next, done, fail, commit, sync, land."""

from __future__ import annotations

from landlane.cli.specs.model import FOREVER, argument, command, flag, option

COMMANDS = (
    command(
        "claim",
        "Claim paths before editing them (all or nothing).",
        argument("patterns", is_many=True, completes="path", needs="at least one path"),
        option("--wait", "Wait in line until the paths are free, at most TIME", "TIME", alone=FOREVER),
        option("--note", "Say why; shown to agents that are refused", "TEXT"),
        option("--task", "Task the claim is for", "ID", completes="task"),
        option("--ttl", "Length of the lease (default: 30m)", "TIME"),
        flag("--partial", "Claim what is free, list the rest"),
        flag("--shared", "Share with other --shared claims of mergeable files"),
        flag("--literal", "Take *, ? and [ as ordinary characters"),
        handler="claims:claim",
        details=(
            "A pattern covers what it matches and everything below it, including files that do not "
            "exist yet.\n"
            "Quote globs. Paths are relative to the current directory; :/ is the repository root.\n"
            "Anything you do renews the lease. When it ends, others can claim the paths."
        ),
        examples=(
            "landlane claim src/api.py --note 'new endpoint'",
            "landlane claim 'src/api/**' tests/test_api.py --ttl 1h",
            "landlane claim deploy:prod --wait 5m",
        ),
        exits="0 claimed, 3 held by another session, 5 timed out",
    ),
    command(
        "release",
        "Release claims.",
        argument("patterns", is_many=True, is_optional=True, completes="path"),
        flag("--all", "Release everything this session holds"),
        option("--commit", "Commit that holds the finished work", "COMMIT"),
        option("--token", "Only if this is still the claim's token", "N"),
        flag("--literal", "Take *, ? and [ as ordinary characters"),
        handler="claims:release",
        examples=(
            "landlane release src/api.py",
            "landlane release --all",
        ),
    ),
    command(
        "check",
        "Check whether you may change a path.",
        argument("paths", is_many=True, completes="path", needs="at least one path"),
        option("--token", "Also check that this is still the claim's token", "N"),
        flag("--literal", "Take *, ? and [ as ordinary characters"),
        handler="claims_read:check",
        examples=(
            "landlane check src/api.py",
            "landlane check src/api.py --token 4294967301",
        ),
        exits="0 allowed, 3 held by another session, 4 stale token, 6 must be claimed first",
    ),
    command(
        "next",
        "Take the next ready task and its paths.",
        option("--wait", "Wait for a task, at most TIME", "TIME", alone=FOREVER),
        option("--role", "Take only tasks for this role", "ROLE", completes="role"),
        flag("--resume", "Continue the task you already have, if any"),
        handler="task_next:next",
        details=(
            "Takes the best ready task whose paths are free, and claims the paths in the same step. "
            "What earlier attempts learned comes with it."
        ),
        examples=(
            "landlane next",
            "landlane next --wait 10m --role test",
        ),
        exits="0 with a task, 5 none ready",
    ),
    command(
        "done",
        "Mark a task done; Landlane verifies the evidence.",
        argument("task", completes="task"),
        option("--result", "File with the result, - for stdin", "FILE", completes="file"),
        option("--expect", "Only if the key is at this version", "KEY=VERSION", is_repeated=True),
        handler="task_done:done",
        details=(
            "Evidence is a commit on the task's branch, changes only on claimed paths, and the "
            "task's check passing on that commit. Run it again when what was missing is there."
        ),
        examples=(
            "landlane done T12",
            "landlane done T12 --result notes.md",
        ),
        exits="0 verified, 4 not your task, 6 evidence is missing, 7 waits for a person",
    ),
    command(
        "fail",
        "Give a task back with a reason.",
        argument("task", completes="task"),
        option("--why", "Reason, for the next agent", "TEXT"),
        flag("--final", "No further attempt will help"),
        handler="task_done:fail",
        examples=("landlane fail T12 --why 'the API has no such endpoint'",),
    ),
    command(
        "commit",
        "Commit only paths you have claimed.",
        argument("paths", is_many=True, completes="path", needs="at least one path"),
        option("-m", "Message; several become paragraphs", "TEXT", is_repeated=True),
        option("--message", "The same as -m", "TEXT"),
        option("--task", "Task the commit is for (default: by branch)", "ID", completes="task"),
        flag("--revert", "Allow undoing what landed since you started"),
        details=(
            "Other changes in the checkout stay as they are. Your commit hooks and signing run as usual."
        ),
        examples=("landlane commit -m 'Parse ISO dates' src/dates.py",),
        exits="0 committed, 4 the claim ended, 6 not claimed",
    ),
    command(
        "sync",
        "Fetch and compare your branch with the target.",
        option("--update", "Update the branch", "HOW", choices=("merge", "rebase")),
        flag("--no-check", "Do not run the checks after an update"),
        examples=(
            "landlane sync",
            "landlane sync --update rebase",
        ),
        exits="0 up to date, 4 behind",
    ),
    command(
        "land",
        "Merge, test and land a branch.",
        argument("branch", is_optional=True),
        option("--wait", "Show each stage until it has ended, at most TIME", "TIME", alone=FOREVER),
        option("--task", "Task it is for (default: by branch)", "ID", completes="task"),
        option("--expect", "Only if the key is at this version", "KEY=VERSION", is_repeated=True),
        details=(
            "Queues the current branch, or BRANCH. The queue merges it with what is ahead, runs the "
            "checks on the merged result, and moves the target only if they pass. Your claims stay "
            "until it has ended.\n"
            "On a branch that is queued already, --wait attaches to its landing."
        ),
        examples=(
            "landlane land",
            "landlane land --wait",
        ),
        exits="0 landed or queued, 1 bounced, 3 held, 5 timed out, 7 waits for a person",
    ),
)
