//! The inverse model: stacks alone from stacks together.

mod component;
mod core_inversion;
mod joint;

use self::core_inversion::CoreInversion;
use super::error::ModelError;
use super::level::LevelParameters;

/// Answer of the inverse model for the threads of one core.
#[doc(alias = "inverse model")]
#[derive(Clone, Debug, PartialEq)]
pub struct InverseSolution {
    components: usize,
    own: Vec<f64>,
    slowdowns: super::matrix::MatrixRow,
    guesses_kept: Vec<usize>,
    sensitivity: f64,
    residual: f64,
}

impl InverseSolution {
    /// The ST stack of a thread, in the order in which the threads were given:
    /// shares that sum to 1, or all 0 for an idle thread. Empty for a thread
    /// that was not given.
    pub fn st_stack(&self, thread: usize) -> &[f64] {
        let mut stacks = self.own.chunks_exact(self.components);
        stacks.nth(thread).unwrap_or_default()
    }

    /// The slowdown of a thread as the model explains what was measured, 1 for
    /// one that ran by itself; may be below 1 where [`LevelParameters::slowdown`] is not.
    pub fn slowdown(&self, thread: usize) -> Option<f64> {
        let known = thread < self.own.len() / self.components;
        known.then(|| self.slowdowns[thread])
    }

    /// Components (by index) without roots in 0 to 1, for which the measured
    /// share stands in.
    pub fn unsolved_components(&self) -> &[usize] {
        &self.guesses_kept
    }

    /// Factor by which an error of the measured stacks can grow: share points of an ST stack per
    /// share point measured, for the worst component, slowdowns held fixed. About 1 for published
    /// parameters; infinite where the equations of a component do not determine its shares. Above
    /// about 10, do not rely on the stacks.
    pub fn sensitivity(&self) -> f64 {
        self.sensitivity
    }

    /// The largest difference between the stacks that the forward model gives
    /// for these and what was measured, in shares of SMT cycles. Near 0 where
    /// the model explains the measurement.
    pub fn residual(&self) -> f64 {
        self.residual
    }
}

impl LevelParameters {
    /// The ST stacks of the threads of one core from their SMT stacks, each in
    /// one slice (section 4 of the paper): the measured shares are the first
    /// guess, the forward model gives the slowdowns of the guess, which bring
    /// the measured stacks to the scale of ST cycles, where the equations of
    /// each component are solved for the shares alone. This is repeated with
    /// the new stacks until nothing moves, because one pass leaves the error
    /// of the guessed slowdowns in the result.
    ///
    /// Amounts need no scale; negative ones and NaN count as 0. A thread of all
    /// 0 is idle and no co-runner; a thread without co-runners keeps its stack.
    /// Fewer threads than the level has ways are taken as they are.
    ///
    /// For two threads the equations of a component are singular where
    /// `(beta - gamma) (beta + gamma + delta (c1 + c2)) = 0`: with `beta` near
    /// `gamma` both threads look alike whoever causes the cycles, and with
    /// `delta < 0` there is a fold at `c1 + c2 = (beta + gamma) / -delta`
    /// beyond which two pairs of shares give the same measurement; of two the
    /// one nearer to the guess is taken. Published parameters of POWER8 have
    /// such a fold in the fixed-point component at a sum of 1.27. A component
    /// with `beta` near 0 cannot be seen through at all.
    /// [`InverseSolution::sensitivity`] says how near to that the solution is.
    ///
    /// # Errors
    /// No thread, more than the level has ways, or a stack of another number of
    /// components.
    pub fn invert(&self, measured: &[&[f64]]) -> Result<InverseSolution, ModelError> {
        self.check_measured(measured)?;
        Ok(CoreInversion::new(self, measured).invert())
    }

    fn check_measured(&self, measured: &[&[f64]]) -> Result<(), ModelError> {
        let (threads, ways) = (measured.len(), self.ways());
        if threads == 0 || threads > ways as usize {
            return Err(ModelError::Threads { threads, ways });
        }
        let expected = self.parameters().len();
        match measured.iter().find(|stack| stack.len() != expected) {
            Some(stack) => Err(ModelError::Components {
                found: stack.len(),
                expected,
            }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
