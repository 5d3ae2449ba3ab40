//! Plans as the bytes of the kernel's tables.

use crate::error::ExtError;
use crate::layout::{MachineLayout, PlanPlace, check_at_most};
use crate::plan::{ExtPlan, TimeSlot};
use consort_core::{ProgramId, PuSet, ThreadId};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Most time slots, as in `state.h`.
pub(crate) const MAX_SLOTS: usize = 8;
/// Most places of a plan that are neither a PU nor a core; half of what `state.h` has room for.
pub(crate) const MAX_SETS: usize = 16;
/// Most threads and most programs of a plan, as in `plan.h`.
pub(crate) const MAX_LINES: usize = 65_536;
/// The shortest slot that is worth switching.
const SHORTEST_SLOT: Duration = Duration::from_millis(1);

/// Limits to the slots of a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotLimits {
    /// Greatest number of slots.
    pub(crate) number: usize,
    /// Greatest total time of all slots; no limit only in tests of the kernel's watchdog.
    pub(crate) total: Option<Duration>,
}

/// Sets of PUs by the numbers of their queues.
pub(crate) type SetNumbers = BTreeMap<PuSet, u32>;

/// A plan in the form that user space copies into the tables that are not in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EncodedPlan {
    /// Lines by thread number.
    pub(crate) lines: BTreeMap<u32, [u8; 32]>,
    /// Lines by process number.
    pub(crate) programs: BTreeMap<u32, [u8; 16]>,
    /// Silence after which the plan is stale, ns.
    pub(crate) stale_ns: u64,
    /// Length of each slot, ns.
    pub(crate) slot_ns: Vec<u64>,
    /// The numbers of its places that are neither a PU nor a core.
    pub(crate) sets: SetNumbers,
    /// The sets that each PU is in, a bit each, by PU number.
    pub(crate) sets_of: Vec<u32>,
}

/// Encodes a plan. Sets keep the numbers that they had in the plan `before`, and no other set gets
/// these: threads may still wait in the queues.
///
/// # Errors
/// Where the plan is not possible on this machine or not safe.
pub(crate) fn encode(
    plan: &ExtPlan,
    version: u64,
    before: &SetNumbers,
    layout: &MachineLayout,
    limits: SlotLimits,
) -> Result<EncodedPlan, ExtError> {
    let slots = SlotNumbers::new(&plan.slots, limits)?;
    let mut sets = SetNumbering::new(layout, before);
    let mut lines = BTreeMap::new();
    let threads: BTreeSet<ThreadId> = plan
        .places
        .keys()
        .chain(slots.threads.keys())
        .copied()
        .collect();
    check_at_most("the plan's threads are", threads.len(), MAX_LINES)?;
    check_at_most("the plan's programs are", slots.programs.len(), MAX_LINES)?;
    for thread in threads {
        let place = match plan.places.get(&thread) {
            Some(pus) => sets.place(thread, pus)?,
            None => PlanPlace::Anywhere,
        };
        lines.insert(
            thread.tid,
            line(version, thread, place, slots.slot_number(thread)),
        );
    }
    Ok(EncodedPlan {
        lines,
        programs: slots.program_lines(version),
        stale_ns: nanos(plan.stale_after()),
        slot_ns: plan.slots.iter().map(|slot| nanos(slot.length)).collect(),
        sets: sets.numbers,
        sets_of: sets.of_pus,
    })
}

fn line(version: u64, thread: ThreadId, place: PlanPlace, slot: u32) -> [u8; 32] {
    let (kind, number) = place.code();
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&version.to_ne_bytes());
    bytes[8..16].copy_from_slice(&thread.start_ticks.to_ne_bytes());
    bytes[16..20].copy_from_slice(&kind.to_ne_bytes());
    bytes[20..24].copy_from_slice(&number.to_ne_bytes());
    bytes[24..28].copy_from_slice(&slot.to_ne_bytes());
    bytes
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Slots of programs and threads; they count from 1, 0 is none.
struct SlotNumbers {
    programs: BTreeMap<ProgramId, u32>,
    threads: BTreeMap<ThreadId, u32>,
}

impl SlotNumbers {
    fn new(slots: &[TimeSlot], limits: SlotLimits) -> Result<Self, ExtError> {
        check_at_most("the plan's time slots are", slots.len(), limits.number)?;
        check_lengths(slots, limits)?;
        let mut all = Self {
            programs: BTreeMap::new(),
            threads: BTreeMap::new(),
        };
        for (slot, number) in slots.iter().zip(1..) {
            all.add(slot, number)?;
        }
        Ok(all)
    }

    fn add(&mut self, slot: &TimeSlot, number: u32) -> Result<(), ExtError> {
        for &program in &slot.programs {
            if self.programs.insert(program, number).is_some() {
                return Err(ExtError::TwoSlots(program));
            }
        }
        for &thread in &slot.threads {
            if self.threads.insert(thread, number).is_some() {
                return Err(ExtError::TwoSlots(thread.program()));
            }
        }
        Ok(())
    }

    fn slot_number(&self, thread: ThreadId) -> u32 {
        let own = self.threads.get(&thread);
        let programs = || self.programs.get(&thread.program());
        own.or_else(programs).copied().unwrap_or(0)
    }

    fn program_lines(&self, version: u64) -> BTreeMap<u32, [u8; 16]> {
        let lines = self.programs.iter().map(|(&program, &slot)| {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&version.to_ne_bytes());
            bytes[8..12].copy_from_slice(&slot.to_ne_bytes());
            (program.0, bytes)
        });
        lines.collect()
    }
}

fn check_lengths(slots: &[TimeSlot], limits: SlotLimits) -> Result<(), ExtError> {
    let lengths = slots.iter().map(|slot| slot.length);
    if let Some(short) = lengths.clone().find(|&length| length < SHORTEST_SLOT) {
        return Err(ExtError::ShortSlot(short));
    }
    let total = lengths.fold(Duration::ZERO, Duration::saturating_add);
    match limits.total {
        Some(most) if total > most => Err(ExtError::LongSlots { total, most }),
        _ => Ok(()),
    }
}

/// The places of one plan that are neither a PU nor a core.
struct SetNumbering<'a> {
    layout: &'a MachineLayout,
    before: &'a SetNumbers,
    numbers: SetNumbers,
    of_pus: Vec<u32>,
}

impl<'a> SetNumbering<'a> {
    fn new(layout: &'a MachineLayout, before: &'a SetNumbers) -> Self {
        Self {
            layout,
            before,
            numbers: BTreeMap::new(),
            of_pus: vec![0; layout.end()],
        }
    }

    /// Gives a thread its place; PUs that the machine does not have are left out.
    fn place(&mut self, thread: ThreadId, pus: &PuSet) -> Result<PlanPlace, ExtError> {
        let here = pus.intersection(&self.layout.pus);
        if here.is_empty() && !pus.is_empty() {
            let pus = pus.clone();
            return Err(ExtError::NoSuchPu { thread, pus });
        }
        match self.layout.fixed_place(&here) {
            Some(place) => Ok(place),
            None => self.set(here).map(PlanPlace::Set),
        }
    }

    fn set(&mut self, pus: PuSet) -> Result<u32, ExtError> {
        if let Some(&number) = self.numbers.get(&pus) {
            return Ok(number);
        }
        let sets = self.numbers.len() + 1;
        check_at_most(
            "the plan's sets of PUs that are no core are",
            sets,
            MAX_SETS,
        )?;
        let number = self
            .before
            .get(&pus)
            .copied()
            .unwrap_or_else(|| self.unused_number());
        for pu in pus.iter() {
            self.of_pus[pu.0 as usize] |= 1 << number;
        }
        self.numbers.insert(pus, number);
        Ok(number)
    }

    /// A number that neither this plan nor the one before has; below 32, as neither has more than
    /// [`MAX_SETS`].
    fn unused_number(&self) -> u32 {
        let taken: BTreeSet<u32> = self
            .before
            .values()
            .chain(self.numbers.values())
            .copied()
            .collect();
        (0..).find(|number| !taken.contains(number)).unwrap_or(0)
    }
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
