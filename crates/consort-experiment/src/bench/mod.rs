//! Benches of Consort itself: the speed of the simulator, its solver, the policies.
//!
//! Usage: take [`all_benches`] benches or [`select`] some by name, and [`run()`] them; each
//! gives [`BenchRow`]s, which [`bench_table`] makes a table of. To add a bench: a file here that implements [`Bench`], and a
//! line in [`all_benches`].
//!
//! Method: everything is warmed up once; then each round measures every case
//! once, for some tens of milliseconds, so that a host that grows slow for a
//! while slows all cases alike. A row is the median of the rounds, with its
//! quartiles. Times are processor time of the one thread that measures.
//!
//! Pitfall: times are of the host at the moment; only ratios of rows from one
//! run can be compared with ratios from another host.

mod case;
mod decide;
mod error;
mod row;
mod run;
mod simulate;
mod simulation_setup;
mod solve;

pub use case::{BenchCase, BenchDerivation, BenchMeasure, Effort};
pub use error::BenchError;
pub use row::{BenchRow, bench_table};
pub use run::{run, run_rounds};
pub use simulate::{ACMP, POWER8, SimulationBench, SimulationRun};

use consort_core::{hint, policies};

/// Something whose speed is measured.
pub trait Bench {
    /// Its name; those of its rows begin with it.
    fn name(&self) -> String;

    /// Summary of what it measures, in a line.
    fn summary(&self) -> String;

    /// Cases that it measures, ready to be repeated.
    ///
    /// # Errors
    /// Machines, programs or policies that cannot be had.
    fn cases(&self, effort: Effort) -> Result<Vec<BenchCase>, BenchError>;
}

/// Every bench, in the order in which they are listed; every policy has one.
pub fn all_benches() -> Vec<Box<dyn Bench>> {
    let mut benches: Vec<Box<dyn Bench>> = vec![
        Box::new(POWER8),
        Box::new(ACMP),
        Box::new(simulate::ReuseBench),
        Box::new(solve::SolverBench),
        Box::new(solve::QuantumBench),
    ];
    for info in policies::REGISTRY {
        for bench in decide::policy_benches(info) {
            benches.push(Box::new(bench));
        }
    }
    benches
}

/// Returns the benches of these names, in the order of `benches`; all if there is no name.
///
/// # Errors
/// [`BenchError::Unknown`] with the nearest name; nothing is chosen then.
pub fn select<S: AsRef<str>>(
    mut benches: Vec<Box<dyn Bench>>,
    names: &[S],
) -> Result<Vec<Box<dyn Bench>>, BenchError> {
    let known: Vec<String> = benches.iter().map(|bench| bench.name()).collect();
    for name in names.iter().map(AsRef::as_ref) {
        if !known.iter().any(|k| k == name) {
            return Err(BenchError::Unknown {
                name: name.to_owned(),
                hint: hint(name, known.iter().map(String::as_str)),
            });
        }
    }
    benches.retain(|bench| names.is_empty() || names.iter().any(|n| n.as_ref() == bench.name()));
    Ok(benches)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_every_policy_has_one() {
        let names: Vec<String> = all_benches().iter().map(|bench| bench.name()).collect();
        let unique: BTreeSet<&String> = names.iter().collect();
        assert_eq!(unique.len(), names.len());
        for info in policies::REGISTRY {
            assert!(names.contains(&format!("decide-{}", info.name)));
        }
    }

    #[test]
    fn benches_are_chosen_by_name() {
        let chosen = select(all_benches(), &["solve", "decide-random", "solve"]).unwrap();
        let names: Vec<String> = chosen.iter().map(|bench| bench.name()).collect();
        assert_eq!(names, ["solve", "decide-random"]);
        assert_eq!(
            select::<&str>(all_benches(), &[]).unwrap().len(),
            all_benches().len()
        );
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        let error = select(all_benches(), &["solv"]).err().unwrap().to_string();
        assert_eq!(error, "unknown bench 'solv'; did you mean 'solve'?");
    }
}
