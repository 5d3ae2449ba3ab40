//! Measures of a program over an interval, and quantities derived from them.

const NS_PER_S: f64 = 1e9;

/// Sums over all threads of a program in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProgramMeasure {
    /// Instructions.
    pub instructions: f64,
    /// Core cycles.
    pub cycles: f64,
    /// Accesses to the last-level cache.
    pub llc_accesses: f64,
    /// Accesses that missed.
    pub llc_misses: f64,
    /// Core cycles in which its data moved over the bus.
    pub bus_busy_cycles: f64,
    /// Core cycles in which its requests were queued for the bus.
    pub bus_queue_cycles: f64,
    /// Time of its threads on CPUs, summed over them, ns.
    pub on_pu_ns: f64,
    /// Cores of the program.
    pub cores: u32,
    /// Length of the interval, ns.
    pub time_ns: f64,
    /// Its share of the machine's energy, J.
    pub energy_j: f64,
}

impl ProgramMeasure {
    /// Misses of the last-level cache per access, 0 to 1; 0 without accesses.
    pub fn llc_miss_rate(&self) -> f64 {
        share(self.llc_misses, self.llc_accesses)
    }

    /// Share of its cycles in which its data moved over the bus.
    pub fn bus_occupancy(&self) -> f64 {
        share(self.bus_busy_cycles, self.cycles)
    }

    /// Share of its cycles in which its requests were queued.
    pub fn bus_queue_time(&self) -> f64 {
        share(self.bus_queue_cycles, self.cycles)
    }

    /// Length of the vector of bus occupancy and bus queue time. The source orders programs by the
    /// vector without a rule for that; both are shares of the same cycles, so the length is an
    /// order that uses both.
    pub fn bus_contention(&self) -> f64 {
        libm::hypot(self.bus_occupancy(), self.bus_queue_time())
    }

    /// Instructions per s.
    pub fn throughput(&self) -> f64 {
        share(self.instructions * NS_PER_S, self.time_ns)
    }

    /// Mean number of cores that its threads kept busy.
    pub fn busy_cores(&self) -> f64 {
        share(self.on_pu_ns, self.time_ns)
    }

    /// Normalised thread throughput, NTT: instructions per core and s.
    #[doc(alias = "NTT")]
    #[doc(alias = "normalised thread throughput")]
    pub fn thread_throughput(&self) -> f64 {
        share(self.throughput(), f64::from(self.cores))
    }

    /// Power, W.
    pub fn power_w(&self) -> f64 {
        share(self.energy_j * NS_PER_S, self.time_ns)
    }

    /// Energy times delay per unit of work, J·s per squared instruction, for a program that runs
    /// `quanta` quanta of a round: energy per instruction times time per instruction, which more
    /// quanta shorten. Infinite for a program that did nothing.
    #[doc(alias = "ED")]
    pub fn energy_delay(&self, quanta: u32) -> f64 {
        if self.instructions <= 0.0 {
            return f64::INFINITY;
        }
        let energy = self.energy_j / self.instructions;
        let delay = self.time_ns / NS_PER_S / self.instructions / f64::from(quanta.max(1));
        energy * delay
    }
}

/// Thread throughput gain, TTG: NTT with fewer cores while co-scheduled over NTT with all.
#[doc(alias = "TTG")]
pub fn thread_throughput_gain(fewer: &ProgramMeasure, all: &ProgramMeasure) -> f64 {
    share(fewer.thread_throughput(), all.thread_throughput())
}

/// Share of a program over its earlier share: (new cores / old cores) · (new quanta / old quanta);
/// 1 is fair.
pub fn fairness(new: (u32, u32), old: (u32, u32)) -> f64 {
    let product = |(cores, quanta): (u32, u32)| f64::from(cores) * f64::from(quanta);
    share(product(new), product(old))
}

/// Local speedup: fairness · TTG.
pub fn speedup(fairness: f64, thread_throughput_gain: f64) -> f64 {
    fairness * thread_throughput_gain
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A quantum of 2 s on eight cores.
    fn all() -> ProgramMeasure {
        ProgramMeasure {
            instructions: 32e9,
            cycles: 40e9,
            llc_accesses: 4e8,
            llc_misses: 1e8,
            bus_busy_cycles: 6e9,
            bus_queue_cycles: 8e9,
            on_pu_ns: 12e9,
            cores: 8,
            time_ns: 2e9,
            energy_j: 160.0,
        }
    }

    #[test]
    fn shares_are_those_of_the_definitions() {
        let m = all();
        assert_eq!(m.llc_miss_rate(), 0.25);
        assert_eq!(m.bus_occupancy(), 0.15);
        assert_eq!(m.bus_queue_time(), 0.2);
        assert_eq!(m.bus_contention(), 0.25);
        assert_eq!(m.busy_cores(), 6.0);
    }

    #[test]
    fn thread_throughput_is_per_thread_and_time() {
        // 32e9 instructions by 8 threads in 2 s.
        assert_eq!(all().thread_throughput(), 2e9);
        assert_eq!(all().power_w(), 80.0);
    }

    #[test]
    fn pair_with_both_quanta_is_fair() {
        // Half of the cores for twice the time.
        assert_eq!(fairness((4, 2), (8, 1)), 1.0);
        assert_eq!(fairness((3, 2), (8, 1)), 0.75);
    }

    #[test]
    fn speedup_is_fairness_times_thread_throughput_gain() {
        // On four cores 20e9 instructions in 2 s: 2.5e9 per thread and s instead of 2e9.
        let four = ProgramMeasure {
            instructions: 20e9,
            cores: 4,
            ..all()
        };
        let gain = thread_throughput_gain(&four, &all());
        assert_eq!(gain, 1.25);
        assert_eq!(speedup(fairness((4, 2), (8, 1)), gain), 1.25);
    }

    #[test]
    fn energy_delay_is_per_work_and_quanta() {
        // 160 J / 32e9 · 2 s / 32e9.
        let once = all().energy_delay(1);
        assert!((once / 3.125e-19 - 1.0).abs() < 1e-12, "{once:e}");
        assert_eq!(all().energy_delay(2), once / 2.0);
        assert_eq!(ProgramMeasure::default().energy_delay(1), f64::INFINITY);
    }
}
