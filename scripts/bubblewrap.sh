#!/bin/sh
# Get `bwrap` for the tests: `bubblewrap.sh [--again]`.
#
# The system's own is used where there is one. Else Debian's package is unpacked into .tools, without root and without
# installing anything. Where neither can be had one visible line says so, and the tests that need it are skipped.
set -eu
cd "$(dirname "$0")/.."

again=${1:-}
folder=.tools/bubblewrap
program=$folder/usr/bin/bwrap
missing=.tools/bubblewrap.missing

command -v bwrap >/dev/null 2>&1 && exit 0
[ -x "$program" ] && exit 0

get() {
    command -v apt-get >/dev/null 2>&1 && command -v dpkg >/dev/null 2>&1 || return 1
    # Beside its place and then moved, so that a broken or parallel call leaves no half of it.
    fresh=$(mktemp -d .tools/.new-bubblewrap-XXXXXX)
    if (cd "$fresh" && timeout 60 apt-get download bubblewrap && dpkg -x bubblewrap_*.deb .) >>.tools/setup.log 2>&1 &&
        "$fresh/usr/bin/bwrap" --version >>.tools/setup.log 2>&1; then
        chmod 755 "$fresh"
        rm -rf "$folder"
        mv "$fresh" "$folder"
    else
        rm -rf "$fresh"
        return 1
    fi
}

mkdir -p .tools
if [ "$again" = --again ] || [ ! -e "$missing" ]; then
    echo "bubblewrap: getting Debian's package"
    if get; then
        rm -f "$missing"
        exit 0
    fi
    touch "$missing"
fi
echo "bubblewrap: SKIPPED: not to be had here (see .tools/setup.log); tests inside of it are skipped." \
    "\`make setup\` tries again."
