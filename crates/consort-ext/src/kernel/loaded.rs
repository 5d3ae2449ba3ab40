//! The loaded scheduler: its tables, its counters, its end.

use super::skeleton::{SchedulerSkel, SchedulerSkelBuilder, types};
use super::{messages, shared};
use crate::config::ExtConfig;
use crate::encode::EncodedPlan;
use crate::error::ExtError;
use crate::layout::MachineLayout;
use crate::stats::{ExtStats, PuTimes, RunningTimes};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapCore, MapFlags, OpenObject};
use nix::time::{ClockId, clock_gettime};
use std::collections::BTreeSet;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::time::Duration;

/// Version that no plan has.
const UNRESOLVED: u64 = u64::MAX;

/// A scheduler that the kernel runs for as long as this value lives.
#[derive(Debug)]
pub(crate) struct Kernel {
    /// Owned by a descriptor: the kernel ends the scheduler when it is closed. First, so that it is.
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
        messages::start_capture();
        // The skeleton borrows this for its life. A process starts few schedulers, and each leaves
        // the size of a pointer behind.
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

    /// Makes room for the account of the thread.
    pub(crate) fn adopt(&self, key: [u8; 4]) -> io::Result<()> {
        let mut value = [0; size_of::<types::thread>()];
        value[..8].copy_from_slice(&UNRESOLVED.to_ne_bytes());
        let threads = &self.skeleton.0.maps.threads;
        threads
            .update(&key, &value, MapFlags::ANY)
            .map_err(io_error)
    }

    /// Fills the tables that are not in force, then puts them in force.
    pub(crate) fn write(&mut self, plan: &EncodedPlan, version: u64) -> Result<(), ExtError> {
        let table = usize::from(version % 2 == 1);
        self.write_lines(plan, table)?;
        self.write_programs(plan, table)?;
        self.send_heartbeat();
        if let Some(bss) = self.skeleton.0.maps.bss_data.as_deref_mut() {
            write_head(&mut bss.heads[table], plan);
            shared::publish(&mut bss.version, version);
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
            shared::publish(&mut bss.beat_ns, now_ns());
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
            slots_opened: shared::read(&bss.slots_opened),
            overlaps: shared::read(&bss.overlaps),
            overruns: shared::read(&bss.overruns),
            reliefs: shared::read(&bss.reliefs),
            unrecorded: shared::read(&bss.unrecorded),
        }
    }

    /// Reason for which the kernel let the scheduler go, if it has.
    pub(crate) fn ending(&self) -> Option<String> {
        let ending = &self.skeleton.0.maps.bss_data.as_deref()?.ending;
        if shared::read(&ending.kind) == 0 {
            return None;
        }
        let (reason, message) = (shared::text(&ending.reason), shared::text(&ending.message));
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
    // Half of the watchdog's patience belongs to the slots themselves.
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

/// Deletes lines, which would not be followed, being of another version, but take up room.
fn forget<'a>(map: &impl MapCore, numbers: impl Iterator<Item = &'a u32>) {
    for number in numbers {
        // It fails only where there is none.
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
    let time = |field: &u64| Duration::from_nanos(shared::read(field));
    PuTimes {
        times: RunningTimes {
            in_place: time(&pu.in_place_ns),
            elsewhere: time(&pu.elsewhere_ns),
            unplanned: time(&pu.unplanned_ns),
            turns: shared::read(&pu.turns),
        },
        turned_away: shared::read(&pu.turned_away),
        forced_idle: time(&pu.forced_idle_ns),
    }
}

/// The number at that offset; 0 where there is none.
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
        message: format!("{error:#}; {}", messages::captured_text()),
    }
}

fn io_error(error: libbpf_rs::Error) -> io::Error {
    io::Error::other(error)
}
