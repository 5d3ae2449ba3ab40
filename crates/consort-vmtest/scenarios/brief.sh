#!/bin/sh
# Threads run under `consort run`, and on after its clean end.
. /scenario/story.sh

start_managed
see during placed
end_managed
see after free
end_load
