#!/bin/sh
# Write requirements/*.txt again from requirements/*.in: exact versions with hashes, and no index addresses.
set -eu
cd "$(dirname "$0")/.."

uv_version=0.13.7
tool=$(mktemp -d)
trap 'rm -rf "$tool"' EXIT
"${PYTHON:-python3}" -m venv "$tool"
"$tool/bin/python" -m pip install -qq --disable-pip-version-check "uv==$uv_version"

pin() {  # pin NAME [uv options]: requirements/NAME.in becomes requirements/NAME.txt
    name=$1
    shift
    "$tool/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-emit-find-links --no-header --no-config \
        "$@" "requirements/$name.in" --output-file "$tool/$name.txt" >/dev/null
    if grep -q '://' "$tool/$name.txt"; then
        echo "requirements/$name.txt would contain an address; nothing written" >&2
        exit 1
    fi
    {
        echo "# Written by \`make pins\` from requirements/$name.in. Change that file, not this one."
        cat "$tool/$name.txt"
    } >"requirements/$name.txt"
    echo "requirements/$name.txt: $(grep -c '==' "requirements/$name.txt") packages"
}

# All others are pinned within dev's choice, because they are installed into one environment.
pin dev --upgrade
pin run -c requirements/dev.txt
pin postgres-server -c requirements/dev.txt
pin faults -c requirements/dev.txt
pin peers -c requirements/dev.txt
