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

use crate::ExperimentError;
use consort_core::stats::quantile;
use consort_core::topology::TopologyError;
use consort_core::{hint, policies};
use consort_data::Table;
use consort_data::long::{LongRows, RowOwner};
use consort_sim::{machine, program};
use serde::Serialize;
use thiserror::Error;

mod case;
mod decide;
mod simulate;
mod solve;

use case::FigureSource;
pub use case::{BenchCase, BenchDerivation, BenchMeasure, Effort};
pub use simulate::{ACMP, POWER8, SimulationBench, SimulationRun};

/// Something whose speed is measured.
pub trait Bench {
    /// Its name; those of its rows begin with it.
    fn name(&self) -> String;

    /// Summary of what it measures, in a line.
    fn summary(&self) -> String;

    /// Cases that it measures, ready to be repeated.
    ///
    /// # Errors
    /// Machines, programs or policies that cannot be loaded.
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

/// Reason why a bench cannot be run.
#[derive(Debug, Error)]
pub enum BenchError {
    /// There is no bench of that name.
    #[error("unknown bench '{name}'; {hint}")]
    Unknown {
        /// The requested name.
        name: String,
        /// The nearest name, or all of them.
        hint: String,
    },
    /// The machine that it runs on.
    #[error(transparent)]
    Machine(#[from] machine::presets::MachinePresetError),
    /// A program that it runs.
    #[error(transparent)]
    Program(#[from] program::presets::ProgramPresetError),
    /// The machine's layout.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// Failure of a program that a bench starts on the live machine.
    #[error("{0}")]
    Live(String),
    /// The run or the policy.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
}

/// A bench's cases with what they have given so far.
struct BenchSeries {
    cases: Vec<BenchCase>,
    /// By case, then by round.
    values: Vec<Vec<f64>>,
}

/// Runs benches and sums each case up; `progress` receives the rounds done and their total.
///
/// # Errors
/// Machines, programs or policies that cannot be loaded; runs that fail.
pub fn run(
    benches: &[Box<dyn Bench>],
    effort: Effort,
    progress: &dyn Fn(usize, usize),
) -> Result<Vec<BenchRow>, BenchError> {
    run_rounds(benches, effort, effort.rounds(), progress)
}

/// The same with this number of rounds.
///
/// # Errors
/// As for [`run`].
pub fn run_rounds(
    benches: &[Box<dyn Bench>],
    effort: Effort,
    rounds: usize,
    progress: &dyn Fn(usize, usize),
) -> Result<Vec<BenchRow>, BenchError> {
    let series = benches
        .iter()
        .map(|bench| BenchSeries::new(bench.as_ref(), effort));
    let mut series = series.collect::<Result<Vec<_>, _>>()?;
    // The warm-up round pays for cold caches and does not count.
    for s in &mut series {
        s.run_round()?;
    }
    for s in &mut series {
        s.values.iter_mut().for_each(Vec::clear);
    }
    for round in 0..rounds {
        progress(round, rounds);
        for s in &mut series {
            s.run_round()?;
        }
    }
    progress(rounds, rounds);
    let mut rows = Vec::new();
    for BenchSeries { cases, values } in series {
        for (case, values) in cases.into_iter().zip(values) {
            rows.push(BenchRow::new(case.name, case.unit, case.target, &values));
        }
    }
    Ok(rows)
}

impl BenchSeries {
    fn new(bench: &dyn Bench, effort: Effort) -> Result<Self, BenchError> {
        let cases = bench.cases(effort)?;
        Ok(Self {
            values: vec![Vec::new(); cases.len()],
            cases,
        })
    }

    fn run_round(&mut self) -> Result<(), BenchError> {
        let mut before = Vec::with_capacity(self.cases.len());
        for (case, values) in self.cases.iter_mut().zip(&mut self.values) {
            let value = match &mut case.figure {
                FigureSource::Measured(measure) => measure()?,
                FigureSource::Derived(derive) => derive(&before),
            };
            before.push(value);
            values.push(value);
        }
        Ok(())
    }
}

/// One measured or derived figure: the median of its repetitions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BenchRow {
    /// Name of the bench and the case.
    pub name: String,
    /// Median.
    pub value: f64,
    /// Unit of all values.
    pub unit: &'static str,
    /// Repetitions.
    pub n: usize,
    /// First quartile.
    pub low: f64,
    /// Third quartile.
    pub high: f64,
    /// Aim, if there is one; nothing fails if it is missed.
    pub target: Option<f64>,
}

impl BenchRow {
    /// Median and quartiles of repetitions; NaN if there are none.
    pub(crate) fn new(
        name: String,
        unit: &'static str,
        target: Option<f64>,
        values: &[f64],
    ) -> Self {
        let at = |q| quantile(values, q).unwrap_or(f64::NAN);
        Self {
            name,
            value: at(0.5),
            unit,
            n: values.len(),
            low: at(0.25),
            high: at(0.75),
            target,
        }
    }

    /// Half the distance between the quartiles, relative to the median.
    pub fn spread(&self) -> f64 {
        if self.high == self.low {
            return 0.0;
        }
        (self.high - self.low) / (2.0 * self.value.abs())
    }
}

/// Benches: the case is the bench's name; `low` and `high` are its quartiles.
pub fn bench_table(benches: &[BenchRow]) -> Table {
    let mut rows = LongRows::default();
    for bench in benches {
        let of = RowOwner {
            case: &bench.name,
            ..RowOwner::default()
        };
        let unit = Some(bench.unit).filter(|unit| !unit.is_empty());
        rows.push(of, "median", bench.value, unit);
        rows.push(of, "low", bench.low, unit);
        rows.push(of, "high", bench.high, unit);
        rows.push(of, "rounds", bench.n as f64, None);
        rows.push_if_some(of, "target", bench.target, unit);
    }
    rows.table()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::collections::BTreeSet;
    use std::rc::Rc;

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

    /// Two cases that note when they are measured, and their sum.
    struct Noted(char, Rc<RefCell<String>>);

    impl Bench for Noted {
        fn name(&self) -> String {
            self.0.to_string()
        }

        fn summary(&self) -> String {
            String::new()
        }

        fn cases(&self, _: Effort) -> Result<Vec<BenchCase>, BenchError> {
            let log = Rc::clone(&self.1);
            let (mut count, letter) = (0.0, self.0);
            let measure = move || {
                count += 1.0;
                log.borrow_mut().push(letter);
                Ok(count)
            };
            let twice = |before: &[f64]| 2.0 * before[0];
            Ok(vec![
                BenchCase::from_measure(self.name(), "1", Box::new(measure)).with_target(7.0),
                BenchCase::from_derivation(format!("{}-twice", self.0), "1", Box::new(twice)),
            ])
        }
    }

    #[test]
    fn cases_alternate_and_warm_up_is_dropped() {
        let log = Rc::default();
        let benches: Vec<Box<dyn Bench>> = vec![
            Box::new(Noted('a', Rc::clone(&log))),
            Box::new(Noted('b', Rc::clone(&log))),
        ];
        let rows = run(&benches, Effort::Quick, &|_, _| {}).unwrap();
        assert_eq!(log.borrow().as_str(), "abababab");
        let seen: Vec<(&str, f64, usize)> = rows
            .iter()
            .map(|r| (r.name.as_str(), r.value, r.n))
            .collect();
        // The warm-up gave 1; the rounds 2, 3, 4.
        let expected = [
            ("a", 3.0, 3),
            ("a-twice", 6.0, 3),
            ("b", 3.0, 3),
            ("b-twice", 6.0, 3),
        ];
        assert_eq!(seen, expected);
        assert_eq!((rows[0].target, rows[1].target), (Some(7.0), None));
    }

    #[test]
    fn a_row_is_the_median_with_its_quartiles() {
        let row = BenchRow::new("a".into(), "ns", None, &[5.0, 1.0, 3.0, 2.0, 4.0]);
        assert_eq!((row.value, row.low, row.high, row.n), (3.0, 2.0, 4.0, 5));
        assert!((row.spread() - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn constant_value_has_no_spread() {
        let row = BenchRow::new("a".into(), "share", None, &[0.0, 0.0]);
        assert_eq!((row.value, row.spread()), (0.0, 0.0));
    }

    #[test]
    fn benches_have_their_unit_and_no_seed() {
        let bench = BenchRow {
            name: "solve".to_owned(),
            value: 1.5,
            unit: "us",
            n: 3,
            low: 1.0,
            high: 2.0,
            target: None,
        };
        let csv = bench_table(&[bench]).to_csv();
        let lines: Vec<&str> = csv.lines().skip(1).collect();
        let expected = [
            "solve,,,,median,1.5,us",
            "solve,,,,low,1,us",
            "solve,,,,high,2,us",
            "solve,,,,rounds,3,",
        ];
        assert_eq!(lines, expected);
    }
}
