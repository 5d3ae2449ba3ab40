#!/bin/sh
# Tests the prime 2^1279 - 1 so many times: long multiplications, always the same number of them.
set -eu
prime=7$(printf '%319s' '' | tr ' ' F)
count=$1
set --
while [ "$count" -gt 0 ]; do
    set -- "$@" "$prime"
    count=$((count - 1))
done
exec openssl prime -hex "$@"
