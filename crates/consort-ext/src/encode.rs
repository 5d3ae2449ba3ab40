//! Plans as the bytes of the kernel's tables.

use crate::error::ExtError;
use crate::layout::{MachineLayout, PlanPlace, check_at_most};
use crate::plan::{ExtPlan, TimeSlot};
use consort_core::{ProgramId, PuSet, ThreadId};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Most time slots, as in `state.h`.
pub(crate) const MAX_SLOTS: usize = 8;
/// Most places of a plan that are neither a CPU nor a core; half of what `state.h` has room for.
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
    /// Greatest total time of all slots; `None` only in tests of the kernel's watchdog.
    pub(crate) total: Option<Duration>,
}

/// Sets of CPUs by the numbers of their queues.
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
    /// The numbers of its places that are neither a CPU nor a core.
    pub(crate) sets: SetNumbers,
    /// The sets that each CPU is in, a bit each, by CPU number.
    pub(crate) sets_of: Vec<u32>,
}

/// Encodes a plan. Sets keep the numbers that they had in the plan `before`, and no other set gets
/// these numbers, because threads may still wait in their queues.
///
/// # Errors
/// The plan is not possible on this machine, or not safe.
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

/// Slots of programs and threads, counted from 1; 0 is none.
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

/// The places of one plan that are neither a CPU nor a core.
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

    /// Returns the place of a thread; CPUs that the machine does not have are left out.
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
            "the plan's sets of CPUs that are no core are",
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

    /// A number that neither this plan nor the one before uses; below 32, because neither has more
    /// than [`MAX_SETS`].
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
mod tests {
    use super::*;
    use consort_core::Topology;
    use proptest::prelude::*;

    const LIMITS: SlotLimits = SlotLimits {
        number: 4,
        total: Some(Duration::from_secs(5)),
    };

    fn layout() -> MachineLayout {
        MachineLayout::new(&Topology::uniform(4, 2).unwrap()).unwrap()
    }

    fn thread(tid: u32) -> ThreadId {
        ThreadId {
            pid: 100,
            tid,
            start_ticks: u64::from(tid) * 7,
        }
    }

    fn plan(places: &[(u32, &str)]) -> ExtPlan {
        let place = |&(tid, pus): &(u32, &str)| (thread(tid), pus.parse().unwrap());
        ExtPlan {
            places: places.iter().map(place).collect(),
            ..ExtPlan::unrestricted(Duration::from_millis(100))
        }
    }

    fn slot(length_ms: u64, programs: &[u32]) -> TimeSlot {
        TimeSlot {
            length: Duration::from_millis(length_ms),
            programs: programs.iter().copied().map(ProgramId).collect(),
            threads: BTreeSet::new(),
        }
    }

    /// Version, start, kind, number and slot of a line.
    fn read(line: &[u8; 32]) -> (u64, u64, u32, u32, u32) {
        let long = |at: usize| u64::from_ne_bytes(line[at..at + 8].try_into().unwrap());
        let word = |at: usize| u32::from_ne_bytes(line[at..at + 4].try_into().unwrap());
        (long(0), long(8), word(16), word(20), word(24))
    }

    fn error(plan: &ExtPlan) -> String {
        let refused = encode(plan, 1, &SetNumbers::new(), &layout(), LIMITS);
        refused.unwrap_err().to_string()
    }

    fn encoded_as(plan: &ExtPlan, version: u64) -> EncodedPlan {
        encode(plan, version, &SetNumbers::new(), &layout(), LIMITS).unwrap()
    }

    #[test]
    fn lines_name_version_start_and_place() {
        let encoded = encoded_as(&plan(&[(5, "3"), (6, "2,6"), (7, "0-7")]), 9);
        assert_eq!(read(&encoded.lines[&5]), (9, 35, 1, 3, 0));
        assert_eq!(read(&encoded.lines[&6]), (9, 42, 2, 2, 0));
        assert_eq!(read(&encoded.lines[&7]), (9, 49, 0, 0, 0));
        assert_eq!(encoded.stale_ns, 1_000_000_000);
        assert!(encoded.sets.is_empty());
    }

    #[test]
    fn equal_sets_share_a_number() {
        let plan = plan(&[(5, "0-2"), (6, "1,3"), (7, "0-2")]);
        let encoded = encoded_as(&plan, 1);
        let number = |tid| read(&encoded.lines[&tid]);
        assert_eq!((number(5).2, number(5).3), (3, 0));
        assert_eq!((number(6).2, number(6).3), (3, 1));
        assert_eq!(number(7).3, 0);
        assert_eq!(encoded.sets_of, [1, 3, 1, 2, 0, 0, 0, 0]);
    }

    #[test]
    fn consecutive_plans_keep_numbers_of_sets() {
        let first = encoded_as(&plan(&[(5, "0-2"), (6, "1,3")]), 1);
        let next = plan(&[(5, "5-7"), (6, "1,3")]);
        let next = encode(&next, 2, &first.sets, &layout(), LIMITS).unwrap();
        let numbers: Vec<u32> = next.sets.values().copied().collect();
        assert_eq!((read(&next.lines[&5]).3, read(&next.lines[&6]).3), (2, 1));
        assert_eq!(numbers.len(), 2);
        // The number of a set that is gone is free again one plan later.
        let last = encode(&plan(&[(5, "0,5")]), 3, &next.sets, &layout(), LIMITS).unwrap();
        assert_eq!(read(&last.lines[&5]).3, 0);
    }

    #[test]
    fn slot_of_thread_precedes_slot_of_program() {
        let mut plan = plan(&[(5, "3")]);
        plan.slots = vec![slot(20, &[100]), slot(30, &[])];
        plan.slots[1].threads.insert(thread(6));
        let encoded = encoded_as(&plan, 4);
        assert_eq!(read(&encoded.lines[&5]).4, 1);
        assert_eq!(read(&encoded.lines[&6]), (4, 42, 0, 0, 2));
        assert_eq!(encoded.slot_ns, [20_000_000, 30_000_000]);
        assert_eq!(encoded.programs[&100][..8], 4u64.to_ne_bytes());
        assert_eq!(encoded.programs[&100][8..12], 1u32.to_ne_bytes());
    }

    #[test]
    fn impossible_plans_are_refused() {
        assert!(error(&plan(&[(5, "9")])).contains("CPU 9"));
        let with = |slots: Vec<TimeSlot>| ExtPlan { slots, ..plan(&[]) };
        let refused = error(&with(vec![slot(20, &[1]), slot(20, &[1])]));
        assert!(refused.contains("program 1 is in two"), "{refused}");
        assert!(error(&with(vec![slot(0, &[])])).contains("too short"));
        assert!(error(&with(vec![slot(6000, &[])])).contains("at most 5s"));
        assert!(error(&with(vec![slot(2, &[]); 5])).contains("at most 4"));
    }

    #[test]
    fn more_sets_than_the_tables_hold_are_refused() {
        let pairs: Vec<String> = (0..17)
            .map(|i| format!("{}-{}", i % 6, 2 + i % 6))
            .collect();
        let distinct: Vec<String> = (1..=17u32)
            .map(|bits| {
                let pus = (0..5)
                    .filter(|bit| bits >> bit & 1 == 1)
                    .map(|bit| bit.to_string());
                format!("{},5,7", pus.collect::<Vec<_>>().join(","))
            })
            .collect();
        let places = |sets: &[String]| {
            let numbered: Vec<(u32, &str)> = (1..).zip(sets.iter().map(String::as_str)).collect();
            plan(&numbered)
        };
        assert_eq!(encoded_as(&places(&pairs), 1).sets.len(), 6);
        assert!(error(&places(&distinct)).contains("at most 16"));
    }

    proptest! {
        /// Whatever the places are, a line stands for exactly the CPUs that the plan says.
        #[test]
        fn lines_mean_what_the_plan_says(masks in prop::collection::vec(1u32..256, 1..16)) {
            let set = |mask: u32| -> PuSet {
                (0..8).filter(|pu| mask >> pu & 1 == 1).map(consort_core::PuId).collect()
            };
            let places = (1..).zip(&masks).map(|(tid, &mask)| (thread(tid), set(mask))).collect();
            let plan = ExtPlan { places, ..plan(&[]) };
            let layout = layout();
            let encoded = encoded_as(&plan, 1);
            for (tid, &mask) in (1..).zip(&masks) {
                let (_, _, kind, number, _) = read(&encoded.lines[&tid]);
                let in_set = |pu: &consort_core::PuId| encoded.sets_of[pu.0 as usize] >> number & 1 == 1;
                let meant: PuSet = match kind {
                    0 => layout.pus.clone(),
                    1 => [consort_core::PuId(number)].into_iter().collect(),
                    2 => layout.cores[number as usize].clone(),
                    _ => layout.pus.iter().filter(in_set).collect(),
                };
                prop_assert_eq!(meant, set(mask));
            }
        }
    }
}
