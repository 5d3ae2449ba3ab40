//! Checks of a study file, key by key.

use super::analyses::{SIMULATE, find_named};
use super::file::{CellSpec, PhraseSpec, StudyFile, ViewLoop};
use crate::frame;
use crate::simulate::{CaseSpec, DescriptionSource, ExperimentSpec, StudyContender};
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
}

/// Notes everything that cannot be, but for machines and programs.
fn check_study(file: &StudyFile, problems: &mut Problems) {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    let usable = !file.id.is_empty() && file.id.bytes().all(plain);
    problems.require(usable, "id", "is no id; use letters, digits, '-' and '_'");
    for (name, of) in &file.shared {
        let known = studies::experiment_names();
        check_known(
            problems,
            &format!("shared.{name}"),
            "shared experiment",
            of,
            known,
        );
    }
    for (name, spec) in &file.experiments {
        check_experiment(problems, &format!("experiments.{name}"), spec);
    }
    if let Some(name) = &file.analysis {
        check_analysis(problems, "analysis", name, ANALYSES.studies);
        return;
    }
    let empty = file.shared.is_empty() && file.experiments.is_empty();
    problems.require(
        !empty,
        "experiments",
        "is missing; a study needs an experiment",
    );
    problems.require(
        !file.headline.is_empty(),
        "headline",
        "is missing; expected rows",
    );
    check_views(file, problems);
}

fn check_known<'a>(
    problems: &mut Problems,
    key: &str,
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) {
    if known.clone().any(|one| one == name) {
        return;
    }
    let hint = hint(name, known);
    problems.add(key, format!("unknown {what} '{name}'; {hint}"));
}

fn check_analysis<T: Copy>(problems: &mut Problems, key: &str, name: &str, all: &[(&str, T)]) {
    if find_named(all, name).is_none() {
        let hint = hint(name, all.iter().map(|(known, _)| *known));
        problems.add(key, format!("unknown analysis '{name}'; {hint}"));
    }
}

fn check_experiment(problems: &mut Problems, key: &str, spec: &ExperimentSpec) {
    let kind = spec.kind.as_deref().unwrap_or(SIMULATE);
    if kind != SIMULATE {
        check_analysis(problems, &format!("{key}.kind"), kind, ANALYSES.experiments);
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
    problems.require(
        !spec.policies.is_empty(),
        format!("{key}.policies"),
        "has no policy",
    );
    problems.require(
        !spec.cases.is_empty(),
        format!("{key}.cases"),
        "has no case",
    );
    let runs = spec.runs.is_none_or(|runs| runs.quick.min(runs.full) > 0);
    problems.require(runs, format!("{key}.runs"), "is 0; expected at least 1");
    let seconds = spec.alone_s.is_none_or(|s| s.quick.min(s.full) > 0.0);
    problems.require(seconds, format!("{key}.alone_s"), "is not above 0 s");
    for (n, case) in spec.cases.iter().enumerate() {
        check_case(problems, &format!("{key}.cases[{n}]"), case);
    }
}

fn check_case(problems: &mut Problems, key: &str, case: &CaseSpec) {
    let either = case.workload.is_some() != case.suite.is_some();
    problems.require(either, key, "needs either a workload or a suite");
    let threads = case.suite.is_none() || case.drawn.is_some() || !case.threads.is_empty();
    problems.require(
        threads,
        format!("{key}.threads"),
        "is missing; a suite needs threads",
    );
    let size = case.drawn.is_none() || case.size > 0;
    problems.require(
        size,
        format!("{key}.size"),
        "is 0; drawn workloads need programs",
    );
}

/// Every view of the file with its key.
fn check_views(file: &StudyFile, problems: &mut Problems) {
    let mut check = ViewChecker {
        file,
        policies: experiment_policies(file),
        problems,
    };
    for (n, block) in file.headline.iter().enumerate() {
        let key = format!("headline[{n}]");
        check.check_loop(&key, block.looped());
        check.check_cells(&format!("{key}.rows"), &block.rows, block.looped());
    }
    for (n, table) in file.tables.iter().enumerate() {
        let key = format!("tables[{n}]");
        if let Some(name) = &table.analysis {
            check_analysis(
                check.problems,
                &format!("{key}.analysis"),
                name,
                ANALYSES.tables,
            );
            continue;
        }
        check.check_loop(&key, table.looped());
        check.check_cells(&format!("{key}.columns"), &table.columns, table.looped());
    }
    for (n, figure) in file.figures.iter().enumerate() {
        let key = format!("figures[{n}]");
        check.check_loop(&key, figure.looped());
        check.check_cells(&format!("{key}.series"), &figure.series, figure.looped());
    }
    for (n, note) in file.notes.iter().enumerate() {
        let key = format!("notes[{n}]");
        if let Some(name) = &note.analysis {
            check_analysis(
                check.problems,
                &format!("{key}.analysis"),
                name,
                ANALYSES.notes,
            );
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
    /// The policies of all experiments; none where an experiment has policies of its own.
    policies: Option<Vec<String>>,
    problems: &'b mut Problems,
}

/// The policies of all experiments of a file; of others than simulated ones it does not say.
fn experiment_policies(file: &StudyFile) -> Option<Vec<String>> {
    let shared = file
        .shared
        .values()
        .filter_map(|name| studies::experiment(name));
    let all: Vec<ExperimentSpec> = file.experiments.values().cloned().chain(shared).collect();
    let simulated = all.iter().all(|spec| spec.kind.is_none());
    simulated.then(|| all.into_iter().flat_map(|spec| spec.policies).collect())
}

impl ViewChecker<'_, '_> {
    fn check_from_key(&mut self, key: &str, from: Option<&str>) {
        if let Some(from) = from {
            let names = self.file.experiments.keys().chain(self.file.shared.keys());
            let known = names.map(String::as_str);
            check_known(
                self.problems,
                &format!("{key}.from"),
                "experiment",
                from,
                known,
            );
        }
    }

    fn check_loop(&mut self, key: &str, over: ViewLoop<'_>) {
        self.check_from_key(key, over.from);
        for (n, policy) in over.policies.iter().enumerate() {
            self.check_policy(&format!("{key}.policies[{n}]"), policy);
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

    fn check_cells(&mut self, key: &str, cells: &[CellSpec], over: ViewLoop<'_>) {
        self.problems.require(!cells.is_empty(), key, "is empty");
        for (n, cell) in cells.iter().enumerate() {
            self.check_cell(&format!("{key}[{n}]"), cell, over);
        }
    }

    fn check_cell(&mut self, key: &str, cell: &CellSpec, over: ViewLoop<'_>) {
        self.check_from_key(key, cell.from.as_deref());
        let measures = [
            ("measure", Some(&cell.measure)),
            ("of", cell.of.as_ref()),
            ("over_measure", cell.over_measure.as_ref()),
        ];
        for (part, measure) in measures {
            let known = frame::MEASURES.iter().map(|measure| measure.key);
            if let Some(measure) = measure {
                check_known(
                    self.problems,
                    &format!("{key}.{part}"),
                    "measure",
                    measure,
                    known,
                );
            }
        }
        for (part, policy) in [("policy", &cell.policy), ("over", &cell.over)] {
            if let Some(policy) = policy {
                self.check_policy(&format!("{key}.{part}"), policy);
            }
        }
        let named = cell.policy.is_some() || !over.policies.is_empty() || !over.each.is_empty();
        let inside = key.contains(".phrases.");
        let right = "is missing; name one here, or policies above";
        self.problems
            .require(named || inside, format!("{key}.policy"), right);
    }

    /// Policies of views are among those of some experiment, or words.
    fn check_policy(&mut self, key: &str, policy: &str) {
        if let Some(all) = self.policies.as_ref().filter(|_| !policy.contains('{')) {
            let known = all.iter().map(String::as_str);
            check_known(self.problems, key, "policy of this study", policy, known);
        }
    }
}

/// Checks that machines, workloads and suites are there; gives their descriptions as text.
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
            line: find_line(text, value),
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
                let hint = hint(suite, suites.iter().map(String::as_str));
                let unknown = || {
                    wrong(
                        &key("suite"),
                        suite,
                        format!("unknown suite '{suite}'; {hint}"),
                    )
                };
                suites.contains(suite).then_some(()).ok_or_else(unknown)?;
                described += &format!("{:?}", ground.suite(suite));
            }
        }
    }
    Ok(described)
}

/// The line, from 1, of the first string of this value.
fn find_line(text: &str, value: &str) -> usize {
    let quotes = ['"', '\''].map(|quote| format!("{quote}{value}{quote}"));
    let has = |line: &str| quotes.iter().any(|quoted| line.contains(quoted));
    text.lines().position(has).map_or(1, |n| n + 1)
}
