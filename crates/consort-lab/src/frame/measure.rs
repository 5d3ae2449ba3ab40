//! Measures, each defined once with its unit and the direction in which it is better.

/// Direction in which a measure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BetterDirection {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Neither more nor less is better by itself.
    Neither,
}

/// One measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Key in study files and in the frame.
    pub key: &'static str,
    /// Title for people.
    pub title: &'static str,
    /// Unit; none for plain ratios and counts.
    pub unit: Option<&'static str>,
    /// Direction in which it is better.
    pub better: BetterDirection,
}

const fn measure(
    key: &'static str,
    title: &'static str,
    unit: Option<&'static str>,
    better: BetterDirection,
) -> Measure {
    Measure {
        key,
        title,
        unit,
        better,
    }
}

const HIGHER: BetterDirection = BetterDirection::Higher;
const LOWER: BetterDirection = BetterDirection::Lower;
const NEITHER: BetterDirection = BetterDirection::Neither;

/// Every measure that a study can show.
pub const MEASURES: &[Measure] = &[
    measure("stp", "STP", None, HIGHER),
    measure("antt", "ANTT", None, LOWER),
    measure("unfairness", "Unfairness", None, LOWER),
    measure("slowdown", "Slowdown", None, LOWER),
    measure("makespan_s", "Makespan", Some("s"), LOWER),
    measure(
        "speed_hz",
        "Speed of the last to be done",
        Some("1/s"),
        HIGHER,
    ),
    measure(
        "turnaround_s",
        "Mean time of the programs' work",
        Some("s"),
        LOWER,
    ),
    measure("energy_j", "Energy", Some("J"), LOWER),
    measure("pdp_j", "Power-delay product", Some("J"), LOWER),
    measure("power_w", "Average power", Some("W"), LOWER),
    measure(
        "instruction_nj",
        "Energy per instruction",
        Some("nJ"),
        LOWER,
    ),
    measure(
        "accesses_pki",
        "LLC accesses per 1000 instructions",
        None,
        NEITHER,
    ),
    measure(
        "large_accesses_percent",
        "LLC accesses by large cores",
        Some("%"),
        NEITHER,
    ),
    measure(
        "large_percent",
        "Instructions on large cores",
        Some("%"),
        NEITHER,
    ),
    measure("moves_hz", "Moves", Some("1/s"), NEITHER),
    measure("waits_percent", "Threads' time waiting", Some("%"), LOWER),
    measure(
        "switch_percent",
        "Threads' time switching",
        Some("%"),
        LOWER,
    ),
    measure("returns", "Returns from the kernel", None, NEITHER),
    measure(
        "returns_at_once_100",
        "Returns on a large core at once, times 100",
        None,
        HIGHER,
    ),
    measure(
        "returns_soon_100",
        "Returns on a large core within 1 ms, times 100",
        None,
        HIGHER,
    ),
    measure(
        "returns_ps_per_ms",
        "Returns from the kernel, times 10⁹",
        None,
        NEITHER,
    ),
    measure("thread_ps", "Threads' time", Some("ps"), NEITHER),
    measure(
        "user_100_ps",
        "Threads' time in user mode, times 100",
        Some("ps"),
        HIGHER,
    ),
    measure(
        "kernel_100_ps",
        "Threads' time in the kernel, times 100",
        Some("ps"),
        LOWER,
    ),
    measure(
        "off_100_ps",
        "Threads' time off PUs, times 100",
        Some("ps"),
        LOWER,
    ),
    measure("largest_slowdown", "Largest slowdown", None, LOWER),
    measure("smallest_slowdown", "Smallest slowdown", None, LOWER),
    measure(
        "migrations_hz",
        "Migrations of a thread",
        Some("1/s"),
        NEITHER,
    ),
    measure(
        "away_percent",
        "Away from its memory",
        Some("% of time"),
        LOWER,
    ),
    measure(
        "alone_percent",
        "Measured alone",
        Some("% of time"),
        NEITHER,
    ),
    measure("disadvantage", "Learnt disadvantage", None, NEITHER),
    measure("memory_latency_ns", "Latency of memory", Some("ns"), LOWER),
    measure("decision_us", "Time of a decision", Some("µs"), LOWER),
    measure(
        "stp_charged",
        "STP, time of decisions charged",
        None,
        HIGHER,
    ),
    measure(
        "stp_at_1000_us",
        "STP at 1000 µs per decision",
        None,
        HIGHER,
    ),
    measure(
        "alone_s",
        "Time of a program's work alone",
        Some("s"),
        NEITHER,
    ),
    measure("cpi_moves", "moves", None, LOWER),
    measure("migrations", "Migrations", None, NEITHER),
    measure(
        "fpu_mean_percent",
        "FPU pipes in use, all cores",
        Some("%"),
        NEITHER,
    ),
    measure(
        "fpu_busiest_percent",
        "On the busiest core",
        Some("%"),
        NEITHER,
    ),
    measure(
        "fpu_idlest_percent",
        "On the idlest core",
        Some("%"),
        NEITHER,
    ),
    measure(
        "fpu_busy_percent",
        "Own operations in the FPU",
        Some("%"),
        NEITHER,
    ),
    measure("l2_mpki", "L2 misses per 1000 instructions", None, LOWER),
    measure(
        "all_l2_mpki",
        "L2 misses per 1000 instructions, all programs",
        None,
        LOWER,
    ),
    measure("l2_misses_g", "L2 misses", Some("10⁹"), LOWER),
    measure("end_s", "End of the last", Some("s"), LOWER),
    measure(
        "length_percent",
        "Length of programs",
        Some("% of theirs"),
        NEITHER,
    ),
    measure("fpu_usage", "FPU usage", None, NEITHER),
    measure(
        "l2_per_100_cycles",
        "L2 misses",
        Some("per 100 cycles"),
        LOWER,
    ),
    measure("cycles_g", "Cycles per copy", Some("10⁹"), LOWER),
    measure(
        "instructions_g",
        "Instructions per copy",
        Some("10⁹"),
        NEITHER,
    ),
    measure("ipc", "Instructions per cycle", None, HIGHER),
    measure("ips", "Instructions per second", Some("1/s"), HIGHER),
    measure("ips_g", "Instructions", Some("10⁹/s"), HIGHER),
    measure("cpi", "Cycles per instruction", None, LOWER),
    measure("cpi_base", "base", None, LOWER),
    measure("cpi_units", "units", None, LOWER),
    measure("cpi_fetch", "fetch", None, LOWER),
    measure("cpi_branch", "branch", None, LOWER),
    measure("cpi_l2", "l2", None, LOWER),
    measure("cpi_llc", "llc", None, LOWER),
    measure("cpi_memory", "memory", None, LOWER),
    measure("cpi_queue", "queue", None, LOWER),
    measure("cpi_waiting", "memory and its queues", None, LOWER),
    measure("cpi_tlb", "tlb", None, LOWER),
    measure("cpi_window", "window", None, LOWER),
    measure("cpi_dispatch", "dispatch", None, LOWER),
    measure("cpi_lock", "lock", None, LOWER),
    measure("large_over_small", "Large over small core", None, NEITHER),
    measure("refill_cycles", "Refill", Some("cycles"), LOWER),
    measure("quantum_percent", "Of the quantum", Some("%"), LOWER),
    measure(
        "round_robin_speed",
        "Closed form of round robin over threads that stay",
        None,
        HIGHER,
    ),
];

/// The measure of that key.
pub fn find(key: &str) -> Option<&'static Measure> {
    MEASURES.iter().find(|measure| measure.key == key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn keys_are_unique_and_titles_are_there() {
        let keys: BTreeSet<&str> = MEASURES.iter().map(|m| m.key).collect();
        assert_eq!(keys.len(), MEASURES.len());
        assert!(MEASURES.iter().all(|m| !m.title.is_empty()));
        assert_eq!(find("antt").map(|m| m.better), Some(BetterDirection::Lower));
    }
}
