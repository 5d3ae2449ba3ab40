#!/bin/sh
# Threads run under `consort run --trial`: masks show the stretches of a trial if threads are
# pinned, and its timeline shows them and the nudges.
. /scenario/story.sh

start_managed
if [ "$ENACT" = pin ]; then
    see managed placed
    see unmanaged free
    see again placed
    see second free
else
    sleep 80
fi
end_managed
begin timeline
grep -e 'unmanaged stretch' -e 'nudged threads' "/tmp/$NAME.trace"
end timeline $?
see after free
end_load
