//! Policies for chips with large and small cores: which threads get the large cores.
//!
//! Source: Markovic, "Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric CMPs" (PhD
//! thesis, UPC 2015). A policy is a [`SwapRule`](swapper::SwapRule) that names the logical cores to
//! exchange. The rest is common to all:
//!
//! - [`ExchangeGroups`]: each large core exchanges threads only with small cores of its own.
//! - [`LogicalCoreMap`](logical_core_map::LogicalCoreMap): the CPU of each logical core. In
//!   hardware
//!   form the machine has logical cores. In software form each CPU has one, with the threads that
//!   share it.
//! - [`Swapper`](swapper::Swapper): the policy around a rule.
//! - [`BestScoreRule`](scores::BestScoreRule): the rule that gives the large cores to the threads
//!   with the best scores; `score_policies` has the scores.
//!
//! Pitfall: a logical core in kernel mode cannot be exchanged. Rules wait for it if it is on a
//! large core, and pass over it if it is on a small one.

pub(super) mod bottleneck;
pub(super) mod criticality;
mod groups;
mod logical_core_map;
mod pie_model;
pub(super) mod round_robin;
pub(super) mod score_policies;
mod scores;
mod swapper;
pub(super) mod tcs;
#[cfg(test)]
pub(super) mod testing;
pub(super) mod utility;

pub(super) use groups::ExchangeGroups;
pub(super) use swapper::{FORM, form};
