"""Work of one kind on NumPy arrays: arrays.py matmul|fft|functions|sort ROUNDS"""

import sys

import numpy

KIND, ROUNDS = sys.argv[1], int(sys.argv[2])
DRAW = numpy.random.default_rng(5)


def matmul():
    """Products of matrices of doubles, by whatever BLAS is installed."""
    left, right = DRAW.random((160, 160)), DRAW.random((160, 160))
    for _ in range(ROUNDS):
        left = (left @ right) / 80.0
    return left[0, 0]


def fft():
    """Transforms of complex doubles, forth and back."""
    wave = DRAW.random(1 << 14)
    for _ in range(ROUNDS):
        wave = numpy.fft.irfft(numpy.fft.rfft(wave))
    return wave[0]


def functions():
    """Elementary functions over arrays: NumPy picks the code by what the processor has."""
    x = DRAW.random(1 << 14)
    for _ in range(ROUNDS):
        x = numpy.sqrt(numpy.exp(numpy.sin(x)) + 0.25)
    return x[0]


def sort():
    """Sorting and searching of integers."""
    numbers = DRAW.integers(0, 1 << 40, 1 << 15)
    found = 0
    for _ in range(ROUNDS):
        numbers = (numbers * 1103515245 + 12345) & 0xFFFFFFFFFF
        ordered = numpy.sort(numbers, kind="stable")
        found += int(numpy.searchsorted(ordered, numbers[:4096]).sum())
    return found


print({"matmul": matmul, "fft": fft, "functions": functions, "sort": sort}[KIND]())
