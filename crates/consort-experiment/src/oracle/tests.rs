use super::*;
use crate::testing::{chip, program};
use crate::{Contender, ExperimentError};
use consort_sim::contention::{RunningThread, Solver};
use consort_sim::phase::Phase;

/// Demand of a program in its first phase.
fn demand(name: &str, number: u32) -> Demand {
    Demand {
        phase: Arc::new(Phase::new(&program(name).phases[0])),
        intensity: 1.0,
        program: number,
        text: number,
        shared_data: 0.0,
        shared_code: 0.0,
        lock: None,
        home_node: 0,
    }
}

fn demands(names: &[&str]) -> Vec<Option<Demand>> {
    let numbered = names.iter().zip(0..);
    numbered
        .map(|(name, number)| Some(demand(name, number)))
        .collect()
}

fn oracle(machine: &str) -> OraclePolicy {
    OraclePolicy::new(
        &chip(machine),
        &SharedDemands::default(),
        SlowdownObjective::Slowdown,
    )
}

#[test]
fn slowdowns_are_those_of_the_solver() {
    let chip = chip("power8:smt=2");
    let both = [demand("lbm", 0), demand("hmmer", 1)];
    let solver = Solver::new(Arc::clone(&chip));
    let running = |pu| RunningThread {
        pu,
        demand: &both[pu],
    };
    let together = solver.solve(&[running(0), running(1)]).threads;
    let expected: Vec<f64> = (0..2)
        .map(|i| {
            solver
                .solve(&[RunningThread {
                    pu: 0,
                    demand: &both[i],
                }])
                .threads[0]
                .ips
                / together[i].ips
        })
        .collect();
    let found = GroupSlowdowns::new(&chip).group_slowdowns(&[&both[0], &both[1]]);
    assert_eq!(found, expected);
    assert!(found.iter().all(|slowdown| *slowdown > 1.0), "{found:?}");
}

#[test]
fn no_pairing_costs_less() {
    let mut oracle = oracle("power8:smt=2");
    let demands = demands(&["lbm", "hmmer", "mcf", "povray"]);
    let mut cost = |pairs: &[[usize; 2]]| -> f64 {
        pairs.iter().map(|pair| oracle.cost(&demands, pair)).sum()
    };
    let all = [[[0, 1], [2, 3]], [[0, 2], [1, 3]], [[0, 3], [1, 2]]];
    let costs = all.map(|pairs| cost(&pairs));
    let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
    let groups = oracle.groups(&demands, 2);
    let chosen: f64 = groups
        .iter()
        .map(|group| oracle.cost(&demands, group))
        .sum();
    assert!(
        costs.iter().any(|c| *c > least * 1.01),
        "the choice matters: {costs:?}"
    );
    assert_eq!(chosen, least);
}

#[test]
fn threads_are_kept_apart_while_there_are_cores() {
    let groups = oracle("power8:smt=2").groups(&demands(&["lbm", "hmmer", "mcf"]), 10);
    assert_eq!(groups, [[0], [1], [2]]);
    let four =
        oracle("power8:smt=4").groups(&demands(&["lbm", "hmmer", "mcf", "povray", "gcc"]), 2);
    assert_eq!(four.concat().len(), 5);
    assert!(four.iter().all(|group| group.len() <= 3));
}

#[test]
fn options_are_checked_like_those_of_policies() {
    let error = |text: &str| -> ExperimentError { Contender::new(text, "linux").unwrap_err() };
    assert_eq!(
        error("oracle:model=x").to_string(),
        "policy oracle has no option 'model'; it has objective"
    );
    assert_eq!(
        error("oracle:objective=speed").to_string(),
        "option objective=speed of policy oracle: expected slowdown, throughput or fairness"
    );
    assert!(Contender::new("oracle:objective=fairness", "linux").is_ok());
}
