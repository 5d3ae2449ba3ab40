//! What prefetchers leave of the misses that events count.

use super::build::{machine, phase, solve};
use consort_sim::contention::InstructionActivity;
use consort_sim::machine::{PrefetchScope, PrefetcherSpec};
use proptest::prelude::*;

/// A program alone, with a prefetcher or none, with an L2 or none.
fn flow(per: Option<PrefetchScope>, l2: bool, effectiveness: f64) -> InstructionActivity {
    let mut machine = machine();
    let core = machine.core_types.get_mut("big").unwrap();
    core.prefetcher = per.map(|per| PrefetcherSpec {
        coverage: 0.75,
        depth_lines: 16,
        per,
        streams: None,
        into: None,
    });
    core.l2 = core.l2.take().filter(|_| l2);
    let phase = phase(|p| {
        p.data_mpki = (0..14).map(|i| f64::from(40 - 2 * i)).collect();
        p.prefetch.effectiveness = effectiveness;
    });
    solve(&machine, &[(0, &phase)]).threads[0].flow
}

#[test]
fn what_is_prefetched_into_the_l2_in_time_is_no_miss_of_it() {
    let without = flow(None, true, 0.8).l2_misses;
    for per in [PrefetchScope::Core, PrefetchScope::L2] {
        let with = flow(Some(per), true, 0.8);
        assert!((with.l2_misses / without - 0.4).abs() < 1e-9);
        // Those lines still come through the LLC.
        assert!((with.llc_accesses / without - 1.0).abs() < 1e-9);
    }
}

#[test]
fn a_prefetcher_that_fills_the_llc_leaves_what_misses_before_it() {
    let per = Some(PrefetchScope::Llc);
    for l2 in [true, false] {
        let (with, without) = (flow(per, l2, 0.8), flow(None, l2, 0.8));
        assert_eq!(with.l2_misses, without.l2_misses);
        assert!(with.llc_misses < without.llc_misses);
    }
}

proptest! {
    #[test]
    fn no_more_is_missed_further_out(effectiveness in -1.0f64..=1.0) {
        let flow = flow(Some(PrefetchScope::Core), true, effectiveness);
        prop_assert!(flow.llc_misses <= flow.l2_misses);
    }
}
