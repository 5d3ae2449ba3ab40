//! Co-scheduling policies on the simulated Xeon E5320, with programs of PARSEC that take eight
//! threads each.

use consort_core::plan::Decision;
use consort_experiment::slots::cut_into_frames;
use consort_experiment::{AloneWork, Contender, Experiment, RunOptions, RunResult};
use consort_sim::chip::Chip;
use consort_sim::machine::MachineRef;
use consort_sim::program::presets;
use consort_sim::workload::{ProgramInstance, Workload};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

const PROGRAMS: [&str; 4] = ["streamcluster", "blackscholes", "canneal", "dedup"];
/// So that rounds fit into a run that is not long.
const QUANTUM: &str = "quantum=50";

/// Programs as they are, or in frames that are shorter than quanta, so that every quantum has its
/// part of serial sections.
fn experiment(alone_s: f64, frames: bool) -> Experiment {
    let machine: MachineRef = "xeon-e5320".parse().expect("a preset's name");
    let loaded = machine.load(&[]).expect("a preset");
    let chip = Chip::new(&loaded.spec, loaded.smt).expect("a preset is a chip");
    let entry = |name: &str| {
        let whole = presets::find(name).expect("a preset's name");
        let program = if frames {
            cut_into_frames(&whole)
        } else {
            whole
        };
        ProgramInstance {
            name: name.to_owned(),
            program: Arc::new(program),
            threads: 8,
            start_ms: 0.0,
        }
    };
    let workload = Workload {
        text: PROGRAMS.join("+"),
        entries: PROGRAMS.map(entry).to_vec(),
    };
    Experiment::new(&Arc::new(chip), workload, alone_s)
}

/// A run, and every decision.
fn run(experiment: &Experiment, work: &[AloneWork], policy: &str) -> (RunResult, Vec<Decision>) {
    let heard: Rc<RefCell<Vec<Decision>>> = Rc::default();
    let sink = Rc::clone(&heard);
    let listener = Box::new(move |decision: &Decision| sink.borrow_mut().push(decision.clone()));
    let contender = Contender::new(policy, "linux").expect("a policy's name");
    let options = RunOptions {
        listener: Some(listener),
        ..RunOptions::default()
    };
    let result = experiment.run_with(&contender, work, 1, options);
    let result = result.expect("the run ends");
    (result, heard.take())
}

fn takes_turns(decision: &Decision) -> bool {
    let notes = &decision.report.notes;
    notes
        .first()
        .is_some_and(|n| n.starts_with("slots run in turn"))
}

/// A fact of each program in a decision.
fn facts(decision: &Decision, name: &str) -> Vec<(u32, f64)> {
    let of = |(thread, reason): (&consort_core::ThreadId, &consort_core::plan::Reason)| {
        let fact = reason.facts.iter().find(|fact| fact.name == name)?;
        Some((thread.pid, fact.value))
    };
    decision.report.threads.iter().filter_map(of).collect()
}

#[test]
fn every_policy_gets_all_work_done_and_lets_everybody_run() {
    let experiment = experiment(1.0, false);
    let work = experiment.measure_work(1).expect("programs make progress");
    for policy in ["gang", "fair-mis", "fair-com", "greedy", "pdpa"] {
        let (result, decisions) = run(&experiment, &work, &format!("{policy}:{QUANTUM}"));
        assert_eq!(result.programs.len(), PROGRAMS.len(), "{policy}");
        for (program, work) in result.programs.iter().zip(&work) {
            let done = program.instructions / work.instructions;
            assert!(
                (done - 1.0).abs() < 1e-6,
                "{policy}: {} {done}",
                program.name
            );
        }
        assert!(decisions.iter().any(takes_turns), "{policy}");
        let ran = |d: &Decision| d.teams.keys().copied().collect::<Vec<_>>();
        let all: BTreeSet<_> = decisions
            .iter()
            .filter(|d| takes_turns(d))
            .flat_map(ran)
            .collect();
        assert_eq!(all.len(), PROGRAMS.len(), "{policy}");
    }
}

#[test]
fn no_member_of_a_fair_co_schedule_is_slower_than_its_sample_in_the_gang() {
    let experiment = experiment(20.0, true);
    let work = experiment.measure_work(1).expect("programs make progress");
    for policy in ["fair-mis", "fair-com"] {
        let (_, decisions) = run(&experiment, &work, &format!("{policy}:quantum=1000"));
        let shared = |d: &&Decision| takes_turns(d) && d.teams.len() > 1;
        let mut judged = 0;
        for decision in decisions.iter().filter(shared) {
            let members = decision.teams.keys().map(|p| p.0).collect::<BTreeSet<_>>();
            for (program, speedup) in facts(decision, "local speedup") {
                judged += usize::from(members.contains(&program));
                assert!(
                    speedup >= 1.0 || !members.contains(&program),
                    "{policy}: {program} {speedup}"
                );
            }
        }
        assert!(judged > 0, "{policy}");
    }
}
