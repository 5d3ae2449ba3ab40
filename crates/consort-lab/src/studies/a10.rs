//! A10: kuths against fair progress and round robin on SPLASH-2.
//!
//! Keys. Table `headline`; table `single`: rows `PROGRAM/POLICY` and `all/POLICY`, over 4, 8 and 16 threads. Table
//! `pairs`: rows `PROGRAM+PROGRAM/POLICY` and `all/POLICY`. Columns of both: see
//! [`super::asymmetry::compared`]; the base is `linux-acmp`. Table `returns`: rows as in `single`, and
//! `pairs/POLICY`; columns: see [`super::asymmetry::continued`]. Figures `single`, `energy`,
//! `pairs`, `continue` and `user`.

use super::asymmetry::case::Case;
use super::asymmetry::chips::chip;
use super::asymmetry::compared::{Compared, Draft, Group, PDP, STP};
use super::asymmetry::continued::{self, Rows, SOON, USER, share};
use super::asymmetry::grid::Grid;
use super::asymmetry::headlines::{Gain, gains};
use super::asymmetry::mixes::mixes;
use super::asymmetry::programs::SPLASH;
use super::asymmetry::runs::{self, FAIR, FAIR_4MS, HRRS, LINUX, MACHINE};
use super::asymmetry::splash::{self, KUTHS, POLICIES};
use super::asymmetry::{BASE, SEED, SOURCE};
use crate::context::Context;
use crate::report::{Headline, Table};
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};

/// The study.
pub(super) struct A10;

static INFO: StudyInfo = StudyInfo {
    id: "A10",
    title: "kuths, hrrs and fair-progress on SPLASH-2: speed, energy, and who has the large core",
    source: SOURCE,
    section: "KUTHS, evaluation",
    original: "Sniper, one large and three small cores with a shared LLC. Programs of SPLASH-2, \
               single and in random pairs, under kernel-to-user-mode scheduling, fairness-aware \
               scheduling and round-robin, all in hardware: speed, energy, the share of threads that \
               continue on the large core after a synchronisation call, and the time in user and \
               kernel mode.",
    differs: "The machine is simulated at the level of rates, and the programs are profiles, most \
              of whose figures but synchronisation are estimates. Single programs have 4, 8 and 16 threads and the \
              work of 0.2 s alone (0.05 s at the quick scale); pairs are 20 of different programs \
              (3), drawn by the seed, with 4 threads each. A thread counts as continuing on the \
              large core at once, and within 1 ms of its return, since a hardware scheduler acts \
              at the end of the quantum. Kernel time is that of switches and of calls that wait and \
              wake; timer ticks, which come every 4 ms, and faults of pages take none. The source's Linux is linux-acmp; \
              linux without knowledge of core types and fairness-aware scheduling every 4 ms stand \
              beside it. Threads that are done before their siblings start again. Energy is that of \
              the model of the machine's description.",
    default_seed: SEED,
    full_seconds_hint: 130,
};

/// Pairs at the two scales.
const PAIRS: [usize; 2] = [3, 20];
/// Runs of each pair and policy.
const RUNS: [usize; 2] = [2, 3];
/// Threads of each program of a pair.
const PAIR_THREADS: u32 = 4;
/// Time of a program's work alone in a pair, s.
const ALONE_S: [f64; 2] = [0.1, 0.5];

impl Study for A10 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn mechanism(&self) -> &'static [&'static str] {
        &MECHANISM
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        let grid = runs::splash(context)?;
        let pairs = pairs_grid(context)?;
        let programs = splash::programs(context)?;
        let mut rows: Rows = { programs.iter() }
            .map(|p| (p.name.clone(), splash::cases_of(&grid, Some(&p.name))))
            .collect();
        let single = compared(&grid, &rows);
        let paired = compared(&pairs, &pair_rows(&pairs));
        rows.push(("all".to_owned(), splash::cases_of(&grid, None)));
        let of_pairs = vec![("pairs".to_owned(), pairs.cases(|_| true))];
        let title = "Single programs over linux-acmp: mean over 4, 8 and 16 threads";
        Ok(StudyOutput {
            tables: vec![
                headline(&grid, &pairs)?,
                single.table("single", title)?,
                paired.table(
                    "pairs",
                    "Pairs of programs of 4 threads each, over linux-acmp",
                )?,
                continued::table(&[(&grid, rows.clone()), (&pairs, of_pairs)])?,
            ],
            figures: vec![
                single.figure(SINGLE, STP)?,
                single.figure(ENERGY, PDP)?,
                paired.figure(PAIRED, STP)?,
                continued::figure("continue", CONTINUE, WITHIN, (&grid, &rows), SOON)?,
                continued::figure("user", USER_TITLE, USER_VALUE, (&grid, &rows), USER)?,
            ],
            notes: notes(&single, &paired),
            runs: grid.runs,
        })
    }
}

const CONTINUE: &str = "Threads that are on the large core within 1 ms of a return from the kernel";
const WITHIN: &str = "Returns";
const USER_TITLE: &str = "Time of threads in user mode, work and spinning";
const USER_VALUE: &str = "Threads' time";

const SINGLE: Draft<'_> = Draft {
    key: "single",
    title: "SPLASH-2 on 1 large and 3 small cores: speed over linux-acmp",
    text: "Geometric means over 4, 8 and 16 threads; intervals are over runs, of all over programs \
           and numbers of threads.",
    category: "Program",
    value: "Speed over linux-acmp",
};

const ENERGY: Draft<'_> = Draft {
    key: "energy",
    title: "SPLASH-2 on 1 large and 3 small cores: energy (PDP) over linux-acmp",
    value: "PDP over linux-acmp",
    ..SINGLE
};

const PAIRED: Draft<'_> = Draft {
    key: "pairs",
    title: "Pairs of SPLASH-2 programs: throughput over linux-acmp",
    text: "Intervals are over runs, of all over pairs.",
    category: "Pair",
    value: "STP over linux-acmp",
};

fn pairs_grid(context: &Context<'_>) -> Result<Grid, StudyError> {
    let chip = chip(MACHINE)?;
    let count = context.by_scale(PAIRS[0], PAIRS[1]);
    let workloads = mixes(context.seed(), SPLASH, 2, PAIR_THREADS, count)?;
    let alone_s = context.by_scale(ALONE_S[0], ALONE_S[1]);
    let cases = context.map(&workloads, |workload| {
        let key = workload.text.clone();
        Case::new(&key, &chip, workload.clone(), alone_s, context.seed()).map(Case::like_source)
    })?;
    let cases: Vec<Case> = cases.into_iter().collect::<Result<_, _>>()?;
    let runs = context.by_scale(RUNS[0], RUNS[1]);
    Grid::run(context, &cases, &POLICIES, runs)
}

fn pair_rows(pairs: &Grid) -> Rows {
    let row = |(index, key): (usize, &String)| (key.clone(), vec![index]);
    pairs.keys.iter().enumerate().map(row).collect()
}

/// Every row, and all cases together.
fn compared<'a>(grid: &'a Grid, rows: &Rows) -> Compared<'a> {
    let group = |(key, cases): &(String, Vec<usize>)| Group::of_runs(key, cases.clone());
    let mut groups: Vec<Group> = rows.iter().map(group).collect();
    groups.push(Group::of_cases("all", grid.cases(|_| true)));
    Compared::with(grid, BASE, groups).only(&POLICIES)
}

/// What the source prints, and the same for the forms that it is set beside here.
const GAINS: [Gain<'_>; 7] = [
    ("kuths over linux", KUTHS, BASE),
    ("hrrs over linux", HRRS, BASE),
    ("fair-progress over linux", FAIR, BASE),
    ("kuths over fair-progress", KUTHS, FAIR),
    ("kuths over hrrs", KUTHS, HRRS),
    ("kuths over fair-progress every 4 ms", KUTHS, FAIR_4MS),
    ("linux without core types over linux", LINUX, BASE),
];

/// Those of whom the source prints where threads continue and what their time goes to.
const THREADS_OF: [(&str, &str); 4] = [
    ("kuths", KUTHS),
    ("hrrs", HRRS),
    ("fair-progress", FAIR),
    ("linux", BASE),
];

fn headline(single: &Grid, pairs: &Grid) -> Result<Table, StudyError> {
    let mut headline = Headline::new()?;
    for (grid, what) in [(single, "single programs"), (pairs, "pairs")] {
        let all = grid.cases(|_| true);
        gains(
            &mut headline,
            (grid, &all),
            &format!("speed, {what}"),
            STP,
            &GAINS,
        )?;
        gains(
            &mut headline,
            (grid, &all),
            &format!("PDP, {what}"),
            PDP,
            &GAINS,
        )?;
        for (name, policy) in THREADS_OF {
            let Some(policy) = grid.policy(policy) else {
                continue;
            };
            let row = format!("threads that continue on the large core, {name}, {what}");
            headline.add(&row, "percent", share(grid, &all, policy, SOON))?;
            let row = format!("time in user mode, {name}, {what}");
            headline.add(&row, "percent", share(grid, &all, policy, USER))?;
        }
    }
    Ok(headline.into_table())
}

fn notes(single: &Compared<'_>, paired: &Compared<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    for (what, compared) in [("single programs", single), ("pairs", paired)] {
        if let Some(all) = compared.groups.last() {
            let (speed, energy) = (compared.sentence(all, STP), compared.sentence(all, PDP));
            notes.push(format!(
                "Over linux-acmp, {what}: speed {speed}; PDP {energy}."
            ));
        }
        notes.push(against(what, compared));
    }
    notes.push(single.extremes(KUTHS));
    notes
}

/// kuths against the others, not against the base.
fn against(what: &str, compared: &Compared<'_>) -> String {
    let grid = compared.grid;
    let all = grid.cases(|_| true);
    let kuths = grid.policy(KUTHS);
    let over = |name: &str| {
        let ratio = grid.ratio_of(&all, kuths?, grid.policy(name)?, STP);
        let same = all.iter().filter(|&&case| {
            let of = |policy| grid.values(case, policy, STP);
            kuths
                .zip(grid.policy(name))
                .is_some_and(|(k, p)| of(k) == of(p))
        });
        let same = same.count();
        Some(format!(
            "over {name} {} (to the last bit the same in {same} of {})",
            ratio.text(),
            all.len()
        ))
    };
    let told: Vec<String> = [HRRS, FAIR, FAIR_4MS]
        .into_iter()
        .filter_map(over)
        .collect();
    format!("kuths, {what}: {}.", told.join(", "))
}

const MECHANISM: [&str; 2] = [
    "Every return to user mode sets the bit: from a wait, from waking others, from a time slice, from \
    the tick that comes to all cores every 4 ms. In a quantum with a tick all bits are set, and kuths \
    takes turns as hrrs does; so it does in a quantum without any return. It differs where some \
    threads returned in a quantum and others did not: then it gives the large core to one that did.",
    "When the large core goes idle, it is given at once to one that still works, under kuths as under \
    hrrs. Threads that arrive early at a barrier sleep, so the last to arrive is often on the large \
    core, and wakes the others from there.",
];
