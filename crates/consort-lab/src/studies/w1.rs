//! W1: does the chip's floating-point event tell floating-point work from integer work?
//!
//! Keys. Table `headline`: rows `FPU usage of the KIND product, MACHINE`. Table `counters`: rows `MACHINE/smtN/PROGRAM/COPIES`, for example
//! `power7/smt4/matmul-fp/2`; columns `fpu_usage`, `cycles` and `instructions`
//! (10⁹ per copy), `ipc` (per copy). Figures `fpu-bulldozer-6282se`,
//! `fpu-power7`, `cycles`.

use super::alone::{Alone, Repeated, Told, repeat};
use super::occupancy::SOURCE;
use super::occupancy::profile::{BULLDOZER, Chart, FPU_USAGE, POWER7, bar, cell, short};
use crate::context::Context;
use crate::report::{Axis, Column, Figure, FigureError, Headline, Table, TableError};
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};

/// The study.
pub(super) struct W1;

const INFO: StudyInfo = StudyInfo {
    id: "W1",
    title: "Counter validation with an integer and a floating-point matrix product",
    source: SOURCE,
    section: "choice of the events (section 3; the number is not checked)",
    original: "Runs the product of 4x4 matrices, once of integers and once of floating-point \
               numbers, on an AMD Opteron 6282 SE (Bulldozer) and on an IBM POWER7, and reads the \
               floating-point event that its policy is to use: cycles in which the FPU is empty \
               on the first chip, floating-point operations on the second.",
    differs: "The machines and their counters (0.5 percent read noise) are simulated. The two \
              products are defined by their operations (64 products, 48 sums, 128 loads, 16 \
              stores and 60 instructions of loops) and differ in the class of the arithmetic \
              alone; how much of it is independent is an estimate. Copies are pinned, each to a \
              PU of one core. Each copy does 50·10⁹ instructions, so cycles compare between \
              our rows, not with the source's.",
    default_seed: 1,
    full_seconds_hint: 5,
};

/// The two products.
const PROGRAMS: [&str; 2] = ["matmul-int", "matmul-fp"];

/// A place to run: machine, PUs per core, copies on one core.
type Place = (&'static str, u32, u32);

const PLACES: [Place; 8] = [
    (BULLDOZER, 2, 1),
    (BULLDOZER, 2, 2),
    (POWER7, 1, 1),
    (POWER7, 2, 1),
    (POWER7, 2, 2),
    (POWER7, 4, 1),
    (POWER7, 4, 2),
    (POWER7, 4, 4),
];

impl Study for W1 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        let count = context.by_scale(3, 10);
        let all: Vec<Alone> = PLACES.into_iter().flat_map(both).collect();
        let told = repeat(context, &all, count)?;
        let results = Results { all, told };
        Ok(StudyOutput {
            tables: vec![results.headline()?, results.table()?],
            figures: results.figures(count)?,
            notes: results.notes(),
            runs: count,
        })
    }
}

/// Both products in a place.
fn both((machine, smt, copies): Place) -> [Alone; 2] {
    PROGRAMS.map(|program| Alone {
        machine,
        smt: Some(smt),
        program,
        copies,
        at_most_ginstr: None,
    })
}

/// What was run and what the counters told.
struct Results {
    all: Vec<Alone>,
    told: Vec<Repeated>,
}

/// One copy alone on each machine.
const PRINTED: [Place; 2] = [(BULLDOZER, 2, 1), (POWER7, 1, 1)];

impl Results {
    /// Usage and cycles of each product where it runs alone.
    fn headline(&self) -> Result<Table, TableError> {
        let mut headline = Headline::new()?;
        for (machine, smt, copies) in PRINTED {
            let here = |a: &Alone| (a.machine, a.smt, a.copies) == (machine, Some(smt), copies);
            let rows = self.all.iter().zip(&self.told);
            for (alone, told) in rows.filter(|(alone, _)| here(alone)) {
                let kind = if alone.program == PROGRAMS[0] {
                    "integer"
                } else {
                    "floating-point"
                };
                let row = format!("FPU usage of the {kind} product, {}", short(machine));
                headline.add(&row, "ratio", cell(told, |t| t.fpu_usage))?;
            }
        }
        Ok(headline.into_table())
    }

    fn table(&self) -> Result<Table, TableError> {
        let columns = vec![
            Column::plain("fpu_usage", "FPU usage"),
            Column::with_unit("cycles", "Cycles per copy", "10⁹"),
            Column::with_unit("instructions", "Instructions per copy", "10⁹"),
            Column::plain("ipc", "Instructions per cycle"),
        ];
        let title = "FPU usage, cycles and instructions of copies on one core";
        let mut table = Table::new("counters", title, columns)?;
        for (alone, told) in self.all.iter().zip(&self.told) {
            let cells: [fn(&Told) -> f64; 4] = [|t| t.fpu_usage, |t| t.gcycles, |t| t.ginstr, ipc];
            table.push(&key(alone), cells.map(|of| cell(told, of)).to_vec())?;
        }
        Ok(table)
    }

    fn figures(&self, runs: usize) -> Result<Vec<Figure>, FigureError> {
        let usage = FPU_USAGE.map(|(machine, meaning)| {
            let chart = Chart {
                key: format!("fpu-{machine}"),
                title: format!("FPU usage of the two products on {}", short(machine)),
                text: "Copies share one core, each on a PU of its own.".to_owned(),
                value: Axis::linear("FPU usage", Some(meaning)),
                ..self.chart(&[machine], |t| t.fpu_usage)
            };
            chart.figure(runs)
        });
        let cycles = Chart {
            key: "cycles".to_owned(),
            title: "Cycles of the same work".to_owned(),
            text: "A copy's own cycles for 50·10⁹ instructions.".to_owned(),
            value: Axis::linear("Cycles per copy", Some("10⁹")),
            ..self.chart(&[BULLDOZER, POWER7], |t| t.gcycles)
        };
        usage.into_iter().chain([cycles.figure(runs)]).collect()
    }

    /// A bar of each product in each place on these machines.
    fn chart(&self, machines: &[&str], of: fn(&Told) -> f64) -> Chart {
        let here = |alone: &Alone| machines.contains(&alone.machine);
        let of_program = |program: &str| {
            let rows = self.all.iter().zip(&self.told);
            let rows = rows.filter(|(a, _)| here(a) && a.program == program);
            rows.map(|(_, told)| bar(told, of)).collect()
        };
        let first = self
            .all
            .iter()
            .filter(|a| here(a) && a.program == PROGRAMS[0]);
        Chart {
            key: String::new(),
            title: String::new(),
            text: String::new(),
            category: "PUs per core and copies on the core",
            value: Axis::linear("", None),
            groups: first
                .map(|alone| place(alone, machines.len() > 1))
                .collect(),
            series: PROGRAMS.map(|name| (name, of_program(name))).into(),
        }
    }

    /// The mean over the runs of one row.
    fn mean(&self, place: Place, program: &str, of: fn(&Told) -> f64) -> f64 {
        let (machine, smt, copies) = place;
        let wanted = |a: &Alone| {
            (a.machine, a.smt, a.copies, a.program) == (machine, Some(smt), copies, program)
        };
        let found = self.all.iter().position(wanted);
        let interval = found.and_then(|i| self.told[i].over(of));
        interval.map_or(f64::NAN, |interval| interval.mean)
    }

    fn notes(&self) -> Vec<String> {
        vec![
            self.separation(),
            self.sharing_of_the_module(),
            self.sharing_of_the_core(),
            "POWER7 counts operations, and a core has several floating-point units: a copy alone \
             can do more than one operation per cycle, so this usage can exceed 1. The policies' \
             signal ends at 1."
                .to_owned(),
            "Each thread's event counts its own operations here. Whether a real Bulldozer's \
             event tells the two PUs of a module apart is not modelled; where it does not, two \
             copies would both read the module's usage."
                .to_owned(),
            "One copy does the same in every SMT mode of POWER7: its window is shared, not \
             partitioned, and siblings that run nothing hold nothing of it."
                .to_owned(),
            "The instructions per cycle of one copy are those of a well unrolled loop: how much \
             of the product is independent is an estimate, and the same for both."
                .to_owned(),
        ]
    }

    fn separation(&self) -> String {
        let of_program = |program: &'static str| {
            let usage = move |place: &Place| self.mean(*place, program, |t| t.fpu_usage);
            PLACES.iter().map(usage)
        };
        let highest = of_program(PROGRAMS[0]).fold(f64::NEG_INFINITY, f64::max);
        let lowest = of_program(PROGRAMS[1]).fold(f64::INFINITY, f64::min);
        format!(
            "Over all rows the integer product has a usage of at most {highest:.4}, the \
             floating-point product of at least {lowest:.3}. Read noise puts a usage of 0 a \
             hair to either side. Usages compare within one machine only."
        )
    }

    fn sharing_of_the_module(&self) -> String {
        let of = |copies, of| self.mean((BULLDOZER, 2, copies), PROGRAMS[1], of);
        let ratio = of(2, |t| t.gcycles) / of(1, |t| t.gcycles);
        format!(
            "Bulldozer: two copies on a module take {ratio:.2} times the cycles of one, because \
             they take turns at its four decode slots. Usage hardly falls, from {:.3} to {:.3}: \
             an operation is in the FPU for five cycles, so even at half the rate the FPU is \
             seldom empty. The event tells whether a thread uses the FPU, not how much.",
            of(1, |t| t.fpu_usage),
            of(2, |t| t.fpu_usage),
        )
    }

    fn sharing_of_the_core(&self) -> String {
        let of = |copies, of| self.mean((POWER7, 4, copies), PROGRAMS[1], of);
        let each = [1, 2, 4].map(|copies| of(copies, |t| t.fpu_usage));
        let all = [1, 2, 4].map(|copies| f64::from(copies) * of(copies, ipc));
        format!(
            "POWER7: with one, two and four copies on a core a copy's usage is {:.3}, {:.3} and \
             {:.3}, while all copies together complete {:.2}, {:.2} and {:.2} instructions per \
             cycle. What they share, two load/store units first, is nearly used up by one copy, \
             so this usage tells a thread's rate as much as its nature.",
            each[0], each[1], each[2], all[0], all[1], all[2],
        )
    }
}

fn ipc(told: &Told) -> f64 {
    told.ginstr / told.gcycles
}

fn key(alone: &Alone) -> String {
    let Alone {
        machine,
        program,
        copies,
        ..
    } = alone;
    format!(
        "{machine}/smt{}/{program}/{copies}",
        alone.smt.unwrap_or_default()
    )
}

/// A place for people.
fn place(alone: &Alone, with_machine: bool) -> String {
    let machine = if with_machine {
        short(alone.machine)
    } else {
        ""
    };
    let smt = alone.smt.unwrap_or_default();
    let copies = if alone.copies == 1 { "copy" } else { "copies" };
    format!("{machine} SMT{smt}, {} {copies}", alone.copies)
        .trim_start()
        .to_owned()
}
