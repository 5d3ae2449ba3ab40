#!/bin/sh
# The Delaunay triangulation of so many random points in space.
set -eu
rbox "$1" D3 t7 | qdelaunay s >/dev/null
