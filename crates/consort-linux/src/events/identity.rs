//! What a PU says of its microarchitecture, as far as event files ask.

use super::schema::MatchRule;
use serde::{Deserialize, Serialize};

/// A microarchitecture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "architecture", rename_all = "lowercase")]
pub enum Identity {
    /// `CPUID` leaf 1, as `/proc/cpuinfo` shows it.
    X86 {
        /// `vendor_id`.
        vendor: String,
        /// `cpu family`.
        family: u32,
        /// `model`.
        model: u32,
    },
    /// The fields of Arm's `MIDR_EL1`.
    Arm {
        /// `CPU implementer`.
        implementer: u32,
        /// `CPU part`.
        part: u32,
    },
    /// The first word of POWER's `cpu` line.
    Power {
        /// For example `POWER9`.
        name: String,
    },
    /// Nothing known was told.
    Unknown,
}

impl MatchRule {
    /// Whether a CPU of that identity is meant.
    pub fn fits(&self, identity: &Identity) -> bool {
        match (self, identity) {
            (
                Self::X86 {
                    vendor,
                    family,
                    models,
                },
                Identity::X86 {
                    vendor: v,
                    family: f,
                    model,
                },
            ) => {
                let inside = |[first, last]: &[u32; 2]| (first..=last).contains(&model);
                vendor == v && family == f && models.iter().any(inside)
            }
            (
                Self::Arm { implementer, part },
                Identity::Arm {
                    implementer: i,
                    part: p,
                },
            ) => implementer == i && part == p,
            (Self::Power { name }, Identity::Power { name: n }) => name == n,
            _ => false,
        }
    }
}
