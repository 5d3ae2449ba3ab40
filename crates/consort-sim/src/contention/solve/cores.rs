//! Division of a core among its threads: its window, its slots.

use super::SolverState;
use crate::contention::buffers::MOST_BUFFERS;
use crate::contention::claims::{Claim, MAX_WAYS};
use crate::contention::dispatch::{LossShares, dispatch_rates, loss_shares};
use crate::contention::layout::SharedStructures;
use crate::contention::window::{Pressure, window_share};

impl SolverState<'_> {
    pub(super) fn divide_windows(&mut self, sharing: &SharedStructures<'_>) {
        for members in &sharing.cores {
            if self.rests[members[0]] || !sharing.settings[members[0]].shares_window() {
                continue;
            }
            let mut pressures = core::mem::take(&mut self.pressures);
            for &i in members {
                self.held[i].window = sharing.settings[i].alone.window;
            }
            for at in 0..MOST_BUFFERS {
                self.divide_buffer(sharing, members, at, &mut pressures);
            }
            self.pressures = pressures;
        }
    }

    /// Divides a shared buffer; nobody's window is larger than its part of it sustains.
    fn divide_buffer(
        &mut self,
        sharing: &SharedStructures<'_>,
        members: &[usize],
        at: usize,
        pressures: &mut Vec<Pressure>,
    ) {
        let use_of = |i: usize| sharing.settings[i].buffers[at];
        let pool = use_of(members[0]).pool;
        if pool <= 0.0 {
            return;
        }
        pressures.clear();
        let each = members.iter();
        pressures.extend(each.map(|&i| {
            self.pressure(sharing, i)
                .for_buffer(use_of(i).per_instruction)
        }));
        // Buffers of its own stop a thread before it fills one that it shares.
        let own = |i: usize| {
            let entries = sharing.settings[i].alone.own_window * use_of(i).per_instruction;
            use_of(i).own.min(entries)
        };
        let most: f64 = members.iter().map(|&i| own(i)).sum();
        for (k, &i) in members.iter().enumerate() {
            let own = own(i);
            // What the others may not have is there for this one.
            let left = (pool - (most - own)).clamp(0.0, own);
            let entries = window_share(pool, pressures, k).clamp(left, own);
            let window = use_of(i).window(entries).max(1.0);
            self.held[i].window = self.held[i].window.min(window);
        }
    }

    fn pressure(&self, sharing: &SharedStructures<'_>, i: usize) -> Pressure {
        let setting = &sharing.settings[i];
        let terms = &self.terms[i];
        let fair = setting.core.dispatch_width / setting.on_core;
        let wait_cycles = setting.llc_cycles + setting.memory_cycles;
        Pressure {
            computing: terms.window_need,
            waiting: fair * wait_cycles,
            waits: self.guess[i].waits,
        }
    }

    pub(super) fn dispatch(&mut self, sharing: &SharedStructures<'_>) {
        for (members, supply) in sharing.cores.iter().zip(&sharing.supplies) {
            if self.rests[members[0]] {
                continue;
            }
            let rates = dispatch_rates(supply, &self.claims(sharing, members)[..members.len()]);
            for (&rate, &i) in rates.iter().zip(members) {
                self.rate[i] = rate;
                self.absorbed[i] = self.absorbed_dispatch_cycles(sharing, i);
                let cycles = 1.0 / rate + self.terms[i].stall - self.absorbed[i];
                self.unqueued_s[i] = cycles / sharing.settings[i].hz;
            }
        }
    }

    /// Returns the claim of each thread on its core.
    fn claims(&self, sharing: &SharedStructures<'_>, members: &[usize]) -> [Claim; MAX_WAYS] {
        let mut claims = [Claim::default(); MAX_WAYS];
        for (claim, &i) in claims.iter_mut().zip(members) {
            *claim = Claim {
                rate: 1.0 / self.terms[i].active,
                active: self.guess[i].active,
                wrong_path: self.guess[i].wrong_path,
                refills: self.guess[i].refills,
                per_turn: 1.0 / sharing.settings[i].needs.dispatch_turns,
                use_of: sharing.settings[i].use_of,
                front: sharing.settings[i].front(&self.terms[i]),
            };
        }
        claims
    }

    /// Returns each thread's loss of dispatch, by resource of its core.
    pub(super) fn losses(&self, sharing: &SharedStructures<'_>) -> Vec<LossShares> {
        let mut losses = vec![LossShares::default(); sharing.settings.len()];
        for (members, supply) in sharing.cores.iter().zip(&sharing.supplies) {
            let of_core = loss_shares(supply, &self.claims(sharing, members)[..members.len()]);
            for (&i, lost) in members.iter().zip(of_core) {
                losses[i] = lost;
            }
        }
        losses
    }

    /// Of the cycles per instruction in which co-runners have a thread's slots, those that cost it
    /// nothing: its mispredicted branches wait the less for it.
    fn absorbed_dispatch_cycles(&self, sharing: &SharedStructures<'_>, i: usize) -> f64 {
        let terms = &self.terms[i];
        let lost = 1.0 / self.rate[i] - terms.active;
        if lost <= 0.0 || terms.unhurried <= 0.0 {
            return 0.0;
        }
        let all = sharing.settings[i].absorbed_cycles(terms.unhurried, lost);
        let alone = terms.unhurried - terms.resolving;
        // Nobody gains by being late.
        (all - alone).clamp(0.0, lost)
    }
}
