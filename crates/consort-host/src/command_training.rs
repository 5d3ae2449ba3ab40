//! Training runs of commands: alone and in pairs on two CPUs, each to its end.
//!
//! A whole run of a command is always the same work, so its CPU time next to a co-runner over its CPU
//! time alone is its slowdown, whatever its phases are. Commands whose work varies from run to run are
//! compared by the CPU time of an instruction, if this machine counts instructions. Commands alone and
//! pairs take turns, round after round, because the speed of a host changes. The faster member of a
//! pair is started again until the slower one has ended.

use crate::crew::commands::{CommandExit, CommandPlan};
use crate::crew::{LiveHost, MAP};
use crate::training::{NamedStack, StackSums, TrainingRuns, pairs, shares, shares_of};
use anyhow::{Result, bail};
use consort_core::{Machine, PuId, Signal, Tier, stack_source};
use consort_experiment::train::TrainingRow;
use consort_linux::enforce::{EnactChoice, EnactorKind};
use std::collections::BTreeMap;

/// Commands to train on, where and how often.
#[derive(Debug)]
pub struct CommandTraining {
    /// The machine to run on.
    pub live: LiveHost,
    /// Programs with their arguments.
    pub commands: Vec<Vec<String>>,
    /// A name per command, for rows and errors.
    pub names: Vec<String>,
    /// The CPU of each member of a pair; commands alone run on the first.
    pub pus: [PuId; 2],
    /// Number of times that each command runs alone, and each pair together.
    pub rounds: u32,
}

/// Sums over all runs of a command in one place: alone, or as one member of one pair.
#[derive(Clone, Debug, Default)]
struct CommandSums {
    runs: f64,
    cpu_s: f64,
    /// Instructions of these runs; 0 if one was not counted.
    instructions: f64,
    stack: NamedStack,
}

impl CommandTraining {
    /// Runs everything; `components` are those of this machine's cycle stacks. `progress` receives the
    /// number of launches that are done, and of all.
    ///
    /// # Errors
    /// A command that cannot be started or fails, or a machine that cannot be observed.
    pub fn train(
        &self,
        components: &[String],
        progress: &dyn Fn(usize, usize),
    ) -> Result<TrainingRuns> {
        let alone = (0..self.commands.len()).map(|command| vec![command]);
        let launches: Vec<Vec<usize>> = alone
            .chain(pairs(self.commands.len()).into_iter().map(Vec::from))
            .collect();
        let mut sums: Vec<Vec<CommandSums>> = { launches.iter() }
            .map(|members| vec![CommandSums::default(); members.len()])
            .collect();
        let mut tier = None;
        let all = launches.len() * self.rounds as usize;
        for done in 0..all {
            progress(done, all);
            let at = done % launches.len();
            let (ran, source) = self.launch(&launches[at])?;
            tier = tier.max(source);
            for (sum, ran) in sums[at].iter_mut().zip(ran) {
                sum.add(ran);
            }
        }
        Ok(TrainingRuns {
            rows: training_rows(&self.names, &launches, &sums, components),
            stack_source: stack_source(tier.unwrap_or(Tier::Proc)),
        })
    }

    /// Runs some commands together, each at least once. Returns their sums and the tier of the stacks.
    fn launch(&self, members: &[usize]) -> Result<(Vec<CommandSums>, Option<Tier>)> {
        let plan = CommandPlan {
            commands: members.iter().map(|&m| self.commands[m].clone()).collect(),
            times: 1,
            show_output: false,
            pus: self.pus[..members.len()].to_vec(),
        };
        // The worker pins the commands itself, and nothing else moves them.
        let enactors = EnactChoice::Only(EnactorKind::Pin);
        let (mut machine, results) = self
            .live
            .clone()
            .launch_worker(MAP, &plan, true, enactors)?;
        let mut stacks = StackSums::default();
        let mut instructions: BTreeMap<u32, f64> = BTreeMap::new();
        while let Some(observation) = machine.observe()? {
            // Processes that a command starts are where the command is.
            stacks.add(&observation, |thread| {
                let place = self.pus.iter().position(|pu| thread.last_pu == Some(*pu));
                place.map(|place| place as u32)
            });
            for thread in observation.threads.iter().chain(&observation.exited) {
                if let Some(counted) = thread.sample.get(Signal::Instructions) {
                    *instructions.entry(thread.id.pid).or_default() += counted;
                }
            }
        }
        let outcome = machine.finish();
        if outcome.exit_code != 0 {
            bail!(
                "the programs could not be run: exit code {}",
                outcome.exit_code
            );
        }
        let exits: Vec<CommandExit> = results.read()?;
        if let Some(failed) = exits.iter().find(|exit| exit.exit_code != 0) {
            bail!(
                "{} ended with exit code {}: its time means nothing; give a command that succeeds",
                self.names[members[failed.program]],
                failed.exit_code
            );
        }
        let mut sums = vec![CommandSums::default(); members.len()];
        for exit in &exits {
            sums[exit.program].add(CommandSums {
                runs: 1.0,
                cpu_s: exit.cpu_s,
                instructions: instructions.get(&exit.pid).copied().unwrap_or(0.0),
                stack: NamedStack::new(),
            });
        }
        for (place, sum) in (0u32..).zip(&mut sums) {
            sum.stack = stacks.by_key.remove(&place).unwrap_or_default();
        }
        Ok((sums, stacks.tier))
    }
}

/// Returns a row for every member of a pair; members without a time or a stack have none. The launches
/// of single commands come first, in the order of the commands.
fn training_rows(
    names: &[String],
    launches: &[Vec<usize>],
    sums: &[Vec<CommandSums>],
    components: &[String],
) -> Vec<TrainingRow> {
    let stack = |sum: &CommandSums| shares_of(&shares(sum.stack.clone()), components);
    let row = |at: usize, place: usize| {
        let (own, other) = (launches[at][place], launches[at][1 - place]);
        let (alone, together) = (&sums[own][0], &sums[at][place]);
        let slowdown = together.slowdown_over(alone)?;
        let measured = stack(together)?;
        Some(TrainingRow {
            co_run: at as u64,
            program: names[own].clone(),
            co_runners: vec![names[other].clone()],
            own: stack(alone)?,
            others: stack(&sums[other][0])?,
            // On the scale of the same work alone, so that the sum is the slowdown.
            together: measured.iter().map(|share| share * slowdown).collect(),
            measured,
        })
    };
    let pairs = (0..launches.len()).filter(|&at| launches[at].len() == 2);
    let members = pairs.flat_map(|at| [(at, 0), (at, 1)]);
    members.filter_map(|(at, place)| row(at, place)).collect()
}

impl CommandSums {
    fn add(&mut self, other: Self) {
        let counted = self.runs == 0.0 || self.instructions > 0.0;
        self.instructions = match counted && other.instructions > 0.0 {
            true => self.instructions + other.instructions,
            false => 0.0,
        };
        self.runs += other.runs;
        self.cpu_s += other.cpu_s;
        for (name, sum) in other.stack {
            match self.stack.iter_mut().find(|(known, _)| *known == name) {
                Some((_, own)) => *own += sum,
                None => self.stack.push((name, sum)),
            }
        }
    }

    /// Time of the same work over that alone; `None` if a command never ended or took no time.
    fn slowdown_over(&self, alone: &Self) -> Option<f64> {
        let work = match self.instructions > 0.0 && alone.instructions > 0.0 {
            true => |sums: &Self| sums.instructions,
            false => |sums: &Self| sums.runs,
        };
        let cost = |sums: &Self| (sums.runs > 0.0).then(|| sums.cpu_s / work(sums));
        let (together, alone) = (cost(self)?, cost(alone)?);
        (together > 0.0 && alone > 0.0).then(|| together / alone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(runs: f64, cpu_s: f64, instructions: f64) -> CommandSums {
        CommandSums {
            runs,
            cpu_s,
            instructions,
            stack: NamedStack::new(),
        }
    }

    #[test]
    fn slowdown_is_per_instruction_if_counted() {
        let alone = sums(2.0, 4.0, 8e9);
        // Half as much again per run, of twice the instructions.
        assert_eq!(sums(1.0, 3.0, 8e9).slowdown_over(&alone), Some(0.75));
        assert_eq!(sums(1.0, 3.0, 0.0).slowdown_over(&alone), Some(1.5));
        assert_eq!(sums(0.0, 3.0, 0.0).slowdown_over(&alone), None);
        assert_eq!(sums(1.0, 0.0, 0.0).slowdown_over(&alone), None);
    }

    #[test]
    fn run_that_was_not_counted_leaves_none_counted() {
        let mut sum = CommandSums::default();
        sum.add(sums(1.0, 1.0, 5.0));
        assert_eq!(sum.instructions, 5.0);
        sum.add(sums(1.0, 1.0, 0.0));
        sum.add(sums(1.0, 1.0, 5.0));
        assert_eq!((sum.runs, sum.instructions), (3.0, 0.0));
    }

    #[test]
    fn each_member_of_a_pair_has_a_row() {
        let stack = |memory: f64| {
            vec![
                ("base".to_owned(), 2.0 - memory),
                ("memory".to_owned(), memory),
            ]
        };
        let of = |cpu_s, memory| CommandSums {
            stack: stack(memory),
            ..sums(1.0, cpu_s, 0.0)
        };
        let names = ["a", "b"].map(str::to_owned);
        let launches = [vec![0], vec![1], vec![0, 1]];
        let measured = [
            vec![of(1.0, 0.0)],
            vec![of(2.0, 2.0)],
            vec![of(1.5, 1.0), of(2.0, 2.0)],
        ];
        let components = ["base".to_owned(), "memory".to_owned()];
        let rows = training_rows(&names, &launches, &measured, &components);
        assert_eq!(rows.len(), 2);
        assert_eq!(
            (rows[0].program.as_str(), &rows[0].co_runners[0][..]),
            ("a", "b")
        );
        assert_eq!(rows[0].own, [1.0, 0.0]);
        assert_eq!(rows[0].others, [0.0, 1.0]);
        assert_eq!(rows[0].together, [0.75, 0.75]);
        assert_eq!((rows[1].slowdown(), rows[1].co_run), (1.0, rows[0].co_run));
    }
}
