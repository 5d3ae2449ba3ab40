#!/bin/sh
# One placement story, told in sections: threads run alone, then under
# `consort run`, then after a clean end, then under it again, then after kill -9.
#
# Parameters (environment): FP, INT: programs of each kind, one thread each.
# POLICY, INTERVAL: given to consort. STABLE: polls without a change that count
# as settled. LIMIT: polls after which waiting is given up.
#
# Emulated time means nothing, so every wait ends by a count of polls. Where a
# wait is given up the section still shows the masks as they are then.
set -u
. /scenario/masks.sh

begin() { echo "@@begin $1"; }
end() { echo "@@end $1 $2"; }

# Runs a command at the usual priority, in the place of the calling subshell.
usual() { exec sh -c 'renice -n 20 -p $$; exec "$@"' sh "$@"; }

# Whether some thread of the sighting $1 is restricted to less than all PUs.
restricted() { echo "$1" | grep '^thread ' | grep -qv " $ALL "; }

# Polls until the threads have been placed and then stayed there STABLE times.
wait_until_placed() {
    last= same=0 polls=0
    while [ $polls -lt "$LIMIT" ] && [ $same -lt "$STABLE" ]; do
        sleep 1
        polls=$((polls + 1))
        now=$(masks)
        if [ "$now" = "$last" ] && restricted "$now"; then same=$((same + 1)); else same=0; fi
        last=$now
    done
    echo "polls $polls"
    echo "$now"
    [ $same -ge "$STABLE" ]
}

# Polls until no thread is restricted to less than all PUs.
wait_until_free() {
    polls=0
    now=$(masks)
    while [ $polls -lt "$LIMIT" ] && restricted "$now"; do
        sleep 1
        polls=$((polls + 1))
        now=$(masks)
    done
    echo "polls $polls"
    echo "$now"
    [ $polls -lt "$LIMIT" ]
}

wait_for_threads() {
    polls=0
    while [ $polls -lt "$LIMIT" ] && [ "$(masks | wc -l)" -lt $((FP + INT)) ]; do
        sleep 1
        polls=$((polls + 1))
    done
}

start_managed() {
    usual consort run --interval "$INTERVAL" --policy "$POLICY" --report /tmp/report.json \
        -- sh /scenario/workload.sh >/tmp/consort.log 2>&1 &
    consort=$!
    wait_for_threads
}

end_workload() {
    for kind in fp int; do
        for pid in $(masks | awk -v kind="$kind-" '$5 ~ "^" kind { print $2 }' | sort -u); do
            kill -9 "$pid" 2>/dev/null
        done
    done
}

export FIRST=$$
read_mask self
ALL=$mask
# The onlooker must not wait for its turn behind the load; what it starts gets
# the usual priority back.
renice -n -20 -p $$

begin before
usual sh /scenario/workload.sh &
workload=$!
wait_for_threads
masks
end before $?
kill -TERM $workload
end_workload

start_managed
begin during
wait_until_placed
end during $?

# consort passes the signal on to the workload's shell, which ends and leaves
# the threads behind: they must be free again.
kill -TERM $consort
begin after
wait $consort
wait_until_free
end after $?
begin report
cat /tmp/report.json
end report $?
end_workload

start_managed
begin again
wait_until_placed
end again $?
kill -9 $consort
begin killed
wait_until_free
end killed $?
end_workload
begin log
cat /tmp/consort.log
end log 0
