#!/bin/busybox sh
# The guest's first process: mounts what tests read, runs the steps in order,
# marks where each one's output begins and ends, and switches the machine off.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /run
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
mount -t cgroup2 cgroup2 /sys/fs/cgroup
echo "+cpuset +cpu" > /sys/fs/cgroup/cgroup.subtree_control
for step in /steps/*; do
    name=${step#/steps/*-}
    echo "@@begin $name"
    sh "$step" </dev/null 2>&1
    status=$?
    # A step whose last line has no end must not hide the mark.
    echo
    echo "@@end $name $status"
done
echo "@@done"
poweroff -f
