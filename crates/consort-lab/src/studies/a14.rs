//! A14: kuths, criticality and tcs on SPLASH-2 with one large and one small core.
//!
//! Keys. Table `headline`; table `programs`: rows `PROGRAM/POLICY` and `all/POLICY`, over 2 and 4 threads; columns:
//! see [`super::asymmetry::compared`]; the base is `pinned`. Table `readings`: see
//! [`super::asymmetry::readings`]. Figure `programs`.

use super::asymmetry::case::Case;
use super::asymmetry::chips::chip;
use super::asymmetry::compared::{Compared, Draft, Group, STP};
use super::asymmetry::grid::Grid;
use super::asymmetry::headlines::gains;
use super::asymmetry::programs::parallel;
use super::asymmetry::splash;
use super::asymmetry::{SEED, SOURCE, readings};
use super::{a12, a13};
use crate::context::Context;
use crate::report::{Headline, Table};
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};
use consort_sim::program::ProgramSpec;
use std::sync::Arc;

/// The study.
pub(super) struct A14;

static INFO: StudyInfo = StudyInfo {
    id: "A14",
    title: "kuths, criticality and tcs on SPLASH-2, one large and one small core",
    source: SOURCE,
    section: "TCS, multi-threaded workloads",
    original: "Sniper, one large and one small core. Programs of SPLASH-2 under kernel-to-user-mode \
               scheduling, criticality stacks, and trait-aware criticality scheduling, against \
               threads pinned to cores.",
    differs: "The machine is simulated at the level of rates, and the programs are profiles, most \
              of whose figures but synchronisation are estimates. Programs have 2 and 4 threads and the work of 0.5 s \
              alone on the whole machine (0.1 s at the quick scale, which has 4 programs). Threads that \
              are done before their siblings start again. The \
              source tells in two ways whom the long-term sum of tcs sends to the large core; both \
              are run, here and in A12 and A13, and the table `readings` sets them against each \
              other.",
    default_seed: SEED,
    full_seconds_hint: 60,
};

/// The machine.
const MACHINE: &str = "acmp-1+1";
/// Threads of a program.
const THREADS: [u32; 2] = [2, 4];
/// The policies, in the order of rows.
const POLICIES: [&str; 5] = [
    "pinned",
    "kuths",
    "criticality",
    readings::LAGGING,
    readings::CRITICAL,
];
/// Runs of each program, number of threads and policy.
const RUNS: [usize; 2] = [2, 3];
/// Time of a program's work alone, s.
const ALONE_S: [f64; 2] = [0.1, 0.5];

impl Study for A14 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn mechanism(&self) -> &'static [&'static str] {
        &MECHANISM
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        let grid = grid(context)?;
        let all = splash::programs(context)?;
        let mut groups: Vec<Group> = { all.iter() }
            .map(|p| Group::of_runs(&p.name, splash::cases_of(&grid, Some(&p.name))))
            .collect();
        groups.push(Group::of_cases("all", splash::cases_of(&grid, None)));
        let programs = Compared::with(&grid, POLICIES[0], groups);
        let (of_a12, of_a13) = (a12::grid(context)?, a13::grid(context)?);
        let grids = [("A12", &*of_a12), ("A13", &*of_a13), ("A14", &grid)];
        let (table, verdict) = readings::table(&grids)?;
        let title = "Each program over pinned: mean over 2 and 4 threads, intervals over runs";
        Ok(StudyOutput {
            tables: vec![
                headline(&programs)?,
                programs.table("programs", title)?,
                table,
            ],
            figures: vec![programs.figure(PROGRAMS, STP)?],
            notes: notes(&programs, verdict),
            runs: grid.runs,
        })
    }
}

const PROGRAMS: Draft<'_> = Draft {
    key: "programs",
    title: "SPLASH-2 on 1 large and 1 small core: speed over pinned",
    text: "Geometric means over 2 and 4 threads; intervals are over runs, of all over programs \
           and numbers of threads.",
    category: "Program",
    value: "Speed over pinned",
};

fn grid(context: &Context<'_>) -> Result<Grid, StudyError> {
    let chip = chip(MACHINE)?;
    let programs = splash::programs(context)?;
    let with_threads = |program| THREADS.map(|threads| (program, threads));
    let jobs: Vec<(&Arc<ProgramSpec>, u32)> = programs.iter().flat_map(with_threads).collect();
    let alone_s = context.by_scale(ALONE_S[0], ALONE_S[1]);
    let cases = context.map(&jobs, |(program, threads)| {
        let key = format!("{}/{threads}", program.name);
        let workload = parallel(program, *threads);
        Case::new(&key, &chip, workload, alone_s, context.seed()).map(Case::like_source)
    })?;
    let cases: Vec<Case> = cases.into_iter().collect::<Result<_, _>>()?;
    let runs = context.by_scale(RUNS[0], RUNS[1]);
    Grid::run(context, &cases, &POLICIES, runs)
}

/// Every policy over pinned: all programs together, then each by itself.
fn headline(programs: &Compared<'_>) -> Result<Table, StudyError> {
    let rows = [
        ("kuths over pinned", POLICIES[1], POLICIES[0]),
        ("criticality over pinned", POLICIES[2], POLICIES[0]),
        ("tcs over pinned", readings::CRITICAL, POLICIES[0]),
        (
            "tcs by its worked example over pinned",
            readings::LAGGING,
            POLICIES[0],
        ),
    ];
    let mut headline = Headline::new()?;
    for group in programs.groups.iter().rev() {
        let what = match group.key.as_str() {
            "all" => "SPLASH-2",
            name => name,
        };
        gains(
            &mut headline,
            (programs.grid, &group.cases),
            what,
            STP,
            &rows,
        )?;
    }
    Ok(headline.into_table())
}

fn notes(programs: &Compared<'_>, verdict: String) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(all) = programs.groups.last() {
        let speeds = programs.sentence(all, STP);
        notes.push(format!(
            "Speed over pinned, over all programs and numbers of threads: {speeds}."
        ));
    }
    notes.extend(["kuths", "criticality", readings::LAGGING].map(|name| programs.extremes(name)));
    notes.push(verdict);
    notes
}

const MECHANISM: [&str; 2] = [
    "Threads do equal parts, so pinned runs at the pace of the small core. kuths gives the large core \
    away at once when it goes idle; tcs decides at the end of each millisecond, criticality at changes \
    of activity but at most once in 4 ms, the software quantum.",
    "In a quantum in which no thread stalls or goes on, tcs exchanges the threads when the one on the \
    small core did less in it. In all others, mostly at barriers, the long-term sums decide, and there \
    the readings differ.",
];
