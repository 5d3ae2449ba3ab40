"""A loop over integers in an interpreter."""

import sys

state = 12345
for _ in range(int(sys.argv[1])):
    state = (state * 1103515245 + 12345) & 0x7FFFFFFF
    state ^= state >> 7
print(state)
