#!/bin/sh
# Get the programs that only tests need: `tools.sh [--again]`.
#
# The system's own are used where they exist. Else Debian's packages are unpacked into .tools, without root and without
# installing anything. What is not available is named in one line, and the tests that need it are skipped.
set -eu
cd "$(dirname "$0")/.."

again=${1:-}
mkdir -p .tools

get() {  # get NAME PROGRAM PACKAGE...: unpack packages into .tools/NAME
    name=$1 program=$2
    shift 2
    command -v apt-get >/dev/null 2>&1 && command -v dpkg >/dev/null 2>&1 || return 1
    # Beside its place and then moved, so that a broken or parallel call leaves no half of it.
    fresh=$(mktemp -d ".tools/.new-$name-XXXXXX")
    if (cd "$fresh" && timeout 60 apt-get download "$@" && for package in *.deb; do dpkg -x "$package" .; done) \
        >>.tools/setup.log 2>&1 &&
        LD_LIBRARY_PATH=$(echo "$fresh"/usr/lib/*-linux-gnu) "$fresh/$program" --version >>.tools/setup.log 2>&1; then
        chmod 755 "$fresh"
        rm -f "$fresh"/*.deb
        rm -rf ".tools/$name"
        mv "$fresh" ".tools/$name"
    else
        rm -rf "$fresh"
        return 1
    fi
}

provide() {  # provide NAME PROGRAM PACKAGE...
    name=$1 program=$2
    command -v "$(basename "$program")" >/dev/null 2>&1 && return
    [ -x ".tools/$name/$program" ] && return
    if [ "$again" = --again ] || [ ! -e ".tools/$name.missing" ]; then
        echo "tools: getting Debian's package of $name"
        if get "$@"; then
            rm -f ".tools/$name.missing"
            return
        fi
        touch ".tools/$name.missing"
    fi
    echo "tools: SKIPPED $name: not available here (see .tools/setup.log); its tests are skipped. \`make setup\` tries again."
}

provide bubblewrap usr/bin/bwrap bubblewrap
provide strace usr/bin/strace strace libunwind8
provide zsh bin/zsh zsh
provide fish usr/bin/fish fish fish-common libpcre2-32-0
