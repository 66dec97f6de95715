"""The commands about reviews, as part of the table of commands."""

from __future__ import annotations

from landlane.cli.specs.model import Argument, Command, Option

_ID = Argument(name="id", help="the review, such as V1, or its task")

REVIEW_COMMANDS: tuple[Command, ...] = (
    Command(
        path="review list",
        handler="review:list_all",
        summary="Work that others look at before it lands.",
        options=(Option(name="--all", help="also what is over", is_flag=True),),
        examples=("landlane review list", "landlane review list --all --json"),
    ),
    Command(
        path="review show",
        handler="review:show",
        summary="One review: the verdicts, each finding once, and where they contradict each other.",
        arguments=(_ID,),
        examples=("landlane review show V1", "landlane review show T7 --json"),
    ),
    Command(
        path="review give",
        handler="review:give",
        summary="Approve or reject exactly the commit that is under review.",
        arguments=(_ID,),
        options=(
            Option(name="--verdict", help="approve or reject", metavar="V"),
            Option(name="--summary", help="why, in a sentence or a few", metavar="TEXT"),
            Option(name="--findings", help="a JSON file with findings, - for standard input", metavar="F"),
            Option(name="--head", help="the commit you looked at; refused if it is another", metavar="SHA"),
        ),
        examples=(
            "landlane review give V1 --verdict approve --as bob",
            "landlane review give V1 --verdict reject --summary 'loses the time zone' --findings f.json",
            "landlane review give V1 --findings verdict.json",
        ),
        details=(
            "Findings are a list of objects with path, line, severity and text; severity is one of blocker,\n"
            "major, minor, note and praise. The file may also be a whole verdict, with verdict and summary.\n"
            "Nobody judges work of their own. When reviewers contradict each other, the decider decides."
        ),
    ),
    Command(
        path="review withdraw",
        handler="review:withdraw",
        summary="Take your own work back from review, to go on with it.",
        arguments=(_ID,),
        examples=("landlane review withdraw V1 --as ann",),
    ),
    Command(
        path="review adopt",
        handler="review:adopt",
        summary="Take over approved work whose author is gone, with its claims, to land it as it is.",
        arguments=(_ID,),
        examples=("landlane review adopt V1 --as ann",),
    ),
)
