//! Behaviour of branches in predictors, alone and shared with strangers.
//!
//! *Curves.* A predictor that is given more storage can always be used as the smaller one, so more
//! storage never mispredicts more. A measured curve that rises shows a history length or a hash
//! that suits one size by chance, always to the disadvantage of a size, never to its advantage
//! beyond what larger ones can have as well. So it is read as its running minimum towards larger
//! sizes. A regression that averages neighbours would take such a fault for noise with mean 0.
//!
//! *Strangers.* What a program loses to a thread that shares its predictor depends on how often the
//! stranger inserts: a tagged predictor takes an entry from others for each of its mispredictions;
//! without tags every branch trains a counter, which does new harm where it was not there just
//! before. It also depends on what the program has to lose, which the profiler measures by letting
//! such insertions happen at random places of the model predictors.

use crate::math::{interpolate, pow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The predictor, in KiB, for which `branch.mpki` is given.
pub const REFERENCE_PREDICTOR_KIB: f64 = 32.0;

/// Sizes of predictors for which mispredictions are measured, KiB.
pub const PREDICTOR_KIB: [f64; 5] = [4.0, 8.0, 16.0, 32.0, 64.0];

/// Sizes of tables of targets for which mispredictions are measured.
pub const TARGET_ENTRIES: [f64; 6] = [64.0, 128.0, 256.0, 512.0, 1024.0, 4096.0];

/// Behaviour of branches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BranchSpec {
    /// Mispredictions per kilo-instruction with a predictor of [`REFERENCE_PREDICTOR_KIB`].
    pub mpki: f64,
    /// Growth of mispredictions as the predictor shrinks: mpki·(reference/size)^exponent.
    pub capacity_exponent: f64,
    /// Mispredictions per kilo-instruction of tagged predictors (TAGE) of each of
    /// [`PREDICTOR_KIB`], where they were measured; they come before the law. Where a larger one
    /// mispredicts more, it is read as if it mispredicted as much as the smaller one.
    #[serde(default)]
    pub tagged_mpki: Option<[f64; PREDICTOR_KIB.len()]>,
    /// The same next to a stranger that inserts an entry for every 16 branches of the program;
    /// where it is missing, by how much sooner the program's own entries are replaced:
    /// mpki·(1 + stranger's/own insertions)^`capacity_exponent`.
    #[serde(default)]
    pub tagged_shared_mpki: Option<[f64; PREDICTOR_KIB.len()]>,
    /// The same of predictors by global history without tags (gshare), which have no history for
    /// targets; used on cores that have such predictors.
    #[serde(default)]
    pub gshare_mpki: Option<[f64; PREDICTOR_KIB.len()]>,
    /// The same next to a stranger that trains a counter for every four branches of the program;
    /// where it is missing, as for tagged predictors.
    #[serde(default)]
    pub gshare_shared_mpki: Option<[f64; PREDICTOR_KIB.len()]>,
    /// Counters of a predictor without tags that the program trains anew per kilo-instruction: in
    /// each stretch of 4096 branches, every counter that it uses once. Where it is missing, the
    /// traced programs' mean share of branches.
    #[serde(default)]
    pub renewed_pki: Option<f64>,
    /// Mispredictions per kilo-instruction of indirect branches whose targets are kept by address
    /// in tables of each of [`TARGET_ENTRIES`], where they were measured. The mispredictions above
    /// are those with the largest.
    #[serde(default)]
    pub target_mpki: Option<[f64; TARGET_ENTRIES.len()]>,
    /// Resolution of branches that tagged predictors mispredict; where it is missing, the traced
    /// programs' mean.
    #[serde(default)]
    pub resolution: Option<ResolutionSpec>,
    /// The same where branches are predicted by global history without tags; `resolution` where it
    /// is missing.
    #[serde(default)]
    pub gshare_resolution: Option<ResolutionSpec>,
}

/// Resolution of mispredicted branches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResolutionSpec {
    /// Cycles from dispatch to result on a core that dispatches four operations per cycle, has a
    /// window of 128 instructions and finds all data in the L1.
    pub cycles: f64,
    /// Share of them that is over before the branch is dispatched where dispatch is half as wide,
    /// 0 to 1.
    pub absorbed: f64,
    /// The same where it is a quarter as wide; where it is missing, as much of what is left at half
    /// the width.
    #[serde(default)]
    pub absorbed_slow: Option<f64>,
    /// Loads that miss an L1D of 32 KiB for whose data a mispredicted branch waits after its
    /// dispatch; where it is missing, as many as are on the longest chain in that time.
    #[serde(default)]
    pub misses: Option<f64>,
}

/// Insertions of a stranger per branch of the program with which mispredictions in shared
/// predictors are measured, with tags and without.
const MEASURED_STRANGERS: [f64; 2] = [1.0 / 16.0, 1.0 / 4.0];
/// Share by which each further stranger as busy as that costs less, because it also replaces what
/// strangers inserted: in the model predictors of the traced programs, four times the insertions
/// cost 2.9 times as much and 16 times the insertions 5.2 times as much (means of 8 and 32 KiB).
const STRANGERS_MEET: f64 = 0.15;
/// Mean of the traced programs: counters trained anew, in stretches of 4096 branches, per branch.
const RENEWED_SHARE: f64 = 0.115;

impl BranchSpec {
    /// Mispredictions per kilo-instruction of a predictor of `kib` KiB, `tagged` (TAGE) or not, in
    /// which strangers insert so many entries for each branch of the program, of whose instructions
    /// the share `branches` are. More storage never mispredicts more, more strangers never less.
    pub fn shared_mpki(&self, tagged: bool, kib: f64, strangers: f64, branches: f64) -> f64 {
        let kib = kib.max(1e-3);
        let (alone, shared) = match tagged {
            true => (self.tagged_mpki, self.tagged_shared_mpki),
            false => (self.gshare_mpki, self.gshare_shared_mpki),
        };
        if let (Some(alone), Some(shared)) = (alone, shared) {
            let busy = strangers.max(0.0) / MEASURED_STRANGERS[usize::from(!tagged)];
            let weight = busy * (1.0 + STRANGERS_MEET) / (1.0 + STRANGERS_MEET * busy);
            let (alone, shared) = (running_minimum(alone), running_minimum(shared));
            let points: [f64; PREDICTOR_KIB.len()] = core::array::from_fn(|at| {
                let lost = (shared[at] - alone[at]).max(0.0);
                alone[at] + weight * lost
            });
            return interpolate(&PREDICTOR_KIB, &running_minimum(points), kib);
        }
        let mpki = match alone {
            Some(points) => interpolate(&PREDICTOR_KIB, &running_minimum(points), kib),
            None => self.mpki * pow(REFERENCE_PREDICTOR_KIB / kib, self.capacity_exponent),
        };
        let own = match tagged {
            true => mpki / 1000.0,
            false => self.renewed(branches),
        };
        if strangers <= 0.0 || own <= 0.0 {
            return mpki;
        }
        // An exponent beyond 1 would let a larger predictor lose more than it gains.
        let sooner = 1.0 + strangers * branches / own;
        mpki * pow(sooner, self.capacity_exponent.min(1.0))
    }

    /// Counters of a predictor without tags that the program trains anew per instruction,
    /// if the share `branches` of the instructions are branches.
    pub fn renewed(&self, branches: f64) -> f64 {
        let renewed = self.renewed_pki.map(|renewed| renewed / 1000.0);
        renewed.unwrap_or(RENEWED_SHARE * branches)
    }
}

/// The least of the points up to each.
fn running_minimum<const N: usize>(mut points: [f64; N]) -> [f64; N] {
    for at in 1..N {
        points[at] = points[at].min(points[at - 1]);
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn law(mpki: f64, capacity_exponent: f64) -> BranchSpec {
        BranchSpec {
            mpki,
            capacity_exponent,
            tagged_mpki: None,
            tagged_shared_mpki: None,
            gshare_mpki: None,
            gshare_shared_mpki: None,
            renewed_pki: None,
            target_mpki: None,
            resolution: None,
            gshare_resolution: None,
        }
    }

    #[test]
    fn rising_curve_is_read_as_its_running_minimum() {
        // Repeated irregular signs in a model predictor that folds histories to an even width.
        let spec = BranchSpec {
            tagged_mpki: Some([12.0, 4.0, 11.0, 0.5, 11.0]),
            ..law(0.5, 0.3)
        };
        let at = |kib| spec.shared_mpki(true, kib, 0.0, 0.15);
        assert_eq!(
            [4.0, 8.0, 16.0, 32.0, 64.0].map(at),
            [12.0, 4.0, 4.0, 0.5, 0.5]
        );
    }

    #[test]
    fn program_whose_entries_nobody_takes_loses_nothing() {
        let points = Some([5.0, 4.0, 3.0, 3.0, 3.0]);
        let spec = BranchSpec {
            tagged_mpki: points,
            tagged_shared_mpki: points,
            ..law(3.0, 0.3)
        };
        assert_eq!(spec.shared_mpki(true, 32.0, 0.5, 0.15), 3.0);
        // As with a law by which no storage would save anything.
        assert_eq!(law(3.0, 0.0).shared_mpki(false, 32.0, 0.5, 0.15), 3.0);
    }

    #[test]
    fn measured_stranger_costs_what_was_measured() {
        let spec = BranchSpec {
            gshare_mpki: Some([6.0, 5.0, 4.0, 3.0, 2.0]),
            gshare_shared_mpki: Some([9.0, 8.0, 6.0, 4.0, 2.5]),
            ..law(3.0, 0.3)
        };
        assert_eq!(spec.shared_mpki(false, 8.0, 0.25, 0.15), 8.0);
        assert!(spec.shared_mpki(false, 8.0, 0.125, 0.15) > 6.4);
        assert!(spec.shared_mpki(false, 8.0, 0.5, 0.15) < 11.0);
    }

    fn points() -> impl Strategy<Value = Option<[f64; PREDICTOR_KIB.len()]>> {
        prop::option::of(prop::array::uniform5(0.0f64..60.0))
    }

    fn specs() -> impl Strategy<Value = BranchSpec> {
        let renewed = prop::option::of(0.0f64..100.0);
        (
            0.0f64..60.0,
            0.0f64..2.0,
            prop::array::uniform4(points()),
            renewed,
        )
            .prop_map(
                |(mpki, exponent, [tagged, tagged_shared, gshare, gshare_shared], renewed)| {
                    BranchSpec {
                        tagged_mpki: tagged,
                        tagged_shared_mpki: tagged_shared,
                        gshare_mpki: gshare,
                        gshare_shared_mpki: gshare_shared,
                        renewed_pki: renewed,
                        ..law(mpki, exponent)
                    }
                },
            )
    }

    proptest! {
        #[test]
        fn more_storage_never_mispredicts_more(
            spec in specs(),
            tagged: bool,
            kib in 1.0f64..100.0,
            more in 1.0f64..8.0,
            strangers in prop_oneof![Just(0.0), 0.0f64..2.0],
        ) {
            let at = |kib| spec.shared_mpki(tagged, kib, strangers, 0.15);
            prop_assert!(at(kib * more) <= at(kib) * (1.0 + 1e-12), "{} {}", at(kib), at(kib * more));
        }

        #[test]
        fn strangers_never_help(
            spec in specs(),
            tagged: bool,
            kib in 1.0f64..100.0,
            strangers in 0.0f64..2.0,
            more in 0.0f64..2.0,
        ) {
            let with = |strangers| spec.shared_mpki(tagged, kib, strangers, 0.15);
            prop_assert!(with(strangers) >= with(0.0));
            prop_assert!(with(strangers + more) >= with(strangers) * (1.0 - 1e-12));
        }
    }
}
