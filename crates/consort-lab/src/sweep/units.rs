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
        let policies = spec.policies.iter();
        let contenders = policies.map(|name| Contender::new(name, &spec.os));
        let contenders = contenders.collect::<Result<_, _>>()?;
        let mut studies = Vec::new();
        if !spec.studies.is_empty() {
            let known = crate::registry();
            let known = known.map_err(|error| SweepError::Studies(error.to_string()))?;
            studies = known.select(&spec.studies)?;
        }
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
        let studies = self.studies.iter().map(|study| match quick {
            true => QUICK_STUDY_S,
            false => f64::from(study.info().full_seconds_hint),
        });
        let mut costs: Vec<f64> = studies.collect();
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
        hash.add_text(VERSION);
        if !self.studies.is_empty() {
            let (seed, quick) = (self.spec.seed, self.spec.quick);
            for study in &self.studies[units] {
                let (id, version) = (&study.info().id, study.version());
                hash.add_text(&format!("{id} {version} {seed:?} {quick}"));
            }
            return Ok(hash.text());
        }
        let spec = &self.spec;
        let (alone_s, quantum_ms, os) = (spec.alone_s, spec.quantum_ms, &spec.os);
        let seed = spec.first_seed();
        hash.add_text(&format!("{alone_s} {quantum_ms:?} {os} {seed}"));
        for (case, part) in self.cases_in(units) {
            hash.add_case(&self.cases.get(case)?);
            for unit in part {
                let (policy, seed) = self.locate_unit(unit);
                hash.add_text(&format!("{} {seed}", self.contenders[policy].name()));
            }
        }
        // The files that policies' options name.
        for text in &spec.policies {
            let mut policy: PolicySpec = text.parse().map_err(ExperimentError::from)?;
            let read = policy.attach(consort_describe::input::read_if_file);
            read.map_err(ExperimentError::from)?;
            for content in policy.files.values() {
                hash.add_text(content);
            }
        }
        Ok(hash.text())
    }
}

#[derive(Default)]
struct Fingerprint(Sha256);

impl Fingerprint {
    /// Adds a text and its length, so that neighbours cannot run into each other.
    fn add_text(&mut self, text: &str) {
        self.0.update((text.len() as u64).to_le_bytes());
        self.0.update(text.as_bytes());
    }

    fn add_case(&mut self, case: &SweepCase) {
        let SweepCase {
            key, experiment, ..
        } = case;
        self.add_text(key);
        // The topology contains the machine's options, the description all the rest. Both write
        // different numbers differently.
        self.add_text(&format!("{:?}", experiment.chip.spec()));
        self.add_text(&format!("{:?}", experiment.chip.topology()));
        for entry in &experiment.workload.entries {
            let (name, threads, start_ms) = (&entry.name, entry.threads, entry.start_ms);
            self.add_text(&format!("{name} {threads} {start_ms}"));
            self.add_text(&format!("{:?}", entry.program));
        }
    }

    /// Sixteen hexadecimal digits of the hash.
    fn text(self) -> String {
        let digest = self.0.finalize();
        let bytes = digest.iter().take(8);
        bytes.map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Host time per thread and quantum, s (docs/figures.md: 13 to 27 µs with 16 to 128
/// threads whose placement changes every quantum).
const PER_THREAD_AND_QUANTUM_S: f64 = 20e-6;
/// Time after which a thread has changed its rate even if no policy moves it, s.
const LONGEST_QUANTUM_S: f64 = 0.1;
/// Time of programs together over their time alone, each with a CPU: about the middle of the
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

/// The runs of one case, as `consort compare` makes them: the work of a program is its work alone
/// under the first seed.
fn run_case(
    sweep: &Sweep,
    case: &SweepCase,
    units: Range<usize>,
    context: &ExperimentContext<'_>,
) -> Result<Vec<RunResult>, ExperimentError> {
    let experiment = &case.experiment;
    let wanted: Vec<(usize, u64)> = units.map(|unit| sweep.locate_unit(unit)).collect();
    // Only contenders of this part are prepared, because some search co-schedules for it.
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
