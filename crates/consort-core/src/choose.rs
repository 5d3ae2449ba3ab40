//! The automatic choice of a policy: the best one that the tier can feed.

use crate::policies;
use crate::policy::{PolicyError, PolicyInfo};
use crate::signal::{Offers, Signal};
use crate::topology::Topology;

/// A policy's name and why it was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Name of the policy.
    pub name: &'static str,
    /// The reason, one sentence.
    pub why: String,
}

/// Chooses among the policies that place for throughput, by what the cores share and what the
/// machine can tell.
pub fn choose(topology: &Topology, offers: &Offers) -> Choice {
    let (name, why) = if topology.pus().len() < 2 {
        (
            "none",
            "there is only one PU, so there is nothing to place".to_owned(),
        )
    } else if offers.tier_of(Signal::CpuTime).is_none() {
        ("none", "not even CPU time can be told here".to_owned())
    } else if topology.smt() < 2 {
        (
            "spread",
            "no PUs share a core here, so there is nobody to pair".to_owned(),
        )
    } else {
        choose_with_smt(topology, offers)
    };
    Choice { name, why }
}

fn choose_with_smt(topology: &Topology, offers: &Offers) -> (&'static str, String) {
    let ways = topology.smt();
    match offers.tier_of(Signal::FpUsage) {
        Some(tier) => {
            let why = format!("up to {ways} PUs share a core, and tier {tier} tells FPU usage");
            ("workover", why)
        }
        None => {
            let why = format!("up to {ways} PUs share a core, but no tier here tells FPU usage");
            ("spread", why)
        }
    }
}

/// The registry entry of a requested policy, checked against what the machine offers.
///
/// # Errors
/// Unknown names, and needs that are not met.
pub fn requested(name: &str, offers: &Offers) -> Result<&'static PolicyInfo, PolicyError> {
    let info = policies::find(name)?;
    info.check_fed(offers)?;
    Ok(info)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::Tier;

    fn check(cores: u32, ways: u32, offers: &[(Signal, Tier)], expect: &str) {
        let topology = Topology::uniform(cores, ways).unwrap();
        let offers = offers.iter().copied().collect();
        assert_eq!(choose(&topology, &offers).name, expect);
    }

    #[test]
    fn the_best_policy_that_can_be_fed() {
        let proc = (Signal::CpuTime, Tier::Proc);
        let fp = (Signal::FpUsage, Tier::Sampling);
        check(4, 2, &[proc, fp], "workover");
        check(4, 2, &[proc], "spread");
        check(4, 1, &[proc, fp], "spread");
        check(1, 1, &[proc, fp], "none");
        check(4, 2, &[], "none");
    }

    #[test]
    fn unmet_needs_name_both_sides() {
        let offers = [(Signal::CpuTime, Tier::Proc)].into_iter().collect();
        let error = requested("workover", &offers).unwrap_err();
        assert_eq!(
            error.to_string(),
            "policy workover needs fp-usage, but this machine offers cpu-time"
        );
    }
}
