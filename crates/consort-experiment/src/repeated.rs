//! Runs that go on until every program has done its work several times.

use super::alone::AloneWork;
use super::contender::Contender;
use super::counters::ProgramCounters;
use super::error::ExperimentError;
use super::result::counters;
use super::run::{Experiment, RunOptions};
use crate::StopRequest;
use consort_sim::SimMachine;
use consort_sim::engine::{Completion, RunMode};
use consort_sim::workload::ProgramInstance;

/// Work of one program in such a run, or in several of them.
#[derive(Clone, Debug, PartialEq)]
pub struct RepeatedProgram {
    /// Its name.
    pub name: String,
    /// Its threads.
    pub threads: u32,
    /// Number of times that it has done its work.
    pub runs: usize,
    /// Mean time of its work, s.
    pub time_s: f64,
    /// Of its work, all threads.
    pub instructions: f64,
    /// Everything that its threads did.
    pub counters: ProgramCounters,
    /// Time of the whole, s.
    pub span_s: f64,
}

impl RepeatedProgram {
    /// Runs of it that its counters stand for: they are over the whole, an unfinished last run
    /// included.
    pub fn per_run(&self) -> f64 {
        self.instructions / self.counters.instructions
    }

    /// Adds another run of the same program, under another seed.
    pub fn add(&mut self, other: &Self) {
        let (ours, theirs) = (self.runs as f64, other.runs as f64);
        let mean = |a: f64, b: f64| (a * ours + b * theirs) / (ours + theirs);
        self.time_s = mean(self.time_s, other.time_s);
        self.instructions = mean(self.instructions, other.instructions);
        self.runs += other.runs;
        self.span_s += other.span_s;
        self.counters.add(&other.counters);
    }
}

impl Experiment {
    /// Runs the workload until the program that is last has done its work `times` times. With
    /// `patience`, the run also ends after so many times what all programs take alone, one after the
    /// other, that often; the time of a program that has not done its work once by then follows from
    /// how far it is.
    ///
    /// # Errors
    /// As [`Experiment::run`]; with `patience`, no run that does not end is an error.
    pub fn run_times(
        &self,
        contender: &Contender,
        work: &[AloneWork],
        seed: u64,
        times: u32,
        patience: Option<f64>,
    ) -> Result<Vec<RepeatedProgram>, ExperimentError> {
        let options = RunOptions {
            mode: RunMode::RestartUntilAllDoneTimes(times),
            ..RunOptions::default()
        };
        let (mut control, _) = self.build_loop(contender, work, seed, options)?;
        if let Some(patience) = patience {
            let alone: f64 = work.iter().map(|w| w.alone_s).sum();
            let limit_ns = 1e9 * patience * alone * f64::from(times);
            while control.run_turn()?.is_some()
                && (control.machine().inner().time_ns() as f64) < limit_ns
            {
                StopRequest::check()?;
            }
        } else {
            self.run_until_done(&mut control, work, times)?;
        }
        Ok(self.repeated_programs(control.machine().inner(), work))
    }

    fn repeated_programs(&self, machine: &SimMachine, work: &[AloneWork]) -> Vec<RepeatedProgram> {
        let oracle = machine.oracle();
        // Threads are numbered program by program, in the order of the workload.
        let mut threads = oracle.threads();
        let results = machine.results();
        let span_s = machine.time_ns() as f64 / 1e9;
        let both = self.workload.entries.iter().zip(work).zip(&results);
        let one = both.map(|((entry, work), result)| {
            let members = threads.by_ref().take(entry.threads as usize);
            let counters = counters(members, oracle);
            let runs = result.completions.len();
            let (time_s, instructions) = match runs {
                0 => extrapolate_unfinished(entry, work, &counters, span_s),
                _ => {
                    let mean = |value: fn(&Completion) -> f64| {
                        result.completions.iter().map(value).sum::<f64>() / runs as f64
                    };
                    (
                        mean(|run| run.end_s - run.start_s),
                        mean(|run| run.instructions),
                    )
                }
            };
            RepeatedProgram {
                name: entry.name.clone(),
                threads: entry.threads,
                runs,
                time_s,
                instructions,
                counters,
                span_s,
            }
        });
        one.collect()
    }
}

/// Time, s, and instructions of a program that has not ended yet, if it keeps its mean speed.
fn extrapolate_unfinished(
    entry: &ProgramInstance,
    work: &AloneWork,
    counters: &ProgramCounters,
    span_s: f64,
) -> (f64, f64) {
    let threads = entry.program.threads.as_ref();
    let divided = threads.is_none_or(|threads| threads.divide_work);
    let each = if divided {
        1.0
    } else {
        f64::from(entry.threads)
    };
    let instructions = each * work.instructions;
    let since_s = span_s - entry.start_ms / 1e3;
    (since_s * instructions / counters.instructions, instructions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{chip, pair};

    #[test]
    fn programs_run_requested_times_with_counts_per_run() {
        let experiment = Experiment::new(&chip("core2-q9550"), pair(["hmmer", "mcf"]), 0.1);
        let work = experiment.measure_work(1).unwrap();
        let linux = Contender::new("linux", "linux").unwrap();
        let programs = experiment.run_times(&linux, &work, 1, 3, None).unwrap();
        assert!(programs.iter().all(|p| p.runs >= 3));
        assert!(programs.iter().any(|p| p.runs == 3));
        for (program, work) in programs.iter().zip(&work) {
            let done = program.counters.instructions * program.per_run();
            assert!((done / work.instructions - 1.0).abs() < 1e-6);
            assert!(program.time_s >= 0.09 && program.span_s >= 2.9 * program.time_s);
        }
        let mut twice = programs[0].clone();
        twice.add(&programs[0]);
        assert_eq!(twice.time_s, programs[0].time_s);
        assert!((2.0 * twice.per_run() / programs[0].per_run() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn time_of_stopped_program_is_extrapolated() {
        let experiment = Experiment {
            quantum: Some(std::time::Duration::from_millis(100)),
            ..Experiment::new(&chip("core2-q9550"), pair(["hmmer", "povray"]), 0.5)
        };
        let work = experiment.measure_work(1).unwrap();
        let linux = Contender::new("linux", "linux").unwrap();
        let whole = experiment.run_times(&linux, &work, 1, 1, None).unwrap();
        let stopped = experiment.run_times(&linux, &work, 1, 1, Some(0.3));
        for (stopped, whole) in stopped.unwrap().iter().zip(&whole) {
            assert_eq!((stopped.runs, whole.runs), (0, 1));
            assert!(stopped.span_s < 0.5, "{}", stopped.span_s);
            let error = stopped.time_s / whole.time_s - 1.0;
            assert!(error.abs() < 0.1, "{}: {error}", stopped.name);
            assert!((stopped.instructions / whole.instructions - 1.0).abs() < 1e-6);
        }
        let patient = experiment.run_times(&linux, &work, 1, 1, Some(20.0));
        assert_eq!(patient.unwrap(), whole);
    }
}
