//! The guidelines of the source (Wang et al., ISPASS 2012) as a table of rules with prices.
//!
//! The price of a rule is the number of cycles per second that a mapping costs a program by the
//! rule's resource. A rule prices only programs whose characteristics in
//! [`needs`](PricingRule::needs) are known. What is unknown costs nothing, and the report lists the
//! rules that price no program.

#[cfg(test)]
pub(super) mod tests;

use super::characteristics::{Characteristic, ProgramCharacteristics};
use super::shape::{MachinePart, MappingShape};

/// One guideline, with the price that a mapping pays for breaking it.
pub(super) struct PricingRule {
    pub(super) name: &'static str,
    pub(super) sentence: &'static str,
    /// Inputs of the price, in words.
    pub(super) basis: &'static str,
    needs: &'static [Characteristic],
    role: Role,
    /// Cycles per s that a program, given by its group, loses. May be below 0.
    cost: fn(&PricingCase<'_>, usize) -> f64,
}

/// Use of a rule in addition to the total cost.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    /// None.
    TotalOnly,
    /// Programs on different cores share the resource, so its price makes the total a prediction.
    Shared,
    /// The price depends on whether threads are pinned.
    Pinning,
}

/// Time that a thread waits for a taken CPU when it comes back, s: the least time that Linux lets a
/// thread run (3 ms on 8 CPUs).
const WAIT_S: f64 = 0.003;
/// Lines of an L1D: 32 KiB of 64 bytes, as most of the described machines have.
const LINES: f64 = 512.0;
/// Cycles to fetch such a line again from the next cache: the described machines have 8 to 21.
const REFILL_CYCLES: f64 = 14.0;
/// Growth of mispredictions, relative to them, when half of the predictor is a stranger's: 2^0.2 -
/// 1, with the exponent of the described programs.
const GROWTH: f64 = 0.148_698;
/// Time in which the operating system evens out what siblings have had, s: a tick at 250 Hz, after
/// which Linux balances run queues. A program that waits more often goes at the pace of its last
/// thread.
const EVEN_AFTER_S: f64 = 0.004;

/// The rules, in the order in which reports list them and in which prices are added.
pub(super) const RULES: &[PricingRule; 9] = &[
    PricingRule {
        name: "data sharing",
        sentence: "siblings that share data run in one cache domain",
        basis: "misses that were seen to be added when siblings are apart x cycles per miss \
                (L2MP, Wang et al., section IV)",
        needs: &[Characteristic::LlcMisses, Characteristic::Sharing],
        role: Role::Shared,
        cost: |case, group| {
            let known = &case.known[group];
            let sharing = known.or_zero(Characteristic::Sharing);
            let seen = known.or_zero(Characteristic::LlcMisses);
            // Misses grow with the share of pairs of siblings that are apart.
            let together = seen / (1.0 + sharing * case.now.separated_share(group));
            let added = together * sharing * case.shape.separated_share(group);
            case.shape.groups[group].running * added * known.miss_cycles()
        },
    },
    PricingRule {
        name: "cache demand",
        sentence: "strangers with high cache demand and no sharing run in different domains",
        basis: "a cache is divided by accesses, and misses grow with 1/sqrt(capacity) (Hartstein \
                et al., CF 2006) x cycles per miss",
        needs: &[Characteristic::LlcAccesses, Characteristic::LlcMisses],
        role: Role::Shared,
        cost: |case, group| {
            let known = &case.known[group];
            // Misses with all of the largest domain, from those seen with a part of a domain.
            let growth_now =
                1.0 + growth(case, &case.now.domains, &case.totals.accesses_now, group);
            let whole = known.or_zero(Characteristic::LlcMisses) / growth_now;
            let added = whole * growth(case, &case.shape.domains, &case.totals.accesses, group);
            case.shape.groups[group].running * added * known.miss_cycles()
        },
    },
    PricingRule {
        name: "prefetcher",
        sentence: "with high sharing, or low sharing and high excess, siblings share a \
                   prefetcher; with both low whatever reduces misses is right",
        basis: "lines on the memory path that were seen to be added when siblings are apart, or \
                that each of their domains fetches again, x the time that they hold it",
        needs: &[Characteristic::Path, Characteristic::Excess],
        role: Role::TotalOnly,
        cost: |case, group| {
            let known = &case.known[group];
            let excess = known.or_zero(Characteristic::Excess);
            // Each domain has a prefetcher, which fetches its own copy of shared data.
            let again = known.or_zero(Characteristic::Sharing);
            let apart = case.shape.separated_share(group);
            let added = known.or_zero(Characteristic::Path) * excess.max(again) * apart;
            case.shape.groups[group].running * added * known.hz()
        },
    },
    PricingRule {
        name: "bandwidth",
        sentence: "programs of high bandwidth do not run at the same time on one memory path: \
                   next to a heavier co-runner they are spread over time, next to a lighter one \
                   over space",
        basis: "a path that is asked for L times what it has slows all that use it down by L",
        needs: &[Characteristic::Path],
        role: Role::Shared,
        cost: |case, group| {
            let known = &case.known[group];
            let nodes = case.shape.nodes.iter().zip(&case.totals.paths);
            let lost = nodes.filter_map(|(node, &all)| {
                let share = node.find_share(group)?;
                let requested = if case.shape.in_turns {
                    known.or_zero(Characteristic::Path) * share.threads.min(node.pus as f64)
                } else {
                    all
                };
                // A path with a demand of L times its capacity loses 1 - 1/L of the cycles on it.
                Some(share.running * (1.0 - 1.0 / requested.max(1.0)))
            });
            known.hz() * lost.sum::<f64>()
        },
    },
    PricingRule {
        name: "level 1",
        sentence: "threads that find nearly everything in the L1 do not take turns with strangers \
                   on it",
        basis: "an L1 of 512 lines is filled again at 14 cycles a line after a stranger's turn, \
                as far as it is hit",
        needs: &[Characteristic::NearHits, Characteristic::Switches],
        role: Role::TotalOnly,
        cost: |case, group| {
            let (known, occupancy) = (&case.known[group], &case.shape.groups[group]);
            let refills = known.or_zero(Characteristic::Switches) * occupancy.strangers;
            let cycles = LINES * REFILL_CYCLES * known.or_zero(Characteristic::NearHits);
            occupancy.running * (refills * cycles).min(known.hz())
        },
    },
    PricingRule {
        name: "predictor",
        sentence: "siblings share a branch predictor, strangers do not",
        basis: "cycles lost to branches grow by 2^0.2 when the predictor is shared with a stranger",
        needs: &[Characteristic::BranchCycles],
        role: Role::TotalOnly,
        cost: |case, group| {
            let (known, occupancy) = (&case.known[group], &case.shape.groups[group]);
            let lost = known.or_zero(Characteristic::BranchCycles) * known.hz();
            occupancy.running * lost * GROWTH * occupancy.strangers
        },
    },
    PricingRule {
        name: "synchronisation",
        sentence: "siblings that synchronise often are pinned, so that none lags",
        basis: "programs that wait more often than run queues are balanced go at the pace of the \
                sibling with the least of a CPU, and wait while a stranger has one's turn",
        needs: &[Characteristic::Syncs, Characteristic::Lag],
        role: Role::Pinning,
        cost: |case, group| {
            let (known, occupancy) = (&case.known[group], &case.shape.groups[group]);
            let mean = occupancy.running / occupancy.threads.max(1.0);
            let lag = if !occupancy.pinned {
                known.or_zero(Characteristic::Lag)
            } else if mean > 0.0 {
                (mean - occupancy.least) / mean
            } else {
                0.0
            };
            // The chance that no stranger has the CPU of any sibling that one waits for. Turns on
            // different CPUs are independent.
            let off = occupancy.strangers * (1.0 - occupancy.least);
            let others = (occupancy.threads - 1.0).max(0.0);
            let all_on = libm::pow(1.0 - off.clamp(0.0, 1.0), others);
            let late = 1.0 - (1.0 - lag.clamp(0.0, 1.0)) * all_on;
            let often = (known.or_zero(Characteristic::Syncs) * EVEN_AFTER_S).min(1.0);
            occupancy.running * known.hz() * often * late
        },
    },
    PricingRule {
        name: "input and output",
        sentence: "threads with frequent input and output are free to run anywhere",
        basis: "a thread that comes back to a CPU that is taken waits 3 ms; pinned that is its own \
                CPU, free it is only when all are taken",
        needs: &[Characteristic::Inputs],
        role: Role::Pinning,
        cost: |case, group| {
            let (known, occupancy) = (&case.known[group], &case.shape.groups[group]);
            let taken = if occupancy.pinned {
                occupancy.others
            } else {
                case.totals.all_taken
            };
            let waits = known.or_zero(Characteristic::Inputs) * WAIT_S * taken;
            occupancy.running * known.hz() * waits.min(1.0)
        },
    },
    PricingRule {
        name: "utilisation",
        sentence: "no core is without work while a thread waits for another",
        basis: "the cycles of CPUs without a thread, as far as others have several",
        needs: &[],
        role: Role::TotalOnly,
        cost: |case, group| {
            let all = case.totals.waiting;
            if all <= 0.0 {
                return 0.0;
            }
            // A program pays for idle CPUs by its part of all waiting threads.
            let occupancy = &case.shape.groups[group];
            let idle = (case.shape.idle as f64).min(all);
            case.known[group].hz() * idle * (occupancy.threads - occupancy.running) / all
        },
    },
];

/// Growth of a program's misses by smaller domains and by sharing them, relative to its misses
/// alone in the largest domain: the mean over its running threads. A program has the same share of
/// a domain as of the domain's accesses.
fn growth(case: &PricingCase<'_>, domains: &[MachinePart], accesses: &[f64], group: usize) -> f64 {
    let own = case.known[group].or_zero(Characteristic::LlcAccesses);
    let (mut sum, mut all) = (0.0, 0.0);
    for (domain, total) in domains.iter().zip(accesses) {
        let running = domain.find_share(group).map_or(0.0, |s| s.running);
        if own * running > 0.0 {
            sum += running * ((total / (own * running * domain.cache)).sqrt() - 1.0);
            all += running;
        }
    }
    if all > 0.0 { sum / all } else { 0.0 }
}

/// A mapping to be priced, with the programs.
pub(super) struct PricingCase<'a> {
    /// Characteristics by group.
    known: &'a [ProgramCharacteristics],
    shape: &'a MappingShape,
    /// The mapping under which the characteristics were measured.
    now: &'a MappingShape,
    totals: PricingTotals,
}

/// Sums over all programs, computed once per case.
struct PricingTotals {
    /// LLC accesses per s by LLC domain, under the mapping in question and under the present one.
    accesses: Vec<f64>,
    accesses_now: Vec<f64>,
    /// Demand on each node's memory path, as a share of it.
    paths: Vec<f64>,
    /// Threads that wait for a CPU.
    waiting: f64,
    /// Probability that no CPU is free, 0 to 1; CPUs are taken independently.
    all_taken: f64,
}

impl<'a> PricingCase<'a> {
    pub(super) fn new(
        known: &'a [ProgramCharacteristics],
        shape: &'a MappingShape,
        now: &'a MappingShape,
    ) -> Self {
        let sums = |parts: &[MachinePart], what| -> Vec<f64> {
            let demand = |part: &MachinePart| {
                let shares = part.shares.iter();
                shares
                    .map(|s| known[s.group].or_zero(what) * s.running)
                    .sum()
            };
            parts.iter().map(demand).collect()
        };
        let running: f64 = shape.groups.iter().map(|m| m.running).sum();
        let pus = shape.pus.max(1);
        let taken = (running / pus as f64).min(1.0);
        let totals = PricingTotals {
            accesses: sums(&shape.domains, Characteristic::LlcAccesses),
            accesses_now: sums(&now.domains, Characteristic::LlcAccesses),
            paths: sums(&shape.nodes, Characteristic::Path),
            waiting: shape.groups.iter().map(|m| m.threads - m.running).sum(),
            all_taken: (0..pus).map(|_| taken).product(),
        };
        Self {
            known,
            shape,
            now,
            totals,
        }
    }
}

impl PricingRule {
    fn can_price(&self, known: &ProgramCharacteristics) -> bool {
        self.needs.iter().all(|&what| known.get(what).is_some())
    }

    /// Cycles per s that the programs lose which can be priced; `None` if none can.
    fn price(&self, case: &PricingCase<'_>) -> Option<f64> {
        let groups = (0..case.known.len()).filter(|&g| self.can_price(&case.known[g]));
        let prices = groups.map(|group| (self.cost)(case, group).max(0.0));
        prices.reduce(|a, b| a + b)
    }
}

/// Cost of a mapping, by rule.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MappingCost {
    /// Cycles per s, in the order of [`RULES`]; `None` if a rule prices no program.
    pub(super) prices: [Option<f64>; RULES.len()],
}

impl MappingCost {
    pub(super) fn from_case(case: &PricingCase<'_>) -> Self {
        Self {
            prices: std::array::from_fn(|at| RULES[at].price(case)),
        }
    }

    /// Sum of the prices, cycles per s.
    pub(super) fn total(&self) -> f64 {
        self.prices.iter().flatten().sum()
    }

    pub(super) fn items(&self) -> impl Iterator<Item = (&'static PricingRule, f64)> + '_ {
        let pairs = RULES.iter().zip(&self.prices);
        pairs.filter_map(|(rule, price)| Some((rule, (*price)?)))
    }
}

/// Cycles per s that a program loses because its threads are pinned, or because they are free.
pub(super) fn pinning_cost(case: &PricingCase<'_>, group: usize) -> f64 {
    let rules = RULES.iter().filter(|rule| rule.role == Role::Pinning);
    let rules = rules.filter(|rule| rule.can_price(&case.known[group]));
    rules.map(|rule| (rule.cost)(case, group)).sum()
}

/// Returns true if some resource that programs on different cores share can be priced for all
/// programs, so that the sum of prices is a prediction.
pub(super) fn can_predict(known: &[ProgramCharacteristics]) -> bool {
    let mut shared = RULES.iter().filter(|rule| rule.role == Role::Shared);
    shared.any(|rule| known.iter().all(|program| rule.can_price(program)))
}

/// Names of the rules that cannot price any program.
pub(super) fn unpriced_rules(known: &[ProgramCharacteristics]) -> Vec<&'static str> {
    let unpriced = |rule: &&PricingRule| !known.iter().any(|program| rule.can_price(program));
    RULES
        .iter()
        .filter(unpriced)
        .map(|rule| rule.name)
        .collect()
}
