#!/bin/sh
# Install real coding clients for the tests: `clients.sh [--again] [NAME…]`, by default claude, codex and gemini,
# and what the MCP server is tried with.
#
# They go into .clients, or into the folder $LANDLANE_CLIENTS, each at the version of requirements/clients.txt
# and with a Node of its own. What is there is remembered by content under stamps/, so that a second call costs nothing.
# Without npm, or without a registry to be reached, one visible line says so; `--again` tries once more.
set -eu
cd "$(dirname "$0")/.."

pins=requirements/clients.txt
folder=${LANDLANE_CLIENTS:-.clients}
again=
names=
for word in "$@"; do
    case $word in
    --again) again=yes ;;
    *) names="$names $word" ;;
    esac
done
names=${names:-claude codex gemini inspector conformance}

mkdir -p "$folder/stamps"
folder=$(cd "$folder" && pwd)
stamps=$folder/stamps
log=$folder/setup.log

pin() { awk -v name="$1" '$1 == name { print $2 "@" $3 }' "$pins"; }

# A client is tied to the Node that its parts were chosen for. (As in setup.sh; the place does not matter here.)
key() { { pin node && pin "$1"; } | git hash-object --stdin; }

is_done() { [ "$(cat "$stamps/$1" 2>/dev/null)" = "$2" ]; }

npm_quietly() { npm --no-fund --no-audit --no-update-notifier --loglevel=error "$@" >>"$log" 2>&1; }

# Asked first and only once, because an install into the void goes on for minutes. The empty cache makes npm
# really ask: it would answer from its own.
can_reach_registry() {
    empty=$(mktemp -d "$folder/.cache-XXXXXX")
    reached=yes
    npm_quietly view "$(pin node)" version --cache "$empty" --fetch-retries=0 --fetch-timeout=20000 || reached=
    rm -rf "$empty"
    [ "$reached" ]
}

# Beside its place and then moved, so that a broken or parallel call leaves no half of a client.
install() {
    fresh=$(mktemp -d "$folder/.new-$1-XXXXXX")
    echo '{"private": true}' >"$fresh/package.json"
    if npm_quietly install --prefix "$fresh" --no-package-lock --save-exact "$(pin "$1")"; then
        rm -rf "${folder:?}/$1"
        # mktemp's folders are for their maker only; these clients may be shared.
        chmod 755 "$fresh"
        mv "$fresh" "$folder/$1"
        key "$1" >"$stamps/$1"
    else
        rm -rf "$fresh"
        echo "missing $(key "$1")" >"$stamps/$1"
    fi
}

missing=
for name in $names; do
    if [ -z "$(pin "$name")" ]; then
        echo "clients: $name is not in $pins" >&2
        exit 1
    fi
    is_done "$name" "$(key "$name")" && continue
    if [ "$again" ] || ! is_done "$name" "missing $(key "$name")"; then
        missing="$missing $name"
    fi
done

if [ "$missing" ]; then
    echo "clients: installing$missing into $folder"
    : >"$log"
    if ! command -v npm >/dev/null 2>&1; then
        echo "npm was not found" >>"$log"
    elif can_reach_registry; then
        is_done node "$(key node)" || install node
        if is_done node "$(key node)"; then
            # With an older Node npm takes other parts than the client wants.
            PATH=$folder/node/node_modules/node/bin:$PATH
            for name in $missing; do install "$name" & done
            wait
        fi
    fi
fi

absent=
for name in $names; do
    is_done "$name" "$(key "$name")" && continue
    echo "missing $(key "$name")" >"$stamps/$name"
    absent="$absent $name"
done
if [ "$absent" ]; then
    echo "clients: SKIPPED$absent: not available (see $log); tests with them are skipped." \
        "\`scripts/clients.sh --again$absent\` tries again."
fi
