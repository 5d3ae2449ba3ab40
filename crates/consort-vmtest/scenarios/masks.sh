# Functions for the scenarios: where threads may run. They start no process and
# look at few, because both are slow under emulation.
#
# FIRST (environment): programs with lower process ids are not the workload's.

# Sets `mask` to the PUs that a task may use, as Linux writes them.
read_mask() {
    mask=
    while read -r key value _; do
        if [ "$key" = Cpus_allowed_list: ]; then
            mask=$value
            break
        fi
    done 2>/dev/null < "/proc/$1/status"
}

# One line `thread PID TID MASK COMM` per thread of the workload.
masks() {
    for program in /proc/[0-9]*; do
        pid=${program#/proc/}
        [ "$pid" -gt "$FIRST" ] || continue
        for task in "$program"/task/[0-9]*; do
            read -r comm 2>/dev/null < "$task/comm" || continue
            case $comm in
                fp-* | int-*) ;;
                *) continue ;;
            esac
            read_mask "${task#/proc/}"
            [ -n "$mask" ] && echo "thread $pid ${task##*/} $mask $comm"
        done
    done
}
