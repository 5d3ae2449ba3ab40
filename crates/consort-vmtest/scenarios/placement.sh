#!/bin/sh
# Threads run alone, then under `consort run`, then after a clean end, then under
# it again, and then after kill -9.
. /scenario/story.sh

start_alone
see before free
kill -TERM $alone
end_load

start_managed
see during placed
end_managed
see after free
end_load

start_managed
see again placed
kill -9 $consort
see killed free
end_load
