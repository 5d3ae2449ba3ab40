#!/bin/sh
# FP fp threads, INT int threads and SLEEPERS sleepers, each in a program of its own unless SHAPE is
# `threads`. On SIGTERM the shell goes and the programs stay, so that a test can
# see their masks afterwards.
trap 'exit 0' TERM
echo $$ > /sys/fs/cgroup/box/load/cgroup.procs

start() {
    consort-demo "$1" --threads "$2" --seconds 100000 >/dev/null &
}

for kind in "fp $FP" "int $INT"; do
    set -- $kind
    if [ "$SHAPE" = threads ]; then
        start "$1" "$2"
    else
        for _ in $(seq "$2"); do start "$1" 1; done
    fi
done
[ "$SLEEPERS" = 0 ] || start sleeper "$SLEEPERS"
wait
