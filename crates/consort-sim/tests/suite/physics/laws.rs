//! Laws that hold for every valid machine, program and placement.

use super::build::demand;
use super::random::{draw, machines, phases, placements};
use crate::small::possible::{impossible, overload};
use consort_sim::chip::Chip;
use consort_sim::contention::{Demand, RunningThread, Solution, Solver};
use consort_sim::machine::MachineSpec;
use consort_sim::program::{LockSpec, PhaseSpec};
use proptest::prelude::*;
use std::sync::Arc;

/// Relative slack: the solver's tolerance, with a margin for what it amplifies.
const SLACK: f64 = 1e-4;

struct Case {
    chip: Arc<Chip>,
    demands: Vec<Demand>,
    pus: Vec<usize>,
}

impl Case {
    fn new(machine: &MachineSpec, phases: &[PhaseSpec], seed: u64) -> Self {
        let chip = Arc::new(Chip::new(machine, None).unwrap());
        let pus = draw(chip.places().len(), phases.len(), seed);
        let nodes = chip.domains().nodes;
        let mut demands: Vec<Demand> = phases
            .iter()
            .enumerate()
            .map(|(i, phase)| demand(phase, i as u32))
            .collect();
        for (i, demand) in demands.iter_mut().enumerate() {
            demand.home_node = i % nodes;
        }
        Self { chip, demands, pus }
    }

    fn running(&self, which: &[usize]) -> Vec<RunningThread<'_>> {
        let running = |&i: &usize| RunningThread {
            pu: self.pus[i],
            demand: &self.demands[i],
        };
        which.iter().map(running).collect()
    }

    fn solve(&self, which: &[usize]) -> Solution {
        Solver::new(Arc::clone(&self.chip)).solve(&self.running(which))
    }

    fn all(&self) -> Vec<usize> {
        (0..self.pus.len()).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn solutions_are_finite_positive_and_within_capacity(
        machine in machines(),
        (phases, seed) in placements(),
    ) {
        let chip = Chip::new(&machine, None).unwrap();
        let n = phases.len().min(chip.places().len());
        let case = Case::new(&machine, &phases[..n], seed);
        let solution = case.solve(&case.all());
        // That includes a solution that did not settle and does not say so.
        prop_assert_eq!(impossible(&solution), None);
        prop_assert_eq!(overload(&case.chip, &case.running(&case.all()), &solution), None);
    }

    #[test]
    fn nobody_is_faster_in_company(
        machine in machines(),
        (phases, seed) in placements(),
    ) {
        let chip = Chip::new(&machine, None).unwrap();
        let n = phases.len().min(chip.places().len());
        let case = Case::new(&machine, &phases[..n], seed);
        let together = case.solve(&case.all());
        // What has not settled says so, and promises no more than its capacities.
        prop_assume!(together.converged);
        for i in 0..n {
            let alone = case.solve(&[i]);
            let (with, without) = (&together.threads[i], &alone.threads[0]);
            prop_assert!(with.ips <= without.ips * (1.0 + SLACK), "{with:#?} {without:#?}");
        }
    }

    #[test]
    fn the_order_of_threads_decides_nothing(
        machine in machines(),
        (phases, seed) in placements(),
        shuffle in any::<u64>(),
    ) {
        let chip = Chip::new(&machine, None).unwrap();
        let n = phases.len().min(chip.places().len());
        let case = Case::new(&machine, &phases[..n], seed);
        let straight = case.solve(&case.all());
        prop_assume!(straight.converged);
        let order = draw(n, n, shuffle);
        let shuffled = case.solve(&order);
        for (at, &i) in order.iter().enumerate() {
            let ratio = shuffled.threads[at].ips / straight.threads[i].ips;
            prop_assert!((ratio - 1.0).abs() < SLACK, "{ratio}");
        }
    }

    #[test]
    fn identical_cores_can_be_exchanged(
        machine in machines(),
        (first, second) in (phases(), phases()),
    ) {
        let mut machine = machine;
        machine.layout.cluster[0].l2_domains += 1;
        let chip = Arc::new(Chip::new(&machine, None).unwrap());
        let of = |core: usize| {
            (0..chip.places().len()).find(|&pu| chip.places()[pu].core == core).unwrap()
        };
        let demands = [demand(&first, 0), demand(&second, 1)];
        let solve = |pus: [usize; 2]| {
            let running: Vec<_> = pus
                .iter()
                .zip(&demands)
                .map(|(&pu, demand)| RunningThread { pu, demand })
                .collect();
            Solver::new(Arc::clone(&chip)).solve(&running)
        };
        let group = machine.layout.cluster[0].cores_per_l2 as usize;
        // One thread on each of two L2 domains of the first LLC domain, and the other way round.
        let (one, other) = (solve([of(0), of(group)]), solve([of(group), of(0)]));
        for (a, b) in one.threads.iter().zip(&other.threads) {
            prop_assert!((a.ips / b.ips - 1.0).abs() < SLACK);
        }
    }

    #[test]
    fn a_bigger_llc_never_hurts_who_is_alone(
        machine in machines(),
        phase in phases(),
        factor in 1.0f64..4.0,
    ) {
        let mut bigger = machine.clone();
        bigger.llc.size_kib *= factor;
        let ips = |m: &MachineSpec| Case::new(m, std::slice::from_ref(&phase), 0).solve(&[0]).threads[0].ips;
        prop_assert!(ips(&bigger) >= ips(&machine) * (1.0 - SLACK));
    }

    #[test]
    fn a_bigger_predictor_never_hurts_who_is_alone(
        machine in machines(),
        phase in phases(),
        factor in 1.0f64..8.0,
    ) {
        let mut bigger = machine.clone();
        for core in bigger.core_types.values_mut() {
            core.branch_predictor.size_kib *= factor;
        }
        let ips = |m: &MachineSpec| Case::new(m, std::slice::from_ref(&phase), 0).solve(&[0]).threads[0].ips;
        prop_assert!(ips(&bigger) >= ips(&machine) * (1.0 - SLACK));
    }

    #[test]
    fn rates_are_continuous_in_the_profile(
        machine in machines(),
        (phases, seed) in placements(),
        which in 0usize..5,
    ) {
        let chip = Chip::new(&machine, None).unwrap();
        let n = phases.len().min(chip.places().len());
        let case = Case::new(&machine, &phases[..n], seed);
        let mut near = phases[..n].to_vec();
        const NUDGE: f64 = 1.0 + 1e-5;
        match which {
            0 => near[0].data_mpki.iter_mut().for_each(|m| *m *= NUDGE),
            1 => near[0].ilp.a *= NUDGE,
            2 => near[0].mlp.value *= NUDGE,
            3 => near[0].branch.mpki *= NUDGE,
            _ => near[0].writeback_share = (near[0].writeback_share * NUDGE).min(1.0),
        }
        let nudged = Case::new(&machine, &near, seed);
        let (a, b) = (case.solve(&case.all()), nudged.solve(&nudged.all()));
        prop_assume!(a.converged && b.converged);
        for (x, y) in a.threads.iter().zip(&b.threads) {
            prop_assert!((x.ips / y.ips - 1.0).abs() < 1e-2, "{} {}", x.ips, y.ips);
        }
    }
}

/// Threads of two programs on some of a machine's CPUs; none where `picks` says 0.
fn teams(chip: &Chip, demands: &[Demand; 2], picks: &[usize]) -> Vec<(usize, Demand)> {
    let pus = (0..chip.places().len()).zip(picks);
    let picked = pus.filter_map(|(pu, &pick)| Some((pu, demands.get(pick.checked_sub(1)?)?)));
    picked.map(|(pu, demand)| (pu, demand.clone())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn one_that_stands_for_its_twins_runs_as_each_of_them_would(
        machine in machines(),
        (first, second) in (phases(), phases()),
        (data, code) in (0.0f64..=1.0, 0.0f64..=1.0),
        picks in prop::collection::vec(0usize..3, 24),
    ) {
        let chip = Arc::new(Chip::new(&machine, None).unwrap());
        let of = |phase, program| Demand {
            shared_data: data,
            shared_code: code,
            lock: Some(LockSpec { per_minstr: 20.0, hold_instr: 500.0, count: 2 }),
            ..demand(phase, program)
        };
        let alike = teams(&chip, &[of(&first, 0), of(&second, 1)], &picks);
        let mut unlike = alike.clone();
        for (i, (_, demand)) in unlike.iter_mut().enumerate() {
            demand.intensity += i as f64 * 1e-13;
        }
        let solve = |threads: &[(usize, Demand)]| {
            let running = threads.iter().map(|(pu, demand)| RunningThread { pu: *pu, demand });
            Solver::new(Arc::clone(&chip)).solve(&running.collect::<Vec<_>>())
        };
        let (a, b) = (solve(&alike), solve(&unlike));
        prop_assume!(a.converged && b.converged);
        for (x, y) in a.threads.iter().zip(&b.threads) {
            prop_assert!((x.ips / y.ips - 1.0).abs() < SLACK, "{} {}", x.ips, y.ips);
        }
        for (x, y) in a.memory_utilisation.iter().zip(&b.memory_utilisation) {
            prop_assert!((x - y).abs() < SLACK, "{x} {y}");
        }
    }
}
