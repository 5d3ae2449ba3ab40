//! Analysis of thread mappings: tables and figures of the resources that decide between them.
//!
//! [`Analysis`] makes them of a table that was simulated ([`consort_experiment::mapping`]) or
//! counted on a live machine.

mod tables;

pub(crate) use tables::variation_cell;

use crate::study::{StudyError, StudyOutput};
use consort_core::mapping::analysis::{
    AloneCharacteristics, CoRunnerPair, Importance, KeyResource, MappingTable, SharedResource,
    Thresholds, attribute, importance, key_resources, memory_correlation,
};
use consort_core::stats::RatioInterval;
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

/// The answer of an analysis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MappingVerdict {
    /// The answer as a sentence.
    pub text: String,
    /// The fastest mapping.
    pub best: String,
    /// The mapping that `effect` is about: the fastest, or the second if the fastest is the first
    /// of the request.
    pub compared: String,
    /// Speed under it over that under the first of the request, the geometric mean over programs;
    /// above 1 it is faster.
    pub effect: f64,
    /// Lower end of the 95 % interval of `effect`; `None` for one run.
    pub low: Option<f64>,
    /// Upper end of the same interval.
    pub high: Option<f64>,
    /// Runs of each mapping.
    pub runs: usize,
    /// Resources that by themselves change the time by the threshold, the largest part first.
    pub decides: Vec<&'static str>,
}

impl Analysis {
    /// The answer by the times of every program, s: by mapping, repetition and program. `None` with
    /// fewer than two mappings that ran.
    pub fn verdict(
        &self,
        times_s: &[Vec<Vec<f64>>],
        thresholds: &Thresholds,
    ) -> Option<MappingVerdict> {
        let (first, base) = (self.mappings.first()?, times_s.first()?);
        let mut speeds: Vec<(&String, RatioInterval)> = Vec::new();
        for (mapping, times) in self.mappings.iter().zip(times_s).skip(1) {
            let runs = base.iter().zip(times);
            let ratio = |(base, times): (&Vec<f64>, &Vec<f64>)| {
                let logs = base
                    .iter()
                    .zip(times)
                    .map(|(base, time)| libm::log(base / time));
                libm::exp(logs.sum::<f64>() / base.len() as f64)
            };
            let ratios: Vec<f64> = runs.map(ratio).collect();
            let is_whole = times.len() == base.len();
            speeds.extend(
                RatioInterval::from_ratios(&ratios)
                    .filter(|_| is_whole)
                    .map(|s| (mapping, s)),
            );
        }
        let fastest = { speeds.into_iter() }.max_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
        let (compared, speed) = fastest?;
        let best = if speed.mean > 1.0 { compared } else { first };
        let is_known = speed.factor95.is_some();
        let decides = self.deciding_resources(compared, first, thresholds);
        Some(MappingVerdict {
            text: verdict_text(compared, first, &speed, &decides),
            best: best.clone(),
            compared: compared.clone(),
            effect: speed.mean,
            low: is_known.then(|| speed.low()),
            high: is_known.then(|| speed.high()),
            runs: speed.n,
            decides,
        })
    }

    /// Resources whose mean part over the programs changes the time by the threshold, whichever way.
    fn deciding_resources(
        &self,
        one: &str,
        other: &str,
        thresholds: &Thresholds,
    ) -> Vec<&'static str> {
        let pairs = self.table.pairs();
        let mut parts: BTreeMap<&'static str, f64> = BTreeMap::new();
        for rows in pairs.values() {
            let usage = |mapping: &str| rows.iter().find(|row| row.mapping == mapping);
            let attribution = usage(one).zip(usage(other));
            let attribution =
                attribution.and_then(|(one, other)| attribute(&one.usage, &other.usage));
            let Some(attribution) = attribution else {
                continue;
            };
            for (resource, part) in attribution.resources {
                *parts.entry(resource.table_name()).or_default() += part;
            }
            let cores = SharedResource::Cores.table_name();
            *parts.entry(cores).or_default() += attribution.utilisation;
        }
        let least = libm::log(1.0 + thresholds.moves) * pairs.len() as f64;
        let mut large: Vec<_> = { parts.into_iter() }
            .filter(|(_, part)| part.abs() >= least)
            .collect();
        large.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
        large.into_iter().map(|(name, _)| name).collect()
    }
}

fn verdict_text(compared: &str, first: &str, speed: &RatioInterval, decides: &[&str]) -> String {
    let percent = |ratio: f64| 100.0 * (ratio - 1.0);
    let (effect, direction) = match percent(speed.mean) {
        slower if slower < 0.0 => (-slower, "slower"),
        faster => (faster, "faster"),
    };
    let difference = format!(
        "{} is {effect:.1} % {direction} than {}",
        describe_mapping(compared),
        describe_mapping(first)
    );
    let is_certain = speed.low() > 1.0 || speed.high() < 1.0;
    let opening = match (is_certain, speed.mean > 1.0) {
        (false, _) => "no difference found: ".to_owned(),
        (true, true) => String::new(),
        (true, false) => format!("{} is fastest: ", describe_mapping(first)),
    };
    let interval = match speed.factor95 {
        Some(_) => {
            let (low, high) = (percent(speed.low()), percent(speed.high()));
            format!(" (95 % interval {low:.1} to {high:.1} %, {} runs)", speed.n)
        }
        None => " (one run, so no interval: --runs 5 gives one)".to_owned(),
    };
    let phrases: Vec<&str> = decides.iter().map(|name| describe_resource(name)).collect();
    let decision = match (is_certain, &phrases[..]) {
        (false, _) => String::new(),
        (true, []) => "; no counted resource decides by itself".to_owned(),
        (true, [one]) => format!("; {one} decides"),
        (true, [most @ .., last]) => format!("; {} and {last} decide", most.join(", ")),
    };
    format!("{opening}{difference}{interval}{decision}.")
}

/// A mapping in words, with its name.
fn describe_mapping(name: &str) -> String {
    match name {
        "os" => "the OS".to_owned(),
        "iso" => "each program on caches of its own (iso)".to_owned(),
        "int" => "each program over all caches, on cores of its own (int)".to_owned(),
        "spr" => "each program over all cores (spr)".to_owned(),
        pus => format!("the mapping {pus}"),
    }
}

fn describe_resource(table_name: &str) -> &str {
    match table_name {
        "lm" => "the memory path (L2, prefetchers, memory)",
        "cores" => "the use of cores",
        "l1d" => "the L1 data cache",
        "l1i" => "the L1 instruction cache",
        "branch-predictor" => "the branch predictor",
        "tlb" => "the TLB",
        other => other,
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
        let reason = format!("nothing measures {}: {}", missing.join(", "), self.reason);
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

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::mapping::analysis::{Amount, MappingRow, Usage};

    /// A program on four cores of 1 Hz, with its cycles and those behind the L2.
    fn row(program: &str, mapping: &str, time_s: f64, cycles: f64, stall: f64) -> MappingRow {
        let amount = Amount {
            used: 1.0,
            stall_cycles: Some(stall),
        };
        MappingRow {
            mapping: mapping.to_owned(),
            program: program.to_owned(),
            co_runner: if program == "a" { "b" } else { "a" }.to_owned(),
            usage: Usage {
                time_s,
                cycles: Some(cycles),
                utilisation: Some(cycles / (4.0 * time_s)),
                amounts: BTreeMap::from([(SharedResource::L2, amount)]),
                memory: None,
            },
        }
    }

    fn verdict(iso_s: &[f64]) -> MappingVerdict {
        // Under iso, both programs have 20 % fewer cycles, all of them behind the L2.
        let rows = ["a", "b"].map(|program| {
            [
                row(program, "os", 10.0, 20.0, 8.0),
                row(program, "iso", 8.0, 16.0, 4.0),
            ]
        });
        let thresholds = Thresholds {
            varies: 0.05,
            moves: 0.05,
        };
        let table = MappingTable {
            rows: rows.into_iter().flatten().collect(),
        };
        let mappings = vec!["os".to_owned(), "iso".to_owned()];
        let analysis = Analysis::new(mappings, table, Vec::new(), &thresholds, "");
        let times = |times: &[f64]| times.iter().map(|time| vec![*time; 2]).collect();
        let os = times(&vec![10.0; iso_s.len()]);
        analysis.verdict(&[os, times(iso_s)], &thresholds).unwrap()
    }

    #[test]
    fn fastest_mapping_is_named_with_effect_and_cause() {
        let one = verdict(&[8.0]);
        assert_eq!((one.best.as_str(), one.low), ("iso", None));
        assert!((one.effect - 1.25).abs() < 1e-12);
        assert_eq!(
            one.text,
            "each program on caches of its own (iso) is 25.0 % faster than the OS (one run, so no \
             interval: --runs 5 gives one); the memory path (L2, prefetchers, memory) decides."
        );
    }

    /// ln 1.25 in each of two runs with the deviations ±ln 1.01; Student's t is 12.706, and the half
    /// width in logarithms 12.706 · ln 1.01.
    #[test]
    fn interval_that_includes_one_is_no_difference() {
        let two = verdict(&[8.0 / 1.01, 8.0 * 1.01]);
        let high = 1.25 * 1.01_f64.powf(12.7062);
        assert!((two.high.unwrap() - high).abs() < 1e-4, "{two:?}");
        assert!(
            two.text.contains("(95 % interval 10.2 to 41.8 %, 2 runs)"),
            "{}",
            two.text
        );
        let two = verdict(&[8.0, 12.0]);
        assert!(
            two.text.starts_with("no difference found: each program"),
            "{}",
            two.text
        );
        let slow = verdict(&[12.5]);
        assert_eq!((slow.best.as_str(), slow.compared.as_str()), ("os", "iso"));
        assert!(slow.text.starts_with(
            "the OS is fastest: each program on caches of its own (iso) is 20.0 % slower"
        ));
    }
}
