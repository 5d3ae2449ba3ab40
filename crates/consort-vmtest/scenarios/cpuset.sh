#!/bin/sh
# Consort and its load live in a cpuset (CPUSET) that shrinks under them (to
# SHRUNK) and that is lifted after Consort's end.
. /scenario/story.sh

make_box
echo "$CPUSET" > $BOX/cpuset.cpus
start_managed
see inside placed
echo "$SHRUNK" > $BOX/cpuset.cpus
see shrunk placed
end_managed
see after free
cat /sys/fs/cgroup/cpuset.cpus.effective > $BOX/cpuset.cpus
see lifted free
end_load
