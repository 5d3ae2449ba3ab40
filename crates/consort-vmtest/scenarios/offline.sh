#!/bin/sh
# The PU of the first fp thread is taken offline while Consort places threads, and
# comes back after Consort's end.
. /scenario/story.sh

start_managed
see during placed
taken=$(masks | grep ' fp-' | head -n 1 | cut -d' ' -f4)
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
