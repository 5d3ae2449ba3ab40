#!/usr/bin/env python3
"""Loops of Python and of NumPy: `loops.py LOOP rate KIB_SMALL KIB_LARGE | run KIB SECONDS`."""

import random
import sys
import time

SLICE_S = 0.03
SLICES = 15


def numbers(kib, order):
    """A list that refers to as many objects as fit; an int and its place take 40 bytes."""
    count = kib * 1024 // 40
    values = [2**40 + n for n in range(count)]
    if order:
        random.Random(1).shuffle(values)
    return values


def py_sum(kib):
    values, at = numbers(kib, False), [0]

    def step():
        total, start = 0, at[0]
        for value in values[start : start + 2000]:
            total += value
        at[0] = start + 2000 if start + 2000 < len(values) else 0
        return min(2000, len(values))

    return step


def py_dict(kib):
    count = kib * 1024 // 150
    table = {n * 7919: n for n in range(count)}
    keys = list(table)
    random.Random(2).shuffle(keys)
    at = [0]

    def step():
        start = at[0]
        for key in keys[start : start + 1000]:
            table[key]
        at[0] = start + 1000 if start + 1000 < len(keys) else 0
        return min(1000, len(keys))

    return step


def arrays(kib, count):
    import numpy

    each = max(kib * 1024 // 8 // count, 256)
    return numpy, [numpy.ones(each) for _ in range(count)]


def in_chunks(length, work, chunk=2048):
    """Goes through the arrays chunk by chunk, so that a step is as much whatever the size."""
    at = [0]
    chunk = min(chunk, length)

    def step():
        for _ in range(8):
            start = at[0]
            work(slice(start, start + chunk))
            at[0] = start + chunk if start + 2 * chunk <= length else 0
        return 8

    return step


def np_add(kib):
    numpy, (a, b, c) = arrays(kib, 3)
    return in_chunks(len(a), lambda s: numpy.add(a[s], b[s], out=c[s]))


def np_sum(kib):
    numpy, (a,) = arrays(kib, 1)
    return in_chunks(len(a), lambda s: a[s].sum())


def np_sqrt(kib):
    numpy, (a, b) = arrays(kib, 2)
    return in_chunks(len(a), lambda s: numpy.sqrt(a[s], out=b[s]))


def np_sin(kib):
    numpy, (a, b) = arrays(kib, 2)
    return in_chunks(len(a), lambda s: numpy.sin(a[s], out=b[s]))


def np_copy(kib):
    numpy, (a, b) = arrays(kib, 2)
    return in_chunks(len(a), lambda s: numpy.copyto(b[s], a[s]))


def np_take(kib):
    import numpy

    data = numpy.ones(kib * 1024 // 8)
    rng = numpy.random.default_rng(1)
    places = [rng.integers(0, len(data), 2000) for _ in range(64)]
    out = numpy.empty(2000)
    at = [0]

    def step():
        at[0] = (at[0] + 1) % 64
        for _ in range(2):
            numpy.take(data, places[(at[0] * 7) % 64], out=out, mode="clip")
            numpy.add(places[(at[0] * 7) % 64], 12345, out=places[(at[0] * 7) % 64])
            numpy.remainder(places[(at[0] * 7) % 64], len(data), out=places[(at[0] * 7) % 64])
        return 2

    return step


def np_int(kib):
    import numpy

    a = numpy.arange(max(kib * 1024 // 8, 256))
    b = numpy.empty_like(a)
    return in_chunks(len(a), lambda s: numpy.bitwise_xor(a[s], 55, out=b[s]))


def work_for(step, seconds):
    start = now = time.thread_time()
    done = 0
    while now - start < seconds:
        done += step()
        now = time.thread_time()
    return done / (now - start)


def rate(loop, small_kib, large_kib):
    small, large = loop(small_kib), loop(large_kib)
    work_for(small, SLICE_S)
    work_for(large, SLICE_S)
    ratios = []
    for _ in range(SLICES):
        before, between = work_for(small, SLICE_S), work_for(large, 2 * SLICE_S)
        ratios.append(between / ((before + work_for(small, SLICE_S)) / 2))
    print(sorted(ratios)[SLICES // 2])


def main():
    name, verb, first, second = sys.argv[1:]
    loop = globals()[name]
    if verb == "rate":
        rate(loop, int(first), int(second))
    else:
        work_for(loop(int(first)), float(second))


if __name__ == "__main__":
    main()
