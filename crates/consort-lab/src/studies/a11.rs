//! A11: kuths for many cores, with private LLC regions.
//!
//! Keys. Table `headline`; table `programs`: rows `CORES/PROGRAM/POLICY` and `CORES/all/POLICY`; table `cores`: rows
//! `CORES/POLICY`. Columns: see [`super::asymmetry::compared`]; the base is `linux-acmp`. Figures
//! `cores` and `programs-CORES`.

use super::asymmetry::case::Case;
use super::asymmetry::chips::chip;
use super::asymmetry::compared::{Compared, Draft, Group, STP};
use super::asymmetry::grid::Grid;
use super::asymmetry::headlines::over;
use super::asymmetry::programs::parallel;
use super::asymmetry::splash;
use super::asymmetry::{BASE, SEED, SOURCE};
use crate::context::Context;
use crate::report::{Headline, Table};
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};
use consort_sim::program::ProgramSpec;
use std::sync::Arc;

/// The study.
pub(super) struct A11;

static INFO: StudyInfo = StudyInfo {
    id: "A11",
    title: "kuths on 8, 16 and 32 cores with private LLC regions",
    source: SOURCE,
    section: "KUTHS, many-core systems",
    original: "Sniper; 8, 16 and 32 cores in groups of one large and three small cores, each group \
               with a last-level region of its own, joined by a ring. SPLASH-2 under KUTHS, which \
               exchanges threads inside a group only while the operating system keeps them in \
               their group, against Linux.",
    differs: "The machine is simulated at the level of rates, and the programs are profiles, most \
              of whose figures but synchronisation are estimates. Programs have as many threads as there are cores, \
              and the work of 0.2 s alone on the whole machine (0.05 s at the quick scale, which \
              has 8 and 16 cores and 4 programs). Threads that are done before their siblings start again. \
              The source's Linux is linux-acmp, which deals threads to cores in turn and keeps them \
              there; kuths stands on it, so that threads stay in their group. linux without \
              knowledge of core types stands beside it, and the contender `none on linux-grouped`: \
              the same, but it keeps threads in the group where it put them.",
    default_seed: SEED,
    full_seconds_hint: 160,
};

/// Machines by number of cores.
const MACHINES: [(usize, &str); 3] = [(8, "acmp-2+6"), (16, "acmp-4+12"), (32, "acmp-8+24")];
/// The policies, in the order of rows.
const POLICIES: [&str; 4] = [BASE, "linux", "none on linux-grouped", KUTHS];
/// Exchanges inside groups, beneath a system that keeps threads where they were dealt.
const KUTHS: &str = "kuths";
/// Runs of each program, machine and policy.
const RUNS: [usize; 2] = [2, 3];
/// Time of a program's work alone, s.
const ALONE_S: [f64; 2] = [0.05, 0.2];

impl Study for A11 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn mechanism(&self) -> &'static [&'static str] {
        &MECHANISM
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        let grid = grid(context)?;
        let machines = machines(context);
        let by_cores = Compared::with(&grid, POLICIES[0], by_cores(&grid, machines));
        let by_program = Compared::with(&grid, POLICIES[0], by_program(&grid));
        let mut figures = vec![by_cores.figure(CORES, STP)?];
        for &(cores, machine) in machines {
            figures.push(programs_figure(&grid, cores, machine)?);
        }
        Ok(StudyOutput {
            tables: vec![
                headline(&grid, machines)?,
                by_cores.table(
                    "cores",
                    "By number of cores: mean and intervals over programs",
                )?,
                by_program.table("programs", "By program: intervals over runs")?,
            ],
            figures,
            notes: notes(&by_cores, machines, &grid),
            runs: grid.runs,
        })
    }
}

const CORES: Draft<'_> = Draft {
    key: "cores",
    title: "SPLASH-2 on groups of 1 large and 3 small cores: speed over linux-acmp",
    text: "Geometric means over programs; intervals are over programs.",
    category: "Cores",
    value: "Speed over linux-acmp",
};

fn machines(context: &Context<'_>) -> &'static [(usize, &'static str)] {
    context.by_scale(&MACHINES[..2], &MACHINES[..])
}

fn grid(context: &Context<'_>) -> Result<Grid, StudyError> {
    let programs = splash::programs(context)?;
    let alone_s = context.by_scale(ALONE_S[0], ALONE_S[1]);
    let mut jobs: Vec<(usize, &str, &Arc<ProgramSpec>)> = Vec::new();
    for (cores, machine) in machines(context) {
        jobs.extend(programs.iter().map(|program| (*cores, *machine, program)));
    }
    let cases = context.map(&jobs, |&(cores, machine, program)| {
        let key = format!("{cores}/{}", program.name);
        let workload = parallel(program, cores as u32);
        let case = Case::new(&key, &chip(machine)?, workload, alone_s, context.seed());
        case.map(Case::like_source)
    })?;
    let cases: Vec<Case> = cases.into_iter().collect::<Result<_, _>>()?;
    let runs = context.by_scale(RUNS[0], RUNS[1]);
    Grid::run(context, &cases, &POLICIES, runs)
}

/// By number of cores: the average, then every program.
fn headline(grid: &Grid, machines: &[(usize, &str)]) -> Result<Table, StudyError> {
    let mut headline = Headline::new()?;
    let of = |cases: &[usize], policy| over(grid, cases, (policy, BASE), STP);
    for &(cores, _) in machines {
        let cases = cases_on(grid, cores);
        let row = format!("kuths over linux, {cores} cores");
        headline.add_gain(&format!("{row}, average"), of(&cases, KUTHS))?;
        let unaware = format!("linux without core types over linux, {cores} cores, average");
        headline.add_gain(&unaware, of(&cases, POLICIES[1]))?;
        for case in cases {
            let program = grid.keys[case].split('/').nth(1).unwrap_or_default();
            headline.add_gain(&format!("{row}, {program}"), of(&[case], KUTHS))?;
        }
    }
    Ok(headline.into_table())
}

fn cases_on(grid: &Grid, cores: usize) -> Vec<usize> {
    let cores = cores.to_string();
    grid.cases(|key| key.split_once('/').is_some_and(|(first, _)| first == cores))
}

fn by_cores(grid: &Grid, machines: &[(usize, &str)]) -> Vec<Group> {
    let group =
        |&(cores, _): &(usize, &str)| Group::of_cases(&cores.to_string(), cases_on(grid, cores));
    machines.iter().map(group).collect()
}

fn by_program(grid: &Grid) -> Vec<Group> {
    let group = |(case, key): (usize, &String)| Group::of_runs(key, vec![case]);
    grid.keys.iter().enumerate().map(group).collect()
}

fn programs_figure(
    grid: &Grid,
    cores: usize,
    machine: &str,
) -> Result<crate::report::Figure, StudyError> {
    let named = |case: usize| {
        let key = &grid.keys[case];
        let program = key
            .split_once('/')
            .map_or(key.as_str(), |(_, program)| program);
        Group::of_runs(program, vec![case])
    };
    let groups = cases_on(grid, cores).into_iter().map(named).collect();
    Compared::with(grid, POLICIES[0], groups).figure(
        Draft {
            key: &format!("programs-{cores}"),
            title: &format!("SPLASH-2 on {machine}, {cores} cores: speed over linux-acmp"),
            text: "Intervals are over runs.",
            category: "Program",
            value: "Speed over linux-acmp",
        },
        STP,
    )
}

fn notes(by_cores: &Compared<'_>, machines: &[(usize, &str)], grid: &Grid) -> Vec<String> {
    let mut notes: Vec<String> = { by_cores.groups.iter() }
        .map(|group| {
            let speeds = by_cores.sentence(group, STP);
            format!("Speed over linux-acmp on {} cores: {speeds}.", group.key)
        })
        .collect();
    if let Some((most, _)) = machines.last() {
        let one = |case: usize| Group::of_runs(&grid.keys[case], vec![case]);
        let groups = cases_on(grid, *most).into_iter().map(one).collect();
        notes.push(Compared::with(grid, POLICIES[0], groups).extremes(KUTHS));
    }
    notes
}

const MECHANISM: [&str; 1] = [
    "Every thread does an equal part, and all wait for the slowest. linux-acmp keeps each on the core \
    that it was dealt, where those on small cores set the pace. Inside a group its four threads have \
    the large core in turn and refill from the region that they share, so all groups, which are alike, \
    keep pace.",
];
