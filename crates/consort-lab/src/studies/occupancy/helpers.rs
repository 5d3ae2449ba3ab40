//! The threads that a Java machine runs beside those of its program: compilers, collectors, timers.
//!
//! They sleep nearly always. That they wake every 50 ms, as HotSpot's periodic tasks do, and the
//! work that they do then are estimated; compiling at the beginning is left out.

use consort_experiment::AloneWork;
use consort_sim::describe::DescribeError;
use consort_sim::engine;
use consort_sim::program::{self, ProgramSpec};
use std::sync::Arc;

/// Number of them that wake at all; estimated.
pub(super) const COUNT: usize = 3;

/// Work of a helper: without end, since helpers serve the others and end with them.
pub(super) const WORK: AloneWork = AloneWork {
    instructions: engine::SimulatedProgram::ENDLESS,
    alone_s: 0.0,
};

/// Program of one helper.
///
/// # Errors
/// None: a test reads the description.
pub(super) fn program() -> Result<Arc<ProgramSpec>, DescribeError> {
    program::parse("helper.toml", include_str!("helper.toml")).map(Arc::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_helper_wakes_twenty_times_a_second() {
        let helper = program().unwrap();
        assert_eq!(helper.io.unwrap().blocked_us, 50_000.0);
    }
}
