"""A loop over floats in an interpreter: little of what then runs is floating point."""

import sys

x = 0.3
total = 0.0
for _ in range(int(sys.argv[1])):
    x = 3.7 * x * (1.0 - x)
    total += x / 1.5
print(total)
