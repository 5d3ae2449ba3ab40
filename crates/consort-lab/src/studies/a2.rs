//! A2: what it costs to exchange threads every millisecond.
//!
//! Keys. Table `headline`. Tables `programs`, between a large and a small core, and `large-cores`,
//! between two large ones: rows `PROGRAM` and `all`; columns `shared_cycles`, `private_cycles`
//! (refill per exchange), `shared_percent`, `private_percent` (of the quantum, registers and
//! pipeline included). Table `working-set`: rows KiB; columns `shared_cycles`, `private_cycles`.
//! Figures `programs`, `large-cores`, `working-set`.

use super::asymmetry::chips::{Kind, chip, spec, whole};
use super::asymmetry::migration::{Cost, Path};
use super::asymmetry::programs::{SPEC, SPLASH, copies, find, suite};
use super::asymmetry::views::{Drawing, bars};
use super::asymmetry::{SEED, SOURCE};
use super::symbiosis::cells::interval;
use crate::context::Context;
use crate::report::{Axis, Cell, Column, Figure, Headline, Lines, Plot, Point, PointSeries, Table};
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};
use consort_sim::chip::Chip;
use consort_sim::program::{CURVE_KIB, ProgramSpec};
use std::sync::Arc;

/// The study.
pub(super) struct A2;

static INFO: StudyInfo = StudyInfo {
    id: "A2",
    title: "Cost of exchanging threads between large and small cores every millisecond",
    source: SOURCE,
    section: "sections 4.2 and 6.3.1, cost of migration",
    original: "Cycles that programs take longer when they go to and fro between cores every 1 ms, with \
               a shared and with private last-level caches, and against the size of the working set. \
               Refilling caches takes 42,985 cycles on average with a shared cache (3,406 to 278,112) \
               and 301,248 with private ones (15,246 to 3,073,444).",
    differs: "Machines and programs are simulated: two groups of one large and three small cores, and \
              the same with a second large core in each group; shared is inside a group, private \
              between the groups, whose L3 regions are their own. Two copies of each program of SPEC \
              CPU2006 and SPLASH-2 change places, with one thread each, from four places in its \
              phases; what exchanges cost is what the first gets done less than with exchanges \
              that cost nothing. Lines that one core has written stay valid in the caches of the \
              other. Working sets are those of a made-up program of random loads that \
              misses 20 times per 1000 instructions until all of its data fits. The quick scale has 8 \
              programs and 20 exchanges per place.",
    default_seed: SEED,
    full_seconds_hint: 15,
};

const MACHINE: &str = "acmp-2+6";
/// Programs of each suite, at the quick and the full scale.
const PROGRAMS: [usize; 2] = [4, usize::MAX];
/// Exchanges from each place.
const MOVES: [u32; 2] = [20, 400];
/// Places in a program's phases.
const PLACES: usize = 4;
/// The made-up program is this one but for its misses.
const LOADS: &str = "random-loads";
/// Its misses per 1000 instructions while its data does not fit.
const MPKI: f64 = 20.0;

/// Costs from every place, inside an LLC domain and between two.
struct Costs([Vec<Cost>; 2]);

impl Costs {
    fn cell(&self, side: usize, of: Part) -> Cell {
        interval(&self.0[side].iter().map(of).collect::<Vec<_>>())
    }

    fn mean(&self, side: usize, of: Part) -> f64 {
        self.cell(side, of).value().unwrap_or(f64::NAN)
    }
}

/// One of the numbers of a cost.
type Part = fn(&Cost) -> f64;

const CYCLES: Part = |cost| cost.refill_cycles;
const PERCENT: Part = |cost| 100.0 * cost.quantum_share;

/// Every program's costs on a machine, the dearest first.
type Rows = Vec<(String, Costs)>;

impl Study for A2 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        let most = context.by_scale(PROGRAMS[0], PROGRAMS[1]);
        let mut programs = suite(SPEC, most)?;
        programs.extend(suite(SPLASH, most)?);
        let unlike = chip(MACHINE)?;
        let rows = rows(context, &unlike, Kind::Small, &programs)?;
        let alike = self::rows(context, &two_large()?, Kind::Large, &programs)?;
        let synthetic = costs(context, &unlike, Kind::Small, &working_sets()?)?;
        Ok(StudyOutput {
            tables: vec![
                headline(&rows, &alike)?,
                programs_table(&rows, "programs", UNLIKE)?,
                programs_table(&alike, "large-cores", ALIKE)?,
                sets_table(&synthetic)?,
            ],
            figures: vec![
                programs_figure(&rows, "programs", UNLIKE)?,
                programs_figure(&alike, "large-cores", ALIKE)?,
                sets_figure(&synthetic)?,
            ],
            notes: notes(&rows, &alike),
            runs: PLACES,
        })
    }
}

const UNLIKE: &str = "between a large and a small core";
const ALIKE: &str = "between two large cores";

/// The machine with a second large core in each group.
fn two_large() -> Result<Arc<Chip>, StudyError> {
    let mut spec = spec(MACHINE)?;
    let large = whole(&spec)?
        .core_types()
        .iter()
        .position(|core| core.rob_entries.is_some());
    let large = large.and_then(|n| spec.core_types.keys().nth(n).cloned());
    for group in &mut spec.layout.cluster {
        if Some(&group.core_type) == large.as_ref() {
            group.l2_domains = 2;
        }
    }
    whole(&spec)
}

fn rows(
    context: &Context<'_>,
    chip: &Arc<Chip>,
    to: Kind,
    programs: &[Arc<ProgramSpec>],
) -> Result<Rows, StudyError> {
    let costs = costs(context, chip, to, programs)?;
    let names = programs.iter().map(|program| program.name.clone());
    let mut rows: Rows = names.zip(costs).collect();
    rows.sort_by(|a, b| b.1.mean(0, CYCLES).total_cmp(&a.1.mean(0, CYCLES)));
    Ok(rows)
}

fn costs(
    context: &Context<'_>,
    chip: &Arc<Chip>,
    to: Kind,
    programs: &[Arc<ProgramSpec>],
) -> Result<Vec<Costs>, StudyError> {
    let no_path = || StudyError::part(MACHINE, "there are no two cores to go between");
    let path = |shared| Path::of(chip, to, shared).ok_or_else(no_path);
    let paths = [path(true)?, path(false)?];
    let moves = context.by_scale(MOVES[0], MOVES[1]);
    let costs = context.map(programs, |program| {
        let places = copies(program, PLACES).entries;
        let side = |path: &Path| -> Result<Vec<Cost>, StudyError> {
            let seeds = context.seed()..;
            let from = places.iter().zip(seeds);
            from.map(|(place, seed)| path.cost(chip, &place.program, moves, seed))
                .collect()
        };
        Ok(Costs([side(&paths[0])?, side(&paths[1])?]))
    })?;
    costs.into_iter().collect()
}

/// Average and range over programs on either machine, and every program's bars.
fn headline(unlike: &Rows, alike: &Rows) -> Result<Table, StudyError> {
    let mut headline = Headline::new()?;
    for (rows, what) in [(unlike, UNLIKE), (alike, ALIKE)] {
        for (side, llc) in [(0, "shared LLC"), (1, "private LLCs")] {
            let all: Vec<f64> = rows.iter().map(|(_, c)| c.mean(side, CYCLES)).collect();
            let row = format!("refill {what}, {llc}");
            headline.add(&format!("{row}, average"), "cycles", interval(&all))?;
            let least = all.iter().copied().fold(f64::INFINITY, f64::min);
            headline.add(&format!("{row}, least"), "cycles", least)?;
            let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            headline.add(&format!("{row}, most"), "cycles", most)?;
            for (name, costs) in rows {
                let key = format!("{row}, {name}");
                headline.add(&key, "cycles", costs.cell(side, CYCLES))?;
            }
        }
    }
    Ok(headline.into_table())
}

/// A program for each capacity of the miss curves, whose data just fits there.
fn working_sets() -> Result<Vec<Arc<ProgramSpec>>, StudyError> {
    let loads = find(LOADS)?;
    let of = |kib: f64| {
        let mut program = ProgramSpec::clone(&loads);
        program.name = format!("{LOADS}-{kib}-kib");
        let misses = |capacity: &f64| if *capacity < kib { MPKI } else { 0.0 };
        for phase in &mut program.phases {
            phase.data_mpki = CURVE_KIB.iter().map(misses).collect();
        }
        Arc::new(program)
    };
    Ok(CURVE_KIB.into_iter().map(of).collect())
}

fn programs_table(rows: &Rows, key: &str, what: &str) -> Result<Table, StudyError> {
    let columns = vec![
        Column::with_unit("shared_cycles", "Refill, shared LLC", "cycles"),
        Column::with_unit("private_cycles", "Refill, private LLCs", "cycles"),
        Column::with_unit("shared_percent", "Of the quantum, shared LLC", "%"),
        Column::with_unit("private_percent", "Of the quantum, private LLCs", "%"),
    ];
    let title =
        format!("Cost of an exchange {what}, over places in a program; `all` over programs");
    let mut table = Table::new(key, &title, columns)?;
    let parts: [(usize, Part); 4] = [(0, CYCLES), (1, CYCLES), (0, PERCENT), (1, PERCENT)];
    for (name, costs) in rows {
        let cells = parts.map(|(side, of)| costs.cell(side, of));
        table.push(name, cells.into())?;
    }
    let over = |(side, of): (usize, Part)| {
        let means = rows.iter().map(|(_, costs)| costs.mean(side, of));
        interval(&means.collect::<Vec<_>>())
    };
    table.push("all", parts.map(over).into())?;
    Ok(table)
}

fn sets_table(synthetic: &[Costs]) -> Result<Table, StudyError> {
    let columns = vec![
        Column::with_unit("shared_cycles", "Refill, shared LLC", "cycles"),
        Column::with_unit("private_cycles", "Refill, private LLCs", "cycles"),
    ];
    let title = "Cost of an exchange against the working set, KiB";
    let mut table = Table::new("working-set", title, columns)?;
    for (kib, costs) in CURVE_KIB.iter().zip(synthetic) {
        let cells = [0, 1].map(|side| costs.cell(side, CYCLES));
        table.push(&kib.to_string(), cells.into())?;
    }
    Ok(table)
}

fn programs_figure(rows: &Rows, key: &str, what: &str) -> Result<Figure, StudyError> {
    let title = format!("What an exchange every millisecond costs {what}");
    let drawing = Drawing {
        key,
        title: &title,
        text: "Refill, registers and pipeline as a share of the quantum; intervals are over places \
               in a program.",
        category: "Program",
    };
    let names = rows.iter().map(|(name, _)| name.clone()).collect();
    let side = |side: usize| rows.iter().map(|(_, c)| c.cell(side, PERCENT)).collect();
    let series = [
        ("shared LLC".to_owned(), side(0)),
        ("private LLCs".to_owned(), side(1)),
    ];
    let axis = Axis::linear("Cost", Some("% of the quantum"));
    bars(&drawing, PLACES, (axis, 0.0), names, &series)
}

fn sets_figure(synthetic: &[Costs]) -> Result<Figure, StudyError> {
    let series = |(side, name): (usize, &str)| PointSeries {
        name: name.to_owned(),
        points: { CURVE_KIB.iter().zip(synthetic) }
            .map(|(&kib, costs)| Point::exact(kib, costs.mean(side, CYCLES)))
            .filter(|point| point.y > 0.0)
            .collect(),
    };
    let lines = Lines {
        x: Axis::log("Working set", Some("KiB")),
        y: Axis::log("Refill per exchange", Some("cycles")),
        series: [(0, "shared LLC"), (1, "private LLCs")].map(series).into(),
    };
    let title = "Refill against the working set";
    let text = "What does not fit into a cache is not fetched again into it.";
    Ok(Figure::new(
        "working-set",
        title,
        text,
        PLACES,
        Plot::Lines(lines),
    )?)
}

fn notes(unlike: &Rows, alike: &Rows) -> Vec<String> {
    let side = |(rows, what): (&Rows, &str), (side, name): (usize, &str)| {
        let mut all: Vec<(&str, f64)> = rows
            .iter()
            .map(|(program, costs)| (program.as_str(), costs.mean(side, CYCLES)))
            .collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        let sum: f64 = all.iter().map(|(_, cycles)| cycles).sum();
        let words = |some: &[(&str, f64)]| {
            let one = |(name, cycles): &(&str, f64)| format!("{name} {cycles:.0}");
            some.iter().map(one).collect::<Vec<_>>().join(", ")
        };
        let ends = all.len().min(3);
        format!(
            "Refill {what} with {name}: {:.0} cycles on average over {} programs; most: {}; least: {}.",
            sum / all.len() as f64,
            all.len(),
            words(&all[..ends]),
            words(&all[all.len() - ends..]),
        )
    };
    let mut notes = Vec::new();
    for rows in [(unlike, UNLIKE), (alike, ALIKE)] {
        for llc in [(0, "a shared LLC"), (1, "private LLCs")] {
            notes.push(side(rows, llc));
        }
    }
    notes.push(
        "Inside a group a thread fetches again what it held in L1 and L2 and would use again, from \
         the L3; between groups also what it held in the L3, from memory. What it would have \
         missed anyway is not lost by a move."
            .to_owned(),
    );
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_programs_miss_until_their_data_fits() {
        let sets = working_sets().unwrap();
        assert_eq!(sets.len(), CURVE_KIB.len());
        let kib64 = &sets[3].phases[0].data_mpki;
        assert_eq!((kib64[2], kib64[3]), (MPKI, 0.0));
        let text = toml::to_string(sets[5].as_ref()).unwrap();
        assert!(consort_sim::program::parse("x.toml", &text).is_ok());
    }
}
