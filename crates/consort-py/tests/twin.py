"""`spread` of the registry (`policies/spread/mod.rs` of consort-core), line by line in Python."""

from __future__ import annotations

from consort import Core, Decision, Policy, Thread, View


class Spread(Policy):
    """Every active thread on a core of its own while there are cores."""

    quantum_ms = 1000
    active = 0.25
    stays_active = 0.5
    incumbent = 1.1

    def __init__(self) -> None:
        self.core_of: dict[int, list[int]] = {}

    def decide(self, view: View) -> Decision:
        decision = Decision()
        threads = self.active_threads(view)
        active = {thread.id for thread in threads}
        for thread in view.threads:
            if thread.managed and thread.id not in active:
                decision.place(thread.id, None, "left to the OS: hardly active")
        topology = view.topology
        pus = len(topology.pus)
        for thread in threads[pus:]:
            decision.place(thread.id, None, "left to the OS: more active threads fill all CPUs")
        threads = threads[:pus]
        given = Seats(topology.cores, topology.smt, len(threads)).give(threads, self.core_of)
        self.core_of = {}
        for thread, core in zip(threads, given):
            if core is not None:
                self.core_of[thread.id] = core.pus
                allowed = set(thread.original)
                decision.place(thread.id, [pu for pu in core.pus if pu in allowed])
        return decision

    def active_threads(self, view: View) -> list[Thread]:
        def is_active(thread: Thread) -> bool:
            factor = self.stays_active if thread.id in self.core_of else 1.0
            share = thread.wanted_share
            return share > 0.0 and share >= self.active * factor

        def busy(thread: Thread) -> float:
            return thread.cpu_time_ns * (self.incumbent if thread.id in self.core_of else 1.0)

        threads = [thread for thread in view.threads if thread.managed and is_active(thread)]
        return sorted(threads, key=lambda thread: (-busy(thread), thread.id))


class Seats:
    """Places at cores: how many threads each core has, and how many it may have."""

    def __init__(self, cores: list[Core], smt: int, threads: int) -> None:
        def seats_at(level: int) -> int:
            return sum(min(len(core.pus), level) for core in cores)

        self.cores = cores
        self.taken = [0] * len(cores)
        self.level = max(n for n in range(smt + 1) if seats_at(n) <= threads)
        self.extras = threads - min(seats_at(self.level), threads)

    def give(self, threads: list[Thread], earlier: dict[int, list[int]]) -> list[Core | None]:
        given = [self.keep(thread, earlier.get(thread.id)) for thread in threads]
        for at, thread in enumerate(threads):
            if given[at] is None:
                given[at] = self.take_emptiest(thread)
        return [None if core is None else self.cores[core] for core in given]

    def keep(self, thread: Thread, pus: list[int] | None) -> int | None:
        if not pus:
            return None
        core = next((n for n, core in enumerate(self.cores) if pus[0] in core.pus), None)
        if core is None:
            return None
        within = self.taken[core] < min(self.level, len(self.cores[core].pus))
        extra = not within and self.taken[core] == self.level and self.extras > 0
        if not (self.has_room(core, thread) and (within or extra)):
            return None
        self.extras -= extra
        self.taken[core] += 1
        return core

    def take_emptiest(self, thread: Thread) -> int | None:
        def rank(core: int) -> tuple[int, int, bool, int, int]:
            facts = self.cores[core]
            domain = sum(n for n, c in zip(self.taken, self.cores) if c.llc == facts.llc)
            elsewhere = thread.last_pu not in facts.pus
            return (self.taken[core], -facts.capacity, elsewhere, domain, core)

        usable = [core for core in range(len(self.cores)) if self.has_room(core, thread)]
        if not usable:
            return None
        best = min(usable, key=rank)
        self.taken[best] += 1
        return best

    def has_room(self, core: int, thread: Thread) -> bool:
        allowed = set(thread.original)
        return self.taken[core] < sum(pu in allowed for pu in self.cores[core].pus)
