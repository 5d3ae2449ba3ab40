"""Instruction mixes from costs per address: by count, and weighted by time in two ways.

What "time-weighted truth" means here. A sampler sees a thread at equal steps of time and can
say what mix of instructions the code has *in which* it finds the thread. So the truth to compare
it with is: for each stretch of code, the time spent in it, dealt evenly to the instructions that
stretch executes. Charging a stall to the single instruction that waited (the variant
`time_by_instruction`) is what a sampler without skid would see; it answers another question
("what waits") and depends on where a processor reports a stall.

Time of an instruction is callgrind's cycle estimate, as KCachegrind and the valgrind manual define
it:  CEst = Ir + 10 Bm + 10 L1m + 100 LLm,  with Ir instructions, Bm mispredicted branches, L1m
level-1 misses and LLm last-level misses. It knows no latency of arithmetic: a division costs what
an addition does.

A stretch (block) is a run of executed instructions without a gap in which all ran equally often
and only the last one branches.
"""

import collections

import classes

BRANCH_CYCLES = 10
LEVEL1_CYCLES = 10
LAST_LEVEL_CYCLES = 100

# No instruction of x86 is longer, so a wider gap between two executed ones ends a block.
LONGEST_INSTRUCTION_BYTES = 15

Instruction = collections.namedtuple("Instruction", "offset kind count cycles")


def cycles(cost):
    """Callgrind's cycle estimate of one address."""
    return (
        cost.instructions
        + BRANCH_CYCLES * cost.mispredicted
        + LEVEL1_CYCLES * cost.level1_misses
        + LAST_LEVEL_CYCLES * cost.last_level_misses
    )


def blocks(instructions):
    """Cuts the executed instructions of one object, sorted by offset, into blocks."""
    block = []
    for instruction in instructions:
        if block and not continues(block[-1], instruction):
            yield block
            block = []
        block.append(instruction)
    if block:
        yield block


def continues(last, instruction):
    """Whether an instruction belongs to the block that ends with `last`."""
    return (
        last.kind != "branch"
        and instruction.count == last.count
        and instruction.offset - last.offset <= LONGEST_INSTRUCTION_BYTES
    )


class Mix:
    """Sums weights per class and makes shares of them."""

    def __init__(self):
        self.by_count = collections.Counter()
        self.by_block = collections.Counter()
        self.by_instruction = collections.Counter()
        self.unclassified = collections.Counter()

    def add_object(self, costs, text_of):
        """Adds an object: {offset: Cost} and {offset: text}."""
        instructions = [
            Instruction(offset, self.kind(text_of.get(offset), cost), cost.instructions, cycles(cost))
            for offset, cost in sorted(costs.items())
        ]
        for block in blocks(instructions):
            even = sum(i.cycles for i in block) / len(block)
            for instruction in block:
                self.by_count[instruction.kind] += instruction.count
                self.by_instruction[instruction.kind] += instruction.cycles
                self.by_block[instruction.kind] += even

    def kind(self, text, cost):
        """The class of a text, `unknown` where there is none."""
        if text is None:
            return "unknown"
        if not classes.is_known(text):
            self.unclassified[classes.split(text)[0]] += cost.instructions
        return classes.classify(text)

    def report(self):
        """The mixes as shares of what is known, and how much is not."""
        return {
            "instructions": sum(self.by_count.values()),
            "cycles_estimated": sum(self.by_instruction.values()),
            "unknown_share": share(self.by_block, "unknown"),
            "unclassified": dict(self.unclassified.most_common(10)),
            "count": shares(self.by_count),
            "time_by_block": shares(self.by_block),
            "time_by_instruction": shares(self.by_instruction),
        }


def share(weights, kind):
    total = sum(weights.values())
    return weights[kind] / total if total else 0.0


def shares(weights):
    """Shares of the classes in everything that could be read; they sum to 1 unless all are 0."""
    known = sum(weights[kind] for kind in classes.CLASSES)
    return {kind: weights[kind] / known if known else 0.0 for kind in classes.CLASSES}
