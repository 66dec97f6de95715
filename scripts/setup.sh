#!/bin/sh
# Make .venv fit for one purpose: `setup.sh run` for the demo, `dev` for the tests, `bench` for `make bench`.
#
# What has been installed is remembered under .venv/stamps by content, so that a second call costs nothing and
# a changed pin is noticed whatever the file times say. Parts that cannot be had on this machine are left out with
# one visible line each; `setup.sh dev --again` tries those once more.
set -eu
cd "$(dirname "$0")/.."

purpose=$1
again=${2:-}
python=${PYTHON:-python3}
stamps=.venv/stamps
log=.venv/setup.log

fail() {
    echo "setup: $*" >&2
    exit 1
}

make_environment() {
    command -v "$python" >/dev/null 2>&1 || fail "$python was not found; Python 3.11 or newer is needed."
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail \
        "Python 3.11 or newer is needed, and $python is $("$python" -V 2>&1)." \
        "Name another: make test PYTHON=python3.12"
    echo "setup: a new .venv with $("$python" -V 2>&1)"
    "$python" -m venv --clear .venv || fail \
        "$python cannot make a virtual environment. On Debian and Ubuntu: apt install python3-venv"
    mkdir -p "$stamps"
}

# The content of these files, and the place of the checkout: a moved environment does not work.
key() { { git hash-object "$@" && pwd; } | git hash-object --stdin; }

is_done() { [ "$(cat "$stamps/$1" 2>/dev/null)" = "$2" ]; }

pip() { .venv/bin/python -m pip --disable-pip-version-check "$@"; }

install_pins() {
    pins=requirements/$1.txt
    now=$(key "$pins")
    is_done "$1" "$now" && return
    echo "setup: installing $(grep -c '==' "$pins") packages of $pins"
    pip install -qq --require-hashes --no-deps -r "$pins"
    echo "$now" >"$stamps/$1"
}

install_project() {
    now=$(key pyproject.toml)
    is_done project "$now" && return
    echo "setup: installing landlane in place"
    pip install -qq --no-build-isolation --no-deps --no-index --editable .
    echo "$now" >"$stamps/project"
}

install_if_to_be_had() {  # NAME, what it is, what is lost without it
    pins=requirements/$1.txt
    now=$(key "$pins")
    is_done "$1" "$now" && return
    if [ "$again" = --again ] || ! is_done "$1" "missing $now"; then
        echo "setup: installing $2"
        # Wheels only: building a database server here would take longer than the tests it serves.
        if pip install -q --require-hashes --no-deps --only-binary :all: -r "$pins" >>"$log" 2>&1; then
            echo "$now" >"$stamps/$1"
            return
        fi
        echo "missing $now" >"$stamps/$1"
    fi
    echo "setup: SKIPPED $2: not available (see $log); $3. \`make setup\` tries again."
}

# An environment without our stamps, or whose interpreter is gone, is created again.
if [ ! -d "$stamps" ] || ! .venv/bin/python -c '' 2>/dev/null; then
    make_environment
fi

case $purpose in
run)
    # dev.txt holds all of run.txt at the same versions. (Not `||`: it would hide a failure half way.)
    if ! is_done dev "$(key requirements/dev.txt)"; then
        install_pins run
    fi
    install_project
    ;;
dev)
    install_pins dev
    install_project
    install_if_to_be_had postgres-server "the PostgreSQL server" "tests on PostgreSQL are skipped"
    install_if_to_be_had faults "apsw" "power-cut tests are skipped"
    scripts/tools.sh "$again"
    ;;
bench)
    "$0" dev
    install_if_to_be_had peers "other queues to compare with" "they are left out of the comparison"
    ;;
*)
    fail "what is it for: run, dev or bench?"
    ;;
esac

# Byte code, also where the environment forbids writing it on the way: without it a command takes twice as long.
.venv/bin/python -m compileall -q src
