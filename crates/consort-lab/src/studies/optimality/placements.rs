//! Grounds on which exact search is possible, small machines with a thread for every CPU, and every
//! placement of their threads.

use crate::simulate::case::PreparedCase;
use crate::simulate::mixes::draw_mixes;
use crate::simulate::programs::suite;
use crate::simulate::{map_jobs, part_error};
use crate::study::StudyError;
use consort_core::PuId;
use consort_core::matching::{GroupRoom, MatchingError, visit_partitions};
use consort_experiment::ExperimentContext;
use consort_sim::chip::Chip;
use consort_sim::machine::MachineRef;
use consort_sim::workload::ProgramInstance;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The model of the operating system under which threads stay where they are: the nth to
/// arrive on CPU n.
pub(super) const STAYING: &str = "pinned";
/// Programs that start at one time arrive in an order by lot; this far apart they arrive in theirs.
const APART_MS: f64 = 1e-6;

/// A machine, the policies on it, and the symmetry of its placements.
pub(super) struct OptimalityCase {
    /// Key of its rows.
    pub key: &'static str,
    /// Description in a few words.
    pub title: &'static str,
    /// The machine, for example `power7:smt=2`.
    machine: &'static str,
    /// Cores in use by number; all if empty.
    cores: &'static [usize],
    symmetry: PlacementSymmetry,
    pub policies: &'static [&'static str],
    /// Drawn workloads, at the quick and the full scale.
    mixes: [usize; 2],
    /// Time of a program's work alone, s.
    alone_s: [f64; 2],
}

/// Symmetry of a machine's placements: the parts in which threads meet, and the parts that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlacementSymmetry {
    /// Threads meet on cores; all cores are alike.
    Core,
    /// Threads meet in LLC domains; all domains are alike, and so are their CPUs.
    Llc,
    /// Threads meet everywhere; the first core is unlike the others.
    Large,
}

/// All grounds, in the order of rows.
pub(super) const GROUNDS: &[OptimalityCase] = &[
    OptimalityCase {
        key: "bulldozer",
        title: "Bulldozer, 8 programs on 4 modules",
        machine: "bulldozer-6282se",
        cores: &[],
        symmetry: PlacementSymmetry::Core,
        policies: &[
            "linux",
            "random",
            "aggregate:margin=0,numa=false",
            "workover:margin=0,numa=false",
            "oracle",
        ],
        mixes: [2, 6],
        alone_s: [2.0, 5.0],
    },
    // One NUMA node, so that all cores are alike.
    OptimalityCase {
        key: "power8",
        title: "POWER8 in SMT2, 8 programs on 4 cores",
        machine: "power8:smt=2",
        cores: &[0, 1, 2, 3],
        symmetry: PlacementSymmetry::Core,
        policies: &["linux", "random", "l1-bandwidth", "symbiotic", "oracle"],
        mixes: [2, 6],
        alone_s: [2.0, 5.0],
    },
    OptimalityCase {
        key: "core2",
        title: "Core 2 Quad, 4 programs on two pairs of cores",
        machine: "core2-q9550",
        cores: &[],
        symmetry: PlacementSymmetry::Llc,
        policies: &["linux", "random", "spread"],
        mixes: [8, 20],
        alone_s: [2.0, 5.0],
    },
    OptimalityCase {
        key: "acmp",
        title: "One large and three small cores, 4 programs",
        machine: "acmp-1+3",
        cores: &[],
        symmetry: PlacementSymmetry::Large,
        policies: &[
            "linux",
            "hrrs:form=hardware",
            "kuths:form=hardware",
            "pie",
            "fair-progress:form=hardware",
        ],
        mixes: [8, 20],
        alone_s: [0.05, 0.2],
    },
];

impl OptimalityCase {
    /// True if the large core can also be shared by time.
    pub fn has_large_core(&self) -> bool {
        self.symmetry == PlacementSymmetry::Large
    }

    /// The workloads, with their work measured: as many different programs as CPUs.
    pub fn workloads(
        &self,
        context: &ExperimentContext<'_>,
    ) -> Result<Vec<PreparedCase>, StudyError> {
        let machine: MachineRef = self.machine.parse().map_err(part_error(self.key))?;
        let loaded = machine.load(&[]).map_err(part_error(self.key))?;
        let used = |core: usize| self.cores.is_empty() || self.cores.contains(&core);
        let chip = Chip::with_cores(&loaded.spec, loaded.smt, &used);
        let chip = Arc::new(chip.map_err(part_error(self.key))?);
        let scale = context.by_scale(0, 1);
        let (count, alone_s) = (self.mixes[scale], self.alone_s[scale]);
        let programs = suite("spec2006", usize::MAX)?;
        let drawn = draw_mixes(context.seed(), &programs, (chip.places().len(), 1), count);
        map_jobs(context, &drawn, |workload| {
            let seed = context.seed();
            PreparedCase::from_key(&workload.text, &chip, workload.clone(), alone_s, seed)
        })
    }

    /// The placements of a workload, up to symmetry.
    ///
    /// # Errors
    /// More threads than can be searched.
    pub fn placements(&self, case: &PreparedCase) -> Result<Vec<Vec<usize>>, StudyError> {
        let entries = case.experiment.workload.entries.iter();
        let kinds: Vec<&str> = entries.map(|entry| entry.program.name.as_str()).collect();
        let all = distinct_placements(&case.experiment.chip, self.symmetry, &kinds);
        all.map_err(part_error(self.key))
    }
}

/// Thread of each CPU, for every placement that differs from all others in more than the names of
/// like parts and of like threads. Threads of one name in `kinds` are alike; there are as many as
/// CPUs.
///
/// # Errors
/// More than 16 threads.
fn distinct_placements(
    chip: &Chip,
    symmetry: PlacementSymmetry,
    kinds: &[&str],
) -> Result<Vec<Vec<usize>>, MatchingError> {
    let topology = chip.topology();
    let number = |pu: PuId| pu.0 as usize;
    let parts: Vec<Vec<usize>> = match symmetry {
        PlacementSymmetry::Llc => { topology.llcs().iter() }
            .map(|llc| llc.pus.iter().map(number).collect())
            .collect(),
        PlacementSymmetry::Core | PlacementSymmetry::Large => { topology.cores().iter() }
            .map(|core| core.pus.iter().copied().map(number).collect())
            .collect(),
    };
    let (mut seen, mut placements) = (BTreeSet::new(), Vec::new());
    let mut visit = |threads: &[Vec<usize>]| {
        // A form in which like threads have one name, and like parts no order.
        let mut form: Vec<Vec<&str>> = Vec::new();
        for group in threads {
            let mut names: Vec<&str> = group.iter().map(|&thread| kinds[thread]).collect();
            names.sort_unstable();
            form.push(names);
        }
        let alike = usize::from(symmetry == PlacementSymmetry::Large);
        form[alike..].sort_unstable();
        if seen.insert(form) {
            let mut on_pus = vec![0; kinds.len()];
            for (pus, group) in parts.iter().zip(threads) {
                for (&pu, &thread) in pus.iter().zip(group) {
                    on_pus[pu] = thread;
                }
            }
            placements.push(on_pus);
        }
    };
    if symmetry == PlacementSymmetry::Large {
        // One thread on each core: only the thread on the large one makes a difference.
        for first in 0..kinds.len() {
            let others = (0..kinds.len()).filter(|&thread| thread != first);
            let threads = std::iter::once(first).chain(others);
            visit(&threads.map(|thread| vec![thread]).collect::<Vec<_>>());
        }
    } else {
        let room = GroupRoom {
            cores: parts.len(),
            ways: parts.iter().map(Vec::len).max().unwrap_or(0),
            swaps: 0,
        };
        visit_partitions(kinds.len(), room, visit)?;
    }
    Ok(placements)
}

/// The workload with its threads placed, to be run under [`STAYING`].
pub(super) fn place(case: &PreparedCase, placement: &[usize]) -> PreparedCase {
    let mut placed = case.clone();
    placed.work = placement.iter().map(|&thread| case.work[thread]).collect();
    let entries = &case.experiment.workload.entries;
    let on_pus = placement.iter().enumerate();
    let on_pus = on_pus.map(|(pu, &thread)| ProgramInstance {
        start_ms: pu as f64 * APART_MS,
        ..entries[thread].clone()
    });
    placed.experiment.workload.entries = on_pus.collect();
    placed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::chips::chip;
    use crate::testing::workers;
    use consort_experiment::Scale;
    use consort_experiment::watch::CoreKind;
    use std::collections::BTreeMap;

    fn check(machine: &str, symmetry: PlacementSymmetry, kinds: &[&str], expect: usize) {
        let chip = chip(machine).unwrap();
        let placements = distinct_placements(&chip, symmetry, kinds).unwrap();
        assert_eq!(placements.len(), expect, "{machine}");
        for mut threads in placements {
            threads.sort_unstable();
            assert_eq!(threads, (0..chip.places().len()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn placements_are_counted_up_to_symmetry() {
        let eight = ["a", "b", "c", "d", "e", "f", "g", "h"];
        check("bulldozer-6282se", PlacementSymmetry::Core, &eight, 105);
        check("core2-q9550", PlacementSymmetry::Llc, &eight[..4], 3);
        check("acmp-1+3", PlacementSymmetry::Large, &eight[..4], 4);
        // Four of each: pairs of like threads are 0, 2 or 4.
        let two = ["a", "a", "a", "a", "b", "b", "b", "b"];
        check("bulldozer-6282se", PlacementSymmetry::Core, &two, 3);
        check("acmp-1+3", PlacementSymmetry::Large, &two[2..6], 2);
    }

    /// Slowdowns of the first workload by placement, then CPU.
    fn slowdowns(ground: &OptimalityCase) -> (Vec<Vec<usize>>, Vec<Vec<f64>>) {
        let context = ExperimentContext::new(1, Scale::Quick, workers(1), &|_| ());
        let case = ground.workloads(&context).unwrap().remove(0);
        let placements = ground.placements(&case).unwrap();
        let run = |placement: &Vec<usize>| place(&case, placement).run(STAYING, 1).unwrap();
        let runs = placements.iter().map(|placement| run(placement).slowdowns);
        let runs = runs.collect();
        (placements, runs)
    }

    #[test]
    fn first_program_of_placement_has_large_core() {
        let chip = chip("acmp-1+3").unwrap();
        let kinds = [0, 1, 2, 3].map(|pu| CoreKind::from_pu(&chip, pu));
        assert_eq!(kinds[0], CoreKind::Large);
        assert!(kinds[1..].iter().all(|kind| *kind == CoreKind::Small));
        let (placements, slowdowns) = slowdowns(GROUNDS.last().unwrap());
        for (placement, slowdowns) in placements.iter().zip(slowdowns) {
            // Only the LLC and memory are shared with the others.
            assert!(slowdowns[0] < 1.2, "{placement:?}: {slowdowns:?}");
        }
    }

    #[test]
    fn placed_programs_share_the_intended_core() {
        let (placements, slowdowns) = slowdowns(&GROUNDS[1]);
        // The co-runner decides, not the core: a program is slowed down alike wherever the same
        // two are together, but for what others do to the memory that all share.
        let mut of_pairs = BTreeMap::<[usize; 2], Vec<f64>>::new();
        for (placement, slowdowns) in placements.iter().zip(&slowdowns) {
            for (pair, two) in placement.chunks(2).zip(slowdowns.chunks(2)) {
                of_pairs.entry([pair[0], pair[1]]).or_default().push(two[0]);
            }
        }
        assert_eq!(of_pairs.len(), 28);
        let largest_over_smallest = |values: &[f64]| {
            let low = values.iter().copied().fold(f64::INFINITY, f64::min);
            values.iter().copied().fold(0.0, f64::max) / low
        };
        let within = of_pairs
            .values()
            .map(|values| largest_over_smallest(values));
        let within = within.fold(1.0, f64::max);
        let all: Vec<f64> = of_pairs.into_values().flatten().collect();
        let spread = largest_over_smallest(&all);
        assert!(within < 1.1 && spread > 1.3, "{within} {spread}");
    }
}
