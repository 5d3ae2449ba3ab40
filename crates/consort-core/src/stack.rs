//! Cycle stacks: a sample's cycles divided by cause, with an open list of causes.

use crate::signal::Tier;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A cycle stack as shares of the thread's cycles.
///
/// The components depend on the source: Intel's top-down has retiring, bad speculation, front end
/// and back end; the estimate from sampled instructions has base, unit, memory and front end.
/// Models and reports accept any list.
#[doc(alias = "CPI stack")]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CycleStack {
    components: Vec<StackComponent>,
}

/// One cause in a [`CycleStack`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StackComponent {
    /// The cause, for example `memory`.
    pub name: Cow<'static, str>,
    /// Share of the thread's cycles, 0 to 1.
    pub share: f64,
}

impl CycleStack {
    /// Returns a stack from the cycles (or any common unit) that each cause took. Negative and
    /// non-finite amounts, which noisy subtraction of counters can leave, count as 0. The shares
    /// sum to 1 unless every amount is 0.
    pub fn from_amounts<N: Into<Cow<'static, str>>>(
        amounts: impl IntoIterator<Item = (N, f64)>,
    ) -> Self {
        let clean = |amount: f64| {
            if amount.is_finite() {
                amount.max(0.0)
            } else {
                0.0
            }
        };
        let mut components: Vec<StackComponent> = amounts
            .into_iter()
            .map(|(name, amount)| StackComponent {
                name: name.into(),
                share: clean(amount),
            })
            .collect();
        let total: f64 = components.iter().map(|c| c.share).sum();
        if total > 0.0 {
            components.iter_mut().for_each(|c| c.share /= total);
        }
        Self { components }
    }

    /// The components in the order of the source.
    pub fn components(&self) -> &[StackComponent] {
        &self.components
    }

    /// The share of one cause; `None` if the source does not have it.
    pub fn share(&self, name: &str) -> Option<f64> {
        let found = self.components.iter().find(|c| c.name == name);
        found.map(|c| c.share)
    }
}

/// Origin of a cycle stack, in the words of the report.
pub fn stack_source(tier: Tier) -> &'static str {
    match tier {
        Tier::Counters => "counters",
        Tier::Sampling => "estimated",
        Tier::Software | Tier::Proc => "none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_sum_to_one() {
        let stack = CycleStack::from_amounts([("base", 30.0), ("memory", 10.0), ("unit", -5.0)]);
        assert_eq!(stack.share("base"), Some(0.75));
        assert_eq!(stack.share("unit"), Some(0.0));
        assert_eq!(stack.share("absent"), None);
    }

    #[test]
    fn an_empty_interval_has_an_empty_stack() {
        let stack = CycleStack::from_amounts([("base", 0.0), ("memory", f64::NAN)]);
        assert!(stack.components().iter().all(|c| c.share == 0.0));
    }
}
