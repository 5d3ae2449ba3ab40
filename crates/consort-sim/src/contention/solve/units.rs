//! Functional units that the threads of a core share.

use super::State;
use crate::contention::layout::Sharing;
use crate::contention::units::CLASSES;

impl State<'_> {
    /// Operations wait for co-runners' operations on shared units: `ρI/(2(1−ρ))` cycles over
    /// the class's units, with ρ the co-runners' utilisation and I the issue interval.
    pub(super) fn queue_for_units(&mut self, sharing: &Sharing<'_>) {
        const FULL: f64 = 0.95;
        for members in &sharing.cores {
            // Nobody waits for operations of its own.
            if members.len() == 1 {
                continue;
            }
            for u in 0..CLASSES {
                self.loads.clear();
                self.loads.extend(members.iter().map(|&i| {
                    let unit = &sharing.settings[i].units[u];
                    let ipc = self.guess[i].active * self.rate[i];
                    ipc * unit.operations * unit.interval / unit.count
                }));
                let all: f64 = self.loads.iter().sum();
                for (&i, load) in members.iter().zip(&self.loads) {
                    let unit = &sharing.settings[i].units[u];
                    if unit.shared {
                        let others = (all - load).clamp(0.0, FULL);
                        let wait = others * unit.interval / (2.0 * (1.0 - others) * unit.count);
                        self.held[i].unit_wait[u] = wait;
                    }
                }
            }
        }
    }
}
