//! The automatic choice of a policy: the best one that the tier can feed.

use crate::gain::{Gain, has_several_places};
use crate::policies::SHARED_CORES;
use crate::signal::{Signal, SignalOffers};
use crate::topology::Topology;

/// Name that stands for the policy that [`choose_policy`] returns.
pub const AUTO: &str = "auto";

/// A chosen policy, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AutoPolicyChoice {
    /// Name of the policy.
    pub name: &'static str,
    /// The reason, one sentence.
    pub why: String,
}

/// Chooses among the policies that place for throughput, by what the cores share and which signals
/// the machine offers. `model` names an interference model that
/// [fits](crate::model::InterferenceModel::check_fit) the machine and its cycle stack, if there is
/// one.
pub fn choose_policy(
    topology: &Topology,
    offers: &SignalOffers,
    model: Option<&str>,
) -> AutoPolicyChoice {
    let (name, why) = match Gain::from_topology(topology) {
        Gain::Absent(why) => (
            "none",
            format!("no gain to be expected here: {why}; watching only"),
        ),
        Gain::Possible if offers.tier_of(Signal::CpuTime).is_none() => {
            ("none", "not even CPU time can be measured here".to_owned())
        }
        Gain::Possible if topology.smt() < 2 => (
            "spread",
            "no CPUs share a core here, so there are no pairs to choose".to_owned(),
        ),
        Gain::Possible => choose_with_smt(topology, offers, model),
    };
    let why = match name == "spread" && suits_holistic(topology, offers) {
        true => format!("{why}; {HOLISTIC}"),
        false => why,
    };
    AutoPolicyChoice { name, why }
}

/// Advice for machines on which `holistic` can beat `spread` (docs/concepts/policies/default.md). It
/// is no automatic choice, because its trials of mappings must pay off first.
const HOLISTIC: &str = "--policy holistic can be better for programs that share data or compete for \
                        a cache, and run for more than half a minute";

/// Returns true if `holistic` has something to weigh by its guidelines and the counters to do so.
/// On shared cores whose use is known, it delegates to the policy that is chosen there anyway, and
/// on large and small cores to others.
fn suits_holistic(topology: &Topology, offers: &SignalOffers) -> bool {
    let counted = [Signal::Instructions, Signal::LlcMisses];
    counted.iter().all(|&s| offers.tier_of(s).is_some())
        && topology.core_types().len() < 2
        && has_several_places(topology)
}

fn choose_with_smt(
    topology: &Topology,
    offers: &SignalOffers,
    model: Option<&str>,
) -> (&'static str, String) {
    let ways = topology.smt();
    let shared = format!("up to {ways} CPUs share a core");
    let fed = SHARED_CORES.iter().find_map(|promise| {
        let how = describe_signal_source(promise.policy, offers, model)?;
        Some((promise.policy, format!("{shared}, {how}")))
    });
    fed.unwrap_or_else(|| {
        let why = format!("{shared}, but no tier here measures FPU usage");
        ("spread", why)
    })
}

/// Source of the signals that a policy for shared cores needs; `None` if one is missing.
fn describe_signal_source(
    policy: &str,
    offers: &SignalOffers,
    model: Option<&str>,
) -> Option<String> {
    let tier = |signal| offers.tier_of(signal);
    match policy {
        "symbiotic" => tier(Signal::CycleStack).zip(model).map(|(tier, model)| {
            format!("tier {tier} measures cycle stacks, and model {model} fits both")
        }),
        "workover" => {
            tier(Signal::FpUsage).map(|tier| format!("and tier {tier} measures FPU usage"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::PuId;
    use crate::signal::Tier;
    use crate::topology::{CoreType, PuFacts};

    fn check(cores: u32, ways: u32, offers: &[(Signal, Tier)], expect: &str) {
        let topology = Topology::uniform(cores, ways).unwrap();
        let offers = offers.iter().copied().collect();
        assert_eq!(choose_policy(&topology, &offers, None).name, expect);
    }

    #[test]
    fn symbiotic_needs_smt_a_stack_and_a_model() {
        let fp = (Signal::FpUsage, Tier::Sampling);
        let stack = (Signal::CycleStack, Tier::Sampling);
        let name = |ways, offers: &[(Signal, Tier)], model| {
            let topology = Topology::uniform(4, ways).unwrap();
            let cpu = (Signal::CpuTime, Tier::Proc);
            let offers = offers.iter().copied().chain([cpu]).collect();
            choose_policy(&topology, &offers, model).name
        };
        assert_eq!(name(2, &[fp, stack], Some("m.toml")), "symbiotic");
        assert_eq!(name(2, &[fp, stack], None), "workover");
        assert_eq!(name(2, &[fp], Some("m.toml")), "workover");
        assert_eq!(name(1, &[fp, stack], Some("m.toml")), "none");
    }

    #[test]
    fn every_policy_for_shared_cores_can_be_chosen() {
        let signals = [Signal::CycleStack, Signal::FpUsage];
        let offers: SignalOffers = signals.iter().map(|&s| (s, Tier::Sampling)).collect();
        for promise in SHARED_CORES {
            assert!(describe_signal_source(promise.policy, &offers, Some("m.toml")).is_some());
            assert_eq!(
                describe_signal_source(promise.policy, &SignalOffers::default(), Some("m.toml")),
                None
            );
        }
    }

    #[test]
    fn the_best_policy_that_can_be_fed() {
        let proc = (Signal::CpuTime, Tier::Proc);
        let fp = (Signal::FpUsage, Tier::Sampling);
        check(4, 2, &[proc, fp], "workover");
        check(4, 2, &[proc], "spread");
        check(4, 1, &[proc, fp], "none");
        check(1, 1, &[proc, fp], "none");
        check(4, 2, &[], "none");
    }

    /// Reason on four cores of one way, with groups of these sizes that share an L2 and an LLC.
    fn reason(ways: u32, l2: u32, llc: u32, counted: &[Signal]) -> String {
        let facts = (0..4 * ways).map(|pu| {
            let core = pu / ways;
            PuFacts {
                pu: PuId(pu),
                package: 0,
                node: 0,
                core,
                llc: core / llc,
                l2: Some(core / l2),
                core_type: 0,
            }
        });
        let topology = Topology::new(facts.collect(), vec![CoreType::uniform()]).unwrap();
        let counted = counted.iter().map(|&signal| (signal, Tier::Counters));
        let offers = counted.chain([(Signal::CpuTime, Tier::Proc)]).collect();
        choose_policy(&topology, &offers, None).why
    }

    #[test]
    fn machine_without_gain_is_only_watched() {
        assert_eq!(
            reason(1, 1, 4, &[]),
            "no gain to be expected here: every CPU is a core of its own, all are alike, and all \
             share one cache; watching only"
        );
        assert!(reason(1, 1, 2, &[]).starts_with("no CPUs share a core here"));
    }

    #[test]
    fn counted_machine_with_several_caches_suggests_holistic() {
        let counted = [Signal::Instructions, Signal::LlcMisses];
        let named = |ways, l2, llc, counted: &[Signal]| {
            reason(ways, l2, llc, counted).contains("--policy holistic")
        };
        assert!(named(1, 2, 4, &counted), "pairs of cores share an L2");
        assert!(named(1, 1, 2, &counted), "two LLC domains");
        assert!(named(2, 1, 2, &counted), "SMT, but FPU usage is not told");
        assert!(!named(1, 1, 4, &counted), "all share the LLC alike");
        assert!(!named(1, 4, 4, &counted), "all share the L2 alike");
        assert!(!named(1, 1, 2, &counted[..1]), "misses are not counted");
    }

    #[test]
    fn shared_cores_do_not_suggest_holistic() {
        let counted = [Signal::Instructions, Signal::LlcMisses, Signal::FpUsage];
        let why = reason(2, 1, 2, &counted);
        assert_eq!(
            why,
            "up to 2 CPUs share a core, and tier counters measures FPU usage"
        );
    }
}
