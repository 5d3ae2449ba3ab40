//! The guidelines of the source, each a rule with a price.
//!
//! A rule tells the cycles per second that a mapping costs a program by the resource that the
//! guideline is about. It is priced for the programs of which all that it needs is known; what is
//! not known costs nothing, and the plan's report says which rules are blind.

mod bandwidth;
mod cache_demand;
mod data_sharing;
mod input_output;
mod level_one;
mod predictor;
mod prefetcher;
mod synchronisation;
#[cfg(test)]
pub(super) mod tests;
mod utilisation;

use super::characteristics::{Characteristic, ProgramCharacteristics};
use super::shape::{MachinePart, MappingShape, ProgramShare};

/// A guideline.
pub(super) struct PricingRule {
    /// The resource.
    pub(super) name: &'static str,
    /// The guideline as a sentence.
    pub(super) sentence: &'static str,
    /// Basis of the price, in words.
    pub(super) basis: &'static str,
    /// Characteristics of a program without which the rule is blind.
    pub(super) needs: &'static [Characteristic],
    /// Cycles per s that a program, given by its group, loses.
    pub(super) cost: fn(&PricingCase<'_>, usize) -> f64,
}

/// All rules.
pub(super) const RULES: [&PricingRule; 9] = [
    &data_sharing::RULE,
    &cache_demand::RULE,
    &prefetcher::RULE,
    &bandwidth::RULE,
    &level_one::RULE,
    &predictor::RULE,
    &synchronisation::RULE,
    &input_output::RULE,
    &utilisation::RULE,
];

/// A mapping to be priced, with the programs.
pub(super) struct PricingCase<'a> {
    /// Characteristics by group.
    known: &'a [ProgramCharacteristics],
    /// The mapping in question.
    shape: &'a MappingShape,
    /// The mapping under which the characteristics were seen.
    now: &'a MappingShape,
    totals: PricingTotals,
}

/// Sums over all programs, taken once for all of them.
struct PricingTotals {
    /// LLC accesses per s by LLC domain, under the mapping in question and under that of now.
    accesses: Vec<f64>,
    accesses_now: Vec<f64>,
    /// Demand on each node's memory path, as a share of it.
    paths: Vec<f64>,
    /// Threads that wait for a PU.
    waiting: f64,
    /// Probability that no PU is free, each being taken or not by itself, 0 to 1.
    all_taken: f64,
}

impl<'a> PricingCase<'a> {
    pub(super) fn new(
        known: &'a [ProgramCharacteristics],
        shape: &'a MappingShape,
        now: &'a MappingShape,
    ) -> Self {
        let sums = |parts: &[MachinePart], what| -> Vec<f64> {
            let of = |s: &ProgramShare| known[s.group].or_zero(what) * s.running;
            let sum = |part: &MachinePart| part.shares.iter().map(of).sum();
            parts.iter().map(sum).collect()
        };
        let totals = PricingTotals {
            accesses: sums(&shape.domains, Characteristic::LlcAccesses),
            accesses_now: sums(&now.domains, Characteristic::LlcAccesses),
            paths: sums(&shape.nodes, Characteristic::Path),
            waiting: shape.groups.iter().map(|m| m.threads - m.running).sum(),
            all_taken: all_taken_probability(shape),
        };
        Self {
            known,
            shape,
            now,
            totals,
        }
    }
}

fn all_taken_probability(shape: &MappingShape) -> f64 {
    let running: f64 = shape.groups.iter().map(|m| m.running).sum();
    let pus = shape.pus.max(1);
    let each = (running / pus as f64).min(1.0);
    (0..pus).map(|_| each).product()
}

impl PricingRule {
    /// Returns true where the rule can be priced for a program.
    pub(super) fn can_price(&self, known: &ProgramCharacteristics) -> bool {
        self.needs.iter().all(|&what| known.get(what).is_some())
    }

    /// Cycles per s that all programs lose, as far as they can be priced; none where none can.
    pub(super) fn price(&self, case: &PricingCase<'_>) -> Option<f64> {
        let groups = (0..case.known.len()).filter(|&g| self.can_price(&case.known[g]));
        let prices = groups.map(|group| (self.cost)(case, group).max(0.0));
        prices.reduce(|a, b| a + b)
    }
}

/// Cost of a mapping, by rule.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MappingCost {
    /// Cycles per s, in the order of [`RULES`]; none where a rule is blind.
    pub(super) prices: [Option<f64>; RULES.len()],
}

impl MappingCost {
    pub(super) fn from_case(case: &PricingCase<'_>) -> Self {
        Self {
            prices: RULES.map(|rule| rule.price(case)),
        }
    }

    /// Sum of the prices, cycles per s.
    pub(super) fn total(&self) -> f64 {
        self.prices.iter().flatten().sum()
    }

    /// The rules that are priced, with their prices.
    pub(super) fn items(&self) -> impl Iterator<Item = (&'static PricingRule, f64)> + '_ {
        let pairs = RULES.into_iter().zip(&self.prices);
        pairs.filter_map(|(rule, price)| Some((rule, (*price)?)))
    }
}

/// Rules that tell the cost of holding a program to its PUs rather than leaving it free, cycles per
/// s.
const OF_HOLDING: [&PricingRule; 2] = [&synchronisation::RULE, &input_output::RULE];

/// Cycles per s that a program loses by the mapping's hold on it, be it pinned or free.
pub(super) fn pinning_cost(case: &PricingCase<'_>, group: usize) -> f64 {
    let rules = OF_HOLDING.iter();
    let rules = rules.filter(|rule| rule.can_price(&case.known[group]));
    rules.map(|rule| (rule.cost)(case, group)).sum()
}

/// Returns true where the resources that programs on different cores share can be priced for all of
/// them, so that the sum of prices is a prediction.
pub(super) fn can_predict(known: &[ProgramCharacteristics]) -> bool {
    let shared = [&bandwidth::RULE, &cache_demand::RULE, &data_sharing::RULE];
    let priced = |rule: &&PricingRule| known.iter().all(|k| rule.can_price(k));
    shared.iter().any(priced)
}

/// Names of the rules that cannot be priced for any program.
pub(super) fn unpriced_rules(known: &[ProgramCharacteristics]) -> Vec<&'static str> {
    let rules = RULES.into_iter();
    let blind = rules.filter(|rule| !known.iter().any(|k| rule.can_price(k)));
    blind.map(|rule| rule.name).collect()
}
