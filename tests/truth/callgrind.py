"""Runs a program under callgrind and reads exact costs per instruction address.

Purpose: which instruction ran how often, and which missed a cache or was mispredicted in
callgrind's model of them, without any decoder of ours.

Pitfalls: valgrind shows programs a processor without AVX-512, so code that picks its path at run
time takes another one than it may natively. Callgrind's caches are modelled after those of the
host, and its branch predictor is a simple one.
"""

import collections
import pathlib
import re
import subprocess

# Order of the cost columns is read from the file; these are the names that are used.
INSTRUCTIONS = "Ir"
MISPREDICTED = ("Bcm", "Bim")
LEVEL1_MISSES = ("I1mr", "D1mr", "D1mw")
LAST_LEVEL_MISSES = ("ILmr", "DLmr", "DLmw")

OPTIONS = [
    "--tool=callgrind",
    "--dump-instr=yes",
    "--dump-line=no",
    "--cache-sim=yes",
    "--branch-sim=yes",
    "--separate-threads=yes",
    "--compress-pos=no",
    "--compress-strings=no",
    "--trace-children=yes",
    "--quiet",
]

Address = collections.namedtuple("Address", "object offset")
Cost = collections.namedtuple("Cost", "instructions mispredicted level1_misses last_level_misses")


class Thread:
    """One thread's costs: {Address: Cost}, with where they come from."""

    def __init__(self, pid, number, command, caches, costs):
        self.pid = pid
        self.number = number
        self.command = command
        self.caches = caches
        self.costs = costs


def run(command, folder, input_path=None, timeout_s=600):
    """Runs the command (a list) under callgrind; its threads, of all its processes."""
    out = pathlib.Path(folder) / "callgrind.%p"
    with open(input_path or "/dev/null", "rb") as stdin:
        subprocess.run(
            ["valgrind", *OPTIONS, f"--callgrind-out-file={out}", *command],
            stdin=stdin,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=timeout_s,
            check=True,
        )
    # With one file per thread the file without a thread number stays empty.
    files = sorted(pathlib.Path(folder).glob("callgrind.*-*"))
    return [thread for thread in map(read, files) if thread.costs]


def read(path):
    """Reads one file of callgrind's format (valgrind manual, "Callgrind Format Specification")."""
    with open(path, encoding="utf-8", errors="replace") as lines:
        return parse(lines)


def parse(lines):
    """Reads the lines of one thread's file."""
    header = {}
    caches = []
    costs = collections.defaultdict(lambda: [0, 0, 0, 0])
    columns = []
    current = "???"
    skip = False
    for line in lines:
        if line.startswith("0x"):
            if skip:
                # The line after `calls=` is what the callee cost: it is counted there.
                skip = False
                continue
            add(costs, current, line.split(), columns)
        elif line.startswith("ob="):
            current = line[3:].strip()
        elif line.startswith("calls="):
            skip = True
        elif line.startswith("desc:") and "cache" in line:
            caches.append(line[5:].strip())
        elif match := re.match(r"(pid|cmd|thread|events): *(.*)", line):
            header[match[1]] = match[2].strip()
            if match[1] == "events":
                columns = groups(match[2].split())
    return Thread(
        int(header.get("pid", 0)),
        int(header.get("thread", 0)),
        header.get("cmd", ""),
        caches,
        {address: Cost(*cost) for address, cost in costs.items()},
    )


def extrapolate(threads, start, growth):
    """All threads as one, whose costs beyond those of `start` are multiplied by `growth`.

    Callgrind takes 50 to 100 times as long as the program, so it runs it on less work, and what
    the program does to start weighs too much. Work that grows linearly is known from two sizes.
    Costs stay floating point: equal counts give equal results, which blocks are recognised by.
    """
    long, short = (total_costs(part) for part in (threads, start))
    nothing = Cost(0, 0, 0, 0)
    costs = {}
    for address in long.keys() | short.keys():
        many, few = long.get(address, nothing), short.get(address, nothing)
        costs[address] = Cost(*(max(0.0, b + (a - b) * growth) for a, b in zip(many, few)))
    first = threads[0]
    return Thread(first.pid, first.number, first.command, first.caches, costs)


def total_costs(threads):
    """{Address: Cost} of several threads together."""
    sums = collections.defaultdict(lambda: [0, 0, 0, 0])
    for thread in threads:
        for address, cost in thread.costs.items():
            for kind, value in enumerate(cost):
                sums[address][kind] += value
    return {address: Cost(*values) for address, values in sums.items()}


def groups(events):
    """For each cost column, which of the four sums of a Cost it belongs to, or None."""
    kinds = [(INSTRUCTIONS,), MISPREDICTED, LEVEL1_MISSES, LAST_LEVEL_MISSES]
    return [next((k for k, names in enumerate(kinds) if event in names), None) for event in events]


def add(costs, current, fields, columns):
    """Adds one cost line; columns that are left out at its end are zero."""
    sums = costs[Address(current, int(fields[0], 16))]
    for value, kind in zip(fields[1:], columns):
        if kind is not None:
            sums[kind] += int(value)
