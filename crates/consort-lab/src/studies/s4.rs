//! S4: throughput of drawn workloads under each policy.
//!
//! Keys. Table `headline`: rows `POLICY over random, CORES cores`. Table `cores`: rows `CORES/POLICY` and `all/POLICY`, for example `6/symbiotic`; columns
//! `stp_over_random`, `stp_over_linux` (geometric means over workloads of the means over runs),
//! `stp`. Table `workloads`: rows `CORES/NUMBER/POLICY`, for example `6/03/symbiotic`; columns
//! `stp_over_random`, `stp_over_linux`, `stp`, `antt`, `makespan_s`. Table `causes`: see
//! [`super::symbiosis::causes`]. Table `programs`: rows `CORES/NUMBER`; column `programs`. Table
//! `evenly-placed`: as `cores`, with memory on both nodes. Table `time-alone`: see
//! [`super::symbiosis::longer`]. Figures `cores` and `workloads-CORES`.

use super::symbiosis::cells::{bar, interval, ratio};
use super::symbiosis::grid::{
    Grid, L1_BANDWIDTH, LINUX, ORACLE, POLICIES, RANDOM, SYMBIOTIC, Value,
};
use super::symbiosis::headline::{self, Unit};
use super::symbiosis::{SEED, SOURCE, causes, longer};
use crate::context::Context;
use crate::report::{Axis, BarSeries, Bars, Cell, Column, Figure, Plot, Table};
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};

/// The study.
pub(super) struct S4;

static INFO: StudyInfo = StudyInfo {
    id: "S4",
    title: "Throughput of 105 workloads on 4 to 10 cores of a POWER8",
    source: SOURCE,
    section: "workloads and throughput (section number not checked)",
    original: "IBM POWER8 with 10 cores in SMT2. Fifteen workloads for each number of cores from 4 \
               to 10, each of twice as many programs as cores, out of 21 of SPEC CPU2006, whose \
               work takes 120 s alone; quantum 100 ms; under random placement, the default \
               scheduler, balanced L1 bandwidth, and symbiotic scheduling over the whole chip; 15 \
               runs each.",
    differs: "The machine is simulated, and so are the programs. A program's work takes 10 s alone, \
              not 120 s, so phases that are longer are not seen, programs start again more often, \
              and the first quanta, in which the policy knows nothing yet, count for more; the table \
              time-alone sets some workloads with 120 s beside it. The 21 programs are all of \
              CINT2006 and every other one of CFP2006 by the alphabet; a workload's programs are \
              drawn from them without replacement. Cores in use are dealt to both nodes, with the \
              caches of the others there. Memory is near the first half of the cores, as what the \
              source says of its cores suggests; the table evenly-placed has memory on both nodes, 3 \
              runs, 5 elsewhere. The policy's model is that of the simulated machine, trained on all 29 programs. \
              Added are symbiotic-in-node, which leaves threads on the node where they were first and \
              pairs inside nodes, and the contender oracle, which does the same by the simulation's \
              truth. The quick scale has 2 workloads on 4 and on 5 cores, of 2 s, in 3 runs.",
    default_seed: SEED,
    full_seconds_hint: 900,
};

const STP: Value = |outcome| outcome.stp;

impl Study for S4 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        let grid = Grid::of(context)?;
        let even = Grid::even(context)?;
        let tables = vec![
            headline(&grid)?,
            by_cores("cores", CORES_TITLE, &grid)?,
            by_workload(&grid)?,
            causes::table(&grid)?,
            programs(&grid)?,
            by_cores("evenly-placed", EVEN_TITLE, &even)?,
            longer::table(context)?,
        ];
        let mut figures = vec![cores_figure(&grid)?];
        for (key, group) in grid.groups().iter().filter(|(key, _)| key != "all") {
            figures.push(workloads_figure(&grid, key, group)?);
        }
        Ok(StudyOutput {
            tables,
            figures,
            notes: notes(&grid),
            runs: grid.runs,
        })
    }
}

const CORES_TITLE: &str =
    "Throughput by number of cores: over workloads, with intervals over workloads";
const EVEN_TITLE: &str = "The same with memory evenly placed on both nodes";

fn headline(grid: &Grid) -> Result<Table, StudyError> {
    let policies = [LINUX, L1_BANDWIDTH, SYMBIOTIC];
    let name = |policy: &str| format!("{policy} over random");
    headline::by_cores(grid, &policies, name, Unit::Gain, |group, policy| {
        grid.ratio_of(group, policy, RANDOM, STP)
    })
}

fn by_cores(key: &str, title: &str, grid: &Grid) -> Result<Table, StudyError> {
    let columns = vec![
        Column::plain("stp_over_random", "STP over random"),
        Column::plain("stp_over_linux", "STP over linux"),
        Column::plain("stp", "STP"),
    ];
    let mut table = Table::new(key, title, columns)?;
    for (key, group) in grid.groups() {
        for (policy, name) in POLICIES.iter().enumerate() {
            let over = |base| grid.ratio_of(&group, policy, base, STP);
            let cells = vec![over(RANDOM), over(LINUX), grid.mean_of(&group, policy, STP)];
            table.push(&format!("{key}/{name}"), cells)?;
        }
    }
    Ok(table)
}

fn by_workload(grid: &Grid) -> Result<Table, StudyError> {
    let title = "Throughput by workload: over runs";
    let columns = vec![
        Column::plain("stp_over_random", "STP over random"),
        Column::plain("stp_over_linux", "STP over linux"),
        Column::plain("stp", "STP"),
        Column::plain("antt", "ANTT"),
        Column::with_unit("makespan_s", "Makespan", "s"),
    ];
    let mut table = Table::new("workloads", title, columns)?;
    for (index, mix) in grid.mixes.iter().enumerate() {
        for (policy, name) in POLICIES.iter().enumerate() {
            let mean = |value: Value| interval(&grid.values(index, policy, value));
            let cells = vec![
                over(grid, index, policy, RANDOM),
                over(grid, index, policy, LINUX),
                mean(STP),
                mean(|o| o.antt),
                mean(|o| o.makespan_s),
            ];
            table.push(&format!("{}/{name}", mix.key()), cells)?;
        }
    }
    Ok(table)
}

fn over(grid: &Grid, mix: usize, policy: usize, base: usize) -> Cell {
    ratio(&grid.values(mix, policy, STP), &grid.values(mix, base, STP))
}

fn programs(grid: &Grid) -> Result<Table, StudyError> {
    let columns = vec![Column::plain("programs", "Programs")];
    let mut table = Table::new("programs", "The workloads", columns)?;
    for mix in &grid.mixes {
        table.push(&mix.key(), vec![mix.names().join(" ").as_str().into()])?;
    }
    Ok(table)
}

/// A series for every policy but the one that all are set against.
fn series(bars: impl Fn(usize) -> Vec<Cell>) -> Vec<BarSeries> {
    let others = (0..POLICIES.len()).filter(|&policy| policy != RANDOM);
    let one = |policy: usize| BarSeries {
        name: POLICIES[policy].to_owned(),
        bars: bars(policy).iter().map(bar).collect(),
    };
    others.map(one).collect()
}

fn cores_figure(grid: &Grid) -> Result<Figure, StudyError> {
    let groups = grid.groups();
    let bars = Bars {
        category: "Cores".to_owned(),
        value: Axis::linear("STP over random", None),
        baseline: 1.0,
        groups: groups.iter().map(|(key, _)| key.clone()).collect(),
        series: series(|policy| {
            let of = |(_, group): &(_, Vec<usize>)| grid.ratio_of(group, policy, RANDOM, STP);
            groups.iter().map(of).collect()
        }),
    };
    let title = "System throughput over random placement, by number of cores";
    let text = "Geometric means over the workloads; intervals are over workloads.";
    Ok(Figure::new(
        "cores",
        title,
        text,
        grid.runs,
        Plot::Bars(bars),
    )?)
}

fn workloads_figure(grid: &Grid, cores: &str, group: &[usize]) -> Result<Figure, StudyError> {
    let bars = Bars {
        category: "Workload".to_owned(),
        value: Axis::linear("STP over random", None),
        baseline: 1.0,
        groups: { group.iter() }
            .map(|&mix| grid.mixes[mix].number.to_string())
            .collect(),
        series: series(|policy| {
            { group.iter() }
                .map(|&m| over(grid, m, policy, RANDOM))
                .collect()
        }),
    };
    let key = format!("workloads-{cores}");
    let title = format!("System throughput over random placement, workloads on {cores} cores");
    let text = "Intervals are over runs.";
    Ok(Figure::new(
        &key,
        &title,
        text,
        grid.runs,
        Plot::Bars(bars),
    )?)
}

fn notes(grid: &Grid) -> Vec<String> {
    let mut notes = vec![overall(grid)];
    let others = (0..POLICIES.len()).filter(|&policy| policy != LINUX);
    notes.extend(others.map(|policy| counts(grid, policy)));
    let changes = [
        (RANDOM, LINUX),
        (RANDOM, SYMBIOTIC),
        (LINUX, SYMBIOTIC),
        (SYMBIOTIC, ORACLE),
    ];
    notes.extend(
        changes
            .into_iter()
            .filter_map(|(from, to)| causes::change(grid, from, to)),
    );
    notes
}

fn overall(grid: &Grid) -> String {
    let all: Vec<usize> = (0..grid.mixes.len()).collect();
    let of = |policy: usize| {
        let over = grid.ratio_of(&all, policy, RANDOM, STP);
        format!("{} {}", POLICIES[policy], over.text())
    };
    let others = (0..POLICIES.len()).filter(|&policy| policy != RANDOM);
    format!(
        "Throughput over random's, over all {} workloads: {}.",
        all.len(),
        others.map(of).collect::<Vec<_>>().join(", "),
    )
}

/// In how many workloads a policy is better or worse than linux beyond its interval.
fn counts(grid: &Grid, policy: usize) -> String {
    let ratios: Vec<Cell> = (0..grid.mixes.len())
        .map(|mix| over(grid, mix, policy, LINUX))
        .collect();
    let beyond = |sign: f64| {
        let is = |cell: &&Cell| {
            let (value, ci95) = (cell.value().unwrap_or(1.0), cell.ci95().unwrap_or(0.0));
            sign * (value - 1.0) > ci95
        };
        ratios.iter().filter(is).count()
    };
    format!(
        "{} has more throughput than linux in {} of {} workloads and less in {}, where the 95 \
         percent interval of the ratio leaves out 1.",
        POLICIES[policy],
        beyond(1.0),
        ratios.len(),
        beyond(-1.0),
    )
}
