//! The cases of an experiment, from the entries of its file.

use super::case::PreparedCase;
use super::chips::DescriptionSource;
use super::mixes::draw_mixes;
use super::programs::{parallel_workload, pick_evenly, staggered_copies};
use super::spec::{CaseSpec, ExperimentSpec};
use super::{map_jobs, part_error};
use crate::frame;
use crate::study::StudyError;
use crate::study::template::fill;
use consort_experiment::ExperimentContext;
use consort_sim::chip::Chip;
use consort_sim::workload::Workload;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A case whose work is not measured yet: its name, machine and workload.
type CaseDraft = (frame::Case, Arc<Chip>, Workload);

/// The cases of an experiment with the work of their programs measured.
///
/// # Errors
/// Unknown machines, programs and suites; programs that make no progress.
pub(crate) fn prepare_cases(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
    ground: &dyn DescriptionSource,
) -> Result<Vec<PreparedCase>, StudyError> {
    let mut drafts: Vec<CaseDraft> = Vec::new();
    for case in &spec.cases {
        if case.full_only && context.by_scale(true, false) {
            continue;
        }
        let machine = case.machine.as_deref().unwrap_or(&spec.machine);
        let chip = ground.load_chip(machine).map_err(part_error(machine))?;
        for (workload, labels) in resolve_workloads(context, case, ground)? {
            let named = name_case(case, &workload, labels);
            drafts.push((named, Arc::clone(&chip), workload));
        }
    }
    let alone = (spec.alone, spec.alone_s(context));
    map_jobs(context, &drafts, |(named, chip, workload)| {
        let (named, workload) = (named.clone(), workload.clone());
        let case = PreparedCase::new(named, chip, workload, alone, context.seed())?;
        let system = spec.system.as_deref().unwrap_or("linux");
        let case = case.on_system(system, spec.again);
        Ok(match spec.all_assignments {
            true => case.with_all_assignments(),
            false => case,
        })
    })
}

/// Labels that a workload has by itself.
type CaseLabels = BTreeMap<String, String>;

/// The workloads of an entry of the file: one, drawn ones, or each program of a suite with each
/// number of threads.
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
    // Sources may list a suite in any order; draws and picks depend on it.
    suite.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some(count) = case.drawn {
        let threads = case.threads.first().copied().unwrap_or(1);
        let (size, count) = ((case.size, threads), count.at_scale(context));
        let drawn = draw_mixes(context.seed(), &suite, size, count);
        return Ok(drawn.into_iter().map(alone).collect());
    }
    let mut all = Vec::new();
    for program in &pick_evenly(&suite, case.most.at_scale(context)) {
        for &n in &case.threads {
            let workload = match case.instances {
                true => staggered_copies(program, n as usize),
                false => parallel_workload(program, n),
            };
            let labels = [
                ("program", program.name.clone()),
                ("threads", n.to_string()),
            ];
            let labels = labels.map(|(label, value)| (label.to_owned(), value));
            all.push((workload, labels.into()));
        }
    }
    Ok(all)
}

/// The key and the labels of a case.
fn name_case(case: &CaseSpec, workload: &Workload, mut labels: CaseLabels) -> frame::Case {
    labels.extend(case.labels.clone());
    let usual = match labels.contains_key("program") {
        true => "{program}/{threads}",
        false => "{workload}",
    };
    let mut words = labels.clone();
    words.insert("workload".to_owned(), workload.text.clone());
    frame::Case {
        key: fill(case.key.as_deref().unwrap_or(usual), &words),
        labels,
        programs: Vec::new(),
    }
}
