//! Analysis of thread mappings: tables and figures of the resources that decide between them.
//!
//! [`Analysis`] makes them of a table that was simulated ([`consort_experiment::mapping`]) or
//! counted on a live machine.

mod tables;

pub(crate) use tables::variation_cell;

use crate::study::{StudyError, StudyOutput};
use consort_core::mapping::analysis::{
    AloneCharacteristics, CoRunnerPair, Importance, KeyResource, MappingTable, SharedResource,
    Thresholds, importance, key_resources, memory_correlation,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// Measurements of programs under mappings, and the answers that follow.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// Mappings in the order of the request; times refer to the first.
    pub mappings: Vec<String>,
    /// Measurements, a row per program, co-runner and mapping.
    pub table: MappingTable,
    /// Characteristics of programs alone, by name.
    pub characteristics: Vec<(String, AloneCharacteristics)>,
    /// Reason for which some counts are absent.
    pub reason: String,
    /// Verdict on each resource.
    pub key_resources: Vec<KeyResource>,
    /// Resources that decide for each program with each co-runner, between its best mapping and
    /// the first.
    pub importance: BTreeMap<CoRunnerPair, Importance>,
    /// Correlation of L2MP with cycles, by program.
    pub correlation: BTreeMap<String, f64>,
}

impl Analysis {
    /// Derives all answers; `reason` is given for counts that are absent in the table and in the
    /// characteristics.
    pub fn new(
        mappings: Vec<String>,
        table: MappingTable,
        characteristics: Vec<(String, AloneCharacteristics)>,
        thresholds: &Thresholds,
        reason: &str,
    ) -> Self {
        let base = mappings.first().map_or("", String::as_str);
        Self {
            key_resources: key_resources(&table, thresholds),
            importance: importance(&table, base, thresholds),
            correlation: memory_correlation(&table),
            mappings,
            table,
            characteristics,
            reason: reason.to_owned(),
        }
    }
}

const ONE_MAPPING: &str = "there is one mapping only";

/// A question with its answer, if it has one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Question {
    /// Key of the table that answers it.
    pub key: &'static str,
    /// The question.
    pub question: &'static str,
    /// True if there is an answer.
    pub answered: bool,
    /// Parts without an answer, and why; `None` if all have one.
    pub reason: Option<String>,
}

impl Analysis {
    /// Tables, figures and notes; `runs` of each workload under each mapping.
    ///
    /// # Errors
    /// Names that cannot be keys of a table.
    pub fn output(&self, runs: usize) -> Result<StudyOutput, StudyError> {
        let unanswered = self.questions().into_iter().filter_map(|question| {
            let reason = question.reason?;
            let what = if question.answered {
                "in part"
            } else {
                "cannot be answered here"
            };
            Some(format!("{} {what}: {reason}.", question.question))
        });
        Ok(StudyOutput {
            tables: tables::all_tables(self)?,
            figures: tables::all_figures(self, runs)?,
            notes: unanswered.collect(),
            runs,
        })
    }

    /// Every question, with the reason that keeps it from an answer.
    pub fn questions(&self) -> Vec<Question> {
        let mut questions = Vec::new();
        let mut ask = |key, question, answered, reason| {
            questions.push(Question {
                key,
                question,
                answered,
                reason,
            });
        };

        let one = self.mappings.len() < 2;
        let reason = one.then(|| ONE_MAPPING.to_owned());
        ask("best", "Which mapping is best?", !one, reason);

        let unknown = self.key_resources.iter().filter(|k| k.key.is_none());
        let unknown: Vec<&str> = unknown.map(|k| k.resource.name()).collect();
        let reason = format!("nothing counts {}: {}", unknown.join(", "), self.reason);
        ask(
            "key-resources",
            "Which resources matter?",
            unknown.len() < self.key_resources.len(),
            (!unknown.is_empty()).then_some(reason),
        );

        let missing = tables::missing_characteristics(&self.characteristics);
        let reason = format!("nothing tells {}: {}", missing.join(", "), self.reason);
        let some = missing.len() < tables::CHARACTERISTICS.len();
        ask(
            "characteristics",
            "What are the programs like?",
            some && !self.characteristics.is_empty(),
            (!missing.is_empty()).then_some(reason),
        );

        let mut parts = self.importance.values().flat_map(|i| i.parts.keys());
        let by_resource = parts.any(|r| *r != SharedResource::Cores);
        let answered = !self.importance.is_empty();
        let reason = match answered {
            true => format!("cycles are not divided by resource: {}", self.reason),
            false => format!("cycles or utilisation are not known, or {ONE_MAPPING}"),
        };
        ask(
            "attribution",
            "What makes a mapping slower, cycles or utilisation, and which resource?",
            answered,
            (!by_resource).then_some(reason),
        );

        let judged = self.importance.values().any(|i| i.parts.len() > 1);
        let reason = format!("stall cycles of resources are not counted: {}", self.reason);
        ask(
            "importance",
            "Which resource is most important for each program and co-runner?",
            judged,
            (!judged).then_some(reason),
        );

        let mut rows = self.table.rows.iter();
        let reason = match rows.any(|row| row.usage.memory.is_some()) {
            true => "it takes three rows of a program that are not all alike".to_owned(),
            false => self.reason.clone(),
        };
        let answered = !self.correlation.is_empty();
        ask(
            "l2mp",
            "How does L2MP, misses times memory latency, go with executed cycles?",
            answered,
            (!answered).then_some(reason),
        );
        questions
    }
}
