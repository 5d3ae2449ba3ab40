//! The fast engine beside the reference, which executes the same programs' instructions.
//!
//! Programs are the traces that ship, each the beginning of its trace again and again. The fast
//! engine gets a profile of just these instructions. Programs run together on parts of machines
//! ([`ground`]): all pairs of eight programs, so that it can be told who is best paired, and draws
//! of four. Slowdowns are against the same engine's run of the program alone.

mod case;
mod draw;
mod ground;
mod runs;
mod square;
mod summary;
mod tables;

use super::check::{Check, Published, Tolerance, Topic};
use super::error::ValidateError;
use super::group::{GroupOutput, Inputs};
use super::reference_summary::ReferenceSummary;
use case::Case;
use consort_experiment::traced::Traced;
use consort_ops::trace::Sampling;
use consort_profile::recorder::{Sink, Stage};
use consort_profile::{Profiler, Told};
use consort_sim::program::PhaseSpec;
use draw::{Draw, Extent, draw};
use ground::Ground;
use runs::{Alone, Bench, WARM_UP};
use tables::Names;

/// Instructions of each trace that are run, again and again: so many are measured, so that it
/// does not matter where in them measurement begins.
const INSTRUCTIONS: u64 = 200_000;

/// The group's name.
pub(super) const NAME: &str = "reference";

const QUICK: Extent = Extent {
    squares: 1,
    fours: 2,
    grounds: 1,
};
const FULL: Extent = Extent {
    squares: 3,
    fours: 20,
    grounds: usize::MAX,
};

/// MPPM's errors against detailed simulation (Van Craeynest and Eeckhout, IISWC 2011).
const MPPM: &str = "Van Craeynest and Eeckhout, IISWC 2011: error of MPPM";

pub(super) fn run(inputs: &Inputs<'_>) -> Result<GroupOutput, ValidateError> {
    let programs: Vec<Traced> = { Traced::all()?.into_iter() }
        .filter(|program| !program.is_kernel())
        .map(|program| program.first(INSTRUCTIONS))
        .collect();
    let phases = inputs.context.map(&programs, profiled)?;
    let phases: Vec<PhaseSpec> = phases.into_iter().collect::<Result<_, _>>()?;
    let grounds = Ground::all()?;
    let context = inputs.context;
    let drawn = draw(
        &grounds,
        programs.len(),
        context.by_scale(QUICK, FULL),
        context.seed(),
    );
    let bench = Bench {
        grounds: &grounds,
        programs: &programs,
        phases: &phases,
        context,
    };
    let used: Vec<usize> = drawn.iter().map(|draw| draw.ground).collect();
    let alone = bench.alone(&used)?;
    let of_draw = |draw: &Draw| {
        draw.sets
            .iter()
            .map(|set| (draw.ground, set.clone()))
            .collect()
    };
    let sets: Vec<(usize, Vec<usize>)> = drawn.iter().flat_map::<Vec<_>, _>(of_draw).collect();
    let ran = bench.together(&sets, &alone)?;
    let cases: Vec<Case> = ran.iter().map(|(case, _)| case.clone()).collect();
    let summary = ReferenceSummary::of(&cases, &drawn);
    let names = Names {
        grounds: &grounds,
        programs: &programs,
    };
    Ok(GroupOutput {
        checks: checks(&summary),
        tables: vec![
            tables::grounds(&by_ground(&cases, &drawn, &grounds))?,
            tables::alone(&alone, names)?,
            tables::worst(
                &ran,
                |case, place| of_case(&alone, &grounds, case, place),
                names,
            )?,
            tables::cases(&cases, names)?,
        ],
        figures: vec![tables::figure(&cases, names)?],
        notes: vec![note(&programs)],
        reference: Some(summary),
    })
}

/// Phase that a profile makes of a program that is run again and again: caches and predictors are
/// as warm as the reference's when measurement begins, and all data flow is measured.
fn profiled(program: &Traced) -> Result<PhaseSpec, ValidateError> {
    let extent = consort_profile::recorder::Extent {
        sampling: Some(Sampling {
            every: WARM_UP + INSTRUCTIONS,
            window: INSTRUCTIONS,
            warm: WARM_UP,
        }),
        ..Default::default()
    };
    let mut profiler = Profiler::new(extent, false);
    for _ in 0..WARM_UP / INSTRUCTIONS {
        program.ops().for_each(|op| profiler.op(0, &op));
    }
    profiler.stage(0, Stage::Window, 0);
    program.ops().for_each(|op| profiler.op(0, &op));
    let told = Told {
        name: program.name(),
        command: program.name(),
        executed: INSTRUCTIONS,
        sampling: None,
    };
    let file = format!("{}.toml", program.name());
    let text = profiler.profile().to_program_file(&told);
    let mut program = consort_sim::program::parse(&file, &text)?;
    Ok(program.phases.swap_remove(0))
}

fn of_case(alone: &Alone, grounds: &[Ground], case: &Case, place: usize) -> Option<runs::Both> {
    let key = (case.ground, place, case.programs[place]);
    alone.at(&grounds[case.ground], key).cloned()
}

fn by_ground<'a>(
    cases: &[Case],
    drawn: &[Draw],
    grounds: &'a [Ground],
) -> Vec<(&'a str, ReferenceSummary)> {
    let of_draw = |draw: &Draw| {
        let here = cases.iter().filter(|case| case.ground == draw.ground);
        let here: Vec<Case> = here.cloned().collect();
        let summary = ReferenceSummary::of(&here, std::slice::from_ref(draw));
        (grounds[draw.ground].key, summary)
    };
    drawn.iter().map(of_draw).collect()
}

fn checks(summary: &ReferenceSummary) -> Vec<Check> {
    let own = "Consort: what is wanted of the fast engine";
    let all = [
        (
            "stp-error",
            "mean error of STP",
            MPPM,
            "",
            at_most(0.023),
            summary.stp_error_mean,
        ),
        (
            "antt-error",
            "mean error of ANTT",
            MPPM,
            "",
            at_most(0.029),
            summary.antt_error_mean,
        ),
        (
            "slowdown-error",
            "mean error of slowdowns",
            own,
            "",
            at_most(0.06),
            summary.slowdown_error_mean,
        ),
        (
            "rank",
            "rank correlation of a victim's co-runners",
            own,
            "",
            Published::AtLeast(0.8),
            summary.rank_correlation,
        ),
        (
            "best-pairing",
            "gain of the best pairing over a random one, over the reference's",
            own,
            "",
            near_one(),
            gain(summary),
        ),
    ];
    let check = |(id, what, source, unit, wanted, ours): (
        &str,
        &str,
        &str,
        &str,
        Published,
        Option<f64>,
    )| {
        let topic = Topic {
            group: NAME,
            source,
            unit,
            tolerance: Tolerance::relative(0.0),
        };
        Some(topic.check(id.to_owned(), what, wanted, ours?))
    };
    all.into_iter().filter_map(check).collect()
}

const fn at_most(most: f64) -> Published {
    Published::AtMost(most)
}

const fn near_one() -> Published {
    Published::Range {
        low: 0.8,
        high: 1.2,
    }
}

/// The fast engine's gain of the best pairing over the reference's.
fn gain(summary: &ReferenceSummary) -> Option<f64> {
    let fast = summary.best_over_random_fast? - 1.0;
    let reference = summary.best_over_random_reference? - 1.0;
    (reference > 0.0).then(|| fast / reference)
}

fn note(programs: &[Traced]) -> String {
    format!(
        "{} traced programs, {} instructions of each, again and again; a profile of just these for \
         the fast engine. Slowdowns are in cycles, against the same engine's run alone.",
        programs.len(),
        INSTRUCTIONS
    )
}
