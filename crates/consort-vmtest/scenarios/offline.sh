#!/bin/sh
# The PU of an fp thread is taken offline while Consort places threads, and
# comes back after Consort's end.
. /scenario/story.sh

start_managed
see during placed
# PU 0 cannot be taken offline on x86; of two fp threads at most one has it.
taken=$(masks | grep ' fp-' | cut -d' ' -f4 | grep -vx 0 | head -n 1)
begin taken
echo "$taken"
echo 0 > "/sys/devices/system/cpu/cpu$taken/online"
end taken $?
see without placed
end_managed
see after free
echo 1 > "/sys/devices/system/cpu/cpu$taken/online"
see back free
end_load
