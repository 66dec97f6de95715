#!/bin/sh
# Run one stage of a longer job, and print what it is and how long it took: stage.sh NAME COMMAND…
set -u
name=$1
shift
echo "$name …"
start=$(date +%s)
"$@"
code=$?
echo "$name: $(($(date +%s) - start)) s$([ "$code" = 0 ] || echo ", failed with $code")"
exit "$code"
