//! Attribution of a program's slowdown between two mappings to cycles, utilisation and resources.
//!
//! Exec_Time = Exec_Cycles/(Cores · Utilisation · Frequency) (Wang et al., ISPASS 2012): with cores
//! and frequency fixed, the logarithm of a ratio of times is that of the ratio of cycles less that
//! of the ratio of utilisations. Stall cycles add up, and their difference over the logarithmic
//! mean of the cycles is their part of the logarithm of the ratio of cycles: the parts sum exactly
//! and do not depend on the direction (Ang, "Decomposition analysis for policymaking in energy",
//! Energy Policy 32, 2004: logarithmic mean Divisia index).

use super::{SharedResource, Usage};
use serde::Serialize;
use std::collections::BTreeMap;

/// A change of time in parts; each is a summand of the natural logarithm of the ratio of times.
#[doc(alias = "Exec_Time")]
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Attribution {
    /// Logarithm of the ratio of times, positive where the second is slower.
    pub time: f64,
    /// Part of executed cycles.
    pub cycles: f64,
    /// Part of utilisation: waits of the program for PUs, siblings, input and output.
    pub utilisation: f64,
    /// Parts of `cycles`, by resource where stall cycles are known.
    pub resources: BTreeMap<SharedResource, f64>,
    /// Part of `cycles` that no resource's stall cycles explain.
    pub other_cycles: f64,
}

/// Splits the change from one mapping to another; none where cycles or utilisation are unknown.
pub fn attribute(from: &Usage, to: &Usage) -> Option<Attribution> {
    let (c, d) = (from.cycles?, to.cycles?);
    let utilisation = -ln_ratio(from.utilisation?, to.utilisation?)?;
    let mean = logarithmic_mean(c, d)?;
    let of = |(resource, amount): (&SharedResource, &super::Amount)| {
        let after = to.amounts.get(resource)?.stall_cycles?;
        Some((*resource, (after - amount.stall_cycles?) / mean))
    };
    let resources: BTreeMap<SharedResource, f64> = from.amounts.iter().filter_map(of).collect();
    let cycles = ln_ratio(c, d)?;
    Some(Attribution {
        time: ln_ratio(from.time_s, to.time_s)?,
        cycles,
        utilisation,
        other_cycles: cycles - resources.values().sum::<f64>(),
        resources,
    })
}

fn ln_ratio(from: f64, to: f64) -> Option<f64> {
    (from > 0.0 && to > 0.0).then(|| libm::log(to / from))
}

/// (b − a)/ln(b/a); a where both are the same.
fn logarithmic_mean(a: f64, b: f64) -> Option<f64> {
    let ln = ln_ratio(a, b)?;
    Some(if ln.abs() < 1e-12 { a } else { (b - a) / ln })
}

#[cfg(test)]
mod tests {
    use super::super::Amount;
    use super::*;
    use proptest::prelude::*;

    fn usage(time_s: f64, cycles: f64, stall: f64) -> Usage {
        let amount = Amount {
            used: 1.0,
            stall_cycles: Some(stall),
        };
        Usage {
            time_s,
            cycles: Some(cycles),
            // Four cores of 1 Hz.
            utilisation: Some(cycles / (4.0 * time_s)),
            amounts: BTreeMap::from([(SharedResource::L2, amount)]),
            memory: None,
        }
    }

    /// By hand: 8 cycles in 4 s on four cores of 1 Hz are a utilisation of 0.5; 12 in 4 s of 0.75.
    /// The time is the same: half as many cycles more, and as much better utilisation.
    #[test]
    fn cycles_and_utilisation_can_cancel() {
        let parts = attribute(&usage(4.0, 8.0, 2.0), &usage(4.0, 12.0, 6.0)).unwrap();
        assert_eq!(parts.time, 0.0);
        assert!((parts.cycles - libm::log(1.5)).abs() < 1e-12);
        assert!((parts.utilisation + libm::log(1.5)).abs() < 1e-12);
        // All of the four cycles more are stalls for the L2.
        assert!((parts.resources[&SharedResource::L2] - parts.cycles).abs() < 1e-12);
        assert!(parts.other_cycles.abs() < 1e-12);
    }

    #[test]
    fn without_cycles_there_is_no_attribution() {
        let blind = Usage {
            cycles: None,
            ..usage(4.0, 8.0, 2.0)
        };
        assert_eq!(attribute(&blind, &usage(4.0, 8.0, 2.0)), None);
    }

    proptest! {
        #[test]
        fn parts_sum_and_change_their_sign_with_the_direction(
            t in 0.1f64..10.0, u in 0.1f64..10.0,
            c in 1.0f64..100.0, d in 1.0f64..100.0, s in 0.0f64..1.0, r in 0.0f64..1.0,
        ) {
            let (a, b) = (usage(t, c, s * c), usage(u, d, r * d));
            let (there, back) = (attribute(&a, &b).unwrap(), attribute(&b, &a).unwrap());
            prop_assert!((there.cycles + there.utilisation - there.time).abs() < 1e-9);
            let inside: f64 = there.resources.values().sum::<f64>() + there.other_cycles;
            prop_assert!((inside - there.cycles).abs() < 1e-9);
            prop_assert!((there.resources[&SharedResource::L2] + back.resources[&SharedResource::L2]).abs() < 1e-9);
        }
    }
}
