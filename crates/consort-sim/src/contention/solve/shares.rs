//! Each thread's share of what it uses together with others: windows and slots of a core, miss
//! queues, functional units, locks.
//!
//! *Miss queues.* By Little's law a thread has as many lines on their way as it requests per cycle,
//! times the cycles that each takes. Of a queue a thread may have what co-runners leave, and an
//! equal share at least, so that a thread that requests little leaves more to the others.
//! Prefetches have what demand misses leave; prefetches that find no room are dropped, and their
//! lines are then missed.

use super::SolverState;
use crate::contention::buffers::{
    FIRST_QUEUE, MOST_BUFFERS, Pressure, QueueClaim, queue_share, window_share,
};
use crate::contention::claims::Claim;
use crate::contention::core_model::{DIVIDER_KINDS, MAX_WAYS, UnitQueue};
use crate::contention::dispatch::{LossShares, dispatch_rates, loss_shares};
use crate::contention::layout::SharedStructures;
use crate::contention::stations::{QueueingStation, Visitor, wait};
use crate::contention::thread_setting::ThreadSetting;
use crate::contention::types::LockQueue;
use crate::machine::{PrefetchScope, Scope};

impl SolverState<'_> {
    pub(super) fn divide_windows(&mut self, sharing: &SharedStructures<'_>) {
        for members in &sharing.cores {
            if self.rests[members[0]] || !sharing.settings[members[0]].window.is_shared {
                continue;
            }
            let mut pressures = core::mem::take(&mut self.pressures);
            for &i in members {
                self.held[i].window = sharing.settings[i].window.alone;
                self.held[i].issue = f64::INFINITY;
            }
            for at in 0..MOST_BUFFERS {
                self.divide_buffer(sharing, members, at, &mut pressures);
            }
            self.pressures = pressures;
        }
    }

    /// Divides a shared buffer; no window is larger than its part of the buffer sustains.
    fn divide_buffer(
        &mut self,
        sharing: &SharedStructures<'_>,
        members: &[usize],
        at: usize,
        pressures: &mut Vec<Pressure>,
    ) {
        let use_of = |i: usize| sharing.settings[i].window.buffers[at];
        let pool = use_of(members[0]).pool;
        if pool <= 0.0 {
            return;
        }
        pressures.clear();
        let mut queue = [QueueClaim::default(); MAX_WAYS];
        for (claim, &i) in queue.iter_mut().zip(members) {
            let (buffer, limits) = (use_of(i), &sharing.settings[i].limits);
            let cycles = self.guess[i].time_s * sharing.settings[i].hz;
            let rate = 1.0 / (cycles * self.guess[i].active.max(f64::MIN_POSITIVE));
            let piled = limits.piled * self.guess[i].backed_up;
            let pressure = self.pressure(sharing, i).for_buffer(&buffer, piled, rate);
            pressures.push(pressure);
            // Each buffer stops a thread before it fills the others: what it may have of one sets
            // the instructions in flight, and with them the entries of all.
            let waiting = sharing.settings[i].window.alone * buffer.per_instruction;
            let passing = rate * buffer.passing;
            let most = buffer.own.min(waiting + limits.all * buffer.passing);
            *claim = QueueClaim {
                most,
                held: pressure.entries().min(most),
                needed: pressure.needed.min(most),
                passing,
                inserts: rate * buffer.per_piled,
                frees: buffer.per_piled / cycles,
            };
        }
        let queue = &queue[..members.len()];
        // In a window that is a pool without a limit per thread, threads rename to registers of
        // their own (see the reference's buffers), so that none fills a queue with what waits.
        let first = &sharing.settings[members[0]];
        let is_balanced = first.model.tables.balance_share < 1.0;
        let is_open = first.window.buffers[0].pool > 0.0 && !is_balanced;
        let most: f64 = queue.iter().map(|claim| claim.most).sum();
        for (k, &i) in members.iter().enumerate() {
            let own = queue[k].most;
            // What the others may not have is there for this one.
            let left = (pool - (most - own)).clamp(0.0, own);
            let share = if at < FIRST_QUEUE || is_open {
                window_share(pool, pressures, k)
            } else {
                queue_share(pool, queue, k)
            };
            let entries = share.clamp(left, own);
            let (buffer, held) = (use_of(i), &mut self.held[i]);
            let window = buffer.window(entries - queue[k].passing);
            held.window = held.window.min(window.max(1.0));
            if buffer.passing > 0.0 {
                held.issue = held.issue.min(entries / buffer.passing);
            }
        }
    }

    fn pressure(&self, sharing: &SharedStructures<'_>, i: usize) -> Pressure {
        let setting = &sharing.settings[i];
        let in_flight = self.guess[i].in_flight;
        let fair = setting.core.dispatch_width / setting.on_core;
        let wait_cycles = setting.latencies.llc + setting.latencies.memory;
        Pressure {
            needed: self.guess[i].window_need,
            computing: in_flight,
            waiting: (fair * wait_cycles)
                .max(in_flight)
                .min(setting.window.waiting),
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
            let needs = &sharing.settings[i].needs;
            // While its window is not full, a thread dispatches what each turn of fetch brings.
            let turns = needs.dispatch_turns;
            let fetched = (needs.fetch_turns - turns).max(0.0) * (1.0 - self.guess[i].backed_up);
            *claim = Claim {
                rate: 1.0 / self.terms[i].active,
                active: self.guess[i].active,
                wrong_path: self.guess[i].wrong_path,
                refills: self.guess[i].refills,
                per_turn: 1.0 / (turns + fetched),
                use_of: sharing.uses[i],
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

    /// Cycles per instruction in which co-runners have a thread's slots at no cost, because its
    /// mispredicted branches wait the less for it.
    fn absorbed_dispatch_cycles(&self, sharing: &SharedStructures<'_>, i: usize) -> f64 {
        let terms = &self.terms[i];
        let lost = 1.0 / self.rate[i] - terms.active;
        if lost <= 0.0 || terms.unhurried <= 0.0 {
            return 0.0;
        }
        let all = sharing.settings[i]
            .branches
            .absorbed_cycles(terms.unhurried, lost);
        let alone = terms.unhurried - terms.resolving;
        // A thread never gains by being late.
        (all - alone).clamp(0.0, lost)
    }
}

/// Lines that a thread has on their way, on average.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LinesInFlight {
    /// Demand misses of the L1D.
    l1d: f64,
    /// Demand misses of the L2.
    l2: f64,
    /// Prefetches behind the L2, if all found room.
    prefetches: f64,
    /// Share of them that found room, 0 to 1.
    kept: f64,
}

impl LinesInFlight {
    /// Lines behind the L2.
    fn behind_l2(&self) -> f64 {
        self.l2 + self.kept * self.prefetches
    }
}

impl SolverState<'_> {
    /// Notes the demand misses that each thread can have on their way, and the share of its
    /// prefetches that find room.
    pub(super) fn divide_miss_queues(&mut self, sharing: &SharedStructures<'_>) {
        let mut flights = core::mem::take(&mut self.flights);
        for members in &sharing.cores {
            if self.rests[members[0]] {
                continue;
            }
            flights.clear();
            flights.extend(members.iter().map(|&i| self.lines_in_flight(sharing, i)));
            for (at, &i) in members.iter().enumerate() {
                let setting = &sharing.settings[i];
                let entries = f64::from(setting.core.outstanding_misses);
                let behind_l2 = entries_left(entries, &flights, at, LinesInFlight::behind_l2);
                let own = flights[at];
                let held = &mut self.held[i];
                held.queues = [l1d_entries(setting, &flights, at), behind_l2];
                held.misses = behind_l2.min(held.queues[0]);
                held.prefetching = kept_share(behind_l2 - own.l2, own.prefetches);
            }
        }
        self.flights = flights;
    }

    fn lines_in_flight(&self, sharing: &SharedStructures<'_>, i: usize) -> LinesInFlight {
        let setting = &sharing.settings[i];
        let misses = &self.terms[i].misses;
        let cycles = self.guess[i].time_s * setting.hz;
        let wait = self.line_wait_s(sharing, i) * setting.hz;
        let from_memory = setting.latencies.llc + setting.latencies.memory + wait;
        let from_llc = (misses.data[1] - misses.data[2]) * setting.latencies.llc;
        let from_other =
            (misses.data[2] - misses.data[3]) * setting.latencies.remote.unwrap_or(0.0);
        let cached = from_llc + from_other;
        let demand = misses.exposed * cached + misses.demand * from_memory;
        let from_l2 = (misses.data[0] - misses.data[1]) * setting.latencies.l2;
        let prefetched = misses.covered * cached + misses.wanted * from_memory;
        let prefetcher = setting.core.prefetcher.as_ref();
        LinesInFlight {
            l1d: (from_l2 + demand) / cycles,
            l2: demand / cycles,
            // Prefetches of an LLC do not wait in the core's miss queue.
            prefetches: if prefetcher.is_some_and(|p| p.per != PrefetchScope::Llc) {
                prefetched / cycles
            } else {
                0.0
            },
            kept: self.guess[i].prefetching,
        }
    }
}

/// Demand misses that a thread's L1D can have on their way, whose queue co-runners share where they
/// share the cache. A cache whose description has no queue sets no limit of its own.
fn l1d_entries(setting: &ThreadSetting<'_>, flights: &[LinesInFlight], at: usize) -> f64 {
    let l1d = &setting.core.l1d;
    match (l1d.miss_queue.map(f64::from), l1d.per) {
        (None, _) => f64::INFINITY,
        (Some(entries), Scope::Pu) => entries,
        (Some(entries), Scope::Core) => entries_left(entries, flights, at, |flight| flight.l1d),
    }
}

/// Entries of a queue that are left to the thread `at`: all, less what each co-runner has on its
/// way, at most an equal share.
fn entries_left(
    entries: f64,
    flights: &[LinesInFlight],
    at: usize,
    lines: impl Fn(&LinesInFlight) -> f64,
) -> f64 {
    let most = entries / flights.len() as f64;
    let others = flights.iter().enumerate().filter(|(other, _)| *other != at);
    entries
        - others
            .map(|(_, flight)| lines(flight).min(most))
            .sum::<f64>()
}

/// Share of prefetches for which there is room, 0 to 1.
fn kept_share(entries: f64, prefetches: f64) -> f64 {
    let entries = entries.max(0.0);
    if prefetches <= entries {
        1.0
    } else {
        entries / prefetches
    }
}

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
        let own = port_wait(load(queue.thread), queue.ports);
        let others = (0..members.len()).filter(|&at| at != queue.thread);
        let of_others = others.map(|at| {
            let [own, other] = [queue.thread, at].map(|at| self.guess[members[at]].ready_age);
            (load(at), load(at) * precedence(own, other))
        });
        let (offered, ahead) =
            of_others.fold((0.0, 0.0), |sum, each| (sum.0 + each.0, sum.1 + each.1));
        let later = if offered > 0.0 { ahead / offered } else { 0.0 };
        let held = &mut self.held[members[queue.thread]];
        held.own_wait[queue.class] = own;
        held.unit_wait[queue.class] = later * (port_wait(all, queue.ports) - own).max(0.0);
    }
}

/// Waits for a co-runner's operations over those in order of arrival, 0 to 2, given the mean ages of
/// the thread's own and of its operations when they become ready. Ports take the operation that was
/// dispatched first. Of two that are ready at once and whose ages are distributed exponentially, the
/// co-runner's is the older with `b/(a + b)`, where in order of arrival each goes first half the time.
/// What one thread waits less the other waits more, as work is conserved.
fn precedence(own: f64, other: f64) -> f64 {
    let both = own + other;
    if both > 0.0 { 2.0 * other / both } else { 1.0 }
}

/// Mean wait for one of so many ports that are taken for a cycle each, cycles: half of what it is
/// with exponential times of service (Erlang's formula for delay; Cosmetatos, Operational Research
/// Quarterly 26, 1975, on constant times).
fn port_wait(utilisation: f64, ports: f64) -> f64 {
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

impl SolverState<'_> {
    /// Siblings wait for locks as for a server that each hold occupies: `ρh/(1−ρ)`, less one's
    /// own share of the utilisation; the loop is closed as at the stations. As at any M/M/1, who
    /// has to wait does so for an exponential time of mean `h/(1−ρ)` (Kleinrock, "Queueing
    /// Systems", volume 1, section 5.12).
    pub(super) fn queue_for_locks(&mut self, sharing: &SharedStructures<'_>) {
        for members in &sharing.lockers {
            let times = &sharing.twins.times;
            let n: f64 = members.iter().map(|&i| times[i]).sum();
            let Some(lock) = sharing.settings[members[0]].demand.lock else {
                continue;
            };
            let per_instruction = lock.per_minstr / 1e6;
            let without = |i: usize| self.next[i].time_s - self.next[i].lock_s;
            let mean_time = members.iter().map(|&i| times[i] * without(i)).sum::<f64>() / n;
            let hold_s = lock.hold_instr * mean_time;
            if hold_s <= 0.0 || per_instruction <= 0.0 {
                continue;
            }
            let station = QueueingStation {
                lines_per_s: f64::from(lock.count.max(1)) / hold_s,
                service_s: 2.0 * hold_s * (n - 1.0) / n,
            };
            let visitors: Vec<Visitor> = members
                .iter()
                .map(|&i| Visitor {
                    time_s: without(i),
                    lines: per_instruction * times[i],
                    felt: per_instruction,
                })
                .collect();
            let wait_s = wait(&station, &visitors);
            let used = station.utilisation(wait_s);
            let queue = LockQueue {
                busy: used * (n - 1.0) / n,
                wait_s: hold_s / (1.0 - used),
            };
            for &i in members {
                let next = &mut self.next[i];
                let lock_s = per_instruction * wait_s;
                let time_s = next.time_s - next.lock_s + lock_s;
                // Shares of the time with the wait that was guessed become shares of the new time.
                let scale = next.time_s / time_s;
                next.lock_s = lock_s;
                self.locks[i] = queue;
                next.time_s = time_s;
                next.active *= scale;
                next.waits *= scale;
                next.wrong_path *= scale;
                next.refills *= scale;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_of_full_window_go_first() {
        assert_eq!(precedence(20.0, 20.0), 1.0);
        assert_eq!(precedence(0.0, 0.0), 1.0);
        assert!(precedence(40.0, 4.0) < 0.2 && precedence(4.0, 40.0) > 1.8);
    }

    #[test]
    fn one_port_waits_like_m_d_1() {
        // M/D/1: ρ/(2(1 − ρ)).
        for used in [0.1, 0.5, 0.9] {
            assert!((port_wait(used, 1.0) - used / (2.0 * (1.0 - used))).abs() < 1e-12);
        }
    }

    #[test]
    fn more_ports_wait_less() {
        assert!(port_wait(0.8, 4.0) < port_wait(0.8, 2.0));
        assert!(port_wait(0.8, 2.0) < port_wait(0.8, 1.0));
    }
}
