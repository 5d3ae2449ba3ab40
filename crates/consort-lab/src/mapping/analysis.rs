//! Measurements of programs under mappings, and what follows from them.

use consort_core::mapping::analysis::{
    AloneCharacteristics, CoRunnerPair, Importance, KeyResource, MappingTable, Thresholds,
    importance, key_resources, memory_correlation,
};
use std::collections::BTreeMap;

/// Measurements of programs under mappings, and the answers that follow.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// Mappings in the order asked for; times refer to the first.
    pub mappings: Vec<String>,
    /// Measurements, a row per program, co-runner and mapping.
    pub table: MappingTable,
    /// Characteristics of programs alone, by name.
    pub characteristics: Vec<(String, AloneCharacteristics)>,
    /// Reason for which some counts are absent.
    pub reason: String,
    /// Verdict on each resource.
    pub key_resources: Vec<KeyResource>,
    /// Resources that decide for each program beside each co-runner, between its best mapping and
    /// the first.
    pub importance: BTreeMap<CoRunnerPair, Importance>,
    /// Correlation of L2MP with cycles, by program.
    pub correlation: BTreeMap<String, f64>,
}

impl Analysis {
    /// Works everything out; `reason` is that for which counts are absent in the table and the
    /// characteristics.
    pub fn new(
        mappings: Vec<String>,
        table: MappingTable,
        characteristics: Vec<(String, AloneCharacteristics)>,
        thresholds: &Thresholds,
        reason: &str,
    ) -> Self {
        Self {
            key_resources: key_resources(&table, thresholds),
            importance: importance(&table, base_mapping(&mappings), thresholds),
            correlation: memory_correlation(&table),
            mappings,
            table,
            characteristics,
            reason: reason.to_owned(),
        }
    }
}

/// The mapping that others are compared with.
fn base_mapping(mappings: &[String]) -> &str {
    mappings.first().map_or("", String::as_str)
}
