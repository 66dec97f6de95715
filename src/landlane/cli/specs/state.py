"""The commands about state, numbers, slots and what runs once, as part of the table of commands."""

from __future__ import annotations

from landlane.cli.specs.model import Argument, Command, Option

_KEY = Argument(name="key", help="letters, digits and . _ - / :")
_VALUE = Argument(name="value", help="JSON; what is none is taken as a text")

STATE_COMMANDS: tuple[Command, ...] = (
    Command(
        path="state get",
        handler="state:get",
        summary="The value of a key, and its version.",
        arguments=(_KEY,),
        examples=("landlane state get release/phase", "landlane state get release/phase --json"),
    ),
    Command(
        path="state set",
        handler="state:set_value",
        summary="Set a key that is new, or that still stands at the version you saw.",
        arguments=(_KEY, _VALUE),
        options=(
            Option(name="--expect", help="the version you saw; 0: it must be new", metavar="VERSION"),
            Option(name="--any", help="overwrite whatever stands there", is_flag=True),
        ),
        examples=(
            "landlane state set release/phase '\"freeze\"'",
            "landlane state set release/phase ship --expect 3",
            "landlane state set budget '{\"usd\": 12.5}' --any",
        ),
        details="Exit 4: another was quicker; the answer holds the version and value that stand there now.",
    ),
    Command(
        path="state append",
        handler="state:append",
        summary="Combine a value with what stands there; no update of anybody is lost.",
        arguments=(_KEY, _VALUE),
        options=(
            Option(
                name="--with",
                help="append, union, max, min, sum or merge; else as [state.reducers] says, else append",
                metavar="REDUCER",
            ),
        ),
        examples=(
            "landlane state append findings '\"no tests for dates\"'",
            "landlane state append spent 0.25 --with sum",
            'landlane state append config \'{"db": {"port": 5433}}\' --with merge',
        ),
    ),
    Command(
        path="state list",
        handler="state:list_all",
        summary="All keys, or those that begin so.",
        arguments=(Argument(name="prefix", help="how the keys begin", is_optional=True),),
        examples=("landlane state list", "landlane state list release/ --json"),
    ),
    Command(
        path="state history",
        handler="state:history",
        summary="The last versions of a key: who wrote what, and when.",
        arguments=(_KEY,),
        examples=("landlane state history release/phase",),
    ),
    Command(
        path="state watch",
        handler="state:watch",
        summary="Wait until a key changes, and show it.",
        arguments=(_KEY,),
        options=(
            Option(name="--since", help="a version above this will do, also at once", metavar="VERSION"),
            Option(name="--timeout", help="wait at most so long", metavar="D"),
        ),
        examples=("landlane state watch release/phase --since 3 --timeout 10m",),
    ),
    Command(
        path="number",
        handler="number:number",
        summary="The next number of a kind, which nobody else gets.",
        arguments=(Argument(name="kind", help="such as migration; [numbers] says where they stand"),),
        options=(Option(name="--for", help="what it is for", metavar="TEXT"),),
        examples=(
            "landlane number migration --for 'add users'",
            "landlane number migration --json",
        ),
    ),
    Command(
        path="number list",
        handler="number:numbers",
        summary="Every number of a kind: used, pending or abandoned.",
        arguments=(Argument(name="kind"),),
        examples=("landlane number list migration",),
    ),
    Command(
        path="slot take",
        handler="slot:take",
        summary="Take a port, a name or an amount that is yours until you free it or your session ends.",
        arguments=(Argument(name="kind", help="port, or a kind of [slots] in the settings"),),
        options=(
            Option(name="--name", help="what you call it; a port is the same again for it", metavar="N"),
            Option(name="--amount", help="how much of a capacity", metavar="A", default="1"),
            Option(name="--wait", help="stand in line for at most so long", metavar="0s", default="0s"),
        ),
        examples=(
            "landlane slot take port",
            "landlane slot take port --name web --json",
            "landlane slot take gpu --amount 8 --wait 10m",
        ),
        details="Asking again for a port, or for anything with a --name, gives the one you hold.",
    ),
    Command(
        path="slot list",
        handler="slot:list_all",
        summary="Who holds which slots.",
        arguments=(Argument(name="kind", help="only of this kind", is_optional=True),),
        examples=("landlane slot list", "landlane slot list port"),
    ),
    Command(
        path="slot free",
        handler="slot:free",
        summary="Give a slot back.",
        arguments=(Argument(name="id", help="as `slot take` showed it, such as port:20017"),),
        examples=("landlane slot free port:20017",),
    ),
    Command(
        path="once",
        handler="once:once",
        summary="Run a command unless it was run under this key before; who comes second waits.",
        arguments=(_KEY, Argument(name="command", help="the command and its words", is_rest=True)),
        options=(
            Option(name="--again", help="run it though it was run before", is_flag=True),
            Option(name="--wait", help="wait for a running one at most so long", metavar="D"),
        ),
        examples=(
            "landlane once deps -- npm ci",
            "landlane once migrate:0042 --again --json -- ./migrate.sh 0042",
        ),
        details=(
            "It ends with the command's own exit code, also when it was run before.\n"
            "Exit 1 and ONCE_CRASHED: the process that ran it is gone, and nobody knows how far it came."
        ),
    ),
)
