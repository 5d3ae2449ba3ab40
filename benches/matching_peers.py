#!/usr/bin/env python3
"""Minimum-weight perfect matching by Python libraries, for comparison.

Costs as in crates/consort-matching/benches/matching.rs: both slowdowns by the
published POWER8 parameters, random stacks, corrections up to 10 percent. Prints
the median and fastest of some runs, or `skipped: reason`.
Usage: matching_peers.py [threads ...]
"""

import random
import statistics
import sys
import time

POWER8 = [
    (-0.019, 1.698, 0.0, 0.0),
    (0.009, 1.089, 0.0, -0.859),
    (0.008, 1.219, 0.0, 0.308),
    (0.031, 1.173, 0.072, 0.615),
]
RUNS = 5


def stack(rng):
    parts = [rng.random() for _ in POWER8]
    return [part / sum(parts) for part in parts]


def slowdown(own, other):
    return sum(
        a + b * c + g * o + d * c * o
        for (a, b, g, d), c, o in zip(POWER8, own, other)
    )


def edges(threads, seed):
    rng = random.Random(seed)
    stacks = [stack(rng) for _ in range(threads)]
    for i in range(threads):
        for j in range(i + 1, threads):
            cost = slowdown(stacks[i], stacks[j]) * rng.uniform(0.9, 1.1)
            cost += slowdown(stacks[j], stacks[i]) * rng.uniform(0.9, 1.1)
            yield i, j, -int(cost * 1e9)


def networkx_matcher(threads, seed):
    import networkx

    graph = networkx.Graph()
    graph.add_weighted_edges_from(edges(threads, seed))
    return lambda: networkx.max_weight_matching(graph, maxcardinality=True)


def rustworkx_matcher(threads, seed):
    import rustworkx

    graph = rustworkx.PyGraph()
    graph.add_nodes_from(range(threads))
    graph.add_edges_from(list(edges(threads, seed)))
    return lambda: rustworkx.max_weight_matching(
        graph, max_cardinality=True, weight_fn=int
    )


def measure(make, threads):
    times = []
    for seed in range(RUNS):
        match = make(threads, seed)
        start = time.perf_counter()
        match()
        times.append((time.perf_counter() - start) * 1e3)
    return f"median {statistics.median(times):.2f} ms, fastest {min(times):.2f} ms, {RUNS} runs"


def main():
    sizes = [int(size) for size in sys.argv[1:]] or [16, 80, 256]
    for name, make in [("rustworkx", rustworkx_matcher), ("networkx", networkx_matcher)]:
        for threads in sizes:
            try:
                result = measure(make, threads)
            except ImportError as missing:
                result = f"skipped: {missing}"
            print(f"{name}, {threads} threads: {result}")


if __name__ == "__main__":
    main()
