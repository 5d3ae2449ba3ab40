//! Promises: resting cores do not change the rates that the iteration settles at, nor does what is
//! known of phases from other sets.

use super::*;
use crate::contention::Demand;
use crate::machine::presets;
use crate::phase::Phase;
use crate::program::presets as programs;

/// A set that fills a machine with programs in a mixed order.
fn demands(chip: &Chip, seed: usize) -> Vec<Demand> {
    let names: Vec<&str> = programs::names().collect();
    let demand = |pu: usize| {
        let program = programs::find(names[(31 * seed + 17 * pu) % names.len()]).unwrap();
        Demand {
            phase: Arc::new(Phase::new(&program.phases[0])),
            intensity: 1.0,
            program: pu as u32,
            text: pu as u32,
            shared_data: 0.0,
            shared_code: 0.0,
            lock: None,
            home_node: chip.places()[pu].node,
        }
    };
    (0..chip.places().len()).map(demand).collect()
}

fn running(demands: &[Demand]) -> Vec<RunningThread<'_>> {
    let each = demands.iter().enumerate();
    each.map(|(pu, demand)| RunningThread { pu, demand })
        .collect()
}

/// The largest change of a rate in a pass over all cores, after a set has settled.
fn change_afterwards(chip: &Chip, demands: &[Demand]) -> f64 {
    let running = running(demands);
    let sharing = SharedStructures::new(chip, &mut KnownPhases::default(), &running);
    let mut state = SolverState::new(&sharing);
    let (residual, _) = state.iterate(&sharing);
    assert!(residual <= TOLERANCE, "{residual}");
    state.rests.fill(false);
    state.update(&sharing);
    state.step(STEP, &sharing)
}

#[test]
fn settled_rates_stand_when_cores_wake() {
    for (machine, smt) in [("power7", 4), ("power8", 2), ("core-i7-6700", 2)] {
        let chip = Chip::new(&presets::find(machine).unwrap(), Some(smt)).unwrap();
        for seed in 0..8 {
            let change = change_afterwards(&chip, &demands(&chip, seed));
            assert!(change <= TOLERANCE, "{machine}, {seed}: {change}");
        }
    }
}

#[test]
fn cores_wake_when_all_rest_or_last() {
    let chip = Chip::new(&presets::find("power8").unwrap(), Some(2)).unwrap();
    let demands = demands(&chip, 0);
    let running = running(&demands);
    let sharing = SharedStructures::new(&chip, &mut KnownPhases::default(), &running);
    let mut state = SolverState::new(&sharing);
    assert!(state.wake(false));
    state.rests[0] = true;
    assert!(!state.wake(false) && state.rests[0]);
    assert!(state.wake(true) && !state.rests[0]);
    state.rests.fill(true);
    assert!(state.wake(false) && !state.rests.contains(&true));
}

#[test]
fn known_phases_change_no_bit_of_a_solution() {
    for (machine, smt) in [("power8", 4), ("acmp-1+3", 1), ("core-i9-12900k", 2)] {
        let chip = Chip::new(&presets::find(machine).unwrap(), Some(smt)).unwrap();
        let solver = Solver::new(Arc::new(chip));
        let mut demands = demands(solver.chip(), 3);
        let mut known = KnownPhases::default();
        // The same phases at another intensity, on other cores, and with fewer threads on some.
        for (intensity, first) in [(1.0, 0), (1.3, 0), (0.8, 1), (0.8, 3)] {
            demands.iter_mut().for_each(|d| d.intensity = intensity);
            demands.rotate_left(1);
            let running = &running(&demands)[first..];
            assert_eq!(
                solver.solve_with(&mut known, running),
                solver.solve(running)
            );
        }
    }
}
