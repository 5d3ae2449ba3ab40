//! LLC domains that differ in capacity, and cores without a last-level cache.

use super::build::{demand, machine, phase};
use super::random::phases;
use consort_sim::chip::Chip;
use consort_sim::contention::{Demand, RunningThread, Solver, ThreadRates};
use consort_sim::energy::EnergyModel;
use consort_sim::machine::{L2Group, LlcDomainSpec, MachineSpec};
use consort_sim::program::{MixSpec, PhaseSpec};
use proptest::prelude::*;
use std::sync::Arc;

/// LLC domains of these capacities with one L2 domain of one core each; CPU 2·d is in domain d.
fn domains(sizes_kib: &[Option<f64>]) -> MachineSpec {
    let mut machine = machine();
    machine.layout.llc_domains_per_node = 0;
    machine.layout.cluster.clear();
    let group = || L2Group {
        core_type: "big".into(),
        l2_domains: 1,
        cores_per_l2: 1,
    };
    let domain = |&size_kib: &Option<f64>| LlcDomainSpec {
        size_kib,
        cluster: vec![group()],
    };
    machine.layout.llc_domains = sizes_kib.iter().map(domain).collect();
    machine
}

/// Rates of the same program, as often as there are domains, one in each.
fn one_in_each(machine: &MachineSpec, phase: &PhaseSpec) -> Vec<ThreadRates> {
    let chip = Arc::new(Chip::new(machine, None).unwrap());
    let n = chip.domains().llcs;
    let demands: Vec<Demand> = (0..n).map(|i| demand(phase, i as u32)).collect();
    let running: Vec<_> = { demands.iter().enumerate() }
        .map(|(domain, demand)| RunningThread {
            pu: 2 * domain,
            demand,
        })
        .collect();
    Solver::new(chip).solve(&running).threads
}

/// Misses any cache below 8 MiB and hardly any above.
fn of_8_mib() -> PhaseSpec {
    phase(|p| p.data_mpki = (0..14).map(|i| if i < 10 { 40.0 } else { 0.1 }).collect())
}

#[test]
fn same_thread_misses_less_in_the_larger_domain() {
    // Domains that hold like threads are not solved as one, unless they are alike in size too.
    let rates = one_in_each(&domains(&[Some(16384.0), Some(4096.0)]), &of_8_mib());
    let [large, small] = [rates[0], rates[1]];
    assert!(small.flow.llc_misses > 50.0 * large.flow.llc_misses);
    assert!(large.ips > 1.5 * small.ips, "{} {}", large.ips, small.ips);
    let swapped = one_in_each(&domains(&[Some(4096.0), Some(16384.0)]), &of_8_mib());
    assert!((swapped[0].ips / small.ips - 1.0).abs() < 1e-6);
    assert!((swapped[1].ips / large.ips - 1.0).abs() < 1e-6);
}

#[test]
fn misses_of_cores_without_llc_go_to_memory() {
    let rates = one_in_each(&domains(&[Some(16384.0), Some(0.0)]), &of_8_mib());
    let (with, without) = (rates[0], rates[1]);
    assert_eq!((without.llc_bytes, without.stack.llc), (0.0, 0.0));
    assert_eq!(without.flow.llc_accesses, 0.0);
    // All that misses the L2 is a line from memory.
    assert!((without.flow.llc_misses / with.flow.l2_misses - 1.0).abs() < 1e-6);
    assert!(without.stack.memory > 10.0 * with.stack.memory);
    let chip = Chip::new(&domains(&[Some(16384.0), Some(0.0)]), None).unwrap();
    let meter = EnergyModel::new(&chip);
    let nj = |core| {
        let flow = consort_sim::contention::InstructionActivity {
            llc_accesses: 1.0,
            ..Default::default()
        };
        meter.work_nj(core, &MixSpec::NONE, &flow)
    };
    assert!(nj(0) > 0.0 && nj(1) == 0.0);
}

#[test]
fn domain_without_an_own_size_has_that_of_the_llc() {
    let machine = domains(&[None, Some(4096.0)]);
    let chip = Chip::new(&machine, None).unwrap();
    assert_eq!(chip.llc_kib(0), machine.llc.size_kib);
    assert_eq!((chip.llc_kib(1), chip.domains().llcs), (4096.0, 2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn domains_listed_with_equal_sizes_are_as_domains_that_are_alike(phase in phases()) {
        let mut alike = machine();
        alike.layout.llc_domains_per_node = 2;
        alike.layout.cluster[0].l2_domains = 1;
        let size_kib = Some(alike.llc.size_kib);
        let [alike, listed] = [alike, domains(&[size_kib, None])].map(|m| one_in_each(&m, &phase));
        prop_assert_eq!(alike, listed);
    }
}
