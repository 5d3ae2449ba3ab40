//! Assignment of groups of threads to cores with the fewest moves.
//!
//! The shortest augmenting path method for the assignment problem (Jonker and Volgenant, "A
//! shortest augmenting path algorithm for dense and sparse linear assignment problems", Computing
//! 38, 1987), in integers, so exact. A search examines the cores where a group's threads are and
//! one free core. All others cost at least as much as the free one, unless moving there is cheaper:
//! only then does it examine all.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::MatchingError;

/// A core for one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Number of threads that it can run at once.
    pub pus: usize,
    /// Cost of moving one thread here, usually 1.
    pub move_cost: u32,
}

/// Core of each group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seating {
    /// Core of each group, by number.
    pub cores: Vec<usize>,
    /// Number of threads that leave a core, or had none before.
    pub moved: usize,
    /// Sum of the moving costs, and of the prices of cores if there are any.
    pub cost: u64,
}

/// Gives each group a core of its own at the least total moving cost.
///
/// `on` is the core on which each thread runs now, if any; `allowed` returns true if all threads of
/// a group may use a core, both by number. A group gets no core with fewer CPUs than it has
/// threads.
///
/// # Errors
/// [`MatchingError::NoSeat`] if not all groups can have a core, [`MatchingError::Length`] if a
/// group contains a thread that `on` does not have.
pub fn assign(
    groups: &[Vec<usize>],
    on: &[Option<usize>],
    seats: &[Seat],
    allowed: impl Fn(usize, usize) -> bool,
) -> Result<Seating, MatchingError> {
    solve(groups, on, seats, allowed, None)
}

/// Gives each group a core like [`assign`], with an additional price of each core for each group,
/// both by number.
///
/// # Errors
/// Those of [`assign`].
pub fn assign_priced(
    groups: &[Vec<usize>],
    on: &[Option<usize>],
    seats: &[Seat],
    allowed: impl Fn(usize, usize) -> bool,
    price: &dyn Fn(usize, usize) -> u32,
) -> Result<Seating, MatchingError> {
    solve(groups, on, seats, allowed, Some(price))
}

fn solve(
    groups: &[Vec<usize>],
    on: &[Option<usize>],
    seats: &[Seat],
    allowed: impl Fn(usize, usize) -> bool,
    price: Option<&dyn Fn(usize, usize) -> u32>,
) -> Result<Seating, MatchingError> {
    let named = groups.iter().flatten().map(|&thread| thread + 1).max();
    if named.is_some_and(|threads| threads > on.len()) {
        return Err(MatchingError::Length {
            what: "the core where it runs",
            given: on.len(),
            threads: named.unwrap_or(0),
        });
    }
    let problem = AssignmentProblem {
        groups,
        on,
        seats,
        allowed,
        price,
    };
    let mut search = AssignmentSearch::new(groups.len(), seats);
    for group in 0..groups.len() {
        let core = search.reach(group, &problem);
        let core = core.ok_or(MatchingError::NoSeat { group })?;
        search.take(core, group);
    }
    Ok(seating(&problem, &search.group_on))
}

/// The groups, the cores that each may use, and their prices.
struct AssignmentProblem<'a, A> {
    groups: &'a [Vec<usize>],
    on: &'a [Option<usize>],
    seats: &'a [Seat],
    allowed: A,
    price: Option<&'a dyn Fn(usize, usize) -> u32>,
}

impl<A: Fn(usize, usize) -> bool> AssignmentProblem<'_, A> {
    fn cost(&self, group: usize, core: usize) -> Option<i64> {
        let (threads, seat) = (&self.groups[group], self.seats[core]);
        (threads.len() <= seat.pus && (self.allowed)(group, core)).then(|| {
            let moving = moves(threads, self.on, core) as i64 * i64::from(seat.move_cost);
            moving + self.price.map_or(0, |price| i64::from(price(group, core)))
        })
    }

    /// The cores on which threads of a group are.
    fn current_cores(&self, group: usize) -> impl Iterator<Item = usize> {
        let cores = self.groups[group]
            .iter()
            .filter_map(|&thread| self.on[thread]);
        cores.filter(|&core| core < self.seats.len())
    }
}

/// Threads of a group that are not on a core yet.
fn moves(threads: &[usize], on: &[Option<usize>], core: usize) -> usize {
    let away = |&&thread: &&usize| on[thread] != Some(core);
    threads.iter().filter(away).count()
}

fn seating<A>(problem: &AssignmentProblem<'_, A>, group_on: &[Option<usize>]) -> Seating {
    let mut seating = Seating {
        cores: vec![0; problem.groups.len()],
        ..Seating::default()
    };
    for (core, group) in group_on.iter().enumerate() {
        if let Some(group) = *group {
            let moved = moves(&problem.groups[group], problem.on, core);
            seating.cores[group] = core;
            seating.moved += moved;
            seating.cost += moved as u64 * u64::from(problem.seats[core].move_cost);
            seating.cost += problem
                .price
                .map_or(0, |price| u64::from(price(group, core)));
        }
    }
    seating
}

/// Duals, the assignment so far, and the current search.
struct AssignmentSearch {
    group_dual: Vec<i64>,
    core_dual: Vec<i64>,
    group_on: Vec<Option<usize>>,
    /// Free cores, the most expensive to move to first; the last may be taken already.
    free: Vec<usize>,
    /// The least price of moving a thread anywhere.
    least_price: u32,
    /// Distance of each core from the seeking group; `None` if not reached.
    distance: Vec<Option<i64>>,
    /// The core whose group reached this one; `None` for the seeking group.
    from: Vec<Option<usize>>,
    done: Vec<bool>,
    /// Cores that have a distance.
    reached: Vec<usize>,
    /// Reached cores with their distances, including outdated longer ones; a free core goes first
    /// among equals.
    nearest: BinaryHeap<Reverse<(i64, bool, usize)>>,
}

impl AssignmentSearch {
    fn new(groups: usize, seats: &[Seat]) -> Self {
        let cores = seats.len();
        let mut free: Vec<usize> = (0..cores).collect();
        free.sort_by_key(|&core| Reverse((seats[core].move_cost, core)));
        Self {
            group_dual: vec![0; groups],
            core_dual: vec![0; cores],
            group_on: vec![None; cores],
            free,
            least_price: seats.iter().map(|seat| seat.move_cost).min().unwrap_or(0),
            distance: vec![None; cores],
            from: vec![None; cores],
            done: vec![false; cores],
            reached: Vec::new(),
            nearest: BinaryHeap::new(),
        }
    }

    fn reset(&mut self) {
        for core in self.reached.drain(..) {
            self.distance[core] = None;
            self.done[core] = false;
        }
        self.nearest.clear();
        while self
            .free
            .last()
            .is_some_and(|&core| self.group_on[core].is_some())
        {
            self.free.pop();
        }
    }

    /// Finds the free core that is nearest to a group and updates the duals for it.
    fn reach<A: Fn(usize, usize) -> bool>(
        &mut self,
        seeker: usize,
        problem: &AssignmentProblem<'_, A>,
    ) -> Option<usize> {
        self.reset();
        let (mut group, mut via, mut base) = (seeker, None, 0);
        loop {
            self.relax_all(group, via, base, problem);
            let core = self.pop_nearest()?;
            base = self.distance[core]?;
            match self.group_on[core] {
                None => {
                    self.update(seeker, base);
                    return Some(core);
                }
                Some(next) => {
                    self.done[core] = true;
                    (group, via) = (next, Some(core));
                }
            }
        }
    }

    /// Examines every core that may be next for a group. Duals of free cores are zero and others'
    /// below, so among cores without its threads the free core of the least price is nearest,
    /// unless cores have prices of their own.
    fn relax_all<A: Fn(usize, usize) -> bool>(
        &mut self,
        group: usize,
        via: Option<usize>,
        base: i64,
        problem: &AssignmentProblem<'_, A>,
    ) {
        let base = base - self.group_dual[group];
        for core in problem.current_cores(group) {
            self.relax(core, via, base, problem.cost(group, core));
        }
        let open = |&&core: &&usize| problem.price.is_none() && self.group_on[core].is_none();
        let mut free = self.free.iter().rev().filter(open);
        let fit = free.find_map(|&core| problem.cost(group, core).map(|cost| (core, cost)));
        if let Some((core, cost)) = fit {
            self.relax(core, via, base, Some(cost));
            if problem.seats[core].move_cost == self.least_price {
                return;
            }
        }
        for core in 0..self.core_dual.len() {
            self.relax(core, via, base, problem.cost(group, core));
        }
    }

    fn relax(&mut self, core: usize, via: Option<usize>, base: i64, cost: Option<i64>) {
        let Some(cost) = cost.filter(|_| !self.done[core]) else {
            return;
        };
        let distance = base + cost - self.core_dual[core];
        let known = self.distance[core];
        if known.is_none() {
            self.reached.push(core);
        }
        if known.is_none_or(|known| distance < known) {
            self.distance[core] = Some(distance);
            self.from[core] = via;
            let is_taken = self.group_on[core].is_some();
            self.nearest.push(Reverse((distance, is_taken, core)));
        }
    }

    /// The nearest core that is not done; a free one among equals.
    fn pop_nearest(&mut self) -> Option<usize> {
        while let Some(Reverse((distance, _, core))) = self.nearest.pop() {
            if !self.done[core] && self.distance[core] == Some(distance) {
                return Some(core);
            }
        }
        None
    }

    fn update(&mut self, seeker: usize, reached: i64) {
        self.group_dual[seeker] += reached;
        for &core in self.reached.iter().filter(|&&core| self.done[core]) {
            if let (Some(distance), Some(group)) = (self.distance[core], self.group_on[core]) {
                self.core_dual[core] -= reached - distance;
                self.group_dual[group] += reached - distance;
            }
        }
    }

    /// Passes cores along the path, so that the seeker gets one.
    fn take(&mut self, reached: usize, seeker: usize) {
        let mut core = reached;
        while let Some(before) = self.from[core] {
            self.group_on[core] = self.group_on[before];
            core = before;
        }
        self.group_on[core] = Some(seeker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The least cost by trying every core for every group.
    fn brute(table: &[Vec<Option<u64>>], used: &mut Vec<bool>) -> Option<u64> {
        let Some((row, rest)) = table.split_first() else {
            return Some(0);
        };
        let mut best = None;
        for core in 0..used.len() {
            if let (false, Some(cost)) = (used[core], row[core]) {
                used[core] = true;
                let total = brute(rest, used).map(|below| below + cost);
                used[core] = false;
                best = [best, total].into_iter().flatten().min();
            }
        }
        best
    }

    type Arrangement = (Vec<Vec<usize>>, Vec<Option<usize>>, Vec<Seat>, u64);

    fn arrangement() -> impl Strategy<Value = Arrangement> {
        (1usize..7, 1usize..5).prop_flat_map(|(cores, ways)| {
            let threads = cores * ways;
            let groups = (0..cores)
                .map(|g| (g * ways..(g + 1) * ways).collect())
                .collect::<Vec<_>>();
            let seat =
                (ways..ways + 2, 0u32..4).prop_map(|(pus, move_cost)| Seat { pus, move_cost });
            (
                Just(groups),
                prop::collection::vec(prop::option::of(0..cores), threads),
                prop::collection::vec(seat, cores..=cores + 1),
                any::<u64>(),
            )
        })
    }

    proptest! {
        #[test]
        fn no_assignment_costs_less(
            (groups, on, seats, mask) in arrangement(),
            strict: bool,
            prices in prop::option::of(prop::collection::vec(0u32..9, 64)),
        ) {
            let allowed = |group: usize, core: usize| !strict || mask >> (group * 8 + core) & 3 != 0;
            let price = |group: usize, core: usize| {
                prices.as_ref().map_or(0, |prices| prices[group * 8 + core])
            };
            let table: Vec<Vec<Option<u64>>> = (0..groups.len()).map(|g| (0..seats.len()).map(|c| {
                let fits = groups[g].len() <= seats[c].pus && allowed(g, c);
                let moving = moves(&groups[g], &on, c) as u64 * u64::from(seats[c].move_cost);
                fits.then(|| moving + u64::from(price(g, c)))
            }).collect()).collect();
            let best = brute(&table, &mut vec![false; seats.len()]);
            let found = match prices {
                Some(_) => assign_priced(&groups, &on, &seats, allowed, &price),
                None => assign(&groups, &on, &seats, allowed),
            };
            match found {
                Ok(found) => {
                    prop_assert_eq!(Some(found.cost), best);
                    let mut cores = found.cores.clone();
                    cores.sort_unstable();
                    cores.dedup();
                    prop_assert_eq!(cores.len(), groups.len());
                    prop_assert!((0..groups.len()).all(|g| table[g][found.cores[g]].is_some()));
                }
                Err(_) => prop_assert_eq!(best, None),
            }
        }
    }

    #[test]
    fn unchanged_groups_stay_on_their_cores() {
        let seats = [Seat {
            pus: 2,
            move_cost: 1,
        }; 3];
        let on = [Some(2), Some(2), Some(0), Some(1), Some(0), Some(1)];
        let groups = vec![vec![2, 4], vec![3, 5], vec![0, 1]];
        let found = assign(&groups, &on, &seats, |_, _| true).unwrap();
        assert_eq!((found.cores, found.moved), (vec![0, 1, 2], 0));
    }

    #[test]
    fn no_room_is_an_error() {
        let seats = [Seat {
            pus: 1,
            move_cost: 1,
        }];
        let error = assign(&[vec![0, 1]], &[None, None], &seats, |_, _| true).unwrap_err();
        assert_eq!(error, MatchingError::NoSeat { group: 0 });
        assert!(assign(&[vec![7]], &[None], &seats, |_, _| true).is_err());
    }
}
