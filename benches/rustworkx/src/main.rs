//! Our minimum-weight matching beside `max_weight_matching` of rustworkx-core, on the same costs,
//! by turns: `cargo run --release` here. Prints the median wall time of each, ms, and checks that
//! both found the same cost.

use consort_matching::{Costs, pairs};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use rustworkx_core::max_weight_matching::max_weight_matching;
use rustworkx_core::petgraph::graph::UnGraph;
use std::time::Instant;

/// Threads, and rounds that the peer's speed allows.
const SIZES: [(usize, usize); 4] = [(16, 21), (40, 11), (80, 5), (160, 3)];
/// Costs become whole numbers for the peer.
const SCALE: f64 = 1e9;

fn main() {
    println!("threads  rounds  ours (ms)  rustworkx-core (ms)  ratio");
    for (threads, rounds) in SIZES {
        let times: Vec<(f64, f64)> = (0..rounds as u64).map(|seed| round(threads, seed)).collect();
        let ours = median(times.iter().map(|t| t.0).collect());
        let theirs = median(times.iter().map(|t| t.1).collect());
        println!("{threads:7}  {rounds:6}  {ours:9.3}  {theirs:19.3}  {:5.0}", theirs / ours);
    }
}

fn round(threads: usize, seed: u64) -> (f64, f64) {
    let mut rng = Pcg64::seed_from_u64(seed);
    let costs = Costs::from_fn(threads, |_, _| rng.random_range(2.0..6.0));
    let costs = costs.expect("costs are numbers");
    let start = Instant::now();
    let pairing = pairs(&costs, &vec![1.0; threads], threads / 2).expect("two threads per core");
    let ours = start.elapsed().as_secs_f64();
    let graph = graph(&costs);
    let start = Instant::now();
    let weight = |edge: rustworkx_core::petgraph::graph::EdgeReference<'_, i128>| Ok::<_, ()>(*edge.weight());
    let matched = max_weight_matching(&graph, true, weight, false).expect("weights are numbers");
    let theirs = start.elapsed().as_secs_f64();
    let cost: f64 = matched.iter().map(|&(i, j)| costs.at(i, j)).sum();
    assert!((cost - pairing.cost).abs() < 1e-6, "{cost} and {}", pairing.cost);
    (1e3 * ours, 1e3 * theirs)
}

fn graph(costs: &Costs) -> UnGraph<(), i128> {
    let mut graph = UnGraph::new_undirected();
    let nodes: Vec<_> = (0..costs.threads()).map(|_| graph.add_node(())).collect();
    for (i, &first) in nodes.iter().enumerate() {
        for (j, &second) in nodes.iter().enumerate().skip(i + 1) {
            graph.add_edge(first, second, -((costs.at(i, j) * SCALE) as i128));
        }
    }
    graph
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
