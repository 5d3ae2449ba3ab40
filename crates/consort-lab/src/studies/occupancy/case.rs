//! One machine with one kind of load.

use crate::context::Context;
use crate::experiment::{Experiment, Sequence, Work};
use crate::study::StudyError;
use consort_sim::chip::Chip;
use consort_sim::machine::MachineRef;
use consort_sim::program::{ProgramSpec, presets};
use consort_sim::workload::{Instance, Workload};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Time that each program of a pair takes alone at the quick scale, s.
const QUICK_ALONE_S: f64 = 10.0;
/// Time that each kernel of a thread takes alone, s, at the quick and the full scale: several
/// quanta.
const KERNEL_S: [f64; 2] = [3.0, 10.0];

/// A machine and what runs on it.
pub(in crate::studies) struct Case {
    /// Beginning of its row keys.
    pub key: &'static str,
    /// The machine, for example `power7:smt=2`.
    pub machine: &'static str,
    /// What runs on it.
    pub load: Load,
}

/// What runs: as many threads as the machine has PUs.
pub(in crate::studies) enum Load {
    /// Copies of an integer program on half of the PUs, of a floating-point one on the others.
    Pair {
        /// The integer program.
        int: &'static str,
        /// The floating-point program.
        fp: &'static str,
        /// Time that each takes alone at the full scale, s.
        alone_s: f64,
    },
    /// Threads that each run all of these kernels, in an order of their own.
    Kernels(&'static [&'static str]),
}

/// A case with its machine and the work of its programs.
pub(super) struct Prepared {
    pub(super) key: &'static str,
    pub(super) chip: Arc<Chip>,
    load: Ready,
}

enum Ready {
    Pair(Experiment, Vec<Work>),
    Kernels(Sequence),
}

impl Case {
    /// Finds machine and programs, and measures how much they do alone.
    pub(super) fn prepare(&self, context: &Context<'_>) -> Result<Prepared, StudyError> {
        let chip = self.chip()?;
        let load = match self.load {
            Load::Pair { int, fp, alone_s } => {
                let alone_s = context.by_scale(QUICK_ALONE_S, alone_s);
                self.pair(&chip, [int, fp], alone_s, context.seed())?
            }
            Load::Kernels(names) => {
                let part_s = context.by_scale(KERNEL_S[0], KERNEL_S[1]);
                self.kernels(&chip, names, part_s, context.seed())?
            }
        };
        Ok(Prepared {
            key: self.key,
            chip,
            load,
        })
    }

    fn chip(&self) -> Result<Arc<Chip>, StudyError> {
        let machine: MachineRef = self.machine.parse().map_err(self.failed())?;
        let loaded = machine.load(&[]).map_err(self.failed())?;
        let chip = Chip::new(&loaded.spec, loaded.smt).map_err(self.failed())?;
        Ok(Arc::new(chip))
    }

    fn pair(
        &self,
        chip: &Arc<Chip>,
        names: [&str; 2],
        alone_s: f64,
        seed: u64,
    ) -> Result<Ready, StudyError> {
        let copies = chip.places().len() / 2;
        let mut entries = Vec::with_capacity(2 * copies);
        for name in names {
            let program = self.program(name)?;
            entries.extend((1..=copies).map(|n| instance(format!("{name}#{n}"), &program)));
        }
        let text = format!("{copies}*{}+{copies}*{}", names[0], names[1]);
        let experiment = experiment(chip, Workload { text, entries }, alone_s);
        let work = experiment.work(seed).map_err(self.failed())?;
        Ok(Ready::Pair(experiment, work))
    }

    fn kernels(
        &self,
        chip: &Arc<Chip>,
        names: &[&str],
        part_s: f64,
        seed: u64,
    ) -> Result<Ready, StudyError> {
        let programs = names.iter().map(|name| self.program(name));
        let programs: Vec<Arc<ProgramSpec>> = programs.collect::<Result<_, _>>()?;
        let sequence = Sequence::measure(chip, &programs, part_s, seed);
        Ok(Ready::Kernels(sequence.map_err(self.failed())?))
    }

    fn program(&self, name: &str) -> Result<Arc<ProgramSpec>, StudyError> {
        Ok(Arc::new(presets::find(name).map_err(self.failed())?))
    }

    fn failed<E: std::error::Error + Send + Sync + 'static>(&self) -> impl Fn(E) -> StudyError {
        let key = self.key;
        move |error| StudyError::part(key, error)
    }
}

impl Prepared {
    /// The run of a seed: orders of kernels are drawn anew for each.
    pub(super) fn experiment(&self, seed: u64) -> (Experiment, Vec<Work>) {
        match &self.load {
            Ready::Pair(experiment, work) => (experiment.clone(), work.clone()),
            Ready::Kernels(sequence) => self.drawn(sequence, seed),
        }
    }

    /// Threads with the same order share one program, as copies do.
    fn drawn(&self, sequence: &Sequence, seed: u64) -> (Experiment, Vec<Work>) {
        let threads = self.chip.places().len();
        let mut known: BTreeMap<Vec<usize>, Arc<ProgramSpec>> = BTreeMap::new();
        let thread = |n: usize| {
            let order = sequence.order(seed, n as u64);
            let program = known
                .entry(order.clone())
                .or_insert_with(|| Arc::new(sequence.program(self.key, &order)));
            instance(format!("thread#{}", n + 1), program)
        };
        let workload = Workload {
            text: self.key.to_owned(),
            entries: (0..threads).map(thread).collect(),
        };
        let work = sequence.work();
        let experiment = experiment(&self.chip, workload, work.alone_s);
        (experiment, vec![work; threads])
    }

    /// Names of the classes of programs with the programs of each: `int` and `fp` of a pair, or
    /// `all`.
    pub(super) fn classes(&self) -> Vec<(&'static str, std::ops::Range<usize>)> {
        let threads = self.chip.places().len();
        match self.load {
            Ready::Pair(..) => vec![("int", 0..threads / 2), ("fp", threads / 2..threads)],
            Ready::Kernels(_) => vec![("all", 0..threads)],
        }
    }
}

fn experiment(chip: &Arc<Chip>, workload: Workload, alone_s: f64) -> Experiment {
    Experiment {
        chip: Arc::clone(chip),
        workload,
        alone_s,
        quantum: None,
        free_migration: false,
    }
}

fn instance(name: String, program: &Arc<ProgramSpec>) -> Instance {
    Instance {
        name,
        program: Arc::clone(program),
        threads: 1,
        start_ms: 0.0,
    }
}
