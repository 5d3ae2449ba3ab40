//! The inverse model: stacks alone from stacks together.

mod equations;
mod joint;
#[cfg(test)]
mod tests;

use crate::model::ModelError;
use crate::model::invert::equations::{
    ComponentEquations, MOST, MatrixRow, SLACK, solve_two_threads,
};
use crate::model::level::{ComponentParameters, LevelParameters, share};

/// Result of the inverse model for the threads of one core.
#[doc(alias = "inverse model")]
#[derive(Clone, Debug, PartialEq)]
pub struct InverseSolution {
    components: usize,
    own: Vec<f64>,
    slowdowns: MatrixRow,
    guesses_kept: Vec<usize>,
    sensitivity: f64,
    residual: f64,
}

impl InverseSolution {
    /// The ST stack of a thread, by its index in the input: shares that sum to 1, or all 0 for an
    /// idle thread. Empty for an index beyond the input.
    pub fn st_stack(&self, thread: usize) -> &[f64] {
        let mut stacks = self.own.chunks_exact(self.components);
        stacks.nth(thread).unwrap_or_default()
    }

    /// The slowdown of a thread by which the model explains the measurement; 1 for a thread without
    /// co-runners. It may be below 1, unlike [`LevelParameters::slowdown`].
    pub fn slowdown(&self, thread: usize) -> Option<f64> {
        let known = thread < self.own.len() / self.components;
        known.then(|| self.slowdowns[thread])
    }

    /// Indices of components without roots in 0 to 1; the measured share replaces them.
    pub fn unsolved_components(&self) -> &[usize] {
        &self.guesses_kept
    }

    /// Factor by which an error of the measured stacks can grow: share points of an ST stack per
    /// share point measured, for the worst component, with fixed slowdowns. About 1 for published
    /// parameters; infinite if the equations of a component do not determine its shares. Do not
    /// rely on stacks above about 10.
    pub fn sensitivity(&self) -> f64 {
        self.sensitivity
    }

    /// Largest difference between the forward prediction for these stacks and the measurement, in
    /// shares of SMT cycles. Near 0 if the model explains the measurement.
    pub fn residual(&self) -> f64 {
        self.residual
    }
}

impl LevelParameters {
    /// Computes the ST stacks of the threads of one core from their SMT stacks, each in one slice
    /// (section 3.3 of the paper). The measured shares are the first guess, and the forward model
    /// gives the slowdowns of the guess. These scale the measured stacks to ST cycles, where the
    /// equations of each component are solved for the shares alone. This repeats with the new
    /// stacks until nothing moves, because one pass leaves the error of the guessed slowdowns in
    /// the result.
    ///
    /// Amounts need no scale; negative ones and NaN count as 0. A thread of all 0 is idle and no
    /// co-runner; a thread without co-runners keeps its stack. Fewer threads than the level has
    /// ways are allowed.
    ///
    /// For two threads the equations of a component are singular if `(beta - gamma) (beta + gamma +
    /// delta (c1 + c2)) = 0`: with `beta` near `gamma` both threads look alike, whichever causes
    /// the cycles, and with `delta < 0` there is a fold at `c1 + c2 = (beta + gamma) / -delta`
    /// beyond which two pairs of shares give the same measurement; the pair nearer to the guess is
    /// taken. Published parameters of POWER8 have such a fold in the fixed-point component at a sum
    /// of 1.27. A component with `beta` near 0 cannot be inverted at all.
    /// [`InverseSolution::sensitivity`] measures how near to that the solution is.
    ///
    /// # Errors
    /// If there is no thread, more than the level has ways, or a stack of another number of
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

/// Most rounds; each gains about a digit.
const ROUNDS: usize = 60;

/// The iteration ends if no share moves more than this.
const SETTLED: f64 = 1e-11;

/// Largest residual of stacks that explain the measurement.
const EXPLAINED: f64 = 1e-8;

/// Least slowdown when a stack is scaled to ST cycles, because parameters far from any processor
/// can predict less than nothing.
const LEAST_SLOWDOWN: f64 = 0.05;

/// The running threads of one core. Stacks are stored thread after thread.
struct CoreInversion<'a> {
    level: &'a LevelParameters,
    components: usize,
    /// Places of the running threads among the given ones.
    running: [usize; MOST],
    n: usize,
    /// Measured stacks, normalised.
    measured: Vec<f64>,
    own: Vec<f64>,
}

/// Findings of the last round.
#[derive(Default)]
struct InversionFindings {
    sensitivity: f64,
    guesses_kept: Vec<usize>,
}

impl<'a> CoreInversion<'a> {
    fn new(level: &'a LevelParameters, stacks: &[&[f64]]) -> Self {
        let components = level.parameters().len();
        let mut measured = vec![0.0; stacks.len() * components];
        let mut running = [0; MOST];
        let mut n = 0;
        let places = measured.chunks_exact_mut(components).zip(stacks);
        for (place, (clean, stack)) in places.enumerate() {
            if normalise(stack, clean) {
                running[n] = place;
                n += 1;
            }
        }
        Self {
            level,
            components,
            running,
            n,
            own: measured.clone(),
            measured,
        }
    }

    fn invert(mut self) -> InverseSolution {
        let mut verdict = InversionFindings::default();
        if self.n > 1 {
            self.settle();
            self.rescue();
            verdict = self.judge();
        }
        self.finish(verdict)
    }

    /// Iterates: slowdowns from the current stacks, new stacks from those.
    fn settle(&mut self) {
        let mut before = self.own.clone();
        for _ in 0..ROUNDS {
            match self.n {
                2 => self.pass_of_two(),
                _ => self.pass(),
            }
            self.normalise_own();
            let moves = before.iter().zip(&self.own).map(|(a, b)| (a - b).abs());
            if moves.fold(0.0, f64::max) < SETTLED {
                break;
            }
            before.copy_from_slice(&self.own);
        }
    }

    fn pass(&mut self) {
        let slowdowns = self.slowdowns();
        for component in 0..self.components {
            let solved = self.equations(component, &slowdowns, true).solve();
            let shares = solved.unwrap_or_else(|| self.measured_column(component));
            self.store(component, &shares);
        }
    }

    /// Does the same pass for two threads, without rows as long as for the widest core.
    fn pass_of_two(&mut self) {
        let slowdowns = self.slowdowns();
        let [first, second, ..] = self.running.map(|place| place * self.components);
        for (component, p) in self.level.parameters().iter().enumerate() {
            let (one, other) = (first + component, second + component);
            let measured = [self.measured[one], self.measured[other]];
            let shares = if p.is_never_alone() {
                [0.0; 2]
            } else {
                let together = [measured[0] * slowdowns[0], measured[1] * slowdowns[1]];
                let guess = [self.own[one], self.own[other]];
                solve_two_threads(p, together, guess, true).unwrap_or(measured)
            };
            self.own[one] = shares[0];
            self.own[other] = shares[1];
        }
    }

    /// Searches jointly if the passes ended at no solution: from the first guess, then from their
    /// end.
    fn rescue(&mut self) {
        if self.is_explained() {
            return;
        }
        let ended = self.own.clone();
        for start in [self.measured.clone(), ended.clone()] {
            self.own = start;
            if self.solve_jointly() && self.is_explained() {
                return;
            }
        }
        self.own = ended;
    }

    fn is_explained(&self) -> bool {
        self.residual(&self.slowdowns()) < EXPLAINED
    }

    /// Does the last round: takes roots only, and the measured share if there are none.
    fn judge(&mut self) -> InversionFindings {
        let slowdowns = self.slowdowns();
        let largest = slowdowns[..self.n].iter().copied().fold(0.0, f64::max);
        let mut verdict = InversionFindings::default();
        for component in 0..self.components {
            let equations = self.equations(component, &slowdowns, false);
            if let Some(shares) = equations.solve() {
                let growth = largest * equations.sensitivity(&shares);
                verdict.sensitivity = verdict.sensitivity.max(growth);
                self.store(component, &shares);
            } else {
                self.store(component, &self.measured_column(component));
                if equations.together[..self.n].iter().any(|y| *y > 0.0) {
                    verdict.guesses_kept.push(component);
                }
            }
        }
        self.normalise_own();
        verdict
    }

    fn finish(self, verdict: InversionFindings) -> InverseSolution {
        let slowdowns = self.slowdowns();
        let residual = self.residual(&slowdowns);
        let mut by_place = [1.0; MOST];
        for (i, place) in self.running[..self.n].iter().enumerate() {
            by_place[*place] = slowdowns[i];
        }
        InverseSolution {
            components: self.components,
            own: self.own,
            slowdowns: by_place,
            guesses_kept: verdict.guesses_kept,
            sensitivity: verdict.sensitivity,
            residual,
        }
    }

    fn equations(
        &self,
        component: usize,
        slowdowns: &MatrixRow,
        lenient: bool,
    ) -> ComponentEquations {
        let mut together = self.measured_column(component);
        for (value, slowdown) in together.iter_mut().zip(slowdowns) {
            *value *= slowdown;
        }
        ComponentEquations {
            parameters: *self.parameters(component),
            n: self.n,
            together,
            guess: self.column(&self.own, component),
            lenient,
        }
    }

    fn slowdowns(&self) -> MatrixRow {
        let mut slowdowns = [1.0; MOST];
        if self.n < 2 {
            return slowdowns;
        }
        if self.n == 2 {
            (slowdowns[0], slowdowns[1]) = self.slowdowns_of_two();
            return slowdowns;
        }
        for (i, slowdown) in slowdowns[..self.n].iter_mut().enumerate() {
            *slowdown = self.components_together(i).sum::<f64>().max(LEAST_SLOWDOWN);
        }
        slowdowns
    }

    fn slowdowns_of_two(&self) -> (f64, f64) {
        let stack = |i: usize| &self.own[self.running[i] * self.components..][..self.components];
        let (mut first, mut second) = (0.0, 0.0);
        let both = stack(0).iter().zip(stack(1));
        for (p, (one, other)) in self.level.parameters().iter().zip(both) {
            let all = one + other;
            first += p.predict_component(*one, all - one);
            second += p.predict_component(*other, all - other);
        }
        (first.max(LEAST_SLOWDOWN), second.max(LEAST_SLOWDOWN))
    }

    /// Components of a running thread together, in ST cycles.
    fn components_together(&self, i: usize) -> impl Iterator<Item = f64> {
        let running = &self.running[..self.n];
        let stack = |place: usize| &self.own[place * self.components..][..self.components];
        let own = self.level.parameters().iter().zip(stack(running[i]));
        own.enumerate().map(move |(component, (p, own))| {
            let all: f64 = running.iter().map(|&place| stack(place)[component]).sum();
            p.predict_component(*own, all - own)
        })
    }

    fn residual(&self, slowdowns: &MatrixRow) -> f64 {
        let mut largest = 0.0;
        if self.n < 2 {
            return largest;
        }
        for (i, slowdown) in slowdowns[..self.n].iter().enumerate() {
            let measured = &self.measured[self.running[i] * self.components..];
            for (together, measured) in self.components_together(i).zip(measured) {
                largest = f64::max(largest, (together / slowdown - measured).abs());
            }
        }
        largest
    }

    /// One component of all running threads.
    fn column(&self, stacks: &[f64], component: usize) -> MatrixRow {
        let mut column = [0.0; MOST];
        for (value, place) in column.iter_mut().zip(&self.running[..self.n]) {
            *value = stacks[place * self.components + component];
        }
        column
    }

    fn parameters(&self, component: usize) -> &ComponentParameters {
        &self.level.parameters()[component]
    }

    fn measured_column(&self, component: usize) -> MatrixRow {
        self.column(&self.measured, component)
    }

    /// 1 less the sum of every running thread's stack.
    fn missing_shares(&self) -> MatrixRow {
        let mut missing = [0.0; MOST];
        for (value, place) in missing.iter_mut().zip(&self.running[..self.n]) {
            let stack = &self.own[place * self.components..(place + 1) * self.components];
            *value = 1.0 - stack.iter().sum::<f64>();
        }
        missing
    }

    /// Adds a part of a step to one component of all running threads.
    fn advance(&mut self, component: usize, step: &MatrixRow, part: f64) {
        for (step, place) in step.iter().zip(&self.running[..self.n]) {
            self.own[place * self.components + component] += part * step;
        }
    }

    /// Clamps shares just outside 0 to 1; false if one is farther out.
    fn clamp_own(&mut self) -> bool {
        let near = -SLACK..=1.0 + SLACK;
        let all_near = self.own.iter().all(|share| near.contains(share));
        self.own
            .iter_mut()
            .for_each(|share| *share = share.clamp(0.0, 1.0));
        all_near
    }

    fn store(&mut self, component: usize, shares: &MatrixRow) {
        for (share, place) in shares.iter().zip(&self.running[..self.n]) {
            self.own[place * self.components + component] = *share;
        }
    }

    /// Normalises the stack of every running thread. The measured one replaces an empty one.
    fn normalise_own(&mut self) {
        for place in &self.running[..self.n] {
            let range = place * self.components..(place + 1) * self.components;
            let stack = &mut self.own[range.clone()];
            let sum: f64 = stack.iter().sum();
            if sum > 0.0 {
                stack.iter_mut().for_each(|share| *share /= sum);
            } else {
                stack.copy_from_slice(&self.measured[range]);
            }
        }
    }
}

/// Writes the shares of a stack; false if the stack is empty.
fn normalise(stack: &[f64], shares: &mut [f64]) -> bool {
    // Amounts are bounded first so that their sum stays finite.
    let clean = |amount: &f64| share(*amount, f64::MAX / 1e6);
    let sum: f64 = stack.iter().map(clean).sum();
    if sum <= 0.0 {
        return false;
    }
    for (place, amount) in shares.iter_mut().zip(stack) {
        *place = clean(amount) / sum;
    }
    true
}
