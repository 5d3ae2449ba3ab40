#!/bin/sh
# Threads are kept in their places for HOLD seconds, beside FOREIGN busy threads of a
# program that Consort knows nothing of. No mask is to be seen, so nothing is waited for
# but time; the report tells how well places were held.
. /scenario/story.sh

make_box
if [ "$FOREIGN" != 0 ]; then
    sh -c "echo \$\$ > $BOX/load/cgroup.procs; exec consort-demo branchy --threads $FOREIGN --seconds 100000" \
        >/dev/null &
fi
start_managed
sleep "$HOLD"
end_managed
end_load
