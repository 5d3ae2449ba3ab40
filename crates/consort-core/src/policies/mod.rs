//! The policies and their registry.
//!
//! To add one: write its file with a `pub(crate) const INFO: PolicyInfo`, and add a line to
//! [`REGISTRY`].

mod asymmetric;
mod baselines;
mod coscheduling;
pub mod grouping;
mod holistic;
mod l1_bandwidth;
mod mapping;
mod occupancy;
mod random;
mod sampling;
mod spread;
mod symbiotic;

pub(crate) use holistic::SHARED_CORES;

pub use coscheduling::{divide_cores, fixed_slot_policy};
pub use symbiotic::{CORE_DISADVANTAGE, SlowdownObjective};

use crate::policy::{
    POLICY_ALIASES, PolicyError, PolicyInfo, PolicyOptions, PolicyResult, PolicySpec,
    check_signals, published_name,
};
use crate::signal::SignalOffers;
use crate::text::hint;
use crate::topology::Topology;
use asymmetric::{round_robin, score_policies};

/// Every policy, in the order in which they are listed.
#[doc(alias = "WorkOver")]
#[doc(alias = "symbiotic job scheduling")]
#[doc(alias = "HRRS")]
#[doc(alias = "KUTHS")]
#[doc(alias = "TCS")]
#[doc(alias = "BIS")]
#[doc(alias = "UBA")]
#[doc(alias = "fairness-aware scheduler")]
#[doc(alias = "performance impact estimation")]
#[doc(alias = "HOLISYN")]
#[doc(alias = "PDPA")]
#[doc(alias = "SOS")]
pub const REGISTRY: &[PolicyInfo] = &[
    occupancy::WORKOVER,
    occupancy::AGGREGATE,
    symbiotic::INFO,
    l1_bandwidth::INFO,
    sampling::INFO,
    round_robin::HRRS,
    round_robin::KUTHS,
    asymmetric::tcs::INFO,
    asymmetric::criticality::INFO,
    asymmetric::bottleneck::INFO,
    asymmetric::utility::INFO,
    score_policies::FAIR_TIME,
    score_policies::FAIR_PROGRESS,
    score_policies::PIE,
    score_policies::MEM_DOMINANCE,
    score_policies::MLP_RATIO,
    holistic::INFO,
    mapping::INFO,
    coscheduling::GANG,
    coscheduling::FAIR_MIS,
    coscheduling::FAIR_COM,
    coscheduling::GREEDY,
    coscheduling::PDPA,
    spread::INFO,
    random::INFO,
    baselines::PINNED,
    baselines::NONE,
];

/// Finds a policy by its published or plain name.
///
/// # Errors
/// [`PolicyError::Unknown`] with the nearest name.
pub fn find(name: &str) -> Result<&'static PolicyInfo, PolicyError> {
    let published = published_name(name);
    let found = REGISTRY.iter().find(|info| info.name == published);
    found.ok_or_else(|| {
        let plain = POLICY_ALIASES.iter().map(|(alias, _)| *alias);
        PolicyError::Unknown {
            name: name.to_owned(),
            hint: hint(name, REGISTRY.iter().map(|info| info.name).chain(plain)),
        }
    })
}

/// Opens the policy of a specification on a machine.
///
/// # Errors
/// Unknown names; signals that the machine does not offer; unknown options or values;
/// [`PolicyError::Unfit`] if the policy would be useless.
pub fn open(topology: &Topology, offers: &SignalOffers, spec: &PolicySpec) -> PolicyResult {
    let info = find(&spec.name)?;
    check_signals(info.name, info.needs, offers)?;
    (info.open)(topology, offers, &PolicyOptions::new(info, spec)?)
}

/// Checks a specification if there is no machine yet.
///
/// # Errors
/// Unknown names, options or values.
pub fn check(spec: &PolicySpec) -> Result<&'static PolicyInfo, PolicyError> {
    let info = find(&spec.name)?;
    let options = PolicyOptions::new(info, spec)?;
    // Policies read their options before they look at the machine, so any machine does.
    let any = Topology::uniform(1, 1);
    match any.map(|any| (info.open)(&any, &SignalOffers::default(), &options)) {
        Ok(Err(error)) if !matches!(error, PolicyError::Unfit { .. }) => Err(error),
        _ => Ok(info),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::{Signal, Tier};

    fn error(text: &str) -> String {
        check(&text.parse().unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn every_default_is_valid() {
        for info in REGISTRY {
            check(&info.name.parse().unwrap()).unwrap();
            for option in info.options {
                let text = format!("{}:{}={}", info.name, option.name, option.default);
                check(&text.parse().unwrap()).unwrap();
            }
        }
    }

    #[test]
    fn plain_names_lead_to_published_policies() {
        for (alias, published) in POLICY_ALIASES {
            assert_eq!(find(alias).unwrap().name, published);
            let spec: PolicySpec = format!(" {alias} ").parse().unwrap();
            assert_eq!(spec.name, published);
            assert!(REGISTRY.iter().all(|info| info.name != alias));
        }
        assert!(error("pair-fpuu").contains("did you mean 'pair-fpu'"));
        assert!(error("pair-fpu:x=1").contains("policy workover has no option 'x'"));
    }

    #[test]
    fn option_values_are_checked_without_a_machine() {
        for info in REGISTRY {
            for option in info.options {
                error(&format!("{}:{}=?", info.name, option.name));
            }
        }
    }

    #[test]
    fn unmet_needs_name_both_sides() {
        let offers = [(Signal::CpuTime, Tier::Proc)].into_iter().collect();
        let (topology, spec) = (Topology::uniform(1, 1).unwrap(), "workover".parse());
        let error = open(&topology, &offers, &spec.unwrap()).err().unwrap();
        let expected = "policy workover needs fp-usage, but this machine offers cpu-time";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn errors_name_what_would_be_right() {
        assert_eq!(
            error("workovr"),
            "unknown policy 'workovr'; did you mean 'workover'?"
        );
        assert_eq!(
            error("fastest"),
            "unknown policy 'fastest'; known: workover, aggregate, symbiotic, l1-bandwidth, sampling, hrrs, kuths, tcs, criticality, bottleneck, utility, fair-time, fair-progress, pie, mem-dominance, mlp-ratio, holistic, mapping, gang, fair-mis, fair-com, greedy, pdpa, spread, random, pinned, none, pair-fpu, pair-model, round-robin, syscall-return"
        );
        assert_eq!(
            error("none:x=1"),
            "policy none has no option 'x'; it has none"
        );
        assert_eq!(
            error("workover:margin=2"),
            "option margin=2 of policy workover: expected a number from 0 to 1"
        );
    }
}
