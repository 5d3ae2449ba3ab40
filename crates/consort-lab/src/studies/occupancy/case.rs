//! One machine with one kind of load, in the setups in which it is run.

use super::helpers;
use super::{LENGTHS, PairLength};
use crate::simulate::programs::instance;
use crate::simulate::{CaseSpec, DescriptionSource, Presets, experiment, part_error};
use crate::study::StudyError;
use consort_experiment::ExperimentContext;
use consort_experiment::{AloneWork, Experiment, Sequence, measure_full_length};
use consort_sim::chip::Chip;
use consort_sim::program::{ProgramSpec, presets};
use consort_sim::workload::{ProgramInstance, Workload};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Time that each kernel of a thread takes alone, s, at the quick and the full scale: several
/// quanta.
const KERNEL_S: [f64; 2] = [3.0, 10.0];

/// A machine and what runs on it.
pub(super) struct OccupancyCase {
    /// Beginning of its row keys.
    pub(super) key: String,
    /// The machine, for example `power7:smt=2`.
    pub(super) machine: String,
    /// Programs that run on it.
    pub(super) load: OccupancyLoad,
}

/// Programs of a case: as many threads as the machine has PUs.
pub(super) enum OccupancyLoad {
    /// Copies of an integer program on half of the PUs, of a floating-point one on the others.
    Pair([String; 2]),
    /// Threads that each run all of these kernels, in an order of their own.
    Kernels(Vec<String>),
}

impl OccupancyLoad {
    /// The programs of a case's workload: a pair, or kernels where its label `load` says so.
    pub(super) fn from_case_spec(case: &CaseSpec) -> Self {
        let names = case.workload.as_deref().unwrap_or_default().split('+');
        let names: Vec<String> = names.map(str::to_owned).collect();
        let is_pair = case.labels.get("load").is_none_or(|load| load != "kernels");
        match <[String; 2]>::try_from(names) {
            Ok(pair) if is_pair => Self::Pair(pair),
            Ok(pair) => Self::Kernels(pair.into()),
            Err(names) => Self::Kernels(names),
        }
    }
}

/// Method by which programs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunMethod {
    /// The source's method: all programs start together and each runs once. The lengths of the
    /// programs of a pair are those of [`LENGTHS`] at this position.
    Once(usize),
    /// Equal work for all, again and again until the last has done its own.
    Equal,
}

/// A workload on a machine with the work of its programs.
type ExperimentSetup = (Experiment, Vec<AloneWork>);

/// A case with its machine and the work of its programs.
pub(super) struct PreparedOccupancyCase {
    pub(super) key: String,
    pub(super) chip: Arc<Chip>,
    load: PreparedLoad,
}

enum PreparedLoad {
    /// A pair with equal work, and at each of [`LENGTHS`].
    Pair {
        equal: ExperimentSetup,
        whole: Vec<ExperimentSetup>,
    },
    /// The kernels, and what the runtime runs beside them.
    Kernels(Sequence, Arc<ProgramSpec>),
}

impl OccupancyCase {
    /// Finds machine and programs, and measures their work alone.
    pub(super) fn prepare(
        &self,
        context: &ExperimentContext<'_>,
        alone_s: f64,
    ) -> Result<PreparedOccupancyCase, StudyError> {
        let chip = self.chip()?;
        let load = match &self.load {
            OccupancyLoad::Pair([int, fp]) => {
                let programs = [self.program(int)?, self.program(fp)?];
                PreparedLoad::Pair {
                    equal: self.equal(&chip, &programs, alone_s, context.seed())?,
                    whole: self.whole(&chip, &programs, context)?,
                }
            }
            OccupancyLoad::Kernels(names) => {
                let part_s = context.by_scale(KERNEL_S[0], KERNEL_S[1]);
                self.kernels(&chip, names, part_s, context.seed())?
            }
        };
        Ok(PreparedOccupancyCase {
            key: self.key.clone(),
            chip,
            load,
        })
    }

    fn chip(&self) -> Result<Arc<Chip>, StudyError> {
        Presets
            .load_chip(&self.machine)
            .map_err(part_error(&self.key))
    }

    fn equal(
        &self,
        chip: &Arc<Chip>,
        programs: &[Arc<ProgramSpec>; 2],
        alone_s: f64,
        seed: u64,
    ) -> Result<ExperimentSetup, StudyError> {
        let experiment = experiment(chip, copies(chip, programs), alone_s);
        let work = experiment
            .measure_work(seed)
            .map_err(part_error(&self.key))?;
        Ok((experiment, work))
    }

    /// Both programs from beginning to end, by [`LENGTHS`].
    fn whole(
        &self,
        chip: &Arc<Chip>,
        programs: &[Arc<ProgramSpec>; 2],
        context: &ExperimentContext<'_>,
    ) -> Result<Vec<ExperimentSetup>, StudyError> {
        let setup = |length: PairLength| {
            let share = length.share(context);
            let [int, fp] = programs;
            let stretched = [stretched(int, share), stretched(fp, share * length.fp)];
            let stretched = stretched.map(Arc::new);
            let mut work = Vec::with_capacity(chip.places().len());
            for program in &stretched {
                let one = instance(program.name.clone(), program, 1);
                let alone = measure_full_length(chip, &one, context.seed())
                    .map_err(part_error(&self.key))?;
                work.extend(vec![alone; chip.places().len() / 2]);
            }
            let longest_s = work
                .iter()
                .map(|w: &AloneWork| w.alone_s)
                .fold(0.0, f64::max);
            let experiment = experiment(chip, copies(chip, &stretched), longest_s);
            Ok((experiment, work))
        };
        LENGTHS.into_iter().map(setup).collect()
    }

    fn kernels(
        &self,
        chip: &Arc<Chip>,
        names: &[String],
        part_s: f64,
        seed: u64,
    ) -> Result<PreparedLoad, StudyError> {
        let programs = names.iter().map(|name| self.program(name));
        let programs: Vec<Arc<ProgramSpec>> = programs.collect::<Result<_, _>>()?;
        let sequence = Sequence::measure(chip, &programs, part_s, seed);
        let helper = helpers::program().map_err(part_error(&self.key))?;
        Ok(PreparedLoad::Kernels(
            sequence.map_err(part_error(&self.key))?,
            helper,
        ))
    }

    fn program(&self, name: &str) -> Result<Arc<ProgramSpec>, StudyError> {
        Ok(Arc::new(
            presets::find(name).map_err(part_error(&self.key))?,
        ))
    }
}

impl PreparedOccupancyCase {
    /// Workload and work under a seed: orders of kernels are drawn anew for each.
    pub(super) fn setup(&self, method: RunMethod, seed: u64) -> ExperimentSetup {
        match (&self.load, method) {
            (PreparedLoad::Pair { whole, .. }, RunMethod::Once(length)) => whole[length].clone(),
            (PreparedLoad::Pair { equal, .. }, RunMethod::Equal) => equal.clone(),
            (PreparedLoad::Kernels(sequence, helper), _) => self.drawn(sequence, helper, seed),
        }
    }

    /// Threads with the same order share one program, as copies do; the runtime's own threads
    /// come last.
    fn drawn(&self, sequence: &Sequence, helper: &Arc<ProgramSpec>, seed: u64) -> ExperimentSetup {
        let threads = self.chip.places().len();
        let mut known: BTreeMap<Vec<usize>, Arc<ProgramSpec>> = BTreeMap::new();
        let thread = |n: usize| {
            let order = sequence.order(seed, n as u64);
            let program = known
                .entry(order.clone())
                .or_insert_with(|| Arc::new(sequence.program(&self.key, &order)));
            instance(format!("thread#{}", n + 1), program, 1)
        };
        let mut entries: Vec<ProgramInstance> = (0..threads).map(thread).collect();
        entries.extend((1..=helpers::COUNT).map(|n| instance(format!("helper#{n}"), helper, 1)));
        let workload = Workload {
            text: self.key.clone(),
            entries,
        };
        let mut work = vec![sequence.work(); threads];
        work.extend([helpers::WORK; helpers::COUNT]);
        let alone_s = sequence.work().alone_s;
        (experiment(&self.chip, workload, alone_s), work)
    }

    /// Its programs, without the runtime's threads.
    pub(super) fn programs(&self) -> Range<usize> {
        0..self.chip.places().len()
    }

    /// Names of the classes of programs with the programs of each: `int` and `fp` of a pair, or
    /// `all`.
    pub(super) fn classes(&self) -> Vec<(&'static str, Range<usize>)> {
        let threads = self.chip.places().len();
        match self.load {
            PreparedLoad::Pair { .. } => {
                vec![("int", 0..threads / 2), ("fp", threads / 2..threads)]
            }
            PreparedLoad::Kernels(..) => vec![("all", self.programs())],
        }
    }
}

/// Copies of two programs, each on half of the PUs.
fn copies(chip: &Chip, programs: &[Arc<ProgramSpec>; 2]) -> Workload {
    let copies = chip.places().len() / 2;
    let of = |program: &Arc<ProgramSpec>| {
        let numbers = 1..=copies;
        let one = |n| instance(format!("{}#{n}", program.name), program, 1);
        numbers.map(one).collect::<Vec<ProgramInstance>>()
    };
    let texts = programs.each_ref().map(|p| format!("{copies}*{}", p.name));
    Workload {
        text: texts.join("+"),
        entries: programs.iter().flat_map(of).collect(),
    }
}

/// The same program, every phase so many times as long.
fn stretched(program: &ProgramSpec, factor: f64) -> ProgramSpec {
    let mut stretched = program.clone();
    for phase in &mut stretched.phases {
        phase.length_ginstr *= factor;
    }
    stretched
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_keep_their_proportion() {
        let mcf = presets::find("mcf").unwrap();
        let half = stretched(&mcf, 0.5);
        assert_eq!(half.phases.len(), mcf.phases.len());
        let both = half.phases.iter().zip(&mcf.phases);
        assert!({ both }.all(|(half, whole)| 2.0 * half.length_ginstr == whole.length_ginstr));
    }
}
