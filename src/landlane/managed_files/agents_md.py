"""The block for AGENTS.md that tells agents how to work here, and the marks around it."""

from __future__ import annotations

BLOCK_BEGIN = (
    "<!-- landlane: begin (written by `landlane init`; what you write between these marks is lost) -->"
)
BLOCK_END = "<!-- landlane: end -->"

AGENTS_TEXT = """\
## Working beside other agents

Several agents work on this repository at once. Landlane keeps them out of each other's way: a path
belongs to one session at a time, and a refusal names who holds it and until when. The rules are in
`RULES.md`; read them before you begin (`landlane rules` shows them and their version).

| to | run |
| --- | --- |
| see who is here and what is held | `landlane status` |
| take a path before you change it | `landlane claim PATH` |
| give it back | `landlane release PATH` |
| take the next task with its paths | `landlane next` |
| report it: done, or not | `landlane done TASK` · `landlane fail TASK --why WHY` |
| commit only your own paths | `landlane commit -m MESSAGE PATH…` |
| bring your branch up to date | `landlane sync --update merge` |
| hand a branch to the landing queue | `landlane land --wait` |

If your shell does not find `landlane`, use the full path from the start of your session.

When you are refused:

- Do not go round it: not through the shell, not with a script, not by changing another checkout.
- Do something else that is free, or wait in line: `landlane claim PATH --wait 10m`.
- If a file has changed since you read it, read it again before you edit it.
- Exit codes: 3 another session holds it, 4 what you know is outdated, 6 it must be claimed first.

In a checkout that others use, too:

- A build or test error in a file that you did not touch: wait half a minute and try again, three times,
  before you fix it. Its owner may be in the middle of a change.
- Never run `git add -A`, `git stash`, `git reset --hard`, `git clean` or a `git checkout` of another branch
  there: they take the work of others. Name your paths instead.
- Before you end: commit, report your task, release what you hold.
"""

AGENTS_BLOCK = f"{BLOCK_BEGIN}\n{AGENTS_TEXT}{BLOCK_END}\n"
