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
    /// Unit; `None` for plain ratios and counts.
    pub unit: Option<&'static str>,
    /// Direction in which it is better.
    pub better: BetterDirection,
}

macro_rules! measures {
    ($($key:literal $title:literal $unit:expr, $better:ident;)*) => {
        &[$(Measure {
            key: $key,
            title: $title,
            unit: $unit,
            better: BetterDirection::$better,
        }),*]
    };
}

/// Every measure that a study can show.
pub const MEASURES: &[Measure] = measures! {
    "stp" "STP" None, Higher;
    "antt" "ANTT" None, Lower;
    "unfairness" "Unfairness" None, Lower;
    "slowdown" "Slowdown" None, Lower;
    "makespan_s" "Makespan" Some("s"), Lower;
    "scimark_mflops" "Cumulative SciMark score" Some("Mflops"), Higher;
    "speed_hz" "Speed of the last to be done" Some("1/s"), Higher;
    "turnaround_s" "Mean time of the programs' work" Some("s"), Lower;
    "energy_j" "Energy" Some("J"), Lower;
    "pdp_j" "Power-delay product" Some("J"), Lower;
    "power_w" "Average power" Some("W"), Lower;
    "instruction_nj" "Energy per instruction" Some("nJ"), Lower;
    "accesses_pki" "LLC accesses per 1000 instructions" None, Neither;
    "large_accesses_percent" "LLC accesses by large cores" Some("%"), Neither;
    "large_percent" "Instructions on large cores" Some("%"), Neither;
    "moves_hz" "Moves" Some("1/s"), Neither;
    "waits_percent" "Threads' time waiting" Some("%"), Lower;
    "switch_percent" "Threads' time switching" Some("%"), Lower;
    "returns" "Returns from the kernel" None, Neither;
    "returns_at_once_100" "Returns on a large core at once, times 100" None, Higher;
    "returns_soon_100" "Returns on a large core within 1 ms, times 100" None, Higher;
    "returns_ps_per_ms" "Returns from the kernel, times 10⁹" None, Neither;
    "thread_ps" "Threads' time" Some("ps"), Neither;
    "user_100_ps" "Threads' time in user mode, times 100" Some("ps"), Higher;
    "kernel_100_ps" "Threads' time in the kernel, times 100" Some("ps"), Lower;
    "on_pu_ps" "Threads' time on CPUs" Some("ps"), Neither;
    "off_100_ps" "Threads' time off CPUs, times 100" Some("ps"), Lower;
    "largest_slowdown" "Largest slowdown" None, Lower;
    "smallest_slowdown" "Smallest slowdown" None, Lower;
    "migrations_hz" "Migrations of a thread" Some("1/s"), Neither;
    "away_percent" "Away from its memory" Some("% of time"), Lower;
    "alone_percent" "Measured alone" Some("% of time"), Neither;
    "disadvantage" "Learnt disadvantage" None, Neither;
    "memory_latency_ns" "Latency of memory" Some("ns"), Lower;
    "decision_us" "Time of a decision" Some("µs"), Lower;
    "stp_charged" "STP, time of decisions charged" None, Higher;
    "stp_at_1000_us" "STP at 1000 µs per decision" None, Higher;
    "alone_s" "Time of a program's work alone" Some("s"), Neither;
    "cpi_moves" "moves" None, Lower;
    "migrations" "Migrations" None, Neither;
    "fpu_mean_percent" "FPU pipes in use, all cores" Some("%"), Neither;
    "fpu_busiest_percent" "On the busiest core" Some("%"), Neither;
    "fpu_idlest_percent" "On the idlest core" Some("%"), Neither;
    "fpu_busy_percent" "Own operations in the FPU" Some("%"), Neither;
    "l2_mpki" "L2 misses per 1000 instructions" None, Lower;
    "all_l2_mpki" "L2 misses per 1000 instructions, all programs" None, Lower;
    "l2_misses_g" "L2 misses" Some("10⁹"), Lower;
    "end_s" "End of the last" Some("s"), Lower;
    "length_percent" "Length of programs" Some("% of theirs"), Neither;
    "fpu_usage" "FPU usage" None, Neither;
    "l2_per_100_cycles" "L2 misses" Some("per 100 cycles"), Lower;
    "cycles_g" "Cycles per copy" Some("10⁹"), Lower;
    "instructions_g" "Instructions per copy" Some("10⁹"), Neither;
    "ipc" "Instructions per cycle" None, Higher;
    "ips" "Instructions per second" Some("1/s"), Higher;
    "ips_g" "Instructions" Some("10⁹/s"), Higher;
    "cpi" "Cycles per instruction" None, Lower;
    "cpi_base" "base" None, Lower;
    "cpi_units" "units" None, Lower;
    "cpi_fetch" "fetch" None, Lower;
    "cpi_branch" "branch" None, Lower;
    "cpi_l2" "l2" None, Lower;
    "cpi_llc" "llc" None, Lower;
    "cpi_memory" "memory" None, Lower;
    "cpi_queue" "queue" None, Lower;
    "cpi_waiting" "memory and its queues" None, Lower;
    "cpi_tlb" "tlb" None, Lower;
    "cpi_window" "window" None, Lower;
    "cpi_dispatch" "dispatch" None, Lower;
    "cpi_lock" "lock" None, Lower;
    "large_over_small" "Large over small core" None, Neither;
    "refill_cycles" "Refill" Some("cycles"), Lower;
    "quantum_percent" "Of the quantum" Some("%"), Lower;
    "round_robin_speed" "Closed form of round robin over threads that stay" None, Higher;
};

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
