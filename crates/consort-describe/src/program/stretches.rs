//! Short stretches of execution, as long as buffers between fetch, dispatch and ports even out. A
//! limit that binds in some and another that binds in others take turns, which a mean over all hides.

use super::spec::{MixSpec, PhaseSpec, StretchSpec};

/// Medians of the 28 traced programs: deviation over the mean, from one stretch of 64 instructions to
/// another, of accesses to memory per operation, and of taken branches per instruction. The two
/// hardly go together (mean correlation -0.03).
const ACCESSES: f64 = 0.22;
const TAKEN: f64 = 0.31;
/// Share of a stretch's operations that are accesses and branches, at most, where it is derived.
const MOST: f64 = 0.9;

impl PhaseSpec {
    /// Returns its stretches: as measured; else four kinds, with more and fewer accesses and more
    /// and fewer branches than the mean, by as much as the traced programs' deviate.
    pub fn stretches_or_default(&self) -> Vec<StretchSpec> {
        if let Some(measured) = &self.stretches {
            return measured.clone();
        }
        let mix = &self.mix;
        let (accesses, branches) = (mix.load + mix.store, mix.branch);
        let more = accesses * ACCESSES + branches * TAKEN;
        let room = MOST - accesses - branches;
        let narrow = (room / more.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        let kinds = [(-1.0, -1.0), (1.0, -1.0), (-1.0, 1.0), (1.0, 1.0)];
        let factor = |sign: f64, deviation: f64| 1.0 + sign * narrow * deviation;
        let each = kinds.map(|(a, t)| self.stretch(factor(a, ACCESSES), factor(t, TAKEN)));
        each.to_vec()
    }

    /// A quarter of its stretches, with so many times the mean accesses and branches.
    fn stretch(&self, accesses: f64, branches: f64) -> StretchSpec {
        let mix = &self.mix;
        let (load, store) = (mix.load * accesses, mix.store * accesses);
        let branch = mix.branch * branches;
        let computing = mix.fp + mix.vector + mix.int;
        let left = 1.0 - load - store - branch;
        let part = |share: f64| {
            if computing > 0.0 {
                share / computing * left
            } else {
                0.0
            }
        };
        StretchSpec {
            share: 0.25,
            operations: self.operations(),
            taken: (self.taken_branches() * branches).min(1.0),
            mix: MixSpec {
                fp: part(mix.fp),
                vector: part(mix.vector),
                int: part(mix.int),
                load,
                store,
                branch,
            },
            multiply: 0.0,
            moves: 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::ProgramSpec;
    use proptest::prelude::*;

    fn phase(mix: MixSpec) -> PhaseSpec {
        let program = include_str!("../../tests/small/program.toml");
        let mut program: ProgramSpec = toml::from_str(program).unwrap();
        program.phases[0].mix = mix;
        program.phases.swap_remove(0)
    }

    proptest! {
        #[test]
        fn stretches_that_are_derived_have_the_mean_mix(
            shares in prop::array::uniform6(0.0f64..1.0),
        ) {
            let sum = shares.iter().sum::<f64>().max(1e-9);
            let [fp, vector, int, load, store, branch] = shares.map(|share| share / sum);
            let phase = phase(MixSpec { fp, vector, int, load, store, branch });
            let all = phase.stretches_or_default();
            let mean = |of: fn(&StretchSpec) -> f64| {
                all.iter().map(|each| each.share * of(each)).sum::<f64>()
            };
            let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
            prop_assert!(near(mean(|_| 1.0), 1.0));
            prop_assert!(near(mean(|s| s.mix.load), load) && near(mean(|s| s.mix.store), store));
            prop_assert!(near(mean(|s| s.mix.branch), branch) && near(mean(|s| s.mix.int), int));
            prop_assert!(near(mean(|s| s.taken), phase.taken_branches()));
            let least = |s: &StretchSpec| [s.mix.fp, s.mix.vector, s.mix.int, s.mix.load, s.taken];
            prop_assert!(all.iter().flat_map(least).all(|share| share >= 0.0));
        }
    }
}
