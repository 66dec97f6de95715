#!/bin/sh
# Writes the draft of a day. Safe to start twice, at the same moment or again after it was killed:
# 5 6 * * *  cd /srv/letter && sh job.sh
set -eu
day=${1:-$(date +%F)}

# Once for each day; a second call waits for the first. If a collector was killed, it is unknown how far it
# came. Collecting again does no harm, so it is run again.
landlane once "collect:$day" --as cron -- sh collect.sh "$day" ||
    landlane once "collect:$day" --again --as cron -- sh collect.sh "$day"

# The key makes it one task however often it is added.
landlane task add "Draft the letter of $day" --key "draft:$day" --path "drafts/$day.md" --as cron

# The first one takes the task. With --until-empty the other waits, and ends when the draft is there.
exec landlane run --until-empty --as cron
