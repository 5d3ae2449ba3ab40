//! The fast engine beside the reference, which executes the same programs' instructions.
//!
//! Programs are the traces that ship, each the beginning of its trace again and again. The fast
//! engine gets a profile of just these instructions. Programs run together on parts of machines
//! (`chip_part`): all pairs of eight programs, so that the best pairs can be found, and draws
//! of four. Slowdowns are against the same engine's run of the program alone.

mod case;
mod chip_part;
mod program_draw;
mod runs;
mod slowdown_matrix;
mod summary;
mod tables;

use super::check::{CheckTemplate, PublishedFigure, Tolerance, ValidationCheck};
use super::error::ValidateError;
use super::group::{GroupInputs, GroupOutput};
use super::reference_summary::ReferenceSummary;
use case::EngineCase;
use chip_part::ChipPart;
use consort_experiment::traced::TracedProgram;
use consort_ops::trace::TraceSampling;
use consort_profile::recorder::{ExecutionSink, RecordingStage};
use consort_profile::{ProgramFileHeader, ProgramProfiler};
use consort_sim::program::PhaseSpec;
use program_draw::{ComparisonExtent, ProgramDraw, draw_programs};
use runs::{AloneThreads, EngineTestbed, WARM_UP};
use tables::CaseNames;

/// Instructions of each trace that are run, again and again: so many are measured, so that it
/// does not matter where in them measurement begins.
const INSTRUCTIONS: u64 = 200_000;

/// The group's name.
pub(super) const NAME: &str = "reference";

const QUICK: ComparisonExtent = ComparisonExtent {
    squares: 1,
    fours: 2,
    grounds: 1,
};
const FULL: ComparisonExtent = ComparisonExtent {
    squares: 3,
    fours: 20,
    grounds: usize::MAX,
};

/// MPPM's errors against detailed simulation (Van Craeynest and Eeckhout, IISWC 2011).
const MPPM: &str = "Van Craeynest and Eeckhout, IISWC 2011: error of MPPM";

pub(super) fn run(inputs: &GroupInputs<'_>) -> Result<GroupOutput, ValidateError> {
    let programs: Vec<TracedProgram> = { TracedProgram::load_all()?.into_iter() }
        .filter(|program| !program.is_kernel())
        .map(|program| program.with_limit(INSTRUCTIONS))
        .collect();
    let phases = inputs.context.map(&programs, profile_program)?;
    let phases: Vec<PhaseSpec> = phases.into_iter().collect::<Result<_, _>>()?;
    let grounds = ChipPart::all()?;
    let context = inputs.context;
    let drawn = draw_programs(
        &grounds,
        programs.len(),
        context.by_scale(QUICK, FULL),
        context.seed(),
    );
    let bench = EngineTestbed {
        grounds: &grounds,
        programs: &programs,
        phases: &phases,
        context,
    };
    let used: Vec<usize> = drawn.iter().map(|draw| draw.ground).collect();
    let alone = bench.run_alone(&used)?;
    let of_draw = |draw: &ProgramDraw| {
        draw.sets
            .iter()
            .map(|set| (draw.ground, set.clone()))
            .collect()
    };
    let sets: Vec<(usize, Vec<usize>)> = drawn.iter().flat_map::<Vec<_>, _>(of_draw).collect();
    let ran = bench.run_together(&sets, &alone)?;
    let cases: Vec<EngineCase> = ran.iter().map(|(case, _)| case.clone()).collect();
    let summary = ReferenceSummary::from_cases(&cases, &drawn);
    let names = CaseNames {
        grounds: &grounds,
        programs: &programs,
    };
    Ok(GroupOutput {
        checks: checks(&summary),
        tables: vec![
            tables::part_table(&summarize_by_part(&cases, &drawn, &grounds))?,
            tables::alone_table(&alone, names)?,
            tables::worst_case_table(
                &ran,
                |case, place| find_alone_threads(&alone, &grounds, case, place),
                names,
            )?,
            tables::case_table(&cases, names)?,
        ],
        figures: vec![tables::slowdown_figure(&cases, names)?],
        notes: vec![trace_note(&programs)],
        reference: Some(summary),
    })
}

/// Phase that a profile makes of a program that is run again and again: caches and predictors are
/// as warm as the reference's when measurement begins, and all data flow is measured.
fn profile_program(program: &TracedProgram) -> Result<PhaseSpec, ValidateError> {
    let extent = consort_profile::recorder::RecordedPart {
        sampling: Some(TraceSampling {
            every: WARM_UP + INSTRUCTIONS,
            window: INSTRUCTIONS,
            warm: WARM_UP,
        }),
        ..Default::default()
    };
    let mut profiler = ProgramProfiler::new(extent, false);
    for _ in 0..WARM_UP / INSTRUCTIONS {
        program.ops().for_each(|op| profiler.record_op(0, &op));
    }
    profiler.enter_stage(0, RecordingStage::Window, 0);
    program.ops().for_each(|op| profiler.record_op(0, &op));
    let reported = ProgramFileHeader {
        name: program.name(),
        command: program.name(),
        executed: INSTRUCTIONS,
        sampling: None,
    };
    let file = format!("{}.toml", program.name());
    let text = profiler.finish_profile().to_program_file(&reported);
    let mut program = consort_sim::program::parse(&file, &text)?;
    Ok(program.phases.swap_remove(0))
}

fn find_alone_threads(
    alone: &AloneThreads,
    grounds: &[ChipPart],
    case: &EngineCase,
    place: usize,
) -> Option<runs::EngineThreads> {
    let key = (case.ground, place, case.programs[place]);
    alone.find_thread(&grounds[case.ground], key).cloned()
}

fn summarize_by_part<'a>(
    cases: &[EngineCase],
    drawn: &[ProgramDraw],
    grounds: &'a [ChipPart],
) -> Vec<(&'a str, ReferenceSummary)> {
    let of_draw = |draw: &ProgramDraw| {
        let here = cases.iter().filter(|case| case.ground == draw.ground);
        let here: Vec<EngineCase> = here.cloned().collect();
        let summary = ReferenceSummary::from_cases(&here, std::slice::from_ref(draw));
        (grounds[draw.ground].key, summary)
    };
    drawn.iter().map(of_draw).collect()
}

fn checks(summary: &ReferenceSummary) -> Vec<ValidationCheck> {
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
            PublishedFigure::AtLeast(0.8),
            summary.rank_correlation,
        ),
        (
            "best-pairing",
            "gain of the best pairing over a random one, over the reference's",
            own,
            "",
            near_one(),
            pairing_gain_ratio(summary),
        ),
    ];
    let check = |(id, what, source, unit, wanted, ours): (
        &str,
        &str,
        &str,
        &str,
        PublishedFigure,
        Option<f64>,
    )| {
        let topic = CheckTemplate {
            group: NAME,
            source,
            unit,
            tolerance: Tolerance::relative(0.0),
        };
        Some(topic.check(id.to_owned(), what, wanted, ours?))
    };
    all.into_iter().filter_map(check).collect()
}

const fn at_most(most: f64) -> PublishedFigure {
    PublishedFigure::AtMost(most)
}

const fn near_one() -> PublishedFigure {
    PublishedFigure::Range {
        low: 0.8,
        high: 1.2,
    }
}

/// The fast engine's gain of the best pairing over the reference's.
fn pairing_gain_ratio(summary: &ReferenceSummary) -> Option<f64> {
    let fast = summary.best_over_random_fast? - 1.0;
    let reference = summary.best_over_random_reference? - 1.0;
    (reference > 0.0).then(|| fast / reference)
}

fn trace_note(programs: &[TracedProgram]) -> String {
    format!(
        "{} traced programs, {} instructions of each, again and again; a profile of just these for \
         the fast engine. Slowdowns are in cycles, against the same engine's run alone.",
        programs.len(),
        INSTRUCTIONS
    )
}
