//! The units of a sweep: runs, or studies, in a fixed order.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;

use crate::runner::StudySettings;
use crate::{Study, VERSION, runner, study_to_long_table};
use consort_core::policy::PolicySpec;
use consort_data::Table;
use consort_experiment::{
    Contender, Experiment, ExperimentContext, ExperimentError, RunResult, Scale, SharedResults,
    StageProgress,
};
use sha2::{Digest, Sha256};

use super::SweepError;
use super::cases::{SweepCase, SweepCases};
use super::spec::SweepSpec;

/// A description with everything that it names.
pub struct Sweep {
    pub(super) spec: SweepSpec,
    pub(super) cases: SweepCases,
    pub(super) contenders: Vec<Contender>,
    pub(super) studies: Vec<Arc<dyn Study>>,
}

impl Sweep {
    /// Reads a description and resolves what it names, except the machines, which are read when
    /// needed.
    ///
    /// # Errors
    /// An error in the description, or in what it names.
    pub fn parse(file: &str, text: &str) -> Result<Self, SweepError> {
        let spec = SweepSpec::parse(file, text)?;
        let contenders = spec
            .policies
            .iter()
            .map(|name| Contender::new(name, &spec.os));
        let contenders = contenders.collect::<Result<_, _>>()?;
        let studies = match spec.studies.as_slice() {
            [] => Vec::new(),
            ids => {
                let known = crate::registry();
                known
                    .map_err(|error| SweepError::Studies(error.to_string()))?
                    .select(ids)?
            }
        };
        Ok(Self {
            cases: SweepCases::new(&spec)?,
            contenders,
            studies,
            spec,
        })
    }

    pub(super) fn len(&self) -> usize {
        match self.studies.len() {
            0 => self.cases.len() * self.runs_per_case(),
            studies => studies,
        }
    }

    /// Runs of each case.
    pub(super) fn runs_per_case(&self) -> usize {
        self.contenders.len() * self.spec.runs as usize
    }

    /// Policy and seed of a unit within its case, in the order of `consort compare --out`.
    pub(super) fn locate_unit(&self, unit: usize) -> (usize, u64) {
        let runs = self.spec.runs as usize;
        let within = unit % self.runs_per_case();
        (
            within / runs,
            self.spec.first_seed() + (within % runs) as u64,
        )
    }

    /// The cases that have units in a range, each with its own part of the range.
    pub(super) fn cases_in(&self, units: Range<usize>) -> Vec<(usize, Range<usize>)> {
        let each = self.runs_per_case();
        let cases = units.start / each..units.end.div_ceil(each);
        let part = |case: usize| units.start.max(case * each)..units.end.min((case + 1) * each);
        cases.map(|case| (case, part(case))).collect()
    }

    /// Estimated host time of every unit, s. Reads every machine, so that an error in any of them
    /// is found before anything runs.
    pub(super) fn costs(&self) -> Result<Vec<f64>, SweepError> {
        let quick = self.spec.quick;
        let of_study = |study: &Arc<dyn Study>| match quick {
            true => QUICK_STUDY_S,
            false => f64::from(study.info().full_seconds_hint),
        };
        let mut costs: Vec<f64> = self.studies.iter().map(of_study).collect();
        for case in 0..self.cases.len() {
            let case = self.cases.get(case)?;
            for contender in &self.contenders {
                let cost = run_s(&self.spec, &case.experiment, contender)?;
                costs.extend((0..self.spec.runs).map(|_| cost));
            }
        }
        Ok(costs)
    }

    pub(super) fn settings(&self, workers: NonZeroUsize) -> StudySettings {
        StudySettings {
            seed: self.spec.seed,
            scale: match self.spec.quick {
                true => Scale::Quick,
                false => Scale::Full,
            },
            workers,
            version: VERSION.to_owned(),
            made: SharedResults::default(),
        }
    }

    /// Fingerprint of everything that determines the results of a range of units.
    pub(super) fn fingerprint(&self, units: Range<usize>) -> Result<String, SweepError> {
        let mut hash = Fingerprint::default();
        hash.add(VERSION.as_bytes());
        if !self.studies.is_empty() {
            for study in &self.studies[units] {
                let (info, seed) = (study.info(), self.spec.seed);
                hash.add(
                    format!(
                        "{} {} {seed:?} {}",
                        info.id,
                        study.version(),
                        self.spec.quick
                    )
                    .as_bytes(),
                );
            }
            return Ok(hash.text());
        }
        let spec = &self.spec;
        hash.add(
            format!(
                "{} {:?} {} {}",
                spec.alone_s,
                spec.quantum_ms,
                spec.os,
                spec.first_seed()
            )
            .as_bytes(),
        );
        for (case, part) in self.cases_in(units) {
            hash.add_case(&self.cases.get(case)?);
            for unit in part {
                let (policy, seed) = self.locate_unit(unit);
                hash.add(format!("{} {seed}", self.contenders[policy].name()).as_bytes());
            }
        }
        hash.add_files(&self.spec.policies)?;
        Ok(hash.text())
    }
}

#[derive(Default)]
struct Fingerprint(Sha256);

impl Fingerprint {
    /// Adds bytes and their number, so that neighbours cannot run into each other.
    fn add(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn add_case(&mut self, case: &SweepCase) {
        let SweepCase {
            key, experiment, ..
        } = case;
        self.add(key.as_bytes());
        // The topology contains the machine's options, the description all the rest. Both write
        // different numbers differently.
        self.add(format!("{:?}", experiment.chip.spec()).as_bytes());
        self.add(format!("{:?}", experiment.chip.topology()).as_bytes());
        for entry in &experiment.workload.entries {
            self.add(format!("{} {} {}", entry.name, entry.threads, entry.start_ms).as_bytes());
            self.add(format!("{:?}", entry.program).as_bytes());
        }
    }

    /// Adds the files that policies' options name.
    fn add_files(&mut self, policies: &[String]) -> Result<(), SweepError> {
        for text in policies {
            let mut spec: PolicySpec = text.parse().map_err(ExperimentError::from)?;
            let read = spec.attach(consort_describe::input::read_if_file);
            read.map_err(ExperimentError::from)?;
            for content in spec.files.values() {
                self.add(content.as_bytes());
            }
        }
        Ok(())
    }

    /// Sixteen hexadecimal digits of the hash.
    fn text(self) -> String {
        let digest = self.0.finalize();
        digest
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

/// Host time per thread and quantum, s (docs/measurements/speed.md: 13 to 27 µs with 16 to 128
/// threads whose placement changes every quantum).
const PER_THREAD_AND_QUANTUM_S: f64 = 20e-6;
/// Time after which a thread has changed its rate even if no policy moves it, s.
const LONGEST_QUANTUM_S: f64 = 0.1;
/// Time of programs together over their time alone, each with a PU: about the middle of the
/// slowdowns of pairs on SMT cores.
const STRETCH: f64 = 1.5;
/// Duration of a study at the quick scale, s.
const QUICK_STUDY_S: f64 = 3.0;

/// Estimated host time of one run on one worker, s.
fn run_s(
    spec: &SweepSpec,
    experiment: &Experiment,
    contender: &Contender,
) -> Result<f64, SweepError> {
    let quantum_s = experiment
        .quantum_under(contender)?
        .as_secs_f64()
        .min(LONGEST_QUANTUM_S);
    let rate = spec
        .host_s_per_thread_s
        .unwrap_or(PER_THREAD_AND_QUANTUM_S / quantum_s);
    let threads: u32 = experiment.workload.entries.iter().map(|e| e.threads).sum();
    let threads = f64::from(threads);
    let pus = experiment.chip.topology().pus().len() as f64;
    let together_s = spec.alone_s * STRETCH * (threads / pus).max(1.0);
    Ok(rate * threads * together_s)
}

/// Runs units. Returns their tables in order.
pub(super) fn run_units(
    sweep: &Sweep,
    units: Range<usize>,
    workers: NonZeroUsize,
    progress: &(dyn Fn(StageProgress) + Sync),
) -> Result<Vec<Table>, SweepError> {
    if !sweep.studies.is_empty() {
        let settings = sweep.settings(workers);
        let tables = sweep.studies[units].iter().map(|study| {
            let outcome = runner::run(&**study, &settings, None, progress)?;
            Ok(study_to_long_table(&outcome.into_report()))
        });
        return tables.collect();
    }
    let context = ExperimentContext::new(sweep.spec.first_seed(), Scale::Full, workers, progress);
    let cases = sweep.cases_in(units).into_iter();
    let tables = cases.map(|(case, part)| {
        let case = sweep.cases.get(case)?;
        let runs = run_case(sweep, &case, part, &context)?;
        Ok(consort_experiment::long::long_table(&case.key, &runs))
    });
    tables.collect()
}

/// The runs of one case, as `consort compare` makes them: the work of a program is what it does
/// alone under the first seed.
fn run_case(
    sweep: &Sweep,
    case: &SweepCase,
    units: Range<usize>,
    context: &ExperimentContext<'_>,
) -> Result<Vec<RunResult>, ExperimentError> {
    let experiment = &case.experiment;
    let wanted: Vec<(usize, u64)> = units.map(|unit| sweep.locate_unit(unit)).collect();
    let ready = |(n, contender): (usize, &Contender)| match wanted.iter().any(|(p, _)| *p == n) {
        true => contender.prepare(&experiment.chip, &experiment.workload, context),
        false => Ok(contender.clone()),
    };
    let contenders = sweep.contenders.iter().enumerate().map(ready);
    let contenders: Vec<Contender> = contenders.collect::<Result<_, _>>()?;
    let work = experiment.measure_work(context.seed())?;
    let run =
        |&(policy, seed): &(usize, u64)| experiment.run(&contenders[policy], &work, seed, None);
    context.map(&wanted, run)?.into_iter().collect()
}
