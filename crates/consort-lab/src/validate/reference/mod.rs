//! The fast engine compared with the reference, which executes the same programs' instructions.
//!
//! Programs are the traces that ship, or those of a folder, each the beginning of its trace again and again. The fast
//! engine gets a profile of just these instructions. Programs run together on parts of machines:
//! all pairs of eight programs, so that the best pairs can be found, and draws of four. Slowdowns
//! are against the same engine's run of the program alone.

mod parts;
mod runs;
mod summary;
mod tables;

pub use summary::{ReferenceSummary, VarianceShares};

use super::check::{CheckTemplate, PublishedFigure, Tolerance, ValidationCheck};
use super::data::ValidateError;
use super::{GroupInputs, GroupOutput, GroupResult};
use consort_experiment::traced::TracedProgram;
use consort_ops::trace::TraceSampling;
use consort_profile::recorder::{ExecutionSink, RecordedPart, RecordingStage, WindowChoice};
use consort_profile::{ProgramFileHeader, ProgramProfiler};
use consort_sim::program::PhaseSpec;
use parts::{ChipPart, ComparisonExtent, draw_programs};
use runs::{EngineTestbed, WARM_UP};
use summary::EngineCase;
use tables::CaseNames;

/// Instructions of each trace that are run, again and again: so many are measured, so that it
/// does not matter where in them measurement begins.
const INSTRUCTIONS: u64 = 200_000;

pub(super) const NAME: &str = "reference";

const QUICK: ComparisonExtent = ComparisonExtent {
    squares: 1,
    fours: 2,
    parts: 1,
};
const FULL: ComparisonExtent = ComparisonExtent {
    squares: 3,
    fours: 20,
    parts: usize::MAX,
};

/// MPPM's errors against detailed simulation.
const MPPM: &str = "Van Craeynest and Eeckhout, IISWC 2011: error of MPPM";
const OWN: &str = "Consort: what is wanted of the fast engine";

pub(super) fn run(inputs: &GroupInputs<'_>) -> GroupResult {
    let all = match inputs.traces {
        Some(folder) => TracedProgram::load_folder(folder)?,
        None => TracedProgram::load_all()?,
    };
    let programs: Vec<TracedProgram> = { all.into_iter() }
        .filter(|program| !program.is_kernel())
        .map(|program| program.with_limit(INSTRUCTIONS))
        .collect();
    let phases = inputs.map(&programs, profile_program)?;
    let parts = match inputs.traces {
        Some(_) => ChipPart::load_for_traces()?,
        None => ChipPart::load_all()?,
    };
    let context = inputs.context;
    let extent = context.by_scale(QUICK, FULL);
    let drawn = draw_programs(&parts, programs.len(), extent, context.seed());
    let bench = EngineTestbed {
        parts: &parts,
        programs: &programs,
        phases: &phases,
        inputs,
    };
    let used: Vec<usize> = drawn.iter().map(|draw| draw.part).collect();
    let alone = bench.run_alone(&used)?;
    let mut sets: Vec<(usize, Vec<usize>)> = Vec::new();
    for draw in &drawn {
        sets.extend(draw.sets.iter().map(|set| (draw.part, set.clone())));
    }
    let ran = bench.run_together(&sets, &alone)?;
    let cases: Vec<EngineCase> = ran.iter().map(|(case, _)| case.clone()).collect();
    let summary = ReferenceSummary::from_cases(&cases, &drawn);
    let by_part: Vec<(&str, ReferenceSummary)> = { drawn.iter() }
        .map(|draw| {
            let here = cases.iter().filter(|case| case.part == draw.part);
            let here: Vec<EngineCase> = here.cloned().collect();
            let summary = ReferenceSummary::from_cases(&here, std::slice::from_ref(draw));
            (parts[draw.part].key, summary)
        })
        .collect();
    let names = CaseNames {
        parts: &parts,
        programs: &programs,
    };
    let note = format!(
        "{} traced programs, {INSTRUCTIONS} instructions of each, again and again; a profile of \
         just these for the fast engine. Slowdowns are in cycles, against the same engine's run \
         alone.",
        programs.len()
    );
    Ok(GroupOutput {
        checks: checks(&summary),
        tables: vec![
            tables::part_table(&by_part)?,
            tables::alone_table(&alone, names)?,
            tables::worst_case_table(&ran, &alone, names)?,
            tables::case_table(&cases, names)?,
        ],
        figures: vec![tables::slowdown_figure(&cases, names)?],
        notes: vec![note],
        reference: Some(summary),
    })
}

/// Phase that a profile makes of a program that is run again and again: caches and predictors are
/// as warm as the reference's when measurement begins, and all data flow is measured.
fn profile_program(program: &TracedProgram) -> Result<PhaseSpec, ValidateError> {
    let extent = RecordedPart {
        windows: WindowChoice::Fixed(TraceSampling {
            every: WARM_UP + INSTRUCTIONS,
            window: INSTRUCTIONS,
            warm: WARM_UP,
        }),
        ..RecordedPart::default()
    };
    let mut profiler = ProgramProfiler::new(extent, false);
    for _ in 0..WARM_UP / INSTRUCTIONS {
        program.ops().for_each(|op| profiler.record_op(0, &op));
    }
    profiler.enter_stage(0, RecordingStage::Window, 0);
    program.ops().for_each(|op| profiler.record_op(0, &op));
    let header = ProgramFileHeader {
        name: program.name(),
        command: program.name(),
        executed: INSTRUCTIONS,
        end: None,
    };
    let file = format!("{}.toml", program.name());
    let text = profiler.finish_profile().to_program_file(&header);
    let mut program = consort_sim::program::parse(&file, &text)?;
    Ok(program.phases.swap_remove(0))
}

fn checks(summary: &ReferenceSummary) -> Vec<ValidationCheck> {
    use PublishedFigure::{AtLeast, AtMost, Range};
    let gain = |over_random: Option<f64>| over_random.map(|ratio| ratio - 1.0);
    let fast = gain(summary.best_over_random_fast);
    let reference = gain(summary.best_over_random_reference).filter(|&gain| gain > 0.0);
    let near_one = Range {
        low: 0.8,
        high: 1.2,
    };
    let all = [
        (
            "stp-error",
            "mean error of STP",
            MPPM,
            AtMost(0.023),
            summary.stp_error_mean,
        ),
        (
            "antt-error",
            "mean error of ANTT",
            MPPM,
            AtMost(0.029),
            summary.antt_error_mean,
        ),
        (
            "slowdown-error",
            "mean error of slowdowns",
            OWN,
            AtMost(0.06),
            summary.slowdown_error_mean,
        ),
        (
            "rank",
            "rank correlation of a victim's co-runners",
            OWN,
            AtLeast(0.8),
            summary.rank_correlation,
        ),
        (
            "best-pairing",
            "gain of the best pairing over a random one, over the reference's",
            OWN,
            near_one,
            fast.zip(reference)
                .map(|(fast, reference)| fast / reference),
        ),
    ];
    let mut checks = Vec::new();
    for (id, what, source, wanted, ours) in all {
        let template = CheckTemplate {
            group: NAME,
            source,
            unit: "",
            tolerance: Tolerance::relative(0.0),
        };
        checks.extend(ours.map(|ours| template.check(id, what, wanted, ours)));
    }
    checks
}
