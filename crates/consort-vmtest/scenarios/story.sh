# Words to tell stories with: a load that is started, managed, placed, freed.
# To be sourced by a story, which is one of the other files.
#
# Parameters (environment): NAME begins the name of each section. FP, INT: threads
# of each kind, SLEEPERS: threads that mostly sleep. SHAPE: `programs` of one thread each, or `threads` of one program
# per kind. POLICY, INTERVAL, ENACT: given to consort. POLL: seconds from one poll to the
# next. STABLE: polls without a change that count as settled. LIMIT: polls after
# which waiting is given up. TURNS: options for the load by which its threads work and
# sleep by turns. QUOTA: share of one PU that each of them gets, in percent; 0 for no
# bound. FLAGS: more options for consort, none if not set.
#
# Emulated time means nothing, so every wait ends by a count of polls. Where a
# wait is given up the section still shows the masks as they are then.
set -u

BOX=/sys/fs/cgroup/box
FIRST=$$

# One line `thread PID TID MASK COMM` per thread of the workload.
masks() { guest-probe masks "$FIRST"; }

begin() { echo "@@begin $NAME-$1"; }
end() { echo "@@end $NAME-$1 $2"; }

# Folders for consort and its load.
make_box() {
    mkdir -p $BOX/load $BOX/consort 2>/dev/null
    echo "+cpuset +cpu" > $BOX/cgroup.subtree_control
    mkdir -p $BOX/load $BOX/consort
    quota=max
    [ "$QUOTA" = 0 ] || quota=$((QUOTA * (FP + INT) * 1000))
    echo "$quota 100000" > $BOX/load/cpu.max
}

# Everything that threads without a mask of their own may use.
read_all() { read -r ALL < $BOX/load/cpuset.cpus.effective; }

# What a sighting needs to count as placed: all threads are there, one PU each.
placed() {
    [ "$(echo "$1" | grep -c '^thread [0-9]* [0-9]* [0-9]* ')" = $((FP + INT)) ]
}

# Whether all threads may use everything.
free() {
    read_all
    [ "$(echo "$1" | grep -c " $ALL ")" = $((FP + INT)) ]
}

# Polls until the sightings are as said ($1), and then the same STABLE times.
wait_until() {
    last='' same=0 polls=0
    while [ $polls -lt "$LIMIT" ] && [ $same -lt "$STABLE" ]; do
        sleep "$POLL"
        polls=$((polls + 1))
        now=$(masks)
        if [ "$now" = "$last" ] && "$1" "$now"; then same=$((same + 1)); else same=0; fi
        last=$now
    done
    echo "polls $polls"
    echo "$now"
    [ $same -ge "$STABLE" ]
}

# A section that waits and shows what it waited for.
see() {
    begin "$1"
    wait_until "$2"
    end "$1" $?
}

# The load by itself, unmanaged.
start_alone() {
    make_box
    sh /scenario/load.sh &
    alone=$!
}

start_managed() {
    make_box
    sh -c "echo \$\$ > $BOX/consort/cgroup.procs; exec \"\$@\"" sh \
        consort run --interval "$INTERVAL" --policy "$POLICY" --enact "$ENACT" \
        --report "/tmp/$NAME.json" ${FLAGS-} \
        -- sh /scenario/load.sh >"/tmp/$NAME.log" 2>&1 &
    consort=$!
}

# consort passes the signal on to the load's shell, which ends and leaves the
# threads behind: they must be free again.
end_managed() {
    kill -TERM $consort
    begin ended
    wait $consort
    status=$?
    cat "/tmp/$NAME.log"
    end ended $status
    begin report
    cat "/tmp/$NAME.json"
    end report $?
}

# Ends the load, and shows what consort has left behind: nothing.
end_load() {
    for pid in $(masks | cut -d' ' -f2 | sort -u); do
        kill -9 "$pid"
    done
    while [ -n "$(masks)" ]; do sleep 1; done
    begin left
    ls /run/consort 2>/dev/null
    cat /proc/[0-9]*/comm 2>/dev/null | grep -x -e consort -e 'consort-guard.*'
    end left 0
}
