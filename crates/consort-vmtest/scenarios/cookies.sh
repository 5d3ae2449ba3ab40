#!/bin/sh
# Threads run under `consort run --cookies`: to its clean end, until it is killed, until it and its
# guardian are killed and another run clears up, and until a sched_ext scheduler seems to come.
. /scenario/story.sh
FLAGS=--cookies

# One line `cookie PID TID ID COMM` per thread of the workload, and per thread that has one.
show() {
    begin "$1"
    guest-probe cookies fp- int- sleep
    end "$1" $?
}

# Sets `guardian` to its process id.
find_guardian() {
    for comm in /proc/[0-9]*/comm; do
        read -r name < "$comm"
        if [ "$name" = consort-guard ]; then
            guardian=${comm#/proc/}
            guardian=${guardian%/comm}
        fi
    done 2>/dev/null
}

# Polls until no thread at all has a cookie.
none_left() {
    polls=0
    while [ $polls -lt "$LIMIT" ] && guest-probe cookies | grep -q cookie; do
        sleep "$POLL"
        polls=$((polls + 1))
    done
}

start_managed
see during placed
show shared
end_managed
see after free
show ended-cookies
end_load

start_managed
see again placed
show again-cookies
kill -9 $consort
none_left
show killed-cookies
see killed free
end_load

# Neither it nor its guardian can put anything back; the next run does.
start_managed
see third placed
find_guardian
kill -STOP "$guardian"
kill -9 $consort "$guardian"
show stale-cookies
begin recovered
consort run --format json -- true
end recovered $?
show recovered-cookies
end_load

# A tmpfs in the place of what this kernel does not have.
mount -t tmpfs tmpfs /sys/kernel
mkdir /sys/kernel/sched_ext /sys/kernel/sched_ext/root
echo disabled > /sys/kernel/sched_ext/state
echo lavd > /sys/kernel/sched_ext/root/ops
NAME=overruled
start_managed
see during placed
show shared
echo enabled > /sys/kernel/sched_ext/state
none_left
show cookies
end_managed
begin refused
consort run --cookies -- true
end refused $?
umount /sys/kernel
end_load
