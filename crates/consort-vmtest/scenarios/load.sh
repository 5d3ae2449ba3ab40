#!/bin/sh
# FP fp threads, INT int threads and SLEEPERS sleepers, each in a program of its own unless SHAPE is
# `threads`. On SIGTERM the shell goes and the programs stay, so that a test can
# see their masks afterwards.
trap 'exit 0' TERM
echo $$ > /sys/fs/cgroup/box/load/cgroup.procs

start() {
    kernel=$1 threads=$2
    shift 2
    consort-demo "$kernel" --threads "$threads" --seconds 100000 "$@" >/dev/null &
}

for kind in "fp $FP" "int $INT"; do
    set -- $kind
    if [ "$SHAPE" = threads ]; then
        start "$1" "$2" $TURNS
    else
        for _ in $(seq "$2"); do start "$1" 1 $TURNS; done
    fi
done
[ "$SLEEPERS" = 0 ] || start sleeper "$SLEEPERS"
wait
