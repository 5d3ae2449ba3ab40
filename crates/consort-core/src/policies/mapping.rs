//! `mapping`: programs held in one of the named static mappings, `iso`, `int` or `spr`.
//!
//! Source: Wang, Dey, Mars, Tang, Davidson, Soffa, "Performance Analysis of Thread Mappings with a
//! Holistic View of the Hardware Resources" (ISPASS 2012), section III; generalised to any topology
//! and any number of programs in [`crate::mapping`].
//!
//! Observes which threads are active, each 100 ms. A program is a process with its threads. It gets
//! the places of the first program that has ended, else new ones, so that a program that is started
//! again finds its old places. A thread that was active once keeps its CPU until it ends. Places
//! stay reserved for as many threads as a program has had at once. Promises nothing for
//! performance: it is there to be measured.

use crate::ids::{ProgramId, PuId, ThreadId};
use crate::mapping::{MalformedMapping, Mapping, MappingScheme};
use crate::plan::{Decision, Placement, Reason};
use crate::policy::{
    ALL_USUAL, OptionInfo, Policy, PolicyError, PolicyInfo, PolicyOptions, PolicyResult, PolicyRng,
    View,
};
use crate::signal::{Signal, SignalOffers, Tier};
use crate::topology::Topology;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::str::FromStr;

#[doc(alias = "static mapping")]
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "mapping",
    family: "thread mapping",
    source: "Wang et al., ISPASS 2012, section III",
    needs: &[Signal::CpuTime],
    uses: ALL_USUAL,
    tier_min: Tier::Proc,
    quantum_ms: 100,
    live: true,
    simulated: true,
    summary: "holds programs in a static mapping: a cache domain each, cores each, or all cores",
    options: &[
        OptionInfo {
            name: "map",
            default: "iso",
            meaning: "iso (a cache domain each), int (cores in every domain), spr (every core), or CPUs as 0.0.1.1/2.2.3.3",
        },
        OptionInfo {
            name: "active",
            default: "0.05",
            meaning: "threads that never had this share of one CPU are not placed (0 to 1)",
        },
    ],
    open,
};

fn open(topology: &Topology, _: &SignalOffers, options: &PolicyOptions<'_>) -> PolicyResult {
    let policy = StaticMapping {
        places: options.parse_value("map", "iso, int, spr, or CPUs as 0.0.1.1/2.2.3.3")?,
        active: options.share("active")?,
        slots: Vec::new(),
    };
    policy.places.check_pus(topology)?;
    Ok(Box::new(policy))
}

enum MappingSource {
    Scheme(MappingScheme),
    /// These CPUs for the programs in the order in which they appear. A program with more threads
    /// starts again at its first CPU; programs beyond the mapping have no places.
    Fixed(Mapping),
}

impl FromStr for MappingSource {
    type Err = MalformedMapping;

    fn from_str(text: &str) -> Result<Self, MalformedMapping> {
        match text.parse() {
            Ok(scheme) => Ok(Self::Scheme(scheme)),
            Err(_) => text.parse().map(Self::Fixed),
        }
    }
}

impl MappingSource {
    /// Checks that a machine has all of the named CPUs.
    fn check_pus(&self, topology: &Topology) -> Result<(), PolicyError> {
        let Self::Fixed(mapping) = self else {
            return Ok(());
        };
        let mut pus = mapping.programs().iter().flatten();
        match pus.find(|pu| !topology.pus().contains(**pu)) {
            Some(pu) => Err(PolicyError::Unfit {
                policy: INFO.name,
                why: format!(
                    "cannot use CPU {pu}, which is not here; here are {}",
                    topology.pus()
                ),
            }),
            None => Ok(()),
        }
    }

    /// Returns the CPUs of programs of so many threads each.
    fn program_pus(&self, topology: &Topology, threads: &[usize]) -> Vec<Vec<PuId>> {
        match self {
            Self::Scheme(scheme) => {
                let mapping = Mapping::from_scheme(*scheme, topology, threads);
                mapping.programs().to_vec()
            }
            Self::Fixed(mapping) => {
                let each = mapping.programs().iter().zip(threads);
                each.map(|(pus, &count)| pus.iter().copied().cycle().take(count).collect())
                    .collect()
            }
        }
    }
}

struct StaticMapping {
    places: MappingSource,
    active: f64,
    slots: Vec<ProgramSlot>,
}

/// The places of one program after the other.
#[derive(Default)]
struct ProgramSlot {
    program: Option<ProgramId>,
    /// The most threads that it has had at once.
    threads: usize,
    seats: BTreeMap<ThreadId, PuId>,
}

impl Policy for StaticMapping {
    fn decide(&mut self, view: View<'_>, _: &mut PolicyRng) -> Decision {
        let members = self.active_threads(view);
        self.assign_slots(&members);
        let threads: Vec<usize> = self.slots.iter().map(|slot| slot.threads).collect();
        let places = self.places.program_pus(view.topology, &threads);
        let mut places = places.into_iter();
        for slot in &mut self.slots {
            let threads = slot.program.and_then(|program| members.get(&program));
            let threads = threads.into_iter().flatten().copied().collect();
            slot.assign_threads(threads, places.next().unwrap_or_default());
        }
        let mut decision = Decision::default();
        for (number, slot) in self.slots.iter().enumerate() {
            for (&id, &pu) in &slot.seats {
                let thread = view.observation.thread(id);
                let may = thread.is_some_and(|thread| thread.original.contains(pu));
                let (chosen, placement) = if may {
                    let text = format!("CPU {pu}: its place in the mapping");
                    (text, Placement::Restricted(pu.into()))
                } else {
                    let text = format!("not placed: it may not run on CPU {pu}, its place");
                    (text, Placement::Unrestricted)
                };
                let reason = Reason {
                    considered: format!("{} places of program {number}", slot.threads),
                    chosen,
                    facts: Vec::new(),
                };
                decision.place(id, placement, reason);
            }
        }
        decision
    }
}

impl StaticMapping {
    /// Threads that are or once were active, by program.
    fn active_threads(&self, view: View<'_>) -> BTreeMap<ProgramId, BTreeSet<ThreadId>> {
        let seated = self.slots.iter().flat_map(|slot| slot.seats.keys());
        let seated: BTreeSet<ThreadId> = seated.copied().collect();
        let mut members: BTreeMap<ProgramId, BTreeSet<ThreadId>> = BTreeMap::new();
        for thread in view.observation.managed_threads() {
            let wants = view.observation.wanted_share(thread) >= self.active;
            if wants || seated.contains(&thread.id) {
                let program = members.entry(thread.id.program()).or_default();
                program.insert(thread.id);
            }
        }
        members
    }

    /// Removes programs that have ended from their slots, and puts new ones into the first free
    /// slots.
    fn assign_slots(&mut self, members: &BTreeMap<ProgramId, BTreeSet<ThreadId>>) {
        let mut taken: BTreeMap<ProgramId, usize> = BTreeMap::new();
        let mut free: VecDeque<usize> = VecDeque::new();
        for (at, slot) in self.slots.iter_mut().enumerate() {
            slot.program = slot.program.filter(|program| members.contains_key(program));
            match slot.program {
                Some(program) => {
                    taken.insert(program, at);
                }
                None => free.push_back(at),
            }
        }
        for (&program, threads) in members {
            let at = taken.get(&program).copied();
            let at = at.or_else(|| free.pop_front()).unwrap_or(self.slots.len());
            if at == self.slots.len() {
                self.slots.push(ProgramSlot::default());
            }
            self.slots[at].program = Some(program);
            self.slots[at].threads = self.slots[at].threads.max(threads.len());
        }
    }
}

impl ProgramSlot {
    /// Gives every thread a CPU. A thread that has one of `free` keeps it.
    fn assign_threads(&mut self, threads: Vec<ThreadId>, mut free: Vec<PuId>) {
        let mut seats = BTreeMap::new();
        let mut later = Vec::new();
        for id in threads {
            let had = self.seats.get(&id);
            match had.and_then(|had| free.iter().position(|pu| pu == had)) {
                Some(at) => {
                    seats.insert(id, free.remove(at));
                }
                None => later.push(id),
            }
        }
        seats.extend(later.into_iter().zip(free));
        self.seats = seats;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{observation_with_activity, opened};
    use crate::topology::{CoreType, PuFacts};
    use rand::SeedableRng;

    fn policy(text: &str) -> Box<dyn Policy> {
        opened(&chip(), text)
    }

    /// Two domains of two cores of one CPU.
    fn chip() -> Topology {
        let facts = (0..4).map(|pu| PuFacts {
            pu: PuId(pu),
            package: 0,
            node: 0,
            core: pu,
            llc: pu / 2,
            l2: None,
            core_type: 0,
        });
        Topology::new(facts.collect(), vec![CoreType::uniform()]).unwrap()
    }

    /// Decides with threads given as (program, thread, share of a CPU); returns the CPU of each
    /// that has one.
    fn decide(policy: &mut dyn Policy, threads: &[(u32, u32, f64)]) -> Vec<(u32, String)> {
        let topology = chip();
        let alike: Vec<_> = threads
            .iter()
            .map(|&(_, tid, share)| (tid, 0.0, share))
            .collect();
        let mut observation = observation_with_activity(&topology, &alike);
        for thread in &mut observation.threads {
            let owner = threads.iter().find(|t| t.1 == thread.id.tid).unwrap();
            thread.id.pid = owner.0;
        }
        observation.threads.sort_by_key(|t| t.id);
        let view = View {
            topology: &topology,
            observation: &observation,
        };
        let decision = policy.decide(view, &mut PolicyRng::seed_from_u64(0));
        let shown = |(id, p): (&ThreadId, &Placement)| (id.tid, p.to_string());
        decision.placements.iter().map(shown).collect()
    }

    fn pus(given: &[(u32, String)]) -> Vec<&str> {
        given
            .iter()
            .map(|(_, pu)| pu.trim_start_matches("CPU "))
            .collect()
    }

    const PAIR: [(u32, u32, f64); 4] = [(1, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0), (2, 4, 1.0)];

    #[test]
    fn programs_are_held_in_the_mapping_asked_for() {
        let of = |text: &str| decide(&mut *policy(text), &PAIR);
        assert_eq!(pus(&of("mapping:map=iso")), ["0", "1", "2", "3"]);
        assert_eq!(pus(&of("mapping:map=int")), ["0", "2", "1", "3"]);
        assert_eq!(of("mapping"), of("mapping:map=iso"));
    }

    #[test]
    fn named_pus_are_given_and_must_exist() {
        let of = |text: &str| decide(&mut *policy(text), &PAIR);
        assert_eq!(pus(&of("mapping:map=3.1/0")), ["3", "1", "0", "0"]);
        let offers = [(Signal::CpuTime, Tier::Proc)].into_iter().collect();
        let elsewhere = "mapping:map=0/4".parse().unwrap();
        let error = crate::policies::open(&chip(), &offers, &elsewhere).err();
        let expected = "policy mapping cannot use CPU 4, which is not here; here are 0-3";
        assert_eq!(error.unwrap().to_string(), expected);
    }

    #[test]
    fn sleeping_thread_keeps_its_place() {
        let mut policy = policy("mapping:map=iso");
        let first = decide(&mut *policy, &PAIR);
        let asleep = PAIR.map(|(program, thread, _)| (program, thread, 0.0));
        assert_eq!(decide(&mut *policy, &asleep), first);
    }

    #[test]
    fn restarted_program_finds_its_places() {
        let mut policy = policy("mapping:map=iso");
        decide(&mut *policy, &PAIR);
        let gap = decide(&mut *policy, &PAIR[2..]);
        assert_eq!(pus(&gap), ["2", "3"]);
        let again = [(9, 8, 1.0), (9, 9, 1.0), PAIR[2], PAIR[3]];
        assert_eq!(pus(&decide(&mut *policy, &again)), ["2", "3", "0", "1"]);
    }

    #[test]
    fn threads_that_were_never_active_are_not_placed() {
        let threads = [PAIR[0], (1, 2, 0.01)];
        let given = decide(&mut *policy("mapping:map=spr"), &threads);
        assert_eq!(given.len(), 1);
    }
}
