"""Commands: claim, renew, release, check, claims, who."""

from __future__ import annotations

from landlane.cli.specs.model import Argument, Command, Option

_PATTERNS = Argument(name="patterns", help="path, glob or named thing such as deploy:prod", is_many=True)
_SOME_PATTERNS = Argument(
    name="patterns", help="as granted; all when left out", is_many=True, is_optional=True
)
_LITERAL = Option(
    name="--literal", help="take every character as it is: app/[id]/page.tsx is a file", is_flag=True
)

CLAIM_COMMANDS: tuple[Command, ...] = (
    Command(
        path="claim",
        handler="claims:claim",
        summary="Take the right to change what the patterns name: all of them, or none.",
        arguments=(_PATTERNS,),
        options=(
            Option(name="--ttl", help="how long the lease lasts without a sign of life", metavar="30m"),
            Option(name="--wait", help="stand in line for at most so long", metavar="0s", default="0s"),
            Option(name="--partial", help="take what is free, tell what is not", is_flag=True),
            Option(name="--shared", help="share with others who also claim it shared", is_flag=True),
            _LITERAL,
            Option(name="--task", help="the task it is for", metavar="T"),
            Option(name="--note", help="why, for whoever is refused", metavar="N"),
        ),
        examples=(
            "landlane claim src/api.py --as ann",
            "landlane claim 'src/api/**' tests/test_api.py --ttl 1h --note 'new endpoint'",
            "landlane claim deploy:prod --wait 5m",
        ),
        details=(
            "A pattern covers what it matches and everything below it, also what does not exist yet.\n"
            "Quote globs, or the shell expands them. Paths count from where you stand; :/ is the root."
        ),
    ),
    Command(
        path="renew",
        handler="claims:renew",
        summary="Renew leases; one that was over is judged anew.",
        arguments=(_SOME_PATTERNS,),
        options=(_LITERAL,),
        examples=("landlane renew --as ann", "landlane renew src/api.py"),
    ),
    Command(
        path="release",
        handler="claims:release",
        summary="Give claims back.",
        arguments=(_SOME_PATTERNS,),
        options=(
            Option(name="--all", help="everything this session holds", is_flag=True),
            Option(name="--commit", help="the commit that the work ended in", metavar="SHA"),
            Option(name="--token", help="only if this is still the token of the claim", metavar="N"),
            _LITERAL,
        ),
        examples=("landlane release src/api.py --commit HEAD", "landlane release --all --as ann"),
    ),
    Command(
        path="check",
        handler="claims_check:check",
        summary="May this session change these paths now? Exit 0 when it may.",
        arguments=(Argument(name="paths", help="paths, or named things such as deploy:prod", is_many=True),),
        options=(
            Option(name="--token", help="and is this still the token of its claim?", metavar="N"),
            Option(name="--literal", help="only paths: deploy:prod is a file, too", is_flag=True),
        ),
        examples=("landlane check src/api.py --as ann", "landlane check src/api.py --token 4294967301"),
        details="Exit 3: another holds it. Exit 4: the token is outdated. Exit 6: it must be claimed first.",
    ),
    Command(
        path="claims",
        handler="claims_list:claims",
        summary="Who holds what.",
        arguments=(Argument(name="paths", help="only what overlaps these", is_many=True, is_optional=True),),
        examples=("landlane claims", "landlane claims src --json"),
    ),
    Command(
        path="who",
        handler="claims_list:who",
        summary="Who holds a path, and who last changed it.",
        arguments=(Argument(name="path"),),
        examples=("landlane who src/api.py",),
    ),
)
