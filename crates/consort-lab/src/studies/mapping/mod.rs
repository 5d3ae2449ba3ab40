//! What the studies of thread mappings share: one sweep of pairs of programs over mappings, and
//! its tables and figures.
//!
//! [`sweep`] has the runs, made once per process; [`measures`] what is read off them; [`views`]
//! tables and figures by program and mapping; [`pair`] one pair, and [`of_pair`] the studies of one; [`choice`] what
//! mapping would be chosen by what. Pitfall: all pairs are measured for every study, so the first
//! study of a process takes the time of all.

pub(super) mod breakdown;
pub(super) mod choice;
pub(super) mod gains;
pub(super) mod measures;
pub(super) mod notes;
pub(super) mod of_pair;
pub(super) mod pair;
pub(super) mod per_program;
pub(super) mod plan;
pub(super) mod subset;
pub(super) mod sweep;
pub(super) mod views;

use crate::study::StudyError;

/// The published work.
pub(super) const SOURCE: &str = "Wang, Dey, Mars, Tang, Davidson, Soffa, \"Performance Analysis of \
    Thread Mappings with a Holistic View of the Hardware Resources\", ISPASS 2012";

/// What all of these studies do otherwise.
pub(super) const DIFFERS: &str = "Machine and programs are simulated: nine programs of PARSEC with \
    four threads each on a model of the Core 2 Quad Q9550. A program's work is what it does alone in \
    2 s, not a run of its native input, so that both programs of a pair are equally long; the pair \
    runs until the slower one has done its work three times, or is stopped after five times what \
    both take alone one after the other, and a time is then reckoned from how far the program is. os \
    is a model of Linux 2.6 to 6.5. All amounts are means over three seeds. The quick scale has \
    0.3 s, one seed, and seven of the 36 pairs, those that a study names.";

/// The same seed for all, so that they share their runs.
pub(super) const SEED: u64 = 12;

/// Names what part of a study failed.
pub(super) fn failed<E>(part: &str) -> impl Fn(E) -> StudyError
where
    E: std::error::Error + Send + Sync + 'static,
{
    let part = part.to_owned();
    move |error| StudyError::part(part.as_str(), error)
}
