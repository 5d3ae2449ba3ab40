//! A5: the closed form of round robin against its simulation, single-threaded programs.
//!
//! Keys. Table `headline`; table `programs`: rows `PROGRAM` and `all`; columns `time_over_ideal` (simulated hrrs),
//! `free_over_ideal` (the same with moves that cost nothing), `time_over_free` (what moves cost),
//! `ideal_slowdown`, `slowdown` (mean of the instances, against the large core alone). Figure
//! `programs`.

use super::asymmetry::case::{Case, Value};
use super::asymmetry::chips::{Kind, chip, single};
use super::asymmetry::grid::Grid;
use super::asymmetry::ideal::IdealRoundRobin;
use super::asymmetry::runs::{HRRS, MACHINE, THREADS, one_per_core, runs};
use super::asymmetry::single::Single;
use super::asymmetry::{DIFFERS_GROUP, SEED, SOURCE};
use super::symbiosis::cells::{interval, ratios};
use crate::context::Context;
use crate::report::{
    Axis, Cell, Column, Figure, Headline, Plot, Point, PointSeries, Scatter, Table,
};
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};
use consort_core::stats::mean;
use consort_sim::chip::Chip;
use std::sync::Arc;

/// The study.
pub(super) struct A5;

static INFO: StudyInfo = StudyInfo {
    id: "A5",
    title: "Ideal against simulated round robin",
    source: SOURCE,
    section: "ideal model for HRRS, against simulation",
    original: "The closed form's speed beside that of simulated hrrs for SPEC CPU2006 on one large and \
               three small cores.",
    differs: DIFFERS_GROUP,
    default_seed: SEED,
    full_seconds_hint: 5,
};

const SLOWDOWN: Value = |o| o.antt;

/// Simulated runs and the closed form's slowdown of each case.
struct Compared {
    simulated: Grid,
    free: Grid,
    ideal: Vec<f64>,
}

impl Study for A5 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        let compared = Compared::of(context)?;
        Ok(StudyOutput {
            tables: vec![compared.headline()?, compared.table()?],
            figures: vec![compared.figure()?],
            notes: compared.notes(),
            runs: compared.simulated.runs,
        })
    }
}

impl Compared {
    fn of(context: &Context<'_>) -> Result<Self, StudyError> {
        let (policies, count) = ([HRRS], runs(context));
        let cases = one_per_core(context)?;
        let whole = chip(MACHINE)?;
        let small = single(&whole, Kind::Small)?;
        let ideal = context.map(&cases, |case| ideal_slowdown(case, &small, context.seed()))?;
        let ideal = ideal.into_iter().collect::<Result<_, _>>()?;
        let simulated = Grid::run(context, &cases, &policies, count)?;
        let free: Vec<Case> = cases.into_iter().map(Case::with_free_migration).collect();
        Ok(Self {
            simulated,
            free: Grid::run(context, &free, &policies, count)?,
            ideal,
        })
    }

    /// Slowdown over that of the closed form, run by run.
    fn over_ideal(&self, grid: &Grid, case: usize) -> Cell {
        let all = grid.values(case, 0, SLOWDOWN);
        ratios(&all.iter().map(|s| s / self.ideal[case]).collect::<Vec<_>>())
    }

    /// Simulated over that with free moves, run by run.
    fn over_free(&self, case: usize) -> Cell {
        let pairs = self.simulated.values(case, 0, SLOWDOWN).into_iter();
        let pairs = pairs.zip(self.free.values(case, 0, SLOWDOWN));
        ratios(&pairs.map(|(all, free)| all / free).collect::<Vec<_>>())
    }

    fn cells(&self, case: usize) -> Vec<Cell> {
        vec![
            self.over_ideal(&self.simulated, case),
            self.over_ideal(&self.free, case),
            self.over_free(case),
            self.ideal[case].into(),
            self.simulated.mean(case, 0, SLOWDOWN),
        ]
    }

    /// Over programs.
    fn all(&self) -> Vec<Cell> {
        let all: Vec<Vec<Cell>> = (0..self.ideal.len()).map(|case| self.cells(case)).collect();
        let column = |n: usize| -> Vec<f64> { all.iter().filter_map(|c| c[n].value()).collect() };
        let ratio = |n| ratios(&column(n));
        let plain = |n| interval(&column(n));
        vec![ratio(0), ratio(1), ratio(2), plain(3), plain(4)]
    }

    /// Time of simulated hrrs over the closed form's: the average and every program's.
    fn headline(&self) -> Result<Table, StudyError> {
        let mut headline = Headline::new()?;
        let row = "time of simulated over ideal hrrs";
        if let Some(all) = self.all().into_iter().next() {
            headline.add_gain(&format!("{row}, average"), all)?;
        }
        for case in 0..self.ideal.len() {
            let key = format!("{row}, {}", self.name(case));
            headline.add_gain(&key, self.over_ideal(&self.simulated, case))?;
        }
        Ok(headline.into_table())
    }

    fn table(&self) -> Result<Table, StudyError> {
        let columns = vec![
            Column::plain("time_over_ideal", "Simulated over ideal time"),
            Column::plain("free_over_ideal", "Without cost of moves"),
            Column::plain("time_over_free", "Cost of moves"),
            Column::plain("ideal_slowdown", "Ideal slowdown"),
            Column::plain("slowdown", "Simulated slowdown"),
        ];
        let title = "Simulated hrrs over its closed form: over runs, `all` over programs";
        let mut table = Table::new("programs", title, columns)?;
        for case in 0..self.ideal.len() {
            table.push(self.name(case), self.cells(case))?;
        }
        table.push("all", self.all())?;
        Ok(table)
    }

    fn name(&self, case: usize) -> &str {
        let key = &self.simulated.keys[case];
        key.split('/').next().unwrap_or(key)
    }

    fn figure(&self) -> Result<Figure, StudyError> {
        let series = |(name, grid): (&str, &Grid)| PointSeries {
            name: name.to_owned(),
            points: (0..self.ideal.len())
                .filter_map(|case| {
                    let cell = grid.mean(case, 0, SLOWDOWN);
                    Some(Point {
                        x: self.ideal[case],
                        y: cell.value()?,
                        ci95: cell.ci95(),
                    })
                })
                .collect(),
        };
        let scatter = Scatter {
            x: Axis::linear("Slowdown by the closed form", None),
            y: Axis::linear("Simulated slowdown", None),
            series: [("free moves", &self.free), ("hrrs", &self.simulated)]
                .map(series)
                .into(),
            diagonal: true,
        };
        let title = "Slowdown against the large core alone, four instances of each program";
        let text = "Above the line the simulation is slower than the closed form.";
        let plot = Plot::Scatter(scatter);
        Ok(Figure::new(
            "programs",
            title,
            text,
            self.simulated.runs,
            plot,
        )?)
    }

    fn notes(&self) -> Vec<String> {
        let all: Vec<String> = self.all().iter().map(Cell::text).collect();
        let mut worst: Vec<(&str, f64, f64)> = (0..self.ideal.len())
            .filter_map(|case| {
                let free = self.over_ideal(&self.free, case).value()?;
                Some((self.name(case), free, self.over_free(case).value()?))
            })
            .collect();
        worst.sort_by(|a, b| (b.1 * b.2).total_cmp(&(a.1 * a.2)));
        let one = |(name, others, moves): &(&str, f64, f64)| {
            format!("{name} (others {others:.3}, moves {moves:.3})")
        };
        let worst: Vec<String> = worst.iter().take(4).map(one).collect();
        vec![
            format!(
                "Simulated hrrs takes {} times the closed form's time: {} times for what programs do \
                 to each other in the L3 and at memory and for other draws, {} times for moves. Furthest off: {}.",
                all[0],
                all[1],
                all[2],
                worst.join(", ")
            ),
            "The closed form knows each instance's speed alone on either kind of core, over the \
             very instructions that it runs. It knows nothing of four instances in one L3 and \
             on one memory controller, and of refills. Variation within phases is drawn anew for every \
             run, and the closed form's speeds are those of one drawing: where intervals are wide, \
             and where moves that cost nothing leave a value other than 1 in a program that \
             hardly uses memory, that is what is seen."
                .to_owned(),
        ]
    }
}

/// Mean slowdown of the instances by the closed form.
fn ideal_slowdown(case: &Case, small: &Arc<Chip>, seed: u64) -> Result<f64, StudyError> {
    let cores = case.experiment.chip.places().len() as u32;
    let one = |n: usize| {
        let (entry, work) = (&case.experiment.workload.entries[n], &case.work[n]);
        let alone = Single::run(small, &entry.program, work.instructions, seed)?;
        let model = IdealRoundRobin {
            large_ips: work.instructions / work.alone_s,
            small_ips: work.instructions / alone.time_s,
            cores,
        };
        Ok(model.time_s(work.instructions, THREADS[0]) / work.alone_s)
    };
    let all: Vec<f64> = (0..case.work.len())
        .map(one)
        .collect::<Result<_, StudyError>>()?;
    Ok(mean(&all).unwrap_or(f64::NAN))
}
