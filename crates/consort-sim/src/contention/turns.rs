//! Turns of fetch and dispatch among the threads of a core, and the rate that each loses by them.

use super::claims::{Claim, FETCH, SLOTS, Supply, members};
use super::core_model::MAX_WAYS;

/// Steps towards rates that delay each other.
const STEPS: u32 = 4;

/// Instructions per cycle of each thread of a core.
pub(super) type CoreRates = [f64; MAX_WAYS];

/// Returns the turns of fetch left to a set while some of the others refill: each of these has its
/// fair share of them for as much of its time outside the set as it refills.
pub(super) fn fetch_turns_left(supply: &Supply, claims: &[Claim], set: u32) -> f64 {
    let others = claims.iter().enumerate();
    let outside = others.filter(|(j, _)| set >> j & 1 == 0);
    let refilling = outside.map(|(_, claim)| {
        let idle = 1.0 - claim.active - claim.wrong_path;
        if claim.refills > 0.0 {
            (claim.refills / idle.max(claim.refills)).min(1.0)
        } else {
            0.0
        }
    });
    let refilling: f64 = refilling.sum();
    supply.resources[FETCH] * (1.0 - refilling / (f64::from(set.count_ones()) + refilling))
}

/// The rates that a set claims, none above what its share of so many turns of fetch allows: threads
/// take turns, however much a turn brings each.
pub(super) fn fetch_limited_rates(there: f64, claims: &[Claim], set: u32) -> CoreRates {
    let mut rates = CoreRates::default();
    let fetches = |i: usize| claims[i].rate * claims[i].use_of[FETCH];
    let shares = fair_shares(there, set, fetches);
    for i in members(set) {
        rates[i] = claims[i].rate;
        if claims[i].use_of[FETCH] > 0.0 {
            rates[i] = rates[i].min(shares[i] / claims[i].use_of[FETCH]);
        }
    }
    delay_fetch(there, claims, &mut rates, set);
    rates
}

/// Slows down threads that would fetch in cycles in which others do: a thread whose window is not
/// full fetches as soon as it can, and loses the turns that others take, however many are left
/// over.
///
/// Turns go to the thread that has had none for longest. A thread that would fetch again right
/// behind its own turn therefore waits for every thread that wants one then; one that pauses first,
/// as behind a taken branch, is served at once.
fn delay_fetch(there: f64, claims: &[Claim], rates: &mut CoreRates, set: u32) {
    if !there.is_finite() {
        return;
    }
    let turns = |i: usize| claims[i].use_of[FETCH] / there;
    delay(rates, set, turns, |i, turns, waits| {
        let front = &claims[i].front;
        let turns = turns * (1.0 + (1.0 - front.pauses) * waits);
        front.cycles(front.dispatch, turns + front.bubbles)
    });
}

/// Lets rates fall that delay each other, given the turns per instruction of each thread, and its
/// cycles per instruction with these turns when it finds so many others before it at each.
fn delay(
    rates: &mut CoreRates,
    set: u32,
    turns: impl Fn(usize) -> f64,
    cycles: impl Fn(usize, f64, f64) -> f64,
) {
    if set.count_ones() < 2 {
        return;
    }
    let alone = *rates;
    let mut each = CoreRates::default();
    members(set).for_each(|i| each[i] = turns(i));
    for _ in 0..STEPS {
        let before = *rates;
        let mut used = CoreRates::default();
        members(set).for_each(|i| used[i] = rates[i] * each[i]);
        let waits = waits(&used, set);
        for i in members(set) {
            let cycles = cycles(i, each[i], waits[i]).max(f64::MIN_POSITIVE);
            rates[i] = alone[i].min(1.0 / cycles);
        }
        if *rates == before {
            break;
        }
    }
}

/// Returns rates that the set's shares of the core's turns of dispatch allow as well.
pub(super) fn turn_limited_rates(
    supply: &Supply,
    claims: &[Claim],
    mut rates: CoreRates,
    set: u32,
) -> CoreRates {
    if f64::from(set.count_ones()) <= supply.turns {
        return rates;
    }
    // A thread wants a turn of dispatch per group. Without groups, a turn per cycle, or per
    // operation if it has fewer: whatever there is goes as soon as there is room.
    let wants = |i: usize| {
        let claim = &claims[i];
        if supply.in_groups {
            rates[i] / claim.per_turn
        } else {
            (rates[i] * claim.use_of[SLOTS]).min(1.0)
        }
    };
    let shares = fair_shares(supply.turns, set, wants);
    for i in members(set) {
        rates[i] = rates[i].min(claims[i].per_turn * shares[i]);
    }
    if supply.in_groups {
        delay_groups(supply, claims, &mut rates, set);
    }
    rates
}

/// Slows down threads that would dispatch a group in cycles in which others do, as [`delay_fetch`]
/// does for fetch. Where several groups go in a cycle, each of these turns has an equal part of the
/// threads.
fn delay_groups(supply: &Supply, claims: &[Claim], rates: &mut CoreRates, set: u32) {
    let count = f64::from(set.count_ones());
    let met = (count / supply.turns - 1.0) / (count - 1.0);
    let turns = |i: usize| 1.0 / claims[i].per_turn.max(f64::MIN_POSITIVE);
    delay(rates, set, turns, |i, turns, waits| {
        let front = &claims[i].front;
        front.cycles(turns * (1.0 + met * waits), front.fetch)
    });
}

/// Others that each member of a set finds before it when it wants a turn, given the turns per cycle
/// that each uses. Of the cycles that the rest leaves, another wants as large a part as it has; and
/// no thread waits for more turns than the others take.
fn waits(used: &CoreRates, set: u32) -> CoreRates {
    let all: f64 = members(set).map(|i| used[i]).sum();
    let mut waits = CoreRates::default();
    for j in members(set) {
        let left = (1.0 - (all - used[j])).max(used[j]).max(f64::MIN_POSITIVE);
        let wanted = used[j] / left;
        for i in members(set & !(1 << j)) {
            waits[i] += if used[i] > left {
                used[j] / used[i]
            } else {
                wanted
            };
        }
    }
    waits
}

/// Max-min fair shares of what the members of a set want.
fn fair_shares(there: f64, set: u32, wants: impl Fn(usize) -> f64) -> CoreRates {
    let mut shares = CoreRates::default();
    let (mut left, mut open) = (there, set);
    while open != 0 {
        let fair = left / f64::from(open.count_ones());
        let modest = members(open).filter(|&i| wants(i) <= fair);
        let modest = modest.fold(0, |set, i| set | 1 << i);
        let settled = if modest == 0 { open } else { modest };
        for i in members(settled) {
            shares[i] = wants(i).min(fair);
            left -= shares[i];
        }
        open &= !settled;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contention::claims::Front;
    use crate::contention::claims::testing::{claim, fetching, four_wide};
    use crate::contention::dispatch::dispatch_rates;

    #[test]
    fn hardly_used_turn_is_lost() {
        let supply = Supply {
            turns: 1.0,
            ..four_wide()
        };
        let rates = dispatch_rates(&supply, &[claim(4.0, 1.0), claim(1.4, 1.0)]);
        assert!((rates[0] - 2.0).abs() < 1e-9, "{rates:?}");
        assert!((rates[1] - 1.4).abs() < 1e-9, "{rates:?}");
        // One operation in four cycles takes one of these.
        let rates = dispatch_rates(&supply, &[claim(4.0, 1.0), claim(0.25, 1.0)]);
        assert!((rates[0] - 3.0).abs() < 1e-9, "{rates:?}");
        // A thread that waits all the time takes no turns.
        let rates = dispatch_rates(&supply, &[claim(4.0, 1.0), claim(4.0, 0.0)]);
        assert!((rates[0] - 4.0).abs() < 1e-9, "{rates:?}");
    }

    #[test]
    fn turn_brings_whole_group() {
        let supply = Supply {
            turns: 1.0,
            in_groups: true,
            ..four_wide()
        };
        // Two instructions per cycle are a group of four every other cycle.
        let rates = dispatch_rates(&supply, &[claim(4.0, 1.0), claim(2.0, 1.0)]);
        assert!((rates[0] - 2.0).abs() < 1e-9, "{rates:?}");
        let rates = dispatch_rates(&supply, &[claim(4.0, 1.0), claim(1.0, 1.0)]);
        assert!((rates[0] - 3.0).abs() < 1e-9, "{rates:?}");
    }

    #[test]
    fn refilling_thread_takes_fetch_turns_alone() {
        let mut supply = four_wide();
        supply.resources[FETCH] = 1.0;
        let mut fetches = claim(4.0, 1.0);
        fetches.use_of[FETCH] = 0.25;
        let mut refills = claim(4.0, 0.0);
        refills.refills = 1.0;
        let rates = dispatch_rates(&supply, &[fetches, refills]);
        assert!((rates[0] - 2.0).abs() < 1e-9, "{rates:?}");
        // Who needs no more than every second turn loses nothing.
        fetches.use_of[FETCH] = 0.125;
        let rates = dispatch_rates(&supply, &[fetches, refills]);
        assert!((rates[0] - 4.0).abs() < 1e-9, "{rates:?}");
    }

    #[test]
    fn fetch_bound_thread_waits_for_others_turns() {
        let mut supply = four_wide();
        supply.resources[FETCH] = 1.0;
        // A turn brings four instructions, and two cycles pass behind it.
        let mut bound = fetching(4.0 / 3.0, 0.25);
        bound.front = Front {
            dispatch: 0.25,
            fetch: 0.75,
            uneven: 0.0,
            bubbles: 0.5,
            pauses: 0.25,
            window: 0.1,
            full: 0.0,
        };
        let rate = |other: Claim| dispatch_rates(&supply, &[bound, other])[0];
        assert!((rate(fetching(1.0, 0.0)) - 4.0 / 3.0).abs() < 1e-9);
        let beside = rate(fetching(1.0, 0.4));
        // The other wants a turn in four of the ten cycles that this one leaves.
        let wanted = 0.4 / (1.0 - 0.25 * beside);
        let turns = 0.25 * (1.0 + 0.75 * wanted);
        assert!((beside - 1.0 / (turns + 0.5)).abs() < 1e-3, "{beside}");
        // A full window hides it.
        bound.front.full = 1.0;
        bound.front.window = 2.0;
        bound.rate = 0.5;
        let rate = dispatch_rates(&supply, &[bound, fetching(1.0, 0.4)])[0];
        assert!((rate - 0.5).abs() < 1e-9, "{rate}");
    }
}
