//! Division of a core under SMT: dispatch slots, the turns of fetch before and the ports behind
//! them.
//!
//! Each thread is either active (it could dispatch) or stalled. Over every set of simultaneously
//! active threads these resources are divided max-min fairly by progressive filling: all rates rise
//! together until a thread has what it could use alone, or a resource that it uses is exhausted. A
//! thread's rate while active is the mean over the sets, weighted by how likely the others are
//! active: a thread competes only with the share of time in which the others can dispatch.
//!
//! Many cores dispatch for one thread at a time: a cycle that one takes is lost to the others,
//! however few operations it brings. A thread that finds something to dispatch in nearly every
//! cycle therefore takes its full share of cycles even where its rate is far below the width; it
//! takes fewer only below one operation per cycle. Cycles are divided max-min fairly before slots
//! are ([`Supply::turns`]).
//!
//! Against plain max-min over mean rates this gives the same where threads never stall or hardly
//! ever run, and in between charges a thread for the moments in which both want to dispatch.

use super::claims::{Claim, FETCH, RESOURCES, SLOTS, Supply, members};
use super::core_model::MAX_WAYS;
use super::turns::{CoreRates, fetch_limited_rates, fetch_turns_left, turn_limited_rates};

/// Mean rate of each thread while it is active, instructions per cycle.
pub(crate) fn dispatch_rates(supply: &Supply, claims: &[Claim]) -> CoreRates {
    let mut mean = CoreRates::default();
    if let [only] = claims {
        // What its core limits it to alone is in its rate.
        mean[0] = only.rate;
        return mean;
    }
    let mut weight = CoreRates::default();
    for set in 1..1u32 << claims.len() {
        let CoreDivision { rates, .. } = divide(supply, claims, set);
        for i in members(set) {
            let likely = likelihood(claims, set, i);
            mean[i] += likely * rates[i];
            weight[i] += likely;
        }
    }
    for (m, w) in mean.iter_mut().zip(weight) {
        *m = if w > 0.0 { *m / w } else { 0.0 };
    }
    mean
}

/// Causes of a thread's loss of rate to co-runners, in shares that add up to 1, or all 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LossShares {
    /// Turns of fetch.
    pub(crate) fetch: f64,
    pub(crate) ports: f64,
    /// Turns of dispatch and dispatch slots.
    pub(crate) slots: f64,
}

impl LossShares {
    fn add(&mut self, likely: f64, [fetch, slots, rest]: [f64; 3], starved: Option<usize>) {
        self.fetch += likely * fetch;
        self.slots += likely * slots;
        match starved {
            Some(SLOTS) | None => self.slots += likely * rest,
            Some(FETCH) => self.fetch += likely * rest,
            Some(_) => self.ports += likely * rest,
        }
    }

    fn as_shares(self) -> Self {
        let all = self.fetch + self.ports + self.slots;
        let part = |lost: f64| if all > 0.0 { lost / all } else { 0.0 };
        Self {
            fetch: part(self.fetch),
            ports: part(self.ports),
            slots: part(self.slots),
        }
    }
}

/// Returns the causes of each thread's loss under [`dispatch_rates`].
pub(crate) fn loss_shares(supply: &Supply, claims: &[Claim]) -> [LossShares; MAX_WAYS] {
    let mut sums = [LossShares::default(); MAX_WAYS];
    if claims.len() < 2 {
        return sums;
    }
    for set in 1..1u32 << claims.len() {
        let CoreDivision {
            fetched,
            dispatched,
            rates,
            left,
        } = divide(supply, claims, set);
        for i in members(set) {
            let parts = [
                claims[i].rate - fetched[i],
                fetched[i] - dispatched[i],
                dispatched[i] - rates[i],
            ];
            sums[i].add(
                likelihood(claims, set, i),
                parts,
                exhausted_resource(&left, &claims[i]),
            );
        }
    }
    sums.map(LossShares::as_shares)
}

/// Division of a core among a set of its threads, step by step.
struct CoreDivision {
    /// Rates that turns of fetch allow.
    fetched: CoreRates,
    /// Rates that turns of dispatch allow as well.
    dispatched: CoreRates,
    /// Rates that slots and ports allow as well.
    rates: CoreRates,
    /// Rest of each resource.
    left: [f64; RESOURCES],
}

fn divide(supply: &Supply, claims: &[Claim], set: u32) -> CoreDivision {
    let mut left = supply.resources;
    left[FETCH] = fetch_turns_left(supply, claims, set);
    let fetched = fetch_limited_rates(left[FETCH], claims, set);
    let dispatched = turn_limited_rates(supply, claims, fetched, set);
    let rates = fill(&mut left, claims, &dispatched, set);
    CoreDivision {
        fetched,
        dispatched,
        rates,
        left,
    }
}

/// Likelihood that exactly the others of `set` dispatch, be it on a wrong path.
fn likelihood(claims: &[Claim], set: u32, but: usize) -> f64 {
    let others = claims.iter().enumerate().filter(|&(j, _)| j != but);
    others.fold(1.0, |likely, (j, claim)| {
        let dispatches = (claim.active + claim.wrong_path).min(1.0);
        match set >> j & 1 == 1 {
            true => likely * dispatches,
            false => likely * (1.0 - dispatches),
        }
    })
}

/// Max-min fair rates of the threads in `set`, none above its part of `most`, 0 for the others; they
/// are taken from what is left.
fn fill(left: &mut [f64; RESOURCES], claims: &[Claim], most: &CoreRates, set: u32) -> CoreRates {
    // As a rule fetch and turns have left so little that there is enough for all.
    let mut all = *left;
    for i in members(set) {
        take_for(&mut all, &claims[i], most[i]);
    }
    if all.iter().all(|&there| there >= 0.0) {
        *left = all;
        return *most;
    }
    let mut rates = CoreRates::default();
    let mut rising = set;
    while rising != 0 {
        let room_of = |i: usize| most[i] - rates[i];
        let step = common_step(left, claims, room_of, rising);
        for i in members(rising) {
            rates[i] += step;
            take_for(left, &claims[i], step);
        }
        let rises = |&i: &usize| {
            most[i] - rates[i] > SPENT && exhausted_resource(left, &claims[i]).is_none()
        };
        rising = members(rising).filter(rises).fold(0, |set, i| set | 1 << i);
    }
    rates
}

/// Returns the step by which all rising threads can rise together, instructions per cycle.
fn common_step(
    left: &[f64; RESOURCES],
    claims: &[Claim],
    room_of: impl Fn(usize) -> f64,
    rising: u32,
) -> f64 {
    let mut step = f64::INFINITY;
    let mut each = [0.0; RESOURCES];
    for i in members(rising) {
        step = step.min(room_of(i));
        for (each, used) in each.iter_mut().zip(claims[i].use_of) {
            *each += used;
        }
    }
    for (there, each) in left.iter().zip(each) {
        if each > 0.0 {
            step = step.min(there / each);
        }
    }
    step.max(0.0)
}

fn take_for(left: &mut [f64; RESOURCES], claim: &Claim, rate: f64) {
    for (there, used) in left.iter_mut().zip(claim.use_of) {
        *there -= rate * used;
    }
}

/// Less than this is nothing.
const SPENT: f64 = 1e-12;

/// The first resource that a thread uses and that is exhausted.
fn exhausted_resource(left: &[f64; RESOURCES], claim: &Claim) -> Option<usize> {
    let mut pairs = claim.use_of.iter().zip(left);
    pairs.position(|(&used, &there)| used > 0.0 && there <= SPENT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contention::claims::Front;
    use crate::contention::claims::testing::{claim, fetching, four_wide};
    use proptest::prelude::*;

    /// A resource other than slots and fetch.
    const PORT: usize = 2;

    #[test]
    fn loss_is_charged_to_exhausted_resource() {
        let mut supply = four_wide();
        supply.resources[FETCH] = 1.0;
        let of = |claims: &[Claim; 2]| loss_shares(&supply, claims)[0];
        let all = |fetch, ports, slots| LossShares {
            fetch,
            ports,
            slots,
        };
        // Two that each want six tenths of all turns of fetch, and few slots.
        let fetchers = [fetching(1.0, 0.6), fetching(1.0, 0.6)];
        assert_eq!(of(&fetchers), all(1.0, 0.0, 0.0));
        assert_eq!(of(&[claim(3.0, 1.0), claim(3.0, 1.0)]), all(0.0, 0.0, 1.0));
        assert_eq!(of(&[claim(1.0, 1.0), claim(1.0, 1.0)]), all(0.0, 0.0, 0.0));
        supply.resources[PORT] = 1.0;
        let of = |claims: &[Claim; 2]| loss_shares(&supply, claims)[0];
        let mut loads = claim(1.0, 1.0);
        loads.use_of[PORT] = 0.8;
        assert_eq!(of(&[loads, loads]), all(0.0, 1.0, 0.0));
    }

    #[test]
    fn wrong_paths_take_slots() {
        let mut mispredicts = claim(4.0, 0.5);
        mispredicts.wrong_path = 0.5;
        let beside = |other| dispatch_rates(&four_wide(), &[claim(4.0, 1.0), other])[0];
        assert!((beside(mispredicts) - beside(claim(4.0, 1.0))).abs() < 1e-9);
        // It has itself no more of them for that.
        let own = dispatch_rates(&four_wide(), &[mispredicts, claim(4.0, 1.0)])[0];
        assert!((own - 2.0).abs() < 1e-9, "{own}");
    }

    #[test]
    fn two_wide_threads_get_half_each() {
        let rates = dispatch_rates(&four_wide(), &[claim(3.67, 1.0), claim(4.0, 1.0)]);
        assert!((rates[0] - 2.0).abs() < 1e-9);
        assert!((rates[1] - 2.0).abs() < 1e-9);
    }

    #[test]
    fn unused_slots_go_to_the_other() {
        let rates = dispatch_rates(&four_wide(), &[claim(4.0, 1.0), claim(0.128, 1.0)]);
        assert!((rates[0] - 3.872).abs() < 1e-9);
        assert!((rates[1] - 0.128).abs() < 1e-9);
    }

    #[test]
    fn exhausted_port_stops_its_users_alone() {
        let mut supply = four_wide();
        supply.resources[PORT] = 1.0;
        let mut fp = claim(4.0, 1.0);
        fp.use_of[PORT] = 1.0;
        let rates = dispatch_rates(&supply, &[fp, claim(4.0, 1.0), fp]);
        assert!((rates[0] - 0.5).abs() < 1e-9);
        assert!((rates[1] - 3.0).abs() < 1e-9);
    }

    fn turns() -> impl Strategy<Value = f64> {
        prop::sample::select(vec![1.0, 2.0, f64::INFINITY])
    }

    fn claims() -> impl Strategy<Value = Vec<Claim>> {
        let one = (
            0.01f64..8.0,
            (0.0f64..=1.0, 0.0f64..0.3),
            1.0f64..8.0,
            prop::array::uniform8(0.0f64..1.0),
        );
        let claim = one.prop_map(|(rate, (active, wrong_path), per_turn, use_of)| Claim {
            rate,
            active,
            wrong_path,
            refills: wrong_path,
            per_turn,
            use_of,
            front: Front::default(),
        });
        prop::collection::vec(claim, 1..6)
    }

    proptest! {
        #[test]
        fn resources_are_never_exceeded(
            claims in claims(),
            resources in prop::array::uniform8(0.5f64..8.0),
            turns in turns(),
        ) {
            let supply = Supply { resources, turns, in_groups: false };
            let rates = dispatch_rates(&supply, &claims);
            prop_assume!(claims.len() > 1);
            for (at, there) in resources.iter().enumerate() {
                let used = claims.iter().zip(rates).map(|(c, r)| c.active * r * c.use_of[at]);
                prop_assert!(used.sum::<f64>() <= there * (1.0 + 1e-9));
            }
            for (c, r) in claims.iter().zip(rates) {
                prop_assert!(r <= c.rate + 1e-9 && r >= 0.0);
            }
        }

        #[test]
        fn co_runners_never_speed_up_threads(
            claims in claims(),
            resources in prop::array::uniform8(0.5f64..8.0),
            turns in turns(),
        ) {
            let supply = Supply { resources, turns, in_groups: false };
            let rates = dispatch_rates(&supply, &claims);
            for (c, r) in claims.iter().zip(rates) {
                let alone = dispatch_rates(&supply, &[*c])[0];
                prop_assert!(r <= alone + 1e-9);
            }
        }
    }
}
