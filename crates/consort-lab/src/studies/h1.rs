//! H1: programs by their contention, and by the number of threads that pays off.
//!
//! Keys. Table `headline`: rows `PROGRAM, WHAT` and `programs within 10 percent of linear scaling`.
//! Table `programs`: rows are programs; columns `miss_rate`, `miss_rank`, `bus_occupancy`,
//! `bus_queue`, `bus_rank`, `best_threads` (lowest energy-delay by the energy of the machine),
//! `best_by_cores` (by energy proportional to threads), `best_charged` (by the energy of the machine,
//! of which what is drawn whoever runs is charged by the share of cores), `speedup`, `near_linear`, and the source's
//! `published_miss_rate`, `published_bus_rank`, `published_best_threads`, `published_near_linear`.
//! Table `agreement`: rows `miss-rates`, `bus-ranks` (Spearman's rho), `best-threads`,
//! `best-by-cores`, `best-charged` (programs within one thread), `near-linear` (programs); columns `value`, `of`.
//! Figures `misses`, `bus`, `energy-delay`.

use super::coscheduling::alone::CoschedulingAloneRuns;
use super::coscheduling::entrants::ALPHA;
use super::coscheduling::published::{PUBLISHED, PublishedProgram};
use crate::frame::{interval_cell, number_or_missing, paired_ratio_cell};
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_core::ProgramId;
use consort_core::coscheduling::ProgramMeasure;
use consort_core::stats::spearman;
use consort_data::{Cell, Figure, HeadlineTable, ReportTable};
use consort_experiment::ExperimentContext;

/// Figures of a program.
struct ProgramRanks {
    id: ProgramId,
    published: PublishedProgram,
    miss_rank: u64,
    bus_rank: u64,
    best: u64,
    best_by_cores: u64,
    /// Number of cores that is best by charged energy, in every run.
    best_charged: Vec<f64>,
    near_linear: bool,
}

impl ProgramRanks {
    /// The mean over runs of `best_charged` as a whole number.
    fn charged(&self) -> u64 {
        let sum: f64 = self.best_charged.iter().sum();
        libm::round(sum / self.best_charged.len().max(1) as f64) as u64
    }

    /// Name with our number and the published one, where they differ by more than `by`.
    fn off(&self, ours: u64, published: u32, by: u64) -> Option<String> {
        let name = self.published.name;
        let differs = ours.abs_diff(u64::from(published)) > by;
        differs.then(|| format!("{name} ({ours}, {published})"))
    }
}

/// Runs the study.
pub(super) fn run(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let alone = CoschedulingAloneRuns::get_or_run(context)?;
    let lines = lines(&alone);
    Ok(StudyOutput {
        tables: vec![
            headline(&alone, &lines)?,
            programs(file, &alone, &lines)?,
            agreement(file, &alone, &lines)?,
        ],
        figures: vec![
            misses(file, &alone, &lines)?,
            bus(file, &alone, &lines)?,
            energy(file, &alone, &lines)?,
        ],
        notes: notes(&alone, &lines),
        runs: alone.runs.len(),
    })
}

fn lines(alone: &CoschedulingAloneRuns) -> Vec<ProgramRanks> {
    let all = alone.suite.cores();
    let rank = |of: fn(&ProgramMeasure) -> f64, id| {
        let own = alone.mean(id, all, of);
        1 + alone
            .suite
            .ids()
            .filter(|&other| alone.mean(other, all, of) < own)
            .count() as u64
    };
    let known = alone.suite.ids().zip(PUBLISHED);
    let line = |(id, published)| ProgramRanks {
        id,
        published,
        miss_rank: rank(ProgramMeasure::llc_miss_rate, id),
        bus_rank: rank(ProgramMeasure::bus_contention, id),
        best: best(alone, |n| alone.mean(id, n, |m| m.energy_delay(1))),
        best_by_cores: best(alone, |n| {
            f64::from(n) / alone.mean(id, n, ProgramMeasure::throughput).powi(2)
        }),
        best_charged: alone.best_charged(id),
        near_linear: speedup(alone, id) >= (1.0 - ALPHA) * f64::from(all),
    };
    known.map(line).collect()
}

/// The number of cores of the least cost.
fn best(alone: &CoschedulingAloneRuns, cost: impl Fn(u32) -> f64) -> u64 {
    let numbers = 1..=alone.suite.cores();
    let least = numbers.min_by(|&a, &b| cost(a).total_cmp(&cost(b)));
    least.map_or(0, u64::from)
}

fn speedup(alone: &CoschedulingAloneRuns, id: ProgramId) -> f64 {
    let throughput = |n| alone.mean(id, n, ProgramMeasure::throughput);
    throughput(alone.suite.cores()) / throughput(1)
}

fn yes(is: bool) -> Cell {
    if is { "yes".into() } else { "no".into() }
}

fn headline(
    alone: &CoschedulingAloneRuns,
    lines: &[ProgramRanks],
) -> Result<ReportTable, StudyError> {
    let mut headline = HeadlineTable::new()?;
    for line in lines {
        let row = format!("{}, rank by bus contention", line.published.name);
        headline.add(&row, "rank", line.bus_rank)?;
    }
    for line in lines {
        let rates = alone.values(line.id, alone.suite.cores(), ProgramMeasure::llc_miss_rate);
        let row = format!("{}, L2 misses over accesses", line.published.name);
        headline.add(&row, "ratio", interval_cell(&rates))?;
    }
    for line in lines {
        let row = format!("{}, threads of lowest energy-delay", line.published.name);
        headline.add(&row, "threads", interval_cell(&line.best_charged))?;
    }
    let linear = lines.iter().filter(|line| line.near_linear).count();
    let row = "programs within 10 percent of linear scaling";
    headline.add(row, "programs", linear as u64)?;
    Ok(headline.into_table())
}

fn programs(
    file: &StudyFile,
    alone: &CoschedulingAloneRuns,
    lines: &[ProgramRanks],
) -> Result<ReportTable, StudyError> {
    let all = alone.suite.cores();
    let row = |line: &ProgramRanks| {
        let over = |of: fn(&ProgramMeasure) -> f64| interval_cell(&alone.values(line.id, all, of));
        let throughputs = |n| alone.values(line.id, n, ProgramMeasure::throughput);
        let cells = vec![
            over(ProgramMeasure::llc_miss_rate),
            line.published.miss_rate.into(),
            line.miss_rank.into(),
            over(ProgramMeasure::bus_occupancy),
            over(ProgramMeasure::bus_queue_time),
            line.bus_rank.into(),
            u64::from(line.published.bus_rank).into(),
            line.best.into(),
            line.best_by_cores.into(),
            interval_cell(&line.best_charged),
            u64::from(line.published.best_threads).into(),
            paired_ratio_cell(&throughputs(all), &throughputs(1)),
            yes(line.near_linear),
            yes(line.published.near_linear),
        ];
        (line.published.name, cells)
    };
    file.fill_table("programs", lines.iter().map(row))
}

fn agreement(
    file: &StudyFile,
    alone: &CoschedulingAloneRuns,
    lines: &[ProgramRanks],
) -> Result<ReportTable, StudyError> {
    let all = alone.suite.cores();
    let rho = |pair: &dyn Fn(&ProgramRanks) -> (f64, f64)| {
        let pairs: Vec<(f64, f64)> = lines.iter().map(pair).collect();
        number_or_missing(spearman(&pairs), "all are equal")
    };
    let miss = |line: &ProgramRanks| {
        let own = alone.mean(line.id, all, ProgramMeasure::llc_miss_rate);
        (own, line.published.miss_rate)
    };
    let bus = |line: &ProgramRanks| (line.bus_rank as f64, f64::from(line.published.bus_rank));
    let count = |agrees: &dyn Fn(&ProgramRanks) -> bool| {
        let count = lines.iter().filter(|line| agrees(line)).count();
        vec![Cell::from(count as u64), Cell::from(lines.len() as u64)]
    };
    let near =
        |ours: u64, line: &ProgramRanks| ours.abs_diff(u64::from(line.published.best_threads)) <= 1;
    let rows = [
        ("miss-rates", vec![rho(&miss), 1.0.into()]),
        ("bus-ranks", vec![rho(&bus), 1.0.into()]),
        ("best-threads", count(&|line| near(line.best, line))),
        (
            "best-by-cores",
            count(&|line| near(line.best_by_cores, line)),
        ),
        ("best-charged", count(&|line| near(line.charged(), line))),
        (
            "near-linear",
            count(&|line| line.near_linear == line.published.near_linear),
        ),
    ];
    file.fill_table("agreement", rows)
}

fn names(lines: &[ProgramRanks]) -> Vec<String> {
    lines
        .iter()
        .map(|line| line.published.name.to_owned())
        .collect()
}

fn series(
    name: &str,
    lines: &[ProgramRanks],
    cell: impl Fn(&ProgramRanks) -> Cell,
) -> (String, Vec<Cell>) {
    (name.to_owned(), lines.iter().map(cell).collect())
}

fn misses(
    file: &StudyFile,
    alone: &CoschedulingAloneRuns,
    lines: &[ProgramRanks],
) -> Result<Figure, StudyError> {
    let all = alone.suite.cores();
    let own = |line: &ProgramRanks| {
        interval_cell(&alone.values(line.id, all, ProgramMeasure::llc_miss_rate))
    };
    let both = [
        series("here", lines, own),
        series("published", lines, |line| line.published.miss_rate.into()),
    ];
    file.bar_figure("misses", alone.runs.len(), names(lines), both)
}

fn bus(
    file: &StudyFile,
    alone: &CoschedulingAloneRuns,
    lines: &[ProgramRanks],
) -> Result<Figure, StudyError> {
    let all = alone.suite.cores();
    let of = |value: fn(&ProgramMeasure) -> f64| {
        move |line: &ProgramRanks| interval_cell(&alone.values(line.id, all, value))
    };
    let both = [
        series("occupancy", lines, of(ProgramMeasure::bus_occupancy)),
        series("queue time", lines, of(ProgramMeasure::bus_queue_time)),
    ];
    file.bar_figure("bus", alone.runs.len(), names(lines), both)
}

fn energy(
    file: &StudyFile,
    alone: &CoschedulingAloneRuns,
    lines: &[ProgramRanks],
) -> Result<Figure, StudyError> {
    let numbers = 1..=alone.suite.cores();
    let row = |line: &ProgramRanks| {
        let of = |n| alone.mean(line.id, n, |m| m.energy_delay(1));
        let least = of(line.best as u32);
        let cells = numbers.clone().map(|n| Some(least / of(n)));
        (line.published.name.to_owned(), cells.collect())
    };
    let columns = numbers.clone().map(|n| n.to_string()).collect();
    let rows = lines.iter().map(row).collect();
    file.heat_figure("energy-delay", alone.runs.len(), columns, rows)
}

fn notes(alone: &CoschedulingAloneRuns, lines: &[ProgramRanks]) -> Vec<String> {
    vec![
        "The profiles are made with the published miss rates and, but for canneal, facesim and \
         streamcluster, with the published numbers of threads, from which their serial shares \
         follow. Agreement in these is consistency, no more; the orders by bus and what the three \
         do are the simulation's own."
            .to_owned(),
        listed(
            lines,
            "Best numbers of threads that differ by more than one, by the machine's \
            energy (ours, published)",
            |line| line.off(line.best, line.published.best_threads, 1),
            "A machine that draws 164 W whoever runs spends most by being on: whatever shortens a \
            run saves energy, so energy-delay falls as long as speed rises at all. The profiles' \
            serial shares come from the rule that speedup²/threads is largest at the published number, \
            which takes energy as proportional to threads.",
        ),
        listed(
            lines,
            "The same by energy proportional to threads",
            |line| line.off(line.best_by_cores, line.published.best_threads, 1),
            "Here the bus makes speed level off where it is saturated; it does not make it fall, as \
            the published low numbers of streamcluster and canneal would have it. bodytrack's serial \
            share puts its best number at five by Amdahl's law alone; waiting at its barriers, \
            which grows with threads, comes on top.",
        ),
        listed(
            lines,
            "The same by the machine's energy, of which what is drawn whoever runs is charged by the \
            share of cores",
            |line| line.off(line.charged(), line.published.best_threads, 1),
            "This is how greedy counts: the power that a program does not use is left to others.",
        ),
        listed(
            lines,
            "Miss rates that differ by more than 0.1 (ours, published)",
            |line| {
                let own = alone.mean(line.id, alone.suite.cores(), ProgramMeasure::llc_miss_rate);
                let published = line.published.miss_rate;
                let differs = (own - published).abs() > 0.1;
                differs.then(|| format!("{} ({own:.2}, {published:.2})", line.published.name))
            },
            "Misses in the profiles follow from the bandwidth that another work measured, accesses \
            from misses and this rate within bounds (docs/profiles.md); where not both can hold, \
            the bandwidth was kept.",
        ),
        listed(
            lines,
            "Ranks by bus that differ by more than two (ours, published)",
            |line| line.off(line.bus_rank, line.published.bus_rank, 2),
            "Bus contention is the length of the vector of occupancy and queue time; the source \
            orders by the vector and does not say how.",
        ),
        listed(
            lines,
            "Near-linear here or in the source, but not both",
            |line| {
                (line.near_linear != line.published.near_linear).then(|| {
                    format!(
                        "{} (speedup {:.2})",
                        line.published.name,
                        speedup(alone, line.id)
                    )
                })
            },
            "Near-linear is within 10 percent of eightfold. Pairs of cores share an L2 and all \
            share the bus, so that one thread alone, which has a whole L2, is faster than one of \
            eight; and at the end of a frame all threads wait for the one that locks, input and \
            output have kept longest, most so in vips.",
        ),
    ]
}

/// A sentence that lists the programs of which something holds, with the mechanism; or that says of
/// none.
fn listed(
    lines: &[ProgramRanks],
    what: &str,
    one: impl Fn(&ProgramRanks) -> Option<String>,
    mechanism: &str,
) -> String {
    let found: Vec<String> = lines.iter().filter_map(one).collect();
    if found.is_empty() {
        return format!("{what}: none.");
    }
    format!("{what}: {}. {mechanism}", found.join(", "))
}

#[cfg(test)]
mod tests {
    use super::super::coscheduling::SEED;
    use super::*;
    use crate::testing::{made, workers};
    use consort_experiment::Scale;

    #[test]
    fn ranks_are_those_of_the_values() {
        let context = ExperimentContext::new(SEED, Scale::Quick, workers(2), &|_| ())
            .with_shared_results(&made());
        let alone = CoschedulingAloneRuns::get_or_run(&context).unwrap();
        let lines = lines(&alone);
        let mut ranks: Vec<u64> = lines.iter().map(|line| line.bus_rank).collect();
        ranks.sort_unstable();
        assert_eq!(ranks, (1..=12).collect::<Vec<_>>());
        let find = |name| {
            lines
                .iter()
                .find(|line| line.published.name == name)
                .unwrap()
        };
        assert!(find("canneal").miss_rank > find("swaptions").miss_rank);
        assert!(find("streamcluster").bus_rank > find("vips").bus_rank);
        // A program without misses or serial parts is best with all cores by any energy.
        let swaptions = find("swaptions");
        assert_eq!((swaptions.best, swaptions.best_by_cores), (8, 8));
        assert!(swaptions.near_linear);
    }
}
