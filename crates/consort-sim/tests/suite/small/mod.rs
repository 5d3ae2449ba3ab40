//! A small machine, whole and valid, for tests that change it.

pub mod exact;
pub mod possible;

use consort_sim::machine::MachineSpec;

/// Two LLC domains of two SMT2 cores each.
pub fn machine() -> MachineSpec {
    let mut machine: MachineSpec = toml::from_str(include_str!("machine.toml")).unwrap();
    machine.layout.llc_domains_per_node = 2;
    machine.layout.cluster[0].l2_domains = 2;
    machine
}
