#!/bin/sh
# FP fp programs and INT int programs of one thread each. On SIGTERM the shell
# goes and the programs stay, so that a test can see their masks afterwards.
trap 'exit 0' TERM
count=0
while [ $count -lt "$FP" ]; do
    consort-demo fp --threads 1 --seconds 100000 >/dev/null &
    count=$((count + 1))
done
count=0
while [ $count -lt "$INT" ]; do
    consort-demo int --threads 1 --seconds 100000 >/dev/null &
    count=$((count + 1))
done
wait
