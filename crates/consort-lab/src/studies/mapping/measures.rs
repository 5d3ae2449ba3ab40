//! Measures of the runs of a program: rates per instruction, so that programs and scales compare,
//! and shares of time.

use crate::study::StudyError;
use consort_experiment::RepeatedProgram;

/// A value of a program's run.
pub(super) type MappedRunValue = fn(&RepeatedProgram) -> f64;

/// A value with its column.
#[derive(Clone, Copy)]
pub(super) struct MappingMeasure {
    /// Key of the column.
    pub(super) key: &'static str,
    /// Title for people.
    pub(super) title: &'static str,
    /// Unit in a headline.
    pub(super) unit: &'static str,
    pub(super) value: MappedRunValue,
}

const fn measure(
    key: &'static str,
    title: &'static str,
    unit: &'static str,
    value: MappedRunValue,
) -> MappingMeasure {
    MappingMeasure {
        key,
        title,
        unit,
        value,
    }
}

const fn rate(key: &'static str, title: &'static str, value: MappedRunValue) -> MappingMeasure {
    measure(key, title, "per 1000 instructions", value)
}

const fn share(key: &'static str, title: &'static str, value: MappedRunValue) -> MappingMeasure {
    measure(key, title, "% of the threads' time", value)
}

fn per_kilo(program: &RepeatedProgram, count: f64) -> f64 {
    1000.0 * count / program.counters.instructions
}

fn percent(program: &RepeatedProgram, seconds: f64) -> f64 {
    100.0 * seconds / program.counters.time.total_s()
}

/// Time of the program's work.
pub(super) const SECONDS: MappedRunValue = |p| p.time_s;

pub(super) const CYCLES: MappingMeasure =
    measure("cpi", "Executed cycles", "per instruction", |p| {
        p.counters.cycles / p.counters.instructions
    });
pub(super) const L1D: MappingMeasure = rate("l1d_mpki", "L1D misses", |p| {
    per_kilo(p, p.counters.l1d_misses)
});
/// Misses of the L2 that the program waited for.
pub(super) const L2: MappingMeasure = rate("l2_mpki", "L2 misses", |p| {
    per_kilo(p, p.counters.llc_misses)
});
pub(super) const PREFETCHED: MappingMeasure = rate("prefetched", "Prefetched lines", |p| {
    per_kilo(p, p.counters.memory.prefetches)
});
pub(super) const READS: MappingMeasure = rate("reads", "Demand reads", |p| {
    per_kilo(p, p.counters.memory.reads)
});
pub(super) const FETCHES: MappingMeasure = rate("fetches", "Instruction fetches", |p| {
    per_kilo(p, p.counters.memory.fetches)
});
pub(super) const WRITEBACKS: MappingMeasure = rate("writebacks", "Write-backs", |p| {
    per_kilo(p, p.counters.memory.writebacks)
});
/// Memory transactions of all [`KINDS`].
pub(super) const TRANSACTIONS: MappingMeasure = rate("transactions", "Memory transactions", |p| {
    per_kilo(p, p.counters.memory.total())
});
/// Mean time of a line of data; NaN for a program that brings none.
pub(super) const LATENCY: MappingMeasure =
    measure("latency_cycles", "Memory latency", "cycles", |p| {
        p.counters.memory_latency_cycles().unwrap_or(f64::NAN)
    });
pub(super) const BRANCHES: MappingMeasure = rate("branch_mpki", "Branch misses", |p| {
    per_kilo(p, p.counters.branch_misses)
});
pub(super) const BRANCH_CYCLES: MappingMeasure = measure(
    "branch_percent",
    "Cycles for branch misses",
    "% of cycles",
    |p| 100.0 * p.counters.branch_miss_cycles / p.counters.cycles,
);
/// Share of the machine's four cores that the program has.
pub(super) const UTILISATION: MappingMeasure = measure(
    "utilisation_percent",
    "Utilisation of the cores",
    "percent",
    |p| 100.0 * p.counters.time.on_pu_s / (4.0 * p.span_s),
);

/// Division of the threads' time by cause; together all of it.
pub(super) const TIMES: [MappingMeasure; 6] = [
    share("progress_percent", "progress", |p| {
        let time = &p.counters.time;
        percent(p, time.on_pu_s - time.spin_s - time.overhead_s)
    }),
    share("spin_percent", "spinning for siblings", |p| {
        percent(p, p.counters.time.spin_s)
    }),
    share("overhead_percent", "switches and refills", |p| {
        percent(p, p.counters.time.overhead_s)
    }),
    share("queue_percent", "waiting for a core", |p| {
        percent(p, p.counters.time.queue_s)
    }),
    share("asleep_percent", "asleep for siblings", |p| {
        percent(p, p.counters.time.asleep_s)
    }),
    share("io_percent", "in input and output", |p| {
        percent(p, p.counters.time.io_s)
    }),
];

/// Memory transactions by kind; together all of them.
pub(super) const KINDS: [MappingMeasure; 4] = [READS, PREFETCHED, FETCHES, WRITEBACKS];

impl MappingMeasure {
    /// The measure of a column of this key.
    ///
    /// # Errors
    /// A key that no measure has.
    pub(super) fn find(key: &str) -> Result<Self, StudyError> {
        const ALL: [MappingMeasure; 9] = [
            CYCLES,
            L1D,
            L2,
            PREFETCHED,
            TRANSACTIONS,
            LATENCY,
            BRANCHES,
            BRANCH_CYCLES,
            UTILISATION,
        ];
        let found = ALL.into_iter().find(|measure| measure.key == key);
        found.ok_or_else(|| StudyError::part(key, "no such measure of thread mappings"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_experiment::ProgramCounters;

    #[test]
    fn time_shares_sum_to_100_percent() {
        let mut counters = ProgramCounters {
            instructions: 2e6,
            l1d_misses: 5e3,
            ..ProgramCounters::default()
        };
        counters.time.on_pu_s = 4.0;
        counters.time.spin_s = 1.0;
        counters.time.queue_s = 3.0;
        counters.time.io_s = 1.0;
        let program = RepeatedProgram {
            name: "a".to_owned(),
            threads: 4,
            runs: 3,
            time_s: 0.5,
            instructions: 1e6,
            counters,
            span_s: 2.0,
        };
        let shares = TIMES.map(|measure| (measure.value)(&program));
        assert_eq!(shares, [37.5, 12.5, 0.0, 37.5, 0.0, 12.5]);
        assert_eq!((L1D.value)(&program), 2.5);
        assert_eq!((UTILISATION.value)(&program), 50.0);
        assert!((LATENCY.value)(&program).is_nan());
    }
}
