//! Limits that a core sets on one thread: dispatch, ports, fetch, and the chain of its operations.

use super::claims::unevenness;
use super::needs::StretchNeeds;
use super::thread_setting::{CoreLimits, ThreadSetting};
use crate::machine::detail::WorkKind;
use crate::program::ChainSpec;

/// Cycles per instruction of a chain, at least.
const SHORTEST: f64 = 0.01;

impl ThreadSetting<'_> {
    /// Instructions per cycle that the core sustains for this thread alone. Limits hide each other
    /// within a stretch, and take turns from one to the next.
    pub(super) fn limits(&self) -> CoreLimits {
        let on_core = self.on_core as usize;
        let (mut ports, mut front, mut all) = (0.0, 0.0, 0.0);
        let (mut piled, mut fetched, mut hurried) = (0.0, 0.0, 0.0);
        let measured = self.measured_dispatch();
        for StretchNeeds { share, needs } in &self.stretches {
            let fetch = needs.fetch_turns + needs.bubbles;
            let of_front = needs.dispatch_turns.max(fetch);
            let of_ports = self.model.port_cycles(&needs.works, on_core);
            ports += share * needs.dispatch_turns.max(of_ports);
            front += share * of_front;
            all += share * of_front.max(of_ports);
            hurried += share * of_front.min(measured).max(of_ports);
            piled += if of_ports > of_front {
                share * of_ports
            } else {
                0.0
            };
            fetched += if fetch > needs.dispatch_turns {
                share * fetch
            } else {
                0.0
            };
        }
        let dispatch = self.needs.dispatch_turns;
        let fetch = self.needs.fetch_turns + self.needs.bubbles;
        CoreLimits {
            dispatch: 1.0 / dispatch,
            ports: 1.0 / ports,
            front: 1.0 / front,
            all: 1.0 / all,
            hurried: 1.0 / hurried,
            uneven_front: unevenness(dispatch, fetch, front),
            piled: piled / all,
            fetched: fetched / front,
        }
    }

    /// Cycles per instruction of the longest chain when all data is in the L1.
    pub(super) fn chain_latency(&self) -> f64 {
        let times = &self.model.tables.times;
        let of = |work: WorkKind| f64::from(times[work.index()].latency_cycles);
        let ChainSpec {
            plain,
            load,
            fp,
            multiply,
            divide,
            fp_divide,
            vector,
        } = self.chain;
        let sum = plain * of(WorkKind::Integer)
            + load * self.core.l1d.latency_cycles
            + fp * 0.5 * (of(WorkKind::FpAdd) + of(WorkKind::FpMultiply))
            + multiply * of(WorkKind::Multiply)
            + divide * of(WorkKind::Divide)
            + fp_divide * of(WorkKind::FpDivide)
            + vector * of(WorkKind::VectorMove);
        sum.max(SHORTEST)
    }

    /// Returns loads on the longest chain per load: the share of their latency that counts there.
    pub(super) fn chain_load_share(&self) -> f64 {
        if self.mix().load > 0.0 {
            self.chain.load / self.mix().load
        } else {
            0.0
        }
    }
}
