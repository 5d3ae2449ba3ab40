//! Experiments as study files have them.

use consort_experiment::ExperimentContext;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A value at the quick and at the full scale.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScaledValue<T> {
    /// At the quick scale.
    pub quick: T,
    /// At the full scale.
    pub full: T,
}

impl<T: Copy> ScaledValue<T> {
    /// The value at the context's scale.
    pub fn at_scale(self, context: &ExperimentContext<'_>) -> T {
        context.by_scale(self.quick, self.full)
    }
}

/// Largest numbers, at the quick and at the full scale; all where no number is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScaledLimit {
    /// At the quick scale.
    #[serde(default)]
    pub quick: Option<usize>,
    /// At the full scale.
    #[serde(default)]
    pub full: Option<usize>,
}

impl ScaledLimit {
    /// The number at the context's scale.
    pub fn at_scale(self, context: &ExperimentContext<'_>) -> usize {
        context
            .by_scale(self.quick, self.full)
            .unwrap_or(usize::MAX)
    }
}

/// Place in which a program's work is measured alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AlonePlace {
    /// On the whole machine.
    #[default]
    Machine,
    /// On one large core where it has one thread, else on the whole machine.
    LargeCore,
}

/// Kind of load: programs or threads that start again until the last program has done its work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RestartKind {
    /// Programs that are done.
    #[default]
    Programs,
    /// Threads that are done before their siblings, too.
    Threads,
}

/// An experiment: cases under policies, several runs each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExperimentSpec {
    /// Kind of experiment: `simulate`, or one that comes with Consort.
    #[serde(default)]
    pub kind: Option<String>,
    /// The machine: a preset, with its options, or a file.
    pub machine: String,
    /// The policies, in the order of rows: `POLICY`, `POLICY on SYSTEM`, `POLICY every N ms`.
    #[serde(default)]
    pub policies: Vec<String>,
    /// The operating system beneath policies that name none; `linux` where none is named.
    #[serde(default)]
    pub system: Option<String>,
    /// Place in which a program's work is measured alone.
    #[serde(default)]
    pub alone: AlonePlace,
    /// Programs or threads that start again.
    #[serde(default)]
    pub again: RestartKind,
    /// True if `pinned` is the mean over all programs that it may give the large core.
    #[serde(default)]
    pub all_assignments: bool,
    /// Time that a program's work takes alone, s.
    #[serde(default)]
    pub alone_s: Option<ScaledValue<f64>>,
    /// Runs of each case and policy; they differ in their seed.
    #[serde(default)]
    pub runs: Option<ScaledValue<usize>>,
    /// The cases.
    #[serde(default)]
    pub cases: Vec<CaseSpec>,
}

/// A case, or several of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CaseSpec {
    /// A workload: `4*hmmer+4*povray`, `canneal@4`, `mix:spec2006/10?seed=7`, or a file.
    #[serde(default)]
    pub workload: Option<String>,
    /// A suite of programs, each of which makes a case for each number of threads.
    #[serde(default)]
    pub suite: Option<String>,
    /// Largest number of programs of the suite, taken evenly over its alphabet.
    #[serde(default)]
    pub most: ScaledLimit,
    /// Threads of each program; of drawn programs the first number.
    #[serde(default)]
    pub threads: Vec<u32>,
    /// True if, in place of threads, there are so many instances of a program, each from another
    /// place in its phases.
    #[serde(default)]
    pub instances: bool,
    /// Number of workloads of different programs of the suite, drawn by the seed.
    #[serde(default)]
    pub drawn: Option<ScaledValue<usize>>,
    /// Programs of a drawn workload.
    #[serde(default)]
    pub size: usize,
    /// The machine, where it is another one.
    #[serde(default)]
    pub machine: Option<String>,
    /// Key of the case; `{program}`, `{threads}`, `{workload}` and labels stand for themselves.
    #[serde(default)]
    pub key: Option<String>,
    /// Labels for groups.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// True if the quick scale leaves it out.
    #[serde(default)]
    pub full_only: bool,
}

impl ExperimentSpec {
    /// Runs of each case and policy: one where the file says nothing.
    pub fn runs(&self, context: &ExperimentContext<'_>) -> usize {
        self.runs.map_or(1, |runs| runs.at_scale(context))
    }

    /// Time of a program's work alone, s: 1 where the file says nothing.
    pub fn alone_s(&self, context: &ExperimentContext<'_>) -> f64 {
        self.alone_s
            .map_or(1.0, |seconds| seconds.at_scale(context))
    }
}
