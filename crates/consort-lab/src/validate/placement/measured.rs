//! Placements that a real kernel made.

use crate::validate::data::{Data, PLACEMENTS, broken};
use crate::validate::error::ValidateError;
use crate::validate::statistics::Counts;
use serde::Deserialize;

/// The measurement.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Measured {
    kernel: String,
    accelerator: String,
    date: String,
    cores: u32,
    ways: u32,
    #[serde(rename = "placements")]
    pub(super) cases: Vec<Case>,
}

/// So many threads, started in one way, looked at after some time.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Case {
    pub(super) threads: u32,
    /// `threads` of one process or `processes`.
    pub(super) arrival: String,
    pub(super) after_ms: u64,
    pub(super) counts: Counts,
}

/// Layout of the machine that the model runs on.
const LAYOUT: (u32, u32) = (4, 2);

impl Measured {
    pub(super) fn read(data: &Data) -> Result<Self, ValidateError> {
        let measured: Self = data.toml(PLACEMENTS)?;
        if (measured.cores, measured.ways) != LAYOUT {
            let (cores, ways) = (measured.cores, measured.ways);
            let message = format!("{cores} cores x {ways}; 4 cores x 2 are compared");
            return Err(broken(PLACEMENTS, message));
        }
        Ok(measured)
    }

    /// How it was measured, for readers.
    pub(super) fn note(&self) -> String {
        format!(
            "The kernel: Linux {} in a virtual machine of 4 cores x 2 (accelerator {}), {}. \
             Which PU it chooses is the kernel's decision; times inside such a machine mean \
             nothing for real ones. An early look sees a placement that is still being evened out.",
            self.kernel, self.accelerator, self.date
        )
    }
}

impl Case {
    /// For example `8-threads-after-100-ms`.
    pub(super) fn id(&self) -> String {
        format!(
            "{}-{}-after-{}-ms",
            self.threads, self.arrival, self.after_ms
        )
    }
}
