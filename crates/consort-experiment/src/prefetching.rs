//! Effect of prefetching on a program's misses, by comparison with prefetchers switched off.
//!
//! The method of Wang et al., ISPASS 2012, Table III: the program alone, once as the machine is and
//! once with `prefetch=off`. Pitfall: both are per instruction, so the runs may differ in length;
//! what bursts do to misses differs between runs with unlike seeds.

use super::counters::ProgramCounters;
use serde::Serialize;

/// The effect of prefetchers on a program.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PrefetchingEffect {
    /// Share of the last level's demand misses that it removes, at most 1; negative when it adds
    /// misses.
    pub effectiveness: f64,
    /// Lines that it brings in vain, per demand miss without it: what a profile calls `excess`.
    pub excess: f64,
    /// Lines of data that come from memory in addition, demanded and prefetched, per line without
    /// it; more than `excess` where it adds misses.
    pub additional: f64,
    /// Its share of all memory transactions, 0 to 1.
    pub fraction: f64,
}

impl PrefetchingEffect {
    /// Compares a program's counters with and without prefetchers; none where it misses nothing
    /// without them.
    pub fn compare(with: &ProgramCounters, without: &ProgramCounters) -> Option<Self> {
        let per = |amount: f64, run: &ProgramCounters| amount / run.instructions;
        let base = per(without.memory.reads, without);
        // False, too, for what is no number.
        if !(base > 0.0 && with.instructions > 0.0) {
            return None;
        }
        let demanded = per(with.memory.reads, with) / base;
        let prefetched = per(with.memory.prefetches, with) / base;
        let effectiveness = 1.0 - demanded;
        Some(Self {
            effectiveness,
            excess: prefetched - effectiveness.max(0.0),
            additional: demanded + prefetched - 1.0,
            fraction: with.memory.prefetch_fraction().unwrap_or(0.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{chip, program};
    use super::*;
    use consort_sim::contention::{Demand, RunningThread, Solver};
    use consort_sim::engine::ThreadCounts;
    use consort_sim::phase::Phase;
    use std::sync::Arc;

    /// A program's first phase, one thread alone, for a billion instructions.
    fn alone(machine: &str, name: &str) -> ProgramCounters {
        let demand = Demand {
            phase: Arc::new(Phase::new(&program(name).phases[0])),
            intensity: 1.0,
            program: 0,
            text: 0,
            shared_data: 0.0,
            shared_code: 0.0,
            lock: None,
            home_node: 0,
        };
        let running = [RunningThread {
            pu: 0,
            demand: &demand,
        }];
        let rates = Solver::new(chip(machine)).solve(&running).threads[0];
        ProgramCounters::from(&ThreadCounts {
            instructions: 1.0,
            flow: rates.flow,
            ..ThreadCounts::default()
        })
    }

    #[test]
    fn what_is_measured_alone_is_what_the_profile_says() {
        for name in [
            "blackscholes",
            "bodytrack",
            "canneal",
            "facesim",
            "fluidanimate",
            "streamcluster",
            "swaptions",
            "vips",
            "x264",
        ] {
            let (with, without) = (
                alone("core2-q9550", name),
                alone("core2-q9550:prefetch=off", name),
            );
            let said = program(name).phases[0].prefetch;
            let Some(found) = PrefetchingEffect::compare(&with, &without) else {
                assert_eq!(without.memory.reads, 0.0, "{name}");
                continue;
            };
            assert_eq!(without.memory.prefetches, 0.0);
            assert!(
                (found.effectiveness - said.effectiveness).abs() < 1e-9,
                "{name} {found:?}"
            );
            assert!(
                (found.excess - said.excess).abs() < 1e-9,
                "{name} {found:?}"
            );
            let added = (-said.effectiveness).max(0.0);
            assert!(
                (found.additional - said.excess - added).abs() < 1e-9,
                "{name} {found:?}"
            );
        }
    }

    #[test]
    fn without_misses_there_is_nothing_to_compare() {
        let none = ProgramCounters::default();
        assert_eq!(PrefetchingEffect::compare(&none, &none), None);
    }
}
