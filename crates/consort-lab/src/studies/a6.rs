//! A6: round robin and fair progress on SPLASH-2.
//!
//! Keys. Table `programs`: rows `PROGRAM/POLICY` and `all/POLICY`, over 4, 8 and 16 threads.
//! Table `threads`: rows `THREADS/POLICY`, over programs. Columns: see
//! [`super::asymmetry::compared`]; the base is `linux`. Figures `programs` and `threads`.

use super::asymmetry::compared::{Compared, Draft, Group, STP};
use super::asymmetry::grid::Grid;
use super::asymmetry::runs::{self, FAIR, HRRS, LINUX, THREADS};
use super::asymmetry::splash;
use super::asymmetry::{SEED, SOURCE};
use crate::context::Context;
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};

/// The study.
pub(super) struct A6;

static INFO: StudyInfo = StudyInfo {
    id: "A6",
    title: "hrrs and fair-progress on SPLASH-2, one large and three small cores",
    source: SOURCE,
    section: "HRRS, multi-threaded programs",
    original: "Sniper, one large and three small cores with a shared LLC, Linux' scheduler above. \
               Thirteen programs of SPLASH-2 with 4, 8 and 16 threads each; hardware round-robin \
               at 1 ms and fairness-aware scheduling over the operating system alone; means over \
               the numbers of threads.",
    differs: "The machine is simulated at the level of rates, not of instructions, and the programs \
              are profiles, most of whose figures are estimates; the work is what a program does \
              alone on the whole machine in 0.2 s (0.05 s at the quick scale), not its whole input. \
              fair-progress stands for the source's fairness-aware scheduler. The quick scale has \
              4 programs and 2 runs.",
    default_seed: SEED,
    full_seconds_hint: 60,
};

/// The policies of this study, `linux` apart.
const OTHERS: [&str; 2] = [HRRS, FAIR];

impl Study for A6 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn mechanism(&self) -> &'static [&'static str] {
        &MECHANISM
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        let grid = runs::splash(context)?;
        let programs = by_program(context, &grid)?;
        let threads = Compared::with(&grid, LINUX, splash::by_threads(&grid)).only(&OTHERS);
        let of_programs = "Each program over linux: mean over 4, 8 and 16 threads, intervals over \
                           runs; all: over programs and numbers of threads";
        let of_threads = "Each number of threads over linux: mean and intervals over programs";
        Ok(StudyOutput {
            tables: vec![
                programs.table("programs", of_programs)?,
                threads.table("threads", of_threads)?,
            ],
            figures: vec![
                programs.figure(PROGRAMS, STP)?,
                threads.figure(BY_THREADS, STP)?,
            ],
            notes: notes(&programs, &threads),
            runs: grid.runs,
        })
    }
}

const PROGRAMS: Draft<'_> = Draft {
    key: "programs",
    title: "SPLASH-2 on 1 large and 3 small cores: speed over linux",
    text: "Geometric means over 4, 8 and 16 threads; intervals are over runs, of all over cases.",
    category: "Program",
    value: "Speed over linux",
};

const BY_THREADS: Draft<'_> = Draft {
    key: "threads",
    title: "SPLASH-2 on 1 large and 3 small cores, by number of threads",
    text: "Geometric means over programs; intervals are over programs.",
    category: "Threads",
    value: "Speed over linux",
};

fn by_program<'a>(context: &Context<'_>, grid: &'a Grid) -> Result<Compared<'a>, StudyError> {
    let programs = splash::programs(context)?;
    let group = |name: &str| Group::of_runs(name, splash::cases_of(grid, Some(name)));
    let mut groups: Vec<Group> = programs.iter().map(|p| group(&p.name)).collect();
    groups.push(Group::of_cases("all", splash::cases_of(grid, None)));
    Ok(Compared::with(grid, LINUX, groups).only(&OTHERS))
}

fn notes(programs: &Compared<'_>, threads: &Compared<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(all) = programs.groups.last() {
        let speeds = programs.sentence(all, STP);
        notes.push(format!(
            "Speed over linux, over all programs and numbers of threads: {speeds}."
        ));
    }
    let by_threads = threads.groups.iter().zip(THREADS);
    notes.extend(by_threads.map(|(group, n)| {
        let speeds = threads.sentence(group, STP);
        format!("{n} threads: {speeds}.")
    }));
    notes.push(programs.extremes(HRRS));
    notes
}

const MECHANISM: [&str; 1] = [
    "The threads of a program do equal parts and wait for each other at \
    barriers and at the end, so a program is as fast as its slowest thread. linux leaves a thread \
    on the core that it has: those on small cores set the pace, and the one on the large core \
    waits. A scheduler that lets all have the large core in turn makes them equally fast, which \
    shows as less time waiting and more instructions on the large core.",
];
