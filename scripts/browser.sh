#!/bin/sh
# Get the browser that the tests of the web page drive: `browser.sh [--again]`.
#
# The system's Chromium is used where there is one. Else Debian's packages are unpacked into .tools, without root and
# without installing anything. The rules of accessibility (axe-core) come from npm, like the coding clients. What is not
# available is named in one line, and the tests that need it are not run; with CI set, they fail.
set -eu
cd "$(dirname "$0")/.."

again=${1:-}
place=.tools/chromium
mkdir -p .tools

works() { "$@" --version >>.tools/setup.log 2>&1; }

get() {
    command -v apt-get >/dev/null 2>&1 && command -v dpkg >/dev/null 2>&1 || return 1
    # Beside its place and then moved, so that a broken or parallel call leaves no half of it.
    fresh=$(mktemp -d ".tools/.new-chromium-XXXXXX")
    if (
        cd "$fresh"
        # What the system lacks, as the packages themselves say.
        packages=$(apt-get install --simulate --no-install-recommends chromium 2>/dev/null | awk '/^Inst/ { print $2 }')
        [ "$packages" ] || exit 1
        # shellcheck disable=SC2086 - they are words
        timeout 300 apt-get download $packages && for package in *.deb; do dpkg -x "$package" . && rm "$package"; done
        libraries=$(pwd)$(find usr/lib -maxdepth 1 -name '*-linux-gnu' -printf '/%p')
        {
            echo '#!/bin/sh'
            echo 'here=$(cd "$(dirname "$0")" && pwd)'
            echo "libraries=\$here/${libraries#"$(pwd)/"}"
            echo 'LD_LIBRARY_PATH=$libraries:$libraries/pulseaudio exec "$here/usr/lib/chromium/chromium" "$@"'
        } >run
        chmod 755 run
    ) >>.tools/setup.log 2>&1 && works "$fresh/run"; then
        chmod 755 "$fresh"
        rm -rf "$place"
        mv "$fresh" "$place"
    else
        rm -rf "$fresh"
        return 1
    fi
}

provide() {
    command -v chromium >/dev/null 2>&1 && return
    [ -x "$place/run" ] && return
    if [ "$again" = --again ] || [ ! -e "$place.missing" ]; then
        echo "browser: getting Debian's Chromium"
        if get; then
            rm -f "$place.missing"
            return
        fi
        touch "$place.missing"
    fi
    echo "browser: NOT RUN: no Chromium here (see .tools/setup.log); the tests of the page in a browser are not run." \
        "\`make setup\` tries again."
}

provide
# shellcheck disable=SC2086 - an option, or nothing
scripts/clients.sh $again axe
