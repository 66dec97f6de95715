#!/bin/sh
# A worker that removes blanks at the ends of lines, and hands the change back as a patch.
#
# It needs nothing but a POSIX shell, sed, awk and diff. Where jq is installed, reading the assignment is
# `jq -r .folder`; the few lines of sed below do for names without quotes, commas and backslashes.
set -u

read -r line || exit 1
word() { printf '%s\n' "$line" | sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }
id=$(word assignment)
folder=$(word folder)
scratch=$(word scratch)
paths=$(printf '%s\n' "$line" | sed -n 's/.*"paths":\[\([^]]*\)\].*/\1/p' | tr -d '"' | tr ',' ' ')

# Print standard input as a JSON string.
quoted() {
    printf '"'
    tr -d '\000-\010\013-\037' | sed 's/\\/\\\\/g; s/"/\\"/g; s/	/\\t/g' | awk '{ printf "%s\\n", $0 }'
    printf '"'
}
say() { printf '{"type":"%s","version":1,"assignment":"%s"%s}\n' "$1" "$id" "$2"; }

# Long work needs heartbeats in the background. They end with this process, and before the result.
(while :; do say Heartbeat ''; sleep 5; done) &
heart=$!
end() {
    kill "$heart" 2>/dev/null
    wait "$heart" 2>/dev/null
    say "$1" "$2"
    exit 0
}
trap 'end WorkFailed ",\"code\":\"stopped\",\"reason\":\"asked to end\""' TERM

cd "$folder" || end WorkFailed ',"code":"failed","reason":"the folder cannot be entered"'
patch=$scratch/change.patch
: >"$patch"
set -f  # the patterns are matched by git alone
git ls-files -- $paths | while IFS= read -r file; do
    sed 's/[[:blank:]]*$//' "$file" | diff -u --label "a/$file" --label "b/$file" "$file" - >>"$patch"
    say Progress ",\"text\":$(printf 'looked at %s' "$file" | quoted)"
done
if [ -s "$patch" ]; then
    end WorkComplete ",\"summary\":\"removed blanks at the ends of lines\",\"patch\":$(quoted <"$patch")"
fi
end WorkComplete ',"summary":"all is tidy"'
