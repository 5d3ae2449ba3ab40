//! Limits that a core sets on one thread: dispatch, ports and fetch.

use super::claims::unevenness;
use super::core_model::CoreModel;
use super::needs::{InstructionNeeds, StretchNeeds};

/// Instructions per cycle that a core sustains for one thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CoreLimits {
    pub(crate) dispatch: f64,
    /// By dispatch and ports.
    pub(crate) ports: f64,
    /// Cycles per instruction that ports take.
    pub(crate) port_cycles: f64,
    /// By dispatch and fetch, which fill the window.
    pub(crate) front: f64,
    /// By dispatch, ports and fetch.
    pub(crate) all: f64,
    /// The same if dispatch and fetch were no slower than the dispatch of the pipeline in which
    /// the resolution of branches is measured.
    pub(crate) hurried: f64,
    /// The same if they were no faster than it.
    pub(crate) slowed: f64,
    /// Unevenness of dispatch and fetch, 0 to 1; see [`overlapped_time`](super::claims::overlapped_time).
    pub(crate) uneven_front: f64,
    /// Share of the time of dispatch and fetch in which fetch is the slower, 0 to 1.
    pub(crate) fetched: f64,
    /// Share of the time in which operations pile up before ports, 0 to 1.
    pub(crate) piled: f64,
}

impl CoreLimits {
    /// The limits for a thread of these stretches. Limits hide each other within a stretch, and
    /// take turns from one to the next.
    pub(super) fn new(
        model: &CoreModel,
        stretches: &[StretchNeeds],
        mean: &InstructionNeeds,
        on_core: usize,
    ) -> Self {
        let (mut ports, mut front, mut all) = (0.0, 0.0, 0.0);
        let (mut piled, mut fetched, mut port_cycles) = (0.0, 0.0, 0.0);
        let (mut hurried, mut slowed) = (0.0, 0.0);
        let measured = mean.measured_dispatch();
        for StretchNeeds { share, needs } in stretches {
            let fetch = needs.fetch_turns + needs.bubbles;
            let of_front = needs.dispatch_turns.max(fetch);
            let of_ports = model.port_cycles(&needs.works, on_core);
            ports += share * needs.dispatch_turns.max(of_ports);
            port_cycles += share * of_ports;
            front += share * of_front;
            all += share * of_front.max(of_ports);
            hurried += share * of_front.min(measured).max(of_ports);
            slowed += share * of_front.max(measured).max(of_ports);
            if of_ports > of_front {
                piled += share * of_ports;
            }
            if fetch > needs.dispatch_turns {
                fetched += share * fetch;
            }
        }
        let dispatch = mean.dispatch_turns;
        let fetch = mean.fetch_turns + mean.bubbles;
        Self {
            dispatch: 1.0 / dispatch,
            ports: 1.0 / ports,
            port_cycles,
            front: 1.0 / front,
            all: 1.0 / all,
            hurried: 1.0 / hurried,
            slowed: 1.0 / slowed,
            uneven_front: unevenness(dispatch, fetch, front),
            piled: piled / all,
            fetched: fetched / front,
        }
    }
}
