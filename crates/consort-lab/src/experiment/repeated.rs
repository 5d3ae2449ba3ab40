//! Runs that go on until every program has done its work several times.

use super::alone::Work;
use super::contender::Contender;
use super::counters::Counters;
use super::error::ExperimentError;
use super::result::counters;
use super::run::{Experiment, Told};
use consort_sim::SimMachine;
use consort_sim::engine::RunMode;

/// What one program did in such a run, or in several of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Repeated {
    /// Its name.
    pub name: String,
    /// Its threads.
    pub threads: u32,
    /// How often it has done its work.
    pub runs: usize,
    /// Mean time of its work, s.
    pub time_s: f64,
    /// Of its work, all threads.
    pub instructions: f64,
    /// Everything that its threads did.
    pub counters: Counters,
    /// Time of the whole, s.
    pub span_s: f64,
}

impl Repeated {
    /// What its counters count by run of it: they are over the whole, an unfinished last run
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
    /// Runs the workload until the program that is last has done its work `times` times.
    ///
    /// # Errors
    /// As [`Experiment::run`].
    pub fn run_times(
        &self,
        contender: &Contender,
        work: &[Work],
        seed: u64,
        times: u32,
    ) -> Result<Vec<Repeated>, ExperimentError> {
        let mode = RunMode::RestartUntilAllDoneTimes(times);
        let (mut wheel, _) = self.wheel(contender, work, seed, mode, Told::default())?;
        self.turn_until_done(&mut wheel, work, times)?;
        Ok(self.repeated(wheel.machine().inner()))
    }

    fn repeated(&self, machine: &SimMachine) -> Vec<Repeated> {
        let oracle = machine.oracle();
        // Threads are numbered program by program, in the order of the workload.
        let mut threads = oracle.threads();
        let results = machine.results();
        let both = self.workload.entries.iter().zip(&results);
        let one = both.map(|(entry, result)| {
            let members = threads.by_ref().take(entry.threads as usize);
            let runs = result.completions.len();
            let times = result.completions.iter().map(|run| run.end_s - run.start_s);
            let instructions = result.completions.iter().map(|run| run.instructions);
            Repeated {
                name: entry.name.clone(),
                threads: entry.threads,
                runs,
                time_s: times.sum::<f64>() / runs as f64,
                instructions: instructions.sum::<f64>() / runs as f64,
                counters: counters(members, oracle),
                span_s: machine.time_ns() as f64 / 1e9,
            }
        });
        one.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{chip, pair};
    use super::*;

    #[test]
    fn every_program_has_run_so_many_times_and_counts_are_per_run() {
        let experiment = Experiment {
            chip: chip("core2-q9550"),
            workload: pair(["hmmer", "mcf"]),
            alone_s: 0.1,
            quantum: None,
            free_migration: false,
        };
        let work = experiment.work(1).unwrap();
        let linux = Contender::new("linux", "linux").unwrap();
        let programs = experiment.run_times(&linux, &work, 1, 3).unwrap();
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
}
