//! Schedulers for chips with large and small cores: who gets the large ones.
//!
//! Source: Markovic, "Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric CMPs" (PhD
//! thesis, UPC 2015). What they share is here; a policy is a [`SwapRule`] that says which logical
//! cores to exchange:
//!
//! - [`ExchangeGroups`]: each large core has small cores of its own, and exchanges only with them.
//! - [`LogicalCoreMap`]: logical cores and their PUs. In hardware form the machine's own; in software form
//!   every PU has one, with the threads that share it.
//! - [`LogicalCore`]: a logical core as a rule sees it.
//! - [`promote()`]: the exchange for rules that rank logical cores.
//! - [`Swapper`]: the policy around a rule.
//! - [`BestScoreRule`]: the rule that gives large cores to the threads with the best [`Score`].
//! - [`PieModel`]: what a thread would gain from a large core, after PIE.
//!
//! Pitfall: a logical core in kernel mode stays where it is; rules wait for the large core and
//! pass over the small one.

mod core_kind_rates;
mod estimates;
mod groups;
mod logical_core;
mod logical_core_map;
mod pie_model;
mod promote;
mod round_robin;
mod scores;
mod swapper;
#[cfg(test)]
pub(super) mod testing;

pub(super) use core_kind_rates::{CoreKindRates, CoreKindTimes};
pub(super) use estimates::PieEstimates;
pub(super) use groups::ExchangeGroups;
pub(super) use logical_core::{ActiveThread, LogicalCore, LogicalCoreGroup};
pub(super) use pie_model::{PIE_SIGNALS, PieCounts, PieModel};
pub(super) use promote::promote;
pub(super) use round_robin::{RoundRobin, TURNS, TurnOrder, turn_order};
pub(super) use scores::{BestScoreRule, MARGIN, Score, Ties, margin};
pub(super) use swapper::{
    FORM, LATENCY, SOFTWARE_FORM, Swap, SwapRule, Swapper, Tick, form, latency,
};

use logical_core_map::LogicalCoreMap;
