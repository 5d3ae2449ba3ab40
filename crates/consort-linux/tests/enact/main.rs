//! Enactment with real processes, without privileges: masks, the journal, the
//! guardian, restoration, launching, pausing.
//!
//! The guardian is started from `/proc/self/exe`, which is this program. So it
//! first looks whether it is asked to play a part (a guardian, an owner to be
//! killed, a busy program), and runs the tests only if not.
//!
//! `CONSORT_KILLS=200` sets the number of SIGKILLs in the tests that kill, `CONSORT_PAUSES=5000`
//! that of pauses.

use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;

#[cfg(test)]
mod cpusets;
#[cfg(test)]
mod guarding;
#[cfg(test)]
mod journals;
#[cfg(test)]
mod kills;
#[cfg(test)]
mod launching;
#[cfg(test)]
mod letting_go;
#[cfg(test)]
mod live_pausing;
#[cfg(test)]
mod nudging;
#[cfg(test)]
mod parts;
#[cfg(test)]
mod pausing;
#[path = "../skip/mod.rs"]
mod skip;
#[cfg(test)]
mod support;
#[cfg(test)]
mod turns;

fn main() -> ExitCode {
    if let Some(code) = parts::play() {
        return code;
    }
    let trials: Vec<Trial> = [
        cpusets::trials(),
        guarding::trials(),
        journals::trials(),
        kills::trials(),
        launching::trials(),
        letting_go::trials(),
        live_pausing::trials(),
        nudging::trials(),
        turns::trials(),
        pausing::trials(),
    ]
    .into_iter()
    .flatten()
    .collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
