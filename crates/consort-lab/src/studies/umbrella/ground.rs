//! The grounds on which single-purpose policies were proposed. To add one takes an entry in
//! `studies/grounds/umbrella.toml`.

use super::super::load::ProgramLoad;
use crate::simulate::part_error;
use crate::study::StudyError;
use serde::Deserialize;

/// A machine, a workload, and the policies that were proposed for such.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UmbrellaCase {
    /// Key of its rows.
    pub key: String,
    /// Description in a few words.
    pub title: String,
    /// The machine, for example `power7:smt=2`.
    pub machine: String,
    /// Programs that run.
    pub load: Vec<ProgramLoad>,
    /// True where serial sections come in frames: see [`consort_experiment::slots::cut_into_frames`].
    pub framed: bool,
    /// The system's own scheduler first, then the policies.
    pub policies: Vec<String>,
    /// Aim of the source.
    pub aim: SourceAim,
    /// Time of a program's work alone, s, at the quick and the full scale.
    pub alone_s: [f64; 2],
    /// Runs of each policy, at the quick and the full scale; without runs it is left out.
    pub runs: [usize; 2],
}

/// Aim of a ground's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum SourceAim {
    /// System throughput.
    Throughput,
    /// Time until all programs are done.
    Makespan,
}

impl SourceAim {
    /// The measure that is larger where a run is better.
    pub fn measure(self) -> &'static str {
        match self {
            Self::Throughput => "stp",
            Self::Makespan => "speed_hz",
        }
    }

    /// The umbrella policy, asked for this.
    pub fn umbrella(self) -> &'static str {
        match self {
            Self::Throughput => "holistic",
            Self::Makespan => "holistic:objective=fairness",
        }
    }

    /// Name of the aim.
    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Makespan => "speed until all are done",
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UmbrellaCaseFile {
    ground: Vec<UmbrellaCase>,
}

/// The grounds, in the order of rows.
///
/// # Errors
/// A file that is none; the tests rule that out.
pub(super) fn grounds() -> Result<Vec<UmbrellaCase>, StudyError> {
    let text = include_str!("../../../studies/grounds/umbrella.toml");
    let file: UmbrellaCaseFile = toml::from_str(text).map_err(part_error("grounds"))?;
    Ok(file.ground)
}
