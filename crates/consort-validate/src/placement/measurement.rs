//! Placements that a real kernel made.

use crate::data::{PLACEMENTS, PublishedData, data_error};
use crate::error::ValidateError;
use crate::statistics::ClassCounts;
use serde::Deserialize;

/// The measurement.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct PlacementMeasurement {
    kernel: String,
    accelerator: String,
    date: String,
    cores: u32,
    ways: u32,
    #[serde(rename = "placements")]
    pub(super) cases: Vec<PlacementCase>,
    #[serde(default)]
    pub(super) ends: Vec<SurvivorCase>,
}

/// As many processes as PUs of which a random half ends; the others are looked at.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct SurvivorCase {
    cores: u32,
    pub(super) ways: u32,
    pub(super) started: u32,
    pub(super) looks: Vec<SurvivorSnapshot>,
}

/// Places of the survivors after some time.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct SurvivorSnapshot {
    pub(super) after_ms: u64,
    pub(super) counts: ClassCounts,
}

/// So many threads, started in one way, looked at after some time.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct PlacementCase {
    pub(super) threads: u32,
    /// `threads` of one process or `processes`.
    pub(super) arrival: String,
    pub(super) after_ms: u64,
    pub(super) counts: ClassCounts,
}

/// Layout of the machine that the model runs on.
const LAYOUT: (u32, u32) = (4, 2);

impl PlacementMeasurement {
    pub(super) fn read(data: &PublishedData) -> Result<Self, ValidateError> {
        let measured: Self = data.parse_toml(PLACEMENTS)?;
        if (measured.cores, measured.ways) != LAYOUT {
            let (cores, ways) = (measured.cores, measured.ways);
            let message = format!("{cores} cores x {ways}; 4 cores x 2 are compared");
            return Err(data_error(PLACEMENTS, message));
        }
        measured
            .ends
            .iter()
            .try_for_each(SurvivorCase::check_layout)?;
        Ok(measured)
    }

    /// Note for readers on how it was measured.
    pub(super) fn note(&self) -> String {
        format!(
            "The kernel: Linux {} in a virtual machine of 4 cores x 2 (accelerator {}), {}. \
             Which PU it chooses is the kernel's decision; times inside such a machine mean \
             nothing for real ones. An early look sees a placement that is still being evened out.",
            self.kernel, self.accelerator, self.date
        )
    }
}

impl SurvivorCase {
    fn check_layout(&self) -> Result<(), ValidateError> {
        if (self.cores, self.started) == (LAYOUT.0, self.cores * self.ways) {
            return Ok(());
        }
        let (started, cores, ways) = (self.started, self.cores, self.ways);
        let message = format!(
            "ends of {started} processes on {cores} cores x {ways}; 4 cores and a process per PU \
             are compared"
        );
        Err(data_error(PLACEMENTS, message))
    }

    /// For example `4-x-2-64-ms-after-ends`.
    pub(super) fn id(&self, moment: &SurvivorSnapshot) -> String {
        format!(
            "{}-x-{}-{}-ms-after-ends",
            self.cores, self.ways, moment.after_ms
        )
    }
}

impl PlacementCase {
    /// For example `8-threads-after-100-ms`.
    pub(super) fn id(&self) -> String {
        format!(
            "{}-{}-after-{}-ms",
            self.threads, self.arrival, self.after_ms
        )
    }
}
