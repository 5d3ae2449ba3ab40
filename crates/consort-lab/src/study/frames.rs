//! The frames of a study, the loops of its views over them, and its analyses in code.

use super::file::{CaseGroupSpec, CellSpec, StudyFile, TableSpec, ViewLoop};
use super::template::fill;
use super::{StudyError, StudyOutput};
use crate::frame::{self, Case, CaseGroup, CellQuery, Frame};
use crate::simulate::ExperimentSpec;
use consort_data::{Cell, ReportColumn, ReportTable, percent_above_one};
use consort_experiment::ExperimentContext;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Words that stand for `{WORD}`.
pub(crate) type TemplateWords = BTreeMap<String, String>;

/// The frames of a study by the names of their experiments.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frames {
    pub(super) frames: BTreeMap<String, Arc<Frame>>,
    /// Names of policies in rows and legends.
    pub(super) names: BTreeMap<String, String>,
}

/// One turn of a loop: a group and words.
#[derive(Clone, Debug)]
pub(super) struct LoopTurn {
    pub(super) from: String,
    pub(super) group: CaseGroup,
    /// Description of the group, by which it is found in another frame.
    spec: CaseGroupSpec,
    value: String,
    pub(super) words: TemplateWords,
}

/// Key of all cases together, if a view names no groups.
const ALL: &str = "all";

impl Frames {
    /// The frame of an experiment.
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Frame>> {
        self.frames.get(name)
    }

    /// The name of the experiment of a view: the first, which is often the only one, if it names
    /// none.
    fn experiment_name(&self, from: Option<&str>) -> String {
        let first = self.frames.keys().next().map(String::as_str);
        from.or(first).unwrap_or_default().to_owned()
    }

    pub(super) fn experiment_runs(&self, from: Option<&str>) -> usize {
        self.get(&self.experiment_name(from))
            .map_or(0, |frame| frame.runs)
    }

    /// The words of a loop; one empty set if it has none.
    pub(super) fn loop_words(&self, over: ViewLoop<'_>) -> Vec<TemplateWords> {
        let policy = |policy: &String| {
            let name = self.names.get(policy).unwrap_or(policy);
            let words = [("policy", policy), ("name", name)];
            words
                .map(|(word, value)| (word.to_owned(), value.clone()))
                .into()
        };
        match (over.policies, over.each) {
            ([], []) => vec![TemplateWords::new()],
            (policies, []) => policies.iter().map(policy).collect(),
            (_, each) => each.to_vec(),
        }
    }

    /// The groups of a loop, each with all of the loop's words; groups without cases are left out.
    pub(super) fn turns(&self, over: ViewLoop<'_>) -> Vec<Vec<LoopTurn>> {
        let all = [CaseGroupSpec {
            all: Some(ALL.to_owned()),
            ..CaseGroupSpec::default()
        }];
        let specs = if over.groups.is_empty() {
            &all[..]
        } else {
            over.groups
        };
        let each = self.loop_words(over);
        let mut turns = Vec::new();
        for spec in specs {
            let from = self.experiment_name(spec.from.as_deref().or(over.from));
            let Some(frame) = self.get(&from) else {
                continue;
            };
            for group in spec.turns(frame, &from) {
                // Programs that are named have a row even if no workload has them.
                if !group.group.cases.is_empty() || !spec.names.is_empty() {
                    turns.push(each.iter().map(|words| group.with_words(words)).collect());
                }
            }
        }
        turns
    }

    /// Cell at a turn of a loop.
    pub(super) fn cell(&self, spec: &CellSpec, turn: &LoopTurn) -> Cell {
        let words = |text: &str| fill(text, &turn.words);
        let from = spec.from.as_ref().unwrap_or(&turn.from);
        let Some(frame) = self.get(from) else {
            return Cell::missing("not run");
        };
        // Another experiment has other cases; those of the group are found by their label.
        let other = (*from != turn.from).then(|| turn.spec.group_in_frame(frame, &turn.value));
        let policy = words(spec.policy.as_deref().unwrap_or("{policy}"));
        let over = spec.over.as_deref().map(words);
        let what = CellQuery {
            measure: &spec.measure,
            policy: &policy,
            over: over.as_deref(),
            inverted: spec.inverted,
            over_measure: spec.over_measure.as_deref(),
            of: spec.of.as_deref(),
            view: spec.view,
        };
        let mut group = other.unwrap_or_else(|| turn.group.clone());
        group.program = spec.program.as_deref().map(words).or(group.program);
        let cell = frame.cell(&what, &group);
        let cell = if spec.percent {
            percent_above_one(cell)
        } else {
            cell
        };
        match (&cell, &spec.missing) {
            (Cell::Missing { .. }, Some(why)) => Cell::missing(why),
            _ => cell,
        }
    }

    /// The runs of a turn's first case.
    pub(super) fn first_case_runs(&self, spec: &CellSpec, turn: &LoopTurn) -> Vec<f64> {
        let policy = fill(spec.policy.as_deref().unwrap_or("{policy}"), &turn.words);
        let first = turn.group.cases.first().copied();
        let frame = self.get(&turn.from);
        let runs =
            frame.and_then(|f| Some(f.run_values(first?, f.policy_index(&policy)?, &spec.measure)));
        runs.unwrap_or_default().to_vec()
    }

    /// Number of cases of a turn in which a cell's policy and its baseline have the same values.
    pub(super) fn count_same_cases(&self, spec: &CellSpec, turn: &LoopTurn) -> usize {
        let words = |text: &str| fill(text, &turn.words);
        let policy = words(spec.policy.as_deref().unwrap_or("{policy}"));
        let over = words(spec.over.as_deref().unwrap_or_default());
        let frame = self.get(spec.from.as_ref().unwrap_or(&turn.from));
        frame.map_or(0, |frame| {
            frame.count_same_cases(&spec.measure, [&policy, &over], &turn.group)
        })
    }
}

impl LoopTurn {
    pub(super) fn with_words(&self, words: &TemplateWords) -> Self {
        let mut turn = self.clone();
        turn.words.extend(words.clone());
        turn
    }
}

impl CaseGroupSpec {
    /// The groups of a frame.
    fn turns(&self, frame: &Frame, from: &str) -> Vec<LoopTurn> {
        let last = self.last.as_ref().zip(frame.cases.last());
        let holds = |case: &Case| {
            let is_like_last =
                last.is_none_or(|(label, last)| case.value(label) == last.value(label));
            self.holds(case) && is_like_last
        };
        let groups = match (&self.by, &self.all) {
            _ if !self.names.is_empty() => frame.group_named_programs(&self.names, holds),
            _ if self.programs => frame.group_by_program(holds),
            (Some(label), _) => frame.group_by_label(label, self.over, holds),
            (None, all) => {
                let key = all.as_deref().unwrap_or(ALL);
                vec![frame.group_all(key, self.over, holds)]
            }
        };
        let turn = |group: CaseGroup| {
            let value = group.key.clone();
            // Labels of a case by itself are words, too.
            let labels = match group.cases[..] {
                [case] => frame.cases[case].labels.clone(),
                _ => TemplateWords::new(),
            };
            let mut words = labels.clone();
            words.insert("group".to_owned(), value.clone());
            let key = self
                .key
                .as_ref()
                .map_or_else(|| value.clone(), |key| fill(key, &words));
            LoopTurn {
                from: from.to_owned(),
                group: CaseGroup {
                    key: key.clone(),
                    program: self.program.clone().or(group.program),
                    ..group
                },
                spec: self.clone(),
                value,
                words: labels
                    .into_iter()
                    .chain([("group".to_owned(), key)])
                    .collect(),
            }
        };
        let mut turns: Vec<LoopTurn> = groups.into_iter().map(turn).collect();
        if self.reverse {
            turns.reverse();
        }
        turns
    }

    fn holds(&self, case: &Case) -> bool {
        let mut labels = self.holds.iter();
        labels.all(|(label, value)| case.value(label) == value)
    }

    /// The group of the same cases in another frame; a program by itself is found by its name.
    fn group_in_frame(&self, frame: &Frame, value: &str) -> CaseGroup {
        let label = match (&self.by, self.programs || !self.names.is_empty()) {
            (_, true) => Some("program"),
            (by, false) => by.as_deref(),
        };
        let is_it = |case: &Case| label.is_none_or(|label| case.value(label) == value);
        frame.group_all(value, self.over, |case| is_it(case) && self.holds(case))
    }
}

impl CellSpec {
    /// The column: title and unit are the measure's if the file names none.
    pub(crate) fn column(&self) -> ReportColumn {
        let measure = frame::measure(&self.measure);
        let title = measure.map_or(self.measure.as_str(), |measure| measure.title);
        let ratio = self.over.is_some() || self.of.is_some();
        let title = match &self.over {
            Some(over) => format!("{title} over {over}"),
            None => title.to_owned(),
        };
        let unit = measure.and_then(|m| m.unit).filter(|_| !ratio);
        let unit = self
            .unit
            .as_deref()
            .or(unit)
            .filter(|unit| !unit.is_empty());
        ReportColumn {
            key: self.key.clone().unwrap_or_else(|| self.measure.clone()),
            title: self.title.clone().unwrap_or(title),
            unit: unit.map(str::to_owned),
        }
    }
}

/// Makes the frame of an experiment that is more than its cases under its policies.
pub(crate) type Experimenter =
    fn(&ExperimentContext<'_>, &ExperimentSpec) -> Result<Frame, StudyError>;
/// Makes a table that is more than a view.
pub(crate) type TableMaker = fn(&TableSpec, &Frames) -> Result<ReportTable, StudyError>;
/// Writes notes that are more than texts with phrases.
pub(crate) type NoteMaker = fn(&Frames) -> Vec<String>;
/// Carries out a study that is analysis as a whole.
pub(crate) type StudyMaker =
    fn(&ExperimentContext<'_>, &StudyFile) -> Result<StudyOutput, StudyError>;

/// Analysis that comes with Consort, by the names that study files have for it.
pub(crate) struct Analyses {
    pub(crate) experiments: &'static [(&'static str, Experimenter)],
    pub(crate) tables: &'static [(&'static str, TableMaker)],
    pub(crate) notes: &'static [(&'static str, NoteMaker)],
    pub(crate) studies: &'static [(&'static str, StudyMaker)],
}

/// Entry of a list, by its name.
pub(crate) fn find_named<T: Copy>(all: &[(&str, T)], name: &str) -> Option<T> {
    all.iter()
        .find(|(known, _)| *known == name)
        .map(|(_, what)| *what)
}

/// The experiment that an entry of the file names as its kind.
pub(crate) const SIMULATE: &str = "simulate";
