//! A small machine, whole and valid, for tests that change it.

pub mod exact;
pub mod possible;

use consort_sim::machine::{self, MachineSpec};

/// Two LLC domains of two SMT2 cores each.
pub fn machine() -> MachineSpec {
    let text = include_str!("../../../../consort-describe/tests/small/machine.toml");
    let mut machine = machine::parse("small", text).unwrap();
    machine.layout.llc_domains_per_node = 2;
    machine.layout.cluster[0].l2_domains = 2;
    machine
}
