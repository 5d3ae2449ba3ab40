//! Laws that hold of every run.

use crate::machine::{buffers, plain, run, run_on, with};
use crate::ops;
use consort_core::PuId;
use consort_ops::{Op, OpKind};
use consort_reference::{Reference, ReferenceError, RunLength, TracePlacement};
use consort_sim::chip::Chip;
use proptest::prelude::*;

const LENGTH: RunLength = RunLength {
    warm_up: 2_000,
    measured: 5_000,
};

fn kernel(index: usize) -> Vec<Op> {
    match index {
        0 => ops::independent(OpKind::Integer),
        1 => ops::chain(OpKind::FpAdd),
        2 => ops::chase(64),
        3 => ops::scatter(4096),
        4 => ops::store_stream(256),
        5 => ops::branches(500, ops::coin),
        6 => ops::through_memory(),
        _ => ops::long_code(64),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_cycle_has_a_cause_and_every_instruction_is_counted(a in 0usize..8, b in 0usize..8) {
        let programs = [kernel(a), kernel(b)];
        let outcome = run(&plain(), &[&programs[0], &programs[1]], LENGTH);
        for thread in &outcome.threads {
            // What the oldest load holds up is charged when its data is there.
            let off = (thread.stack.total() - thread.cycles as f64).abs();
            prop_assert!(off <= 200.0 + 0.001 * thread.cycles as f64, "{off} of {}", thread.cycles);
            prop_assert!(thread.instructions >= LENGTH.measured);
            prop_assert!(thread.instructions < LENGTH.measured + 8);
            prop_assert!(thread.ipc() <= 4.0);
            prop_assert!(thread.branch_misses <= thread.branches);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_run(a in 0usize..8, b in 0usize..8) {
        let programs = [kernel(a), kernel(b)];
        let once = || run(&plain(), &[&programs[0], &programs[1]], LENGTH);
        prop_assert_eq!(once(), once());
    }

    #[test]
    fn other_cores_do_not_matter_to_what_stays_in_its_own(a in 0usize..3, b in 0usize..3) {
        let programs = [kernel(a), kernel(b)];
        let both = run_on(&plain(), &[0, 2], &[&programs[0], &programs[1]], LENGTH);
        let one = run_on(&plain(), &[0], &[&programs[0]], LENGTH);
        let (with, without) = (both.threads[0].ipc(), one.threads[0].ipc());
        prop_assert!((with / without - 1.0).abs() < 0.02, "{with} {without}");
    }

    #[test]
    fn more_of_anything_never_slows_a_thread_alone(a in 0usize..8) {
        let program = kernel(a);
        let base = run(&plain(), &[&program], LENGTH).threads[0].ipc();
        let more = with(|core| {
            core.rob_entries = Some(256);
            core.outstanding_misses = 32;
            core.l1d.size_kib = 64.0;
            core.l1d.ways = 16;
            let buffers = buffers(core);
            buffers.issue[0].entries = 96;
            for queue in [&mut buffers.load_queue, &mut buffers.store_queue] {
                queue.iter_mut().for_each(|queue| queue.entries *= 2);
            }
        });
        let larger = run(&more, &[&program], LENGTH).threads[0].ipc();
        prop_assert!(larger >= 0.99 * base, "{larger} {base}");
    }
}

#[test]
fn what_cannot_be_run_is_told() {
    let chip = Chip::new(&plain(), None).unwrap();
    let (some, none) = (ops::chain(OpKind::Integer), Vec::<Op>::new());
    let place = |pu, program| TracePlacement {
        pu: PuId(pu),
        space: 0,
        program,
    };
    let reported = |placements: &[TracePlacement<'_>]| Reference::new(&chip, placements, 1).err();
    assert_eq!(reported(&[]), Some(ReferenceError::Nothing));
    let pu = PuId(4);
    assert_eq!(
        reported(&[place(4, &some)]),
        Some(ReferenceError::NoPu { pu, pus: 4 })
    );
    let pu = PuId(1);
    assert_eq!(
        reported(&[place(1, &none)]),
        Some(ReferenceError::Empty { pu })
    );
    let twice = [
        place(1, &some as &dyn consort_reference::OpSource),
        place(1, &some),
    ];
    assert_eq!(reported(&twice), Some(ReferenceError::Twice { pu }));
}

/// Each line is asked for by three loads, and the miss queue has room for one line: those that
/// wait for room find their line there when they are asked for again.
#[test]
fn who_waits_for_room_in_a_miss_queue_is_not_forgotten() {
    let each = ops::scatter(4096).into_iter();
    let thrice: Vec<Op> = each.flat_map(|op| [op; 3]).collect();
    let spec = with(|core| {
        core.outstanding_misses = 1;
        core.l1d.miss_queue = Some(1);
    });
    let outcome = run(&spec, &[&thrice, &thrice], LENGTH);
    assert!(
        outcome
            .threads
            .iter()
            .all(|t| t.instructions >= LENGTH.measured)
    );
}
