//! The rules by which an event file is chosen for a CPU.

use super::schema::MatchRule;
use crate::topology::CpuIdentity;

impl MatchRule {
    /// Returns true if the rule is for a CPU of this identity.
    pub fn fits(&self, identity: &CpuIdentity) -> bool {
        match (self, identity) {
            (
                Self::X86 {
                    vendor,
                    family,
                    models,
                },
                CpuIdentity::X86 {
                    vendor: v,
                    family: f,
                    model,
                    ..
                },
            ) => {
                let inside = |[first, last]: &[u32; 2]| (first..=last).contains(&model);
                vendor == v && family == f && models.iter().any(inside)
            }
            (
                Self::Arm { implementer, part },
                CpuIdentity::Arm {
                    implementer: i,
                    part: p,
                    ..
                },
            ) => implementer == i && part == p,
            (Self::Power { name }, CpuIdentity::Power { name: n, .. }) => is_variant(n, name),
            _ => false,
        }
    }
}

/// Returns true if a CPU is of a family or a variant of it: `POWER8E` and `POWER7+` are variants of
/// `POWER8` and `POWER7`; `POWER10` is none of `POWER1`.
fn is_variant(name: &str, family: &str) -> bool {
    let rest = name.strip_prefix(family);
    rest.is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_alphabetic() || b == b'+'))
}
