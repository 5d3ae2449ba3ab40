//! `sampling`: a few random schedules are tried, and the best is kept for a while.
//!
//! Source: Snavely and Tullsen, "Symbiotic jobscheduling for a simultaneous multithreading
//! processor" (ASPLOS 2000): SOS, sample, optimise, symbios. Their best predictor of throughput is
//! the measured one, instructions per cycle over all threads, which is used here.
//!
//! Observes instructions, by default every 100 ms. Each sampled schedule runs for a quantum; then
//! the one with the most instructions stays until the next round of samples, or until threads
//! come or go.
//!
//! Pitfall: a schedule that happens to run while threads are in fast phases looks good.

use super::grouping::{GroupedThreads, leave_to_os, place_groups};
use crate::ids::ThreadId;
use crate::plan::{Decision, Fact, Reason};
use crate::policy::{ALL_USUAL, OptionInfo, Policy, PolicyInfo, PolicyRng, View};
use crate::signal::{Signal, Tier};
use rand::seq::SliceRandom;

#[doc(alias = "SOS")]
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "sampling",
    family: "symbiosis",
    source: "Snavely and Tullsen, ASPLOS 2000",
    needs: &[Signal::CpuTime, Signal::Instructions],
    uses: ALL_USUAL,
    tier_min: Tier::Counters,
    quantum_ms: 100,
    live: true,
    simulated: true,
    summary: "tries random schedules for a quantum each and keeps the one with most instructions",
    options: &[
        OptionInfo {
            name: "samples",
            default: "10",
            meaning: "schedules that are tried in a round (a number from 1)",
        },
        OptionInfo {
            name: "keep",
            default: "90",
            meaning: "quanta for which the best of a round is kept (a number from 1)",
        },
        OptionInfo {
            name: "active",
            default: "0.1",
            meaning: "threads below this share of one CPU are not placed (0 to 1)",
        },
    ],
    open: |_, _, options| {
        Ok(Box::new(SamplingPolicy {
            samples: options.count("samples")?,
            keep: options.count("keep")?,
            active: options.share("active")?,
            threads: Vec::new(),
            state: SamplingState::Idle,
            tried: 0,
            best: None,
        }))
    },
};

/// Threads by index into the members of [`GroupedThreads`], a group per core.
type CoreSchedule = Vec<Vec<usize>>;

struct SamplingPolicy {
    samples: u64,
    keep: u64,
    active: f64,
    /// Threads of the schedules.
    threads: Vec<ThreadId>,
    state: SamplingState,
    /// Schedules of this round that have run.
    tried: u64,
    /// The best of them, with its instructions per ns.
    best: Option<(f64, CoreSchedule)>,
}

/// Schedule that ran in the quantum that has just ended.
enum SamplingState {
    /// None of this policy.
    Idle,
    /// A sample.
    Trying(CoreSchedule),
    /// The best, for so many quanta to come.
    Keeping(u64),
}

impl Policy for SamplingPolicy {
    fn decide(&mut self, view: View<'_>, rng: &mut PolicyRng) -> Decision {
        let mut decision = Decision::default();
        let crew = GroupedThreads::new(view, self.active, view.topology.pus().len(), |thread| {
            self.threads.contains(&thread.id)
        });
        for (thread, why) in &crew.left {
            leave_to_os(thread, why, &mut decision);
        }
        let ids: Vec<ThreadId> = crew.members.iter().map(|t| t.id).collect();
        if self.threads != ids {
            // A schedule is of these threads only.
            self.threads = ids;
            self.state = SamplingState::Idle;
            (self.tried, self.best) = (0, None);
        }
        let members = crew.members.iter();
        let counts = members.filter_map(|t| t.sample.get(Signal::Instructions));
        let rate = counts.sum::<f64>() / view.observation.interval_ns.max(1) as f64;
        let schedule = self.next_schedule(rate, view.topology.cores().len(), rng);
        let rule = match self.state {
            SamplingState::Keeping(_) => "by the best schedule of the last round",
            _ => "by a schedule that is being tried",
        };
        let best = Fact {
            name: "best of the round".into(),
            value: self.best.as_ref().map_or(0.0, |(rate, _)| *rate),
            unit: "instructions/ns".into(),
        };
        place_groups(
            view.topology,
            &crew,
            &schedule,
            |_, _| true,
            &mut decision,
            |_, _| Reason {
                considered: format!("{} random schedules per round", self.samples),
                chosen: rule.to_owned(),
                facts: vec![best.clone()],
            },
        );
        decision
    }
}

impl SamplingPolicy {
    /// The schedule of the next quantum, after one in which `rate` instructions ran per ns.
    fn next_schedule(&mut self, rate: f64, cores: usize, rng: &mut PolicyRng) -> CoreSchedule {
        match std::mem::replace(&mut self.state, SamplingState::Idle) {
            SamplingState::Trying(schedule) => {
                self.tried += 1;
                if self.best.as_ref().is_none_or(|(best, _)| rate > *best) {
                    self.best = Some((rate, schedule));
                }
                if self.tried >= self.samples {
                    self.state = SamplingState::Keeping(self.keep - 1);
                }
            }
            SamplingState::Keeping(left) if left > 0 => {
                self.state = SamplingState::Keeping(left - 1);
            }
            SamplingState::Keeping(_) => (self.tried, self.best) = (0, None),
            SamplingState::Idle => {}
        }
        if let (SamplingState::Keeping(_), Some((_, best))) = (&self.state, &self.best) {
            return best.clone();
        }
        let schedule = draw_schedule(self.threads.len(), cores, rng);
        self.state = SamplingState::Trying(schedule.clone());
        schedule
    }
}

/// Divides threads among cores at random, as evenly as possible.
fn draw_schedule(threads: usize, cores: usize, rng: &mut PolicyRng) -> CoreSchedule {
    let mut deck: Vec<usize> = (0..threads).collect();
    deck.shuffle(rng);
    let mut groups = vec![Vec::new(); cores.min(threads)];
    for (place, thread) in deck.into_iter().enumerate() {
        groups[place % cores].push(thread);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Observation, Reading};
    use crate::testing::{INTERVAL_NS, observation, opened, thread_id};
    use crate::topology::Topology;
    use rand::SeedableRng;
    use std::collections::BTreeSet;

    /// Instructions depend on whether threads 1 and 2 share a core.
    fn seen(topology: &Topology, last: Option<&Decision>) -> Observation {
        let mut seen = observation(topology, &[(1, 0.0), (2, 0.0), (3, 0.0), (4, 0.0)]);
        let together = last.is_some_and(|last| shares_core(topology, last));
        let count = if together { 2e9 } else { 1e9 };
        for thread in &mut seen.threads {
            let reading = Reading::fully_counted(count, Tier::Counters, INTERVAL_NS);
            thread.sample.set(Signal::Instructions, reading);
        }
        seen
    }

    fn shares_core(topology: &Topology, decision: &Decision) -> bool {
        let core = |tid| {
            let place = decision.placements.get(&thread_id(tid))?;
            let crate::plan::Placement::Restricted(pus) = place else {
                return None;
            };
            topology.core_of(pus.first()?)
        };
        core(1) == core(2)
    }

    #[test]
    fn best_schedule_of_a_round_is_kept() {
        let topology = Topology::uniform(2, 2).unwrap();
        let mut policy = opened(&topology, "sampling:samples=12,keep=7");
        let mut rng = PolicyRng::seed_from_u64(3);
        let (mut last, mut together) = (None, Vec::new());
        for _ in 0..19 {
            let observation = seen(&topology, last.as_ref());
            let view = View {
                topology: &topology,
                observation: &observation,
            };
            let decision = policy.decide(view, &mut rng);
            together.push(shares_core(&topology, &decision));
            last = Some(decision);
        }
        let tried: BTreeSet<bool> = together[..12].iter().copied().collect();
        assert_eq!(tried.len(), 2, "both kinds were tried");
        assert_eq!(together[12..], [true; 7]);
    }

    #[test]
    fn a_deal_is_even_and_has_everybody_once() {
        let mut rng = PolicyRng::seed_from_u64(1);
        let groups = draw_schedule(7, 3, &mut rng);
        let mut all: Vec<usize> = groups.concat();
        all.sort_unstable();
        assert_eq!(all, (0..7).collect::<Vec<_>>());
        assert!(groups.iter().all(|group| (2..=3).contains(&group.len())));
        assert!(draw_schedule(0, 3, &mut rng).is_empty());
    }
}
