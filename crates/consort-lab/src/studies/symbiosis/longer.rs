//! Whether a program's work may take less time alone than in the paper: the same workloads with as
//! much as the paper has, beside what the grid has.

use super::cells::ratio;
use super::grid::{ALONE_S, mixes};
use super::mixes::Mix;
use super::prepare::Prepared;
use super::{NEAR_FIRST_HALF, chip_with_memory};
use crate::context::Context;
use crate::experiment::RunResult;
use crate::report::{Cell, Column, Table};
use crate::study::StudyError;
use consort_sim::engine::{Observer, Segment};

/// Time alone in the paper, s, at the full scale, and what stands for it at the quick one.
const LONG_S: [f64; 2] = [6.0, 120.0];
/// Runs of each workload, policy and time.
const RUNS: [usize; 2] = [2, 4];
/// The policies; ratios are to the first.
const POLICIES: [&str; 3] = ["random", "linux", "symbiotic"];

/// Nobody watches.
struct Blind;

impl Observer for Blind {
    fn segment(&mut self, _: &Segment<'_>) {}
}

/// Table `time-alone`: rows `CORES/NUMBER/POLICY`, the first workload of every number of cores;
/// columns `stp_over_random` as in the grid, `stp_over_random_long` with the paper's time alone,
/// `difference_percent`.
pub(in crate::studies) fn table(context: &Context<'_>) -> Result<Table, StudyError> {
    let mixes: Vec<Mix> = mixes(context)
        .into_iter()
        .filter(|m| m.number == 1)
        .collect();
    let times = [ALONE_S, LONG_S].map(|[quick, full]| context.by_scale(quick, full));
    let columns = vec![
        Column::plain(
            "stp_over_random",
            &format!("STP over random, {} s alone", times[0]),
        ),
        Column::plain(
            "stp_over_random_long",
            &format!("The same, {} s alone", times[1]),
        ),
        Column::with_unit("difference_percent", "The first over the second", "%"),
    ];
    let title = "Whether shorter work gives the same: the first workload for each number of cores";
    let mut table = Table::new("time-alone", title, columns)?;
    let of_mixes = times.map(|time| stps(&mixes, time, context));
    let [short, long] = of_mixes;
    for ((mix, short), long) in mixes.iter().zip(short?).zip(long?) {
        for (policy, name) in POLICIES.iter().enumerate().skip(1) {
            let cells = [&short, &long].map(|stps| ratio(&stps[policy], &stps[0]));
            let [short, long] = cells;
            let difference = difference_percent(&short, &long);
            table.push(
                &format!("{}/{name}", mix.key()),
                vec![short, long, difference],
            )?;
        }
    }
    Ok(table)
}

fn difference_percent(short: &Cell, long: &Cell) -> Cell {
    let both = short.value().zip(long.value());
    let percent = both.map(|(short, long)| 100.0 * (short / long - 1.0));
    percent.map_or_else(|| Cell::missing("no runs"), Cell::from)
}

/// System throughputs, by workload, policy and run.
fn stps(
    mixes: &[Mix],
    alone_s: f64,
    context: &Context<'_>,
) -> Result<Vec<Vec<Vec<f64>>>, StudyError> {
    let runs = context.by_scale(RUNS[0], RUNS[1]);
    let prepared = context.map(mixes, |mix| {
        let near = Prepared::new(mix, alone_s, context)?;
        Ok(near.on(&chip_with_memory(mix.cores, NEAR_FIRST_HALF)?))
    })?;
    let prepared: Vec<Prepared> = prepared.into_iter().collect::<Result<_, StudyError>>()?;
    let seeds = (0..runs as u64).map(|run| context.seed().wrapping_add(run));
    let mut jobs = Vec::new();
    for one in &prepared {
        for policy in POLICIES {
            jobs.extend(seeds.clone().map(|seed| (one, policy, seed)));
        }
    }
    let results = context.map(&jobs, |(one, policy, seed)| {
        one.run(policy, *seed, Box::new(Blind))
    })?;
    let results: Vec<RunResult> = results.into_iter().collect::<Result<_, _>>()?;
    let by_policy: Vec<Vec<f64>> = { results.chunks(runs) }
        .map(|runs| runs.iter().map(|run| run.stp).collect())
        .collect();
    Ok(by_policy
        .chunks(POLICIES.len())
        .map(<[_]>::to_vec)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_of_the_ratios() {
        let percent = difference_percent(&Cell::from(1.02), &Cell::from(1.0));
        assert!((percent.value().unwrap() - 2.0).abs() < 1e-9);
        let missing = Cell::missing("no");
        assert_eq!(difference_percent(&missing, &Cell::from(1.0)).value(), None);
    }
}
