//! Loss of a branch predictor's training while other programs use it in turns, and cost of
//! relearning.
//!
//! A predictor of N entries (two-bit counters) is trained by every branch, one entry each, as if
//! at random: a turn of n branches leaves `e^(−n/N)` of it as it was. So after strangers' turns a
//! share f of what a program had learnt is overwritten, and in a turn of n branches of its own f
//! falls to `f·e^(−n/N)`. With a share v overwritten it mispredicts `(1−v)^(−x)` times as often as
//! with all of its storage, x the capacity exponent of its profile, the law by which threads that
//! use a predictor at the same time disturb each other. Summed over the turn, its m
//! mispredictions per branch become more by
//!
//! `N·m·(G(f) − G(f·e^(−n/N)))`,  `G(f) = ∫₀^f ((1−v)^(−x) − 1)/v dv = Σ_k x(x+1)…(x+k−1)/k! · f^k/k`.
//!
//! The cost is small for turns of milliseconds and grows with the rate of switches, as measured by
//! Evers, Chang and Patt (ISCA 1996) and Co and Skadron (ISPASS 2001). Siblings train for each
//! other; copies of one binary do not, as in `contention/solve/predictors.rs`. A turn's cost is paid at the beginning of the thread's next turn.
//!
//! Pitfalls: a thread that comes to a CPU for the first time finds its predictor as trained as the
//! one that it left. A predictor is taken as its CPU's own here; what runs on a core's other CPUs
//! meanwhile is up to the solver.

use super::thread::SimulatedThread;
use crate::chip::Chip;
use crate::math::exp;

/// Two-bit counters per KiB.
const ENTRIES_PER_KIB: f64 = 4096.0;
/// Terms of G; what is left out is less than 0.02 of the sum's scale for exponents up to 0.2.
const TERMS: u32 = 32;

/// Share of each program's training in one predictor that others have overwritten.
#[derive(Clone, Debug, Default)]
pub(crate) struct OverwrittenTraining(Vec<(u32, f64)>);

/// A thread's turn on a CPU as its predictor sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PredictorTurn {
    /// Number of the program.
    pub(crate) program: u32,
    pub(crate) branches: f64,
    /// Mispredictions per branch with the predictor to itself, or its part of it.
    pub(crate) missed: f64,
    /// Capacity exponent of the profile.
    pub(crate) exponent: f64,
}

impl OverwrittenTraining {
    /// Notes a turn on a predictor of so many entries; returns its additional mispredictions
    /// because of what had been overwritten before it.
    pub(crate) fn note(&mut self, turn: &PredictorTurn, entries: f64) -> f64 {
        let known = self
            .0
            .iter()
            .position(|(program, _)| *program == turn.program);
        let own = known.unwrap_or_else(|| {
            self.0.push((turn.program, 0.0));
            self.0.len() - 1
        });
        if self.0.len() == 1 {
            return 0.0;
        }
        let left = exp(-turn.branches / entries);
        let before = self.0[own].1;
        for (program, overwritten) in &mut self.0 {
            *overwritten = if *program == turn.program {
                *overwritten * left
            } else {
                1.0 - (1.0 - *overwritten) * left
            };
        }
        let lost = relearn_sum(turn.exponent, before) - relearn_sum(turn.exponent, before * left);
        let predicted = turn.branches * (1.0 - turn.missed).max(0.0);
        (entries * turn.missed * lost).clamp(0.0, predicted)
    }
}

/// G of the module's description.
fn relearn_sum(exponent: f64, overwritten: f64) -> f64 {
    if overwritten <= 0.0 {
        return 0.0;
    }
    let (mut factor, mut total) = (1.0, 0.0);
    for k in 1..=TERMS {
        let k = f64::from(k);
        factor *= (exponent + k - 1.0) / k * overwritten;
        let longer = total + factor / k;
        // Terms only shrink, by k·(k + x)/(k + 1)² at least, for exponents x up to 2, the largest
        // that a description may have. So no term after one that is lost in rounding changes the
        // sum.
        if longer == total {
            break;
        }
        total = longer;
    }
    total
}

/// Ends a turn that began after `since` branches: counts the mispredictions because of overwritten
/// training, and adds their time to the thread's debt.
pub(crate) fn relearn(
    thread: &mut SimulatedThread,
    chip: &Chip,
    since: f64,
    overwritten: &mut OverwrittenTraining,
) {
    let phase = &thread.demand.phase.spec;
    let Some(pu) = thread.caches.warm_at.filter(|_| phase.mix.branch > 0.0) else {
        return;
    };
    let turn = PredictorTurn {
        program: thread.demand.program,
        branches: thread.counters.branches() - since,
        missed: thread.rates.flow.branch_misses / phase.mix.branch,
        exponent: phase.branch.capacity_exponent,
    };
    let core = chip.core_spec(chip.places()[pu]);
    let entries = core.branch_predictor.size_kib * ENTRIES_PER_KIB;
    let more = overwritten.note(&turn, entries);
    if more > 0.0 {
        let cycles = more * thread.rates.stack.branch / thread.rates.flow.branch_misses;
        thread.counters.recent.flow.branch_misses += more;
        thread.counters.recent.relearn_cycles += cycles;
        thread.clock.relearn_s += cycles / thread.clock.hz;
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{engine, instances, program};
    use super::super::{Engine, RunMode};
    use super::*;
    use crate::program::ProgramSpec;
    use consort_core::PuId;
    use proptest::prelude::*;

    const ENTRIES: f64 = 32768.0;

    fn turn(program: u32, branches: f64) -> PredictorTurn {
        PredictorTurn {
            program,
            branches,
            missed: 0.05,
            exponent: 0.2,
        }
    }

    /// Mispredictions more of program 0 in a turn after the turns of others.
    fn after(turns: &[PredictorTurn], branches: f64) -> f64 {
        let mut predictor = OverwrittenTraining::default();
        predictor.note(&turn(0, 1e9), ENTRIES);
        for turn in turns {
            predictor.note(turn, ENTRIES);
        }
        predictor.note(&turn(0, branches), ENTRIES)
    }

    #[test]
    fn full_relearning_follows_capacity_law() {
        // ∫₀¹ ((1−v)^(−0.2) − 1)/v dv = ψ(1) − ψ(0.8) = 0.3878 (Abramowitz and Stegun, 6.3.22).
        let expected = 0.3878 * ENTRIES * 0.05;
        let more = after(&[turn(1, 1e9)], 1e9);
        assert!(
            (0.94..1.0).contains(&(more / expected)),
            "{more} {expected}"
        );
    }

    #[test]
    fn short_turns_relearn_in_parts() {
        let all = after(&[turn(1, 1e9)], 1e9);
        let mut predictor = OverwrittenTraining::default();
        predictor.note(&turn(0, 1.0), ENTRIES);
        predictor.note(&turn(1, 1e9), ENTRIES);
        let parts: f64 = (0..400)
            .map(|_| predictor.note(&turn(0, 1000.0), ENTRIES))
            .sum();
        assert!((parts / all - 1.0).abs() < 1e-3, "{parts} {all}");
        assert!(after(&[turn(1, 1e9)], 1000.0) < 0.1 * all);
    }

    proptest! {
        #[test]
        fn strangers_add_mispredictions(
            turns in prop::collection::vec((1u32..5, 0.0f64..1e6), 0..6),
            more in (1u32..9, 0.0f64..1e6),
            own in 0.0f64..1e6,
        ) {
            let mut turns: Vec<_> = turns.into_iter().map(|(t, b)| turn(t, b)).collect();
            let few = after(&turns, own);
            turns.push(turn(more.0, more.1));
            let many = after(&turns, own);
            prop_assert!(few >= 0.0 && many >= few * (1.0 - 1e-9) - 1e-9);
            prop_assert!(many <= own);
        }

        #[test]
        fn turns_of_siblings_cost_nothing(
            branches in prop::collection::vec(0.0f64..1e6, 1..8),
        ) {
            let siblings: Vec<_> = branches.iter().map(|&b| turn(0, b)).collect();
            prop_assert_eq!(after(&siblings, 1e5), 0.0);
        }
    }

    fn branchy(mpki: f64) -> ProgramSpec {
        let mut spec = program();
        spec.phases[0].branch.mpki = mpki;
        spec
    }

    /// Two threads in turns on one CPU, after 80 ms: siblings, or of two programs.
    fn on_one_pu(siblings: bool) -> Engine {
        let spec = branchy(5.0);
        let work = match siblings {
            true => instances(&spec, 1, 2, 1.0),
            false => instances(&spec, 2, 1, 1.0),
        };
        let mut e = engine("linux", RunMode::Once, &work, 1);
        for t in 0..2 {
            e.restrict(t, [PuId(0)].into_iter().collect());
        }
        e.enforce_masks();
        e.run_until(80_000_000_000);
        e
    }

    #[test]
    fn copies_mispredict_more_than_siblings() {
        let missed = |e: &Engine| {
            let counts = e.threads()[0].counters.total();
            assert!(counts.context_switches > 5 && counts.instructions > 0.0);
            (
                counts.flow.branch_misses / counts.instructions,
                counts.relearn_cycles,
            )
        };
        let ((with_sibling, none), (with_copy, cycles)) =
            (missed(&on_one_pu(true)), missed(&on_one_pu(false)));
        assert_eq!(none, 0.0);
        assert!(cycles > 0.0);
        assert!(
            (1.001..1.5).contains(&(with_copy / with_sibling)),
            "{with_copy} {with_sibling}"
        );
    }
}
