//! A6: round robin and fair progress on SPLASH-2.
//!
//! Keys. Table `headline`; table `programs`: rows `PROGRAM/POLICY` and `all/POLICY`, over 4, 8 and 16 threads.
//! Table `threads`: rows `THREADS/POLICY`, over programs. Columns: see
//! [`super::asymmetry::compared`]; the base is `linux-acmp`. Table `closed-form`: see
//! [`super::asymmetry::closed`]. Figures `programs` and `threads`.

use super::asymmetry::closed::Closed;
use super::asymmetry::compared::{Compared, Draft, Group, STP};
use super::asymmetry::grid::Grid;
use super::asymmetry::headlines::{Gain, gains};
use super::asymmetry::programs::SPLASH;
use super::asymmetry::runs::{self, FAIR, FAIR_4MS, HRRS, LINUX, THREADS};
use super::asymmetry::splash;
use super::asymmetry::{BASE, SEED, SOURCE};
use crate::context::Context;
use crate::report::{Headline, Table};
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
               and fairness-aware scheduling, both every 1 ms in hardware, over the operating system \
               alone; means over the numbers of threads.",
    differs: "The machine is simulated at the level of rates, not of instructions, and the programs \
              are profiles, most of whose figures but synchronisation are estimates; the work is what a program does \
              alone on the whole machine in 0.2 s (0.05 s at the quick scale), not its whole input. \
              fair-progress stands for the source's fairness-aware scheduler, with its form of 4 ms in \
              the operating system beside it; the source's Linux is linux-acmp, and linux without \
              knowledge of core types stands beside it. Threads that are done before their siblings \
              start again. The quick scale has 4 programs and 2 runs.",
    default_seed: SEED,
    full_seconds_hint: 75,
};

/// The policies of this study, the base apart.
const OTHERS: [&str; 4] = [LINUX, HRRS, FAIR, FAIR_4MS];

/// What the source prints, and the same for the forms that it is set beside here.
const GAINS: [Gain<'_>; 5] = [
    ("hrrs over linux", HRRS, BASE),
    ("fair-progress over linux", FAIR, BASE),
    ("hrrs over fair-progress", HRRS, FAIR),
    ("fair-progress every 4 ms over linux", FAIR_4MS, BASE),
    ("linux without core types over linux", LINUX, BASE),
];

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
        let closed = Closed::of(context, SPLASH)?;
        let threads = Compared::with(&grid, BASE, splash::by_threads(&grid)).only(&OTHERS);
        let of_programs = "Each program over linux-acmp: mean over 4, 8 and 16 threads, intervals over \
                           runs; all: over programs and numbers of threads";
        let of_threads = "Each number of threads over linux-acmp: mean and intervals over programs";
        Ok(StudyOutput {
            tables: vec![
                headline(&programs, &closed)?,
                programs.table("programs", of_programs)?,
                threads.table("threads", of_threads)?,
                closed.table(&grid, STP)?,
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
    title: "SPLASH-2 on 1 large and 3 small cores: speed over linux-acmp",
    text: "Geometric means over 4, 8 and 16 threads; intervals are over runs, of all over cases.",
    category: "Program",
    value: "Speed over linux-acmp",
};

const BY_THREADS: Draft<'_> = Draft {
    key: "threads",
    title: "SPLASH-2 on 1 large and 3 small cores, by number of threads",
    text: "Geometric means over programs; intervals are over programs.",
    category: "Threads",
    value: "Speed over linux-acmp",
};

fn by_program<'a>(context: &Context<'_>, grid: &'a Grid) -> Result<Compared<'a>, StudyError> {
    let programs = splash::programs(context)?;
    let group = |name: &str| Group::of_runs(name, splash::cases_of(grid, Some(name)));
    let mut groups: Vec<Group> = programs.iter().map(|p| group(&p.name)).collect();
    groups.push(Group::of_cases("all", splash::cases_of(grid, None)));
    Ok(Compared::with(grid, BASE, groups).only(&OTHERS))
}

/// All programs together, then each by itself.
fn headline(programs: &Compared<'_>, closed: &Closed) -> Result<Table, StudyError> {
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
            &GAINS,
        )?;
    }
    headline.add_gain("closed form of hrrs over linux, SPLASH-2", closed.speed())?;
    Ok(headline.into_table())
}

fn notes(programs: &Compared<'_>, threads: &Compared<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(all) = programs.groups.last() {
        let speeds = programs.sentence(all, STP);
        notes.push(format!(
            "Speed over linux-acmp, over all programs and numbers of threads: {speeds}."
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

const MECHANISM: [&str; 2] = [
    "The threads of a program do equal parts and wait for each other at barriers and at the end, so a \
    program is as fast as its slowest thread. linux-acmp keeps a thread on the core that it was \
    dealt: those on small cores set the pace, and while the large core's own threads wait it takes one \
    of theirs. A scheduler that lets all have the large core in turn makes them equally fast.",
    "The closed form knows neither serial sections, which the first thread does, on the large core \
    under linux-acmp, nor barriers, at which the large core helps, nor what moves cost; it holds for \
    threads that never wait (table `closed-form`).",
];
