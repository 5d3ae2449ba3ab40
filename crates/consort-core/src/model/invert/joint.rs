//! Joint solution of all components and slowdowns of one core.
//!
//! It is the fallback if the repeated passes end at no solution. That happens near a fold, where
//! the slowdowns of the guess put a component out of reach. Newton's method runs on the equations
//! of every component, with the slowdowns as further unknowns and the sums of the stacks as their
//! equations. The shares are eliminated, so that no system is larger than the number of threads.
//! The start must not be on the fold itself.

use crate::model::invert::CoreInversion;
use crate::model::invert::equations::ComponentEquations;
use crate::model::invert::equations::{LinearSystem, MOST, MatrixRow};

const STEPS: usize = 40;

/// Longest step of a share, so that a bad start does not diverge.
const LONGEST_STEP: f64 = 0.25;

/// A step below this ends the search, in shares.
const SMALL_STEP: f64 = 1e-12;

impl CoreInversion<'_> {
    /// Replaces the stacks by a solution near them; false if none is found, and then the stacks are
    /// useless.
    pub(super) fn solve_jointly(&mut self) -> bool {
        let mut slowdowns = self.slowdowns();
        for _ in 0..STEPS {
            let Some(moved) = self.step_jointly(&mut slowdowns) else {
                return false;
            };
            if moved < SMALL_STEP {
                return self.clamp_own();
            }
        }
        false
    }

    fn step_jointly(&mut self, slowdowns: &mut MatrixRow) -> Option<f64> {
        let systems = self.systems(slowdowns);
        let change = self.slowdown_change(&systems)?;
        let steps: Option<Vec<MatrixRow>> = systems.iter().map(|s| s.step(&change)).collect();
        let steps = steps?;
        let sizes = steps.iter().flatten().map(|step| step.abs());
        let largest = sizes.fold(0.0, f64::max);
        let part = (LONGEST_STEP / largest).min(1.0);
        for (system, step) in systems.iter().zip(&steps) {
            self.advance(system.component, step, part);
        }
        for (slowdown, change) in slowdowns.iter_mut().zip(&change[..self.n]) {
            *slowdown += part * change;
        }
        Some(largest)
    }

    /// Equations of every component that the model has.
    fn systems(&self, slowdowns: &MatrixRow) -> Vec<ComponentSystem> {
        let known = |component: &usize| !self.parameters(*component).is_absent();
        let system = |component| ComponentSystem {
            component,
            measured: self.measured_column(component),
            equations: self.equations(component, slowdowns, false),
        };
        (0..self.components).filter(known).map(system).collect()
    }

    /// Change of the slowdowns that makes all stacks sum to 1.
    fn slowdown_change(&self, systems: &[ComponentSystem]) -> Option<MatrixRow> {
        let n = self.n;
        let rows = [[0.0; MOST]; MOST];
        let mut of_all = LinearSystem { n, rows };
        let mut missing = self.missing_shares();
        for system in systems {
            let back = system.jacobian().solve(system.residual())?;
            missing.iter_mut().zip(&back).for_each(|(m, b)| *m += b);
            for thread in 0..n {
                let mut push = [0.0; MOST];
                push[thread] = system.measured[thread];
                let pushed = system.jacobian().solve(push)?;
                for (row, value) in of_all.rows.iter_mut().zip(&pushed[..n]) {
                    row[thread] += value;
                }
            }
        }
        of_all.solve(missing)
    }
}

/// One component of all threads, linearised at the current stacks.
struct ComponentSystem {
    component: usize,
    measured: MatrixRow,
    equations: ComponentEquations,
}

impl ComponentSystem {
    fn jacobian(&self) -> LinearSystem {
        self.equations.jacobian(&self.equations.guess)
    }

    fn residual(&self) -> MatrixRow {
        self.equations.residual(&self.equations.guess)
    }

    /// Change of the shares that follows a change of the slowdowns.
    fn step(&self, slowdown_change: &MatrixRow) -> Option<MatrixRow> {
        let mut right = self.residual();
        let pushes = self.measured.iter().zip(slowdown_change);
        for (value, (measured, change)) in right.iter_mut().zip(pushes) {
            *value = measured * change - *value;
        }
        right[self.equations.n..].fill(0.0);
        self.jacobian().solve(right)
    }
}
