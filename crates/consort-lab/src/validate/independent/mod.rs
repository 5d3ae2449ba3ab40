//! Checks against figures that went into no parameter.

mod forms;
mod occupancy;
mod programs;
mod solved;

use super::{GroupInputs, GroupOutput, GroupResult};
pub(super) use programs::{BY_MEMORY, scaling_checks};

pub(super) const NAME: &str = "independent";

const NOTES: [&str; 5] = [
    "MPPM (Van Craeynest and Eeckhout, IISWC 2011) states errors of 2.3 % STP and 2.9 % ANTT \
     against a detailed simulator of its own machine. No such comparison can be made here: it \
     needs a second simulator, or measured runs of several programs together on a described \
     chip, and no published figure at hand gives either. Neither number is claimed.",
    "The known forms are also tests of the solver, on the same generic core: they show that the \
     forms hold with their numbers, not that a given chip has those numbers.",
    "The bus ranks of PARSEC come from another publication than the bandwidths in nine of the \
     twelve programs, measured on another machine; both are measurements of the same programs.",
    "The published L2 misses of POWER7 are fewer than ours by factors that differ from program \
     to program (the rows say them). In their unit mcf would miss a 256 KB L2 less than once per \
     thousand instructions, where Navarro-Torres et al. counted 50 beyond 1 MiB on another \
     chip. That the two events count different things is a guess; only the order is compared.",
    "Numbers of threads with the lowest energy-delay product: the described machine draws 180 W \
     idle and at most 300 W busy, so whatever shortens a run lowers the product.",
];

pub(super) fn run(inputs: &GroupInputs<'_>) -> GroupResult {
    let parts = [
        occupancy::checks(inputs)?,
        programs::checks(inputs)?,
        forms::checks(inputs.data)?,
        solved::checks(inputs)?,
    ];
    Ok(GroupOutput {
        checks: parts.into_iter().flatten().collect(),
        notes: NOTES.map(str::to_owned).to_vec(),
        ..GroupOutput::default()
    })
}
