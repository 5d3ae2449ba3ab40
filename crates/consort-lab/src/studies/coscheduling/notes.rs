//! Sentences that several of the studies need.

use super::entrants::{ENTRANTS, FAIR};
use super::grid::CoscheduleGrid;
use super::views::{local_speedup, shares};

/// Notes on the programs of fair co-schedules that are worse off than in the gang: in which runs,
/// and by how much.
pub(in crate::studies) fn below_one(grid: &CoscheduleGrid) -> Vec<String> {
    FAIR.map(|entrant| slower_programs_note(grid, entrant))
        .into()
}

fn slower_programs_note(grid: &CoscheduleGrid, entrant: usize) -> String {
    let mut losers = Vec::new();
    for id in grid.suite().ids() {
        let places = (0..grid.runs()).filter_map(|run| grid.place(run, entrant, id));
        let below = places.filter(shares).map(|place| local_speedup(&place));
        let below: Vec<f64> = below.filter(|speedup| *speedup < 1.0).collect();
        if let Some(least) = below.iter().copied().reduce(f64::min) {
            let name = grid.suite().name(id).unwrap_or("?");
            losers.push(format!(
                "{name} in {} of {} runs, {least:.3} at least",
                below.len(),
                grid.runs()
            ));
        }
    }
    let name = ENTRANTS[entrant].name;
    if losers.is_empty() {
        return format!(
            "{name}: no member of a co-schedule has a local speedup below 1 in any run."
        );
    }
    format!(
        "{name}: members of co-schedules with a local speedup below 1: {}. The application chooser \
         heeds energy-delay, not speed, so a member may become slower while its energy falls by \
         more; and the thread chooser lets who gives a core lose down to its energy-delay in the gang.",
        losers.join("; ")
    )
}
