//! Notes on the gains and their causes.

use super::super::symbiosis::asymmetry::{
    FIRST_HALF, IN_NODE, LEARNING, LINUX, MACHINES, POLICIES, SYMBIOTIC, SymbiosisTrial,
    SymbiosisTrials,
};
use super::super::symbiosis::outcome::SymbiosisValue;
use super::cpi_memory;
use super::learnt::LearntCore;
use crate::frame::paired_ratio_cell;
use consort_core::stats::mean;

pub(super) fn machine_notes(trials: &SymbiosisTrials, cores: &[LearntCore]) -> Vec<String> {
    let machines = MACHINES.iter().enumerate();
    let of_machine = |(machine, (name, _)): (usize, &(&str, _))| {
        [
            overall(trials, machine, name),
            counts(trials, machine, name),
            mechanism(trials, machine, name),
            learnt(cores, name),
        ]
    };
    machines.flat_map(of_machine).collect()
}

fn all(trials: &SymbiosisTrials) -> Vec<usize> {
    (0..trials.mixes.len()).collect()
}

fn overall(trials: &SymbiosisTrials, machine: usize, name: &str) -> String {
    let over = |policy, base| trials.stp_over(machine, &all(trials), policy, base).text();
    let of_linux = |policy, value: SymbiosisValue| {
        let over = trials.over(machine, &all(trials), [policy, LINUX], value);
        over.text()
    };
    let others = (0..POLICIES.len()).filter(|&policy| policy != LINUX);
    let each = others.map(|policy| format!("{} {}", POLICIES[policy], over(policy, LINUX)));
    format!(
        "{name}: throughput over linux's, over all {} workloads: {}. core-asymmetry over symbiotic: {}; \
         over symbiotic-in-node: {}; first-half over symbiotic: {}. The ANTT of core-asymmetry is {} and its makespan {} of linux's, those of \
         symbiotic {} and {}.",
        trials.mixes.len(),
        each.collect::<Vec<_>>().join(", "),
        over(LEARNING, SYMBIOTIC),
        over(LEARNING, IN_NODE),
        over(FIRST_HALF, SYMBIOTIC),
        of_linux(LEARNING, |o| o.antt),
        of_linux(LEARNING, |o| o.makespan_s),
        of_linux(SYMBIOTIC, |o| o.antt),
        of_linux(SYMBIOTIC, |o| o.makespan_s),
    )
}

/// Number of workloads in which learning is better or worse beyond the interval.
fn counts(trials: &SymbiosisTrials, machine: usize, name: &str) -> String {
    let against = |base: usize| {
        let beyond = |sign: f64| {
            let is = |mix: &usize| {
                let stp = |policy| trials.values(machine, *mix, policy, |o| o.stp);
                let ratio = paired_ratio_cell(&stp(LEARNING), &stp(base));
                let (value, ci95) = (ratio.value().unwrap_or(1.0), ratio.ci95().unwrap_or(0.0));
                sign * (value - 1.0) > ci95
            };
            all(trials).iter().filter(|mix| is(mix)).count()
        };
        let (more, less) = (beyond(1.0), beyond(-1.0));
        format!("than {} in {more} and less in {less}", POLICIES[base])
    };
    format!(
        "{name}: core-asymmetry has more throughput {}, {}, of {} workloads, where the 95 percent \
         interval of the ratio leaves out 1.",
        against(SYMBIOTIC),
        against(IN_NODE),
        trials.mixes.len(),
    )
}

fn mechanism(trials: &SymbiosisTrials, machine: usize, name: &str) -> String {
    let of = |policy: usize, value: fn(&SymbiosisTrial) -> f64| {
        let all = all(trials);
        let of_all = all
            .iter()
            .flat_map(|&mix| trials.trials_at(machine, mix, policy));
        mean(&of_all.map(value).collect::<Vec<_>>()).unwrap_or(0.0)
    };
    let one = |policy: usize| {
        format!(
            "{} {:.3} cycles per instruction, of them {:.3} for memory, {:.0} % away from its \
             memory, {:.2} moves of a thread per second, {:.1} % measured alone",
            POLICIES[policy],
            of(policy, |t| t.outcome.cpi()),
            of(policy, cpi_memory),
            of(policy, |t| 100.0 * t.outcome.away),
            of(policy, |t| t.outcome.migration_hz),
            of(policy, |t| 100.0 * t.heard.alone),
        )
    };
    let each = [LINUX, SYMBIOTIC, IN_NODE, FIRST_HALF, LEARNING].map(one);
    format!("{name}: {}.", each.join("; "))
}

fn learnt(cores: &[LearntCore], name: &str) -> String {
    let of_node = |node: usize, of: &dyn Fn(&LearntCore) -> Option<f64>| {
        let own = cores.iter().filter(|c| c.machine == name && c.node == node);
        mean(&own.filter_map(of).collect::<Vec<_>>()).unwrap_or(0.0)
    };
    let reported = |node: usize| {
        let learnt = of_node(node, &|core| mean(&core.learnt));
        let latency = of_node(node, &|core| Some(core.memory_latency_ns));
        format!("{learnt:+.3} on node {node} (memory {latency:.0} ns away)")
    };
    format!(
        "{name}: the learnt disadvantage of a core is {} and {} on average.",
        reported(0),
        reported(1),
    )
}
