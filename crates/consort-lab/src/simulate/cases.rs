//! The cases of an experiment, from its file.

use super::case::PreparedCase;
use super::description_source::DescriptionSource;
use super::mixes::draw_mixes;
use super::programs::{parallel_workload, pick_evenly, staggered_copies};
use super::spec::{CaseSpec, ExperimentSpec};
use super::{map_jobs, part_error};
use crate::frame;
use crate::study::StudyError;
use crate::study::template::fill;
use consort_experiment::ExperimentContext;
use consort_sim::chip::Chip;
use consort_sim::program::ProgramSpec;
use consort_sim::workload::Workload;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A case whose work is not measured yet.
struct CaseDraft {
    of: frame::Case,
    chip: Arc<Chip>,
    workload: Workload,
}

/// The cases of an experiment with the work of their programs measured.
///
/// # Errors
/// Unknown machines, programs and suites; programs that make no progress.
pub(crate) fn prepare_cases(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
    ground: &dyn DescriptionSource,
) -> Result<Vec<PreparedCase>, StudyError> {
    let mut drafts = Vec::new();
    for case in &spec.cases {
        if !case.full_only || context.by_scale(false, true) {
            drafts.extend(draft_cases(context, spec, case, ground)?);
        }
    }
    let alone = (spec.alone, spec.alone_s(context));
    map_jobs(context, &drafts, |draft| {
        let (of, workload) = (draft.of.clone(), draft.workload.clone());
        let case = PreparedCase::new(of, &draft.chip, workload, alone, context.seed())?;
        let system = spec.system.as_deref().unwrap_or("linux");
        let case = case.on_system(system, spec.again);
        Ok(match spec.all_assignments {
            true => case.with_all_assignments(),
            false => case,
        })
    })
}

fn draft_cases(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
    case: &CaseSpec,
    ground: &dyn DescriptionSource,
) -> Result<Vec<CaseDraft>, StudyError> {
    let machine = case.machine.as_deref().unwrap_or(&spec.machine);
    let chip = ground.load_chip(machine).map_err(part_error(machine))?;
    let draft = |(workload, words): (Workload, CaseLabels)| CaseDraft {
        of: name_case(case, &workload, words),
        chip: Arc::clone(&chip),
        workload,
    };
    Ok(resolve_workloads(context, case, ground)?
        .into_iter()
        .map(draft)
        .collect())
}

/// Labels that a workload has by itself.
type CaseLabels = BTreeMap<String, String>;

fn resolve_workloads(
    context: &ExperimentContext<'_>,
    case: &CaseSpec,
    ground: &dyn DescriptionSource,
) -> Result<Vec<(Workload, CaseLabels)>, StudyError> {
    let alone = |workload| (workload, CaseLabels::new());
    if let Some(text) = &case.workload {
        let found = Workload::resolve(text, ground).map_err(part_error(text))?;
        return Ok(vec![alone(found)]);
    }
    let name = case.suite.as_deref().unwrap_or_default();
    let mut suite = ground.suite(name).map_err(part_error(name))?;
    suite.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some(count) = case.drawn {
        let threads = case.threads.first().copied().unwrap_or(1);
        let drawn = draw_mixes(
            context.seed(),
            &suite,
            (case.size, threads),
            count.at_scale(context),
        );
        return Ok(drawn.into_iter().map(alone).collect());
    }
    let programs = pick_evenly(&suite, case.most.at_scale(context));
    let of = |program: &Arc<ProgramSpec>| {
        let each = case.threads.iter();
        each.map(|&n| program_workload(case, program, n))
            .collect::<Vec<_>>()
    };
    Ok(programs.iter().flat_map(of).collect())
}

fn program_workload(case: &CaseSpec, program: &Arc<ProgramSpec>, n: u32) -> (Workload, CaseLabels) {
    let workload = match case.instances {
        true => staggered_copies(program, n as usize),
        false => parallel_workload(program, n),
    };
    let words = [
        ("program", program.name.clone()),
        ("threads", n.to_string()),
    ];
    let words = words.map(|(word, value)| (word.to_owned(), value));
    (workload, words.into())
}

/// The key and the labels of a case.
fn name_case(case: &CaseSpec, workload: &Workload, mut words: CaseLabels) -> frame::Case {
    words.extend(case.labels.clone());
    let usual = match words.contains_key("program") {
        true => "{program}/{threads}",
        false => "{workload}",
    };
    let mut all = words.clone();
    all.insert("workload".to_owned(), workload.text.clone());
    frame::Case {
        key: fill(case.key.as_deref().unwrap_or(usual), &all),
        labels: words,
        programs: Vec::new(),
    }
}
