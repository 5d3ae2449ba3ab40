//! Schedulers for chips with large and small cores: who gets the large ones.
//!
//! Source: Markovic, "Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric CMPs" (PhD
//! thesis, UPC 2015). What they share is here; a policy is a [`Rule`] that says which logical
//! cores to exchange:
//!
//! - [`Groups`]: each large core has small cores of its own, and exchanges only with them.
//! - [`Layer`]: logical cores and their PUs. In hardware form the machine's own; in software form
//!   every PU has one, with the threads that share it.
//! - [`Seat`]: a logical core as a rule sees it.
//! - [`promote()`]: the exchange for rules that rank logical cores.
//! - [`Swapper`]: the policy around a rule.
//! - [`Best`]: the rule that gives large cores to the threads with the best [`Score`].
//! - [`Impact`]: what a thread would gain from a large core, after PIE.
//!
//! Pitfall: a logical core in kernel mode stays where it is; rules wait for the large core and
//! pass over the small one.

mod estimates;
mod groups;
mod impact;
mod layer;
mod promote;
mod round_robin;
mod scores;
mod seat;
mod stays;
mod swapper;
#[cfg(test)]
pub(super) mod testing;

pub(super) use estimates::Estimates;
pub(super) use groups::Groups;
pub(super) use impact::{Counted, Impact, PIE_SIGNALS};
pub(super) use promote::promote;
pub(super) use round_robin::{Order, RoundRobin, TURNS, turns};
pub(super) use scores::{Best, MARGIN, Score, Ties, margin};
pub(super) use seat::{Group, Ran, Seat};
pub(super) use stays::{Rates, Times};
pub(super) use swapper::{FORM, LATENCY, Rule, SOFTWARE_FORM, Swap, Swapper, Tick, form, latency};

use layer::Layer;
