//! Estimated duration of runs on a host, before they are made.
//!
//! An estimate only, for shards of about one length: the same description gives the same shards on
//! every host, so nothing is measured. docs/sweeps.md has where the figures come from.

use super::error::SweepError;
use super::spec::SweepSpec;
use consort_experiment::{Contender, Experiment};

/// Host time per thread and quantum, s (docs/measurements/speed.md: 13 to 27 µs with 16 to 128
/// threads whose placement changes every quantum).
const PER_THREAD_AND_QUANTUM_S: f64 = 20e-6;
/// Time after which a thread has changed its rate even where no policy moves it, s.
const LONGEST_QUANTUM_S: f64 = 0.1;
/// Time of programs together over their time alone, each with a PU: about the middle of the
/// slowdowns of pairs on SMT cores.
const STRETCH: f64 = 1.5;
/// Duration of a study at the quick scale, s.
pub(super) const QUICK_STUDY_S: f64 = 3.0;

/// Estimated host time of one run on one worker, s.
pub(super) fn run_s(
    spec: &SweepSpec,
    experiment: &Experiment,
    contender: &Contender,
) -> Result<f64, SweepError> {
    let quantum_s = experiment
        .quantum_under(contender)?
        .as_secs_f64()
        .min(LONGEST_QUANTUM_S);
    let rate = spec
        .host_s_per_thread_s
        .unwrap_or(PER_THREAD_AND_QUANTUM_S / quantum_s);
    let threads: u32 = experiment.workload.entries.iter().map(|e| e.threads).sum();
    let threads = f64::from(threads);
    let pus = experiment.chip.topology().pus().len() as f64;
    let together_s = spec.alone_s * STRETCH * (threads / pus).max(1.0);
    Ok(rate * threads * together_s)
}
