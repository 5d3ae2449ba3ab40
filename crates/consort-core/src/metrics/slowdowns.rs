//! Slowdowns of the programs of one run, and the metrics that follow from them.

use thiserror::Error;

/// The slowdown of each program of one run: time together over time alone, for
/// the same instructions. There is at least one, and each is positive and finite.
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
    /// Takes slowdowns that are known.
    ///
    /// # Errors
    /// When there is none, or one is not positive and finite.
    pub fn new(slowdowns: Vec<f64>) -> Result<Self, SlowdownError> {
        if slowdowns.is_empty() {
            return Err(SlowdownError::Empty);
        }
        check_positive(&slowdowns)?;
        Ok(Self(slowdowns))
    }

    /// Takes the time of each program alone and together, in seconds.
    ///
    /// # Errors
    /// When there is no program, the lengths differ, or a time or a quotient of
    /// times is not positive and finite.
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

    /// System throughput, the sum of 1/S: the number of programs' worth of work that the machine
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
    fn what_is_not_a_run_is_refused() {
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
        fn undisturbed_programs_are_worth_their_number(n in 1usize..200) {
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
}
