//! Answers to the questions of chapter "Thread mapping", and those that cannot be given.

use super::analysis::Analysis;
use super::{figures, tables};
use crate::study::{StudyError, StudyOutput};
use consort_core::mapping::analysis::SharedResource;
use serde::Serialize;

const ONE_MAPPING: &str = "there is one mapping only";

/// A question with its answer, if it has one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Question {
    /// Key of the table that answers it.
    pub key: &'static str,
    /// The question.
    pub question: &'static str,
    /// True where there is an answer.
    pub answered: bool,
    /// Parts that cannot be told, and why; none where all can.
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
            figures: figures::all_figures(self, runs)?,
            notes: unanswered.collect(),
            runs,
        })
    }

    /// Every question, with the reason that keeps it from an answer.
    pub fn questions(&self) -> Vec<Question> {
        vec![
            self.mapping_question(),
            self.key_resource_question(),
            self.characteristics_question(),
            self.attribution_question(),
            self.importance_question(),
            self.l2mp_question(),
        ]
    }

    fn mapping_question(&self) -> Question {
        let one = self.mappings.len() < 2;
        Question {
            key: "best",
            question: "Which mapping is best?",
            answered: !one,
            reason: one.then(|| "there is one mapping only".to_owned()),
        }
    }

    fn key_resource_question(&self) -> Question {
        let unknown = self.key_resources.iter().filter(|k| k.key.is_none());
        let unknown: Vec<&str> = unknown.map(|k| k.resource.name()).collect();
        let missing = format!("nothing counts {}: {}", unknown.join(", "), self.reason);
        Question {
            key: "key-resources",
            question: "Which resources matter?",
            answered: unknown.len() < self.key_resources.len(),
            reason: (!unknown.is_empty()).then_some(missing),
        }
    }

    fn characteristics_question(&self) -> Question {
        let missing = tables::missing_characteristics(&self.characteristics);
        let all = tables::CHARACTERISTICS.len();
        let text = format!("nothing tells {}: {}", missing.join(", "), self.reason);
        Question {
            key: "characteristics",
            question: "What are the programs like?",
            answered: missing.len() < all && !self.characteristics.is_empty(),
            reason: (!missing.is_empty()).then_some(text),
        }
    }

    fn attribution_question(&self) -> Question {
        let parts = self.importance.values().flat_map(|i| i.parts.keys());
        let by_resource = parts.into_iter().any(|r| *r != SharedResource::Cores);
        let answered = !self.importance.is_empty();
        let text = match answered {
            true => format!("cycles are not divided by resource: {}", self.reason),
            false => format!("cycles or utilisation are not known, or {ONE_MAPPING}"),
        };
        Question {
            key: "attribution",
            question: "What makes a mapping slower, cycles or utilisation, and which resource?",
            answered,
            reason: (!by_resource).then_some(text),
        }
    }

    fn importance_question(&self) -> Question {
        let judged = self.importance.values().any(|i| i.parts.len() > 1);
        let text = format!("stall cycles of resources are not counted: {}", self.reason);
        Question {
            key: "importance",
            question: "Which resource is most important for each program and co-runner?",
            answered: judged,
            reason: (!judged).then_some(text),
        }
    }

    fn l2mp_question(&self) -> Question {
        let rows = &self.table.rows;
        let counted = rows.iter().any(|row| row.usage.memory.is_some());
        let text = match counted {
            true => "it takes three rows of a program that are not all alike".to_owned(),
            false => self.reason.clone(),
        };
        let answered = !self.correlation.is_empty();
        Question {
            key: "l2mp",
            question: "How does L2MP, misses times memory latency, go with executed cycles?",
            answered,
            reason: (!answered).then_some(text),
        }
    }
}
