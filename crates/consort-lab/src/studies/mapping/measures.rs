//! Measures of the runs of a program: rates per instruction, so that programs and scales compare,
//! and shares of time.

use consort_experiment::RepeatedProgram;

/// A value of a program's run.
pub(in crate::studies) type MappedRunValue = fn(&RepeatedProgram) -> f64;

/// A value with its column.
#[derive(Clone, Copy)]
pub(in crate::studies) struct MappingMeasure {
    /// Key of the column.
    pub key: &'static str,
    /// Title for people.
    pub title: &'static str,
    /// Unit; none for plain ratios.
    pub unit: Option<&'static str>,
    /// The value.
    pub value: MappedRunValue,
}

const PER_KILO: Option<&str> = Some("per 1000 instructions");
const TIME: Option<&str> = Some("% of the threads' time");

/// A rate per 1000 instructions.
const fn rate(key: &'static str, title: &'static str, value: MappedRunValue) -> MappingMeasure {
    let unit = PER_KILO;
    MappingMeasure {
        key,
        title,
        unit,
        value,
    }
}

/// A share of the threads' time.
const fn share(key: &'static str, title: &'static str, value: MappedRunValue) -> MappingMeasure {
    let unit = TIME;
    MappingMeasure {
        key,
        title,
        unit,
        value,
    }
}

impl MappingMeasure {
    /// Its unit in a headline.
    pub fn unit_name(&self) -> &'static str {
        match self.unit {
            Some("%") => "percent",
            Some(unit) => unit,
            None => "ratio",
        }
    }
}

fn per_kilo(program: &RepeatedProgram, count: f64) -> f64 {
    1000.0 * count / program.counters.instructions
}

fn percent(program: &RepeatedProgram, seconds: f64) -> f64 {
    100.0 * seconds / program.counters.time.total_s()
}

/// Time of the program's work.
pub(in crate::studies) const SECONDS: MappedRunValue = |p| p.time_s;

/// Executed cycles.
pub(in crate::studies) const CYCLES: MappingMeasure = MappingMeasure {
    key: "cpi",
    title: "Executed cycles",
    unit: Some("per instruction"),
    value: |p| p.counters.cycles / p.counters.instructions,
};

/// Misses of the L1D.
pub(in crate::studies) const L1D: MappingMeasure = rate("l1d_mpki", "L1D misses", |p| {
    per_kilo(p, p.counters.l1d_misses)
});

/// Misses of the L2 that were waited for.
pub(in crate::studies) const L2: MappingMeasure = rate("l2_mpki", "L2 misses", |p| {
    per_kilo(p, p.counters.llc_misses)
});

/// Lines that prefetchers brought.
pub(in crate::studies) const PREFETCHED: MappingMeasure =
    rate("prefetched", "Prefetched lines", |p| {
        per_kilo(p, p.counters.memory.prefetches)
    });

/// Lines that were asked for and waited for.
pub(in crate::studies) const READS: MappingMeasure = rate("reads", "Demand reads", |p| {
    per_kilo(p, p.counters.memory.reads)
});

/// Lines of code.
pub(in crate::studies) const FETCHES: MappingMeasure =
    rate("fetches", "Instruction fetches", |p| {
        per_kilo(p, p.counters.memory.fetches)
    });

/// Lines written back.
pub(in crate::studies) const WRITEBACKS: MappingMeasure = rate("writebacks", "Write-backs", |p| {
    per_kilo(p, p.counters.memory.writebacks)
});

/// All memory transactions.
pub(in crate::studies) const TRANSACTIONS: MappingMeasure =
    rate("transactions", "Memory transactions", |p| {
        per_kilo(p, p.counters.memory.total())
    });

/// Mean time of a line of data.
pub(in crate::studies) const LATENCY: MappingMeasure = MappingMeasure {
    key: "latency_cycles",
    title: "Memory latency",
    unit: Some("cycles"),
    value: |p| p.counters.memory_latency_cycles().unwrap_or(f64::NAN),
};

/// Mispredicted branches.
pub(in crate::studies) const BRANCHES: MappingMeasure = rate("branch_mpki", "Branch misses", |p| {
    per_kilo(p, p.counters.branch_misses)
});

/// Cost of mispredicted branches.
pub(in crate::studies) const BRANCH_CYCLES: MappingMeasure = MappingMeasure {
    key: "branch_percent",
    title: "Cycles for branch misses",
    unit: Some("% of cycles"),
    value: |p| 100.0 * p.counters.branch_miss_cycles / p.counters.cycles,
};

/// Share of the four cores that the program has.
pub(in crate::studies) const UTILISATION: MappingMeasure = MappingMeasure {
    key: "utilisation_percent",
    title: "Utilisation of the cores",
    unit: Some("%"),
    value: |p| 100.0 * p.counters.time.on_pu_s / (CORES * p.span_s),
};

/// Cores of the machine.
const CORES: f64 = 4.0;

/// Division of the threads' time by cause; together all of it.
pub(in crate::studies) const TIMES: [MappingMeasure; 6] = [
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
pub(in crate::studies) const KINDS: [MappingMeasure; 4] = [READS, PREFETCHED, FETCHES, WRITEBACKS];

#[cfg(test)]
mod tests {
    use super::*;
    use consort_experiment::ProgramCounters;

    #[test]
    fn shares_of_the_time_are_all_of_it_and_rates_are_per_instruction() {
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
