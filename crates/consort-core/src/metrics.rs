//! Metrics of runs: throughput, turnaround, fairness, energy.
//!
//! Each metric has one definition here, which simulator, studies and command line share. Make
//! [`Slowdowns`] from the times of a run to get STP, ANTT, harmonic speedup and unfairness; the
//! other metrics are plain functions of two or three quantities. Averages of ratios over several
//! runs are geometric; see [`crate::stats`].
//!
//! The metrics of multiprogram throughput follow S. Eyerman and L. Eeckhout, "System-Level
//! Performance Metrics for Multiprogram Workloads", IEEE Micro 28(3), 2008.

use thiserror::Error;

/// Quotient; `None` if it is not a finite number.
fn quotient(dividend: f64, divisor: f64) -> Option<f64> {
    let value = dividend / divisor;
    (divisor > 0.0 && value.is_finite()).then_some(value)
}

/// The slowdown of each program of one run: time together over time alone, for the same
/// instructions. There is at least one program, and each slowdown is positive and finite.
///
/// ```
/// use consort_core::metrics::Slowdowns;
/// let run = Slowdowns::from_times(&[120.0, 120.0], &[150.0, 240.0])?;
/// assert_eq!(run.stp(), 1.3);
/// assert_eq!(run.unfairness(), 1.6);
/// # Ok::<(), consort_core::metrics::SlowdownError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Slowdowns(Vec<f64>);

/// Reason why slowdowns are not defined.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SlowdownError {
    /// There is no program.
    #[error("a run without programs has no slowdowns")]
    Empty,
    /// The lists of times are not of one length.
    #[error("{alone} times alone and {together} times together; each program needs one of each")]
    Lengths {
        /// Number of times alone.
        alone: usize,
        /// Number of times together.
        together: usize,
    },
    /// A time or slowdown is not a positive finite number.
    #[error("program {program}: {value} is not a positive time or slowdown")]
    Value {
        /// Index of the program.
        program: usize,
        /// The value.
        value: f64,
    },
}

impl Slowdowns {
    /// Checks and wraps known slowdowns.
    ///
    /// # Errors
    /// If there is no slowdown, or one is not positive and finite.
    pub fn new(slowdowns: Vec<f64>) -> Result<Self, SlowdownError> {
        if slowdowns.is_empty() {
            return Err(SlowdownError::Empty);
        }
        check_positive(&slowdowns)?;
        Ok(Self(slowdowns))
    }

    /// Computes slowdowns from the time of each program alone and together, in seconds.
    ///
    /// # Errors
    /// If there is no program, the lengths differ, or a time or a quotient of times is not positive
    /// and finite.
    pub fn from_times(alone_s: &[f64], together_s: &[f64]) -> Result<Self, SlowdownError> {
        if alone_s.len() != together_s.len() {
            return Err(SlowdownError::Lengths {
                alone: alone_s.len(),
                together: together_s.len(),
            });
        }
        check_positive(alone_s)?;
        check_positive(together_s)?;
        let pairs = together_s.iter().zip(alone_s);
        Self::new(pairs.map(|(together, alone)| together / alone).collect())
    }

    /// The slowdowns, in the order of the programs.
    pub fn values(&self) -> &[f64] {
        &self.0
    }

    /// System throughput, the sum of 1/S: the work of how many undisturbed programs the machine
    /// does at once (weighted speedup). Higher is better; n programs that do not disturb each other
    /// reach n. Eyerman and Eeckhout 2008.
    #[doc(alias = "weighted speedup")]
    pub fn stp(&self) -> f64 {
        self.0.iter().map(|slowdown| 1.0 / slowdown).sum()
    }

    /// Average normalised turnaround time, the mean of S. Lower is better; 1 is
    /// undisturbed. Eyerman and Eeckhout 2008.
    #[doc(alias = "average normalised turnaround time")]
    pub fn antt(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.len()
    }

    /// Harmonic mean of the programs' speedups, n over the sum of S. Higher is
    /// better; 1 is undisturbed. Luo, Gummaraju and Franklin, "Balancing
    /// throughput and fairness in SMT processors", ISPASS 2001.
    pub fn harmonic_speedup(&self) -> f64 {
        self.len() / self.0.iter().sum::<f64>()
    }

    /// The largest slowdown over the smallest. Lower is better; 1 is fair.
    pub fn unfairness(&self) -> f64 {
        let (least, most) = self
            .0
            .iter()
            .fold((f64::INFINITY, 0.0f64), |(low, high), s| {
                (low.min(*s), high.max(*s))
            });
        most / least
    }

    fn len(&self) -> f64 {
        self.0.len() as f64
    }
}

fn check_positive(values: &[f64]) -> Result<(), SlowdownError> {
    let bad = |(_, value): &(usize, &f64)| !(value.is_finite() && **value > 0.0);
    match values.iter().enumerate().find(bad) {
        None => Ok(()),
        Some((program, &value)) => Err(SlowdownError::Value { program, value }),
    }
}

/// Speedup of policy A over B for a workload of several programs: the quotient of their system
/// throughputs. Higher is better; `None` if STP of B is not positive or the quotient is not finite.
pub fn workload_speedup(stp_a: f64, stp_b: f64) -> Option<f64> {
    quotient(stp_a, stp_b)
}

/// Speedup of policy A over B for one program: B's time over A's time. Higher is better; `None` if
/// A's time is not positive or the quotient is not finite.
pub fn program_speedup(time_a_s: f64, time_b_s: f64) -> Option<f64> {
    quotient(time_b_s, time_a_s)
}

/// Time from the start to the last completion, in seconds. Lower is better;
/// `None` without programs or with a time that is not finite.
pub fn makespan_s(completions_s: &[f64]) -> Option<f64> {
    let all_known = completions_s.iter().all(|time| time.is_finite());
    let last = completions_s.iter().copied().reduce(f64::max);
    last.filter(|_| all_known)
}

/// Energy-delay product E·T, in joule-seconds. Lower is better. Gonzalez and Horowitz, "Energy
/// dissipation in general purpose microprocessors", IEEE Journal of Solid-State Circuits 31(9),
/// 1996.
#[doc(alias = "ED")]
pub fn energy_delay_js(energy_j: f64, time_s: f64) -> f64 {
    energy_j * time_s
}

/// Energy-delay-squared product E·T², in joule-seconds squared. Lower is better; it does not change
/// with voltage to the first order. Martin, "Towards an energy complexity of computation",
/// Information Processing Letters 77, 2001.
#[doc(alias = "ED squared")]
pub fn energy_delay_squared_js2(energy_j: f64, time_s: f64) -> f64 {
    energy_j * time_s * time_s
}

/// Power-delay product: mean power times time, in joules. Lower is better.
#[doc(alias = "PDP")]
pub fn power_delay_j(mean_power_w: f64, time_s: f64) -> f64 {
    mean_power_w * time_s
}

/// Throughput per watt: instructions per second and watt of mean power, which is instructions per
/// joule. Higher is better; `None` if time or power is not positive or the quotient is not finite.
pub fn throughput_per_watt(instructions: f64, time_s: f64, mean_power_w: f64) -> Option<f64> {
    quotient(quotient(instructions, time_s)?, mean_power_w)
}

/// Processor utilisation: time that CPUs were busy over time that there were
/// CPUs, 0 to 1. `busy_pu_s` is summed over CPUs; `None` without CPUs or time.
#[doc(alias = "processor utilisation")]
pub fn utilisation(busy_pu_s: f64, pus: usize, elapsed_s: f64) -> Option<f64> {
    quotient(busy_pu_s, pus as f64 * elapsed_s)
}

/// L2 miss penalty: L2 misses times memory latency, in nanoseconds. Lower is better. It ignores
/// that misses overlap, so it ranks threads by demand but does not predict time.
#[doc(alias = "L2MP")]
pub fn l2mp_ns(l2_misses: f64, memory_latency_ns: f64) -> f64 {
    l2_misses * memory_latency_ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(slowdowns: &[f64]) -> Slowdowns {
        Slowdowns::new(slowdowns.to_vec()).unwrap()
    }

    #[test]
    fn a_run_worked_by_hand() {
        // 120 s alone; 150, 180 and 240 s together: S = 1.25, 1.5, 2.
        let run = Slowdowns::from_times(&[120.0; 3], &[150.0, 180.0, 240.0]).unwrap();
        assert_eq!(run.values(), [1.25, 1.5, 2.0]);
        assert!((run.stp() - (0.8 + 2.0 / 3.0 + 0.5)).abs() < 1e-15);
        assert!((run.antt() - 4.75 / 3.0).abs() < 1e-15);
        assert!((run.harmonic_speedup() - 3.0 / 4.75).abs() < 1e-15);
        assert_eq!(run.unfairness(), 1.6);
    }

    #[test]
    fn invalid_runs_are_refused() {
        assert_eq!(Slowdowns::new(vec![]), Err(SlowdownError::Empty));
        let lengths = Slowdowns::from_times(&[1.0], &[]).unwrap_err();
        assert!(lengths.to_string().contains("1 times alone and 0"));
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Slowdowns::from_times(&[1.0, bad], &[1.0, 1.0]).is_err());
            assert!(Slowdowns::from_times(&[1.0, 1.0], &[1.0, bad]).is_err());
        }
        assert!(Slowdowns::from_times(&[1e-300], &[1e300]).is_err());
    }

    fn many(low: f64) -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(low..1e3, 1..40)
    }

    proptest! {
        #[test]
        fn undisturbed_programs_have_ideal_metrics(n in 1usize..200) {
            let run = run(&vec![1.0; n]);
            prop_assert_eq!(run.stp(), n as f64);
            prop_assert_eq!(run.antt(), 1.0);
            prop_assert_eq!(run.harmonic_speedup(), 1.0);
            prop_assert_eq!(run.unfairness(), 1.0);
        }

        #[test]
        fn disturbance_costs_throughput_and_turnaround(slowdowns in many(1.0)) {
            let n = slowdowns.len() as f64;
            let run = run(&slowdowns);
            prop_assert!(run.antt() >= 1.0 - 1e-12);
            prop_assert!(run.stp() <= n * (1.0 + 1e-12));
            prop_assert!(run.unfairness() >= 1.0);
        }

        #[test]
        fn harmonic_speedup_is_at_most_the_arithmetic_one(slowdowns in many(1e-3)) {
            let n = slowdowns.len() as f64;
            let run = run(&slowdowns);
            prop_assert!(run.harmonic_speedup() <= run.stp() / n * (1.0 + 1e-12));
            prop_assert!((run.harmonic_speedup() * run.antt() - 1.0).abs() < 1e-12);
        }

        #[test]
        fn a_slower_machine_is_as_fair(slowdowns in many(1.0), factor in 0.1f64..10.0) {
            let slower: Vec<f64> = slowdowns.iter().map(|s| s * factor).collect();
            let (one, two) = (run(&slowdowns), run(&slower));
            prop_assert!((one.unfairness() / two.unfairness() - 1.0).abs() < 1e-12);
            prop_assert!((one.stp() / two.stp() / factor - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn the_better_policy_has_a_speedup_above_one() {
        assert_eq!(workload_speedup(6.0, 4.0), Some(1.5));
        assert_eq!(program_speedup(80.0, 100.0), Some(1.25));
    }

    #[test]
    fn comparisons_with_nothing_are_undefined() {
        assert_eq!(workload_speedup(6.0, 0.0), None);
        assert_eq!(program_speedup(f64::NAN, 1.0), None);
        assert_eq!(makespan_s(&[]), None);
        assert_eq!(makespan_s(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn the_last_completion_counts() {
        assert_eq!(makespan_s(&[3.0, 9.5, 4.0]), Some(9.5));
    }

    #[test]
    fn energy_of_a_run_worked_by_hand() {
        // 50 W for 4 s: 200 J.
        let energy_j = power_delay_j(50.0, 4.0);
        assert_eq!(energy_j, 200.0);
        assert_eq!(energy_delay_js(energy_j, 4.0), 800.0);
        assert_eq!(energy_delay_squared_js2(energy_j, 4.0), 3200.0);
        assert_eq!(throughput_per_watt(8e9, 4.0, 50.0), Some(4e7));
    }

    #[test]
    fn throughput_needs_time_and_power() {
        assert_eq!(throughput_per_watt(1.0, 0.0, 1.0), None);
        assert_eq!(throughput_per_watt(1.0, 1.0, 0.0), None);
    }

    #[test]
    fn utilisation_is_a_share_of_pu_time() {
        assert_eq!(utilisation(2.0 * 5.0, 4, 10.0), Some(0.25));
        assert_eq!(utilisation(0.0, 0, 10.0), None);
        assert_eq!(utilisation(0.0, 4, 0.0), None);
    }

    #[test]
    fn each_miss_costs_one_latency() {
        assert_eq!(l2mp_ns(1e6, 80.0), 8e7);
    }
}
