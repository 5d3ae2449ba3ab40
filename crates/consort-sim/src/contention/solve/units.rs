//! Functional units: what operations wait for those of their own thread, and for co-runners'.

use super::SolverState;
use crate::contention::core_model::DIVIDER_KINDS;
use crate::contention::layout::SharedStructures;
use crate::contention::units::UnitQueue;

/// Utilisation beyond which a queue is not followed: rates are limited before.
const FULL: f64 = 0.95;

impl SolverState<'_> {
    /// Cycles that an operation waits for its ports: for those of its own thread, and how many more
    /// for its co-runners'.
    pub(super) fn queue_for_units(&mut self, sharing: &SharedStructures<'_>) {
        for (members, queues) in sharing.cores.iter().zip(&sharing.unit_queues) {
            if self.rests[members[0]] {
                continue;
            }
            for queue in queues {
                self.wait_for_ports(sharing, members, queue);
            }
        }
    }

    /// Notes what co-runners use of each thread's dividers: no more than leaves it an equal share.
    pub(super) fn share_dividers(&mut self, sharing: &SharedStructures<'_>) {
        for members in sharing.cores.iter().filter(|members| members.len() > 1) {
            if self.rests[members[0]] {
                continue;
            }
            for kind in 0..DIVIDER_KINDS {
                self.share_divider(sharing, members, kind);
            }
        }
    }

    fn share_divider(&mut self, sharing: &SharedStructures<'_>, members: &[usize], kind: usize) {
        let ports = &sharing.settings[members[0]].model.dividers[kind].ports;
        if !ports.is_shared() {
            return;
        }
        let halves = if ports.has_halves() { 2 } else { 1 };
        for half in 0..halves {
            let of_half = || members.iter().copied().skip(half).step_by(halves);
            let used = |i: usize| {
                let setting = &sharing.settings[i];
                setting.divider_use(kind, self.guess[i].time_s * setting.hz)
            };
            let all: f64 = of_half().map(used).sum();
            let most = 1.0 - 1.0 / of_half().count().max(1) as f64;
            let others: Vec<_> = of_half()
                .map(|i| (i, (all - used(i)).clamp(0.0, most)))
                .collect();
            for (i, others) in others {
                self.held[i].divided[kind] = others;
            }
        }
    }

    fn wait_for_ports(
        &mut self,
        sharing: &SharedStructures<'_>,
        members: &[usize],
        queue: &UnitQueue,
    ) {
        let load = |at: usize| {
            let i = members[at];
            let per_cycle = 1.0 / (self.guess[i].time_s * sharing.settings[i].hz);
            per_cycle * queue.used[at] / queue.ports
        };
        let all = (0..members.len()).map(load).sum();
        let own = wait(load(queue.thread), queue.ports);
        let held = &mut self.held[members[queue.thread]];
        held.own_wait[queue.class] = own;
        held.unit_wait[queue.class] = (wait(all, queue.ports) - own).max(0.0);
    }
}

/// Mean wait for one of so many ports that are taken for a cycle each, cycles: half of what it is
/// with exponential times of service (Erlang's formula for delay; Cosmetatos, Operational Research
/// Quarterly 26, 1975, on constant times).
fn wait(utilisation: f64, ports: f64) -> f64 {
    let used = utilisation.min(FULL);
    if used <= 0.0 {
        return 0.0;
    }
    let offered = used * ports;
    // Share of arrivals that find all ports taken, were those turned away: by recursion over ports.
    let turned_away = (1..=ports as u32).fold(1.0, |lost, port| {
        let taken = offered * lost;
        taken / (f64::from(port) + taken)
    });
    let delayed = turned_away / (1.0 - used * (1.0 - turned_away));
    0.5 * delayed / (ports * (1.0 - used))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_port_waits_as_a_queue_of_constant_service_does() {
        // M/D/1: ρ/(2(1 − ρ)).
        for used in [0.1, 0.5, 0.9] {
            assert!((wait(used, 1.0) - used / (2.0 * (1.0 - used))).abs() < 1e-12);
        }
    }

    #[test]
    fn more_ports_of_the_same_utilisation_wait_less() {
        assert!(wait(0.8, 4.0) < wait(0.8, 2.0));
        assert!(wait(0.8, 2.0) < wait(0.8, 1.0));
    }
}
