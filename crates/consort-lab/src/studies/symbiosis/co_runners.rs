//! S7: frequency with which programs share a core under symbiotic scheduling.
//!
//! Keys. Table `headline`: rows `STABLE-OR-CHANGING workload, time beside the most frequent
//! co-runner`. Table `workloads`: rows `5/NUMBER`; columns `oracle_top_share_percent`, `chosen_as`,
//! `programs`. Table `summary`: rows `stable`, `changing`; columns `top_share_percent` (share of
//! its time that a program spends with its most frequent co-runner, mean over programs),
//! `partners` (effective number of co-runners, the inverse of the sum of squared shares),
//! `expected_top_share_percent` (were all equally frequent). Tables `stable` and `changing`: rows
//! the programs, columns `beside-NUMBER` in the order of the rows. Figures `stable`, `changing`.

use super::{DrawnMix, NEAR_FIRST_HALF, PreparedMix};
use crate::frame::interval_cell;
use crate::simulate::{map_jobs, run_every_case};
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_core::stats::mean;
use consort_data::{Axis, Figure, HeadlineTable, HeatMap, Plot, ReportColumn, ReportTable};
use consort_experiment::ExperimentContext;
use consort_experiment::watch::CoRunnerWatch;

const CORES: usize = 5;
const POLICY: &str = "symbiotic";
/// The contender by which workloads are chosen, so that the choice does not depend on the policy
/// that is measured: it knows the phase of every program, and pairs anew when one changes.
const CHOOSER: &str = "oracle";
/// Workloads to choose from: those of the source.
const MIXES: usize = 15;
const RUNS: [usize; 2] = [2, 15];
/// Time of a program's work alone, s.
const ALONE_S: [f64; 2] = [10.0, 120.0];

/// A chosen workload with the matrices of its runs: share of its time that a program (row) is on
/// one core with another (column).
struct MixMatrices {
    name: &'static str,
    mix: DrawnMix,
    /// Share of its time that a program is with its most frequent co-runner under [`CHOOSER`].
    chooser_share: f64,
    runs: Vec<Vec<Vec<f64>>>,
}

/// Runs the study.
pub(in crate::studies) fn run(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let runs = context.by_scale(RUNS[0], RUNS[1]);
    let alone_s = context.by_scale(ALONE_S[0], ALONE_S[1]);
    let mixes = DrawnMix::draw_all(context.seed(), CORES, MIXES);
    let prepared = map_jobs(context, &mixes, |mix| {
        PreparedMix::new(mix, NEAR_FIRST_HALF, alone_s, context)
    })?;
    let shares = map_jobs(context, &prepared, |prepared| {
        Ok(mean_over_programs(
            &watch_run(prepared, CHOOSER, context.seed())?,
            top,
        ))
    })?;
    let chosen = choose(&shares);
    let mut workloads = Vec::new();
    for (n, (mix, share)) in mixes.iter().zip(&shares).enumerate() {
        let name = chosen.iter().find(|(_, mix)| *mix == n);
        let cells = vec![
            (100.0 * share).into(),
            name.map_or("", |(name, _)| name).into(),
            mix.names().join(" ").as_str().into(),
        ];
        workloads.push((mix.key(), cells));
    }

    let mut headline = HeadlineTable::new()?;
    let (mut summary, mut matrices) = (Vec::new(), Vec::new());
    let (mut figures, mut notes) = (Vec::new(), Vec::new());
    for (name, mix) in chosen {
        let one = MixMatrices {
            name,
            mix: mixes[mix].clone(),
            chooser_share: shares[mix],
            runs: run_every_case(
                context,
                (&prepared[mix..=mix], &[POLICY][..], runs),
                |prepared, policy, seed| watch_run(prepared, policy, seed),
            )?,
        };
        let top_share = one.each_run(top).into_iter().map(|share| 100.0 * share);
        let top_share = interval_cell(&top_share.collect::<Vec<_>>());
        let row = format!("{name} workload, time beside the most frequent co-runner");
        headline.add(&row, "percent", top_share.clone())?;
        let others = (one.mix.programs.len() - 1) as f64;
        notes.push(one.note(&top_share.text()));
        let cells = vec![
            top_share,
            interval_cell(&one.each_run(partners)),
            (100.0 / others).into(),
        ];
        summary.push((name, cells));
        matrices.push(one.table()?);
        figures.push(one.figure()?);
    }
    let mut tables = vec![
        headline.into_table(),
        file.fill_table("workloads", workloads)?,
        file.fill_table("summary", summary)?,
    ];
    tables.extend(matrices);
    Ok(StudyOutput {
        tables,
        figures,
        notes,
        runs,
    })
}

/// The workloads whose programs stay with one co-runner most and least, by their names in rows; the
/// first of several.
fn choose(shares: &[f64]) -> [(&'static str, usize); 2] {
    let (mut least, mut most) = (0, 0);
    for (n, share) in shares.iter().enumerate() {
        if *share < shares[least] {
            least = n;
        }
        if *share > shares[most] {
            most = n;
        }
    }
    [("stable", most), ("changing", least)]
}

/// Shares of its time that each program spends with each other.
fn watch_run(prepared: &PreparedMix, policy: &str, seed: u64) -> Result<Vec<Vec<f64>>, StudyError> {
    let watch = CoRunnerWatch::new(&prepared.experiment.chip);
    prepared.run(policy, seed, Box::new(watch.clone()), None)?;
    Ok(watch.shares())
}

/// Mean over programs of a value of their row of shares.
fn mean_over_programs(matrix: &[Vec<f64>], value: fn(&[f64]) -> f64) -> f64 {
    let values: Vec<f64> = matrix.iter().map(|row| value(row)).collect();
    mean(&values).unwrap_or(0.0)
}

/// The largest of a program's shares.
fn top(row: &[f64]) -> f64 {
    row.iter().copied().fold(0.0, f64::max)
}

/// The effective number of a program's co-runners.
fn partners(row: &[f64]) -> f64 {
    1.0 / row.iter().map(|share| share * share).sum::<f64>()
}

impl MixMatrices {
    /// Mean over programs of a value of their row of shares, for each run.
    fn each_run(&self, value: fn(&[f64]) -> f64) -> Vec<f64> {
        let runs = self.runs.iter();
        runs.map(|matrix| mean_over_programs(matrix, value))
            .collect()
    }

    /// The shares of the first run.
    fn table(&self) -> Result<ReportTable, StudyError> {
        // Columns are the programs of a drawn workload, so the file cannot name them.
        let names = self.mix.names();
        let numbered = names.iter().zip(1..);
        let columns = numbered
            .map(|(name, n)| ReportColumn::with_unit(&format!("beside-{n}"), name, "% of time"));
        let title = format!(
            "Share of its time with each program, {} workload, first run",
            self.name
        );
        let mut table = ReportTable::new(self.name, &title, columns.collect())?;
        for (name, row) in names.iter().zip(&self.runs[0]) {
            let cells = row.iter().map(|share| (100.0 * share).into());
            table.push(name, cells.collect())?;
        }
        Ok(table)
    }

    fn figure(&self) -> Result<Figure, StudyError> {
        let mut cells = Vec::new();
        for (r, row) in self.runs[0].iter().enumerate() {
            let shares = row.iter().enumerate();
            // A program is never its own co-runner, so the diagonal has no value.
            let shares = shares.map(|(c, share)| (r != c).then_some(100.0 * share));
            cells.push(shares.collect());
        }
        let map = HeatMap {
            x: "Co-runner".to_owned(),
            y: "Program".to_owned(),
            value: Axis::linear("Share of time on one core", Some("%")),
            columns: self.mix.names(),
            rows: self.mix.names(),
            cells,
        };
        let title = format!(
            "Who shares a core with whom, {} workload ({})",
            self.name,
            self.mix.key()
        );
        Ok(Figure::new(self.name, &title, "", 1, Plot::HeatMap(map))?)
    }

    fn note(&self, top_share: &str) -> String {
        let (names, matrix) = (self.mix.names(), &self.runs[0]);
        let pairs = (0..names.len()).flat_map(|a| (0..a).map(move |b| (b, a)));
        let most = pairs.max_by(|x, y| matrix[x.0][x.1].total_cmp(&matrix[y.0][y.1]));
        let closest = most.map_or_else(String::new, |(a, b)| {
            format!(
                "The pair most often together is {} and {}: {:.0} %.",
                names[a],
                names[b],
                100.0 * matrix[a][b]
            )
        });
        format!(
            "{} ({}): under {CHOOSER} a program spends {:.0} % of its time with its most frequent \
             co-runner, under {POLICY} {top_share} %. {closest}",
            self.name,
            self.mix.key(),
            100.0 * self.chooser_share,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_and_least_concentrated_workloads_are_chosen() {
        let chosen = choose(&[0.3, 0.1, 0.5, 0.1, 0.5]);
        assert_eq!(chosen, [("stable", 2), ("changing", 1)]);
    }

    #[test]
    fn equal_shares_count_as_many_partners() {
        assert_eq!(partners(&[0.0, 0.25, 0.25, 0.25, 0.25]), 4.0);
        assert_eq!(top(&[0.0, 0.75, 0.25]), 0.75);
    }
}
