//! Programs cut into frames that are shorter than a quantum.
//!
//! A profile says which share of its instructions a program executes serially, and the simulated
//! program begins every pass through its phases with its serial section. Profiles of one long
//! phase so have one serial section of half a minute and more, where the programs that they
//! describe go through a short one in each of hundreds of frames, iterations or queries. Who
//! measures for one quantum must see both parts.
//!
//! Burstiness is left out: its draws last longer than a frame, so that at the end of each frame all
//! threads would wait for the one with the worst draw, of which no profile says anything. With it,
//! programs that scale nearly linearly lose a tenth of their speed on eight cores.

use consort_sim::program::{PhaseSpec, ProgramSpec};

/// Length of a frame, 10⁹ instructions of one thread: about a tenth of a second on a core, of which
/// a quantum of 2 s holds ten and more.
const FRAME_GINSTR: f64 = 0.1;

/// The same program with all its phases gone through once per frame, in the same proportions, and
/// without burstiness.
pub fn cut_into_frames(program: &ProgramSpec) -> ProgramSpec {
    let whole: f64 = program.phases.iter().map(|phase| phase.length_ginstr).sum();
    let factor = (FRAME_GINSTR / whole).min(1.0);
    let cut = |phase: &PhaseSpec| PhaseSpec {
        length_ginstr: phase.length_ginstr * factor,
        ..phase.clone()
    };
    ProgramSpec {
        phases: program.phases.iter().map(cut).collect(),
        burstiness: None,
        ..program.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::alone::measure_alone;
    use super::super::super::testing::{chip, program};
    use super::*;
    use consort_sim::workload::ProgramInstance;
    use std::sync::Arc;

    fn whole(spec: &ProgramSpec) -> f64 {
        spec.phases.iter().map(|phase| phase.length_ginstr).sum()
    }

    #[test]
    fn phases_keep_their_proportions() {
        let before = program("mcf");
        let after = cut_into_frames(&before);
        let factor = whole(&after) / whole(&before);
        assert!(factor < 1.0);
        for (a, b) in before.phases.iter().zip(&after.phases) {
            assert!((a.length_ginstr * factor / b.length_ginstr - 1.0).abs() < 1e-9);
        }
        let again = cut_into_frames(&after);
        assert!((whole(&again) / whole(&after) - 1.0).abs() < 1e-9);
    }

    /// The work takes as long, whether its serial part comes at once or in pieces.
    #[test]
    fn a_program_in_frames_is_as_fast_alone() {
        let speed = |spec: ProgramSpec| {
            let instance = ProgramInstance {
                name: spec.name.clone(),
                program: Arc::new(spec),
                threads: 8,
                start_ms: 0.0,
            };
            let work = measure_alone(&chip("xeon-e5320"), &instance, 2.0, 1).unwrap();
            work.instructions / work.alone_s
        };
        for name in ["bodytrack", "canneal", "x264", "swaptions"] {
            let spec = program(name);
            let ratio = speed(cut_into_frames(&spec)) / speed(ProgramSpec::clone(&spec));
            assert!((ratio - 1.0).abs() < 0.05, "{name} {ratio}");
        }
    }
}
