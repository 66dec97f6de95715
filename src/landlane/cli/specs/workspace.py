"""The commands about workspaces, rescues, saved work and commits, as part of the table of commands."""

from __future__ import annotations

from landlane.cli.specs.model import Argument, Command, Option

_WORKSPACE = Argument(name="workspace", help="its id such as W3, its task, or its folder")

WORKSPACE_COMMANDS: tuple[Command, ...] = (
    Command(
        path="workspace open",
        handler="workspace:open_one",
        summary="Make a checkout and a branch of its own for a task, ready to run.",
        arguments=(Argument(name="task", help="the task's id, such as T7"),),
        options=(
            Option(name="--kind", help="worktree, or clone: a repository of its own", metavar="K"),
            Option(name="--offline", help="begin from what was fetched last", is_flag=True),
        ),
        examples=("landlane workspace open T7", "landlane workspace open T7 --kind clone"),
        details=(
            "It lies beside the repository, begins at the freshly fetched target, and is made runnable\n"
            "by the [workspace] section of landlane.toml. The answer is its folder:\n"
            "cd $(landlane workspace open T7)"
        ),
    ),
    Command(
        path="workspace list",
        handler="workspace_list:list_all",
        summary="All workspaces: size, age, state, holder, and whether the base is stale.",
        options=(Option(name="--all", help="also those that were closed", is_flag=True),),
        examples=("landlane workspace list", "landlane workspace list --json"),
    ),
    Command(
        path="workspace close",
        handler="workspace:close",
        summary="Save what exists nowhere else, then remove a workspace.",
        arguments=(_WORKSPACE,),
        options=(
            Option(name="--force", help="though another session or a live process is in it", is_flag=True),
        ),
        examples=("landlane workspace close W3", "landlane workspace close T7 --force"),
        details="`landlane rescue list` shows what was saved; the branch stays if it is not merged.",
    ),
    Command(
        path="workspace prune",
        handler="workspace:prune",
        summary="Close what is finished or forsaken, each after a rescue; tells why others stay.",
        options=(Option(name="--dry-run", help="only tell what would be done", is_flag=True),),
        examples=("landlane workspace prune --dry-run", "landlane workspace prune"),
    ),
    Command(
        path="workspace env",
        handler="workspace:environment",
        summary="The environment of a workspace, to be taken in by a shell.",
        arguments=(Argument(name="workspace", help="its id, task or folder; here", is_optional=True),),
        examples=("landlane workspace env W3",),
        details='In a shell: eval "$(landlane workspace env W3)"',
    ),
    Command(
        path="rescue list",
        handler="rescue:list_all",
        summary="What was saved before something was removed: what, whose, when, how large.",
        examples=("landlane rescue list", "landlane rescue list --json"),
    ),
    Command(
        path="rescue restore",
        handler="rescue:restore",
        summary="Bring saved work back, byte for byte, into a workspace or a new folder.",
        arguments=(Argument(name="id", help="as `rescue list` shows it"),),
        options=(Option(name="--into", help="a clean workspace, or a folder to make", metavar="DIR"),),
        examples=("landlane rescue restore R4", "landlane rescue restore R4 --into ../again"),
    ),
    Command(
        path="rescue take",
        handler="rescue:take",
        summary="Save what exists only in this checkout, and leave it as it is.",
        options=(Option(name="--why", help="the reason, for whoever finds it", metavar="TEXT"),),
        examples=("landlane rescue take --why 'before an experiment'",),
    ),
    Command(
        path="rescue drop",
        handler="rescue:drop",
        summary="Forget saved work for good.",
        arguments=(Argument(name="id", help="as `rescue list` shows it"),),
        examples=("landlane rescue drop R4",),
    ),
    Command(
        path="stash save",
        handler="stash:save",
        summary="Put the changes of this checkout aside; nobody else's are touched.",
        options=(Option(name="--message", help="what it is", metavar="TEXT"),),
        examples=("landlane stash save --message 'half done'",),
    ),
    Command(
        path="stash restore",
        handler="stash:restore",
        summary="Bring back what was put aside last in this checkout.",
        arguments=(Argument(name="id", help="as `stash list` shows it", is_optional=True),),
        examples=("landlane stash restore",),
    ),
    Command(
        path="stash list",
        handler="stash:list_all",
        summary="What was put aside in this checkout.",
        examples=("landlane stash list",),
    ),
    Command(
        path="commit",
        handler="commit:commit",
        summary="Commit only these paths, under one lock, if your claims cover them.",
        arguments=(Argument(name="paths", help="what to commit, also deletions", is_many=True),),
        options=(
            Option(name="--message", help="the message; -m is the same", metavar="MSG"),
            Option(name="-m", help="the message; several become paragraphs", metavar="MSG", is_repeated=True),
            Option(name="--task", help="the task it is for; found by the branch", metavar="T"),
            Option(name="--revert", help="undo what landed meanwhile, if that is meant", is_flag=True),
        ),
        examples=("landlane commit -m 'Parse dates' src/dates.py tests/test_dates.py",),
        details="Your commit hooks and signing run as always. `landlane who PATH` reads the trailers back.",
    ),
    Command(
        path="git",
        handler="git:git",
        summary="Run git in this checkout, unless the verb would hit the work of others who are in it.",
        arguments=(Argument(name="words", help="what git is to do", is_rest=True),),
        examples=("landlane git -- switch topic", "landlane git -- status"),
        details="While others are at work here, whole-tree verbs are refused, and the scoped form is named.",
    ),
    Command(
        path="stray list",
        handler="misplaced:list_all",
        summary="Changes that lie in the wrong checkout, and shell writes to what another holds.",
        examples=("landlane stray list",),
    ),
    Command(
        path="stray move",
        handler="misplaced:move",
        summary="Move stray changes to the workspace where they belong.",
        arguments=(
            Argument(
                name="paths",
                help="which, or an id such as B3; all if none",
                is_many=True,
                is_optional=True,
            ),
        ),
        options=(Option(name="--to", help="the workspace: its id, task or folder", metavar="W"),),
        examples=("landlane stray move --to W3", "landlane stray move B3"),
    ),
    Command(
        path="stray undo",
        handler="misplaced:undo",
        summary="Take back what a shell wrote to what was not its own, byte for byte.",
        arguments=(Argument(name="id", help="as `stray list` shows it, such as B3"),),
        examples=("landlane stray undo B3",),
        details="Also what was not committed comes back. Refused when somebody changed a path since.",
    ),
    Command(
        path="stray accept",
        handler="misplaced:accept",
        summary="Let a shell's write to what you hold stand.",
        arguments=(Argument(name="id", help="as `stray list` shows it, such as B3"),),
        examples=("landlane stray accept B3",),
    ),
)
