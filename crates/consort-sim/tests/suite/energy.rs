//! Energy: what work, busy and idle cores and the uncore draw.

use crate::small;
use consort_sim::chip::Chip;
use consort_sim::contention::InstructionActivity;
use consort_sim::energy::EnergyModel;
use consort_sim::engine::EnergyMeter;
use consort_sim::program::MixSpec;

const MIX: MixSpec = MixSpec {
    fp: 0.2,
    vector: 0.0,
    int: 0.4,
    load: 0.2,
    store: 0.1,
    branch: 0.1,
};

fn model() -> EnergyModel {
    EnergyModel::new(&Chip::new(&small::machine(), None).unwrap())
}

#[test]
fn a_core_draws_a_quarter_of_its_static_power_when_idle() {
    let model = model();
    assert_eq!((model.core_w(0, true), model.core_w(0, false)), (2.0, 0.5));
    assert_eq!(model.uncore_w(), 5.0);
}

#[test]
fn work_costs_by_class_access_and_line() {
    let flow = InstructionActivity {
        l1d_accesses: 0.3,
        l1d_misses: 0.02,
        l1i_misses: 0.01,
        llc_accesses: 0.01,
        prefetched_lines: 0.004,
        memory_lines: 0.005,
        ..InstructionActivity::default()
    };
    // nJ per instruction: classes 0.2·0.2 + 0.4·0.1 + 0.2·0.4 + 0.1·0.5 + 0.1·0.6 = 0.27,
    // L1 0.3·0.02, L2 0.03·0.1, LLC 0.014·0.5, memory 0.005·20.
    let expect_nj = 0.27 + 0.006 + 0.003 + 0.007 + 0.1;
    assert!((model().work_nj(0, &MIX, &flow) - expect_nj).abs() < 1e-12);
    assert!((model().instruction_j(0, &MIX, &flow) - 1e-9 * expect_nj).abs() < 1e-21);
}
