//! A3: ideal round robin over fair progress, equal threads.
//!
//! Keys. Table `headline`; table `ratio`: rows `MACHINE/RATIO`, for example `1+3/2`; columns `ideal_over_fair_4ms`,
//! `ideal_over_fair_1ms` (speed: time until the last thread is done, inverted), `ideal_over_hrrs`
//! (the simulated one), `ideal_s`. Figures `fair-4ms`, `fair-1ms`.

use super::asymmetry::case::Case;
use super::asymmetry::chips::{Kind, single, spec, whole};
use super::asymmetry::grid::Grid;
use super::asymmetry::ideal::IdealRoundRobin;
use super::asymmetry::programs::{copies, find};
use super::asymmetry::runs::HRRS;
use super::asymmetry::single::Single;
use super::asymmetry::{SEED, SOURCE};
use super::symbiosis::cells::ratios;
use crate::context::Context;
use crate::report::{Axis, Cell, Column, Figure, Headline, Lines, Plot, Point, PointSeries, Table};
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};
use consort_sim::chip::Chip;
use consort_sim::machine::MachineSpec;
use std::sync::Arc;

/// The study.
pub(super) struct A3;

static INFO: StudyInfo = StudyInfo {
    id: "A3",
    title: "Ideal round robin over fair progress",
    source: SOURCE,
    section: "ideal model for HRRS",
    original: "The closed form of round robin without costs, T = Workload/(L + (N-1)·S)·N·Q, \
               over the fairness-aware scheduler, for one large and 1, 3, 7 and 15 small cores and large \
               cores 1 to 4 times as fast as small ones.",
    differs: "Fair progress is simulated, with as many threads of integer arithmetic without misses as \
              cores, and moves that cost nothing; the ratio is set by the clock of the small \
              cores, of which PIE knows nothing, so fair progress measures its ratio. In the closed form L and S are instructions per quantum of length Q. Each \
              thread's work is 0.4 s on the large core. The scheduler is run in hardware, every 1 ms, and \
              in the operating system, every 4 ms. The quick scale has the ratios 1, 2 and 4, \
              0.1 s and one run.",
    default_seed: SEED,
    full_seconds_hint: 40,
};

const MACHINES: [(&str, u32); 4] = [("1+1", 2), ("1+3", 4), ("1+7", 8), ("1+15", 16)];
const PROGRAM: &str = "pure-int";
/// Fair progress at the operating system's quantum.
const FAIR: &str = "fair-progress:form=software,ratio=measured";
/// Fair progress at the hardware's quantum.
const FAIR_1MS: &str = "fair-progress:form=hardware,ratio=measured";
/// Large over small, at the quick and the full scale.
const RATIOS: [&[f64]; 2] = [&[1.0, 2.0, 4.0], &[1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0]];
/// Time of a thread's work alone on the large core, s.
const ALONE_S: [f64; 2] = [0.1, 0.4];
/// Runs of each machine and policy.
const RUNS: [usize; 2] = [1, 3];
/// Work with which speeds are measured, instructions.
const SPEED_INSTR: f64 = 2e9;

/// A machine with a ratio, and what the closed form says of it.
struct Setting {
    machine: &'static str,
    ratio: f64,
    case: Case,
    ideal_s: f64,
}

impl Study for A3 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        let ratios = context.by_scale(RATIOS[0], RATIOS[1]);
        let jobs: Vec<(&str, u32, f64)> = MACHINES
            .iter()
            .flat_map(|&(name, cores)| ratios.iter().map(move |&ratio| (name, cores, ratio)))
            .collect();
        let settings = context.map(&jobs, |&job| setting(context, job))?;
        let settings: Vec<Setting> = settings.into_iter().collect::<Result<_, _>>()?;
        let (cases, told): (Vec<Case>, Vec<Told>) =
            settings.into_iter().map(Setting::split).unzip();
        let runs = context.by_scale(RUNS[0], RUNS[1]);
        let policies = [FAIR_1MS, FAIR, HRRS];
        let grid = Grid::run(context, &cases, &policies, runs)?;
        Ok(StudyOutput {
            tables: vec![headline(&grid, &told)?, table(&grid, &told)?],
            figures: figures(&grid, &told)?,
            notes: notes(&grid, &told),
            runs,
        })
    }
}

/// What is left of a setting when its case has been run.
struct Told {
    machine: &'static str,
    ratio: f64,
    ideal_s: f64,
}

impl Setting {
    fn split(self) -> (Case, Told) {
        let told = Told {
            machine: self.machine,
            ratio: self.ratio,
            ideal_s: self.ideal_s,
        };
        (self.case, told)
    }
}

fn setting(
    context: &Context<'_>,
    (machine, cores, ratio): (&'static str, u32, f64),
) -> Result<Setting, StudyError> {
    let chip = with_ratio(&format!("acmp-{machine}"), ratio, context.seed())?;
    let workload = copies(&find(PROGRAM)?, cores as usize);
    let key = format!("{machine}/{ratio}");
    let alone_s = context.by_scale(ALONE_S[0], ALONE_S[1]);
    let case = Case::new(&key, &chip, workload, alone_s, context.seed())?;
    let case = case.like_source().with_free_migration();
    let model = IdealRoundRobin {
        large_ips: ips(&chip, Kind::Large, context.seed())?,
        small_ips: ips(&chip, Kind::Small, context.seed())?,
        cores,
    };
    let ideal_s = model.time_s(case.work[0].instructions, cores);
    Ok(Setting {
        machine,
        ratio,
        case,
        ideal_s,
    })
}

/// The machine with its small cores' clock such that large cores are so many times as fast.
fn with_ratio(machine: &str, ratio: f64, seed: u64) -> Result<Arc<Chip>, StudyError> {
    let mut spec: MachineSpec = spec(machine)?;
    let given = whole(&spec)?;
    let speed = |kind| ips(&given, kind, seed);
    let factor = speed(Kind::Large)? / speed(Kind::Small)? / ratio;
    let small = (0..given.places().len()).find(|&pu| Kind::of(&given, pu) == Kind::Small);
    let kind = small.map(|pu| given.places()[pu].core_type);
    if let Some(small) = kind.and_then(|kind| spec.core_types.values_mut().nth(kind)) {
        small.frequency_ghz *= factor;
    }
    whole(&spec)
}

/// Instructions per second of the program alone on a core of a kind.
fn ips(chip: &Chip, kind: Kind, seed: u64) -> Result<f64, StudyError> {
    let alone = Single::run(&single(chip, kind)?, &find(PROGRAM)?, SPEED_INSTR, seed)?;
    Ok(SPEED_INSTR / alone.time_s)
}

/// Speed of the closed form over that of simulated runs.
fn ideal_over(grid: &Grid, told: &[Told], case: usize, policy: &str) -> Cell {
    let Some(policy) = grid.policy(policy) else {
        return Cell::missing("not run");
    };
    let times = grid.values(case, policy, |o| o.makespan_s);
    let over = times.iter().map(|time| time / told[case].ideal_s);
    ratios(&over.collect::<Vec<_>>())
}

/// Every point of the source's curves, and their averages by machine.
fn headline(grid: &Grid, told: &[Told]) -> Result<Table, StudyError> {
    let mut headline = Headline::new()?;
    for (policy, name) in [(FAIR_1MS, "1 ms"), (FAIR, "4 ms")] {
        for (machine, _) in MACHINES {
            let of = |case: &usize| told[*case].machine == machine;
            let cases: Vec<usize> = (0..told.len()).filter(of).collect();
            let cell = |case: usize| ideal_over(grid, told, case, policy);
            let all: Vec<f64> = { cases.iter() }
                .filter_map(|&case| cell(case).value())
                .collect();
            let row = format!("ideal hrrs over fair-progress every {name}, {machine}");
            headline.add_gain(&format!("{row}, average"), ratios(&all))?;
            for case in cases {
                let key = format!("{row}, L/S = {}", told[case].ratio);
                headline.add_gain(&key, cell(case))?;
            }
        }
    }
    Ok(headline.into_table())
}

fn table(grid: &Grid, told: &[Told]) -> Result<Table, StudyError> {
    let columns = vec![
        Column::plain("ideal_over_fair_4ms", "Ideal over fair-progress, 4 ms"),
        Column::plain("ideal_over_fair_1ms", "Ideal over fair-progress, 1 ms"),
        Column::plain("ideal_over_hrrs", "Ideal over simulated hrrs"),
        Column::with_unit("ideal_s", "Ideal time", "s"),
    ];
    let title = "Speed of ideal round robin over simulated schedulers, by machine and L/S";
    let mut table = Table::new("ratio", title, columns)?;
    for (case, key) in grid.keys.iter().enumerate() {
        let over = |policy| ideal_over(grid, told, case, policy);
        let cells = vec![
            over(FAIR),
            over(FAIR_1MS),
            over(HRRS),
            told[case].ideal_s.into(),
        ];
        table.push(key, cells)?;
    }
    Ok(table)
}

fn figures(grid: &Grid, told: &[Told]) -> Result<Vec<Figure>, StudyError> {
    let both = [(FAIR, "fair-4ms", "4 ms"), (FAIR_1MS, "fair-1ms", "1 ms")];
    let run = both
        .into_iter()
        .filter(|(policy, ..)| grid.policy(policy).is_some());
    run.map(|(policy, key, quantum)| figure(grid, told, policy, (key, quantum)))
        .collect()
}

fn figure(
    grid: &Grid,
    told: &[Told],
    policy: &str,
    (key, quantum): (&str, &str),
) -> Result<Figure, StudyError> {
    let point = |case: usize| {
        let cell = ideal_over(grid, told, case, policy);
        let y = cell.value()?;
        Some(Point {
            x: told[case].ratio,
            y,
            ci95: cell.ci95(),
        })
    };
    let series = |(machine, _): &(&str, u32)| PointSeries {
        name: (*machine).to_owned(),
        points: (0..told.len())
            .filter(|&case| told[case].machine == *machine)
            .filter_map(point)
            .collect(),
    };
    let lines = Lines {
        x: Axis::linear("Large over small core", None),
        y: Axis::linear("Ideal hrrs over fair-progress", None),
        series: MACHINES.iter().map(series).collect(),
    };
    let title = format!("Speed of ideal hrrs over fair-progress every {quantum}");
    let text = "Equal threads, as many as cores; moves cost nothing.";
    Ok(Figure::new(
        key,
        &title,
        text,
        grid.runs,
        Plot::Lines(lines),
    )?)
}

fn notes(grid: &Grid, told: &[Told]) -> Vec<String> {
    let span = |policy: &str| {
        let all = (0..told.len()).filter_map(|c| ideal_over(grid, told, c, policy).value());
        let all: Vec<f64> = all.collect();
        let low = all.iter().copied().fold(f64::INFINITY, f64::min);
        let high = all.iter().copied().fold(0.0, f64::max);
        (!all.is_empty()).then(|| format!("{low:.4} to {high:.4}"))
    };
    let one = |(policy, name): (&str, &str)| Some(format!("{name} {}", span(policy)?));
    let named = [
        (FAIR, "fair-progress every 4 ms"),
        (FAIR_1MS, "every 1 ms"),
        (HRRS, "simulated hrrs"),
    ];
    let spans: Vec<String> = named.into_iter().filter_map(one).collect();
    vec![
        format!("Speed of the closed form over: {}.", spans.join(", ")),
        "Equal threads that are slowed down equally are what fair progress aims at, too, and it \
         reaches it by giving the large core to whoever has had it least, which is a round \
         robin. What is left between them is the last round: with a longer quantum and more \
         cores a round takes longer, and threads that are done early leave the large core to \
         the others only by then. That differs with what part of a round the work ends in, so \
         lines are not smooth."
            .to_owned(),
    ]
}
