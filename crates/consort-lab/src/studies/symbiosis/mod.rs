//! Symbiotic scheduling on a POWER8: its machine, and drawn workloads that are ready to run.
//!
//! S1 to S3 share one [`training`] of the model. S4 to S6 and S8 are views of [`frames`], with
//! [`views`] for the tables and notes that their files cannot state; S7 watches [`co_runners`].
//!
//! Pitfalls: the policy predicts with the model that comes with the program, not with that of S1 to
//! S3. In rows `symbiotic` is the paper's scheduler, which pairs over the whole chip
//! (`symbiotic:numa=false`); `symbiotic-in-node`, ours, leaves threads on the node where they were
//! first and pairs inside nodes.

pub(super) mod co_runners;
pub(super) mod errors;
pub(super) mod frames;
pub(super) mod training;
pub(super) mod views;

use crate::simulate::part_error;
use crate::simulate::programs::{find, instance, join_entries};
use crate::study::StudyError;
use consort_experiment::{
    AloneWork, Contender, DecisionListener, Experiment, ExperimentContext, RunOptions, RunResult,
};
use consort_sim::chip::Chip;
use consort_sim::engine::Observer;
use consort_sim::machine::{MachineSpec, presets};
use consort_sim::workload::Workload;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Length of a quantum (section 3.2 of the paper).
const QUANTUM: Duration = Duration::from_millis(100);
const MACHINE: &str = "power8";
/// CPUs per core that are in use, as in the paper.
const SMT: u32 = 2;
/// Cores of each of the machine's two nodes.
const CORES_PER_NODE: usize = 5;
/// Nodes with memory where it is near to the first half of the cores: those were faster for
/// memory-bound programs on the machine of the paper, which so suggests it.
const NEAR_FIRST_HALF: Option<&[u32]> = Some(&[0]);
/// Streams of workloads are this far apart.
const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

/// The suite of all programs; the model is trained on the whole of it.
const SUITE: &str = "spec2006";
/// The 21 programs of workloads. The paper names four of them (mcf, milc, GemsFDTD, lbm) and gives
/// the number of all. The others follow from a rule that was made before any result: all twelve of
/// CINT2006, and of the remaining CFP2006 every other one in alphabetical order, from the first.
const PROGRAMS: [&str; 21] = [
    "perlbench",
    "bzip2",
    "gcc",
    "mcf",
    "gobmk",
    "hmmer",
    "sjeng",
    "libquantum",
    "h264ref",
    "omnetpp",
    "astar",
    "xalancbmk",
    "milc",
    "GemsFDTD",
    "lbm",
    "bwaves",
    "calculix",
    "gamess",
    "leslie3d",
    "povray",
    "sphinx3",
];

/// The machine with so many of its cores in use and memory on some nodes only; on both if `None`.
/// Cores are dealt to both nodes in turns; caches of the other cores stay, as when threads are kept
/// off cores.
fn chip(cores: usize, memory: Option<&[u32]>) -> Result<Arc<Chip>, StudyError> {
    let mut spec = presets::find(MACHINE).map_err(part_error(MACHINE))?;
    if let Some(numa) = &mut spec.numa {
        numa.memory_nodes = memory.map(<[u32]>::to_vec);
    }
    chip_from_spec(&spec, cores)
}

fn chip_from_spec(spec: &MachineSpec, cores: usize) -> Result<Arc<Chip>, StudyError> {
    let is_used = |core: usize| {
        let (node, within) = (core / CORES_PER_NODE, core % CORES_PER_NODE);
        2 * within + node < cores
    };
    let chip = Chip::with_cores(spec, Some(SMT), &is_used);
    Ok(Arc::new(chip.map_err(part_error(&format!(
        "{MACHINE} with {cores} cores"
    )))?))
}

/// An experiment of the studies: their quantum, memory on both nodes.
fn quantum_experiment(
    cores: usize,
    workload: Workload,
    alone_s: f64,
) -> Result<Experiment, StudyError> {
    Ok(Experiment {
        quantum: Some(QUANTUM),
        ..Experiment::new(&chip(cores, None)?, workload, alone_s)
    })
}

/// Programs on a number of cores.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DrawnMix {
    /// Cores in use.
    cores: usize,
    /// Number among the workloads for so many cores, from 1.
    number: usize,
    /// Indices of the programs, twice as many as cores, no two alike, in the order in which they
    /// start.
    programs: Vec<usize>,
}

impl DrawnMix {
    /// Draws workloads 1 to `count` for so many cores, programs without replacement.
    fn draw_all(seed: u64, cores: usize, count: usize) -> Vec<Self> {
        let mut random = Pcg64::seed_from_u64(seed ^ STRIDE.wrapping_mul(cores as u64));
        let mut seen: BTreeSet<Vec<usize>> = BTreeSet::new();
        let mut mixes = Vec::new();
        while mixes.len() < count {
            let mut programs: Vec<usize> = (0..PROGRAMS.len()).collect();
            programs.shuffle(&mut random);
            programs.truncate(2 * cores);
            let mut sorted = programs.clone();
            sorted.sort_unstable();
            // A set that came before is drawn again. On ten cores there are only as many sets as
            // programs, so that after these any set will do; otherwise this would never end.
            if seen.insert(sorted) || seen.len() == PROGRAMS.len() {
                let number = mixes.len() + 1;
                mixes.push(Self {
                    cores,
                    number,
                    programs,
                });
            }
        }
        mixes
    }

    /// Key of its rows: cores and number, for example `4/01`.
    fn key(&self) -> String {
        format!("{}/{:02}", self.cores, self.number)
    }

    /// Names of its programs.
    fn names(&self) -> Vec<String> {
        let programs = self.programs.iter();
        programs
            .map(|&program| PROGRAMS[program].to_owned())
            .collect()
    }
}

/// A workload, its machine, and the work of its programs.
#[derive(Clone)]
struct PreparedMix {
    mix: DrawnMix,
    experiment: Experiment,
    work: Vec<AloneWork>,
}

impl PreparedMix {
    /// Measures the work of each program that takes `alone_s` alone, near its memory, then puts
    /// the workload on the machine with this memory.
    fn new(
        mix: &DrawnMix,
        memory: Option<&[u32]>,
        alone_s: f64,
        context: &ExperimentContext<'_>,
    ) -> Result<Self, StudyError> {
        let mut entries = Vec::new();
        for name in mix.names() {
            let program = find(&name)?;
            entries.push(instance(name, &program, 1));
        }
        // Work is the same on every machine, so that slowdowns on them compare.
        let mut experiment = quantum_experiment(mix.cores, join_entries(entries), alone_s)?;
        let work = experiment.measure_work(context.seed());
        let work = work.map_err(part_error(&mix.key()))?;
        experiment.chip = chip(mix.cores, memory)?;
        Ok(Self {
            mix: mix.clone(),
            experiment,
            work,
        })
    }

    /// Runs it once under the policy of a row.
    fn run(
        &self,
        policy: &str,
        seed: u64,
        observer: Box<dyn Observer>,
        listener: Option<DecisionListener>,
    ) -> Result<RunResult, StudyError> {
        let part = format!("{} under {policy}", self.mix.key());
        let contender = match policy {
            // The paper's scheduler pairs over the whole chip.
            "symbiotic" => "symbiotic:numa=false",
            "symbiotic-in-node" => "symbiotic:numa=true",
            "first-half" => "symbiotic:core-asymmetry=first-half",
            "first-half-inside" => "symbiotic:core-asymmetry=first-half-inside",
            // Bounds, by what headlines show, for policies that pair over the whole chip, and for
            // policies that leave threads near their memory.
            "oracle" => "oracle:numa=false,objective=throughput",
            "oracle-in-node" => "oracle:objective=throughput",
            "core-asymmetry" => "symbiotic:core-asymmetry=true",
            other => other,
        };
        let contender = Contender::new(contender, "linux").map_err(part_error(&part))?;
        let options = RunOptions {
            observer: Some(observer),
            listener,
            ..RunOptions::default()
        };
        let run = self
            .experiment
            .run_with(&contender, &self.work, seed, options);
        run.map_err(part_error(&part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cores_are_dealt_to_both_nodes() {
        for cores in 4..=10 {
            let chip = chip(cores, None).unwrap();
            let domains = chip.domains();
            assert_eq!((domains.cores, domains.llcs, domains.nodes), (cores, 10, 2));
            assert_eq!(chip.places().len(), 2 * cores);
            let first = chip.places().iter().filter(|place| place.node == 0);
            assert_eq!(first.count() / 2, cores.div_ceil(2));
        }
        let spec = presets::find(MACHINE).unwrap();
        let whole = Chip::new(&spec, Some(SMT)).unwrap();
        assert_eq!(whole, *chip(2 * CORES_PER_NODE, None).unwrap());
    }

    #[test]
    fn memory_is_on_the_given_nodes() {
        let homes = |nodes| [0, 1].map(|node| chip(4, nodes).unwrap().memory_node(node));
        assert_eq!(homes(None), [0, 1]);
        assert_eq!(homes(Some(&[1])), [1, 1]);
    }

    #[test]
    fn programs_follow_from_the_rule() {
        let suites = consort_sim::program::presets::suites().unwrap();
        let (named, drawn) = PROGRAMS.split_at(15);
        assert_eq!(named[12..], ["milc", "GemsFDTD", "lbm"]);
        let mut floating: Vec<&str> = suites[SUITE].clone();
        floating.retain(|name| !named.contains(name));
        assert_eq!(floating.len(), 14);
        floating.sort_by_key(|name| name.to_lowercase());
        let every_other: Vec<&str> = floating.into_iter().step_by(2).take(6).collect();
        assert_eq!(every_other, drawn);
    }

    proptest! {
        #[test]
        fn mix_follows_from_its_seed_and_fills_cores(seed: u64, cores in 1usize..11) {
            let mixes = DrawnMix::draw_all(seed, cores, 3);
            prop_assert_eq!(&mixes[..2], &DrawnMix::draw_all(seed, cores, 2)[..]);
            for mix in &mixes {
                let different: BTreeSet<&usize> = mix.programs.iter().collect();
                prop_assert_eq!(different.len(), 2 * cores);
                prop_assert!(mix.programs.iter().all(|&p| p < PROGRAMS.len()));
            }
        }
    }

    #[test]
    fn workloads_differ_and_use_every_program() {
        let mixes = (4..=10).flat_map(|cores| DrawnMix::draw_all(8, cores, 15));
        let mixes: Vec<DrawnMix> = mixes.collect();
        let sets: BTreeSet<BTreeSet<usize>> = { mixes.iter() }
            .map(|mix| mix.programs.iter().copied().collect())
            .collect();
        assert_eq!((mixes.len(), sets.len()), (105, 105));
        let used: BTreeSet<usize> = sets.into_iter().flatten().collect();
        assert_eq!(used.len(), PROGRAMS.len());
        assert_eq!(mixes[0].key(), "4/01");
    }
}
