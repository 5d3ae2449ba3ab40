//! Checks of a study file, key by key.

use super::file::{CellSpec, PhraseSpec, StudyFile, ViewLoop};
use super::frames::SIMULATE;
use crate::frame;
use crate::simulate::{DescriptionSource, ExperimentSpec, StudyContender};
use crate::studies::{self, ANALYSES};
use consort_core::hint;
use consort_sim::describe::{self, DescribeError, Problems};
use consort_sim::workload::Workload;

impl StudyFile {
    /// Reads and checks a study; `file` is its name in messages.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line and key.
    pub fn parse(file: &str, text: &str) -> Result<Self, DescribeError> {
        describe::parse(file, text, check_study)
    }

    /// JSON Schema (2020-12) of study files.
    pub fn schema() -> serde_json::Value {
        let mut schema = schemars::schema_for!(Self);
        schema.insert("title".to_owned(), "Consort study".into());
        schema.to_value()
    }
}

/// Notes all mistakes, except in machines and programs.
fn check_study(file: &StudyFile, problems: &mut Problems) {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    let usable = !file.id.is_empty() && file.id.bytes().all(plain);
    problems.require(usable, "id", "is no id; use letters, digits, '-' and '_'");
    for (name, shared) in &file.shared {
        let known = studies::experiment_names();
        let key = format!("shared.{name}");
        check_known(problems, key, "shared experiment", shared, known);
    }
    for (name, spec) in &file.experiments {
        check_experiment(problems, &format!("experiments.{name}"), spec);
    }
    if let Some(name) = &file.analysis {
        check_analysis(problems, "analysis", name, ANALYSES.studies);
        return;
    }
    let empty = file.shared.is_empty() && file.experiments.is_empty();
    let right = "is missing; a study needs an experiment";
    problems.require(!empty, "experiments", right);
    let rows = !file.headline.is_empty();
    problems.require(rows, "headline", "is missing; expected rows");
    check_views(file, problems);
}

fn check_known<'a>(
    problems: &mut Problems,
    key: impl Into<String>,
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) {
    if !known.clone().any(|one| one == name) {
        let hint = hint(name, known);
        problems.add(key, format!("unknown {what} '{name}'; {hint}"));
    }
}

fn check_analysis<T>(
    problems: &mut Problems,
    key: impl Into<String>,
    name: &str,
    all: &[(&'static str, T)],
) {
    let known = all.iter().map(|(known, _)| *known);
    check_known(problems, key, "analysis", name, known);
}

fn check_experiment(problems: &mut Problems, key: &str, spec: &ExperimentSpec) {
    let kind = spec.kind.as_deref().unwrap_or(SIMULATE);
    if kind != SIMULATE {
        check_analysis(problems, format!("{key}.kind"), kind, ANALYSES.experiments);
        return;
    }
    let system = spec.system.as_deref().unwrap_or("linux");
    if let Err(error) = consort_sim::os::find(system) {
        problems.add(format!("{key}.system"), error.to_string());
    }
    for (n, policy) in spec.policies.iter().enumerate() {
        if let Err(error) = StudyContender::new(policy, "linux") {
            problems.add(format!("{key}.policies[{n}]"), error.to_string());
        }
    }
    let runs = spec.runs.is_none_or(|runs| runs.quick.min(runs.full) > 0);
    let seconds = spec.alone_s.is_none_or(|s| s.quick.min(s.full) > 0.0);
    for (right, part, message) in [
        (!spec.policies.is_empty(), "policies", "has no policy"),
        (!spec.cases.is_empty(), "cases", "has no case"),
        (runs, "runs", "is 0; expected at least 1"),
        (seconds, "alone_s", "is not above 0 s"),
    ] {
        problems.require(right, format!("{key}.{part}"), message);
    }
    for (n, case) in spec.cases.iter().enumerate() {
        let key = format!("{key}.cases[{n}]");
        let either = case.workload.is_some() != case.suite.is_some();
        let message = "needs either a workload or a suite";
        problems.require(either, key.as_str(), message);
        let threads = case.suite.is_none() || case.drawn.is_some() || !case.threads.is_empty();
        let message = "is missing; a suite needs threads";
        problems.require(threads, format!("{key}.threads"), message);
        let size = case.drawn.is_none() || case.size > 0;
        let message = "is 0; drawn workloads need programs";
        problems.require(size, format!("{key}.size"), message);
    }
}

/// Checks every view of the file.
fn check_views(file: &StudyFile, problems: &mut Problems) {
    let shared = { file.shared.values() }.filter_map(|name| studies::experiment(name));
    let all: Vec<ExperimentSpec> = file.experiments.values().cloned().chain(shared).collect();
    let simulated = all.iter().all(|spec| spec.kind.is_none());
    let policies = all.into_iter().flat_map(|spec| spec.policies).collect();
    let mut check = ViewChecker {
        file,
        policies: simulated.then_some(policies),
        problems,
    };
    for (n, block) in file.headline.iter().enumerate() {
        check.check_view(
            &format!("headline[{n}]"),
            "rows",
            &block.rows,
            block.looped(),
        );
    }
    for (n, table) in file.tables.iter().enumerate() {
        let key = format!("tables[{n}]");
        match &table.analysis {
            Some(name) => {
                let key = format!("{key}.analysis");
                check_analysis(check.problems, key, name, ANALYSES.tables);
            }
            None => check.check_view(&key, "columns", &table.columns, table.looped()),
        }
    }
    for (n, figure) in file.figures.iter().enumerate() {
        check.check_view(
            &format!("figures[{n}]"),
            "series",
            &figure.series,
            figure.looped(),
        );
    }
    for (n, note) in file.notes.iter().enumerate() {
        let key = format!("notes[{n}]");
        if let Some(name) = &note.analysis {
            let key = format!("{key}.analysis");
            check_analysis(check.problems, key, name, ANALYSES.notes);
        }
        check.check_loop(&key, note.looped());
        for (name, phrase) in &note.phrases {
            check.check_phrase(&format!("{key}.phrases.{name}"), phrase);
        }
    }
}

/// Views of a file under check.
struct ViewChecker<'a, 'b> {
    file: &'a StudyFile,
    /// The policies of all experiments; `None` if one of them is not a simulated one, because the
    /// file does not list the policies of those.
    policies: Option<Vec<String>>,
    problems: &'b mut Problems,
}

impl ViewChecker<'_, '_> {
    fn check_from(&mut self, key: &str, from: Option<&str>) {
        if let Some(from) = from {
            let names = self.file.experiments.keys().chain(self.file.shared.keys());
            let (key, known) = (format!("{key}.from"), names.map(String::as_str));
            check_known(self.problems, key, "experiment", from, known);
        }
    }

    fn check_loop(&mut self, key: &str, over: ViewLoop<'_>) {
        self.check_from(key, over.from);
        for (n, policy) in over.policies.iter().enumerate() {
            self.check_policy(format!("{key}.policies[{n}]"), policy);
        }
    }

    fn check_phrase(&mut self, key: &str, phrase: &PhraseSpec) {
        self.check_loop(key, phrase.looped());
        for (name, cell) in &phrase.cells {
            self.check_cell(&format!("{key}.cells.{name}"), cell, phrase.looped());
        }
        for (name, inner) in &phrase.phrases {
            self.check_phrase(&format!("{key}.phrases.{name}"), inner);
        }
    }

    fn check_view(&mut self, key: &str, part: &str, cells: &[CellSpec], over: ViewLoop<'_>) {
        self.check_loop(key, over);
        let key = format!("{key}.{part}");
        self.problems
            .require(!cells.is_empty(), key.as_str(), "is empty");
        for (n, cell) in cells.iter().enumerate() {
            self.check_cell(&format!("{key}[{n}]"), cell, over);
        }
    }

    fn check_cell(&mut self, key: &str, cell: &CellSpec, over: ViewLoop<'_>) {
        self.check_from(key, cell.from.as_deref());
        let measures = [
            ("measure", Some(&cell.measure)),
            ("of", cell.of.as_ref()),
            ("over_measure", cell.over_measure.as_ref()),
        ];
        for (part, measure) in measures {
            let known = frame::MEASURES.iter().map(|measure| measure.key);
            if let Some(measure) = measure {
                let key = format!("{key}.{part}");
                check_known(self.problems, key, "measure", measure, known);
            }
        }
        for (part, policy) in [("policy", &cell.policy), ("over", &cell.over)] {
            if let Some(policy) = policy {
                self.check_policy(format!("{key}.{part}"), policy);
            }
        }
        let named = cell.policy.is_some() || !over.policies.is_empty() || !over.each.is_empty();
        // The policy of a phrase's cell may be a word of its note.
        let inside = key.contains(".phrases.");
        let message = "is missing; name one here, or policies above";
        let key = format!("{key}.policy");
        self.problems.require(named || inside, key, message);
    }

    /// Policies of views are among those of some experiment, or words.
    fn check_policy(&mut self, key: String, policy: &str) {
        if let Some(all) = self.policies.as_ref().filter(|_| !policy.contains('{')) {
            let known = all.iter().map(String::as_str);
            check_known(self.problems, key, "policy of this study", policy, known);
        }
    }
}

/// Checks that machines, workloads and suites are there; returns their descriptions as text.
///
/// # Errors
/// The first that is not, with the line where the text has it first.
pub(super) fn check_descriptions(
    name: &str,
    text: &str,
    file: &StudyFile,
    ground: &dyn DescriptionSource,
) -> Result<String, DescribeError> {
    let mut described = String::new();
    for (experiment, spec) in &file.experiments {
        let wrong = |key: &str, value: &str, message: String| DescribeError {
            file: name.to_owned(),
            // That of the first string of this value.
            line: text
                .lines()
                .position(|line| has_string(line, value))
                .map_or(1, |n| n + 1),
            key: format!("experiments.{experiment}.{key}"),
            message,
            more: 0,
        };
        let others = spec.cases.iter().filter_map(|case| case.machine.as_ref());
        for machine in std::iter::once(&spec.machine).chain(others) {
            let chip = ground.load_chip(machine);
            let chip = chip.map_err(|error| wrong("machine", machine, error.to_string()))?;
            described += &format!("{:?}", chip.spec());
        }
        for (n, case) in spec.cases.iter().enumerate() {
            let key = |part| format!("cases[{n}].{part}");
            if let Some(workload) = &case.workload {
                let found = Workload::resolve(workload, ground);
                let found = found.map_err(|e| wrong(&key("workload"), workload, e.to_string()))?;
                described += &format!("{found:?}");
            }
            if let Some(suite) = &case.suite {
                let suites = ground.suites();
                if !suites.contains(suite) {
                    let hint = hint(suite, suites.iter().map(String::as_str));
                    let message = format!("unknown suite '{suite}'; {hint}");
                    return Err(wrong(&key("suite"), suite, message));
                }
                described += &format!("{:?}", ground.suite(suite));
            }
        }
    }
    Ok(described)
}

fn has_string(line: &str, value: &str) -> bool {
    ['"', '\'']
        .iter()
        .any(|quote| line.contains(&format!("{quote}{value}{quote}")))
}
