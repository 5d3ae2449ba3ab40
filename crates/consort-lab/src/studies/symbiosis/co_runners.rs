//! S7: frequency with which programs share a core under symbiotic scheduling.
//!
//! Keys. Table `headline`: rows `STABLE-OR-CHANGING workload, time beside the most frequent
//! co-runner`. Table `workloads`: rows `5/NUMBER`; columns `ipc_variation_percent`, `chosen_as`,
//! `programs`. Table `summary`: rows `stable`, `changing`; columns `top_share_percent` (share of
//! its time that a program spends with its most frequent co-runner, mean over programs),
//! `partners` (effective number of co-runners, the inverse of the sum of squared shares),
//! `expected_top_share_percent` (were all equally frequent). Tables `stable` and `changing`: rows
//! the programs, columns `beside-NUMBER` in the order of the rows. Figures `stable`, `changing`.

use super::{DrawnMix, NEAR_FIRST_HALF, PROGRAMS, PreparedMix, quantum_experiment};
use crate::frame::interval_cell;
use crate::simulate::programs::{find, instance, join_entries};
use crate::simulate::{map_jobs, part_error, run_every_case};
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_core::stats::mean;
use consort_data::{Axis, Figure, HeadlineTable, HeatMap, Plot, ReportColumn, ReportTable};
use consort_experiment::watch::CoRunnerWatch;
use consort_experiment::{Contender, ExperimentContext};
use consort_sim::engine::{Observer, PuUse, RunSegment};
use std::cell::RefCell;
use std::rc::Rc;

const CORES: usize = 5;
const POLICY: &str = "symbiotic";
/// Workloads to choose from, at the quick and the full scale.
const MIXES: [usize; 2] = [4, 15];
const RUNS: [usize; 2] = [2, 15];
/// Time of a program's work alone, s.
const ALONE_S: [f64; 2] = [10.0, 120.0];

/// A chosen workload with the matrices of its runs: share of its time that a program (row) is on
/// one core with another (column).
struct MixMatrices {
    name: &'static str,
    mix: DrawnMix,
    /// Coefficient of variation of its programs' instructions per cycle alone.
    variation: f64,
    runs: Vec<Vec<Vec<f64>>>,
}

/// Runs the study.
pub(in crate::studies) fn run(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let [mixes, runs] = [MIXES, RUNS].map(|[quick, full]| context.by_scale(quick, full));
    let alone_s = context.by_scale(ALONE_S[0], ALONE_S[1]);
    let mixes = DrawnMix::draw_all(context.seed(), CORES, mixes);
    let of_programs = map_jobs(context, &PROGRAMS, |program| {
        variation_alone(program, alone_s, context.seed())
    })?;
    let variations = mixes.iter().map(|mix| {
        let all: f64 = mix.programs.iter().map(|&p| of_programs[p]).sum();
        all / mix.programs.len() as f64
    });
    let variations: Vec<f64> = variations.collect();
    let chosen = choose(&variations);
    let mut workloads = Vec::new();
    for (n, (mix, variation)) in mixes.iter().zip(&variations).enumerate() {
        let name = chosen.iter().find(|(_, mix)| *mix == n);
        let cells = vec![
            (100.0 * variation).into(),
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
            variation: variations[mix],
            runs: watch_runs(&mixes[mix], (alone_s, runs), context)?,
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

/// The workloads whose programs vary least and most, by their names in rows; the first of several.
fn choose(variations: &[f64]) -> [(&'static str, usize); 2] {
    let (mut least, mut most) = (0, 0);
    for (n, variation) in variations.iter().enumerate() {
        if *variation < variations[least] {
            least = n;
        }
        if *variation > variations[most] {
            most = n;
        }
    }
    [("stable", least), ("changing", most)]
}

/// Coefficient of variation over time of a program's instructions per cycle while it runs alone.
/// Workloads are chosen by this, so that the choice does not depend on what is measured.
fn variation_alone(program: &str, alone_s: f64, seed: u64) -> Result<f64, StudyError> {
    let entry = instance(program.to_owned(), &find(program)?, 1);
    let experiment = quantum_experiment(CORES, join_entries(vec![entry]), alone_s)?;
    let part = format!("{program} alone");
    let contender = Contender::new("linux", "linux").map_err(part_error(&part))?;
    let work = experiment.measure_work(seed).map_err(part_error(&part))?;
    let moments = IpcMoments::default();
    let observer = Box::new(moments.clone());
    let run = experiment.run(&contender, &work, seed, Some(observer));
    run.map_err(part_error(&part))?;
    Ok(moments.variation())
}

/// Time, and sums over time of the instructions per cycle and of their squares.
#[derive(Clone, Debug, Default)]
struct IpcMoments(Rc<RefCell<[f64; 3]>>);

impl IpcMoments {
    /// Standard deviation over mean.
    fn variation(&self) -> f64 {
        let [time, sum, squares] = *self.0.borrow();
        let mean = sum / time;
        // Rounding takes the variance of a constant below 0.
        (squares / time - mean * mean).max(0.0).sqrt() / mean
    }

    fn add(&self, time: f64, ipc: f64) {
        let mut moments = self.0.borrow_mut();
        moments[0] += time;
        moments[1] += time * ipc;
        moments[2] += time * ipc * ipc;
    }
}

impl Observer for IpcMoments {
    fn note_segment(&mut self, segment: &RunSegment<'_>) {
        if segment.doing == PuUse::Work {
            let time = (segment.to_ps - segment.from_ps) as f64;
            self.add(time, 1.0 / segment.rates.cpi);
        }
    }
}

fn watch_runs(
    mix: &DrawnMix,
    (alone_s, runs): (f64, usize),
    context: &ExperimentContext<'_>,
) -> Result<Vec<Vec<Vec<f64>>>, StudyError> {
    let prepared = [PreparedMix::new(mix, NEAR_FIRST_HALF, alone_s, context)?];
    let jobs = (&prepared[..], &[POLICY][..], runs);
    run_every_case(context, jobs, |prepared, policy, seed| {
        let watch = CoRunnerWatch::new(&prepared.experiment.chip);
        prepared.run(policy, seed, Box::new(watch.clone()), None)?;
        Ok(watch.shares())
    })
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
        runs.map(|matrix| {
            let values: Vec<f64> = matrix.iter().map(|row| value(row)).collect();
            mean(&values).unwrap_or(0.0)
        })
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
            "Share of its time beside each program, {} workload, first run",
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
            "{} ({}): alone its programs' instructions per cycle vary by {:.1} % on average; under \
             {POLICY} a program spends {top_share} % of its time beside its most frequent co-runner. \
             {closest}",
            self.name,
            self.mix.key(),
            100.0 * self.variation,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variation_is_weighted_by_time() {
        let moments = IpcMoments::default();
        moments.add(1.0, 1.0);
        moments.add(3.0, 1.0);
        assert_eq!(moments.variation(), 0.0);
        moments.add(4.0, 3.0);
        assert!((moments.variation() - 0.5).abs() < 1e-12);
    }

    #[test]
    fn least_and_most_varying_workloads_are_chosen() {
        let chosen = choose(&[0.3, 0.1, 0.5, 0.1, 0.5]);
        assert_eq!(chosen, [("stable", 1), ("changing", 2)]);
    }

    #[test]
    fn equal_shares_count_as_many_partners() {
        assert_eq!(partners(&[0.0, 0.25, 0.25, 0.25, 0.25]), 4.0);
        assert_eq!(top(&[0.0, 0.75, 0.25]), 0.75);
    }
}
