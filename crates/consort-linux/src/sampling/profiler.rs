//! The profiler: from batches of samples to a profile per thread.

use super::RecordBatch;
use super::blocks::BlockCache;
use super::code::{CodeAddress, CodeCounts};
use super::profile::{
    ProfileTotal, ProfiledThread, SampleWindow, ThreadProfile, ThreadSampleCounts,
};
use crate::perf::record::PerfRecord;
use crate::topology::{CacheKind, DiscoveredCache, caches};
use consort_core::PuId;
use consort_isa::{Estimate, RegisterValues, SamplePoint, SampledProcessor};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::OnceLock;

/// Share of new samples, one in so many of a window, from which on the window is judged again.
/// Judging it goes through all of them, and at quanta of a few milliseconds there is one new one in
/// two hundred. Until then the estimate is old by less than its own error (see `sampling::window`).
const JUDGED_PER_WINDOW: u64 = 16;

/// A profiler of all threads that are sampled.
///
/// Feed it every [`RecordBatch`] soon after it was read, while the code is still
/// there, and ask for [`SampleProfiler::end_interval`] once per quantum.
#[derive(Debug)]
pub struct SampleProfiler {
    blocks: BlockCache,
    threads: BTreeMap<u32, ThreadSamples>,
    /// Threads with samples in this interval; some may be named twice.
    sampled: Vec<u32>,
    /// Threads that have ended in this interval, by tid.
    ended: Vec<(u32, ThreadSamples)>,
    host: SampledProcessor,
}

/// One thread's samples.
#[derive(Debug, Default)]
struct ThreadSamples {
    pid: u32,
    window: SampleWindow,
    interval: ThreadSampleCounts,
    /// Samples of the window that were not there when it was judged last.
    unjudged: u64,
    latest: Option<Estimate>,
    total: ProfileTotal,
}

impl SampleProfiler {
    /// A profiler that finds processes below `root`.
    pub fn new(root: &Path) -> Self {
        Self {
            blocks: BlockCache::new(root),
            threads: BTreeMap::new(),
            sampled: Vec::new(),
            ended: Vec::new(),
            host: detect_processor(root),
        }
    }

    /// Takes one round of records in.
    pub fn apply(&mut self, batch: &RecordBatch) {
        self.blocks.begin_round(batch);
        self.prefetch(batch);
        for record in &batch.records {
            self.blocks.apply_record(record);
            self.take_record(record, batch.sample_ns);
        }
    }

    /// Ends the interval; returns the profiles of the threads that had samples in it or have ended,
    /// by tid. A thread that has ended is reported for the last time; one whose tid was used again
    /// comes before its successor.
    pub fn end_interval(&mut self) -> Vec<ProfiledThread> {
        let mut profiled = Vec::new();
        for (tid, mut thread) in std::mem::take(&mut self.ended) {
            profiled.push(thread.end_interval(tid, true, self.host));
        }
        for tid in std::mem::take(&mut self.sampled) {
            let thread = self.threads.get_mut(&tid);
            if let Some(thread) = thread.filter(|thread| thread.interval.samples > 0) {
                profiled.push(thread.end_interval(tid, false, self.host));
            }
        }
        profiled.sort_by_key(|p| p.tid);
        profiled
    }

    /// Profile of a thread that had no samples in the interval that has ended, from its earlier
    /// samples.
    pub fn earlier_profile(&self, pid: u32, tid: u32) -> Option<ThreadProfile> {
        let thread = self.threads.get(&tid).filter(|thread| thread.pid == pid)?;
        Some(thread.profile(ThreadSampleCounts::default()))
    }

    /// Lets go of threads that are no longer known, whose end was among lost records; the next
    /// interval reports them for the last time.
    pub fn retain_known(&mut self, is_known: impl Fn(u32) -> bool) {
        let gone = self.threads.keys().copied().filter(|&tid| !is_known(tid));
        for tid in gone.collect::<Vec<_>>() {
            self.end(tid);
        }
    }

    /// Warnings for the user about code that cannot be read, since the last call.
    pub fn take_warnings(&mut self) -> Vec<String> {
        self.blocks.take_warnings()
    }

    /// Numbers of pages and windows of code that were found, by origin, and that were not.
    pub fn code_counts(&self) -> CodeCounts {
        self.blocks.counts()
    }

    /// Reads the code of samples before they are looked at one by one, but for processes whose
    /// mappings change within the batch: their memory may not be what was mapped when a sample fell.
    fn prefetch(&mut self, batch: &RecordBatch) {
        let changing: HashSet<u32> = batch
            .records
            .iter()
            .filter_map(|record| match record {
                PerfRecord::Mmap2(mapping) => Some(mapping.pid),
                PerfRecord::Comm {
                    pid, exec: true, ..
                } => Some(*pid),
                PerfRecord::Fork(task) => Some(task.pid),
                _ => None,
            })
            .collect();
        let samples = batch.records.iter().filter_map(|record| match record {
            PerfRecord::Sample {
                ip, arch, stamp, ..
            } if !changing.contains(&stamp.pid) => {
                Some(CodeAddress::from_sample(*ip, *arch, *stamp))
            }
            _ => None,
        });
        self.blocks.prefetch(samples);
    }

    fn take_record(&mut self, record: &PerfRecord, sample_ns: u64) {
        match record {
            PerfRecord::Sample {
                ip,
                arch,
                registers,
                stamp,
            } => {
                let at = CodeAddress::from_sample(*ip, *arch, *stamp);
                self.sample(at, registers.as_deref(), stamp.pu, sample_ns);
            }
            PerfRecord::Fork(task) | PerfRecord::Exit(task) => self.end(task.tid),
            PerfRecord::Comm {
                tid, exec: true, ..
            } => {
                // The interval ends early: samples of the old program show nothing of the new one.
                if let Some(thread) = self.threads.get_mut(tid) {
                    thread.close(self.host);
                    thread.window.clear();
                    thread.latest = None;
                }
            }
            _ => {}
        }
    }

    fn sample(
        &mut self,
        at: CodeAddress,
        registers: Option<&RegisterValues>,
        pu: u32,
        sample_ns: u64,
    ) {
        let (block, address) = self.blocks.at(at);
        let thread = self.threads.entry(at.tid).or_default();
        thread.pid = at.pid;
        if thread.interval.samples == 0 {
            self.sampled.push(at.tid);
        }
        thread.interval.add(ThreadSampleCounts {
            samples: 1,
            decoded: u64::from(block.is_some()),
            sampled_ns: sample_ns,
        });
        let accessed = block.as_ref().zip(registers);
        let at = SamplePoint {
            address,
            accessed: accessed
                .and_then(|(block, registers)| block.memory_access_at(address, registers)),
            pu,
            time_ns: at.time_ns,
            weight: sample_ns as f64,
        };
        thread.window.add(block, at);
    }

    fn end(&mut self, tid: u32) {
        if let Some(thread) = self.threads.remove(&tid) {
            self.ended.push((tid, thread));
        }
    }
}

impl ThreadSamples {
    fn end_interval(&mut self, tid: u32, ended: bool, host: SampledProcessor) -> ProfiledThread {
        let counts = self.close(host);
        let profiled = ProfiledThread {
            pid: self.pid,
            tid,
            ended,
            interval: self.profile(counts),
            total: self.total.profile(self.window.len(), self.latest),
        };
        self.window.next_interval();
        profiled
    }

    fn profile(&self, counts: ThreadSampleCounts) -> ThreadProfile {
        ThreadProfile {
            counts,
            estimate: self.latest,
            window_samples: self.window.len() as u64,
        }
    }

    /// Judges the window if enough of it is new, and takes the interval's counts.
    fn close(&mut self, host: SampledProcessor) -> ThreadSampleCounts {
        let counts = std::mem::take(&mut self.interval);
        if counts.samples > 0 {
            self.unjudged += counts.samples;
            let is_outdated = self.unjudged * JUDGED_PER_WINDOW >= self.window.len() as u64;
            if self.latest.is_none() || is_outdated {
                self.unjudged = 0;
                self.latest = self.window.estimate(host);
            }
            self.total.add(counts, self.latest);
        }
        counts
    }
}

/// Number of multiplications in one trial; each needs the result of the one before.
const CHAIN: u64 = 4_096;
/// Cycles that an integer multiplication takes, on every Intel core from 2008 and every AMD Zen
/// (their optimisation guides).
const MULTIPLY_CYCLES: f64 = 3.0;
/// Number of trials; the fastest counts, since disturbances only ever add.
const TRIALS: usize = 32;

/// The caches of the first CPU below `root`, and the speed of this processor, measured once in
/// about 0.2 ms.
pub(super) fn detect_processor(root: &Path) -> SampledProcessor {
    static CYCLES_PER_NS: OnceLock<Option<f64>> = OnceLock::new();
    let caches = caches(root, &PuId(0).into());
    let data = |level| {
        let of_level = |c: &&DiscoveredCache| c.level == level && c.kind != CacheKind::Instruction;
        caches.iter().find(of_level)?.size_bytes
    };
    SampledProcessor {
        l1_bytes: data(1),
        l2_bytes: data(2).or(data(1)),
        cycles_per_ns: *CYCLES_PER_NS.get_or_init(cycles_per_ns),
    }
}

#[cfg(target_arch = "x86_64")]
fn cycles_per_ns() -> Option<f64> {
    use std::time::{Duration, Instant};
    let trial = |_| {
        let start = Instant::now();
        multiply(CHAIN);
        start.elapsed()
    };
    let fastest = (0..TRIALS)
        .map(trial)
        .min()
        .filter(|&t| t > Duration::ZERO)?;
    Some(CHAIN as f64 * MULTIPLY_CYCLES / fastest.as_nanos() as f64)
}

#[cfg(not(target_arch = "x86_64"))]
fn cycles_per_ns() -> Option<f64> {
    None
}

/// Multiplies `times` times, one after the other: in assembly, since a compiler without
/// optimisation puts memory in between and one with optimisation leaves them out.
#[cfg(target_arch = "x86_64")]
fn multiply(times: u64) {
    // SAFETY: only the named registers and the flags are touched.
    unsafe {
        std::arch::asm!(
            "2:",
            "imul {x}, {x}", "imul {x}, {x}", "imul {x}, {x}", "imul {x}, {x}",
            "imul {x}, {x}", "imul {x}, {x}", "imul {x}, {x}", "imul {x}, {x}",
            "dec {n}", "jnz 2b",
            x = inout(reg) 3_u64 => _, n = inout(reg) (times / 8).max(1) => _,
            options(nomem, nostack)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::record::TaskRecord;
    use consort_isa::{Arch, BlockFacts, CodeBytes};
    use std::sync::Arc;

    const ADDRESS: u64 = 0x1000;

    fn block() -> Arc<BlockFacts> {
        let code = CodeBytes {
            arch: Arch::X86_64,
            base: ADDRESS,
            // add eax, eax; ret
            bytes: &[0x01, 0xc0, 0xc3],
        };
        Arc::new(BlockFacts::build(code, ADDRESS, &[]).unwrap())
    }

    fn sampled(thread: &mut ThreadSamples, block: Option<Arc<BlockFacts>>) {
        thread.interval.add(ThreadSampleCounts {
            samples: 1,
            decoded: u64::from(block.is_some()),
            sampled_ns: 1,
        });
        let at = SamplePoint {
            address: ADDRESS,
            accessed: None,
            pu: 0,
            time_ns: 0,
            weight: 1.0,
        };
        thread.window.add(block, at);
    }

    /// Samples left unjudged after an interval of so many more.
    fn unjudged_after(thread: &mut ThreadSamples, samples: u32) -> u64 {
        (0..samples).for_each(|_| sampled(thread, Some(block())));
        thread.end_interval(1, false, SampledProcessor::default());
        thread.unjudged
    }

    #[test]
    fn window_is_judged_again_after_a_sixteenth() {
        let mut thread = ThreadSamples::default();
        assert_eq!(unjudged_after(&mut thread, 160), 0);
        for samples in 1..=10 {
            assert_eq!(unjudged_after(&mut thread, 1), samples);
        }
        assert_eq!(unjudged_after(&mut thread, 1), 0);
        // An interval that fills the window is judged at once.
        assert_eq!(unjudged_after(&mut thread, 200), 0);
    }

    #[test]
    fn thread_without_samples_keeps_earlier_profile() {
        let mut profiler = SampleProfiler::new(Path::new("/"));
        let mut sample = |tids: &[u32]| {
            for &tid in tids {
                let at = CodeAddress {
                    pid: 1,
                    tid,
                    ip: ADDRESS,
                    arch: None,
                    time_ns: 0,
                };
                profiler.sample(at, None, 0, 1);
            }
            let reported: Vec<u32> = profiler.end_interval().iter().map(|p| p.tid).collect();
            let earlier = |tid| profiler.earlier_profile(1, tid).map(|p| p.window_samples);
            (reported, [1, 2, 3].map(earlier))
        };
        let (first, second) = (sample(&[2, 1, 2]), sample(&[1]));
        assert_eq!(first, (vec![1, 2], [Some(1), Some(2), None]));
        assert_eq!(second, (vec![1], [Some(2), Some(2), None]));
        let gone = TaskRecord {
            pid: 1,
            tid: 2,
            parent_pid: 1,
            parent_tid: 1,
            time_ns: 0,
        };
        profiler.take_record(&PerfRecord::Exit(gone), 1);
        assert!(
            profiler.earlier_profile(2, 1).is_none(),
            "of another process"
        );
        let reported: Vec<_> = profiler
            .end_interval()
            .iter()
            .map(|p| (p.tid, p.ended))
            .collect();
        assert_eq!(reported, [(2, true)]);
    }

    #[test]
    fn unjudged_window_is_judged_at_next_sample() {
        let mut thread = ThreadSamples::default();
        for _ in 0..100 {
            sampled(&mut thread, None);
        }
        assert_eq!(
            thread
                .end_interval(1, false, SampledProcessor::default())
                .interval
                .estimate,
            None
        );
        assert_eq!(unjudged_after(&mut thread, 1), 0);
        assert!(thread.latest.is_some());
    }
}

#[cfg(test)]
mod processor_tests {
    use super::*;

    #[test]
    fn the_speed_is_that_of_a_processor() {
        if cfg!(target_arch = "x86_64") {
            let speed = cycles_per_ns().unwrap();
            assert!((0.2..10.0).contains(&speed), "{speed} cycles per ns");
        }
    }
}
