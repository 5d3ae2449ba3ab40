//! Limits of a core's caches, TLB, predictor and prefetchers.

use super::ValueRange;
use crate::describe::KeyScope;
use crate::machine::{CacheSpec, CoreSpec, PredictorSpec, PrefetcherSpec, TlbSpec};

/// From a few lines to more than any chip has, KiB.
pub(super) const SIZE_KIB: ValueRange = (0.5, 8_388_608.0);
pub(super) const WAYS: ValueRange = (1.0, 4096.0);
const LATENCY_CYCLES: ValueRange = (1.0, 500.0);
const TLB_ENTRIES: ValueRange = (1.0, 1_048_576.0);
/// From the smallest page of any processor to 16 GiB.
const PAGE_KIB: ValueRange = (0.5, 16_777_216.0);
const WALK_CYCLES: ValueRange = (1.0, 10_000.0);
const PREDICTOR_KIB: ValueRange = (0.01, 65_536.0);
const COVERAGE: ValueRange = (0.0, 1.0);
const DEPTH_LINES: ValueRange = (1.0, 4096.0);
pub(super) const LINES: ValueRange = (1.0, 65_536.0);
const BYTES_PER_CYCLE: ValueRange = (0.1, 4096.0);
const ADDED_CYCLES: ValueRange = (0.0, 500.0);
const STACK: ValueRange = (1.0, 4096.0);

pub(super) fn check(core: &CoreSpec, at: &mut KeyScope<'_>) {
    check_cache(&core.l1i, at.child("l1i"));
    check_cache(&core.l1d, at.child("l1d"));
    if let Some(l2) = &core.l2 {
        check_cache(l2, at.child("l2"));
        check_larger(l2, core, at.child("l2"));
    }
    check_tlb(&core.tlb, at.child("tlb"));
    check_predictor(&core.branch_predictor, at.child("branch_predictor"));
    if let Some(prefetcher) = &core.prefetcher {
        check_prefetcher(prefetcher, at.child("prefetcher"));
    }
}

fn check_cache(cache: &CacheSpec, mut at: KeyScope<'_>) {
    at.check_range("size_kib", cache.size_kib, SIZE_KIB);
    at.check_range("ways", cache.ways, WAYS);
    at.check_range("latency_cycles", cache.latency_cycles, LATENCY_CYCLES);
    at.check_range("miss_queue", cache.miss_queue.unwrap_or(1), LINES);
    at.check_range("gathered_lines", cache.gathered_lines.unwrap_or(1), LINES);
    let bytes = cache.bytes_per_cycle.unwrap_or(1.0);
    at.check_range("bytes_per_cycle", bytes, BYTES_PER_CYCLE);
}

/// An L2 smaller or faster than the L1 before it makes no sense of either.
fn check_larger(l2: &CacheSpec, core: &CoreSpec, mut at: KeyScope<'_>) {
    let least = core.l1d.size_kib;
    let message = format!("is {}; expected at least the L1D's, {least}", l2.size_kib);
    at.require(l2.size_kib >= least, "size_kib", message);
    let least = core.l1d.latency_cycles;
    let message = format!(
        "is {}; expected at least the L1D's, {least}",
        l2.latency_cycles
    );
    at.require(l2.latency_cycles >= least, "latency_cycles", message);
}

fn check_tlb(tlb: &TlbSpec, mut at: KeyScope<'_>) {
    at.check_range("entries", tlb.entries, TLB_ENTRIES);
    at.check_range("page_kib", tlb.page_kib, PAGE_KIB);
    at.check_range("walk_cycles", tlb.walk_cycles, WALK_CYCLES);
    at.check_range("first_entries", tlb.first_entries.unwrap_or(1), TLB_ENTRIES);
    at.check_range("hit_cycles", tlb.hit_cycles.unwrap_or(0.0), ADDED_CYCLES);
}

fn check_predictor(predictor: &PredictorSpec, mut at: KeyScope<'_>) {
    at.check_range("size_kib", predictor.size_kib, PREDICTOR_KIB);
    at.check_range("targets", predictor.targets.unwrap_or(1), TLB_ENTRIES);
    let bubble = f64::from(predictor.taken_bubble_cycles.unwrap_or(0));
    at.check_range("taken_bubble_cycles", bubble, ADDED_CYCLES);
    at.check_range("return_stack", predictor.return_stack.unwrap_or(1), STACK);
}

fn check_prefetcher(prefetcher: &PrefetcherSpec, mut at: KeyScope<'_>) {
    at.check_range("coverage", prefetcher.coverage, COVERAGE);
    at.check_range("depth_lines", prefetcher.depth_lines, DEPTH_LINES);
    at.check_range("streams", prefetcher.streams.unwrap_or(1), DEPTH_LINES);
}
