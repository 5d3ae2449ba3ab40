//! The steps of a program's run: what each thread does until it must wait for the others.
//!
//! A run of a multithreaded program is a sequence of steps, each ending when all its threads have
//! done their part: serial sections, stretches between barriers, the end. One thread alone has
//! one step.
//!
//! - A run is a whole number of passes through the phases, at least one: a run that is shorter than
//!   the program is the whole program in small. Every pass begins with its serial section, done by
//!   the first thread.
//! - Between two barriers each thread does its part times 1 + s·n, n standard normal and s the
//!   imbalance; the parts are then scaled so that together they are the program's share of that
//!   stretch: imbalance shifts work among threads and makes none. With a persistence p, n is
//!   √p·a + √(1 − p)·b, a drawn once for a thread and run, b at each barrier, so that n's variance
//!   stays 1.
//! - Barriers closer than [`CLOSEST_S`] are taken together, k to a step. Within a step threads
//!   advance on their own; what they lose at the k inner barriers is the expected maximum of the
//!   n threads' parts: they make progress for the share 1 / (1 + s·E_n) of the time and spin for
//!   the rest, where E_n is the mean of the largest of n standard normals (Tippett, Biometrika 17,
//!   1925; David and Nagaraja, "Order Statistics", section 3.2).
//! - Stages of a pipeline that have no barriers wait for each other [`PIPELINE_STEPS`] times per
//!   pass, as bounded queues make them.

use super::draw::RandomStream;
use crate::math::{exp, pow};
use crate::program::{BarrierSpec, StageSpec, ThreadsSpec};

/// Least time between two steps, s, at one instruction per cycle.
const CLOSEST_S: f64 = 50e-6;
/// Steps per pass of a pipeline; estimated: queues hold a small part of the items.
const PIPELINE_STEPS: f64 = 256.0;
/// Smallest part of a thread, relative to the mean, however unbalanced.
const LEAST_PART: f64 = 0.05;

/// Division of a program's run into steps.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProgramSteps {
    threads: usize,
    /// Threads that share the work, the first ones.
    team: usize,
    /// True if the team can be another.
    malleable: bool,
    /// Imbalance at barriers that are taken together, where they are.
    close_imbalance: Option<f64>,
    /// Part of each thread in parallel steps; sums to 1.
    parts: Vec<f64>,
    passes: u64,
    serial_instr: f64,
    parallel_instr: f64,
    per_pass: u64,
    imbalance: f64,
    /// Weights of deviates drawn once per run and at each barrier.
    weights: [f64; 2],
    /// Deviates drawn once per run, for each thread.
    lasting: Vec<f64>,
    /// Share of its time on a CPU in which a thread makes progress.
    pub(crate) progress: f64,
    pass: u64,
    /// Steps of this pass begun.
    begun: u64,
}

/// Properties of a run that its steps depend on, in addition to the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunProperties {
    pub(crate) threads: usize,
    /// Instructions of the run; of each thread where work is not divided.
    pub(crate) instructions: f64,
    /// Instructions in one pass through the phases.
    pub(crate) pass_instr: f64,
    /// Fastest clock, Hz.
    pub(crate) hz: f64,
}

impl ProgramSteps {
    pub(crate) fn new(spec: Option<&ThreadsSpec>, run: RunProperties) -> Self {
        match spec {
            Some(spec) if run.threads > 1 => Self::for_team(spec, run),
            _ => Self::single_step(run),
        }
    }

    fn single_step(run: RunProperties) -> Self {
        Self {
            threads: run.threads,
            team: run.threads,
            malleable: false,
            close_imbalance: None,
            parts: vec![1.0 / run.threads as f64; run.threads],
            passes: 1,
            serial_instr: 0.0,
            parallel_instr: run.instructions.max(1.0) * run.threads as f64,
            per_pass: 1,
            imbalance: 0.0,
            weights: [0.0, 1.0],
            lasting: vec![0.0; run.threads],
            progress: 1.0,
            pass: 0,
            begun: 0,
        }
    }

    fn for_team(spec: &ThreadsSpec, run: RunProperties) -> Self {
        let n = run.threads as f64;
        let serial = run.instructions * spec.serial_share;
        let rest = run.instructions.max(1.0) - serial;
        let parallel = if spec.divide_work { rest } else { rest * n };
        let passes = if serial > 0.0 { whole_passes(run) } else { 1.0 };
        let mut steps = Self {
            parts: parts(&spec.stages, run.threads),
            malleable: spec.divide_work && spec.stages.is_empty(),
            passes: passes as u64,
            serial_instr: serial / passes,
            parallel_instr: parallel / passes,
            ..Self::single_step(run)
        };
        steps.set_barriers(spec, run.hz);
        steps
    }

    fn set_barriers(&mut self, spec: &ThreadsSpec, hz: f64) {
        let each = self.parallel_instr / self.threads as f64;
        let Some(barrier) = spec.barrier else {
            let pipeline = !spec.stages.is_empty();
            self.per_pass = if pipeline { PIPELINE_STEPS as u64 } else { 1 };
            return;
        };
        let spacing = barrier.spacing_minstr * 1e6 * spacing_factor(&barrier, spec, self.threads);
        let together = libm::ceil(CLOSEST_S * hz / spacing).max(1.0);
        self.per_pass = libm::round(each / (spacing * together)).max(1.0) as u64;
        if together > 1.0 {
            self.close_imbalance = Some(barrier.imbalance);
            self.progress = self.progress_of_team();
        } else {
            self.imbalance = barrier.imbalance;
            let persistence = barrier.persistence.unwrap_or(0.0);
            self.weights = [persistence.sqrt(), (1.0 - persistence).sqrt()];
        }
    }

    /// Share of its time in which a thread makes progress between barriers taken together.
    fn progress_of_team(&self) -> f64 {
        let imbalance = self.close_imbalance.unwrap_or(0.0);
        1.0 / (1.0 + imbalance * expected_largest(self.team))
    }

    /// Lets the first `n` threads share the work, at least one. Returns true if that changes
    /// anything.
    pub(crate) fn resize(&mut self, n: usize) -> bool {
        let n = n.clamp(1, self.threads);
        if !self.malleable || n == self.team {
            return false;
        }
        self.team = n;
        self.parts = vec![0.0; self.threads];
        self.parts[..n].fill(1.0 / n as f64);
        self.progress = self.progress_of_team();
        true
    }

    pub(crate) fn team(&self) -> usize {
        self.team
    }

    /// True if the step that has begun is a serial section.
    pub(crate) fn is_serial(&self) -> bool {
        self.serial_instr > 0.0 && self.begun == 1
    }

    /// True if the step that has begun is the last of the run.
    pub(crate) fn is_last(&self) -> bool {
        self.pass + 1 == self.passes && self.begun == self.steps_per_pass()
    }

    fn steps_per_pass(&self) -> u64 {
        u64::from(self.serial_instr > 0.0) + self.per_pass
    }

    /// Begins the next step and writes each thread's instructions to `work`. Returns false at the
    /// end of the run.
    pub(crate) fn begin_next(&mut self, draw: &mut RandomStream, work: &mut Vec<f64>) -> bool {
        let serial_steps = u64::from(self.serial_instr > 0.0);
        if self.begun == self.steps_per_pass() {
            self.pass += 1;
            self.begun = 0;
        }
        if self.pass == self.passes {
            self.pass = 0;
            return false;
        }
        if self.begun == 0 && self.pass == 0 && self.weights[0] > 0.0 {
            self.lasting.fill_with(|| draw.normal());
        }
        work.clear();
        work.resize(self.threads, 0.0);
        if self.begun < serial_steps {
            work[0] = self.serial_instr;
        } else {
            self.draw_parallel_work(draw, work);
        }
        self.begun += 1;
        true
    }

    fn draw_parallel_work(&self, draw: &mut RandomStream, work: &mut [f64]) {
        let total = self.parallel_instr / self.per_pass as f64;
        let mut sum = 0.0;
        let [lasts, passes] = self.weights;
        for ((work, part), lasting) in work.iter_mut().zip(&self.parts).zip(&self.lasting) {
            let factor = if self.imbalance > 0.0 {
                let deviation = lasts * lasting + passes * draw.normal();
                (1.0 + self.imbalance * deviation).max(LEAST_PART)
            } else {
                1.0
            };
            *work = part * factor;
            sum += *work;
        }
        work.iter_mut().for_each(|w| *w *= total / sum);
    }
}

/// Passes through the phases in a run.
pub(crate) fn whole_passes(run: RunProperties) -> f64 {
    libm::round(run.instructions / run.pass_instr).max(1.0)
}

/// Returns the spacing of barriers with so many threads, as a multiple of the described one.
fn spacing_factor(barrier: &BarrierSpec, spec: &ThreadsSpec, threads: usize) -> f64 {
    match barrier.at_threads {
        Some(at) if spec.divide_work => f64::from(at) / threads as f64,
        _ => 1.0,
    }
}

/// The stage of each thread: stages take threads in order, by their shares.
pub(crate) fn stage_index(stages: &[StageSpec], thread: usize, threads: usize) -> Option<usize> {
    let total: f64 = stages.iter().map(|s| s.thread_share).sum();
    let at = (thread as f64 + 0.5) / threads as f64 * total;
    let mut sum = 0.0;
    let reached = |stage: &StageSpec| {
        sum += stage.thread_share;
        sum >= at
    };
    let found = stages.iter().position(reached);
    found.or_else(|| stages.len().checked_sub(1))
}

/// Each thread's part of the work. Every item passes through all stages; the work of stages that
/// have no thread of their own is spread over all.
fn parts(stages: &[StageSpec], threads: usize) -> Vec<f64> {
    let stage = |t| stage_index(stages, t, threads);
    let total: f64 = stages.iter().map(|s| s.work).sum();
    let members = |s| (0..threads).filter(|&t| stage(t) == Some(s)).count();
    let counts: Vec<usize> = (0..stages.len()).map(members).collect();
    let own = |t: usize| stage(t).map_or(1.0, |s| stages[s].work / counts[s] as f64 / total);
    let raw: Vec<f64> = (0..threads).map(own).collect();
    let sum: f64 = raw.iter().sum();
    raw.iter().map(|part| part / sum).collect()
}

/// Mean of the largest of `n` standard normals: ∫ x·n·φ(x)·Φ(x)^(n−1) dx, by the trapezoidal rule,
/// which converges geometrically here.
fn expected_largest(n: usize) -> f64 {
    if n < 2 {
        return 0.0;
    }
    const STEP: f64 = 1.0 / 32.0;
    let term = |i: i32| {
        let x = f64::from(i) * STEP;
        let density = exp(-0.5 * x * x) / core::f64::consts::TAU.sqrt();
        let below = 0.5 * libm::erfc(-x / core::f64::consts::SQRT_2);
        x * n as f64 * density * pow(below, n as f64 - 1.0)
    };
    (-256..=256).map(term).sum::<f64>() * STEP
}

#[cfg(test)]
mod tests {
    use super::super::draw::Purpose;
    use super::super::testing::program_with;
    use super::*;
    use proptest::prelude::*;

    fn run(threads: usize) -> RunProperties {
        RunProperties {
            threads,
            instructions: 1e10,
            pass_instr: 1e9,
            hz: 2e9,
        }
    }

    /// All steps of a run, added up per thread, and their number.
    fn whole(threads_spec: &str, threads: usize) -> (Vec<f64>, usize, f64) {
        let spec = program_with(&format!("[threads]\ndefault = 2\nmax = 64\n{threads_spec}"));
        let mut steps = ProgramSteps::new(spec.threads.as_ref(), run(threads));
        let mut draw = RandomStream::new(1, Purpose::Barrier, 0, 0);
        let (mut sum, mut work, mut n) = (vec![0.0; threads], Vec::new(), 0);
        while steps.begin_next(&mut draw, &mut work) {
            sum.iter_mut().zip(&work).for_each(|(s, w)| *s += w);
            n += 1;
        }
        (sum, n, steps.progress)
    }

    #[test]
    fn expected_largest_matches_tippett() {
        // Tippett 1925, table 4 in standard deviations: 2, 5, 10, 100.
        for (n, mean) in [
            (1, 0.0),
            (2, 0.56419),
            (5, 1.16296),
            (10, 1.53875),
            (100, 2.50759),
        ] {
            assert!((expected_largest(n) - mean).abs() < 1e-4, "{n}");
        }
    }

    #[test]
    fn first_thread_runs_serial_section_each_pass() {
        let (sum, n, _) = whole("serial_share = 0.2", 4);
        // Ten passes through a phase of 1e9 instructions of all threads.
        assert_eq!(n, 20);
        assert!((sum[0] - 4e9).abs() < 1.0 && (sum[1] - 2e9).abs() < 1.0);
    }

    #[test]
    fn close_barriers_are_taken_together() {
        let far = "barrier = { spacing_minstr = 10.0, imbalance = 0.1 }";
        let (_, n, progress) = whole(far, 4);
        assert_eq!((n, progress), (250, 1.0));
        let close = "barrier = { spacing_minstr = 0.01, imbalance = 0.1 }";
        let (_, n, progress) = whole(close, 4);
        assert_eq!(n, 25_000);
        assert!((1.0 / progress - 1.10294).abs() < 1e-4);
    }

    #[test]
    fn barrier_count_is_independent_of_threads() {
        let text = "barrier = { spacing_minstr = 50.0, imbalance = 0.0, at_threads = 4 }";
        for threads in [2, 4, 16] {
            assert_eq!(whole(text, threads).1, 50, "{threads}");
        }
        let each = format!("divide_work = false\n{text}");
        assert_eq!(whole(&each, 2).1, whole(&each, 16).1);
    }

    #[test]
    fn persistent_imbalance_repeats_at_every_barrier() {
        let spread = |persistence: f64| {
            let (sum, n, _) = whole(
                &format!(
                    "barrier = {{ spacing_minstr = 10.0, imbalance = 0.1, \
                     persistence = {persistence:?} }}"
                ),
                4,
            );
            assert_eq!(n, 250);
            let mean = sum.iter().sum::<f64>() / 4.0;
            assert!((mean / 2.5e9 - 1.0).abs() < 1e-9);
            let square: f64 = sum
                .iter()
                .map(|s| (s / mean - 1.0) * (s / mean - 1.0))
                .sum();
            (square / 3.0).sqrt()
        };
        // What is drawn anew 250 times evens out to 0.1/√250; what is drawn once does not.
        assert!((0.002..0.014).contains(&spread(0.0)), "{}", spread(0.0));
        assert!((0.03..0.2).contains(&spread(1.0)), "{}", spread(1.0));
    }

    #[test]
    fn undivided_work_is_done_by_each_thread() {
        let (sum, _, _) = whole("divide_work = false", 3);
        assert!(sum.iter().all(|s| (s - 1e10).abs() < 1.0));
    }

    #[test]
    fn stages_get_threads_and_work_by_share() {
        let stages = "stage = [{ name = \"in\", thread_share = 1.0, work = 0.4 }, \
                      { name = \"out\", thread_share = 3.0, work = 1.6 }]";
        let (sum, n, _) = whole(stages, 4);
        assert_eq!(n, 256);
        let expected = [3.0, 4.0, 4.0, 4.0].map(|part| part / 15.0 * 1e10);
        assert!(
            sum.iter().zip(expected).all(|(s, e)| (s - e).abs() < 10.0),
            "{sum:?}"
        );
    }

    proptest! {
        #[test]
        fn imbalance_keeps_total_work(
            threads in 1usize..20,
            imbalance in 0.0f64..1.0,
            spacing in 0.5f64..5000.0,
            serial in 0.0f64..0.9,
        ) {
            let text = format!(
                "serial_share = {serial:?}\n\
                 barrier = {{ spacing_minstr = {spacing:?}, imbalance = {imbalance:?} }}"
            );
            let (sum, _, progress) = whole(&text, threads);
            let total: f64 = sum.iter().sum();
            prop_assert!((total / 1e10 - 1.0).abs() < 1e-9, "{total}");
            prop_assert!(progress > 0.0 && progress <= 1.0);
            prop_assert!(sum.iter().all(|&s| s >= 0.0));
        }
    }
}
