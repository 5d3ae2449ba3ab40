use crate::ids::{PuId, ThreadId};
use crate::model::{ComponentParameters, InterferenceModel, LevelParameters, Provenance};
use crate::plan::{Decision, Placement};
use crate::policies;
use crate::policy::{Policy, PolicyError, PolicyRng, PolicySpec, View};
use crate::sample::{Observation, Reading};
use crate::signal::{Signal, SignalOffers, Tier};
use crate::stack::CycleStack;
use crate::testing::{INTERVAL_NS, observation, thread_id};
use crate::topology::Topology;
use rand::SeedableRng;
use std::collections::BTreeMap;

const STACK: [&str; 2] = ["base", "memory"];
const MACHINE: &str = "test machine";

/// Threads disturb each other where they are alike, in memory far more than in base.
fn parameters() -> Vec<ComponentParameters> {
    let of = |delta| ComponentParameters {
        alpha: 0.0,
        beta: 1.0,
        gamma: 0.0,
        delta,
    };
    vec![of(0.2), of(1.0)]
}

fn model() -> InterferenceModel {
    let level = |ways| LevelParameters::new(ways, parameters()).unwrap();
    InterferenceModel {
        name: "test".to_owned(),
        machine: MACHINE.to_owned(),
        components: STACK.map(str::to_owned).to_vec(),
        levels: vec![level(2), level(4)],
        provenance: Provenance::default(),
    }
}

pub(super) fn offers(tier: Tier) -> SignalOffers {
    let signals = [
        Signal::CpuTime,
        Signal::CycleStack,
        Signal::Cycles,
        Signal::Instructions,
    ];
    let mut offers: SignalOffers = signals.into_iter().map(|signal| (signal, tier)).collect();
    offers.set_machine(MACHINE);
    offers.set_stack(STACK.map(Into::into).to_vec());
    offers
}

pub(super) fn spec(options: &str) -> PolicySpec {
    let mut spec: PolicySpec = format!("symbiotic:model=test.toml{options}")
        .parse()
        .unwrap();
    let content = || Ok::<_, std::convert::Infallible>(model().to_toml());
    spec.attach(|value| value.ends_with(".toml").then(content))
        .unwrap();
    spec
}

pub(super) fn policy(topology: &Topology, options: &str) -> Box<dyn Policy> {
    policies::open(topology, &offers(Tier::Counters), &spec(options)).unwrap()
}

/// A machine on which the model is the truth, and the threads that run on it.
pub(super) struct World {
    pub(super) topology: Topology,
    /// Memory share of each thread's stack alone.
    memory: Vec<f64>,
    at: Vec<PuId>,
    /// Logarithm, by core, of the ratio of the time that memory takes there to that elsewhere.
    pub(super) farther: Vec<f64>,
    rng: PolicyRng,
}

impl World {
    pub(super) fn new(cores: u32, ways: u32, memory: &[f64]) -> Self {
        let topology = Topology::uniform(cores, ways).unwrap();
        // Core by core, so that neighbours in the list share one.
        let core_count = topology.cores().len();
        let cores = topology.cores().iter();
        let pus: Vec<PuId> = cores.flat_map(|core| core.pus.clone()).collect();
        Self {
            topology,
            memory: memory.to_vec(),
            at: pus[..memory.len()].to_vec(),
            farther: vec![0.0; core_count],
            rng: PolicyRng::seed_from_u64(1),
        }
    }

    pub(super) fn core(&self, thread: usize) -> usize {
        self.topology.core_of(self.at[thread]).unwrap()
    }

    fn alone(&self, thread: usize) -> [f64; 2] {
        [1.0 - self.memory[thread], self.memory[thread]]
    }

    /// The stack in ST cycles, next to those on the core that are on other CPUs.
    fn together(&self, thread: usize) -> [f64; 2] {
        let others = (0..self.memory.len())
            .filter(|&i| self.core(i) == self.core(thread) && self.at[i] != self.at[thread]);
        let sum = others.fold([0.0; 2], |sum, i| {
            let stack = self.alone(i);
            [sum[0] + stack[0], sum[1] + stack[1]]
        });
        let mut out = [0.0; 2];
        LevelParameters::new(4, parameters())
            .unwrap()
            .predict_stack(&self.alone(thread), &sum, &mut out);
        out
    }

    fn slowdown(&self, thread: usize) -> f64 {
        self.together(thread).iter().sum()
    }

    fn observe(&self) -> Observation {
        let named: Vec<(u32, f64)> = (0..self.memory.len()).map(|i| (i as u32, 0.0)).collect();
        let mut seen = observation(&self.topology, &named);
        for (i, thread) in seen.threads.iter_mut().enumerate() {
            thread.last_pu = Some(self.at[i]);
            let amounts = STACK.into_iter().zip(self.together(i));
            thread.sample.stack = Some((CycleStack::from_amounts(amounts), Tier::Counters));
            let mut set = |signal, value| {
                thread.sample.set(
                    signal,
                    Reading::fully_counted(value, Tier::Counters, INTERVAL_NS),
                );
            };
            set(Signal::Cycles, 1e9);
            let farther = (self.memory[i] * self.farther[self.core(i)]).exp();
            set(Signal::Instructions, 1e9 / self.slowdown(i) / farther);
        }
        seen
    }

    /// One quantum: observe, decide, obey.
    pub(super) fn turn(&mut self, policy: &mut dyn Policy) -> Decision {
        let observation = self.observe();
        let view = View {
            topology: &self.topology,
            observation: &observation,
        };
        let decision = policy.decide(view, &mut self.rng);
        for (id, placement) in &decision.placements {
            if let Placement::Restricted(pus) = placement {
                self.at[id.tid as usize] = pus.first().unwrap();
            }
        }
        decision
    }

    fn core_mates(&self) -> BTreeMap<usize, Vec<usize>> {
        let mut mates: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        (0..self.memory.len()).for_each(|i| mates.entry(self.core(i)).or_default().push(i));
        mates
    }

    fn total(&self) -> f64 {
        (0..self.memory.len()).map(|i| self.slowdown(i)).sum()
    }
}

#[test]
fn threads_that_disturb_each_other_least_share_cores() {
    let mut world = World::new(2, 2, &[0.9, 0.8, 0.1, 0.2]);
    let before = world.total();
    let topology = world.topology.clone();
    let mut policy = policy(&topology, ",correction=false");
    let decision = world.turn(policy.as_mut());
    let mates: Vec<Vec<usize>> = world.core_mates().into_values().collect();
    // The products of shares are least where the largest meets the smallest.
    assert!(
        mates.contains(&vec![0, 2]) && mates.contains(&vec![1, 3]),
        "{mates:?}"
    );
    assert!(world.total() < before);
    let reason = &decision.report.threads[&thread_id(0)];
    assert!(
        reason.chosen.contains("next to thread-2"),
        "{}",
        reason.chosen
    );
    assert_eq!(reason.facts[0].unit, "x");
}

#[test]
fn nobody_moves_once_the_best_pairs_are_there() {
    let mut world = World::new(3, 2, &[0.9, 0.8, 0.1, 0.2, 0.5, 0.45]);
    let topology = world.topology.clone();
    let mut policy = policy(&topology, ",correction=false");
    world.turn(policy.as_mut());
    let settled = world.at.clone();
    for _ in 0..5 {
        world.turn(policy.as_mut());
        assert_eq!(world.at, settled);
    }
}

#[test]
fn threads_are_measured_alone_once_a_period() {
    let mut world = World::new(2, 2, &[0.9, 0.8, 0.1, 0.2]);
    let topology = world.topology.clone();
    let mut policy = policy(&topology, ",period=5,alone-ms=20");
    let probes: Vec<bool> = (0..16)
        .map(|_| {
            let decision = world.turn(policy.as_mut());
            if let Some(length) = decision.quantum_ns {
                assert_eq!(length, 40_000_000, "20 ms for each of the two of a core");
                let together = world.core_mates().into_values();
                let pus: Vec<Vec<PuId>> = together
                    .map(|core| core.iter().map(|&i| world.at[i]).collect())
                    .collect();
                assert!(
                    pus.iter().all(|core| core[0] == core[1]),
                    "in turns on one CPU"
                );
            }
            decision.quantum_ns.is_some()
        })
        .collect();
    let at: Vec<usize> = (0..16).filter(|&i| probes[i]).collect();
    assert_eq!(at, [1, 7, 13]);
}

#[test]
fn what_comes_out_differently_corrects_predictions() {
    // Thread 3 suffers beside thread 0 as no stack tells.
    let mut world = World::new(2, 2, &[0.9, 0.8, 0.2, 0.1]);
    let topology = world.topology.clone();
    let mut policy = policy(&topology, ",period=1000");
    let hurts = |world: &World| world.core(0) == world.core(3) && world.at[0] != world.at[3];
    let mut quanta_together = 0;
    for _ in 0..30 {
        let mut observation = world.observe();
        if hurts(&world) {
            quanta_together += 1;
            let reading = Reading::fully_counted(0.55e9, Tier::Counters, INTERVAL_NS);
            observation.threads[3]
                .sample
                .set(Signal::Instructions, reading);
        }
        let view = View {
            topology: &world.topology,
            observation: &observation,
        };
        let decision = policy.decide(view, &mut PolicyRng::seed_from_u64(1));
        for (id, placement) in &decision.placements {
            if let Placement::Restricted(pus) = placement {
                world.at[id.tid as usize] = pus.first().unwrap();
            }
        }
    }
    assert!(quanta_together > 0, "the model alone puts them together");
    assert!(!hurts(&world), "it has learnt better");
}

#[test]
fn fewer_threads_than_cores_are_kept_apart() {
    let mut world = World::new(4, 2, &[0.9, 0.8, 0.1]);
    let topology = world.topology.clone();
    let mut policy = policy(&topology, ",correction=false");
    world.turn(policy.as_mut());
    assert_eq!(world.core_mates().len(), 3);
}

#[test]
fn groups_of_four_use_the_model_for_four() {
    let memory = [0.9, 0.85, 0.8, 0.75, 0.1, 0.15, 0.2, 0.25];
    let mut world = World::new(2, 4, &memory);
    let before = world.total();
    let topology = world.topology.clone();
    let mut policy = policy(&topology, ",correction=false");
    world.turn(policy.as_mut());
    let heavy = |core: &Vec<usize>| core.iter().filter(|&&i| i < 4).count();
    let mates: Vec<Vec<usize>> = world.core_mates().into_values().collect();
    assert!(
        mates.iter().all(|core| core.len() == 4 && heavy(core) == 2),
        "{mates:?}"
    );
    assert!(world.total() < before);
}

#[test]
fn excess_threads_are_left_to_the_os() {
    let mut world = World::new(1, 2, &[0.9, 0.1]);
    world.memory.push(0.5);
    world.at.push(PuId(0));
    let topology = world.topology.clone();
    let mut policy = policy(&topology, ",correction=false");
    let decision = world.turn(policy.as_mut());
    let free = |placement: &&Placement| **placement == Placement::Unrestricted;
    assert_eq!(decision.placements.values().filter(free).count(), 1);
}

#[test]
fn useless_machines_are_refused() {
    let refusal = |topology: &Topology, offers: &SignalOffers, text: &str| -> String {
        let opened = policies::open(topology, offers, &spec(text));
        opened.err().unwrap().to_string()
    };
    let smt = Topology::uniform(2, 2).unwrap();
    let counted = offers(Tier::Counters);
    let lone = refusal(&Topology::uniform(4, 1).unwrap(), &counted, "");
    assert!(
        lone.ends_with("no CPUs share one here; use 'spread'"),
        "{lone}"
    );
    let estimated = refusal(&smt, &offers(Tier::Sampling), ",estimated=false");
    assert!(estimated.contains("none are counted here"), "{estimated}");
    let mut elsewhere = counted.clone();
    elsewhere.set_machine("another machine");
    let other = refusal(&smt, &elsewhere, "");
    assert!(
        other.contains("'test machine'") && other.contains("'another machine'"),
        "{other}"
    );
    let mut poorer = counted;
    poorer.set_stack(vec!["base".into()]);
    let stack = refusal(&smt, &poorer, "");
    assert!(
        stack.contains("[base, memory]") && stack.contains("[base]"),
        "{stack}"
    );
}

#[test]
fn models_that_are_not_there_are_named() {
    let error = |text: &str| -> PolicyError {
        let spec: PolicySpec = text.parse().unwrap();
        policies::check(&spec).unwrap_err()
    };
    let unknown = error("symbiotic:model=power8-papr").to_string();
    assert!(
        unknown.contains("did you mean 'power8-paper'?"),
        "{unknown}"
    );
    let unread = error("symbiotic:model=mine.toml").to_string();
    assert_eq!(unread, "option model=mine.toml: was not read");
}

#[test]
fn missing_stacks_leave_all_alone() {
    let world = World::new(2, 2, &[0.9, 0.8]);
    let mut seen = world.observe();
    seen.threads
        .iter_mut()
        .for_each(|thread| thread.sample.stack = None);
    let mut policy = policy(&world.topology, "");
    let view = View {
        topology: &world.topology,
        observation: &seen,
    };
    let decision = policy.decide(view, &mut PolicyRng::seed_from_u64(1));
    let ids: Vec<ThreadId> = decision.placements.keys().copied().collect();
    assert_eq!(ids.len(), 2);
    assert!(
        decision
            .placements
            .values()
            .all(|p| *p == Placement::Unrestricted)
    );
    assert!(decision.report.notes[0].contains("no cycle stack"));
}

#[test]
fn threads_stay_on_the_node_of_their_memory() {
    use crate::topology::{CoreType, PuFacts};
    let fact = |pu: u32| PuFacts {
        pu: PuId(pu),
        package: 0,
        node: pu / 4,
        core: pu / 2,
        llc: pu / 4,
        l2: None,
        core_type: 0,
    };
    let uniform = CoreType {
        name: "uniform".to_owned(),
        capacity: 1024,
        pipeline: None,
    };
    let topology = Topology::new((0..8).map(fact).collect(), vec![uniform]).unwrap();
    // Over all nodes 0 and 1 would each get one of 4 to 7.
    let memory = [0.9, 0.85, 0.8, 0.75, 0.1, 0.15, 0.2, 0.25];
    let nodes_kept = |options: &str| {
        let mut world = World::new(4, 2, &memory);
        world.topology = topology.clone();
        world.at = (0..8).map(PuId).collect();
        let mut policy = policy(&topology, options);
        (0..4).for_each(|_| drop(world.turn(policy.as_mut())));
        (0..8).all(|i| world.at[i].0 / 4 == i as u32 / 4)
    };
    assert!(nodes_kept(",correction=false"));
    assert!(!nodes_kept(",correction=false,numa=false"));
}

#[test]
fn compared_pairs_are_reported_with_their_costs() {
    let mut world = World::new(2, 2, &[0.9, 0.8, 0.1, 0.2]);
    let topology = world.topology.clone();
    let mut policy = policy(&topology, ",correction=false");
    let decision = world.turn(policy.as_mut());
    for id in decision.placements.keys() {
        let compared = &decision.report.alternatives[id];
        assert_eq!(compared.len(), 3, "{compared:?}");
        assert!(compared[0].is_chosen && !compared[1].is_chosen);
        assert!(compared[1].cost <= compared[2].cost, "{compared:?}");
        let predicted = compared[0].measure.contains("slowdowns");
        assert!(
            predicted && compared.iter().all(|a| a.cost >= 2.0),
            "{compared:?}"
        );
    }
    // The pairs of the least sum are chosen: the two choices cost no more than the two rival pairs.
    let cost = |at: usize| -> f64 {
        let all = decision.report.alternatives.values();
        all.map(|compared| compared[at].cost).sum()
    };
    assert!(cost(0) <= cost(1).max(cost(2)));
}
