//! The units of a sweep: runs, or studies, in a fixed order.

use super::cases::{SweepCase, SweepCases};
use super::cost::{QUICK_STUDY_S, run_s};
use super::error::SweepError;
use super::spec::SweepSpec;
use consort_core::policy::PolicySpec;
use consort_experiment::Contender;
use consort_experiment::Scale;
use consort_experiment::SharedResults;
use consort_lab::Study;
use consort_lab::VERSION;
use consort_lab::runner::StudySettings;
use sha2::{Digest, Sha256};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;

/// A description with everything that it names.
pub struct Sweep {
    pub(super) spec: SweepSpec,
    pub(super) cases: SweepCases,
    pub(super) contenders: Vec<Contender>,
    pub(super) studies: Vec<Arc<dyn Study>>,
}

impl Sweep {
    /// Reads a description and finds what it names, but for the machines: those are read as they are
    /// needed.
    ///
    /// # Errors
    /// What is wrong with the description, or with what it names.
    pub fn parse(file: &str, text: &str) -> Result<Self, SweepError> {
        Self::new(SweepSpec::parse(file, text)?)
    }

    fn new(spec: SweepSpec) -> Result<Self, SweepError> {
        let contenders = spec
            .policies
            .iter()
            .map(|name| Contender::new(name, &spec.os));
        let contenders = contenders.collect::<Result<_, _>>()?;
        let studies = match spec.studies.as_slice() {
            [] => Vec::new(),
            ids => {
                let known = consort_lab::registry();
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

    /// Number of units.
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

    /// Policy and seed of a unit within its case: the order is that of `consort compare --out`.
    pub(super) fn locate_unit(&self, unit: usize) -> (usize, u64) {
        let runs = self.spec.runs as usize;
        let within = unit % self.runs_per_case();
        (
            within / runs,
            self.spec.first_seed() + (within % runs) as u64,
        )
    }

    /// The cases of which a range has units, each with its own part of it.
    pub(super) fn cases_in(&self, units: Range<usize>) -> Vec<(usize, Range<usize>)> {
        let each = self.runs_per_case();
        let cases = units.start / each..units.end.div_ceil(each);
        let part = |case: usize| units.start.max(case * each)..units.end.min((case + 1) * each);
        cases.map(|case| (case, part(case))).collect()
    }

    /// Estimated host time of every unit, s. Reads every machine, so that whatever is wrong with
    /// one is found before anything runs.
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

    /// Settings that studies are run with.
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

    /// Fingerprint of everything that decides what a range of units gives.
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

/// A fingerprint in the making.
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
        // The topology tells the machine's options, the description all the rest. Both write
        // numbers so that unlike ones are unlike.
        self.add(format!("{:?}", experiment.chip.spec()).as_bytes());
        self.add(format!("{:?}", experiment.chip.topology()).as_bytes());
        for entry in &experiment.workload.entries {
            self.add(format!("{} {} {}", entry.name, entry.threads, entry.start_ms).as_bytes());
            self.add(format!("{:?}", entry.program).as_bytes());
        }
    }

    /// Files that policies' options name.
    fn add_files(&mut self, policies: &[String]) -> Result<(), SweepError> {
        for text in policies {
            let mut spec: PolicySpec = text
                .parse()
                .map_err(consort_experiment::ExperimentError::from)?;
            let read = spec.attach(consort_input::read_if_file);
            read.map_err(consort_experiment::ExperimentError::from)?;
            for content in spec.files.values() {
                self.add(content.as_bytes());
            }
        }
        Ok(())
    }

    /// Sixteen hexadecimal digits.
    fn text(self) -> String {
        let digest = self.0.finalize();
        digest
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}
