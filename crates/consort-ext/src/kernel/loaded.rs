//! The loaded scheduler: its tables, its counters, its end.

use std::collections::BTreeSet;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, OpenObject, PrintLevel, set_print};
use nix::time::{ClockId, clock_gettime};

use super::skeleton::{SchedulerSkel, SchedulerSkelBuilder, types};
use crate::encode::EncodedPlan;
use crate::error::ExtError;
use crate::layout::MachineLayout;
use crate::plan::ExtConfig;
use crate::stats::{ExtStats, PuTimes, RunningTimes};

/// Version that no plan has.
const UNRESOLVED: u64 = u64::MAX;

/// A scheduler that the kernel runs for as long as this value lives.
#[derive(Debug)]
pub(crate) struct Kernel {
    /// Owned by a descriptor: the kernel ends the scheduler when it is closed. First field, so that
    /// it is dropped before the skeleton.
    _link: Link,
    skeleton: Skeleton,
    /// The threads and programs that the two tables of lines hold.
    written: [WrittenLines; 2],
}

#[derive(Debug, Default)]
struct WrittenLines {
    lines: BTreeSet<u32>,
    programs: BTreeSet<u32>,
}

struct Skeleton(SchedulerSkel<'static>);

impl std::fmt::Debug for Skeleton {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Skeleton")
    }
}

impl Kernel {
    pub(crate) fn start(layout: &MachineLayout, config: &ExtConfig) -> Result<Self, ExtError> {
        start_capture();
        // The skeleton borrows this for its life. A process starts few schedulers, and each leaks
        // only the size of a pointer.
        let object: &'static mut MaybeUninit<OpenObject> =
            Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = SchedulerSkelBuilder::default()
            .open(object)
            .map_err(refused_error("opening"))?;
        if let Some(settings) = open.maps.rodata_data.as_deref_mut() {
            set(settings, layout, config);
        }
        open.struct_ops.consort_mut().timeout_ms = millis(config.watchdog);
        let mut skeleton = open.load().map_err(refused_error("loading"))?;
        let link = skeleton.maps.consort.attach_struct_ops();
        Ok(Self {
            _link: link.map_err(refused_error("starting"))?,
            skeleton: Skeleton(skeleton),
            written: Default::default(),
        })
    }

    /// Makes room for the account of a thread.
    pub(crate) fn adopt(&self, key: [u8; 4]) -> io::Result<()> {
        let mut value = [0; size_of::<types::thread>()];
        value[..8].copy_from_slice(&UNRESOLVED.to_ne_bytes());
        let threads = &self.skeleton.0.maps.threads;
        threads
            .update(&key, &value, MapFlags::ANY)
            .map_err(io_error)
    }

    /// Fills the tables that are not in force, then switches to them.
    pub(crate) fn write(&mut self, plan: &EncodedPlan, version: u64) -> Result<(), ExtError> {
        let table = usize::from(version % 2 == 1);
        self.write_lines(plan, table)?;
        self.write_programs(plan, table)?;
        self.send_heartbeat();
        if let Some(bss) = self.skeleton.0.maps.bss_data.as_deref_mut() {
            write_head(&mut bss.heads[table], plan);
            publish(&mut bss.version, version);
        }
        Ok(())
    }

    fn write_lines(&mut self, plan: &EncodedPlan, table: usize) -> Result<(), ExtError> {
        let maps = &self.skeleton.0.maps;
        let map = [&maps.even_lines, &maps.odd_lines][table];
        let now: BTreeSet<u32> = plan.lines.keys().copied().collect();
        let before = std::mem::replace(&mut self.written[table].lines, now);
        let gone = before.difference(&self.written[table].lines);
        forget(map, gone);
        let lines = plan.lines.iter().map(|(&tid, line)| (tid, line.as_slice()));
        fill(map, lines)
    }

    fn write_programs(&mut self, plan: &EncodedPlan, table: usize) -> Result<(), ExtError> {
        let maps = &self.skeleton.0.maps;
        let map = [&maps.even_programs, &maps.odd_programs][table];
        let now: BTreeSet<u32> = plan.programs.keys().copied().collect();
        let before = std::mem::replace(&mut self.written[table].programs, now);
        let gone = before.difference(&self.written[table].programs);
        forget(map, gone);
        let lines = plan
            .programs
            .iter()
            .map(|(&pid, line)| (pid, line.as_slice()));
        fill(map, lines)
    }

    pub(crate) fn send_heartbeat(&mut self) {
        if let Some(bss) = self.skeleton.0.maps.bss_data.as_deref_mut() {
            publish(&mut bss.beat_ns, now_ns());
        }
    }

    pub(crate) fn times(&self, key: [u8; 4]) -> io::Result<Option<RunningTimes>> {
        let threads = &self.skeleton.0.maps.threads;
        let value = threads.lookup(&key, MapFlags::ANY).map_err(io_error)?;
        Ok(value.map(|bytes| thread_times(&bytes)))
    }

    pub(crate) fn time_together(&self, low: u32, high: u32) -> Result<Duration, ExtError> {
        let mut key = [0; 8];
        key[..4].copy_from_slice(&low.to_ne_bytes());
        key[4..].copy_from_slice(&high.to_ne_bytes());
        let pairs = &self.skeleton.0.maps.pairs;
        let value = pairs.lookup(&key, MapFlags::ANY);
        let bytes = value
            .map_err(refused_error("reading pairs"))?
            .unwrap_or_default();
        Ok(Duration::from_nanos(long(&bytes, 0)))
    }

    pub(crate) fn stats(&self, pus: usize) -> ExtStats {
        let Some(bss) = self.skeleton.0.maps.bss_data.as_deref() else {
            return ExtStats::default();
        };
        ExtStats {
            pus: bss.pus.iter().take(pus).map(pu_times).collect(),
            slots_opened: read_shared(&bss.slots_opened),
            overlaps: read_shared(&bss.overlaps),
            overruns: read_shared(&bss.overruns),
            reliefs: read_shared(&bss.reliefs),
            unrecorded: read_shared(&bss.unrecorded),
        }
    }

    /// Reason for which the kernel ended the scheduler, if it has.
    pub(crate) fn ending(&self) -> Option<String> {
        let ending = &self.skeleton.0.maps.bss_data.as_deref()?.ending;
        if read_shared(&ending.kind) == 0 {
            return None;
        }
        let (reason, message) = (shared_text(&ending.reason), shared_text(&ending.message));
        Some(match message.as_str() {
            "" => reason,
            message => format!("{reason}: {message}"),
        })
    }
}

fn set(settings: &mut types::rodata, layout: &MachineLayout, config: &ExtConfig) {
    let number = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    settings.nr_pus = number(layout.end());
    settings.nr_cores = number(layout.cores.len());
    settings.nr_slots = number(config.slots);
    settings.slice_ns = nanos(config.slice);
    settings.relief_ns = nanos(config.relief);
    // Half of the watchdog's limit belongs to the slots themselves.
    settings.drain_limit_ns = nanos(config.watchdog / 4);
    for (core, (pus, numbered)) in layout.cores.iter().zip(&mut settings.pus_of).enumerate() {
        for (pu, way) in pus.iter().zip(numbered) {
            *way = pu.0 + 1;
            settings.core_of[pu.0 as usize] = number(core);
        }
    }
}

fn write_head(head: &mut types::head, plan: &EncodedPlan) {
    head.stale_ns = plan.stale_ns;
    head.slots = u32::try_from(plan.slot_ns.len()).unwrap_or(0);
    // Slots count from 1.
    for (length, &ns) in head.slot_ns.iter_mut().skip(1).zip(&plan.slot_ns) {
        *length = ns;
    }
    for (sets, &wanted) in head.sets_of.iter_mut().zip(&plan.sets_of) {
        *sets = wanted;
    }
}

/// Deletes lines of earlier plans. The kernel would ignore them because of their version, but they
/// take up room.
fn forget<'a>(map: &impl MapCore, numbers: impl Iterator<Item = &'a u32>) {
    for number in numbers {
        // It fails only if the line does not exist.
        let _ = map.delete(&number.to_ne_bytes());
    }
}

fn fill<'a>(
    map: &impl MapCore,
    lines: impl Iterator<Item = (u32, &'a [u8])>,
) -> Result<(), ExtError> {
    let (mut keys, mut values, mut count) = (Vec::new(), Vec::new(), 0);
    for (number, line) in lines {
        keys.extend_from_slice(&number.to_ne_bytes());
        values.extend_from_slice(line);
        count += 1;
    }
    if count == 0 {
        return Ok(());
    }
    map.update_batch(&keys, &values, count, MapFlags::ANY, MapFlags::ANY)
        .map_err(refused_error("writing a plan"))
}

fn thread_times(bytes: &[u8]) -> RunningTimes {
    use std::mem::offset_of;
    let at = |offset| long(bytes, offset);
    RunningTimes {
        in_place: Duration::from_nanos(at(offset_of!(types::thread, in_place_ns))),
        elsewhere: Duration::from_nanos(at(offset_of!(types::thread, elsewhere_ns))),
        unplanned: Duration::from_nanos(at(offset_of!(types::thread, unplanned_ns))),
        turns: at(offset_of!(types::thread, turns)),
    }
}

fn pu_times(pu: &types::pu) -> PuTimes {
    let time = |field: &u64| Duration::from_nanos(read_shared(field));
    PuTimes {
        times: RunningTimes {
            in_place: time(&pu.in_place_ns),
            elsewhere: time(&pu.elsewhere_ns),
            unplanned: time(&pu.unplanned_ns),
            turns: read_shared(&pu.turns),
        },
        turned_away: read_shared(&pu.turned_away),
        forced_idle: time(&pu.forced_idle_ns),
    }
}

/// The number at an offset; 0 if there is none.
fn long(bytes: &[u8], offset: usize) -> u64 {
    let bytes = bytes
        .get(offset..offset + 8)
        .and_then(|b| b.try_into().ok());
    bytes.map_or(0, u64::from_ne_bytes)
}

/// The clock of the kernel's part.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from);
    now.map_or(0, nanos)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

fn refused_error(what: &'static str) -> impl FnOnce(libbpf_rs::Error) -> ExtError {
    move |error| ExtError::Refused {
        what,
        message: format!("{error:#}; {}", captured_text()),
    }
}

fn io_error(error: libbpf_rs::Error) -> io::Error {
    io::Error::other(error)
}

/// Length of the kept end of the messages, characters. The verifier explains itself at length, and
/// only its last words matter.
const KEPT: usize = 400;

static SAID: Mutex<String> = Mutex::new(String::new());

/// Forgets earlier messages and captures the following ones.
fn start_capture() {
    lock().clear();
    set_print(Some((PrintLevel::Warn, keep)));
}

/// The end of the captured messages, in one line.
fn captured_text() -> String {
    let said = lock();
    let lines: Vec<&str> = said
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    let line = lines.join("; ");
    let from = line.char_indices().rev().nth(KEPT).map_or(0, |(at, _)| at);
    line[from..].to_owned()
}

#[expect(clippy::needless_pass_by_value, reason = "libbpf-rs hands it over so")]
fn keep(_: PrintLevel, message: String) {
    lock().push_str(&message);
}

fn lock() -> std::sync::MutexGuard<'static, String> {
    SAID.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads a value that the kernel may change at any time.
fn read_shared<T: Copy>(field: &T) -> T {
    // SAFETY: a reference is valid and aligned; volatile, because the kernel writes at the same
    // time. All types that are read are plain numbers, for which every bit pattern is a value.
    unsafe { std::ptr::read_volatile(field) }
}

/// Stores a value so that the kernel sees all earlier stores first.
fn publish(field: &mut u64, value: u64) {
    // SAFETY: the exclusive reference is valid and aligned; the kernel reads the field in one
    // piece, as atomics do.
    unsafe { AtomicU64::from_ptr(field) }.store(value, Ordering::Release);
}

/// Text that ends at its first zero byte.
fn shared_text(bytes: &[i8]) -> String {
    let until_zero = bytes.iter().map(|byte| read_shared(byte).to_ne_bytes()[0]);
    let bytes: Vec<u8> = until_zero.take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_ends_at_the_first_zero() {
        assert_eq!(shared_text(&[104, 105, 0, 33]), "hi");
    }

    #[test]
    fn published_value_is_read() {
        let mut field = 3;
        publish(&mut field, 7);
        assert_eq!(read_shared(&field), 7);
    }
}
