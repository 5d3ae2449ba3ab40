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
/// machine can tell. `model` names an interference model that [fits](crate::model::Model::fits)
/// the machine and its cycle stack, where there is one.
pub fn choose(topology: &Topology, offers: &Offers, model: Option<&str>) -> Choice {
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
        choose_with_smt(topology, offers, model)
    };
    Choice { name, why }
}

fn choose_with_smt(
    topology: &Topology,
    offers: &Offers,
    model: Option<&str>,
) -> (&'static str, String) {
    let ways = topology.smt();
    let shared = format!("up to {ways} PUs share a core");
    if let Some((tier, model)) = offers.tier_of(Signal::CycleStack).zip(model) {
        let why = format!("{shared}, tier {tier} tells cycle stacks, and model {model} fits both");
        return ("symbiotic", why);
    }
    match offers.tier_of(Signal::FpUsage) {
        Some(tier) => (
            "workover",
            format!("{shared}, and tier {tier} tells FPU usage"),
        ),
        None => (
            "spread",
            format!("{shared}, but no tier here tells FPU usage"),
        ),
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
        assert_eq!(choose(&topology, &offers, None).name, expect);
    }

    #[test]
    fn symbiotic_needs_smt_a_stack_and_a_model() {
        let fp = (Signal::FpUsage, Tier::Sampling);
        let stack = (Signal::CycleStack, Tier::Sampling);
        let name = |ways, offers: &[(Signal, Tier)], model| {
            let topology = Topology::uniform(4, ways).unwrap();
            let cpu = (Signal::CpuTime, Tier::Proc);
            let offers = offers.iter().copied().chain([cpu]).collect();
            choose(&topology, &offers, model).name
        };
        assert_eq!(name(2, &[fp, stack], Some("m.toml")), "symbiotic");
        assert_eq!(name(2, &[fp, stack], None), "workover");
        assert_eq!(name(2, &[fp], Some("m.toml")), "workover");
        assert_eq!(name(1, &[fp, stack], Some("m.toml")), "spread");
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
