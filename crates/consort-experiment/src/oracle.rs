//! `oracle`: the best pairing by what the simulation knows and no counter shows.
//!
//! It is not in the registry of policies, because it needs a simulated machine: an [`OracleMachine`]
//! wraps the machine and puts the threads' demands into [`SharedDemands`], which the oracle reads, while
//! policies of the registry get observations alone.
//!
//! Each quantum it knows the phase that every thread is in, solves every pair of threads on one
//! core, and takes the pairing of the least cost; for more than two per core the groups that
//! [`consort_core::matching::group_threads`] finds. Like `symbiotic` it leaves threads on the node of
//! their memory, or with `numa=false` pairs over the whole chip, as policies do that it is to bound.
//! It takes bursts at their mean, because the next one is drawn anew, and it ignores the load of
//! other cores on memory and the cost of moves. So it shows the worth of knowing the slowdowns of
//! all pairs, and is no bound for policies that see further.

use consort_core::matching::{self, GroupRoom, PairCosts};
use consort_core::plan::{Decision, Reason};
use consort_core::policies::SlowdownObjective;
use consort_core::policies::grouping::{
    FillDomain, GroupedThreads, HomeNodes, is_in_own_domain, leave_to_os, place_groups,
};
use consort_core::policy::{Policy, PolicyError, PolicyRng, View, Wishes};
use consort_core::{EnactmentReport, Machine, Observation, Plan, SignalOffers, ThreadId, Topology};
use consort_sim::chip::Chip;
use consort_sim::contention::{Demand, RunningThread, Solver};
use consort_sim::phase::Phase;
use consort_sim::{SimError, SimMachine};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// The contender's name.
pub(super) const NAME: &str = "oracle";
/// Its quantum, that of `symbiotic`, ms.
pub(super) const QUANTUM_MS: u64 = 100;

/// Swaps that the search for groups of more than two tries, per thread.
const SWAPS_PER_THREAD: usize = 50;
/// Share of a CPU from which a thread takes part, as for `symbiotic`.
const ACTIVE: f64 = 0.1;

/// Objective of an oracle, and the pairs that it chooses among.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OracleGoal {
    pub(super) objective: SlowdownObjective,
    /// True if threads stay on their nodes and pairs are made inside them.
    pub(super) numa: bool,
}

/// The goal that the options ask for.
pub(super) fn parse_goal(options: &BTreeMap<String, String>) -> Result<OracleGoal, PolicyError> {
    let mut goal = OracleGoal {
        objective: SlowdownObjective::Slowdown,
        numa: true,
    };
    for (key, word) in options {
        let wrong = |key, expected| PolicyError::BadValue {
            policy: NAME,
            key,
            value: word.clone(),
            expected,
        };
        match (key.as_str(), word.as_str()) {
            ("objective", _) => {
                let expected = "slowdown, throughput or fairness";
                let found = SlowdownObjective::from_name(word);
                goal.objective = found.ok_or_else(|| wrong("objective", expected))?;
            }
            ("numa", "true") => goal.numa = true,
            ("numa", "false") => goal.numa = false,
            ("numa", _) => return Err(wrong("numa", "true or false")),
            _ => {
                return Err(PolicyError::UnknownOption {
                    policy: NAME,
                    key: key.clone(),
                    known: "objective, numa".to_owned(),
                });
            }
        }
    }
    Ok(goal)
}

/// The scheduler that knows the truth.
pub(super) struct OraclePolicy {
    truth: SharedDemands,
    objective: SlowdownObjective,
    slowdowns: GroupSlowdowns,
    /// `None` if pairs are made over the whole chip.
    homes: Option<HomeNodes>,
}

impl OraclePolicy {
    pub(super) fn new(chip: &Arc<Chip>, truth: &SharedDemands, goal: OracleGoal) -> Self {
        Self {
            truth: truth.clone(),
            objective: goal.objective,
            slowdowns: GroupSlowdowns::new(chip),
            homes: goal.numa.then(HomeNodes::default),
        }
    }

    /// The groups of the least cost; threads that do not run now are of no weight.
    fn groups(&mut self, demands: &[Option<Demand>], cores: usize) -> Vec<Vec<usize>> {
        if demands.len() <= 2 * cores {
            self.pairs(demands, cores)
        } else {
            self.larger_groups(demands, cores)
        }
    }

    fn pairs(&mut self, demands: &[Option<Demand>], cores: usize) -> Vec<Vec<usize>> {
        let alone = vec![self.objective.cost(1.0); demands.len()];
        let costs = PairCosts::from_fn(demands.len(), |i, j| self.cost(demands, &[i, j]));
        let pairing = costs.and_then(|costs| matching::pairs(&costs, &alone, cores));
        let pairs = pairing.map(|pairing| pairing.pairs).unwrap_or_default();
        let group = |(first, second)| std::iter::once(first).chain(second).collect();
        pairs.into_iter().map(group).collect()
    }

    fn larger_groups(&mut self, demands: &[Option<Demand>], cores: usize) -> Vec<Vec<usize>> {
        let shape = GroupRoom {
            cores,
            ways: demands.len().div_ceil(cores.max(1)),
            swaps: SWAPS_PER_THREAD * demands.len(),
        };
        let found =
            matching::group_threads(demands.len(), shape, |group| self.cost(demands, group));
        found.map(|found| found.groups).unwrap_or_default()
    }

    fn cost(&mut self, demands: &[Option<Demand>], group: &[usize]) -> f64 {
        let running: Vec<&Demand> = group.iter().filter_map(|&i| demands[i].as_ref()).collect();
        let slowdowns = self.slowdowns.group_slowdowns(&running);
        let waiting = group.len() - running.len();
        let costs = slowdowns.iter().map(|&s| self.objective.cost(s));
        costs.sum::<f64>() + waiting as f64 * self.objective.cost(1.0)
    }
}

impl Policy for OraclePolicy {
    fn decide(&mut self, view: View<'_>, _: &mut PolicyRng) -> Decision {
        let mut decision = Decision::default();
        let crew = GroupedThreads::new(view, ACTIVE, view.topology.pus().len(), |_| false);
        for (thread, why) in &crew.left {
            leave_to_os(thread, why, &mut decision);
        }
        let domains = match &mut self.homes {
            Some(homes) => homes.divide_by_node(view.topology, &crew),
            None => vec![FillDomain::from_topology(view.topology, &crew)],
        };
        let mut groups = Vec::new();
        for domain in &domains {
            let id = |&i: &usize| crew.members[i].id;
            let demands = domain.members.iter().map(|i| self.truth.demand(id(i)));
            let demands: Vec<Option<Demand>> = demands.collect();
            let found = self.groups(&demands, domain.cores.len()).into_iter();
            let in_crew = |group: Vec<usize>| -> Vec<usize> {
                group.into_iter().map(|i| domain.members[i]).collect()
            };
            groups.extend(found.map(in_crew));
        }
        let wanted = |group: usize, core: usize| is_in_own_domain(&domains, &groups[group], core);
        place_groups(
            view.topology,
            &crew,
            &groups,
            wanted,
            &mut decision,
            |_, _| Reason {
                considered: "all groups, by the simulation's own truth".to_owned(),
                chosen: "of the groups with the least cost".to_owned(),
                facts: Vec::new(),
            },
        );
        decision
    }
}

/// Demand of every thread at the end of the last quantum.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedDemands(Rc<RefCell<BTreeMap<ThreadId, Demand>>>);

impl SharedDemands {
    pub(super) fn demand(&self, thread: ThreadId) -> Option<Demand> {
        self.0.borrow().get(&thread).cloned()
    }
}

/// A simulated machine that shares the demands of its threads with an oracle, if there is one.
pub(crate) struct OracleMachine {
    machine: SimMachine,
    truth: Option<SharedDemands>,
}

impl OracleMachine {
    pub(crate) fn new(machine: SimMachine, truth: Option<SharedDemands>) -> Self {
        Self { machine, truth }
    }

    /// The machine itself.
    pub(crate) fn inner(&self) -> &SimMachine {
        &self.machine
    }
}

impl Machine for OracleMachine {
    type Error = SimError;

    fn topology(&self) -> &Topology {
        self.machine.topology()
    }

    fn offers(&self) -> &SignalOffers {
        self.machine.offers()
    }

    fn grant_wishes(&mut self, wishes: Wishes) {
        self.machine.grant_wishes(wishes);
    }

    fn observe(&mut self) -> Result<Option<Observation>, SimError> {
        let seen = self.machine.observe()?;
        if let (Some(truth), Some(seen)) = (&self.truth, &seen) {
            let oracle = self.machine.oracle();
            let demand = |id| Some((id, oracle.demand(id)?.clone()));
            let threads = seen.threads.iter().map(|thread| thread.id);
            *truth.0.borrow_mut() = threads.filter_map(demand).collect();
        }
        Ok(seen)
    }

    fn enact(&mut self, plan: &Plan) -> Result<EnactmentReport, SimError> {
        self.machine.enact(plan)
    }
}

/// Solver of groups on the first of the cores with most CPUs.
pub struct GroupSlowdowns {
    solver: Solver,
    /// CPUs of the core.
    pus: Vec<usize>,
    /// Every phase that has been seen; its place is its number.
    phases: Vec<Arc<Phase>>,
    /// Instructions per second of the threads of a group, by what they do.
    known: BTreeMap<Vec<DemandKey>, Vec<f64>>,
}

/// Parts of a demand that decide: number of the phase, program, text, node of its memory.
type DemandKey = (usize, u32, u32, usize);

impl GroupSlowdowns {
    /// A solver that has seen nothing yet.
    pub fn new(chip: &Arc<Chip>) -> Self {
        let cores = chip.topology().cores();
        let widest = cores.iter().min_by_key(|core| Reverse(core.pus.len()));
        let pus = widest.map(|core| core.pus.iter().map(|pu| pu.0 as usize).collect());
        Self {
            solver: Solver::new(Arc::clone(chip)),
            pus: pus.unwrap_or_default(),
            phases: Vec::new(),
            known: BTreeMap::new(),
        }
    }

    /// The slowdown of each thread when these run on one core.
    pub fn group_slowdowns(&mut self, threads: &[&Demand]) -> Vec<f64> {
        let together = self.speeds(threads);
        let alone = threads.iter().map(|&thread| self.speeds(&[thread])[0]);
        let alone: Vec<f64> = alone.collect();
        alone
            .iter()
            .zip(together)
            .map(|(alone, with)| alone / with)
            .collect()
    }

    fn speeds(&mut self, threads: &[&Demand]) -> Vec<f64> {
        let key: Vec<DemandKey> = threads
            .iter()
            .map(|thread| self.demand_key(thread))
            .collect();
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        // Kept, because the same groups are solved again in later quanta.
        let speeds = self.solve(threads);
        self.known.insert(key, speeds.clone());
        speeds
    }

    fn solve(&self, threads: &[&Demand]) -> Vec<f64> {
        // Bursts count at their mean, because the intensity of the next one is drawn anew.
        let at_mean = |thread: &&Demand| Demand {
            intensity: 1.0,
            ..(*thread).clone()
        };
        let demands: Vec<Demand> = threads.iter().map(at_mean).collect();
        let running = self.pus.iter().zip(&demands);
        let running: Vec<RunningThread<'_>> = running
            .map(|(&pu, demand)| RunningThread { pu, demand })
            .collect();
        let solution = self.solver.solve(&running);
        let mut speeds: Vec<f64> = solution.threads.iter().map(|rates| rates.ips).collect();
        // A group of more threads than CPUs takes turns.
        let turns = threads.len() as f64 / running.len().max(1) as f64;
        speeds.iter_mut().for_each(|speed| *speed /= turns);
        speeds.resize(threads.len(), speeds.last().copied().unwrap_or(1.0));
        speeds
    }

    fn demand_key(&mut self, thread: &Demand) -> DemandKey {
        let known = self
            .phases
            .iter()
            .position(|phase| Arc::ptr_eq(phase, &thread.phase));
        let phase = known.unwrap_or(self.phases.len());
        if known.is_none() {
            self.phases.push(Arc::clone(&thread.phase));
        }
        (phase, thread.program, thread.text, thread.home_node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{chip, program};
    use crate::{Contender, ExperimentError};

    /// Demand of a program in its first phase.
    fn demand(name: &str, number: u32) -> Demand {
        Demand {
            phase: Arc::new(Phase::new(&program(name).phases[0])),
            intensity: 1.0,
            program: number,
            text: number,
            shared_data: 0.0,
            shared_code: 0.0,
            lock: None,
            home_node: 0,
        }
    }

    fn demands(names: &[&str]) -> Vec<Option<Demand>> {
        let numbered = names.iter().zip(0..);
        numbered
            .map(|(name, number)| Some(demand(name, number)))
            .collect()
    }

    fn oracle(machine: &str) -> OraclePolicy {
        OraclePolicy::new(
            &chip(machine),
            &SharedDemands::default(),
            OracleGoal {
                objective: SlowdownObjective::Slowdown,
                numa: true,
            },
        )
    }

    #[test]
    fn slowdowns_are_those_of_the_solver() {
        let chip = chip("power8:smt=2");
        let both = [demand("lbm", 0), demand("hmmer", 1)];
        let solver = Solver::new(Arc::clone(&chip));
        let running = |pu| RunningThread {
            pu,
            demand: &both[pu],
        };
        let together = solver.solve(&[running(0), running(1)]).threads;
        let expected: Vec<f64> = (0..2)
            .map(|i| {
                solver
                    .solve(&[RunningThread {
                        pu: 0,
                        demand: &both[i],
                    }])
                    .threads[0]
                    .ips
                    / together[i].ips
            })
            .collect();
        let found = GroupSlowdowns::new(&chip).group_slowdowns(&[&both[0], &both[1]]);
        assert_eq!(found, expected);
        assert!(found.iter().all(|slowdown| *slowdown > 1.0), "{found:?}");
    }

    #[test]
    fn no_pairing_costs_less() {
        let mut oracle = oracle("power8:smt=2");
        let demands = demands(&["lbm", "hmmer", "mcf", "povray"]);
        let mut cost = |pairs: &[[usize; 2]]| -> f64 {
            pairs.iter().map(|pair| oracle.cost(&demands, pair)).sum()
        };
        let all = [[[0, 1], [2, 3]], [[0, 2], [1, 3]], [[0, 3], [1, 2]]];
        let costs = all.map(|pairs| cost(&pairs));
        let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
        let groups = oracle.groups(&demands, 2);
        let chosen: f64 = groups
            .iter()
            .map(|group| oracle.cost(&demands, group))
            .sum();
        assert!(
            costs.iter().any(|c| *c > least * 1.01),
            "the choice matters: {costs:?}"
        );
        assert_eq!(chosen, least);
    }

    #[test]
    fn threads_are_kept_apart_while_there_are_cores() {
        let groups = oracle("power8:smt=2").groups(&demands(&["lbm", "hmmer", "mcf"]), 10);
        assert_eq!(groups, [[0], [1], [2]]);
        let four =
            oracle("power8:smt=4").groups(&demands(&["lbm", "hmmer", "mcf", "povray", "gcc"]), 2);
        assert_eq!(four.concat().len(), 5);
        assert!(four.iter().all(|group| group.len() <= 3));
    }

    #[test]
    fn options_are_checked_like_those_of_policies() {
        let error = |text: &str| -> ExperimentError { Contender::new(text, "linux").unwrap_err() };
        assert_eq!(
            error("oracle:model=x").to_string(),
            "policy oracle has no option 'model'; it has objective, numa"
        );
        assert_eq!(
            error("oracle:objective=speed").to_string(),
            "option objective=speed of policy oracle: expected slowdown, throughput or fairness"
        );
        assert!(Contender::new("oracle:objective=fairness", "linux").is_ok());
    }
}
