//! The cases of an experiment, from its file.

use super::case::Case;
use super::ground::Ground;
use super::mixes::mixes;
use super::programs::{copies, evenly, parallel};
use super::spec::{CaseSpec, ExperimentSpec};
use super::{each, failed};
use crate::frame;
use crate::study::StudyError;
use crate::study::template::fill;
use consort_experiment::Context;
use consort_sim::chip::Chip;
use consort_sim::program::ProgramSpec;
use consort_sim::workload::Workload;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A case whose work is not measured yet.
struct Draft {
    of: frame::Case,
    chip: Arc<Chip>,
    workload: Workload,
}

/// The cases of an experiment with the work of their programs measured.
///
/// # Errors
/// Unknown machines, programs and suites; programs that make no progress.
pub(crate) fn prepared(
    context: &Context<'_>,
    spec: &ExperimentSpec,
    ground: &dyn Ground,
) -> Result<Vec<Case>, StudyError> {
    let mut drafts = Vec::new();
    for case in &spec.cases {
        if !case.full_only || context.by_scale(false, true) {
            drafts.extend(drafted(context, spec, case, ground)?);
        }
    }
    let alone = (spec.alone, spec.alone_s(context));
    each(context, &drafts, |draft| {
        let (of, workload) = (draft.of.clone(), draft.workload.clone());
        let case = Case::new(of, &draft.chip, workload, alone, context.seed())?;
        let system = spec.system.as_deref().unwrap_or("linux");
        let case = case.on(system, spec.again);
        Ok(match spec.all_assignments {
            true => case.with_all_assignments(),
            false => case,
        })
    })
}

fn drafted(
    context: &Context<'_>,
    spec: &ExperimentSpec,
    case: &CaseSpec,
    ground: &dyn Ground,
) -> Result<Vec<Draft>, StudyError> {
    let machine = case.machine.as_deref().unwrap_or(&spec.machine);
    let chip = ground.chip(machine).map_err(failed(machine))?;
    let draft = |(workload, words): (Workload, Words)| Draft {
        of: named(case, &workload, words),
        chip: Arc::clone(&chip),
        workload,
    };
    Ok(workloads(context, case, ground)?
        .into_iter()
        .map(draft)
        .collect())
}

/// Labels that a workload has by itself.
type Words = BTreeMap<String, String>;

fn workloads(
    context: &Context<'_>,
    case: &CaseSpec,
    ground: &dyn Ground,
) -> Result<Vec<(Workload, Words)>, StudyError> {
    let alone = |workload| (workload, Words::new());
    if let Some(text) = &case.workload {
        let found = Workload::resolve(text, ground).map_err(failed(text))?;
        return Ok(vec![alone(found)]);
    }
    let name = case.suite.as_deref().unwrap_or_default();
    let mut suite = ground.suite(name).map_err(failed(name))?;
    suite.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some(count) = case.drawn {
        let threads = case.threads.first().copied().unwrap_or(1);
        let drawn = mixes(
            context.seed(),
            &suite,
            (case.size, threads),
            count.at(context),
        );
        return Ok(drawn.into_iter().map(alone).collect());
    }
    let programs = evenly(&suite, case.most.at(context));
    let of = |program: &Arc<ProgramSpec>| {
        let each = case.threads.iter();
        each.map(|&n| of_program(case, program, n))
            .collect::<Vec<_>>()
    };
    Ok(programs.iter().flat_map(of).collect())
}

fn of_program(case: &CaseSpec, program: &Arc<ProgramSpec>, n: u32) -> (Workload, Words) {
    let workload = match case.instances {
        true => copies(program, n as usize),
        false => parallel(program, n),
    };
    let words = [
        ("program", program.name.clone()),
        ("threads", n.to_string()),
    ];
    let words = words.map(|(word, value)| (word.to_owned(), value));
    (workload, words.into())
}

/// The key and the labels of a case.
fn named(case: &CaseSpec, workload: &Workload, mut words: Words) -> frame::Case {
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
