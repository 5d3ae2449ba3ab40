//! Gains over `os`: M14, by the best mapping of every pair and by mappings that predictions choose,
//! and M15, by the policy `holistic`.
//!
//! A pair's gain is the geometric mean over its programs of their speeds over `os`. A mapping is
//! chosen on the other seeds than the one that it is judged on, if there are others, so that luck on
//! the seed is no gain.
//!
//! Keys. Table `headline`: rows `WHO over WHAT, WHICH pairs` and `A+B, WHO over WHAT`. Table `pairs`:
//! rows `A+B`; M14's `CHOOSER` is the mapping chosen on most seeds, `CHOOSER_gain` the gain of what
//! was chosen on the other seeds, `seeds` counts those that choose the same best. Table `summary`:
//! rows `all` and `intensive`, intervals over pairs; M15's `faster`, `slower` and `below_os` count
//! pairs that differ by 5 percent or more.

use super::{
    LINUX, MAPPINGS, PROGRAMS, PairRuns, PairTestbed, ProgramNamePair, gain_cell, mean_gain,
};
use crate::frame::{mean_ratio_cell, number_or_missing};
use crate::simulate::part_error;
use crate::studies::output::{OutputBuilder, join};
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_core::mapping::analysis::Usage;
use consort_core::stats::geometric_mean;
use consort_data::Cell;
use consort_experiment::mapping::{NamedMapping, OS};
use consort_experiment::{ExperimentContext, RepeatedProgram};
use libm::{exp, log};

/// Bandwidth alone from which on a program is memory-intensive, MB/s. The nine programs leave a gap
/// between 140 and 1300 in the source's Table III.
const BANDWIDTH_MB_S: f64 = 500.0;

/// Times per second, over all threads, that a program's threads are switched in alone, from which
/// on it is synchronisation-intensive: once per thread and millisecond.
const SWITCHES_PER_S: f64 = 4000.0;

/// The policy of M15.
const HOLISTIC: &str = "holistic";
/// Share from which on a difference counts.
const COUNTS: f64 = 0.05;

/// Chooser of mappings by a predicted cost of each program, in any unit.
#[derive(Clone, Copy)]
struct MappingChooser {
    /// Title for people.
    title: &'static str,
    cost: fn(&Usage) -> Option<f64>,
}

/// Chooser by the lowest time.
const BEST: MappingChooser = MappingChooser {
    title: "Best static mapping",
    cost: |usage| Some(usage.time_s),
};

/// Chooser by the lowest L2MP: the L2, its prefetchers and the memory path, and nothing else.
const MEMORY: MappingChooser = MappingChooser {
    title: "Memory resources alone (lowest L2MP)",
    cost: |usage| usage.memory?.l2mp_cycles(),
};

/// Chooser by every resource inside the cores and beyond, but not their utilisation.
const CYCLES: MappingChooser = MappingChooser {
    title: "All resources but utilisation (fewest cycles)",
    cost: |usage| usage.cycles,
};

/// Chooser by every resource.
const ALL: MappingChooser = MappingChooser {
    title: "All resources (cycles by utilisation)",
    cost: |usage| Some(usage.cycles? / usage.utilisation.filter(|u| *u > 0.0)?),
};

const CHOOSERS: [MappingChooser; 4] = [BEST, MEMORY, CYCLES, ALL];

/// Speeds of pairs in some runs over those in others, seed by seed: the geometric mean of both
/// programs.
fn gains_over(over: &[Vec<RepeatedProgram>], runs: &[Vec<RepeatedProgram>]) -> Vec<f64> {
    let gain = |(run, over): (&Vec<RepeatedProgram>, &Vec<RepeatedProgram>)| {
        let logs = run
            .iter()
            .zip(over)
            .map(|(run, over)| log(over.time_s / run.time_s));
        exp(logs.sum::<f64>() / run.len() as f64)
    };
    runs.iter().zip(over).map(gain).collect()
}

impl PairRuns {
    /// Gains of a pair under a mapping, seed by seed, as factors.
    pub(super) fn gains(&self, pair: ProgramNamePair, mapping: &str) -> Vec<f64> {
        gains_over(self.both(pair, OS), self.both(pair, mapping))
    }

    /// Mapping that a chooser takes for each seed.
    fn chosen(&self, pair: ProgramNamePair, by: MappingChooser) -> Vec<&'static str> {
        let costs = self.costs(pair, by);
        let choose = |seed: usize| {
            let cost = |mapping: usize| -> f64 {
                let by_seed = costs[mapping].iter().enumerate();
                let counted = by_seed.filter(|(other, _)| self.seeds == 1 || *other != seed);
                counted.map(|(_, cost)| cost).sum()
            };
            // `min_by` keeps the first of equals, so ties go to `os`.
            let lowest = (0..MAPPINGS.len()).min_by(|a, b| cost(*a).total_cmp(&cost(*b)));
            lowest.map_or(OS, |mapping| MAPPINGS[mapping])
        };
        (0..self.seeds).map(choose).collect()
    }

    /// Gains of the mappings that a chooser takes, seed by seed.
    fn chosen_gains(&self, pair: ProgramNamePair, by: MappingChooser) -> Vec<f64> {
        let chosen = self.chosen(pair, by).into_iter().enumerate();
        chosen
            .map(|(seed, mapping)| self.gains(pair, mapping)[seed])
            .collect()
    }

    /// The mapping that a chooser takes on most seeds, and their number.
    fn mostly_chosen(&self, pair: ProgramNamePair, by: MappingChooser) -> (&'static str, usize) {
        let chosen = self.chosen(pair, by);
        let count = |m: &str| chosen.iter().filter(|c| **c == m).count();
        // The last of equals is taken, so the first mapping comes last.
        let most = MAPPINGS.iter().rev().max_by_key(|m| count(m));
        most.map_or((OS, 0), |m| (*m, count(m)))
    }

    /// Sum over programs of the logarithms of the costs, by mapping and seed. A program without a
    /// cost under a mapping has none under any: one without misses has no L2MP.
    fn costs(&self, pair: ProgramNamePair, by: MappingChooser) -> [Vec<f64>; MAPPINGS.len()] {
        let mut sums = MAPPINGS.map(|_| vec![0.0; self.seeds]);
        for seed in 0..self.seeds {
            for place in 0..pair.len() {
                let costs = MAPPINGS.iter().map(|mapping| {
                    let usage = self.usage(&self.both(pair, mapping)[seed][place]);
                    (by.cost)(&usage).filter(|cost| *cost > 0.0)
                });
                let known: Option<Vec<f64>> = costs.collect();
                for (sum, cost) in sums.iter_mut().zip(known.unwrap_or_default()) {
                    sum[seed] += log(cost);
                }
            }
        }
        sums
    }

    /// Kinds in which each program is intensive: memory, synchronisation.
    fn intensity(&self, program: &str) -> [bool; 2] {
        let place = PROGRAMS.iter().position(|name| *name == program);
        let alone = place.and_then(|place| self.alone.get(place));
        let alone = alone.map(|alone| alone.characteristics);
        let reaches = |rate: Option<f64>, least| rate.unwrap_or(0.0) >= least;
        [
            reaches(alone.and_then(|c| c.bandwidth_mb_s), BANDWIDTH_MB_S),
            reaches(alone.and_then(|c| c.switches_per_s), SWITCHES_PER_S),
        ]
    }

    /// Key and pairs of the rows of summaries: all, and those of which both programs are intensive
    /// in some kind.
    fn groups(&self) -> [(&'static str, Vec<ProgramNamePair>); 2] {
        let is_intensive = |program: &&str| self.intensity(program).contains(&true);
        let mut intensive = self.pairs.clone();
        intensive.retain(|pair| pair.iter().all(is_intensive));
        [("all", self.pairs.clone()), ("intensive", intensive)]
    }
}

fn intensity_text(intensity: [bool; 2]) -> &'static str {
    match intensity {
        [true, true] => "memory and synchronisation",
        [true, false] => "memory",
        [false, true] => "synchronisation",
        [false, false] => "neither",
    }
}

/// M14.
pub(crate) fn m14(runs: &PairRuns, output: &mut OutputBuilder<'_>) -> Result<(), StudyError> {
    let groups = runs.groups();
    let held = &MAPPINGS[1..];
    let by_mapping = |pairs: &[_], mapping| mean_gain(pairs, |pair| runs.gains(pair, mapping));
    let by_chooser = |pairs: &[_], by| mean_gain(pairs, |pair| runs.chosen_gains(pair, by));
    // In the source's words.
    let named = [
        ("best mapping", BEST),
        ("memory resources alone", MEMORY),
        ("all resources", ALL),
    ];
    for (group, pairs) in &groups {
        for (name, by) in named {
            let row = format!("{name} over os, {group} pairs");
            output.headline(row, "percent", by_chooser(pairs, by))?;
        }
        for mapping in held {
            let row = format!("{mapping} over os, {group} pairs");
            output.headline(row, "percent", by_mapping(pairs, mapping))?;
        }
    }
    for pair in &runs.pairs {
        let row = format!("{}, best mapping over os", pair.join("+"));
        output.headline(row, "percent", gain_cell(&runs.chosen_gains(*pair, BEST)))?;
    }

    let gains = |by| -> Vec<f64> {
        let gains = { runs.pairs.iter() }.map(|pair| gain_cell(&runs.chosen_gains(*pair, by)));
        gains.filter_map(|cell| cell.value()).collect()
    };
    let best = gains(BEST);
    let improved = best.iter().filter(|gain| **gain > 0.0).count() as u64;
    let of = format!("of {}", best.len());
    output.headline("pairs improved", &of, improved)?;
    for (row, gains) in [
        ("largest gain", best),
        ("largest gain, memory resources only", gains(MEMORY)),
    ] {
        let largest = gains.into_iter().reduce(f64::max);
        output.headline(
            row,
            "percent",
            number_or_missing(largest, "no pair was run"),
        )?;
    }

    let rows = { groups.iter() }.map(|(group, pairs)| {
        let mut cells = vec![Cell::Count(pairs.len() as u64)];
        cells.extend(held.iter().map(|mapping| by_mapping(pairs, mapping)));
        cells.extend(CHOOSERS.map(|by| by_chooser(pairs, by)));
        let same = |pair: &&ProgramNamePair| {
            runs.mostly_chosen(**pair, MEMORY).0 == runs.mostly_chosen(**pair, BEST).0
        };
        cells.push(Cell::Count(pairs.iter().filter(same).count() as u64));
        (*group, cells)
    });
    output.table("summary", rows)?;
    let rows = runs.pairs.iter().map(|pair| {
        let gains = held
            .iter()
            .map(|mapping| gain_cell(&runs.gains(*pair, mapping)));
        let mut cells: Vec<Cell> = gains.collect();
        for (_, by) in named {
            cells.push(runs.mostly_chosen(*pair, by).0.into());
            cells.push(gain_cell(&runs.chosen_gains(*pair, by)));
        }
        cells.push(Cell::Count(runs.mostly_chosen(*pair, BEST).1 as u64));
        (pair.join("+"), cells)
    });
    output.table("pairs", rows)?;
    let rows = { PROGRAMS.into_iter().zip(&runs.alone) }.map(|(program, alone)| {
        let rates = &alone.characteristics;
        let cells = vec![
            number_or_missing(rates.bandwidth_mb_s, "not measured"),
            number_or_missing(rates.switches_per_s, "not measured"),
            intensity_text(runs.intensity(program)).into(),
        ];
        (program, cells)
    });
    output.table("programs", rows)?;

    let series = held.iter().map(|mapping| {
        let cells = runs
            .pairs
            .iter()
            .map(|pair| gain_cell(&runs.gains(*pair, mapping)));
        (*mapping, cells.collect())
    });
    output.bars(
        "gains",
        runs.pairs.iter().map(|pair| pair.join("+")),
        series,
    )?;
    let filled = groups.iter().filter(|(_, pairs)| !pairs.is_empty());
    let series = CHOOSERS.map(|by| {
        let cells = filled.clone().map(|(_, pairs)| by_chooser(pairs, by));
        (by.title, cells.collect())
    });
    output.bars("choosers", filled.clone().map(|(group, _)| *group), series)?;

    let counts = join(MAPPINGS, |mapping| {
        let best = |pair: &&ProgramNamePair| runs.mostly_chosen(**pair, BEST).0 == mapping;
        format!("{mapping} {}", runs.pairs.iter().filter(best).count())
    });
    output.note(format!(
        "Best mapping of {} pairs: {counts}.",
        runs.pairs.len()
    ));
    let choosers = CHOOSERS.map(|by| {
        let gains = join(&groups, |(group, pairs)| {
            format!("{group} {} %", by_chooser(pairs, by).text())
        });
        format!("{}: {gains}", by.title)
    });
    output.note(format!("Gain over os. {}.", choosers.join("; ")));
    output.note(format!(
        "Intensive are pairs of which both programs have at least {BANDWIDTH_MB_S} MB/s alone, or \
         have their threads switched in at least {SWITCHES_PER_S} times per second alone: {}.",
        join(PROGRAMS, |program| {
            format!("{program} {}", intensity_text(runs.intensity(program)))
        }),
    ));
    Ok(())
}

/// A pair's gains over `os` under its best static mapping and under the policy, factors by seed.
struct PairGains {
    pair: ProgramNamePair,
    best: Vec<f64>,
    holistic: Vec<f64>,
    /// The policy's speed over that of the best static mapping.
    over_best: Vec<f64>,
}

/// M15.
pub(crate) fn m15(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let runs = PairRuns::get_or_run(context)?;
    let testbed = PairTestbed::new(context)?;
    let held = NamedMapping::from_policy(HOLISTIC, LINUX).map_err(part_error(HOLISTIC))?;
    let cases = runs.pairs.iter().map(|pair| (*pair, held.clone()));
    let done = testbed.run(context, &cases.collect::<Vec<_>>())?;
    let all = { runs.pairs.iter().zip(done.chunks(runs.seeds)) }.map(|(&pair, done)| {
        let best = runs.chosen_gains(pair, BEST);
        let holistic = gains_over(runs.both(pair, OS), done);
        let over_best = { holistic.iter().zip(&best) }.map(|(ours, best)| ours / best);
        PairGains {
            pair,
            over_best: over_best.collect(),
            best,
            holistic,
        }
    });
    let all: Vec<PairGains> = all.collect();
    // Means of the pairs of a group.
    let means = |pairs: &[ProgramNamePair], gains: fn(&PairGains) -> &Vec<f64>| -> Vec<f64> {
        let rows = all.iter().filter(|row| pairs.contains(&row.pair));
        rows.filter_map(|row| geometric_mean(gains(row))).collect()
    };

    let mut output = OutputBuilder::new(file, runs.seeds)?;
    let mut rows = Vec::new();
    for (group, pairs) in runs.groups() {
        let [gain, best, over] = [
            means(&pairs, |row| &row.holistic),
            means(&pairs, |row| &row.best),
            means(&pairs, |row| &row.over_best),
        ];
        let row = |over| format!("holistic over {over}, {group} pairs");
        output.headline(row("os"), "percent", gain_cell(&gain))?;
        output.headline(row("the best static mapping"), "percent", gain_cell(&over))?;
        let count = |values: &[f64], is: fn(f64) -> bool| {
            Cell::Count(values.iter().filter(|value| is(**value)).count() as u64)
        };
        let cells = vec![
            Cell::Count(pairs.len() as u64),
            gain_cell(&gain),
            gain_cell(&best),
            gain_cell(&over),
            count(&over, |v| v >= 1.0 + COUNTS),
            count(&over, |v| v <= 1.0 - COUNTS),
            count(&gain, |v| v <= 1.0 - COUNTS),
        ];
        rows.push((group, cells));
    }
    for row in &all {
        let key = format!(
            "{}, holistic over the best static mapping",
            row.pair.join("+")
        );
        output.headline(key, "percent", gain_cell(&row.over_best))?;
    }
    output.table("summary", rows)?;
    let rows = all.iter().map(|row| {
        let cells = vec![
            gain_cell(&row.holistic),
            runs.mostly_chosen(row.pair, BEST).0.into(),
            gain_cell(&row.best),
            mean_ratio_cell(&row.over_best),
        ];
        (row.pair.join("+"), cells)
    });
    output.table("pairs", rows)?;
    let series = [
        (
            HOLISTIC,
            all.iter().map(|row| gain_cell(&row.holistic)).collect(),
        ),
        (
            "best static mapping",
            all.iter().map(|row| gain_cell(&row.best)).collect(),
        ),
    ];
    output.bars("holistic", all.iter().map(|row| row.pair.join("+")), series)?;

    let over = all
        .iter()
        .filter_map(|row| Some((geometric_mean(&row.over_best)?, row.pair)));
    let mut over: Vec<(f64, ProgramNamePair)> = over.collect();
    over.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ends = over.len().min(3);
    let [least, most] = [&over[..ends], &over[over.len() - ends..]]
        .map(|some| join(some, |(over, pair)| format!("{} {over:.3}", pair.join("+"))));
    output.note(format!(
        "Speed of holistic over the best static mapping: least {least}; most {most}."
    ));
    Ok(runs.finish(output))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapping_is_judged_on_another_seed() {
        // iso is best on the first seed, int on the others.
        let os = [[2.0, 2.0]; 3];
        let iso = [[1.0, 1.0], [2.0, 1.9], [2.0, 1.9]];
        let int = [[2.0, 2.0], [1.0, 1.0], [1.0, 1.0]];
        let runs = PairRuns::of_times(&[os, iso, int, [[4.0, 4.0]; 3]].concat());
        let pair = ["canneal", "vips"];
        assert_eq!(runs.chosen(pair, BEST), ["int", "iso", "iso"]);
        let gains = runs.chosen_gains(pair, BEST);
        assert_eq!(gains[0], 1.0);
        let expect = exp(log(2.0 / 1.9) / 2.0);
        assert!((gains[1] - expect).abs() < 1e-12, "{gains:?}");
        assert_eq!(runs.mostly_chosen(pair, BEST), ("iso", 2));
    }

    #[test]
    fn with_one_seed_the_seed_itself_chooses() {
        let runs = PairRuns::of_times(&[[2.0, 2.0], [1.0, 3.0], [3.0, 1.2], [1.5, 1.5]]);
        let pair = ["canneal", "vips"];
        for by in [BEST, MEMORY, CYCLES] {
            assert_eq!(runs.chosen(pair, by), ["spr"], "{}", by.title);
        }
        assert!((runs.gains(pair, "iso")[0] - exp(log(4.0 / 3.0) / 2.0)).abs() < 1e-12);
        assert_eq!(runs.gains(pair, "os"), [1.0]);
    }
}
