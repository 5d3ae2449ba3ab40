//! Study files: what an experiment is about, what it runs, and what it shows.
//!
//! A study is a TOML file. [`StudyFile::parse`] reads and checks one; whatever is wrong is one
//! line that names file, line and key. docs/research/own.md shows a whole study.

use crate::frame::{CellView, IntervalBasis};
use crate::simulate::ExperimentSpec;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A study as its file has it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudyFile {
    /// Stable id: letters, digits, `-`, `_`; for example `W3`.
    pub id: String,
    /// Title for people.
    pub title: String,
    /// The published work.
    pub source: String,
    /// Section, figure or table of the source.
    pub section: String,
    /// Setup of the source: machine, workloads, policies, repetitions.
    pub original: String,
    /// Differences from the source.
    pub differs: String,
    /// Seed unless another is asked for.
    pub seed: u64,
    /// About how long the full scale takes on two cores, in seconds.
    pub full_seconds: u32,
    /// Explanations of the numbers, written by people who looked at the full scale.
    #[serde(default)]
    pub mechanism: Vec<String>,
    /// Analysis that comes with Consort and does the whole study; none where the file says all.
    #[serde(default)]
    pub analysis: Option<String>,
    /// Names of policies in rows and legends, where they are not the policies themselves.
    #[serde(default)]
    pub names: BTreeMap<String, String>,
    /// Experiments that come with Consort, by the name that views use for them.
    #[serde(default)]
    pub shared: BTreeMap<String, String>,
    /// The study's own experiments, by the name that views use for them.
    #[serde(default)]
    pub experiments: BTreeMap<String, ExperimentSpec>,
    /// Rows of the first table, block by block.
    #[serde(default)]
    pub headline: Vec<HeadlineSpec>,
    /// Tables behind the headline.
    #[serde(default)]
    pub tables: Vec<TableSpec>,
    /// Figures.
    #[serde(default)]
    pub figures: Vec<FigureSpec>,
    /// Findings and limits that a reader must know.
    #[serde(default)]
    pub notes: Vec<NoteSpec>,
    /// Values that stand for published figures, and reasons why they differ. A figure without an
    /// entry is the row of the headline with the same name.
    #[serde(default)]
    pub published: Vec<OutcomeSpec>,
}

/// Value of the study that stands for a published figure, and the reason if the two differ.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutcomeSpec {
    /// Name of the published figure. One `*` stands for any text.
    pub row: String,
    /// Table of the value; the headline if none is named. It, `at` and `column` may have a `*` for
    /// the text that the `*` of `row` stands for.
    #[serde(default)]
    pub table: Option<String>,
    /// Rows of the value; the name of the published figure if none is named. Several are averaged.
    #[serde(default)]
    pub at: Vec<String>,
    /// Rows whose average the value is divided by. A percentage stands for its ratio here, so that
    /// `a over c` and `b over c` give `a over b`.
    #[serde(default)]
    pub over: Vec<String>,
    /// Names that are ranked by the average of the rows `at`, with a name for each `{name}`; rows
    /// that are not there are left out.
    #[serde(default)]
    pub among: Vec<String>,
    /// The value of a ranking: `{most}` and `{least}` are the names with the largest and the
    /// smallest average, `{top}` the three with the largest.
    #[serde(default)]
    pub text: String,
    /// Column of the value; `value` if none is named.
    #[serde(default)]
    pub column: Option<String>,
    /// True if the figure is a level, for example an error or a share, which has no direction.
    #[serde(default)]
    pub level: bool,
    /// Reason why ours differs, one sentence; without one a difference is an open question.
    #[serde(default)]
    pub reason: Option<String>,
}

/// Cases that are taken together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CaseGroupSpec {
    /// A group for each value of this label of cases: `case` for each case by itself, `program` or
    /// `threads` where cases have them.
    #[serde(default)]
    pub by: Option<String>,
    /// One group of all cases, of this key.
    #[serde(default)]
    pub all: Option<String>,
    /// A group for each program of the workloads, for measures of programs.
    #[serde(default)]
    pub programs: bool,
    /// These programs, whether workloads have them or not, in place of all.
    #[serde(default)]
    pub names: Vec<String>,
    /// The program, or class of programs, whose values are meant.
    #[serde(default)]
    pub program: Option<String>,
    /// Labels that cases must have.
    #[serde(default, rename = "where")]
    pub holds: BTreeMap<String, String>,
    /// Only the cases whose value of this label is that of the last case.
    #[serde(default)]
    pub last: Option<String>,
    /// Experiment, where it is not that of the view.
    #[serde(default)]
    pub from: Option<String>,
    /// Kind of the groups' intervals.
    #[serde(default)]
    pub over: IntervalBasis,
    /// True if the groups come in the opposite order.
    #[serde(default)]
    pub reverse: bool,
    /// Keys of groups, with `{group}` for the value of the label, and labels of a case by itself.
    #[serde(default)]
    pub key: Option<String>,
}

/// A loop of a view: groups of cases, and under each of them these words.
#[derive(Clone, Copy, Debug)]
pub struct ViewLoop<'a> {
    /// Experiment; the only one where none is named.
    pub from: Option<&'a str>,
    /// Groups of cases; all cases where there are none.
    pub groups: &'a [CaseGroupSpec],
    /// Policies: short for `each` with `policy` and `name`.
    pub policies: &'a [String],
    /// Words that stand for `{WORD}` in what follows.
    pub each: &'a [BTreeMap<String, String>],
}

/// Number of a column, a row of the headline, a series or a note.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CellSpec {
    /// Key of the column; the measure where there is none.
    #[serde(default)]
    pub key: Option<String>,
    /// Title of the column; the measure's where there is none.
    #[serde(default)]
    pub title: Option<String>,
    /// Unit of the column, or of the row of the headline: `gain` shows a ratio as percent above 1.
    #[serde(default)]
    pub unit: Option<String>,
    /// Row of the headline.
    #[serde(default)]
    pub row: Option<String>,
    /// Name of the series.
    #[serde(default)]
    pub name: Option<String>,
    /// Experiment, where it is not that of the view.
    #[serde(default)]
    pub from: Option<String>,
    /// The measure.
    pub measure: String,
    /// The policy; that of the row where none is named.
    #[serde(default)]
    pub policy: Option<String>,
    /// The policy whose value is divided by, run by run.
    #[serde(default)]
    pub over: Option<String>,
    /// True if the ratio is the other way round, as for times that are to be speeds.
    #[serde(default)]
    pub inverted: bool,
    /// The program, or class of programs, whose values are meant.
    #[serde(default)]
    pub program: Option<String>,
    /// The measure of the policy that is divided by, where it is another one.
    #[serde(default)]
    pub over_measure: Option<String>,
    /// The measure whose sum is divided by, run by run.
    #[serde(default)]
    pub of: Option<String>,
    /// Way in which values become a number.
    #[serde(default)]
    pub view: CellView,
    /// Reason that is given where there is no number.
    #[serde(default)]
    pub missing: Option<String>,
    /// True if a ratio is shown as percent above 1.
    #[serde(default)]
    pub percent: bool,
    /// Decimals in notes; four digits with the interval where none are named.
    #[serde(default)]
    pub digits: Option<usize>,
}

/// A block of rows of the headline: all rows for each word, for each group.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeadlineSpec {
    /// See [`ViewLoop::from`].
    #[serde(default)]
    pub from: Option<String>,
    /// See [`ViewLoop::groups`].
    #[serde(default)]
    pub groups: Vec<CaseGroupSpec>,
    /// See [`ViewLoop::policies`].
    #[serde(default)]
    pub policies: Vec<String>,
    /// See [`ViewLoop::each`].
    #[serde(default)]
    pub each: Vec<BTreeMap<String, String>>,
    /// The rows.
    pub rows: Vec<CellSpec>,
}

/// A table: a row for each word of each group.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TableSpec {
    /// Stable key.
    pub key: String,
    /// Title for people.
    #[serde(default)]
    pub title: String,
    /// Analysis that comes with Consort and makes the table.
    #[serde(default)]
    pub analysis: Option<String>,
    /// Key of a row; `{group}/{name}` where there are policies, else `{group}`.
    #[serde(default)]
    pub row: Option<String>,
    /// See [`ViewLoop::from`].
    #[serde(default)]
    pub from: Option<String>,
    /// See [`ViewLoop::groups`].
    #[serde(default)]
    pub groups: Vec<CaseGroupSpec>,
    /// See [`ViewLoop::policies`].
    #[serde(default)]
    pub policies: Vec<String>,
    /// See [`ViewLoop::each`].
    #[serde(default)]
    pub each: Vec<BTreeMap<String, String>>,
    /// The columns.
    #[serde(default)]
    pub columns: Vec<CellSpec>,
}

/// Kinds of figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// Groups of bars, one bar of each series in each group.
    #[default]
    Bars,
    /// Lines of the groups' values, each line's sorted.
    Sorted,
    /// Lines over the number that a label of the cases is.
    Lines,
    /// Points, a measure of each case over another.
    Scatter,
    /// A matrix: groups of cases by series.
    Heat,
    /// Points of every run of the first case, by the number of the run.
    Runs,
}

/// A figure.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FigureSpec {
    /// Stable key.
    pub key: String,
    /// Title for people.
    pub title: String,
    /// Caption: the point of the figure.
    #[serde(default)]
    pub text: String,
    /// Kind of plot.
    #[serde(default)]
    pub kind: FigureKind,
    /// Title of the axis of groups, or of the horizontal axis.
    pub category: String,
    /// Unit of the horizontal axis.
    #[serde(default)]
    pub category_unit: Option<String>,
    /// Title of the axis of values.
    pub value: String,
    /// Unit of the values.
    #[serde(default)]
    pub unit: Option<String>,
    /// Value at which bars begin: 1 for ratios whose gain or loss is the point.
    #[serde(default)]
    pub baseline: f64,
    /// True if equal factors, not equal differences, have equal lengths on both axes.
    #[serde(default)]
    pub log: bool,
    /// True if intervals and values that are not above 0 are left out.
    #[serde(default)]
    pub exact: bool,
    /// Decimals of a matrix's cells.
    #[serde(default)]
    pub digits: Option<u32>,
    /// Label of cases whose number is the horizontal position of lines.
    #[serde(default)]
    pub x: Option<String>,
    /// Horizontal position of the points.
    #[serde(default)]
    pub across: Option<CellSpec>,
    /// True if it is left out where nothing has a value.
    #[serde(default)]
    pub optional: bool,
    /// True if words make groups of bars, and groups of cases the series.
    #[serde(default)]
    pub swap: bool,
    /// Title of the vertical axis of a matrix.
    #[serde(default)]
    pub groups_title: String,
    /// Label of cases that makes a line for each of its values.
    #[serde(default)]
    pub line_by: Option<String>,
    /// See [`ViewLoop::from`].
    #[serde(default)]
    pub from: Option<String>,
    /// See [`ViewLoop::groups`].
    #[serde(default)]
    pub groups: Vec<CaseGroupSpec>,
    /// See [`ViewLoop::policies`].
    #[serde(default)]
    pub policies: Vec<String>,
    /// See [`ViewLoop::each`].
    #[serde(default)]
    pub each: Vec<BTreeMap<String, String>>,
    /// Series, once for each of the words.
    pub series: Vec<CellSpec>,
}

/// Kinds of phrases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PhraseKind {
    /// Every item in its order.
    #[default]
    List,
    /// The items with the largest values of `by`, the largest first.
    Top,
    /// Those with the smallest, the smallest last.
    Bottom,
    /// The item with the largest value and the one with the smallest.
    Ends,
    /// Number of values of `by` that are above 1 beyond their interval.
    Above,
    /// Number of values of `by` that are below 1 beyond their interval.
    Below,
    /// Number of items.
    Count,
    /// Pearson's correlation of `by` and `with` over the items.
    Correlation,
    /// Number of cases in which all runs of `by` are the same as those of what it is set against.
    Same,
}

/// A part of a note that is worked out.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PhraseSpec {
    /// Kind of phrase.
    #[serde(default)]
    pub kind: PhraseKind,
    /// An item, with `{group}`, words and cells in braces.
    #[serde(default)]
    pub item: String,
    /// Text between two items.
    #[serde(default = "comma")]
    pub join: String,
    /// The cell that items are ordered or counted by.
    #[serde(default)]
    pub by: Option<String>,
    /// The cell that `by` is correlated with.
    #[serde(default)]
    pub with: Option<String>,
    /// Phrases within items, by their names there.
    #[serde(default)]
    pub phrases: BTreeMap<String, PhraseSpec>,
    /// Number of items of `top` and `bottom`.
    #[serde(default = "few")]
    pub few: usize,
    /// Cells by their names in items.
    #[serde(default)]
    pub cells: BTreeMap<String, CellSpec>,
    /// See [`ViewLoop::from`].
    #[serde(default)]
    pub from: Option<String>,
    /// See [`ViewLoop::groups`]; those of the note where there are none.
    #[serde(default)]
    pub groups: Vec<CaseGroupSpec>,
    /// See [`ViewLoop::policies`].
    #[serde(default)]
    pub policies: Vec<String>,
    /// See [`ViewLoop::each`].
    #[serde(default)]
    pub each: Vec<BTreeMap<String, String>>,
}

fn comma() -> String {
    ", ".to_owned()
}

const fn few() -> usize {
    3
}

/// A note, or one for each word of each group.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoteSpec {
    /// The text, with phrases, `{group}` and words in braces.
    #[serde(default)]
    pub text: String,
    /// Analysis that comes with Consort and writes the notes.
    #[serde(default)]
    pub analysis: Option<String>,
    /// True if the note is about the quick scale alone.
    #[serde(default)]
    pub quick_only: bool,
    /// Phrases by their names in the text.
    #[serde(default)]
    pub phrases: BTreeMap<String, PhraseSpec>,
    /// See [`ViewLoop::from`].
    #[serde(default)]
    pub from: Option<String>,
    /// See [`ViewLoop::groups`]; one note on all cases where there are none.
    #[serde(default)]
    pub groups: Vec<CaseGroupSpec>,
    /// See [`ViewLoop::policies`].
    #[serde(default)]
    pub policies: Vec<String>,
    /// See [`ViewLoop::each`].
    #[serde(default)]
    pub each: Vec<BTreeMap<String, String>>,
}

macro_rules! loops {
    ($($spec:ty),*) => {$(
        impl $spec {
            /// The loop over groups and words.
            pub(super) fn looped(&self) -> ViewLoop<'_> {
                ViewLoop {
                    from: self.from.as_deref(),
                    groups: &self.groups,
                    policies: &self.policies,
                    each: &self.each,
                }
            }
        }
    )*};
}

loops!(HeadlineSpec, TableSpec, FigureSpec, PhraseSpec, NoteSpec);
