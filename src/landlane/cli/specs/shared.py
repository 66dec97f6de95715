"""Commands under Shared things: state, slot, number, once, deploy, role, rules."""

from __future__ import annotations

from landlane.cli.specs.model import FOREVER, argument, command, flag, option

COMMANDS = (
    command(
        "state get",
        "Print the value of a key.",
        argument("key"),
        examples=("landlane state get release/phase",),
    ),
    command(
        "state set",
        "Set keys if they are still at the versions you saw.",
        argument("key"),
        argument("value"),
        argument("pairs", is_many=True, is_optional=True),
        option("--expect", "Version you saw, or KEY=VERSION; 0: new", "VERSION", is_repeated=True),
        flag("--any", "Overwrite any version"),
        flag("--force", "Overwrite append-only keys (people only)"),
        handler="state:set_value",
        details=(
            "More keys and values may follow: all are set in one transaction, or none. --expect "
            "KEY=VERSION may also name keys that you only read."
        ),
        examples=(
            "landlane state set release/phase ship --expect 3",
            "landlane state set plan/a 1 plan/b 2 --expect plan/a=3 --expect plan/b=7",
            "landlane state set note hi --any",
        ),
        exits="0 set, 4 the version changed",
    ),
    command(
        "state check",
        "Check that keys are still at the versions you read.",
        argument("versions", is_many=True, needs="at least one KEY=VERSION"),
        examples=("landlane state check release/phase=3 plan=7",),
        exits="0 all are, 4 one moved",
    ),
    command(
        "state append",
        "Combine a value with the current one; no update is lost.",
        argument("key"),
        argument("value"),
        option(
            "--with",
            "Way to combine (default: [state.reducers], else append)",
            "HOW",
            choices=("append", "union", "max", "min", "sum", "merge"),
        ),
        examples=("landlane state append found/bugs '\"T12\"' --with union",),
    ),
    command(
        "state list",
        "List keys, optionally by prefix.",
        argument("prefix", is_optional=True),
        examples=(
            "landlane state list",
            "landlane state list release/",
        ),
    ),
    command(
        "state history",
        "Show the last versions of a key.",
        argument("key"),
        examples=("landlane state history release/phase",),
    ),
    command(
        "state watch",
        "Wait until a key changes and print it.",
        argument("key"),
        option("--since", "Return at once if it is beyond this version", "VERSION"),
        option("--timeout", "Wait at most TIME", "TIME"),
        examples=("landlane state watch release/phase --since 3 --timeout 10m",),
    ),
    command(
        "slot take",
        "Lease a port, a name or an amount.",
        argument("kind"),
        option("--name", "Your name for it; a port is the same again next time", "NAME"),
        option("--amount", "Amount of a capacity", "N", default="1"),
        option("--wait", "Wait in line, at most TIME", "TIME", alone=FOREVER),
        details=(
            "It is yours until you free it or your session ends. [slots] in landlane.toml has the kinds."
        ),
        examples=(
            "landlane slot take port --name web",
            "landlane slot take gpu --amount 8 --wait",
        ),
        exits="0 leased, 3 taken, 5 timed out",
    ),
    command(
        "slot list",
        "List leased slots.",
        argument("kind", is_optional=True),
        examples=(
            "landlane slot list",
            "landlane slot list port",
        ),
    ),
    command(
        "slot free",
        "Free a slot.",
        argument("id"),
        examples=("landlane slot free port:20017",),
    ),
    command(
        "number",
        "Allocate the next number of a kind.",
        argument("kind"),
        option("--for", "Purpose", "TEXT"),
        flag("--new", "Begin a kind that is not in [numbers]"),
        examples=(
            "landlane number migration --for 'add users'",
            "landlane number adr --new",
        ),
    ),
    command(
        "number list",
        "List the numbers of a kind.",
        argument("kind"),
        examples=("landlane number list migration",),
    ),
    command(
        "once",
        "Run a command once per key; concurrent callers wait.",
        argument("key"),
        argument("command", is_rest=True, completes="command"),
        flag("--again", "Run it even if it ran before"),
        option("--wait", "Wait for a running one, at most TIME", "TIME", alone=FOREVER),
        details=(
            "Exits with the command's own exit code. A command that ran before is not run again: exit 0 if "
            "it succeeded, 1 if it failed."
        ),
        examples=("landlane once deps -- npm ci",),
    ),
    command(
        "deploy",
        "Deploy one at a time, never a stale commit.",
        argument("target"),
        argument("command", is_rest=True, completes="command"),
        option("--wait", "Wait for another deploy, at most TIME", "TIME", default="30m", alone=FOREVER),
        option("--expect", "Only if the key is at this version", "KEY=VERSION", is_repeated=True),
        examples=("landlane deploy prod -- make deploy",),
        exits="0 deployed, 3 another deploy runs, 4 this checkout is stale, 7 waits for a person",
    ),
    command(
        "deploy history",
        "Show what was deployed, and what is live.",
        option("--target", "Only this target", "NAME"),
        examples=("landlane deploy history",),
    ),
    command(
        "role list",
        "List roles.",
        examples=("landlane role list",),
    ),
    command(
        "role show",
        "Show what a role may do, and what enforces it.",
        argument("role", completes="role"),
        option("--for", "As enforced for this coding client", "CLIENT"),
        examples=(
            "landlane role show code",
            "landlane role show review --for codex",
        ),
    ),
    command(
        "rules show",
        "Show the rules, their version, and who has not read them.",
        examples=("landlane rules",),
    ),
    command(
        "rules ack",
        "Confirm that you have read the rules.",
        argument("version", is_optional=True),
        handler="rules:acknowledge",
        examples=("landlane rules ack 404dc7f2",),
        exits="0 confirmed, 4 there is a newer version",
    ),
    command(
        "rules report",
        "Show which rules are violated, and by whom.",
        option("--since", "Start: 2h, 3d, 14:30, a date or all", "TIME"),
        examples=("landlane rules report --since 7d",),
    ),
)
